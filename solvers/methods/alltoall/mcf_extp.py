"""Method ``mcf-extp``: weighted paths extracted from the master LP."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.flows.path_sets import path_set_of, to_arrays
from opticoll.formulations.parameters import Parameter
from opticoll.solvers.methods.alltoall.decomposition import demand_of, refuse_restricted, unsolved
from opticoll.solvers.methods.method import Answer, Method
from opticoll.solvers.schedules.weighted_paths import extract_paths

if TYPE_CHECKING:
    from opticoll.solvers.methods.method import Context


def run_mcf_extp(context: Context) -> Answer:
    """The link MCF's flow turned into weighted paths by widest paths (all-to-all paper, 3.2.1).

    It solves the *path* model ``alltoall.path-mcf`` over all simple paths, whose checker verifies that the paths carry
    the full flow within the capacities. The parameter ``link`` names the method that solves the link MCF.

    Raises
    ------
    MethodMismatch
        If the path set is not that of all simple paths.
    """
    refuse_restricted(context, "mcf-extp")
    topology, link = context.instance, str(context.parameters["link"])
    flow = context.solve(context.part("alltoall.link-mcf", method=link, settings=demand_of(context.task)))
    failed = unsolved(flow)
    if failed is not None:
        return failed
    assert flow.values is not None
    F = float(flow.values["F"])
    sources, targets = context.data.routing.commodities
    demand = context.data.routing.amount.tolist()
    paths: list[list[int]] = []
    pair: list[int] = []
    amount: dict[tuple[int, tuple[int, ...]], float] = {}
    most = 0
    for k, (s, t) in enumerate(zip(sources.tolist(), targets.tolist(), strict=True)):
        pair_paths = extract_paths(topology, s, t, flow.values["f"][:, k], F * demand[k])
        most = max(most, len(pair_paths))
        for path in pair_paths:
            key = (k, tuple(path.arcs))
            if key not in amount:
                paths.append(path.arcs)
                pair.append(k)
            amount[key] = amount.get(key, 0.0) + path.amount
        if k % 1000 == 0:
            context.remaining()
    extracted = path_set_of(topology, paths, pair, (sources, targets))
    rates = np.array([amount[int(extracted.pair[p]), tuple(extracted.path(p))] for p in range(extracted.paths)])
    return Answer(
        flow.termination,
        values={"f": rates, "F": np.asarray(F), **to_arrays(extracted)},
        bound=flow.bound,
        bound_source=flow.record["bound_source"],
        solver={**flow.record["solver"], "algorithm": f"{flow.record['method']}, then widest paths"},
        metrics={
            "paths": extracted.paths,
            "paths_per_commodity": extracted.paths / sources.size,
            "most_paths_per_commodity": most,
            "longest_path": int(extracted.length.max()),
        },
    )


METHOD = Method(
    name="mcf-extp",
    title="Link MCF, then widest paths (MCF-extP)",
    summary="weighted paths from the link MCF's flow, widest first; with paths=all",
    serves=("alltoall.path-mcf",),
    parameters=(Parameter("link", str, default="flow-decomposition", help="method that solves alltoall.link-mcf"),),
    run=run_mcf_extp,
)

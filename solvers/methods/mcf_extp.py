r"""MCF-extP: the link MCF's flow turned into weighted paths by widest paths (all-to-all paper, 3.2.1).

A method of the *path* model, because paths are what it returns: the solution is one of ``alltoall.path-mcf`` over all
simple paths, and its checker verifies that the paths carry the full flow within the capacities. The link MCF (``link``:
by which method) supplies the flow and the bound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from formulations.alltoall.concurrent_flow import commodities
from formulations.alltoall.path_extraction import extract_paths
from formulations.alltoall.path_sets import path_set_of, to_arrays
from formulations.base import Parameter
from solvers.errors import MethodMismatch
from solvers.methods.base import Answer, Method
from solvers.methods.master_solution import unsolved
from solvers.task import Task

if TYPE_CHECKING:
    from solvers.methods.base import Context


def run(context: Context) -> Answer:
    """Solve the link MCF, then extract the paths of every commodity.

    Raises
    ------
    MethodMismatch
        If the path set is not that of all simple paths.
    """
    if not context.data.rule.unrestricted:
        msg = f"mcf-extp extracts paths of any kind, not of {context.data.rule}; give --set paths=all and no lmax"
        raise MethodMismatch(msg)
    topology, task = context.instance, context.task
    flow = context.solve(
        Task(
            "alltoall.link-mcf", task.instance, method=str(context.parameters["link"]),
            time_limit_s=context.remaining(), memory_limit_gib=task.memory_limit_gib, tol=task.tol, seed=task.seed,
            threads=task.threads,
        )
    )  # fmt: skip
    failed = unsolved(flow)
    if failed is not None:
        return failed
    assert flow.values is not None
    F = float(flow.values["F"])
    sources, targets = commodities(topology)
    paths: list[list[int]] = []
    pair: list[int] = []
    amount: dict[tuple[int, tuple[int, ...]], float] = {}
    most = 0
    for k, (s, t) in enumerate(zip(sources.tolist(), targets.tolist(), strict=True)):
        found = extract_paths(topology, s, t, flow.values["f"][:, k], F)
        most = max(most, len(found))
        for path in found:
            key = (k, tuple(path.arcs))
            if key not in amount:
                paths.append(path.arcs)
                pair.append(k)
            amount[key] = amount.get(key, 0.0) + path.amount
        if k % 1000 == 0:
            context.remaining()
    extracted = path_set_of(topology, paths, pair)
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
    summary="weighted paths out of the link MCF's flow, widest first; with --set paths=all",
    applies=lambda formulation: formulation.name == "alltoall.path-mcf",
    parameters=(Parameter("link", str, default="flow-decomposition", help="method that solves alltoall.link-mcf"),),
    run=run,
)

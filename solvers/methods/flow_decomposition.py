r"""Per-commodity flows from the master LP alone: each source's flow is stripped into paths, no child LP.

A single-source flow without cycles decomposes into at most N + m paths from the source (Ford & Fulkerson); the
paths that end at t carry exactly what t receives. So the link MCF's optimum is the master's.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from formulations.alltoall.path_stripping import strip_paths
from formulations.base import Parameter
from solvers.errors import MethodMismatch
from solvers.methods.base import Answer, Method
from solvers.methods.master_solution import MOST_ENTRIES, solve_master, unsolved

if TYPE_CHECKING:
    from solvers.methods.base import Context


def run(context: Context) -> Answer:
    """Solve the master, strip every source's flow into paths, add them up by commodity."""
    topology = context.instance
    ranks, m = topology.ranks, topology.arcs
    if ranks * (ranks - 1) * m > MOST_ENTRIES:
        msg = (
            f"flow-decomposition: {ranks * (ranks - 1)} commodities on {m} arcs are more than the "
            f"{MOST_ENTRIES} entries kept; solve alltoall.master, whose flow holds the same information"
        )
        raise MethodMismatch(msg)
    begun = time.monotonic()
    master = solve_master(context)
    failed = unsolved(master)
    if failed is not None:
        return failed
    assert master.values is not None
    F = float(master.values["F"])
    proven = time.monotonic()
    flows = np.zeros((m, ranks * (ranks - 1)))
    paths = longest = 0
    for i, source in enumerate(topology.terminals.tolist()):
        context.remaining()
        targets = np.delete(topology.terminals, i)
        for j, found in enumerate(strip_paths(topology, source, master.values["g"][:, i], targets, F)):
            column = i * (ranks - 1) + j
            for path in found:
                flows[path.arcs, column] += path.amount
                longest = max(longest, len(path.arcs))
            paths += len(found)
    return Answer(
        master.termination,
        values={"f": flows, "F": np.asarray(F)},
        bound=master.bound,
        bound_source=master.record["bound_source"],
        solver={**master.record["solver"], "algorithm": f"{master.record['method']}, then path stripping"},
        metrics={
            "paths": paths, "paths_per_commodity": paths / flows.shape[1], "longest_path": longest,
            "master_s": proven - begun, "decompose_s": time.monotonic() - proven,
        },
    )  # fmt: skip


METHOD = Method(
    name="flow-decomposition",
    title="Master LP, then path stripping",
    summary="per-commodity flows of the link MCF out of the master's source flows, without child LPs",
    applies=lambda formulation: formulation.name == "alltoall.link-mcf",
    parameters=(Parameter("master", str, default="auto", help="method for the master LP"),),
    run=run,
)

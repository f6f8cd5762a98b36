"""Method ``source-flows``: chunks in steps, from flows by source."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations import rounding
from opticoll.formulations.parameters import Parameter
from opticoll.solvers.methods.method import Answer, Beyond, Method

if TYPE_CHECKING:
    from opticoll.formulations.alltoall.sccl import ChunkSteps
    from opticoll.solvers.methods.method import Context


#: Most seconds for certified branch and bound on the flows by source.
BRANCHING_S = 60.0


def run_source_flows(context: Context) -> Answer:
    """SCCL's program as an integer flow per source, which is then split into chunks.

    The bound is that of the time-stepped LP by source, from its step prices, rounded up to whole rounds; if it is below
    the value and the program is small, ``certified-branching`` raises it.
    """
    from opticoll.formulations.alltoall.sccl import ChunkSteps
    from opticoll.solvers.auto import is_small
    from opticoll.solvers.schedules.timed_paths import chunk_values

    data: ChunkSteps = context.data
    name, flow = context.formulation.name, data.flow
    settings: dict[str, int | str] = {"steps": flow.steps, "chunks": data.chunks, "model": "sources"}
    by_source = {"steps": flow.steps, "aggregate": "source"}
    relaxed = context.solve(context.part("alltoall.timestep-mcf", settings=by_source))
    bound = None if relaxed.bound is None else float(np.ceil(rounding.down(data.chunks * relaxed.bound, 2)))
    result = context.solve(context.part(name, method=str(context.parameters["solver"]), settings=settings))
    source = "step prices of the time-stepped LP, whole rounds"
    size, found = result.record.size, result.objective
    unproven = result.verified and None not in (bound, found) and found > bound * (1 + context.task.tol)  # type: ignore[operator]
    if unproven and is_small(size.variables, size.nonzeros):
        branched = context.solve(context.part(name, BRANCHING_S, method="certified-branching", settings=settings))
        if branched.verified and branched.objective is not None and found is not None and branched.objective <= found:
            result = branched
        if branched.bound is not None and bound is not None and branched.bound > bound:
            bound, source = branched.bound, f"{branched.record.bound_source}, of the flows by source"
    values = None
    if result.verified and result.values is not None:
        values = {name: np.rint(array) for name, array in result.values.items()}
        if data.model == "chunks":
            values = chunk_values(data, ChunkSteps.prepare(context.instance, settings), values)
    return Answer(
        result.termination,
        values=values,
        bound=bound,
        bound_source=source,
        solver={**result.record["solver"], "name": "source-flows"},
        message=result.record["message"] or "",
    )


METHOD = Method(
    name="source-flows",
    title="Integer flows by source",
    summary="SCCL's program as an integer flow per source, split into chunks; bound of the time-stepped LP",
    serves=("alltoall.sccl",),
    # hypercube:3 4,035 variables in 2.1 s, GK(8,4) 3,138 in 0.03 s; GK(16,4), 3 steps, 43,203 in 5 s.
    takes_over=(Beyond("alltoall.sccl", 4_500, 12_000),),
    parameters=(Parameter("solver", str, default="highs", help="solver of the integer program"),),
    run=run_source_flows,
)

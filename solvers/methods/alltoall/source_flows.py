"""Method ``source-flows``: chunks in steps, from flows by source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.formulations import rounding
from opticoll.formulations.parameters import Parameter
from opticoll.solvers.methods.alltoall.decomposition import BRANCHING_S
from opticoll.solvers.methods.method import Answer, Beyond, Method
from opticoll.solvers.task import Task

if TYPE_CHECKING:
    from opticoll.formulations.alltoall.sccl import ChunkSteps
    from opticoll.solvers.methods.method import Context


def run_source_flows(context: Context) -> Answer:
    """SCCL's program as an integer flow per source, which is then split into chunks.

    The bound is that of the time-stepped LP by source, from its step prices, rounded up to whole rounds; if it is below
    the value and the program is small, ``certified-branching`` raises it.
    """
    from opticoll.formulations.alltoall.sccl import ChunkSteps
    from opticoll.formulations.alltoall.sccl_ways import chunk_values
    from opticoll.solvers.auto import is_small

    data: ChunkSteps = context.data
    task, flow = context.task, data.flow
    common: dict[str, Any] = {
        "memory_limit_gib": task.memory_limit_gib,
        "tol": task.tol,
        "seed": task.seed,
        "threads": task.threads,
    }
    settings: dict[str, int | str] = {"steps": flow.steps, "chunks": data.chunks, "model": "sources"}
    relaxed = context.solve(
        Task(
            "alltoall.timestep-mcf",
            task.instance,
            settings={"steps": flow.steps, "aggregate": "source"},
            time_limit_s=context.remaining(),
            **common,
        )
    )
    bound = None if relaxed.bound is None else float(np.ceil(rounding.down(data.chunks * relaxed.bound, 2)))
    result = context.solve(
        Task(
            context.formulation.name,
            task.instance,
            method=str(context.parameters["solver"]),
            settings=settings,
            time_limit_s=context.remaining(),
            **common,
        )
    )
    source = "step prices of the time-stepped LP, whole rounds"
    size, found = result.record.size, result.objective
    unproven = result.verified and None not in (bound, found) and found > bound * (1 + task.tol)  # type: ignore[operator]
    if unproven and is_small(size.variables, size.nonzeros):
        left = context.remaining()
        branched = context.solve(
            Task(
                context.formulation.name,
                task.instance,
                method="certified-branching",
                settings=settings,
                time_limit_s=BRANCHING_S if left is None else min(left, BRANCHING_S),
                **common,
            )
        )
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

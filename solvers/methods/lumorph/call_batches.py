"""Methods ``independent-sets`` and ``boundary-batches``: all-reduces in greedy independent sets (appendix C)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.lumorph.co_scheduling_solution import values_of as batch_values
from opticoll.formulations.lumorph.iteration_solution import values_of as stage_values
from opticoll.formulations.parameters import Parameter
from opticoll.solvers.methods.lumorph.collective_algorithms import independent_sets
from opticoll.solvers.methods.method import Answer, Beyond, Method

if TYPE_CHECKING:
    from opticoll.formulations.lumorph.co_scheduling import CallBatches
    from opticoll.formulations.lumorph.iteration import StagedCalls
    from opticoll.solvers.methods.method import Context


def _run_sets(context: Context) -> Answer:
    """Greedy maximal independent sets of the conflict graph, each a batch (appendix C)."""
    data: CallBatches = context.data
    batches = independent_sets([np.flatnonzero(row) for row in data.member], data.member.shape[1])
    return Answer.heuristic(batch_values(data, batches), "fewest conflicts first", {"batches": len(batches)})


INDEPENDENT_SETS = Method(
    name="independent-sets",
    title="Greedy maximal independent sets",
    summary="greedy maximal independent sets of the conflict graph, calls of fewest conflicts first (appendix C)",
    serves=("lumorph.co-scheduling",),
    # 32 GPUs, 128 random calls: 1,305 variables in 0.3 s.
    takes_over=(Beyond("lumorph.co-scheduling", 1_400, 9_000, proves=False),),
    run=_run_sets,
)


Batches = list[tuple[int, list[int]]]


def sets_of(data: StagedCalls, calls: list[int]) -> list[list[int]]:
    """Batches of calls, longest first: greedy independent sets, or one call each without batches."""
    if not data.batches:
        return [[call] for call in calls]
    groups = [np.flatnonzero(data.member[call]) for call in calls]
    batches = [[calls[k] for k in batch] for batch in independent_sets(groups, data.member.shape[1])]
    return sorted(batches, key=min)


def at_boundaries(data: StagedCalls, *, fitting: bool) -> Batches:
    """The batches of every boundary: all that is ready, or only what ends before the next transfers could be sent."""
    waiting: list[int] = []
    result: Batches = []
    last = data.stages - 1
    earliest = np.cumsum(data.computing) + np.cumsum(data.transfers) - data.transfers
    free = 0.0
    for stage in range(data.stages):
        if data.overlap or stage == last:
            new = data.ready == stage if data.overlap else np.ones(data.ready.size, dtype=bool)
            waiting = sorted([*waiting, *np.flatnonzero(new).tolist()])
        free = max(free, float(earliest[stage])) + float(data.transfers[stage])
        sending = np.flatnonzero(data.transfers[stage + 1 :])
        limit = float(earliest[stage + 1 + sending[0]]) if fitting and sending.size else np.inf
        kept: list[int] = []
        for batch in sets_of(data, waiting):
            time = float(data.time[min(batch)])
            if free + time <= limit:
                free += time
                result.append((stage, batch))
            else:
                kept += batch
        waiting = sorted(kept)
    return result


def _run_batches(context: Context) -> Answer:
    """Greedy maximal independent sets of the calls that are ready, at every boundary (appendix C).

    As in the paper, all of them run at the boundary at which they become ready (``hold=false``). With ``hold``, the
    default, batches that would outlast the computing of the next stage are also tried later, and the better is kept.
    """
    data: StagedCalls = context.data
    tries = {"all at their boundary": at_boundaries(data, fitting=False)}
    if context.parameters["hold"]:
        tries["held back where they would delay transfers"] = at_boundaries(data, fitting=True)
    found = {how: (stage_values(data, batches), len(batches)) for how, batches in tries.items()}
    how = min(found, key=lambda name: float(found[name][0]["z"]))
    values, count = found[how]
    return Answer.heuristic(values, how, {"batches": count})


BOUNDARY_BATCHES = Method(
    name="boundary-batches",
    title="Greedy independent sets at boundaries of layers",
    summary="greedy maximal independent sets of the calls that are ready at every boundary of layers (appendix C)",
    serves=("lumorph.iteration",),
    # 32 GPUs, 128 random calls, 8 stages: 4,326 variables in 6 s.
    takes_over=(Beyond("lumorph.iteration", 4_500, 30_000, proves=False),),
    parameters=(Parameter("hold", bool, True, "also hold batches back that would delay the next transfers"),),
    run=_run_batches,
)


METHODS = (
    INDEPENDENT_SETS,
    BOUNDARY_BATCHES,
)

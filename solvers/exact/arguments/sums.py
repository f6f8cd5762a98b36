"""Arguments for combined sums: what a vertex or a set must receive, and the transfers that a sum needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opticoll.solvers.exact.arguments.argument import Argument
from opticoll.solvers.exact.arguments.rounds import ends_of, rounds_problem, schedule_of

if TYPE_CHECKING:
    from opticoll.solvers.exact.arguments.argument import Parts, Values


def _sums_parts(data: Any, values: Values, _duals: object) -> Parts:
    from opticoll.formulations.lumorph.round_bounds import sum_bounds

    plan = data.rounds(values)
    result = schedule_of(plan)
    for move, adds in zip(result["transfers"], plan.transfer_adds.tolist(), strict=True):
        move.append(adds)
    every: dict[str, Any] = {"transfers": list(range(data.collective.chunks))}
    return result, [every, *ends_of(sum_bounds(data.topology, data.collective, data.limits))]


ARGUMENT = Argument("sums", ("lumorph.sum-rounds",), problem=rounds_problem, parts=_sums_parts)

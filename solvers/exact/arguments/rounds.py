"""Arguments for rounds of circuits: what a vertex or a set must receive or send."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opticoll.solvers.exact.arguments.argument import Argument, pairs_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opticoll.formulations.model import Bound
    from opticoll.formulations.rounds.round_schedule import RoundSchedule
    from opticoll.solvers.exact.arguments.argument import Parts, Values
    from opticoll.types import Json


def rounds_problem(data: Any) -> dict[str, Json]:
    """Problem of rounds of circuits."""
    limits, wanted = data.limits, data.collective
    return {
        "vertices": data.topology.n,
        "arcs": pairs_of(data.topology.tail, data.topology.head.tolist()),
        "wavelengths": limits.wavelengths,
        "waveguides": limits.waveguides if limits.fibres is None else limits.room(data.topology).tolist(),
        "ports": limits.ports,
        "load": limits.load,
        "pre": wanted.pre.tolist(),
        "post": wanted.post.tolist(),
    }


def _rounds_parts(data: Any, values: Values, _duals: object) -> Parts:
    from opticoll.formulations.lumorph.round_bounds import round_bounds

    arguments = ends_of(round_bounds(data.topology, data.collective, data.limits))
    return schedule_of(data.rounds(values)), arguments


def ends_of(bounds: Iterable[Bound]) -> list[dict[str, Json]]:
    """The arguments of those bounds that count what a vertex receives or sends, or what enters a set."""
    names = {
        "receptions": ("receives", "vertex"),
        "sole holder": ("sends", "vertex"),
        "sends": ("sends", "vertex"),
        "cut": ("enters", "vertices"),
    }
    return [
        {names[bound.name][0]: bound.detail[names[bound.name][1]]}
        for bound in bounds
        if bound.name in names and bound.detail
    ]


def schedule_of(plan: RoundSchedule) -> dict[str, list[list[Any]]]:
    """Circuits and transfers of a schedule, in the form of a certificate."""
    circuits = pairs_of(
        plan.circuit_round,
        plan.circuit_source.tolist(),
        plan.circuit_target.tolist(),
        plan.circuit_wavelength.tolist(),
        [plan.path(k) for k in range(plan.circuits)],
    )
    transfers = pairs_of(
        plan.transfer_round, plan.transfer_source.tolist(), plan.transfer_target.tolist(), plan.transfer_chunk.tolist()
    )
    return {"circuits": circuits, "transfers": transfers}


ARGUMENT = Argument(
    "rounds",
    ("lumorph.rounds",),
    problem=rounds_problem,
    parts=_rounds_parts,
    refuses=lambda data: data.version != "corrected" or data.collective.summing or data.fixed,
)

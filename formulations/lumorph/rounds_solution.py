"""Solutions of ``lumorph.rounds``: arrays, schedules of circuits, and what they say."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.lumorph import published_programs, scheduled_rounds
from opticoll.formulations.lumorph.scheduled_rounds import circuits_of
from opticoll.formulations.rounds.round_schedule import chained, direct, opposite_arcs, violations
from opticoll.formulations.rounds.segments import select
from opticoll.formulations.variables import Array

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any

    from numpy.typing import NDArray

    from opticoll.formulations.flows.path_sets import PathSet
    from opticoll.formulations.lumorph.rounds import RoundModel
    from opticoll.formulations.lumorph.scheduled_rounds import Circuit
    from opticoll.formulations.rounds.collectives import Phase
    from opticoll.formulations.rounds.round_schedule import RoundSchedule
    from opticoll.instances.topology import F64, I64
    from opticoll.types import Json


def composed(data: RoundModel, schedules: list[RoundSchedule]) -> RoundSchedule:
    """Chain the schedules of all phases, each on its :meth:`arena`, and reverse those that run backwards."""
    forward = []
    for phase, schedule in zip(data.phases, schedules, strict=True):
        arcs = opposite_arcs(data.topology, data.arena(phase)) if phase.backwards else None
        forward.append(schedule if arcs is None else schedule.backwards(arcs))
    return chained(forward)


def arrays(data: RoundModel, names: Collection[str]) -> dict[str, Array]:
    """Arrays of a schedule, of the program, or of both; as printed and coded, C and R are required."""
    if data.version == "corrected":
        return scheduled_rounds.arrays(data, names)
    result = scheduled_rounds.arrays(data, {*names, "C"})
    del result["H"]
    return {**result, "R": replace(result["R"], required=True), "z": Array(required=False)}


def repair(data: RoundModel, values: Mapping[str, NDArray[Any]]) -> dict[str, F64] | None:
    """Round C and R, recompute H, and add the schedule; None if C or R is missing or C invalid."""
    whole = scheduled_rounds.rounded(data, values)
    if whole is None or "R" not in values:
        return None
    C, R = whole["C"], np.rint(np.asarray(values["R"], dtype=float))
    if data.version != "corrected":
        z = published_programs.objective(data.programs[0], data.rmin, R)
        return data._unfold({"C": C, "R": R, "z": np.array(z)})
    held, sent = data.tables["received"], data.tables["transfer"]
    sent = sent.given(when=sent["r"]).known_by("p c d when")
    made = held.of(sent, p="p", where=lambda delivery, one: one["when"] <= delivery["r"])
    return data._unfold({"C": C, "H": made @ C, "R": R})


def metrics(data: RoundModel, value: float | None) -> dict[str, Json]:
    """Rounds, and the scope of the proof (see the module docstring)."""
    if value is not None and data.version == "coded":
        value += 1.0  # the first round is round 0
    return scheduled_rounds.metrics(data, value)


def replayed(data: RoundModel, schedule: RoundSchedule) -> dict[str, float]:
    """Violations of an external schedule."""
    return scheduled_rounds.replay(replace(data, version="corrected"), schedule)


def schedule_of_transfers(data: RoundModel, values: Mapping[str, NDArray[Any]]) -> RoundSchedule:
    """The schedule that C encodes."""
    ends, C = np.cumsum([len(program.columns) for program in data.programs]), np.asarray(values["C"], dtype=float)
    schedules = []
    for program, taken in zip(data.programs, np.split(C > 0.5, ends[:-1]), strict=True):
        r, s, d, c, w, path = (program.columns[name][taken] for name in ("r", "s", "d", "c", "w", "path"))
        schedules.append(direct(r, s, d, c, w, *select(program.routes.start, program.routes.arcs, path)))
    return data.composed(schedules)


def phase_violations(data: RoundModel, schedule: RoundSchedule) -> float:
    """Number of violations if the rounds up to the last one that adds are a reduction, and the others copies of it."""
    first, last = data.phases
    sums = int(schedule.transfer_round[schedule.transfer_adds].max(initial=-1)) + 1
    before = schedule.taken(schedule.circuit_round < sums, schedule.transfer_round < sums)
    after = schedule.taken(schedule.circuit_round >= sums, schedule.transfer_round >= sums).moved(-sums)
    reduced = replace(first.copying, pre=first.copying.post, post=first.copying.pre, summing=True)
    return sum(
        sum(violations(data.topology, wanted, data.limits, part).values())
        for wanted, part in ((reduced, before), (last.copying, after))
    )


def candidate_circuits(data: RoundModel) -> set[Circuit]:
    """The circuits over the candidate routes of all phases, on their wavelengths if these are fixed."""
    allowed: set[Circuit] = set()
    for phase in data.phases:
        reverse = opposite_arcs(data.topology, data.arena(phase)) if phase.backwards else None
        routes, wave = candidate_routes(data, phase)
        allowed |= circuits_of(routes, wave, reverse)
    return allowed


def candidate_routes(data: RoundModel, phase: Phase) -> tuple[PathSet, I64 | None]:
    """The candidate routes of a phase, and the wavelength of each, ``(P,)``, if these are fixed."""
    program = data.program(phase, 1)
    routes = program.routes
    if not data.fixed:
        return routes, None
    index = np.arange(routes.paths) - routes.first[routes.pair]
    return routes, program.wave(routes.sources[routes.pair], routes.targets[routes.pair], index)


def stated_circuits(data: RoundModel) -> set[Circuit] | None:
    """The circuits over the candidate routes, if these are stated; with fixed wavelengths ``wave`` counts them."""
    return candidate_circuits(data) if data.routes_stated and not data.fixed else None


def corrected_only(data: RoundModel) -> str | None:
    """Reason why special methods do not apply: they solve only the corrected program."""
    return None if data.version == "corrected" else f"solves program=corrected only, not program={data.version}"


def program_only(data: RoundModel) -> str | None:
    """Reason why methods do not apply that solve only the corrected program, and choose their own routes."""
    if (reason := corrected_only(data)) is not None:
        return reason
    if data.routes_stated and not data.fixed:
        return "chooses its own routes, not among the stated ones (paths, routes)"
    return None

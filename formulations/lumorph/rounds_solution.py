"""Solutions of ``lumorph.rounds``: arrays, schedules of circuits, and what they say."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.lumorph import published_programs
from opticoll.formulations.rounds.round_schedule import (
    chained,
    direct,
    from_values,
    opposite_arcs,
    schedule_arrays,
    stated,
    violations,
)
from opticoll.formulations.rounds.segments import select
from opticoll.formulations.variables import Array, Axis, round_links

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any

    from numpy.typing import NDArray

    from opticoll.formulations.lumorph.rounds import RoundModel
    from opticoll.formulations.lumorph.route_sets import RouteSet
    from opticoll.formulations.lumorph.transfer_sets import RoundProgram
    from opticoll.formulations.lumorph.unphased_rounds import Unphased
    from opticoll.formulations.rounds.round_schedule import RoundSchedule
    from opticoll.formulations.variables import Links
    from opticoll.instances.topology import F64, I64, Mask
    from opticoll.types import Json


#: Source, target, wavelength and arcs of a circuit.
Circuit = tuple[int, int, int, tuple[int, ...]]


def encoding_residuals(
    encoded: RoundSchedule | None, values: Mapping[str, F64], chosen: tuple[str, ...]
) -> dict[str, float]:
    """``columns``: 0 if the chosen arrays encode the schedule in the values; ``binary``: how far they are from 0, 1."""
    same = encoded is not None and all(
        np.array_equal(array, np.asarray(values.get(name, array))) for name, array in encoded.values().items()
    )
    if not same:
        return {"columns": np.inf, "binary": np.inf}
    given = np.concatenate([np.asarray(values[name], dtype=float).ravel() for name in chosen])
    return {"columns": 0.0, "binary": float(np.minimum(np.abs(given), np.abs(given - 1.0)).max(initial=0.0))}


def composed(data: RoundModel, schedules: list[RoundSchedule]) -> RoundSchedule:
    """Chain the schedules of all phases, each on its :meth:`arena`, and reverse those that run backwards."""
    forward = []
    for phase, schedule in zip(data.phases, schedules, strict=True):
        arcs = opposite_arcs(data.topology, data.arena(phase)) if phase.backwards else None
        forward.append(schedule if arcs is None else schedule.backwards(arcs))
    return chained(forward)


def with_schedule(data: RoundModel, values: Mapping[str, NDArray[Any]]) -> dict[str, F64]:
    """Add the schedule's named arrays to C, H and R if C is valid."""
    schedule = schedule_of_transfers(data, np.asarray(values["C"], dtype=float))
    return {**values, **({} if schedule is None else schedule.values())}


def rounds_arrays(data: RoundModel, names: Collection[str]) -> dict[str, Array]:
    """Arrays of a schedule, of the program, or of both; as printed and coded, C and R are required."""
    result: dict[str, Array] = {}
    if data.version != "corrected":
        program = data.programs[0]
        result = {
            "C": Array((Axis("transfer", len(program.columns)),)),
            "R": Array((Axis("round", program.rounds),)),
            "z": Array(required=False),
        }
        if "transfer_round" in names:
            result |= schedule_arrays(data.topology, data.collective.chunks)
        return result
    if "transfer_round" in names or "C" not in names:
        result |= schedule_arrays(data.topology, data.collective.chunks)
    if not {"C", "H", "R"}.isdisjoint(names):
        programs = data.programs
        later = sum(len(one.collective.deliveries) * (one.rounds - 1) for one in programs if one.forwards)
        result["C"] = Array((Axis("transfer", sum(len(one.columns) for one in programs)),))
        result["H"] = Array((Axis("delivery by round", later),), required=False)
        result["R"] = Array((Axis("round", sum(one.rounds for one in programs)),), required=False)
    return result


def rounded_transfers(data: RoundModel, values: Mapping[str, NDArray[Any]]) -> dict[str, F64] | None:
    """Round C and R, recompute H, and add the schedule; None if C is missing or invalid."""
    if "C" not in values or "R" not in values or not np.isfinite(values["C"]).all():
        return None
    C = np.rint(np.asarray(values["C"], dtype=float))
    if C.shape != (sum(len(program.columns) for program in data.programs),):
        return None
    R = np.rint(np.asarray(values["R"], dtype=float))
    if data.version != "corrected":
        z = published_programs.objective(data.programs[0], data.rmin, R)
        return data.unfold({"C": C, "R": R, "z": np.array(z)})
    return data.unfold({"C": C, "H": made_by(data, C), "R": R})


def rounds_metrics(data: RoundModel, value: float | None) -> dict[str, Json]:
    """Rounds, size of the collective, limits, and the scope of the proof (see the module docstring)."""
    if value is not None and data.version != "corrected":
        value += 1.0 - (data.version == "printed")  # as coded, the first round is round 0
    proven = value is not None and bool(value <= max(b.value for b in data.any_bounds))
    return {
        **({} if data.version == "corrected" else {"program": data.version}),
        "rounds": None if value is None or not np.isfinite(value) else int(value),
        "collective": data.collective.name,
        "chunks": data.collective.chunks,
        "deliveries": sum(len(phase.copying.deliveries) for phase in data.phases),
        "phases": len(data.phases),
        **({"composition": data.composition} if len(data.phases) > 1 else {}),
        "lasers": data.limits.wavelengths,
        "waveguides": data.limits.waveguides,
        **({} if data.limits.fibres is None else {"fibres": data.limits.fibres.number}),
        "unrestricted_proven": None if value is None else proven,
        "conditional_on": None if proven or data.free else data.restriction,
    }


def schedule_in(data: RoundModel, values: Mapping[str, NDArray[Any]]) -> RoundSchedule:
    """Return the schedule; an error if the values contain none."""
    return stated(schedule_of(data, values), data.name)


def rounds_links(data: RoundModel | Unphased, values: Mapping[str, F64]) -> Links:
    """Load of every link."""
    per_round = data.limits.wavelengths * data.limits.room(data.topology)
    return round_links(data.topology, data.rounds(values), per_round)


def replayed(data: RoundModel, schedule: RoundSchedule) -> dict[str, float]:
    """Violations of an external schedule."""
    return replace(data, version="corrected").residuals(schedule.values())


def schedule_of(data: RoundModel, values: Mapping[str, NDArray[Any]]) -> RoundSchedule | None:
    """Read the schedule in the values, from its named arrays or else from C; None if neither is valid."""
    if data.version == "corrected" and ("transfer_round" in values or "C" not in values):
        return from_values(values)
    return schedule_of_transfers(data, np.asarray(values["C"], dtype=float))


def schedule_of_transfers(data: RoundModel, C: F64) -> RoundSchedule | None:
    """The schedule that C encodes; None if C has the wrong shape."""
    sizes = [len(program.columns) for program in data.programs]
    if C.shape != (sum(sizes),) or not np.isfinite(C).all():
        return None
    parts = np.split(C > 0.5, np.cumsum(sizes)[:-1])
    return data.composed([schedule_of_phase(program, part) for program, part in zip(data.programs, parts, strict=True)])


def schedule_of_phase(program: RoundProgram, taken: Mask) -> RoundSchedule:
    """The schedule of one phase by the transfers that are taken, ``(N,)``."""
    indices = np.flatnonzero(taken)
    r, s, d, c, w, path = (program.columns[name][indices] for name in ("r", "s", "d", "c", "w", "path"))
    return direct(r, s, d, c, w, *select(program.routes.start, program.routes.arcs, path))


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


def off_candidates(data: RoundModel, schedule: RoundSchedule) -> float:
    """Number of circuits that are not on a candidate route of some phase, or not on its wavelength if that is fixed."""
    allowed: set[Circuit] = set()
    for phase in data.phases:
        reverse = opposite_arcs(data.topology, data.arena(phase)) if phase.backwards else None
        allowed |= candidate_circuits(data.program_of_one(phase), reverse)
    return circuits_off(allowed, schedule, fixed=data.fixed)


def candidate_circuits(program: RoundProgram, reverse: I64 | None = None) -> set[Circuit]:
    """The circuits over the candidate routes of a program, on their wavelengths if these are fixed."""
    routes, wave = program.routes, None
    if program.fixed:
        index = np.arange(routes.paths) - routes.first[routes.pair]
        wave = program.wave(routes.source[routes.pair], routes.target[routes.pair], index)
    return circuits_of_routes(routes, wave, reverse)


def circuits_of_routes(routes: RouteSet, wave: I64 | None = None, reverse: I64 | None = None) -> set[Circuit]:
    """Source, target, wavelength (-1 if not given) and arcs of every route.

    ``reverse`` are the opposite arcs, ``(m,)``, if the program runs backwards.
    """
    waves = [-1] * routes.paths if wave is None else wave.tolist()
    ends = routes.source[routes.pair].tolist(), routes.target[routes.pair].tolist()
    listed = [(s, d, w, routes.path(p)) for p, (s, d, w) in enumerate(zip(*ends, waves, strict=True))]
    if reverse is None:
        return {(s, d, w, tuple(path)) for s, d, w, path in listed}
    return {(d, s, w, tuple(reverse[path[::-1]].tolist())) for s, d, w, path in listed}


def circuits_off(allowed: set[Circuit], schedule: RoundSchedule, *, fixed: bool) -> float:
    """Number of circuits that are not among these; their wavelengths count only if they are ``fixed``."""
    wave = schedule.circuit_wavelength if fixed else np.full(schedule.circuits, -1)
    ends = zip(schedule.circuit_source.tolist(), schedule.circuit_target.tolist(), wave.tolist(), strict=True)
    return float(sum((s, d, w, tuple(schedule.path(k))) not in allowed for k, (s, d, w) in enumerate(ends)))


def made_by(data: RoundModel, C: F64) -> F64:
    """H of a given C: whether every delivery is made by each round."""
    parts, first = [], 0
    for program in data.programs:
        columns, T = program.columns, program.rounds
        own = C[first : first + len(columns)]
        first += own.size
        if program.forwards:
            wanted = program.collective.key(program.collective.deliveries)
            delivery = np.searchsorted(wanted, columns["c"] * program.collective.n + columns["d"])
            made = np.zeros((wanted.size, T))
            np.add.at(made, (delivery, columns["r"]), own)
            parts.append(np.cumsum(made, axis=1)[:, :-1].ravel())
    return np.concatenate(parts) if parts else np.zeros(0)


def restriction(data: RoundModel) -> str:
    """The candidate routes, in words that follow "optimal"."""
    return f"over the candidate routes ({data.paths} {data.routes_kind} per pair)"


def program_only(data: RoundModel) -> str | None:
    """Reason why special methods do not apply: they solve only the corrected program, and choose their own routes."""
    if data.version != "corrected":
        return f"solves program=corrected only, not program={data.version}"
    if data.routes_stated and not data.fixed:
        return "chooses its own routes, not among the stated ones (paths, routes)"
    return None

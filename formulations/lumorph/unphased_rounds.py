"""What the programs of rounds without phases share: parameters, analytic bounds, and the replay of a schedule.

``plain`` is the same collective as :mod:`opticoll.formulations.lumorph.rounds` has it; ``rmax`` and ``use_bounds`` are
the parameters. ``chosen`` are the names of the two arrays that determine a schedule, ``relays`` is whether tiles
forward what they receive, ``unlisted`` a method that needs no list of variables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from opticoll.formulations.lumorph.rounds import PIECES, ROUTES, RoundModel
from opticoll.formulations.lumorph.rounds_solution import circuits_of_routes, circuits_off, encoding_residuals
from opticoll.formulations.model import Bound, NotApplicable, Parameter
from opticoll.formulations.rounds.round_schedule import RoundSchedule, from_values, stated, violations

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opticoll.formulations.lumorph.forwarded_rounds import ForwardedRounds
    from opticoll.formulations.lumorph.sum_rounds import SumModel
    from opticoll.formulations.rounds.collectives import Collective
    from opticoll.formulations.rounds.round_schedule import Limits
    from opticoll.instances.topology import F64, Topology
    from opticoll.types import Json, Settings

    Unphased: TypeAlias = SumModel | ForwardedRounds
    Values = Mapping[str, F64]

#: Maximum number of variables that a build lists.
MOST_VARIABLES = 3_000_000
#: Parameters after those of the collective.
PARAMETERS = (
    PIECES,
    Parameter("paths", int, 0, "routes per pair, K; 0 for any routes, 2 in the program (algorithm-2: 1)"),
    ROUTES,
    Parameter("lasers", int, 0, "lasers per tile; 0 for the instance's", least=0),
    Parameter("waveguides", int, 0, "waveguides per arc; 0 for the instance's", least=0),
    Parameter("rmax", int, 0, "maximum number of rounds; 0 for a sufficient number", least=0),
    Parameter("bounds", bool, True, "use analytic bounds; false leaves the proof to the program"),
)


def plain_rounds(kind: type[Unphased], instance: object, parameters: Settings) -> tuple[RoundModel, int, bool]:
    """``plain``, ``rmax`` and ``use_bounds`` from the parameters.

    Raises
    ------
    NotApplicable
        As for :func:`opticoll.formulations.lumorph.rounds.prepare`.
    """
    given = dict(parameters)
    rmax, use_bounds = int(given.pop("rmax")), bool(given.pop("bounds"))
    return RoundModel.prepare(instance, given), rmax, use_bounds


def topology(data: Unphased) -> Topology:
    """The tiles or nodes."""
    return data.plain.topology


def collective(data: Unphased) -> Collective:
    """The collective."""
    return data.plain.collective


def limits(data: Unphased) -> Limits:
    """Limits of a round."""
    return data.plain.limits


def least(data: Unphased) -> int:
    """Best analytic bound [rounds]."""
    return int(max((bound.value for bound in data.known_bounds), default=0.0))


def floor(data: Unphased) -> int:
    """R_min."""
    return min(data.least, data.horizon) if data.use_bounds else 0


def horizon(data: Unphased) -> int:
    """T: ``rmax``, or a sufficient number of rounds.

    Raises
    ------
    NotApplicable
        For a program that is too large to list.
    """
    size = data.estimate()["variables"]  # before routes are listed
    if size > MOST_VARIABLES:
        msg = (
            f"{data.name}: {size:,} variables on {data.topology.spec} are too many to list; lower rmax, paths or "
            f"lasers, or use method {data.unlisted}"
        )
        raise NotApplicable(msg)
    return data.rmax or data.sufficient()


def schedule(data: Unphased, values: Values) -> RoundSchedule | None:
    """The schedule in the values, from its named arrays or else from the chosen ones; None if neither is valid."""
    if "transfer_round" in values or any(name not in values for name in data.chosen):
        return from_values(values)
    return data.of_program(values)


def unfold(data: Unphased, values: Values) -> dict[str, F64]:
    """Add the schedule's named arrays to the chosen ones if these are valid."""
    encoded = data.of_program(values)
    return {**values, **({} if encoded is None else encoded.values())}


def residuals(data: Unphased, values: Values) -> dict[str, float]:
    """Violations in a replay of the schedule, by block (:mod:`opticoll.formulations.rounds.round_schedule`).

    ``rmax`` counts rounds beyond it, ``candidates`` circuits that are not on a stated route. If the chosen arrays are
    given, ``binary`` is their distance from 0 and 1, and ``columns`` is 0 if they encode the same schedule.
    """
    given = schedule(data, values)
    result = violations(data.topology, data.collective, data.limits, given, relays=data.relays)
    if data.rmax:
        result["rmax"] = np.inf if given is None else float(max(given.rounds - data.rmax, 0))
    if data.plain.routes_stated:
        result["candidates"] = (
            np.inf if given is None else circuits_off(circuits_of_routes(data.routes), given, fixed=False)
        )
    if all(name in values for name in data.chosen):
        result |= encoding_residuals(data.of_program(values), values, data.chosen)
    return result


def objective(data: Unphased, values: Values) -> float:
    """Rounds of the schedule, infinite if the values contain none."""
    given = schedule(data, values)
    return np.inf if given is None else float(given.rounds)


def rounds(data: Unphased, values: Values) -> RoundSchedule:
    """Return the schedule; an error if the values contain none."""
    return stated(schedule(data, values), data.name)


def replay(data: Unphased, schedule: RoundSchedule) -> dict[str, float]:
    """Violations of an external schedule."""
    return data.residuals(schedule.values())


def bounds(data: Unphased) -> list[Bound]:
    """Analytic bounds for any routes; none with ``bounds=false``."""
    return data.known_bounds if data.use_bounds else []


def refute(data: Unphased) -> Bound | None:
    """A bound that excludes every schedule within ``rmax`` rounds, if there is one."""
    if not data.rmax or not data.use_bounds or data.least <= data.rmax:
        return None
    best = max(data.known_bounds, key=lambda bound: bound.value)
    reason = f"rmax={data.rmax}, but {best.name} needs {best.value:g} rounds: {best.reason}"
    return Bound(best.name, best.value, reason, best.paper)


def metrics(data: Unphased, value: float | None) -> dict[str, Json]:
    """Rounds, size of the collective and limits."""
    proven = value is not None and bool(value <= data.least)
    return {
        "rounds": None if value is None or not np.isfinite(value) else int(value),
        "collective": data.collective.name,
        "chunks": data.collective.chunks,
        "lasers": data.limits.wavelengths,
        "waveguides": data.limits.waveguides,
        **({} if data.limits.fibres is None else {"fibres": data.limits.fibres.number}),
        "unrestricted_proven": None if value is None else proven,
        "conditional_on": None if proven else data.plain.restriction,
    }

"""What the programs of rounds share: parameters, the check of a solution by replay, and what a schedule says.

A solution is given as the named arrays of a schedule (:mod:`opticoll.formulations.rounds.round_schedule`), or as the
arrays ``chosen`` of the program, which determine one (``of_program``). ``plain`` is the collective as
:mod:`opticoll.formulations.lumorph.rounds` has it, ``analytic_bounds`` are the bounds on rounds for any routes.

The functions take the formulation, ``problem``, and are its methods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from opticoll.errors import NotApplicable, refuse
from opticoll.formulations.lumorph.route_sets import candidate_routes
from opticoll.formulations.lumorph.transfer_sets import MOST_COLUMNS
from opticoll.formulations.model import Bound
from opticoll.formulations.parameters import Parameter
from opticoll.formulations.rounds.round_schedule import RoundSchedule, from_values, schedule_arrays, violations
from opticoll.formulations.variables import Array, Axis, round_links

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from opticoll.formulations.flows.path_sets import PathSet
    from opticoll.formulations.lumorph.forwarded_rounds import ForwardedRounds
    from opticoll.formulations.lumorph.rounds import RoundModel
    from opticoll.formulations.lumorph.sum_rounds import SumModel
    from opticoll.formulations.variables import Links
    from opticoll.instances.topology import F64, I64, Topology
    from opticoll.types import Json

    Unphased: TypeAlias = SumModel | ForwardedRounds
    RoundProblem: TypeAlias = RoundModel | Unphased

#: Source, target, wavelength (-1: any) and arcs of a circuit.
Circuit = tuple[int, int, int, tuple[int, ...]]

PIECES = Parameter("pieces", int, 1, "chunks per shard")
ROUTES = Parameter(
    "routes",
    str,
    "straight",
    "route set: straight first, Yen's shortest, or one of least overlap per pair",
    ("straight", "yen", "algorithm-2"),
)
#: Parameters of a program without phases, after those of the collective.
UNPHASED = (
    PIECES,
    Parameter("paths", int, 0, "routes per pair, K; 0 for any routes, 2 in the program (algorithm-2: 1)"),
    ROUTES,
    Parameter("lasers", int, 0, "lasers per tile; 0 for the instance's", least=0),
    Parameter("waveguides", int, 0, "waveguides per arc; 0 for the instance's", least=0),
    Parameter("rmax", int, 0, "maximum number of rounds; 0 for a sufficient number", least=0),
    Parameter("bounds", bool, True, "use analytic bounds; false leaves the proof to the program"),
)


# The rounds of a program without phases ----------------------------------------------------------------------------


def horizon(problem: Unphased) -> int:
    """T: ``rmax``, or a sufficient number of rounds.

    Raises
    ------
    NotApplicable
        For a program with more variables than can be listed.
    """
    size = problem._estimate()
    if size is not None and size["variables"] > MOST_COLUMNS:
        listed = f"{size['variables']:,} variables on {problem.topology.spec}"
        refuse(problem.name, f"{listed} are too many to list; lower rmax or paths", NotApplicable)
    return problem.rmax or problem.sufficient()


def first_rounds(problem: Unphased) -> int:
    """R_min, the rounds that are used."""
    return min(problem.fewest, problem.horizon) if problem.use_bounds else 0


def most_rounds(problem: Unphased) -> int:
    """The largest number of rounds that ``rmax`` allows, 0 for any."""
    return problem.rmax


def all_routes(problem: ForwardedRounds) -> PathSet:
    """P_sd of all ordered pairs of vertices, ascending."""
    source, target = np.nonzero(~np.eye(problem.topology.n, dtype=bool))
    return candidate_routes(problem.topology, source, target, problem.plain.routes_kind, problem.plain.paths)


def stated_circuits(problem: Unphased) -> set[Circuit] | None:
    """The circuits over the routes that are part of the problem; None for all circuits."""
    return circuits_of(problem.routes) if problem.plain.routes_stated else None


# The checker --------------------------------------------------------------------------------------------------------


def schedule_in(problem: RoundProblem, values: Mapping[str, NDArray[Any]]) -> RoundSchedule | None:
    """The schedule in the values, from its named arrays or else from the chosen ones; None if neither is valid."""
    if "transfer_round" in values or any(name not in values for name in problem.chosen):
        return from_values(values)
    return problem.of_program(values)


def replay_residuals(
    problem: RoundProblem, values: Mapping[str, NDArray[Any]], *, relays: bool = False
) -> dict[str, float]:
    """Violations in a replay of the schedule, by block (:mod:`opticoll.formulations.rounds.round_schedule`).

    ``rmax`` counts rounds beyond it, ``candidates`` circuits that are not on a stated route. If the chosen arrays
    are given, ``binary`` is their distance from 0 and 1, and ``columns`` is 0 if they encode the same schedule. With
    ``relays``, vertices may forward what they do not require.
    """
    schedule = schedule_in(problem, values)
    result = violations(problem.topology, problem.collective, problem.limits, schedule, relays=relays)
    if problem.most_rounds:
        result["rmax"] = np.inf if schedule is None else float(max(schedule.rounds - problem.most_rounds, 0))
    if (stated := problem.stated_circuits) is not None:
        result["candidates"] = np.inf if schedule is None else circuits_off(stated, schedule)
    if all(name in values for name in problem.chosen):
        encoded = problem.of_program(values)
        result["columns"] = 0.0 if encoded is not None and _encodes(encoded, values) else np.inf
        given = np.concatenate([np.asarray(values[name], dtype=float).ravel() for name in problem.chosen])
        off = np.minimum(np.abs(given), np.abs(given - 1.0)).max(initial=0.0)
        result["binary"] = float(off) if result["columns"] == 0 else np.inf
    return result


def used_rounds(problem: RoundProblem, values: Mapping[str, NDArray[Any]]) -> float:
    """Rounds of the schedule, infinite if the values contain none."""
    schedule = schedule_in(problem, values)
    return np.inf if schedule is None else float(schedule.rounds)


# What a solution says -----------------------------------------------------------------------------------------------


def rounds(problem: RoundProblem, values: Mapping[str, NDArray[Any]]) -> RoundSchedule:
    """The schedule.

    Raises
    ------
    NotApplicable
        If the values contain none.
    """
    schedule = schedule_in(problem, values)
    if schedule is None:
        refuse(problem.name, "the values contain no schedule", NotApplicable)
    return schedule


def replay(problem: RoundProblem, schedule: RoundSchedule) -> dict[str, float]:
    """Violations of an external schedule."""
    return problem.residuals(schedule.values())


def unfold(problem: RoundProblem, values: Mapping[str, NDArray[Any]]) -> dict[str, F64]:
    """Add the schedule's named arrays to the chosen ones if these are given and valid."""
    encoded = problem.of_program(values) if all(name in values for name in problem.chosen) else None
    return {**values, **({} if encoded is None else encoded.values())}


def rounded(problem: RoundProblem, values: Mapping[str, NDArray[Any]]) -> dict[str, F64] | None:
    """The chosen arrays, rounded; None if one is missing."""
    if any(name not in values for name in problem.chosen):
        return None
    return {name: np.rint(np.asarray(values[name], dtype=float)) for name in problem.chosen}


def repair(problem: RoundProblem, values: Mapping[str, NDArray[Any]]) -> dict[str, F64] | None:
    """Round the chosen arrays, and add the schedule; None if one is missing."""
    whole = rounded(problem, values)
    return None if whole is None else unfold(problem, whole)


def arrays(problem: RoundProblem, names: Collection[str]) -> dict[str, Array]:
    """Arrays of a schedule, of the program, or of both."""
    result: dict[str, Array] = {}
    if "transfer_round" in names or any(name not in names for name in problem.chosen):
        result |= schedule_arrays(problem.topology, problem.collective.chunks)
    if not problem.variables.keys().isdisjoint(names):
        axes = {name: Axis(along[0], _size(problem, name)) for name, along in problem.variables.items() if along}
        result |= {name: Array((axis,), required=name in problem.chosen) for name, axis in axes.items()}
    return result


def _size(problem: RoundProblem, name: str) -> int:
    """Number of variables of a name."""
    return len(problem.sets()[problem.variables[name][0]])


def links(problem: RoundProblem, values: Mapping[str, F64]) -> Links:
    """Load of every link."""
    per_round = problem.limits.wavelengths * problem.limits.room(problem.topology)
    return round_links(problem.topology, rounds(problem, values), per_round)


def metrics(problem: RoundProblem, value: float | None) -> dict[str, Json]:
    """Rounds, and whether the value is proven for any routes."""
    proven = value is not None and bool(value <= problem.fewest)
    per_pair = f"{problem.plain.paths} {problem.plain.routes_kind}"
    return {
        "rounds": None if value is None or not np.isfinite(value) else int(value),
        "unrestricted_proven": None if value is None else proven,
        "conditional_on": None if proven else f"over the candidate routes ({per_pair} per pair)",
    }


# Bounds -------------------------------------------------------------------------------------------------------------


def best_bound(problem: RoundProblem) -> int:
    """Best analytic bound [rounds]."""
    return int(max((bound.value for bound in problem.analytic_bounds), default=0.0))


def bounds(problem: RoundProblem) -> list[Bound]:
    """Analytic bounds for any routes; none with ``bounds=false``."""
    return problem.analytic_bounds if problem.use_bounds else []


def refute(problem: RoundProblem) -> Bound | None:
    """A bound that excludes every schedule within ``rmax`` rounds, if there is one."""
    return beyond(problem.most_rounds, bounds(problem))


def beyond(rmax: int, bounds: Sequence[Bound]) -> Bound | None:
    """The best of these bounds, if it excludes every schedule within ``rmax`` rounds; 0 for no limit."""
    best = max(bounds, key=lambda bound: bound.value, default=None)
    if not rmax or best is None or best.value <= rmax:
        return None
    reason = f"rmax={rmax}, but {best.name} needs {best.value:g} rounds: {best.reason}"
    return Bound(best.name, best.value, reason, best.paper)


def farthest(topology: Topology) -> float:
    """Largest finite distance between two vertices [arcs], at least 1."""
    hops = topology.hops
    return float(hops[np.isfinite(hops)].max(initial=1.0))


def _encodes(schedule: RoundSchedule, values: Mapping[str, NDArray[Any]]) -> bool:
    """Whether the values, where they have its arrays, state this schedule."""
    arrays = schedule.values()
    return all(np.array_equal(array, np.asarray(values.get(name, array))) for name, array in arrays.items())


def circuits_of(routes: PathSet, wave: I64 | None = None, reverse: I64 | None = None) -> set[Circuit]:
    """A circuit on every route.

    ``reverse`` are the opposite arcs, ``(m,)``, if the program runs backwards.
    """
    waves = [-1] * routes.paths if wave is None else wave.tolist()
    ends = routes.sources[routes.pair].tolist(), routes.targets[routes.pair].tolist()
    listed = [(s, d, w, routes.path(p)) for p, (s, d, w) in enumerate(zip(*ends, waves, strict=True))]
    if reverse is None:
        return {(s, d, w, tuple(path)) for s, d, w, path in listed}
    return {(d, s, w, tuple(reverse[path[::-1]].tolist())) for s, d, w, path in listed}


def circuits_off(allowed: set[Circuit], schedule: RoundSchedule, *, fixed: bool = False) -> float:
    """Number of circuits that are not among these; their wavelengths count only if they are ``fixed``."""
    wave = schedule.circuit_wavelength if fixed else np.full(schedule.circuits, -1)
    ends = zip(schedule.circuit_source.tolist(), schedule.circuit_target.tolist(), wave.tolist(), strict=True)
    return float(sum((s, d, w, tuple(schedule.path(k))) not in allowed for k, (s, d, w) in enumerate(ends)))

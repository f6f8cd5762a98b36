"""What follows from the axes that a formulation declares for its variables: labels, loads, routes.

``variables = {"f": ("arc", "source", "hop"), "F": ()}`` says what each dimension of a variable counts. Known are

    arc       links, in the order of ``topology.tail``
    vertex    vertices
    source    ranks as senders, in ascending order; ``rank`` and ``target`` likewise
    pair      ordered pairs of different ranks, row by row

Any other name is an axis of the formulation's own: its method ``sets`` returns the members, by default 0, 1, ...

A concurrent flow (``concurrent = "F"``) is maximised, and no flow is negative: sense, units, meaning, objective and the
check of signs follow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import BadInput, ModelError, refuse
from opticoll.formulations.variables import (
    BANDWIDTHS,
    SHARDS,
    Array,
    Axis,
    Links,
    SolutionSize,
    arc_axis,
    pair_labels,
    pair_names,
    rank_pairs,
    vertex_axis,
)
from opticoll.instances.demands import UNIFORM, traffic_of, uniform
from opticoll.instances.topology import Topology
from opticoll.plugin_faults import called

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable

    from opticoll.instances.topology import F64

    Values = Mapping[str, F64]

ARC = "arc"
RANKS = ("rank", "source", "target")
#: Share of a capacity by which rates may exceed it, as solutions of solvers do.
FULL = 1e-4
KNOWN = (ARC, "vertex", *RANKS, "pair")


def _axis(name: str, topology: Topology) -> Axis:
    if name == ARC:
        return arc_axis(topology)
    if name == "vertex":
        return vertex_axis(name, topology)
    if name in RANKS:
        return vertex_axis(name, topology, topology.terminals)
    if name == "pair":
        size = topology.num_ranks * (topology.num_ranks - 1)
        ends = rank_pairs(topology)
        return Axis(name, size, lambda _: pair_labels(topology, *ends), lambda: pair_names(topology, *ends))
    return Axis(name, SolutionSize(name))


def sets_of(problem: Any) -> Mapping[str, Sequence[Hashable] | Axis]:
    """The members of the axes of its own that a problem states."""
    sets: Mapping[str, Sequence[Hashable] | Axis] = called(problem.sets, Mapping, "a dictionary of lists of members")
    return sets


def axis_of(problem: Any, name: str, sets: Mapping[str, Sequence[Hashable] | Axis] | None = None) -> Axis:
    """The members of an axis: as the problem states them (``sets``), or of its topology.

    A sequence of labels stands for an axis whose members have these names.
    """
    stated = (sets_of(problem) if sets is None else sets).get(name)
    if isinstance(stated, Axis):
        return stated
    if stated is None:
        return _axis(name, topology_of(problem))
    members: Any = stated.tolist() if isinstance(stated, np.ndarray) else stated
    if not isinstance(members, Sequence):
        refuse(problem.name, f"sets() returns {type(stated).__name__} for {name!r}; return a list of its members")
    numbers = isinstance(members, range) and members == range(len(members))
    return Axis(name, len(members), None if numbers else members, None if numbers else members)


def size(problem: Any, *, without: Collection[str] = (), **exact: int) -> dict[str, int] | None:
    """About the size of the matrix: entries of the declared arrays, and three nonzeros a variable.

    ``without`` are arrays that this version of the model does not have; ``exact`` are numbers that the formulation
    states instead, such as ``variables`` without those that are fixed at 0. None where nothing is declared, or an axis
    has no length before the solve.
    """
    sets, lengths = sets_of(problem), dict[str, int]()
    arrays = [
        [axes for name, axes in declared.items() if name not in without]
        for declared in (problem.variables, problem.constraints)
    ]
    for name in {name for along in arrays for axes in along for name in axes}:
        if name not in sets and not isinstance(topology_of(problem), Topology):
            return None
        length = axis_of(problem, name, sets).size
        if not isinstance(length, int):
            return None
        lengths[name] = length
    if not problem.variables:
        return None
    columns, rows = (sum(prod(lengths[name] for name in axes) for axes in along) for along in arrays)
    stated = {"variables": columns, "constraints": rows} | exact
    return {"nonzeros": 3 * stated["variables"]} | stated


def topology_of(problem: Any) -> Any:
    """The topology of a problem, or its instance."""
    for name in ("topology", "instance"):
        if (found := getattr(problem, name, None)) is not None:
            return found
    msg = f"{problem.name}: axes need the topology of the problem; keep it: self.instance = topology"
    raise BadInput(msg)


def arrays(problem: Any, names: Collection[str]) -> dict[str, Array] | None:
    """Shapes of the declared variables; None where the instance is no topology, or there are other variables."""
    if not isinstance(topology_of(problem), Topology):
        return None
    if not set(names) <= set(problem.variables):
        unknown = next((name for name in problem.variables if name not in names), None)
        if unknown is not None:
            refuse(problem.name, f"variables names {unknown!r}, which is no variable of the model: {', '.join(names)}")
        return None
    return axes_arrays(problem)


def axes_arrays(problem: Any, *duals: str) -> dict[str, Array]:
    """The variables, and the duals of the named constraints, along the axes that the formulation declares."""
    sets, units = sets_of(problem), problem.units

    def along(axes: tuple[str, ...]) -> tuple[Axis, ...]:
        return tuple(axis_of(problem, axis, sets) for axis in axes)

    found = {name: Array(along(axes), unit=units.get(name, "")) for name, axes in problem.variables.items()}
    return found | {name: Array(along(problem.constraints[name]), dual=True) for name in duals}


def all_arrays(problem: Any, names: Collection[str]) -> dict[str, Array]:
    """The method ``arrays`` of a formulation without duals of its own: all variables."""
    return axes_arrays(problem)


def flow_of(problem: Any) -> str | None:
    """The variable that puts load on links: the one with an axis ``arc``, or of several the one with a unit of load.

    Raises
    ------
    BadInput
        If several could be meant.
    """
    able = [name for name, along in problem.variables.items() if ARC in along]
    loads = [name for name in able if problem.units.get(name) in {BANDWIDTHS, SHARDS}]
    chosen = loads if len(able) > 1 else able
    if able and len(chosen) != 1:
        msg = (
            f"{problem.name}: the variables {', '.join(able)} have an axis 'arc'; state units = "
            f"{{...: {BANDWIDTHS!r}}} or {SHARDS!r} for the one that is the load of links"
        )
        raise BadInput(msg)
    return chosen[0] if chosen else None


def links(problem: Any, values: Values) -> Links:
    """Load of every link: the flow variable, summed over all other axes.

    Interior points may add circulations, which deliver nothing. The load of a concurrent flow whose only other axis is
    ``source``, ``target``, ``rank`` or ``pair`` is that without them.

    A flow counted in shards is carried in the time T: the variable or metric of that name, or the objective. One
    without a stated unit (``units``) is so counted where the formulation is no concurrent flow and states a time T.

    Raises
    ------
    BadInput
        If a flow in link bandwidths is more than a link carries, so that it must be something else.
    """
    topology, name = topology_of(problem), flow_of(problem)
    assert name is not None
    flow, along = np.asarray(values[name], dtype=float), problem.variables[name]
    if problem.concurrent in problem.variables and len(along) == 2 and {*along} - {ARC} <= {*RANKS, "pair"}:
        flow = _delivering(topology, flow, along.index(ARC))
    load = flow.sum(axis=tuple(i for i, axis in enumerate(along) if axis != ARC))
    unit, time = problem.units.get(name), _time(problem, values)
    if unit == SHARDS or (unit is None and problem.concurrent is None and time is not None):
        time = float(problem.objective(values)) if time is None else time
        return Links(topology, load, topology.capacity, time, SHARDS, BANDWIDTHS)
    found = Links(topology, load, topology.capacity, 1.0, BANDWIDTHS, BANDWIDTHS)
    most = float(found.utilisation.max(initial=0.0))
    if most > 1 + FULL and (unit is None or problem.concurrent is not None):
        msg = (
            f"{problem.name}: {name} is {most:.3g} times the capacity of a link, so that it is no rate; if it counts "
            f"amounts in a time, state units = {{{name!r}: {SHARDS!r}}} and a variable or metric T"
        )
        raise BadInput(msg)
    return found


def _time(problem: Any, values: Values) -> float | None:
    """The time T of a solution: the variable of that name, or the metric; None without one."""
    stated = values["T"] if "T" in values else problem.metrics(float(problem.objective(values))).get("T")
    return None if stated is None else float(np.asarray(stated))


def _delivering(topology: Topology, flow: F64, axis: int) -> F64:
    """Flows, ``(m, K)`` or ``(K, m)`` with the links along ``axis``, without circulations."""
    from opticoll.formulations.flows.single_source import cancel_cycles

    result = flow.copy()
    for one in np.moveaxis(result, axis, -1):
        cancel_cycles(topology, one)
    return result


def state_concurrent_flow(kind: Any, stated: Collection[str]) -> None:
    """Set sense, meaning and units of a class that is a concurrent flow, except what it states itself."""
    flows = {name: BANDWIDTHS for name, along in kind.variables.items() if ARC in along}
    kind.units = {**(flows if len(flows) == 1 else {}), kind.concurrent: f"{BANDWIDTHS} / shard", **kind.units}
    if "sense" not in stated:
        kind.sense = "max"
    if "meaning" not in stated:
        kind.meaning = f"concurrent flow {kind.concurrent} [{BANDWIDTHS} / shard]; T = 1/{kind.concurrent}"


def concurrent_objective(problem: Any, values: Values) -> float:
    """The value of a concurrent flow."""
    return float(np.asarray(values[problem.concurrent]))


def negative(problem: Any, values: Values) -> dict[str, float]:
    """The most negative flow of a concurrent flow with declared axes, as a block of its checker."""
    if problem.concurrent not in problem.variables:
        return {}
    flows = [name for name, along in problem.variables.items() if name == problem.concurrent or ARC in along]
    return {"nonnegative": max(float(-np.asarray(values[name], dtype=float).min(initial=0.0)) for name in flows)}


def metrics(problem: Any, value: float | None) -> dict[str, float | None]:
    """F and T = 1/F of a formulation whose objective is a concurrent flow."""
    if value is None:
        return {}
    return {"F": value, "T": 1.0 / value if value > 0 else None}


def stated_traffic(problem: Any) -> F64 | None:
    """The parameter ``demand`` as a matrix [shards], ``(N, N)``; None if it is 1 between all ranks or not declared.

    Raises
    ------
    ModelError
        If it is declared, but the object does not keep it.
    """
    stated = getattr(problem, "demand", None)
    if stated is None and any(one.name == "demand" for one in problem.parameters):
        msg = f"{problem.name}: the object keeps no demand; make it by prepare(), or set self.demand in __init__"
        raise ModelError(msg)
    return traffic_of({"demand": UNIFORM if stated is None else stated}, topology_of(problem))


def traffic(problem: Any) -> F64:
    """What every rank sends to every other [shards], ``(N, N)``."""
    stated = stated_traffic(problem)
    return uniform(topology_of(problem).num_ranks) if stated is None else stated


def has_routes(problem: Any) -> bool:
    """Whether solutions hold the flow of every source: a concurrent flow, over ``source`` or ``pair``."""
    name = flow_of(problem)
    return (
        name is not None
        and problem.concurrent in problem.variables
        and bool({"source", "pair"} & {*problem.variables[name]})
    )

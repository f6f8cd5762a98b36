"""Data and arithmetic of models over path sets: commodities, amounts, loads, checker, repair and routes.

A solution has one number for every path of the set. Solutions over sets that are too large to list contain their own
paths: ``path_arcs`` (|P|, longest), 1 + arc number and 0 after the end, and ``path_pair`` (|P|,), the number of the
commodity of every path, ascending.

Functions of a formulation, ``problem``, are methods of those that choose kappa paths of every commodity: x, Lambda and
the rows ``choose`` and ``congestion`` as in :mod:`opticoll.formulations.alltoall.min_congestion`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, gcd, lcm
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from opticoll.errors import NotApplicable, refuse
from opticoll.formulations import rounding
from opticoll.formulations.flows.concurrent_flow import ConcurrentFlow, demanded_traffic, equal_demands, pairs_of
from opticoll.formulations.flows.flow_bounds import bounds as flow_bounds
from opticoll.formulations.flows.path_sets import (
    PathRule,
    PathSet,
    build_path_set,
    check_reach,
    from_arrays,
    path_violations,
    read_rule,
    subset,
    to_arrays,
)
from opticoll.formulations.model import Bound
from opticoll.formulations.variables import (
    TIME,
    Array,
    Axis,
    SolutionSize,
    arc_axis,
    listed_axis,
    members,
    pair_axis,
    pair_names,
    path_names,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence

    from opticoll.formulations.alltoall.path_mcf import PathConcurrentFlow
    from opticoll.instances.topology import F64, I64, Topology
    from opticoll.types import Json, Settings


@dataclass(frozen=True, eq=False)
class PathFlow:
    """The data of a model over paths: commodities, and the rule of their paths, which are listed on first use.

    Parameters
    ----------
    name
        Name of the formulation, for messages.
    topology, rule
        The graph, and which of its paths are allowed.
    traffic
        Demand between ranks, ``(N, N)``; None for 1 between all.
    ends
        Sources and targets of commodities with amount 1, each ``(|K|,)``, which may repeat; None for all pairs of ranks
        with demand.
    kappa
        Number of different paths over which a commodity is split equally, if a solution chooses paths.
    load_unit
        Unit of the largest load per capacity.
    """

    name: str
    topology: Topology
    rule: PathRule
    traffic: F64 | None = None
    ends: tuple[I64, I64] | None = None
    kappa: int = 1
    load_unit: str = TIME

    @cached_property
    def paths(self) -> PathSet:
        """The path set.

        Raises
        ------
        NotApplicable
            If there are too many paths, or none for some commodity.
        """
        return build_path_set(self.topology, self.rule, self.name, self.commodities)

    @cached_property
    def commodities(self) -> tuple[I64, I64]:
        """Source and target vertices of the commodities, each ``(|K|,)``."""
        return pairs_of(self.topology, self.traffic)[:2] if self.ends is None else self.ends

    @cached_property
    def amount(self) -> F64:
        """D_k, the demand of every commodity, ``(|K|,)``."""
        if self.traffic is None:
            return np.ones(self.commodities[0].size)
        return pairs_of(self.topology, self.traffic)[2]

    @cached_property
    def share(self) -> F64:
        """D_k / kappa, the amount on each path of a commodity, ``(|K|,)``."""
        return self.amount / self.kappa

    @cached_property
    def flow(self) -> ConcurrentFlow:
        """The unrestricted problem, grouped by source."""
        return ConcurrentFlow.by_source(self.topology, self.traffic)

    @cached_property
    def unrestricted_bounds(self) -> list[Bound]:
        """Analytic bounds on the concurrent flow over all paths; they hold for every path set."""
        return flow_bounds(self.flow)

    def paths_of(self, values: Mapping[str, F64]) -> PathSet | None:
        """The paths that ``values`` refer to: their own, or those of the set; None if their own are malformed."""
        if "path_arcs" in values and self.rule.kind == "all":
            return from_arrays(self.topology, values, self.commodities)
        return self.paths


class PathProblem(Protocol):
    """A formulation whose data are a path flow."""

    @property
    def routing(self) -> PathFlow:
        """The data."""


def topology(problem: PathProblem) -> Topology:
    """The graph."""
    return problem.routing.topology


def flow_by_source(problem: PathProblem) -> ConcurrentFlow:
    """The problem over all paths, grouped by source."""
    return problem.routing.flow


def label_invariant(parameters: Settings) -> bool:
    """Whether isomorphic topologies have the same optimum: ``k`` and ``disjoint`` break ties by number."""
    return parameters["paths"] in {"all", "shortest"} and equal_demands(parameters)


def restriction(data: PathFlow) -> str | None:
    """Restriction to the path set; None if it has all simple paths."""
    return None if data.rule.unrestricted else f"over the given paths ({data.rule})"


def over_paths(cls: type[PathConcurrentFlow], instance: object, given: Settings) -> PathConcurrentFlow:
    """The formulation over a path set; errors as :func:`prepare_paths`."""
    return cls(prepare_paths(cls.name, instance, given))


def prepare_paths(name: str, instance: object, parameters: Settings) -> PathFlow:
    """The data of an all-to-all over a path set.

    Raises
    ------
    NotApplicable
        If the instance is not a topology of at least two ranks with a path for every demand, or the rule leaves some
        pair without a path.
    BadInput
        For a demand that cannot be read (:func:`opticoll.instances.demands.read_demand`).
    """
    topology, traffic = demanded_traffic(instance, parameters, name)
    rule = read_rule(parameters)
    data = PathFlow(name, topology, rule, traffic, kappa=int(parameters.get("kappa", 1)))
    check_reach(topology, rule, name, None if traffic is None else data.commodities)
    return data


def pairs_and_paths(problem: PathProblem, pair: str = "commodity") -> dict[str, Axis]:
    """The axes of pairs of ranks (s,t), and of their paths: (s,t,i) is the i-th of (s,t)."""
    paths = problem.routing.paths
    pairs = listed_axis(pair, paths.pairs, lambda: pair_names(paths.topology, paths.sources, paths.targets))
    return {pair: pairs, "path": listed_axis("path", paths.paths, lambda: path_labels(paths, pairs.members))}


def path_labels(paths: PathSet, pairs: Sequence[Any]) -> list[tuple[Hashable, ...]]:
    """Pyomo indices of paths: (s,t,i), i = 1, 2, ..., of every pair k = (s,t)."""
    return [(*k, i + 1) for k, count in zip(pairs, np.diff(paths.first).tolist(), strict=True) for i in range(count)]


def path_arrays(
    data: PathFlow, weight: str, scalar: str, names: Collection[str], units: tuple[str, str]
) -> dict[str, Array]:
    """Arrays of a solution: a ``weight`` per path, listed or its own, and a ``scalar``, with their units."""
    topology, own = data.topology, "path_arcs" in names and data.rule.kind == "all"
    path = path_axis(data, SolutionSize("paths") if own else None)
    result = {weight: Array((path,), unit=units[0]), scalar: Array(unit=units[1])}
    if own:
        position = Axis("position", SolutionSize("longest", most=topology.n))
        result["path_arcs"] = members(path, position, of=arc_axis(topology), base=1)
        result["path_pair"] = members(path, of=pair_axis(topology, *data.commodities))
    return result


def path_axis(data: PathFlow, count: SolutionSize | None = None) -> Axis:
    """The paths: those of the set, or those of a solution."""
    size = data.paths.paths if count is None else count
    return Axis("path", size, lambda values: path_names(known_paths(data, values)))


def known_paths(data: PathFlow, values: Mapping[str, F64]) -> PathSet:
    """The paths that verified ``values`` refer to.

    Raises
    ------
    NotApplicable
        If their own paths are malformed.
    """
    paths = data.paths_of(values)
    if paths is None:
        refuse(data.name, "the values contain paths that cannot be read", NotApplicable)
    return paths


def named_paths(
    paths: PathSet, K: Sequence[Any], P: Sequence[Any], A: Sequence[Any]
) -> tuple[dict[Any, Sequence[Any]], dict[Any, list[Any]]]:
    """The paths of every commodity, and those over every arc on some path, by the labels along these axes."""
    first = paths.first.tolist()
    of = {k: P[start:end] for k, start, end in zip(K, first, first[1:], strict=False)}
    over = {a: [P[p] for p in used] for a, used in zip(A, paths.over(), strict=True) if used}
    return of, over


def arc_load(paths: PathSet, weight: F64) -> F64:
    """Load of every arc under flows on paths ``(|P|,)``, shape ``(m,)``."""
    load = np.bincount(paths.arcs, np.repeat(weight, paths.length), paths.topology.arcs)
    return np.asarray(load, dtype=float)


def serve_alike(paths: PathSet, f: F64) -> F64:
    """Normalise ``f`` to path shares ``(|P|,)`` with sum 1 for every commodity.

    A commodity without flow uses its first path, a shortest one of the set.
    """
    share = np.maximum(f, 0.0)
    carried = np.bincount(paths.pair, share, paths.pairs)
    empty = ~(carried > 0)
    share[paths.first[:-1][empty]] = 1.0
    carried[empty] = 1.0
    return share / carried[paths.pair]


def bounded_distances(topology: Topology, lengths: F64, longest: int) -> F64:
    """Lengths of shortest walks of at most 0, 1, ..., ``longest`` arcs from every rank, ``(longest + 1, ranks, n)``.

    Some shortest walk is a simple path: removing a cycle never makes it longer.
    """
    table = np.full((min(longest, topology.n) + 1, topology.num_ranks, topology.n), np.inf)
    table[0, np.arange(topology.num_ranks), topology.terminals] = 0.0
    order = np.argsort(topology.head, kind="stable")
    heads, first = np.unique(topology.head[order], return_index=True)
    for step in range(1, table.shape[0]):
        reach = table[step - 1][:, topology.tail[order]] + lengths[order]
        table[step] = table[step - 1]
        table[step][:, heads] = np.minimum(table[step][:, heads], np.minimum.reduceat(reach, first, axis=1))
    return table


#: Maximum number of capacities tried as path widths.
WIDTHS = 32


def unit_capacities(data: PathFlow) -> bool:
    """Whether Lambda is integer: all capacities are 1, all amounts integers."""
    whole = (data.topology.capacity == 1.0).all() and (data.amount == np.round(data.amount)).all()
    return bool(whole)


def quantum(amount: F64) -> Fraction:
    """Largest number of which all amounts ``(|K|,)`` are exact integer multiples."""
    parts = [Fraction(one) for one in np.unique(amount).tolist()]
    return Fraction(gcd(*(p.numerator for p in parts)), lcm(*(p.denominator for p in parts)))


def round_up(time: float, capacity: F64, unit: Fraction = Fraction(1)) -> float:
    """Smallest multiple of some ``unit``/c_a that is at least ``time``, rounded down: a lower bound for unsplit paths.

    Loads are multiples of ``unit``, see :func:`quantum`.
    """
    return rounding.fraction_down(whole_paths(Fraction(time), map(Fraction, np.unique(capacity).tolist()), unit))


def whole_paths(time: Fraction, capacities: Iterable[Fraction], unit: Fraction) -> Fraction:
    """Smallest multiple of some ``unit``/c_a that is at least ``time``."""
    return min(ceil(time * capacity / unit) * unit / capacity for capacity in capacities)


def largest_load(data: PathFlow) -> float:
    """Upper bound on Lambda: all paths over the arc of smallest capacity."""
    return float(data.kappa * data.amount.sum() / data.topology.capacity.min())


def derived(problem: PathProblem) -> list[Fraction]:
    """The amounts; the bound on Lambda, kappa times their sum over the smallest capacity; and 1/kappa."""
    data = problem.routing
    total = data.kappa * sum(map(rounding.decimal, data.amount.tolist()), Fraction(0))
    least = rounding.entered(float(data.topology.capacity.min()))
    return [*rounding.decimals(data.amount), total / least, Fraction(1, data.kappa)]


def exact_amounts(problem: PathProblem) -> list[Fraction]:
    """The amounts."""
    return rounding.decimals(problem.routing.amount)


def carried(data: PathFlow, paths: PathSet, x: F64) -> F64:
    """Load per capacity of every arc where each path with ``x`` = 1 ``(|P|,)`` carries its share, shape ``(m,)``."""
    return arc_load(paths, x * data.amount[paths.pair]) / data.topology.capacity / data.kappa


def unsplit_bounds(data: PathFlow) -> list[Bound]:
    """Bound from an unsplit share, which crosses the narrowest arc of its path; empty for demands of 1."""
    if data.traffic is None:
        return []
    needed = rounding.down(data.share / widths(data), 2)
    k = int(np.argmax(needed))
    names = [data.topology.labels[ends[k]] for ends in data.commodities]
    value = float(rounding.down(needed[k]))
    return [Bound("widest-path", value, f"a share of {names[0]} to {names[1]} over the widest path")]


def widths(data: PathFlow) -> F64:
    """Upper bound on the width of every commodity's widest path, ``(|K|,)``; exact up to WIDTHS capacities."""
    topology = data.topology
    values = np.unique(topology.capacity)
    result = np.full(data.amount.size, values[-1])
    starts, ends = np.searchsorted(topology.terminals, data.commodities[0]), data.commodities[1]
    steps = (
        np.unique(np.linspace(1, values.size - 1, min(WIDTHS, values.size - 1)).astype(int)) if values.size > 1 else ()
    )
    for i in reversed(steps):  # paths over arcs of at least values[i], the widest first
        kept = topology.capacity >= values[i]
        wide = topology.with_arcs(topology.tail[kept], topology.head[kept], topology.capacity[kept])
        result[~np.isfinite(wide.hops[starts, ends])] = values[i - 1]
    return result


def arrays(problem: PathProblem, names: Collection[str]) -> dict[str, Array]:
    """The choice x and Lambda, the paths if the solution contains its own, and duals."""
    data = problem.routing
    unit = data.load_unit if data.kappa == 1 else f"{data.load_unit} / {data.kappa}"
    return path_arrays(data, "x", "Lambda", names, ("", unit)) | dual_arrays(data)


def dual_arrays(data: PathFlow, *names: str, required: bool = False) -> dict[str, Array]:
    """Duals by arc: by default those of ``congestion``, or those of ``capacity`` of the fluid problem."""
    arc = arc_axis(data.topology)
    return {name: Array((arc,), required=required, dual=True) for name in names or ("congestion", "capacity")}


def residuals(problem: PathProblem, values: Mapping[str, F64]) -> dict[str, float]:
    """Worst violation of every block, computed with numpy alone.

    ``paths`` is 0 if every path is a simple path of allowed length from its source to its target, and no path occurs
    twice where kappa > 1, else infinite; ``binary`` and ``choose`` are absolute; ``congestion`` compares the recomputed
    load with the given Lambda and is relative to Lambda.
    """
    data = problem.routing
    x, stated = np.asarray(values["x"], dtype=float), float(np.asarray(values["Lambda"]))
    paths = data.paths_of(values)
    if paths is None or path_violations(paths, data.rule) > 0 or (data.kappa > 1 and repeats(paths)):
        return dict.fromkeys(("paths", "binary", "choose", "congestion"), np.inf)
    taken = np.bincount(paths.pair, x, paths.pairs)
    worst = float(carried(data, paths, x).max(initial=0.0)) * data.kappa
    whole = abs(stated - round(stated)) if unit_capacities(data) else 0.0
    return {
        "paths": 0.0,
        "binary": float(max(np.minimum(np.abs(x), np.abs(x - 1.0)).max(initial=0.0), whole)),
        "choose": float(np.abs(taken - data.kappa).max(initial=0.0)),
        "congestion": max(0.0, worst - stated) / max(abs(stated), 1e-12),
    }


def repeats(paths: PathSet) -> bool:
    """Whether some commodity has the same path twice."""
    table = to_arrays(paths)["path_arcs"]
    return bool(np.unique(np.column_stack([paths.pair, table]), axis=0).shape[0] < paths.paths)


def objective(problem: PathProblem, values: Mapping[str, F64]) -> float:
    """The largest load per capacity of the paths taken, recomputed; infinite if the paths are malformed."""
    data = problem.routing
    paths, x = data.paths_of(values), np.asarray(values["x"], dtype=float)
    return np.inf if paths is None else float(carried(data, paths, x).max(initial=0.0))


def repair(problem: PathProblem, values: Mapping[str, F64]) -> dict[str, F64] | None:
    """Put each commodity on its kappa paths of largest x and update Lambda; None if the paths are malformed."""
    data = problem.routing
    x, paths = np.asarray(values["x"], dtype=float), data.paths_of(values)
    if paths is None or path_violations(paths, data.rule) > 0 or (np.diff(paths.first) < data.kappa).any():
        return None
    routed = np.zeros(paths.paths)
    routed[largest(paths, x, data.kappa)] = 1.0
    worst = float(carried(data, paths, routed).max()) * data.kappa
    kept = {name: values[name] for name in ("path_arcs", "path_pair") if name in values}
    return {"x": routed, "Lambda": np.asarray(worst), **kept}


def largest(paths: PathSet, weight: F64, count: int) -> I64:
    """The ``count`` paths of largest ``weight`` ``(|P|,)`` of every commodity, or all if it has fewer, by commodity."""
    order = np.lexsort((-weight, paths.pair))
    return order[np.arange(paths.paths) - paths.first[paths.pair[order]] < count]


def chosen_paths(data: PathFlow, values: Mapping[str, F64]) -> PathSet:
    """Selected paths, kappa per commodity, as a path set.

    Raises
    ------
    NotApplicable
        If the values do not select exactly kappa paths for every pair.
    """
    paths, x = data.paths_of(values), np.asarray(values["x"], dtype=float)
    if paths is not None and x.shape == (paths.paths,):
        routes = subset(paths, x > 0.5)
        if np.array_equal(routes.pair, np.repeat(np.arange(paths.pairs), data.kappa)):
            return routes
    many = "one path" if data.kappa == 1 else f"{data.kappa} paths"
    msg = f"{data.name}: the values do not select exactly {many} for every pair"
    raise NotApplicable(msg)


def set_metrics(data: PathFlow, over_all: float, proven: bool | None) -> dict[str, Json]:
    """The path set by name and size, and the best analytic bound on the optimum over all paths, if it is proven."""
    return {
        "path_set": str(data.rule),
        "paths": None if data.rule.kind == "all" and "paths" not in vars(data) else data.paths.paths,
        "unrestricted_bound": over_all,
        "unrestricted_proven": proven,
        "conditional_on": None if proven else restriction(data),
    }

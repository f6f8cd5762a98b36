"""Data and arithmetic of models over path sets.

A solution has one number for every path of the set. Solutions over sets that are too large to list bring their own
paths: ``path_arcs`` (|P|, longest), 1 + arc number and 0 after the end, and ``path_pair`` (|P|,), the number of the
commodity of every path, ascending.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from opticoll.formulations.arrays import (
    TIME,
    Array,
    Names,
    Size,
    arc_labels,
    arc_names,
    pair_labels,
    pair_names,
    path_names,
)
from opticoll.formulations.flows import concurrent_flow
from opticoll.formulations.flows.flow_bounds import bounds as flow_bounds
from opticoll.formulations.flows.path_sets import (
    PathRule,
    PathSet,
    build_path_set,
    check_reach,
    from_arrays,
    read_rule,
)
from opticoll.formulations.model import NotApplicable

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Mapping

    from numpy.typing import NDArray

    from opticoll.formulations.model import Bound
    from opticoll.instances.digraph import Topology
    from opticoll.instances.readers.untrusted import Settings


@dataclass(frozen=True, eq=False)
class PathFlow:
    """A topology and the rule that defines its path set, which is listed on first use.

    ``name`` is for messages; ``traffic`` is the demand between ranks, ``(N, N)``, None for 1 between all; ``kappa`` the
    number of different paths over which a commodity is split equally, where a solution chooses paths.
    """

    topology: Topology
    rule: PathRule
    name: str
    traffic: NDArray[np.float64] | None = field(default=None, kw_only=True)
    kappa: int = field(default=1, kw_only=True)

    #: Unit of the largest load per capacity.
    load_unit: ClassVar[str] = TIME

    @cached_property
    def paths(self) -> PathSet:
        """The path set.

        Raises
        ------
        NotApplicable
            If it has too many paths, or none for some commodity.
        """
        return build_path_set(self.topology, self.rule, self.name, self.commodities)

    @cached_property
    def commodities(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Sources and targets, vertices, each ``(|K|,)``: all ordered pairs of ranks with demand."""
        sources, targets, _ = concurrent_flow.pairs_of(self.topology, self.traffic)
        return sources, targets

    @cached_property
    def amount(self) -> NDArray[np.float64]:
        """D_k, the demand of every commodity, ``(|K|,)``."""
        if self.traffic is None:
            return np.ones(self.commodities[0].size)
        return concurrent_flow.pairs_of(self.topology, self.traffic)[2]

    @cached_property
    def share(self) -> NDArray[np.float64]:
        """D_k / kappa, what each path of a commodity carries, ``(|K|,)``."""
        return self.amount / self.kappa

    @cached_property
    def flow(self) -> concurrent_flow.ConcurrentFlow:
        """The unrestricted problem, grouped by source."""
        return concurrent_flow.by_source(self.topology, self.traffic)

    @cached_property
    def unrestricted_bounds(self) -> list[Bound]:
        """Analytic bounds on the concurrent flow over all paths; they hold for every path set."""
        return flow_bounds(self.flow)

    def paths_of(self, values: Mapping[str, NDArray[np.float64]]) -> PathSet | None:
        """The paths that ``values`` refer to: their own, or those of the set; None if their own are malformed."""
        if "path_arcs" in values and self.rule.kind == "all":
            return from_arrays(self.topology, values, self.commodities)
        return self.paths


def label_invariant(parameters: Settings) -> bool:
    """Whether isomorphic topologies have the same optimum: ``k`` and ``disjoint`` break ties by number."""
    return parameters["paths"] in {"all", "shortest"} and concurrent_flow.equal_demands(parameters)


def restriction(data: PathFlow) -> str | None:
    """The path set, unless it has all simple paths."""
    return None if data.rule.unrestricted else f"over the given paths ({data.rule})"


def prepare_paths(instance: object, parameters: Settings, name: str) -> PathFlow:
    """The data of an all-to-all model called ``name`` over path sets.

    Raises
    ------
    NotApplicable
        If the instance is not a topology of at least two ranks with a path for every demand, or the rule leaves some
        pair without a path.
    BadInput
        For a demand that cannot be read (:func:`opticoll.instances.demands.read_demand`).
    """
    topology, traffic = concurrent_flow.demanded_traffic(instance, parameters, name)
    rule = read_rule(parameters, "disjoint", name)
    data = PathFlow(topology, rule, name, traffic=traffic)
    check_reach(topology, rule, name, None if traffic is None else data.commodities)
    return data


def path_arrays(
    data: PathFlow, weight: str, scalar: str, names: Collection[str], units: tuple[str, str]
) -> dict[str, Array]:
    """The arrays of a solution with a ``weight`` per path, listed or its own, and a ``scalar``, with their units."""
    of_path, of_scalar = units
    if "path_arcs" in names and data.rule.kind == "all":
        count, topology = Size("paths"), data.topology
        return {
            weight: Array((count,), axes=("path",), unit=of_path),
            scalar: Array(unit=of_scalar),
            "path_arcs": Array(
                (count, Size("longest", most=topology.n)), low=0, high=topology.arcs + 1,
                axes=("path", "position"), entries="arc", base=1,
            ),
            "path_pair": Array(
                (count,), low=0, high=data.commodities[0].size, axes=("path",), entries="commodity"
            ),
        }  # fmt: skip
    return {weight: Array((data.paths.paths,), axes=("path",), unit=of_path), scalar: Array(unit=of_scalar)}


def known_paths(data: PathFlow, values: Mapping[str, NDArray[np.float64]]) -> PathSet:
    """The paths that verified ``values`` refer to.

    Raises
    ------
    NotApplicable
        If their own paths are malformed.
    """
    paths = data.paths_of(values)
    if paths is None:
        msg = f"{data.name}: the values bring paths that cannot be read"
        raise NotApplicable(msg)
    return paths


def path_sets(data: PathFlow, values: Mapping[str, NDArray[np.float64]]) -> dict[str, Names]:
    """Names of arcs, commodities and paths."""
    return {
        "arc": arc_labels(data.topology),
        "commodity": pair_labels(data.topology, *data.commodities),
        "path": path_names(known_paths(data, values)),
    }


def named_paths(
    paths: PathSet,
) -> tuple[list[tuple[Hashable, ...]], dict[tuple[Hashable, ...], list[tuple[Hashable, ...]]], dict[str, list[Any]]]:
    """Indices in Pyomo of commodities and paths.

    Returns
    -------
    commodities
        k = (s,t), or (s,t,1), (s,t,2), ... if some pair is repeated.
    of
        The paths p = (s,t,i) of every k, i = 1, 2, ....
    over
        The paths over every arc that some path uses.
    """
    K = pair_names(paths.topology, paths.sources, paths.targets)
    of = {k: [(*k, i + 1) for i in range(len(paths.of_pair(j)))] for j, k in enumerate(K)}
    names = [p for k in K for p in of[k]]
    over = {
        a: [names[p] for p in used] for a, used in zip(arc_names(paths.topology), paths.over(), strict=True) if used
    }
    return K, of, over


def arc_load(paths: PathSet, weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Load of every arc under flows on paths ``(|P|,)``, shape ``(m,)``."""
    load = np.bincount(paths.arcs, np.repeat(weight, paths.length), paths.topology.arcs)
    return np.asarray(load, dtype=float)


def serve_alike(paths: PathSet, f: NDArray[np.float64]) -> NDArray[np.float64]:
    """Path shares ``(|P|,)`` in the proportions of ``f``, with sum 1 for every commodity.

    A commodity without flow takes its first path, a shortest one of the set.
    """
    share = np.maximum(f, 0.0)
    carried = np.bincount(paths.pair, share, paths.pairs)
    empty = ~(carried > 0)
    share[paths.first[:-1][empty]] = 1.0
    carried[empty] = 1.0
    return share / carried[paths.pair]


def bounded_distances(topology: Topology, lengths: NDArray[np.float64], longest: int) -> NDArray[np.float64]:
    """Lengths of shortest walks of at most 0, 1, ..., ``longest`` arcs from every rank, ``(longest + 1, ranks, n)``.

    Some shortest walk is a simple path: removing a cycle never makes it longer.
    """
    table = np.full((min(longest, topology.n) + 1, topology.ranks, topology.n), np.inf)
    table[0, np.arange(topology.ranks), topology.terminals] = 0.0
    order = np.argsort(topology.head, kind="stable")
    heads, first = np.unique(topology.head[order], return_index=True)
    for step in range(1, table.shape[0]):
        reach = table[step - 1][:, topology.tail[order]] + lengths[order]
        table[step] = table[step - 1]
        table[step][:, heads] = np.minimum(table[step][:, heads], np.minimum.reduceat(reach, first, axis=1))
    return table

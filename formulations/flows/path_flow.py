"""Data and arithmetic of models over path sets.

A solution has one number for every path of the set. Solutions over sets that are too large to list bring their own
paths: ``path_arcs`` (|P|, longest), 1 + arc number and 0 after the end, and ``path_pair`` (|P|,), the number of the
commodity of every path, ascending.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.formulations.arrays import Array, Size
from opticoll.formulations.flows import concurrent_flow
from opticoll.formulations.flows.flow_bounds import bounds as flow_bounds
from opticoll.formulations.flows.path_sets import PathRule, PathSet, build_path_set, check_reach, from_arrays, read_rule

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numpy.typing import NDArray

    from opticoll.formulations.model import Bound
    from opticoll.instances.digraph import Topology


@dataclass(frozen=True, eq=False)
class PathFlow:
    """A topology and the rule that defines its path set, which is listed on first use; ``name`` is for messages."""

    topology: Topology
    rule: PathRule
    name: str

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
        """Sources and targets, vertices, each ``(|K|,)``: all ordered pairs of distinct ranks."""
        return concurrent_flow.commodities(self.topology)

    @cached_property
    def flow(self) -> concurrent_flow.ConcurrentFlow:
        """The unrestricted problem, grouped by source."""
        return concurrent_flow.by_source(self.topology)

    @cached_property
    def unrestricted_bounds(self) -> list[Bound]:
        """Analytic bounds on the concurrent flow over all paths; they hold for every path set."""
        return flow_bounds(self.flow)

    def paths_of(self, values: Mapping[str, NDArray[np.float64]]) -> PathSet | None:
        """The paths that ``values`` refer to: their own, or those of the set; None if their own are malformed."""
        if "path_arcs" in values and self.rule.kind == "all":
            return from_arrays(self.topology, values, self.commodities)
        return self.paths


def prepare_paths(instance: object, parameters: Mapping[str, Any], name: str) -> PathFlow:
    """The data of an all-to-all model called ``name`` over path sets.

    Raises
    ------
    NotApplicable
        If the instance is not a connected topology of at least two ranks, or the rule leaves some pair without a path.
    """
    topology = concurrent_flow.all_to_all_topology(instance, name)
    rule = read_rule(parameters, "disjoint", name)
    check_reach(topology, rule, name)
    return PathFlow(topology, rule, name)


def path_arrays(data: PathFlow, weight: str, scalar: str, names: Collection[str]) -> dict[str, Array]:
    """The arrays of a solution with a ``weight`` per path, listed or its own, and a ``scalar``."""
    if "path_arcs" in names and data.rule.kind == "all":
        count, topology = Size("paths"), data.topology
        return {
            weight: Array((count,)),
            scalar: Array(),
            "path_arcs": Array((count, Size("longest", most=topology.n)), low=0, high=topology.arcs + 1),
            "path_pair": Array((count,), low=0, high=data.commodities[0].size),
        }
    return {weight: Array((data.paths.paths,)), scalar: Array()}


def arc_load(paths: PathSet, weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Load of every arc under path weights ``(|P|,)``, shape ``(m,)``."""
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

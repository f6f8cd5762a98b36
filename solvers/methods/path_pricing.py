"""Shortest allowed paths of all commodities at once: the pricing step of column generation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from formulations.alltoall.path_sets import PathSet
    from instances.topology import Topology

    F64 = NDArray[np.float64]
    I64 = NDArray[np.int64]
    Column = tuple[int, tuple[int, ...]]

#: Lengths are floored at this part of their largest: no cycle is free, so that shortest walks are simple paths.
FLOOR = 1e-10


@dataclass(frozen=True)
class Priced:
    """Every commodity's shortest length, ``(|K|,)``, and the paths of those that are asked for."""

    shortest: F64
    paths: Callable[[NDArray[np.bool_]], list[Column]]


class Pricing(Protocol):
    """Shortest paths of a path set under arc lengths ``(m,)``, all positive."""

    def price(self, lengths: F64) -> Priced:
        """Shortest paths under ``lengths``, by commodity."""


def positive(lengths: F64) -> F64:
    """Lengths scaled to a largest of 1 and floored, see :data:`FLOOR`; all ones where there are none."""
    lengths = np.nan_to_num(np.maximum(lengths, 0.0), nan=0.0, posinf=0.0)
    peak = lengths.max(initial=0.0)
    return np.maximum(lengths / peak, FLOOR) if peak > 0 else np.ones(lengths.size)


class EveryPath:
    """All simple paths: one Dijkstra a source. ``commodities`` are sources and targets, each ``(|K|,)``."""

    def __init__(self, topology: Topology, commodities: tuple[I64, I64]) -> None:
        self.topology = topology
        self.targets = commodities[1]
        self.starts, self.source = np.unique(commodities[0], return_inverse=True)

    def price(self, lengths: F64) -> Priced:
        """Shortest paths under ``lengths``."""
        from scipy.sparse.csgraph import dijkstra

        topology, starts = self.topology, self.starts
        reach, parent = dijkstra(topology.length_matrix(lengths), indices=starts, return_predecessors=True)
        order = np.lexsort((lengths, topology.head, topology.tail))
        key = topology.tail[order] * topology.n + topology.head[order]

        def paths(wanted: NDArray[np.bool_]) -> list[Column]:
            pairs = np.flatnonzero(wanted)
            source = self.source[pairs]
            at, steps = self.targets[pairs], []
            going = at != starts[source]
            if not pairs.size:
                return []
            while going.any():
                before = np.where(going, parent[source, at], at)
                # The first of the parallel arcs in this order is the shortest.
                arc = order[np.searchsorted(key, before * topology.n + at) % key.size]
                steps.append(np.where(going, arc, -1))
                at = before
                going = at != starts[source]
            table = np.stack(steps[::-1], axis=1)
            return [(k, tuple(a for a in row if a >= 0)) for k, row in zip(pairs.tolist(), table.tolist(), strict=True)]

        return Priced(reach[self.source, self.targets], paths)


class BoundedPaths:
    """All simple paths of at most ``longest`` arcs: shortest walks by number of arcs, one step at a time."""

    def __init__(self, topology: Topology, commodities: tuple[I64, I64], longest: int) -> None:
        self.topology, self.longest = topology, longest
        self.source, self.targets = np.searchsorted(topology.terminals, commodities[0]), commodities[1]
        self.entering = [np.flatnonzero(topology.head == v) for v in range(topology.n)]

    def price(self, lengths: F64) -> Priced:
        """Shortest paths under ``lengths``."""
        from formulations.alltoall.path_mcf import bounded_distances

        topology, ends = self.topology, self.topology.terminals
        table = bounded_distances(topology, lengths, self.longest)

        def walk(source: int, v: int) -> tuple[int, ...]:
            step, arcs = table.shape[0] - 1, []
            while v != ends[source]:
                while table[step, source, v] == table[step - 1, source, v]:
                    step -= 1
                into = self.entering[v]
                arc = int(into[np.argmin(table[step - 1, source, topology.tail[into]] + lengths[into])])
                arcs.append(arc)
                v, step = int(topology.tail[arc]), step - 1
            return tuple(arcs[::-1])

        def paths(wanted: NDArray[np.bool_]) -> list[Column]:
            pairs = np.flatnonzero(wanted)
            return [(k, walk(int(self.source[k]), int(self.targets[k]))) for k in pairs.tolist()]

        return Priced(table[-1][self.source, self.targets], paths)


class ListedPaths:
    """The paths of a listed set."""

    def __init__(self, listed: PathSet) -> None:
        self.listed = listed
        self.transposed = listed.incidence.T.tocsr()

    def price(self, lengths: F64) -> Priced:
        """Shortest paths under ``lengths``."""
        listed = self.listed
        length = self.transposed @ lengths
        shortest = np.minimum.reduceat(length, listed.first[:-1])

        def paths(wanted: NDArray[np.bool_]) -> list[Column]:
            best = np.flatnonzero(length == shortest[listed.pair])
            pair, where = np.unique(listed.pair[best], return_index=True)
            chosen = best[where][wanted[pair]]
            return [(int(listed.pair[p]), tuple(listed.path(p))) for p in chosen.tolist()]

        return Priced(shortest, paths)

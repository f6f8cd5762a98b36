r"""Both halves of a conjectured time T of the uniform all-to-all, proven without solving a program.

Let a group of automorphisms act on a topology, with orbits of arcs and of sources.

At least. Any lengths of the arcs prove :math:`T \ge \sum_{s,t} dist_\ell(s,t) / \sum_a c_a \ell_a`, by duality. The
mean of an optimal dual over the group is an optimal dual that is constant on orbits, so that lengths by orbit suffice.
Lengths that prove T on all solved members of a family are a pattern; whether they do on a larger member is then a
matter of shortest paths in whole numbers.

At most. Route every shard along a tree of shortest paths from its source, and take the mean of all images of this
routing under the group: it loads all arcs of an orbit alike, with the sum of the routing's loads in the orbit over
their number. So T is at most the largest of these means relative to the capacity. The same holds for a mixture of two
routings; one for each orbit is tried, that uses it as little as shortest paths allow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from math import lcm
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.rounding import decimal

if TYPE_CHECKING:
    from opticoll.instances.topology import F64, I64, Topology

#: Maximum number of orbits for which all lengths of 0 and 1 are tried.
MOST_ORBITS = 5
#: Distances above are not exact in floating point.
LARGEST = 2**52


@dataclass(frozen=True)
class ArcOrbits:
    """Orbits of arcs and sources under verified automorphisms.

    Parameters
    ----------
    topology
        A topology all of whose ranks send one shard to every other.
    orbit
        Orbit of every arc, ``(m,)``; orbits are in the order of their smallest step ``head - tail mod n``.
    sources, weight
        A source of every orbit of sources, and the sizes of these orbits, ``(|R|,)``.
    """

    topology: Topology
    orbit: I64
    sources: I64
    weight: I64

    @property
    def number(self) -> int:
        """Number of orbits of arcs."""
        return int(self.orbit.max()) + 1

    def capacity(self) -> list[Fraction]:
        """Total capacity of every orbit."""
        sizes = np.bincount(self.orbit).tolist()
        first = np.unique(self.orbit, return_index=True)[1]
        each = self.topology.capacity[first].tolist()
        return [decimal(c) * size for c, size in zip(each, sizes, strict=True)]

    def at_least(self, lengths: Sequence[Fraction]) -> Fraction | None:
        """Lower bound on T from the lengths of all orbits; None if they prove none."""
        whole = _whole(lengths)
        distances = self._distances(self._separated(whole)) if any(whole) else None
        if distances is None:
            return None
        total = int((np.floor(distances / self.topology.n).sum(axis=1) * self.weight).sum())
        return total / sum((c * one for c, one in zip(self.capacity(), whole, strict=True)), Fraction(0))

    def at_most(self, lengths: Sequence[Fraction]) -> Fraction | None:
        """Upper bound on T from routings along shortest paths; None if lengths are too large."""
        whole = _whole(lengths)
        loads = [load for k in range(self.number) if (load := self._loads(whole, k)) is not None]
        if not loads:
            return None
        best = min(max(load) for load in loads)
        for one, other in combinations(loads, 2):
            for share in _shares(one, other):
                best = min(best, max(share * a + (1 - share) * b for a, b in zip(one, other, strict=True)))
        return best

    def _separated(self, whole: Sequence[int]) -> F64:
        """Lengths of arcs times n, plus 1: of several shortest paths, those of fewest arcs are the shortest."""
        return np.array(whole, dtype=float)[self.orbit] * self.topology.n + 1.0

    def _distances(self, lengths: F64) -> F64 | None:
        if lengths.max() * self.topology.n * self.topology.n > LARGEST:
            return None
        return self.topology.distances(lengths, self.sources)[:, self.topology.terminals]

    def _loads(self, whole: Sequence[int], avoided: int) -> list[Fraction] | None:
        """Mean load over capacity of every orbit, if ties are broken against one of them."""
        from scipy.sparse.csgraph import dijkstra

        topology, n = self.topology, self.topology.n
        lengths = (np.array(whole, dtype=float)[self.orbit] * n + (self.orbit == avoided)) * n + 1.0
        if lengths.max() * n > LARGEST:
            return None
        reach, parent = dijkstra(topology.length_matrix(lengths), indices=self.sources, return_predecessors=True)
        orbit_of = _orbit_of_pairs(topology, self.orbit, lengths)
        total = np.zeros(self.number)
        for row, weight in enumerate(self.weight.tolist()):
            taken = np.zeros((n, self.number))
            for v in np.argsort(reach[row], kind="stable").tolist():
                u = int(parent[row, v])
                if u >= 0:
                    taken[v] = taken[u]
                    taken[v, orbit_of[u * n + v]] += 1
            total += weight * taken[topology.terminals].sum(axis=0)
        return [int(one) / room for one, room in zip(total.tolist(), self.capacity(), strict=True)]


def arc_orbits(topology: Topology) -> ArcOrbits:
    """The orbits of a topology's arcs and sources, all ranks sending to all others."""
    from opticoll.formulations.flows.concurrent_flow import ConcurrentFlow
    from opticoll.solvers.methods.flows import flow_orbits

    found = flow_orbits.find(ConcurrentFlow.by_source(topology))
    step = (topology.head - topology.tail) % topology.n
    least = np.full(int(found.arc_orbit.max()) + 1, topology.n)
    np.minimum.at(least, found.arc_orbit, step)
    place = np.empty(least.size, dtype=np.int64)
    place[np.argsort(least, kind="stable")] = np.arange(least.size)
    sources = found.data.sources[found.representative]
    return ArcOrbits(topology, place[found.arc_orbit], sources, found.weight.astype(np.int64))


def candidates(orbits: int) -> Iterator[tuple[Fraction, ...]]:
    """Lengths of 0 and 1 by orbit, all ones first."""
    if orbits <= MOST_ORBITS:
        choices = [one for one in product((0, 1), repeat=orbits) if any(one)]
        for one in sorted(choices, key=sum, reverse=True):
            yield tuple(map(Fraction, one))
    else:
        yield (Fraction(1),) * orbits


def optimal_lengths(topology: Topology, orbits: ArcOrbits) -> tuple[Fraction, ...] | None:
    """An optimal dual by orbit, the largest length 1: the mean over each orbit of the multipliers of an exact solve."""
    from opticoll.analysis.result.result import run_task
    from opticoll.solvers.exact.exact_form import Leaf
    from opticoll.solvers.task import Task

    found = run_task(Task("alltoall.master", topology, exact=True)).exact
    if found is None or not found[1].nodes or not isinstance(found[1].nodes[0], Leaf):
        return None
    rows = found[0].rows["capacity"].index.tolist()
    prices = found[1].nodes[0].y
    sums = [Fraction(0)] * orbits.number
    for row, orbit in zip(rows, orbits.orbit.tolist(), strict=True):
        sums[orbit] -= prices.get(row, Fraction(0))
    sizes = np.bincount(orbits.orbit).tolist()
    mean = [total / size for total, size in zip(sums, sizes, strict=True)]
    top = max(mean)
    return tuple(one / top for one in mean) if top > 0 else None


def _whole(lengths: Sequence[Fraction]) -> list[int]:
    scale = lcm(*(one.denominator for one in lengths))
    return [int(one * scale) for one in lengths]


def _shares(one: Sequence[Fraction], other: Sequence[Fraction]) -> Iterator[Fraction]:
    """Shares of two routings at which the loads of two orbits are equal."""
    slopes = [(a - b, b) for a, b in zip(one, other, strict=True)]
    for (slope, start), (slope2, start2) in combinations(slopes, 2):
        if slope != slope2 and 0 <= (share := (start2 - start) / (slope - slope2)) <= 1:
            yield share


def _orbit_of_pairs(topology: Topology, orbit: I64, lengths: F64) -> dict[int, int]:
    """Orbit of the shortest of the parallel arcs, by ``tail n + head``."""
    order = np.argsort(-lengths, kind="stable")
    key = topology.tail[order] * topology.n + topology.head[order]
    return dict(zip(key.tolist(), orbit[order].tolist(), strict=True))

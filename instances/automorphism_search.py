r"""A search for automorphisms of graphs whose family or numbering does not tell them.

Two copies of the graph are coloured side by side. Starting from a vertex r of one and a vertex v of the other, the
colours are refined by the multisets of colours in front and behind (Weisfeiler & Leman, 1968) and, while some colour
has several vertices, one more pair is told apart, with the alternatives of the second copy tried in turn (McKay,
Congressus Numerantium 30, 1981). When every colour is a single vertex, they spell a candidate. Work is limited by a
count of refinements: a search that ends early has found fewer symmetries, never wrong ones (all are verified).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from instances.orbits import orbits_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from instances.topology import Topology

    I64 = NDArray[np.int64]

#: Refinements a search may take, times vertices and arcs.
MOST_WORK = 16_000_000
#: A refinement counts for at least so many vertices and arcs: below, calls cost more than entries.
LEAST_WORK = 20_000
#: A refinement that leaves so many alternatives open is not followed further.
MOST_DEPTH = 12


def search(topology: Topology, orbit: I64) -> Iterator[I64]:
    """Candidates that join orbits of terminals: at most one for each that is left.

    Parameters
    ----------
    topology
        The graph.
    orbit
        Orbits that are known already, shape ``(n,)``.
    """
    state = _Search(topology)
    orbit = orbit.copy()
    colours = state.refined(state.first)
    ends = topology.terminals
    roots: list[int] = []
    for root in ends[np.unique(orbit[ends], return_index=True)[1]].tolist():
        if orbit[root] in orbit[roots]:
            continue  # joined to an earlier one meanwhile
        roots.append(root)
        for v in ends[colours[ends] == colours[root]].tolist():
            if orbit[v] == orbit[root]:
                continue
            if state.spent:
                return
            image = state.extend(root, v)
            if image is None:
                continue
            yield image
            joined = orbits_of(np.stack([image, _next_of_class(orbit)]), topology.n)
            orbit[:] = joined


def _next_of_class(label: I64) -> I64:
    """A permutation whose cycles are the classes of ``label``."""
    order = np.argsort(label, kind="stable")
    fresh = np.diff(label[order], prepend=-1) != 0
    first = np.flatnonzero(fresh)
    last = np.append(first[1:], label.size) - 1
    image = np.empty_like(order)
    image[order[:-1]] = order[1:]
    image[order[last]] = order[first]
    return image


class _Search:
    def __init__(self, topology: Topology) -> None:
        n = topology.n
        self.n = n
        _, kind = np.unique(topology.capacity, return_inverse=True)
        # Both copies in one graph, so that their colours are comparable.
        self.tail = np.concatenate([topology.tail, topology.tail + n])
        self.head = np.concatenate([topology.head, topology.head + n])
        random = np.random.default_rng(0)
        self.kind = random.integers(1, 1 << 62, size=kind.max(initial=0) + 1)[np.tile(kind, 2)] | 1
        self.salt = random.integers(1, 1 << 62, size=2) | 1
        ends = np.zeros(n, dtype=np.int64)
        ends[topology.terminals] = 1
        self.first = np.tile(ends, 2)
        self.left = MOST_WORK // (2 * max(n + topology.arcs, LEAST_WORK))

    @property
    def spent(self) -> bool:
        """Whether the work allowed is done."""
        return self.left <= 0

    def refined(self, colour: I64) -> I64:
        """The coarsest stable refinement, numbered alike in both copies."""
        _, colour = np.unique(colour, return_inverse=True)
        count = int(colour.max()) + 1
        random = np.random.default_rng(1)
        while True:
            self.left -= 1
            value = random.integers(1, 1 << 62, size=count)[colour]
            with np.errstate(over="ignore"):
                seen = value * self.salt[0]
                ahead, behind = self.kind * value[self.head], self.kind * value[self.tail]
                ahead ^= ahead >> 29
                behind ^= behind >> 31
                np.add.at(seen, self.tail, ahead * self.salt[1])
                np.add.at(seen, self.head, behind * self.salt[0])
            _, finer = np.unique(seen, return_inverse=True)
            # Refinement proper: vertices once told apart stay so.
            _, finer = np.unique(colour * (int(finer.max()) + 1) + finer, return_inverse=True)
            number = int(finer.max()) + 1
            if number == count or self.spent:
                return np.asarray(finer, dtype=np.int64)
            colour, count = finer, number

    def extend(self, u: int, v: int) -> I64 | None:
        """An automorphism candidate that takes u to v, or None."""
        return self._extend(self.first, u, v, 0)

    def _extend(self, colour: I64, u: int, v: int, depth: int) -> I64 | None:
        n = self.n
        told = colour.copy()
        told[u] = told[n + v] = colour.max() + 1
        fine = self.refined(told)
        one, other = fine[:n], fine[n:]
        if not np.array_equal(np.sort(one), np.sort(other)):
            return None
        size = np.bincount(one)
        if size.max() == 1:
            where = np.empty(n, dtype=np.int64)
            where[other] = np.arange(n)
            return where[one]
        if depth == MOST_DEPTH:
            return None
        cell = int(np.argmax(size > 1))
        w = int(np.flatnonzero(one == cell)[0])
        for x in np.flatnonzero(other == cell).tolist():
            if self.spent:
                return None
            found = self._extend(fine, w, x, depth + 1)
            if found is not None:
                return found
        return None

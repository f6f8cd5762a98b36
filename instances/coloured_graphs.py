r"""Isomorphisms of coloured directed graphs, found by colour refinement.

Two graphs are coloured side by side. Starting from a vertex u of one and a vertex v of the other, colours are refined
by the multisets of colours of out- and in-neighbours (Weisfeiler & Leman, 1968). While some colour class has several
vertices, one more pair is individualised, and the alternatives in the second graph are tried in turn (McKay, Congressus
Numerantium 30, 1981). When every class is a single vertex, the classes define a candidate, which the caller verifies.
The number of refinements is limited: a search that stops early finds fewer isomorphisms, never wrong ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from opticoll.instances.topology import I64

#: Minimum number of vertices and arcs charged per refinement: below it, call overhead dominates.
LEAST_WORK = 20_000


@dataclass(frozen=True, eq=False)
class ColouredGraph:
    """A directed multigraph: ``colour`` of vertices, ``(n,)``; ``tail``, ``head`` and ``kind`` of arcs, ``(m,)``."""

    colour: I64
    tail: I64
    head: I64
    kind: I64


class ColourSearch:
    """Search for isomorphisms from one graph to another of equal size, by default to itself.

    Parameters
    ----------
    first, second
        The graphs, with the same numbers for the same colours and kinds.
    work
        Budget: refinements times vertices and arcs.
    depth
        Maximum number of pairs individualised in one candidate.
    """

    def __init__(
        self,
        first: ColouredGraph,
        second: ColouredGraph | None = None,
        *,
        work: int,
        depth: int,
    ) -> None:
        other = first if second is None else second
        n = self.n = first.colour.size
        self.tail = np.concatenate([first.tail, other.tail + n])
        self.head = np.concatenate([first.head, other.head + n])
        kind = np.concatenate([first.kind, other.kind])
        random = np.random.default_rng(0)
        self.kind = random.integers(1, 1 << 62, size=kind.max(initial=0) + 1)[kind] | 1
        self.salt = random.integers(1, 1 << 62, size=2) | 1
        self.first = np.concatenate([first.colour, other.colour])
        self.left = work // (2 * max(n + first.tail.size, LEAST_WORK))
        self.depth = depth

    @property
    def spent(self) -> bool:
        """Whether the permitted number of refinements is used up."""
        return self.left <= 0

    def refined(self, colour: I64) -> I64:
        """The coarsest stable refinement of colours ``(2n,)``, with the same numbers in both graphs."""
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
            # Vertices of different colours must keep different colours.
            _, finer = np.unique(colour * (int(finer.max()) + 1) + finer, return_inverse=True)
            number = int(finer.max()) + 1
            if number == count or self.spent:
                return np.asarray(finer, dtype=np.int64)
            colour, count = finer, number

    def extend(self, u: int, v: int) -> I64 | None:
        """Return a candidate that maps u to v, ``(n,)``, or None."""
        return self._extend(self.first, u, v, 0)

    def _extend(self, colour: I64, u: int, v: int, depth: int) -> I64 | None:
        n = self.n
        individualised = colour.copy()
        individualised[u] = individualised[n + v] = colour.max() + 1
        fine = self.refined(individualised)
        source, target = fine[:n], fine[n:]
        if not np.array_equal(np.sort(source), np.sort(target)):
            return None
        size = np.bincount(source)
        if size.max() == 1:
            vertex = np.empty(n, dtype=np.int64)
            vertex[target] = np.arange(n)
            return vertex[source]
        if depth == self.depth:
            return None
        cell = int(np.argmax(size > 1))
        w = int(np.flatnonzero(source == cell)[0])
        others = np.flatnonzero(target == cell)
        for x in others.tolist():
            if self.spent:
                return None
            image = self._extend(fine, w, x, depth + 1)
            if image is not None:
                return image
        return None

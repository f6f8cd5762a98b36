r"""Automorphisms of a topology: proposed from what it is called and how it is numbered, each one verified.

An automorphism is a permutation sigma of the vertices that maps arcs to arcs of the same capacity, with their
multiplicities, and terminals to terminals. A spec is only a name: what a family proposes is believed only after
:func:`arc_image` has found every arc's image, so that ``torus:4x4+fail=1`` keeps just those symmetries that survive.

Proposed
    torus, mesh        shifts and reflections along every dimension, swaps of equal dimensions
    hypercube          shifts by every bit, swaps of neighbouring bits
    bipartite          a rotation and a transposition on each side, the swap of equal sides
    complete           a rotation and a transposition
    circulant, ring    multiplications that fix the set of jumps
    kautz, debruijn    permutations of the letters
    genkautz, n = d^k  the same, for it is the de Bruijn graph: with :math:`(d+1) c = -d \pmod n` the digits of
                       :math:`x - c` to the base -d are shifted by one along each arc
    any numbering      shifts :math:`x \to x + k` for divisors k of n, the reflections :math:`x \to -x` and
                       :math:`x \to -1-x`; these are what generalized Kautz digraphs have: shifts by
                       :math:`n / \gcd(n, d+1)` and :math:`-1-x`
    ``+host``          each of these, carried to hosts and NICs alike
    small graphs       a search by colour refinement (:mod:`opticoll.instances.symmetry`) where all this leaves
                       more than one orbit

Orbits of permutation groups that are given by generators.

A search for automorphisms of graphs whose family or numbering does not tell them.

Two copies of the graph are coloured side by side. Starting from a vertex r of one and a vertex v of the other, the
colours are refined by the multisets of colours in front and behind (Weisfeiler & Leman, 1968) and, while some colour
has several vertices, one more pair is told apart, with the alternatives of the second copy tried in turn (McKay,
Congressus Numerantium 30, 1981). When every colour is a single vertex, they spell a candidate. Work is limited by a
count of refinements: a search that ends early has found fewer symmetries, never wrong ones (all are verified).
"""

from __future__ import annotations

from itertools import islice, pairwise
from math import gcd, log, prod
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    I64 = NDArray[np.int64]
    from collections.abc import Iterator

    from opticoll.instances.digraph import Topology


def orbits_of(images: I64, count: int) -> I64:
    """The orbit of every element 0 .. count-1 under permutations ``(k, count)``, numbered from 0 by least element."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    if not images.size:
        return np.arange(count)
    rows = np.tile(np.arange(count), images.shape[0])
    graph = coo_array((np.ones(rows.size, dtype=np.int8), (rows, images.ravel())), shape=(count, count))
    _, label = connected_components(graph.tocsr(), directed=False)
    _, first, number = np.unique(label, return_index=True, return_inverse=True)
    rank = np.empty(first.size, dtype=np.int64)
    rank[np.argsort(first)] = np.arange(first.size)
    return np.asarray(rank[number], dtype=np.int64)


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


#: Proposals by family are made up to this many dimensions, letters or multipliers.
MOST_GENERATORS = 64


def arc_image(topology: Topology, image: I64) -> I64 | None:
    """Where an automorphism takes every arc, shape ``(m,)``; None if the permutation is no automorphism.

    Equal parallel arcs keep their order, so that images of arcs compose as images of vertices do.

    Parameters
    ----------
    topology
        The graph.
    image
        Image of every vertex, shape ``(n,)``.
    """
    n = topology.n
    if image.shape != (n,) or not np.array_equal(np.sort(image), np.arange(n)):
        return None
    if not np.array_equal(np.sort(image[topology.terminals]), topology.terminals):
        return None
    tail, head = image[topology.tail], image[topology.head]
    if not np.array_equal(np.bincount(tail, minlength=n), topology.out_degree):
        return None
    order = np.lexsort((topology.capacity, head, tail))
    if not (
        np.array_equal(tail[order], topology.tail)
        and np.array_equal(head[order], topology.head)
        and np.array_equal(topology.capacity[order], topology.capacity)
    ):
        return None
    arcs = np.empty(topology.arcs, dtype=np.int64)
    arcs[order] = np.arange(topology.arcs)
    return arcs


def automorphisms(topology: Topology, *, searched: bool = True) -> tuple[I64, I64]:
    """Generators of a group of automorphisms, every one verified.

    The group need not be all of them, and is trivial where nothing proposed holds.

    Parameters
    ----------
    topology
        The graph.
    searched
        Whether to search (some seconds) where name and numbering leave more than one orbit of terminals.

    Returns
    -------
    vertices, arcs
        Images under each of k generators, shapes ``(k, n)`` and ``(k, m)``; k may be 0.
    """
    vertices, arcs = np.empty((0, topology.n), dtype=np.int64), np.empty((0, topology.arcs), dtype=np.int64)
    orbit = np.arange(topology.n)
    for source in (_of_family, _of_numbering, search)[: 3 if searched else 2]:
        if np.unique(orbit[topology.terminals]).size == 1:
            break
        for image in source(topology, orbit):
            moved = None if np.array_equal(image, np.arange(topology.n)) else arc_image(topology, image)
            if moved is not None:
                vertices, arcs = np.vstack([vertices, image]), np.vstack([arcs, moved])
        orbit = orbits_of(vertices, topology.n)
    return vertices, arcs


def _blocks(topology: Topology) -> int:
    """Copies of the terminals that the vertices are: hosts and the parts of their NICs, numbered alike."""
    parts, rest = divmod(topology.n, max(topology.ranks, 1))
    alike = "+host" in topology.spec and not rest and np.array_equal(topology.terminals, np.arange(topology.ranks))
    return parts if alike else 1


def _carried(topology: Topology, images: Iterator[I64]) -> Iterator[I64]:
    """The same permutation of every block of vertices."""
    parts = _blocks(topology)
    size = topology.n // parts
    shift = size * (np.arange(topology.n) // size)
    for image in images:
        if image.shape == (size,):
            yield np.tile(image, parts) + shift


def _of_numbering(topology: Topology, _orbit: I64) -> Iterator[I64]:
    """Shifts and reflections of the numbers 0 .. n-1, short shifts first."""

    def images() -> Iterator[I64]:
        n = topology.n // _blocks(topology)
        x = np.arange(n)
        for step in range(1, n // 2 + 1):
            if n % step == 0:
                yield (x + step) % n
        yield (-x) % n
        yield n - 1 - x

    return _carried(topology, images())


def _of_family(topology: Topology, _orbit: I64) -> Iterator[I64]:
    """What the name promises; any of it may be untrue."""
    return _carried(topology, _family_images(topology, topology.n // _blocks(topology)))


def _family_images(topology: Topology, n: int) -> Iterator[I64]:
    family = topology.spec.partition(":")[0].partition("+")[0]
    given = dict(topology.parameters)
    shape = next((tuple(v) for v in given.values() if isinstance(v, tuple)), ())
    if family in {"torus", "mesh", "lightpath"} and prod(shape) == n and len(shape) <= MOST_GENERATORS:
        yield from _grid(shape, turned=family == "torus")
    elif family == "hypercube" and n & (n - 1) == 0:
        yield from _grid((2,) * (n.bit_length() - 1), turned=True)
    elif family == "bipartite" and len(shape) == 2 and sum(shape) == n:
        a, b = shape
        left, right = np.arange(a), np.arange(b)
        for turned in ((np.roll(left, -1), right), (left, np.roll(right, -1))):
            yield np.concatenate([turned[0], a + turned[1]])
        for side, at in ((a, 0), (b, a)):
            if side > 1:
                yield _transposed(n, at, at + 1)
        if a == b:
            yield np.concatenate([a + left, right])
    elif family == "complete" and n > 1:
        yield _transposed(n, 0, 1)
    elif family == "circulant":
        yield from _multiplications(topology, n)
    elif family in {"kautz", "debruijn"} and topology.n == n:
        yield from _letters([tuple(label.split(".")) if "." in label else tuple(label) for label in topology.labels])
    elif family == "genkautz" and isinstance(degree := given.get("d"), int) and 1 < degree < n:
        length = round(log(n, degree))
        if degree**length == n:
            yield from _letters(_negative_digits(n, degree, length))


def _transposed(n: int, u: int, v: int) -> I64:
    image = np.arange(n)
    image[[u, v]] = v, u
    return image


def _grid(shape: tuple[int, ...], *, turned: bool) -> Iterator[I64]:
    """Shifts (``turned``), reflections and swaps of equal dimensions of a grid in row-major numbering."""
    nodes = np.arange(prod(shape)).reshape(shape)
    for axis, size in enumerate(shape):
        if turned and size > 1:
            yield np.roll(nodes, -1, axis=axis).ravel()
    for axis, size in enumerate(shape):
        if size > 2 or not turned:  # about 0 where shifts do the rest
            yield np.roll(np.flip(nodes, axis=axis), int(turned), axis=axis).ravel()
    last: dict[int, int] = {}
    for axis, size in enumerate(shape):
        if size > 1 and size in last:
            yield np.swapaxes(nodes, last[size], axis).ravel()
        last[size] = axis


def _multiplications(topology: Topology, n: int) -> Iterator[I64]:
    """Multiplications of Z_n by units that map the jumps out of 0 to themselves."""
    jumps = np.unique(topology.head[topology.tail == 0])
    made = 0
    for unit in range(2, n):
        if gcd(unit, n) == 1 and np.array_equal(np.unique(jumps * unit % n), jumps):
            yield np.arange(n) * unit % n
            made += 1
            if made == MOST_GENERATORS:
                return


def _negative_digits(n: int, base: int, length: int) -> list[tuple[str, ...]]:
    """Digits of x - c to the base -d for x = 0 .. n-1, n = d^length, where (d+1) c = -d mod n."""
    left = (np.arange(n) + base * pow(base + 1, -1, n)) % n
    digits = np.empty((n, length), dtype=np.int64)
    for k in range(length):
        digits[:, k] = left % base
        left = (digits[:, k] - left) // base % base ** (length - k)
    return [tuple(map(str, word)) for word in digits.tolist()]


def _letters(words: list[tuple[str, ...]]) -> Iterator[I64]:
    """Swaps of neighbouring letters in words that name the vertices."""
    number = {word: v for v, word in enumerate(words)}
    letters = sorted({letter for word in words for letter in word}, key=lambda s: (len(s), s))
    for one, other in islice(pairwise(letters), MOST_GENERATORS):
        swap = {one: other, other: one}
        images = [number.get(tuple(swap.get(letter, letter) for letter in word)) for word in words]
        if None not in images:
            yield np.array(images, dtype=np.int64)

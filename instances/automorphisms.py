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
    small graphs       a search by colour refinement (:mod:`instances.automorphism_search`) where all this leaves
                       more than one orbit
"""

from __future__ import annotations

from itertools import islice, pairwise
from math import gcd, log, prod
from typing import TYPE_CHECKING

import numpy as np

from instances.automorphism_search import search
from instances.orbits import orbits_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from instances.topology import Topology

    I64 = NDArray[np.int64]

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

r"""Automorphisms of a topology, proposed by its family, by its numbering or by a search, and verified.

An automorphism is a permutation sigma of the vertices that maps arcs to arcs of the same capacity, with their
multiplicities, and terminals to terminals. Every proposal is verified by :func:`arc_image`, so
``torus:4x4+fail=1`` keeps exactly those symmetries that survive the failure.

Proposals, in this order, until all terminals lie in one orbit
    family      permutations that the family declares (``automorphisms=`` of :func:`opticoll.instances.spec.family`)
    numbering   shifts :math:`x \to x + k` for divisors k of n, and the reflections :math:`x \to -x` and
                :math:`x \to -1-x`
    search      colour refinement; skipped with ``searched=False``

With ``+host``, every permutation of the network is applied to both hosts and NICs.

The search refines colours, see :mod:`opticoll.instances.coloured_graphs`. With two different graphs it finds
isomorphisms, see :func:`isomorphism`.
"""

from __future__ import annotations

import hashlib
from itertools import chain, islice
from typing import TYPE_CHECKING

import numpy as np

from opticoll.instances.coloured_graphs import ColouredGraph, ColourSearch
from opticoll.instances.families.modifiers import line
from opticoll.instances.spec import family_of, parse
from opticoll.plugin_faults import blaming

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from opticoll.instances.topology import F64, I64, Topology
    from opticoll.types import Json

#: Maximum number of proposals of a family that are verified.
MOST_GENERATORS = 64
#: Budget of a search: refinements times vertices and arcs.
MOST_WORK = 16_000_000
#: Maximum number of pairs individualised in one candidate.
MOST_DEPTH = 12
#: The same limits for an isomorphism between two topologies.
MOST_REFINEMENTS, MOST_LEVELS = 10_000, 200
#: Largest topologies that are compared, see :func:`isomorphism_classes`.
MOST_COMPARED = 2000
#: From so many vertices on, symmetries take less time than the shortest paths that they save.
MANY_VERTICES = 1000
#: Distances that are computed at a time.
MOST_DISTANCES = 2_000_000
#: Maximum number of vertices up to which walks are counted to distinguish topologies.
MOST_WALKED = 128


def automorphisms(topology: Topology, *, searched: bool = True) -> tuple[I64, I64]:
    """Generators of a group of automorphisms, each verified.

    The group may be a proper subgroup of all automorphisms.

    Parameters
    ----------
    topology
        The graph.
    searched
        Whether to search (some seconds) if family and numbering leave more than one orbit of terminals.

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


def one_of_each_orbit(topology: Topology, lengths: F64) -> tuple[I64, I64]:
    """Places among the terminals of one of each orbit, and sizes of the orbits, under automorphisms that keep lengths.

    Its distances to all terminals are those of the others of its orbit.
    """
    vertices, arcs = automorphisms(topology, searched=False)
    keep = [bool(np.array_equal(lengths[image], lengths)) for image in arcs]
    orbit = orbits_of(vertices[keep], topology.n)[topology.terminals]
    _, first, times = np.unique(orbit, return_index=True, return_counts=True)
    return first, times


def diameter(topology: Topology) -> float:
    """Largest hop distance between two terminals, from one terminal of each orbit; ``inf`` if a pair is unreachable."""
    from scipy.sparse.csgraph import dijkstra

    ones, most = np.ones(topology.arcs), 0.0
    ends, graph = topology.terminals[one_of_each_orbit(topology, ones)[0]], topology.length_matrix(ones)
    step = max(1, MOST_DISTANCES // topology.n)
    for first in range(0, ends.size, step):
        reach = dijkstra(graph, indices=ends[first : first + step], unweighted=True)
        most = max(most, float(reach[:, topology.terminals].max()))
    return most


def arc_image(topology: Topology, image: I64) -> I64 | None:
    """Image of every arc under an automorphism, shape ``(m,)``; None if the permutation is not an automorphism.

    Equal parallel arcs keep their order, so that images of arcs compose like images of vertices.

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


def isomorphism(first: Topology, second: Topology) -> I64 | None:
    """Find an isomorphism between two topologies: arcs to arcs of the same capacity, terminals to terminals.

    Returns
    -------
    image
        The vertex of ``second`` for every vertex of ``first``, shape ``(n,)``, verified. None if none exists, or if
        the limited search finds none.
    """
    if (first.n, first.arcs, first.num_ranks) != (second.n, second.arcs, second.num_ranks):
        return None
    if not np.array_equal(np.sort(first.capacity), np.sort(second.capacity)):
        return None
    state = ColourSearch(*_coloured(first, second), work=0, depth=MOST_LEVELS)
    state.left = MOST_REFINEMENTS
    colours = state.refined(state.first)
    source, target = colours[: first.n], colours[first.n :]
    if not np.array_equal(np.sort(source), np.sort(target)):
        return None
    size = np.bincount(source)
    root = int(np.argmin(size[source]))
    for v in np.flatnonzero(target == source[root]).tolist():
        if state.spent:
            return None
        image = state.extend(root, v)
        if image is not None and first.relabelled(image) == _plain(second):
            return image
    return None


def isomorphism_classes(topologies: Sequence[Topology]) -> list[int]:
    """Class of every topology: the position of the first topology in the sequence to which it is isomorphic.

    Topologies of more than :data:`MOST_COMPARED` vertices, and pairs that the limited search does not decide, count as
    isomorphic only if they are equal.
    """
    equal: dict[str, int] = {}
    alike: dict[bytes, list[int]] = {}
    classes: list[int] = []
    for place, topology in enumerate(topologies):
        known = equal.get(topology.hash)
        if known is None and topology.n <= MOST_COMPARED:
            bucket = alike.setdefault(_invariant(topology), [])
            known = next((one for one in bucket if isomorphism(topologies[one], topology) is not None), None)
            if known is None:
                bucket.append(place)
        classes.append(place if known is None else known)
        equal.setdefault(topology.hash, classes[-1])
    return classes


def _invariant(topology: Topology) -> bytes:
    """Digest that isomorphic topologies share: degrees, capacities, distances and numbers of walks."""
    n = topology.n
    ends = topology.is_terminal.astype(np.int64)
    hops = np.where(np.isfinite(topology.hops), topology.hops, -1).astype(np.int64)
    columns = [ends[:, None], topology.out_degree[:, None], topology.in_degree[:, None], np.sort(hops.T, axis=1)]
    if n <= MOST_WALKED:
        arcs = np.zeros((n, n), dtype=np.int64)
        np.add.at(arcs, (topology.tail, topology.head), 1)
        walks = arcs
        with np.errstate(over="ignore"):
            for _ in range(6):
                walks = walks @ arcs
                columns += [np.diag(walks)[:, None], np.sort(walks, axis=1), np.sort(walks, axis=0).T]
            columns += [np.sort(arcs @ arcs.T, axis=1), np.sort(arcs.T @ arcs, axis=1)]
    table = np.hstack(columns)
    digest = hashlib.sha256(np.array([n, topology.arcs]).tobytes())
    digest.update(np.sort(topology.capacity).tobytes())
    digest.update(table[np.lexsort(table.T)].tobytes())
    return digest.digest()


def _plain(topology: Topology) -> Topology:
    """Copy only the arcs, capacities and terminals, without the data of a subclass."""
    return topology.relabelled(np.arange(topology.n))


def orbits_of(images: I64, count: int) -> I64:
    """Orbit of every element 0 .. count-1 under permutations ``(k, count)``, numbered from 0 by smallest element."""
    least, before = np.arange(count), np.zeros(count, dtype=np.int64)
    while (least != before).any():
        before = least.copy()
        for image in images:
            lower = np.minimum(least, least[image])
            np.minimum.at(least, least[image], lower)  # also of the rest that has the same least element so far
            least = np.minimum(least, lower)
        least = least[least]
    return np.unique(least, return_inverse=True)[1]


def _blocks(topology: Topology) -> int:
    """Number of vertex blocks with the same numbering: hosts and the parts of their NICs with ``+host``, else 1."""
    parts, rest = divmod(topology.n, max(topology.num_ranks, 1))
    alike = "+host" in topology.spec and not rest and np.array_equal(topology.terminals, np.arange(topology.num_ranks))
    return parts if alike else 1


def _in_every_block(topology: Topology, images: Iterable[I64]) -> Iterator[I64]:
    """Permutations of one block of vertices, applied to every block."""
    parts = _blocks(topology)
    size = topology.n // parts
    offset = size * (np.arange(topology.n) // size)
    for image in images:
        if image.shape == (size,):
            yield np.tile(image, parts) + offset


def _of_family(topology: Topology, _orbit: I64) -> Iterator[I64]:
    """Permutations that the family declares."""
    known = family_of(topology)
    base, is_line, times = topology.spec.rpartition("+line=")
    if is_line and times.isdecimal():
        yield from _of_line_digraph(parse(base), int(times))
    elif known is not None and known[0].automorphisms is not None:
        yield from _in_every_block(topology, _declared(known[0].automorphisms, known[1]))


def _declared(automorphisms: Callable[..., Iterable[I64]], arguments: Mapping[str, Json]) -> Iterator[I64]:
    """Permutations that a family's function yields, up to a limit."""
    with blaming(automorphisms):
        for image in islice(automorphisms(**arguments), MOST_GENERATORS):
            yield np.asarray(image, dtype=np.int64)


def _of_line_digraph(base: Topology, times: int) -> Iterator[I64]:
    """Automorphisms of the digraph whose line digraph was taken, as permutations of its arcs."""
    images = list(automorphisms(base, searched=False)[0])
    for _ in range(times):
        images = [moved for image in images if (moved := arc_image(base, image)) is not None]
        base = line(base, 1)
    yield from images


def _of_numbering(topology: Topology, _orbit: I64) -> Iterator[I64]:
    """Shifts of the vertex numbers 0 .. n-1, shortest first, and reflections."""
    n = topology.n // _blocks(topology)
    x = np.arange(n)
    shifts = ((x + step) % n for step in range(1, n // 2 + 1) if n % step == 0)
    yield from _in_every_block(topology, chain(shifts, [(-x) % n, n - 1 - x]))


def search(topology: Topology, orbit: I64) -> Iterator[I64]:
    """Candidate automorphisms that join orbits of terminals, at most one for each remaining orbit.

    Parameters
    ----------
    topology
        The graph.
    orbit
        Orbits found so far, shape ``(n,)``.
    """
    state = ColourSearch(*_coloured(topology), work=MOST_WORK, depth=MOST_DEPTH)
    orbit = orbit.copy()
    colours = state.refined(state.first)
    ends = topology.terminals
    roots: list[int] = []
    for root in ends[np.unique(orbit[ends], return_index=True)[1]].tolist():
        if orbit[root] in orbit[roots]:
            continue  # meanwhile joined to an earlier root
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
            orbit = orbits_of(np.stack([image, _next_of_class(orbit)]), topology.n)


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


def _coloured(*topologies: Topology) -> list[ColouredGraph]:
    """The topologies as graphs whose kinds of arcs are capacities; terminals have a colour of their own."""
    _, kind = np.unique(np.concatenate([one.capacity for one in topologies]), return_inverse=True)
    result, start = [], 0
    for one in topologies:
        colour = one.is_terminal.astype(np.int64)
        result.append(ColouredGraph(colour, one.tail, one.head, kind[start : start + one.arcs]))
        start += one.arcs
    return result

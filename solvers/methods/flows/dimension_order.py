"""Shortest paths through one dimension of a product of networks after the other (tori, meshes, hypercubes)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.compiled import compiled
from opticoll.compiled_arrays import max_of
from opticoll.formulations.flows.path_sets import PathSet

if TYPE_CHECKING:
    from opticoll.instances.topology import I64, Topology

#: Most shortest paths that are listed, of all pairs and of one.
MOST_PATHS, MOST_OF_PAIR = 2_000_000, 32
#: Most triples of a vertex and two of its neighbours among which squares are looked for.
MOST_TRIPLES = 2_000_000


def arc_groups(topology: Topology) -> I64:
    """Group of every arc, from 0, ``(m,)``: links of one dimension of a product of networks.

    Two links are alike if they are opposite in a square without chords that two incident links span alone, or incident
    and span none or several (Feder, J. Graph Theory 16(5), 1992; Imrich & Peterin, Discrete Mathematics 307, 2007).
    Groups are the classes of the transitive closure: the dimensions of a mesh, torus or hypercube (of a ring of four,
    which is a square, two), and those of a torus with twists. One group where some link has one direction only.
    """
    import scipy.sparse as sp
    from scipy.sparse.csgraph import connected_components

    tail, head = topology.tail.tolist(), topology.head.tolist()
    neighbours: list[set[int]] = [set() for _ in range(topology.n)]
    for u, v in zip(tail, head, strict=True):
        neighbours[u].add(v)
    links = {
        pair: number for number, pair in enumerate(sorted({(min(e), max(e)) for e in zip(tail, head, strict=True)}))
    }
    two_way = all(u in neighbours[v] for u, v in links) and all(v in neighbours[u] for u, v in links)
    if not two_way or sum(len(near) ** 2 for near in neighbours) > MOST_TRIPLES:
        return np.zeros(topology.arcs, dtype=np.int64)

    def link(u: int, v: int) -> int:
        return links[min(u, v), max(u, v)]

    alike: list[tuple[int, int]] = []
    for x, near in enumerate(neighbours):
        for y in near:
            for z in near:
                if y >= z:
                    continue
                corners = neighbours[y] & neighbours[z] - near - {x} if z not in neighbours[y] else set[int]()
                if len(corners) == 1:
                    (w,) = corners
                    alike += [(link(x, y), link(z, w)), (link(x, z), link(y, w))]
                else:
                    alike.append((link(x, y), link(x, z)))
    ends = np.array(alike, dtype=np.int64).reshape(-1, 2)
    graph = sp.coo_array((np.ones(ends.shape[0]), tuple(ends.T)), shape=(len(links), len(links)))
    label = connected_components(graph, directed=False)[1].astype(np.int64)
    return label[[link(u, v) for u, v in zip(tail, head, strict=True)]]


def dimension_ordered(topology: Topology, pairs: tuple[I64, I64], group: I64, seed: int) -> PathSet:
    """Some shortest paths of every pair, along which the groups of the arcs do not descend.

    ``group`` becomes one group if some pair has no such path.
    """
    ends, number = np.array(pairs, dtype=np.int64), pairs[0].size
    first_out = np.searchsorted(topology.tail, np.arange(topology.n + 1))
    reach = topology.distances(np.ones(topology.arcs))
    hops = np.where(np.isfinite(reach), reach, topology.n).astype(np.int64)
    most = int(np.clip(MOST_PATHS // number, 1, MOST_OF_PAIR))
    start, none = np.zeros(most * number + 1, dtype=np.int64), np.empty(0, dtype=np.int64)
    listing = first_out, topology.head, group, hops, ends, most, seed
    if grouped_shortest(*listing, none, start):
        group[:] = 0
        grouped_shortest(*listing, none, start)
    arcs = np.empty(start[-1], dtype=np.int64)
    grouped_shortest(*listing, arcs, start)
    some = np.diff(start) > 0
    return PathSet(topology, *pairs, arcs, np.append(0, start[1:][some]), np.repeat(np.arange(number), most)[some])


@compiled(nogil=True)
def grouped_shortest(
    first_out: I64, head: I64, group: I64, hops: I64, ends: I64, most: int, seed: int, arcs: I64, start: I64
) -> int:
    """List up to ``most`` shortest paths of every pair along which the groups of the arcs do not descend.

    Parameters
    ----------
    group
        Group of every arc, ``(m,)``.
    hops
        Distance from every vertex to every other one, ``(n, n)``.
    ends
        Source and target of every pair, ``(2, K)``.
    seed
        Of the random order in which arcs out of a vertex are followed.
    arcs, start
        Path p gets ``arcs[start[p]:start[p + 1]]``; pair k the paths ``most * k .. most * k + most - 1``, of which
        those that do not exist are empty. ``arcs`` may be empty: then only ``start`` is written.

    Returns
    -------
    Number of pairs without such a path.
    """
    np.random.seed(seed)  # noqa: NPY002 - the generator of the compiled code
    longest = max_of(hops) + 1
    vertex, tried = np.empty(longest + 1, dtype=np.int64), np.empty(longest + 1, dtype=np.int64)
    turn, step = np.empty(longest + 1, dtype=np.int64), np.empty(longest + 1, dtype=np.int64)
    lost = total = 0
    start[0] = 0
    for k in range(ends.shape[1]):
        t, count, depth = ends[1, k], 0, 0
        vertex[0], tried[0], turn[0] = ends[0, k], 0, np.random.randint(1 << 30)  # noqa: NPY002
        while depth >= 0 and count < most:
            u = vertex[depth]
            degree = first_out[u + 1] - first_out[u]
            if u == t:
                for i in range(depth if arcs.size else 0):
                    arcs[total + i] = step[i]
                total, count = total + depth, count + 1
                start[most * k + count] = total
                depth -= 1
            elif tried[depth] == degree:
                depth -= 1
            else:
                a = first_out[u] + (turn[depth] + tried[depth]) % degree
                tried[depth] += 1
                if hops[head[a], t] + 1 == hops[u, t] and (depth == 0 or group[a] >= group[step[depth - 1]]):
                    step[depth], depth = a, depth + 1
                    vertex[depth], tried[depth] = head[a], 0
                    turn[depth] = np.random.randint(1 << 30)  # noqa: NPY002
        lost += count == 0
        start[most * k + count + 1 : most * (k + 1) + 1] = total
    return lost

"""Schedules by construction: all-to-all and broadcast on an intact mesh, all-gather around a ring.

Source  opticoll; every use is checked by :func:`opticoll.formulations.rounds.round_schedule.violations`

All-to-all by permutations whose load is balanced over the waveguides (:func:`mesh_exchange`). A pair (i, j) -> (i', j')
follows its row to column j', then that column (XY). Decompose all pairs (j, j') of a line of c tiles into c
permutations sigma, those of a line of r into tau; the products of both are N = r c permutations of the mesh that
contain every pair once. If sigma has load rho (its busiest arc), its moves fall into rho classes a(j) of load one
(colouring intervals), those of tau into gamma classes b(i); with m = ceil(max(rho, gamma) / W) the circuits of class
(a + b) mod m load no arc, of a row or a column, above W: m colours per product.

    balanced    c = 2 h even: (b, x) -> (b + f(x), pi(x)), pi the reflections x -> k - x of Z_h, f in {0, 1} different
                on the two ends of every pair of pi, and 1 - f: load ceil(c / 4) or floor(c / 4), which sum up to
                floor(c^2 / 4), the cut. So on c >= r the products take r floor(c^2 / 4) / W colours, which is the cut,
                wherever the loads divide. An odd line has those of one tile more, without it.
    shifts      j -> j + k mod c, load min(k, c - k): with W >= floor(max(r, c) / 2) every product is one colour; the
                product of identities moves nothing, so N - 1 colours suffice and every tile always sends. For powers of
                two i -> i xor k does the same.

Broadcast in ceil(log_{L+1} n) rounds (:func:`halving_broadcast`). The mesh is traversed row by row, every other row
backwards. A holder is responsible for a stretch of the walk; in a round it splits the stretch into L + 1 parts of sizes
as equal as possible, keeps its own part, and sends the chunk to one vertex of each other part, each on a separate
wavelength, along the walk. Circuits of one wavelength lie in different stretches, so one waveguide holds them all. This
meets the spread bound: a part has at most ceil(k / (L + 1)) of k vertices.

All-gather around a ring, on any connected topology (:func:`ring_all_gather`). The ring visits the ranks in depth-first
order of a spanning tree, with circuits along the tree: together these use every arc of the tree once in each direction,
so one wavelength of one waveguide holds the ring. In every round each rank forwards the chunk it received in the
previous one. With k chunks per shard, wavelength w carries the chunks ``w, w + L, ...`` of every shard:
(p - 1) ceil(k / L) rounds on p ranks, which is optimal where L divides k.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.rounds.round_schedule import direct
from opticoll.formulations.rounds.segments import offsets, select
from opticoll.instances.photonics import LightpathMesh
from opticoll.solvers.methods.lumorph.assignment import intact

if TYPE_CHECKING:
    from opticoll.formulations.rounds.collectives import Collective
    from opticoll.formulations.rounds.round_schedule import RoundSchedule
    from opticoll.instances.topology import I64, Topology


def shifts(c: int) -> I64:
    """All cyclic shifts of c tiles, ``(c, c)``, the identity first."""
    j = np.arange(c)
    return (j[:, None] + j) % c


def balanced(c: int) -> I64:
    """Permutations of an even number of tiles with load ceil(c/4) or floor(c/4), ``(c, c)``, see the module."""
    h = c // 2
    x = np.arange(h)
    permutations = []
    for k in range(h):
        pi = (k - x) % h
        f = (x > pi).astype(np.int64)
        fixed = np.flatnonzero(pi == x)
        f[fixed] = np.arange(fixed.size) % 2
        for flip in (f, 1 - f):
            permutations.append(np.concatenate([flip * h + pi, (1 - flip) * h + pi]))
    return np.array(permutations)


def line_load(permutation: I64) -> int:
    """Circuits on the busiest arc of a line, each direction counted separately."""
    j = np.arange(permutation.size)
    worst = 0
    for low, high in ((j, permutation), (permutation, j)):
        moves = (low < high) & (permutation >= 0)
        ends = np.bincount(low[moves], minlength=j.size) - np.bincount(high[moves], minlength=j.size)
        worst = max(worst, int(np.cumsum(ends).max(initial=0)))
    return worst


def line_classes(permutation: I64) -> I64:
    """Classes of load one, ``line_load`` many: an interval colouring of the moves in each direction, ``(c,)``."""
    c = permutation.size
    classes = np.zeros(c, dtype=np.int64)
    for right in (True, False):
        moves = [j for j in range(c) if (permutation[j] > j if right else 0 <= permutation[j] < j)]
        moves.sort(key=lambda j: min(j, int(permutation[j])))
        free_at: list[int] = []
        for j in moves:
            low, high = sorted((j, int(permutation[j])))
            k = next((k for k, end in enumerate(free_at) if end <= low), len(free_at))
            if k == len(free_at):
                free_at.append(high)
            free_at[k] = high
            classes[j] = k
    return classes


def decompositions(c: int, waveguides: int) -> list[I64]:
    """Candidate decompositions of all pairs of a line for this number of waveguides."""
    if c == 1:
        return [np.zeros((1, 1), dtype=np.int64)]
    result = [shifts(c)]
    if waveguides < c // 2:
        pairs = balanced(c + c % 2)[:, :c]
        result.append(np.where(pairs < c, pairs, -1))
    return result


def mesh_exchange(rows: int, columns: int, waveguides: int, in_rows: int | None = None) -> tuple[I64, int]:
    """Colour of every ordered pair of tiles, ``(n, n)`` with -1 on the diagonal, and their number; XY routes.

    ``in_rows`` is the smallest number of waveguides, or fibres, of an arc along a row, if that is not ``waveguides``.
    """
    in_rows = waveguides if in_rows is None else in_rows
    best: tuple[int, I64, I64] | None = None
    for sigma in decompositions(columns, in_rows):
        rho = np.array([line_load(permutation) for permutation in sigma])
        for tau in decompositions(rows, waveguides):
            gamma = np.array([line_load(permutation) for permutation in tau])
            count = int(np.maximum(-(-rho[:, None] // in_rows), -(-gamma // waveguides)).sum())
            if best is None or count < best[0]:
                best = count, sigma, tau
    assert best is not None
    total, sigma, tau = best
    n = rows * columns
    colour = np.full((n, n), -1, dtype=np.int64)
    tiles = np.arange(n)
    i, j = np.divmod(tiles, columns)
    across = [(line_classes(permutation), line_load(permutation)) for permutation in tau]
    first = 0
    for permutation in sigma:
        a, rho_one = line_classes(permutation), line_load(permutation)
        moving = permutation[j] >= 0
        for vertical, (b, gamma_one) in zip(tau, across, strict=True):
            many = max(-(-rho_one // in_rows), -(-gamma_one // waveguides))
            if many:
                goes = np.flatnonzero(moving & (vertical[i] >= 0))
                k, row, column = tiles[goes], i[goes], j[goes]
                colour[k, vertical[row] * columns + permutation[column]] = first + (a[column] + b[row]) % many
            first += many
    assert first == total
    np.fill_diagonal(colour, -1)
    return colour, total


def halving_broadcast(topology: Topology, collective: Collective, wavelengths: int) -> RoundSchedule | None:
    """The broadcast of the module; None unless on an intact mesh, with one chunk and one holder."""
    delivered = np.unique(collective.deliveries[:, 0])
    if not isinstance(topology, LightpathMesh) or not intact(topology) or delivered.size != 1:
        return None
    chunk = int(delivered[0])
    holders = collective.pre[collective.pre[:, 0] == chunk, 1]
    if holders.size != 1:
        return None
    rows, columns = topology.shape
    tiles = np.arange(topology.n).reshape(rows, columns)
    tiles[1::2] = tiles[1::2, ::-1]
    walk = tiles.ravel()
    arc_of = {(u, v): a for a, (u, v) in enumerate(zip(topology.tail.tolist(), topology.head.tolist(), strict=True))}
    takes_part = np.zeros(topology.n, dtype=bool)
    takes_part[collective.deliveries[:, 1]] = True
    takes_part[holders] = True
    # Positions of the participants on the walk; a stretch is a range of this list.
    places = np.flatnonzero(takes_part[walk])
    root = int(np.flatnonzero(walk[places] == holders[0])[0])
    stretches = [(0, places.size, root)]
    circuits: list[tuple[int, int, int, int]] = []
    paths: list[list[int]] = []
    rounds = 0
    while any(last - first > 1 for first, last, _ in stretches):
        split = []
        for first, last, at in stretches:
            parts = min(wavelengths + 1, last - first)
            edges = first + (last - first) * np.arange(parts + 1) // parts
            wave = 0
            for low, high in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
                if low <= at < high:
                    split.append((low, high, at))
                    continue
                to = (low + high - 1) // 2
                step = 1 if to > at else -1
                way = walk[np.arange(places[at], places[to] + step, step)].tolist()
                paths.append([arc_of[u, v] for u, v in pairwise(way)])
                circuits.append((rounds, int(way[0]), int(way[-1]), wave))
                wave += 1
                split.append((low, high, to))
        stretches, rounds = split, rounds + 1
    when, source, target, wavelength = np.array(circuits, dtype=np.int64).T
    start = offsets([len(path) for path in paths])
    arcs = [arc for path in paths for arc in path]
    return direct(when, source, target, np.full(when.size, chunk), wavelength, start, arcs)


def ring_all_gather(topology: Topology, collective: Collective, wavelengths: int) -> RoundSchedule | None:
    """The all-gather of the module; None for other collectives, or without a bidirectional spanning tree."""
    shards = _shards(collective)
    if shards is None:
        return None
    ranks, chunks = shards
    walk = _tree_walk(topology, int(ranks[0]))
    if walk is None or not np.isin(ranks, walk[0]).all():
        return None
    order, start, arcs = _ring(topology.n, ranks, *walk)
    p, pieces = chunks.shape
    place = np.empty(topology.n, dtype=np.int64)
    place[ranks] = np.arange(p)
    laps = -(-pieces // wavelengths)
    lap, step, at, w = (index.ravel() for index in np.indices((laps, p - 1, p, wavelengths)))
    piece = lap * wavelengths + w
    real = piece < pieces
    lap, step, at, w, piece = (index[real] for index in (lap, step, at, w, piece))
    # In step t the rank at position k of the ring forwards the shard from t positions before it.
    chunk = chunks[place[order[(at - step) % p]], piece]
    return direct(lap * (p - 1) + step, order[at], order[(at + 1) % p], chunk, w, *select(start, arcs, at))


def _shards(collective: Collective) -> tuple[I64, I64] | None:
    """Ranks and the chunks of each, ``(p, pieces)``, of an all-gather of equal shards; None for other collectives."""
    ranks, count = np.unique(collective.pre[:, 1], return_counts=True)
    complete = np.array_equal(np.unique(collective.post[:, 1]), ranks) and len(collective.post) == (
        collective.chunks * ranks.size
    )
    if ranks.size < 2 or not complete or (count != count[0]).any() or (collective.holders != 1).any():
        return None
    order = np.lexsort((collective.pre[:, 0], collective.pre[:, 1]))
    return ranks, collective.pre[order, 0].reshape(ranks.size, -1)


def _tree_walk(topology: Topology, root: int) -> tuple[I64, I64] | None:
    """Vertices and arcs of the walk around a depth-first tree from ``root`` over bidirectional links.

    ``vertices[i + 1]`` is the head of ``arcs[i]``; every reachable vertex is visited.
    """
    import networkx as nx

    arc_of = {(u, v): a for a, (u, v) in enumerate(zip(topology.tail.tolist(), topology.head.tolist(), strict=True))}
    graph: nx.DiGraph[int] = nx.DiGraph([(u, v) for u, v in arc_of if (v, u) in arc_of])
    edges = nx.dfs_labeled_edges(graph, root) if root in graph else ()
    walk = [(u, v) if way == "forward" else (v, u) for u, v, way in edges if way != "nontree" and u != v]
    if not walk:
        return None
    return np.array([root, *(v for _, v in walk)]), np.array([arc_of[step] for step in walk], dtype=np.int64)


def _ring(n: int, ranks: I64, vertices: I64, arcs: I64) -> tuple[I64, I64, I64]:
    """Ranks in the order of their first visit, and the shortened walk from each to the next as paths."""
    first = np.full(n, -1, dtype=np.int64)
    for i, v in reversed(list(enumerate(vertices.tolist()))):
        first[v] = i
    order = ranks[np.argsort(first[ranks])]
    stops = np.append(first[order], vertices.size - 1)
    paths: list[list[int]] = []
    for begin, end in zip(stops[:-1].tolist(), stops[1:].tolist(), strict=True):
        walked: list[int] = []
        at = [int(vertices[begin])]
        for i in range(begin, end):
            v = int(vertices[i + 1])
            if v in at:
                # Remove the detour down a branch and back.
                cut = at.index(v)
                del at[cut + 1 :], walked[cut:]
            else:
                at.append(v)
                walked.append(int(arcs[i]))
        paths.append(walked)
    return order, offsets([len(path) for path in paths]), np.array([a for path in paths for a in path], dtype=np.int64)

r"""All-gather around a ring, in as many rounds as every vertex has chunks to receive, on any connected topology.

The ring visits the ranks in depth-first order of a spanning tree, each to the next over the tree: together these
circuits use every arc of the tree once, in each direction, so one wavelength of one waveguide holds the whole ring. In
every round each rank passes on the chunk it received in the round before. With k chunks a shard, wavelength w carries
the chunks ``w, w + L, ...`` of every shard: (p - 1) ceil(k / L) rounds on p ranks, which is optimal where L divides k.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from formulations.rounds.schedule import direct

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from formulations.rounds.collectives import Collective
    from formulations.rounds.schedule import RoundSchedule
    from instances import Topology

    I64 = NDArray[np.int64]


def ring_all_gather(topology: Topology, collective: Collective, wavelengths: int) -> RoundSchedule | None:
    """The schedule; None where the collective is no all-gather of equal shards, or no spanning tree runs both ways."""
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
    lap, step, at, w = (each.ravel() for each in np.indices((laps, p - 1, p, wavelengths)))
    piece = lap * wavelengths + w
    real = piece < pieces
    lap, step, at, w, piece = (each[real] for each in (lap, step, at, w, piece))
    # In step t the rank at place k of the ring sends on what started t places before it.
    chunk = chunks[place[order[(at - step) % p]], piece]
    length = np.diff(start)[at]
    paths = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(length)])
    taken = np.arange(paths[-1]) - np.repeat(paths[:-1], length) + np.repeat(start[at], length)
    return direct(lap * (p - 1) + step, order[at], order[(at + 1) % p], chunk, w, paths, arcs[taken])


def _shards(collective: Collective) -> tuple[I64, I64] | None:
    """Ranks and the chunks of each, ``(p, pieces)``, if everybody's equally many chunks go to everybody."""
    ranks, count = np.unique(collective.pre[:, 1], return_counts=True)
    wanted = np.array_equal(np.unique(collective.post[:, 1]), ranks) and len(collective.post) == (
        collective.chunks * ranks.size
    )
    if ranks.size < 2 or not wanted or (count != count[0]).any() or (collective.holders != 1).any():
        return None
    order = np.lexsort((collective.pre[:, 0], collective.pre[:, 1]))
    return ranks, collective.pre[order, 0].reshape(ranks.size, -1)


def _tree_walk(topology: Topology, root: int) -> tuple[I64, I64] | None:
    """Vertices and arcs of the walk around a depth-first tree from ``root`` over links that run both ways.

    ``vertices[i + 1]`` is the head of ``arcs[i]``; every vertex within reach is visited.
    """
    arc_of = {(u, v): a for a, (u, v) in enumerate(zip(topology.tail.tolist(), topology.head.tolist(), strict=True))}
    near: list[list[int]] = [[] for _ in range(topology.n)]
    for u, v in arc_of:
        if (v, u) in arc_of:
            near[u].append(v)
    seen, vertices, arcs = {root}, [root], []
    stack = [(root, iter(near[root]))]
    while stack:
        u, rest = stack[-1]
        v = next((v for v in rest if v not in seen), None)
        if v is None:
            stack.pop()
            if stack:
                arcs.append(arc_of[u, stack[-1][0]])
                vertices.append(stack[-1][0])
            continue
        seen.add(v)
        arcs.append(arc_of[u, v])
        vertices.append(v)
        stack.append((v, iter(near[v])))
    return (np.array(vertices), np.array(arcs, dtype=np.int64)) if arcs else None


def _ring(n: int, ranks: I64, vertices: I64, arcs: I64) -> tuple[I64, I64, I64]:
    """Ranks in the order of their first visit, and the shortened walk from each to the next as paths."""
    first = np.full(n, -1, dtype=np.int64)
    for i, v in reversed(list(enumerate(vertices.tolist()))):
        first[v] = i
    order = ranks[np.argsort(first[ranks])]
    stops = np.append(first[order], vertices.size - 1)
    paths: list[list[int]] = []
    for one, other in zip(stops[:-1].tolist(), stops[1:].tolist(), strict=True):
        kept: list[int] = []
        at = [int(vertices[one])]
        for i in range(one, other):
            v = int(vertices[i + 1])
            if v in at:
                # Down a branch and back: cut the detour out.
                cut = at.index(v)
                del at[cut + 1 :], kept[cut:]
            else:
                at.append(v)
                kept.append(int(arcs[i]))
        paths.append(kept)
    start = np.concatenate([[0], np.cumsum([len(path) for path in paths])]).astype(np.int64)
    return order, start, np.array([a for path in paths for a in path], dtype=np.int64)

r"""Broadcast on an intact mesh in ceil(log_{L+1} n) rounds: every holder splits its stretch of a Hamiltonian path.

The mesh is walked row by row, every other row backwards. A holder is responsible for a stretch of the walk; in a round
it splits the stretch into L + 1 parts that are as even as possible, keeps the part it lies in, and sends the chunk to
one vertex of each other part, each on a wavelength of its own, along the walk. Circuits of one wavelength lie in
different stretches, so one waveguide holds them all. This meets the spread bound: a part is at most ceil(k / (L + 1))
of k.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from formulations.rounds.schedule import direct
from instances.lightpath import LightpathMesh
from solvers.rounds.routing import intact

if TYPE_CHECKING:
    from formulations.rounds.collectives import Collective
    from formulations.rounds.schedule import RoundSchedule
    from instances import Topology


def halving_broadcast(topology: Topology, collective: Collective, wavelengths: int) -> RoundSchedule | None:
    """The schedule; None on anything but an intact mesh, and for more chunks or holders than one."""
    wanted = np.unique(collective.deliveries[:, 0])
    if not isinstance(topology, LightpathMesh) or not intact(topology) or wanted.size != 1:
        return None
    chunk = int(wanted[0])
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
    # Places on the walk of those who take part; a stretch is a range of this list.
    places = np.flatnonzero(takes_part[walk])
    root = int(np.flatnonzero(walk[places] == holders[0])[0])
    stretches = [(0, places.size, root)]
    found: list[tuple[int, int, int, int]] = []
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
                found.append((rounds, int(way[0]), int(way[-1]), wave))
                wave += 1
                split.append((low, high, to))
        stretches, rounds = split, rounds + 1
    when, source, target, wavelength = np.array(found, dtype=np.int64).T
    start = np.concatenate([[0], np.cumsum([len(path) for path in paths])])
    arcs = [arc for path in paths for arc in path]
    return direct(when, source, target, np.full(when.size, chunk), wavelength, start, arcs)

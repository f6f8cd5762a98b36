r"""Candidate routes of many circuits at once: the straight ones of a mesh, and shortest ones that avoid loaded arcs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from formulations.base import NotApplicable
from formulations.lumorph.route_sets import RouteSet, straight_routes
from instances.lightpath import LightpathMesh

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from instances import Topology

    I64 = NDArray[np.int64]
    F64 = NDArray[np.float64]

#: Arcs of all candidates together are at most about this many.
MOST_ARCS = 40_000_000
#: How strongly loaded arcs are avoided: a detour of one arc is worth this many times the mean load.
AVERSION = 0.5


def candidates(topology: Topology, sources: I64, targets: I64, trees: int = 2, seed: int = 0) -> RouteSet:
    """Distinct candidates of every pair: whole straight routes of a mesh, and ``trees`` light ones.

    The light routes come from shortest-path trees whose arcs are dearer the more earlier routes are on them. On an
    intact mesh none is added.

    Raises
    ------
    NotApplicable
        If a pair has no route.
    """
    parts: list[tuple[I64, I64, I64]] = []
    every = np.arange(sources.size)
    if isinstance(topology, LightpathMesh):
        bends: tuple[Literal["columns", "rows"], ...] = ("columns", "rows")
        for first in bends:
            start, arcs, whole = straight_routes(topology, sources, targets, first)
            parts.append(_some(every, start, arcs, whole))
    if not isinstance(topology, LightpathMesh) or not intact(topology):
        load = np.zeros(topology.arcs)
        for number in range(max(trees, 1)):
            start, arcs = light_routes(topology, sources, targets, load, seed + number)
            if (np.diff(start) == 0).any():
                k = int(np.argmax(np.diff(start) == 0))
                msg = f"{topology.spec}: no route from vertex {sources[k]} to vertex {targets[k]}; fewer links may fail"
                raise NotApplicable(msg)
            load += np.bincount(arcs, minlength=topology.arcs)
            parts.append((every, start, arcs))
    return _distinct(sources, targets, parts)


def intact(mesh: LightpathMesh) -> bool:
    """Whether no link of the mesh has failed."""
    rows, columns = mesh.shape
    return mesh.arcs == 2 * (rows * (columns - 1) + columns * (rows - 1))


def light_routes(topology: Topology, sources: I64, targets: I64, load: F64, seed: int) -> tuple[I64, I64]:
    """One route a pair, sources in random order, over arcs that are loaded little so far; none where cut off."""
    from solvers.rounds.trees import routes_by_trees

    order = np.argsort(sources, kind="stable")
    first_out = np.searchsorted(topology.tail, np.arange(topology.n + 1))
    mean = float(load.mean()) if load.any() else 1.0
    start, arcs = routes_by_trees(
        first_out, topology.head, topology.tail, sources[order], targets[order], load / max(mean, 1e-300), AVERSION,
        sources.size / max(topology.arcs, 1) * max(topology.n, 4) ** 0.5 / 2, seed,
    )  # fmt: skip
    back = np.argsort(order, kind="stable")
    length = np.diff(start)[back]
    out = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(length)])
    at = np.arange(out[-1]) - np.repeat(out[:-1], length) + np.repeat(start[:-1][back], length)
    return out, arcs[at]


def _some(every: I64, start: I64, arcs: I64, keep: NDArray[np.bool_]) -> tuple[I64, I64, I64]:
    """The pairs that have the route, with it (``arcs`` holds those only)."""
    length = np.diff(start)[keep]
    return every[keep], np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(length)]), arcs


def _distinct(sources: I64, targets: I64, parts: list[tuple[I64, I64, I64]]) -> RouteSet:
    """One set of all parts (pairs, start, arcs), duplicates of a pair dropped, in the order of the parts."""
    pair = np.concatenate([part[0] for part in parts])
    length = np.concatenate([np.diff(part[1]) for part in parts])
    arcs = np.concatenate([part[2] for part in parts])
    start = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(length)])
    # Two sums of random numbers tell routes apart, position by position.
    random = np.random.default_rng(12345)
    names = random.integers(1, 2**62, size=(int(arcs.max(initial=0)) + 1,), dtype=np.int64).astype(np.uint64)
    owner = np.repeat(np.arange(pair.size), length)
    place = np.arange(arcs.size) - start[:-1][owner] + 1
    mixed = names[arcs] * (2 * place.astype(np.uint64) + 1)
    code = np.zeros(pair.size, dtype=np.uint64)
    np.add.at(code, owner, mixed)
    _, keep = np.unique(np.stack([pair.astype(np.uint64), code], axis=1), axis=0, return_index=True)
    keep = keep[np.lexsort((keep, pair[keep]))]
    size = length[keep]
    out = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(size)])
    at = np.arange(out[-1]) - np.repeat(out[:-1], size) + np.repeat(start[:-1][keep], size)
    return RouteSet(sources, targets, pair[keep], out, arcs[at])

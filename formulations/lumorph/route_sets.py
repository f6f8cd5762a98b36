r"""Candidate routes of circuits: straight routes of a mesh, Yen's k shortest, and those of Algorithm 2.

Source  LuMorph, section 3.1, Algorithm 2; Yen 1970 (k shortest simple paths)

The paths of a pair are in order of preference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from opticoll.errors import NotApplicable, refuse
from opticoll.formulations.flows.path_sets import PathSet, k_shortest_paths
from opticoll.formulations.rounds.segments import offsets
from opticoll.instances.photonics import LightpathMesh

if TYPE_CHECKING:
    from opticoll.instances.topology import F64, I64, Mask, Topology

#: Maximum total number of arcs in all routes.
MOST_ARCS = 20_000_000
#: Maximum number of rerouting passes over all circuits.
MOST_SWEEPS = 50


def straight_routes(
    mesh: Topology, sources: I64, targets: I64, first: Literal["columns", "rows"], *, columns: int | None = None
) -> tuple[I64, I64, Mask]:
    """Routes with one bend: ``columns`` goes along the row to the target's column first (XY), ``rows`` vice versa.

    Returns ``start`` ``(K + 1,)``, ``arcs``, and whether each pair has the route, ``(K,)``: failed arcs break some
    routes, which then have no arcs. ``columns`` is the width of the vertices' grid, by default that of the LIGHTPATH
    mesh.
    """
    if columns is None:
        assert isinstance(mesh, LightpathMesh)
        columns = mesh.shape[1]
    step = _steps(mesh, columns)
    begin, end = (np.stack(np.divmod(tiles, columns)) for tiles in (sources, targets))  # rows and columns
    order = (1, 0) if first == "columns" else (0, 1)
    legs = np.abs(end - begin)
    length, lead = legs.sum(axis=0), legs[order[0]]
    start, owner = offsets(length), np.repeat(np.arange(sources.size), length)
    at = np.arange(start[-1]) - start[:-1][owner]
    moved = np.empty((2, owner.size), dtype=np.int64)
    moved[list(order)] = np.minimum(at, lead[owner]), np.maximum(at - lead[owner], 0)
    i, j = begin[:, owner] + np.sign(end - begin)[:, owner] * moved
    back, level = (end < begin)[:, owner], (at < lead[owner]) == (first == "columns")
    arcs = step[i * columns + j, np.where(level, back[1], 2 + back[0])]
    whole = np.ones(sources.size, dtype=bool)
    whole[owner[arcs < 0]] = False
    return offsets(np.where(whole, length, 0)), arcs[whole[owner]], whole


def _steps(mesh: Topology, columns: int) -> I64:
    """Arc from every tile to its right, left, lower and upper neighbour, ``(n, 4)``; -1 if there is none."""
    step = np.full((mesh.n, 4), -1, dtype=np.int64)
    for direction, move in enumerate((1, -1, columns, -columns)):
        mask = mesh.head - mesh.tail == move
        if columns == 1:
            mask &= direction >= 2
        step[mesh.tail[mask], direction] = np.flatnonzero(mask)
    return step


def candidate_routes(topology: Topology, sources: I64, targets: I64, kind: str, k: int) -> PathSet:
    """List at most k routes per pair.

    ``straight``: the intact routes with one bend (one if they coincide), then Yen's shortest up to k; ``yen``: the
    k shortest only; ``algorithm-2``: one route per pair, see :func:`least_overlap_routes`. Routes of a pair are
    distinct, best first.

    Raises
    ------
    NotApplicable
        If a pair has no route, there are too many routes, or those of Algorithm 2 are unknown.
    """
    if int(sources.size) * k * 2 > MOST_ARCS:
        msg = f"{sources.size:,} circuits with {k} routes each on {topology.spec} are too many to list; lower paths"
        raise NotApplicable(msg)
    if kind == "algorithm-2":
        return least_overlap_routes(topology, sources, targets)
    results: list[list[list[int]]] = [[] for _ in range(sources.size)]
    straight = kind == "straight" and isinstance(topology, LightpathMesh)
    if straight:
        results = [bent[:k] for bent in _bent_routes(topology, sources, targets)]
    for known, s, d in zip(results, sources.tolist(), targets.tolist(), strict=True):
        if len(known) >= k or (straight and known and k <= 2 and _in_line(topology, s, d)):
            continue
        known += [path for path in k_shortest_paths(topology, s, d, k + len(known)) if path not in known]
        del known[k:]
        if not known:
            refuse(topology.spec, f"no route from vertex {s} to vertex {d}; use fewer failed links", NotApplicable)
    return _path_set(topology, sources, targets, results)


def _path_set(topology: Topology, sources: I64, targets: I64, paths: list[list[list[int]]]) -> PathSet:
    pair = np.repeat(np.arange(len(paths)), [len(each) for each in paths])
    flat = [path for each in paths for path in each]
    arcs = np.array([arc for path in flat for arc in path], dtype=np.int64)
    return PathSet(topology, sources, targets, arcs, offsets([len(path) for path in flat]), pair)


def _bent_routes(mesh: Topology, sources: I64, targets: I64) -> list[list[list[int]]]:
    """The different intact routes of every pair with at most one bend, along the row first."""
    results: list[list[list[int]]] = [[] for _ in range(sources.size)]
    orders: tuple[Literal["columns", "rows"], ...] = ("columns", "rows")
    for first in orders:
        start, arcs, whole = straight_routes(mesh, sources, targets, first)
        for pair in np.flatnonzero(whole).tolist():
            path = arcs[start[pair] : start[pair + 1]].tolist()
            if path not in results[pair]:
                results[pair].append(path)
    return results


def least_overlap_routes(topology: Topology, sources: I64, targets: I64) -> PathSet:
    """Solve Algorithm 2 for these circuits: one route each, with as few circuits as possible on the busiest arc.

    From straight or shortest routes, circuits on the busiest arcs are rerouted one by one over the least
    loaded arcs, until the overlap meets a bound of :mod:`opticoll.formulations.lumorph.min_overlap`.

    Raises
    ------
    NotApplicable
        If a pair has no route, or the overlap does not meet the bound.
    """
    from opticoll.formulations.lumorph.min_overlap import unit_data

    data = unit_data(topology, sources, targets)
    least = max(bound.value for bound in data.bounds()) * (1 + 1e-9)
    first = candidate_routes(topology, sources, targets, "straight", 1)
    paths = [first.path(p) for p in range(first.paths)]
    circuits = np.bincount(first.arcs, minlength=topology.arcs)
    for _ in range(MOST_SWEEPS):
        load = circuits / data.topology.capacity
        if load.max(initial=0) <= least:
            return _path_set(topology, sources, targets, [[path] for path in paths])
        before = circuits.copy()
        for k, path in enumerate(paths):
            load = circuits / data.topology.capacity
            if load.max() > least and load[path].max(initial=0) == load.max():
                circuits[path] -= 1
                load = circuits / data.topology.capacity
                paths[k] = _lightest(topology, int(sources[k]), int(targets[k]), load)
                circuits[paths[k]] += 1
        if np.array_equal(circuits, before):
            break
    msg = (
        f"{topology.spec}: routes with an overlap of {(circuits / data.topology.capacity).max():g} are not proven "
        f"optimal, since the bound is {least:g}; use routes=straight"
    )
    raise NotApplicable(msg)


def _lightest(topology: Topology, s: int, d: int, load: F64) -> list[int]:
    """Find a shortest simple path among those with the fewest busiest arcs, then second-busiest arcs, and so on."""
    import heapq

    levels = [-value for value in np.unique(load)[::-1].tolist()]  # busiest first
    place = np.searchsorted(levels, -load)
    after: list[list[tuple[int, int]]] = [[] for _ in range(topology.n)]
    for arc, (u, v) in enumerate(zip(topology.tail.tolist(), topology.head.tolist(), strict=True)):
        after[u].append((arc, v))
    queue: list[tuple[tuple[int, ...], int, list[int]]] = [((0,) * len(levels), s, [])]
    done: set[int] = set()
    while queue:
        cost, u, path = heapq.heappop(queue)
        if u == d:
            return path
        if u in done:
            continue
        done.add(u)
        for arc, v in after[u]:
            if v not in done:
                at = int(place[arc])
                heapq.heappush(queue, ((*cost[:at], cost[at] + 1, *cost[at + 1 :]), v, [*path, arc]))
    msg = f"{topology.spec}: no route from vertex {s} to vertex {d}; use fewer failed links"
    raise NotApplicable(msg)


def _in_line(mesh: Topology, s: int, d: int) -> bool:
    """Whether two tiles share a row or column, so that their straight routes coincide."""
    assert isinstance(mesh, LightpathMesh)
    columns = mesh.shape[1]
    return s // columns == d // columns or s % columns == d % columns

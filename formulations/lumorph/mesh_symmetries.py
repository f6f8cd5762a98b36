"""Symmetries of a mesh that map schedules of a collective to schedules.

A permutation g of the tiles maps schedules to schedules of equal length if it maps arcs to arcs of equal room, the
collective to itself (with chunks renamed) and candidate routes to candidate routes. Each condition is checked, so
failed links, one-sided collectives and irregular route sets are handled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.instances.photonics import LightpathMesh

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opticoll.formulations.lumorph.transfer_sets import RoundProgram
    from opticoll.formulations.rounds.collectives import Collective
    from opticoll.formulations.rounds.round_schedule import Limits
    from opticoll.instances.topology import I64


def delivery_symmetries(program: RoundProgram) -> list[I64]:
    """Permutations of the deliveries under the symmetries of the mesh, without the identity."""
    if not isinstance(program.topology, LightpathMesh) or program.fixed:
        return []
    results = []
    for tiles in _mesh_maps(program.topology, program.limits):
        deliveries = _of_deliveries(program.collective, tiles)
        if deliveries is not None and _keeps_routes(program, tiles):
            results.append(deliveries)
    return results


def _mesh_maps(mesh: LightpathMesh, limits: Limits) -> Iterator[I64]:
    """Reflections (of a square mesh also transpositions) that map arcs to arcs of equal room: v goes to ``map[v]``."""
    grid = np.arange(mesh.n).reshape(mesh.shape[0], mesh.shape[1])
    images = [grid[::-1], grid[:, ::-1], grid[::-1, ::-1]]
    if mesh.shape[0] == mesh.shape[1]:
        images += [grid.T, grid.T[::-1], grid.T[:, ::-1], grid.T[::-1, ::-1]]
    room = limits.room(mesh)
    arcs = np.unique(np.column_stack([mesh.tail, mesh.head, room]), axis=0)
    for image in images:
        tiles = image.ravel()
        if np.array_equal(np.unique(np.column_stack([tiles[mesh.tail], tiles[mesh.head], room]), axis=0), arcs):
            yield tiles


def _of_deliveries(collective: Collective, tiles: I64) -> I64 | None:
    """Image of every delivery under a renaming of tiles; None if it does not preserve the collective."""
    before, after = _kinds(collective), _kinds(collective.relabelled(tiles))
    order, image = (sorted(range(collective.chunks), key=kinds.__getitem__) for kinds in (before, after))
    if any(before[c] != after[d] for c, d in zip(order, image, strict=True)):
        return None
    chunks = np.empty(collective.chunks, dtype=np.int64)
    chunks[image] = order
    moved = np.column_stack([chunks[collective.deliveries[:, 0]], tiles[collective.deliveries[:, 1]]])
    return np.searchsorted(collective.key(collective.deliveries), collective.key(moved))


def _kinds(collective: Collective) -> list[bytes]:
    """Holders and destinations of each chunk as a comparable key."""
    parts = []
    for pairs in (collective.pre, collective.post):
        first = np.searchsorted(pairs[:, 0], np.arange(collective.chunks + 1))
        parts.append([pairs[first[c] : first[c + 1], 1].tobytes() for c in range(collective.chunks)])
    return [pre + b"|" + post for pre, post in zip(*parts, strict=True)]


def _keeps_routes(program: RoundProgram, tiles: I64) -> bool:
    """Whether the image of every candidate route is a candidate route."""
    routes, t = program.routes, program.topology
    arc_of = {(int(u), int(v)): a for a, (u, v) in enumerate(zip(t.tail, t.head, strict=True))}
    image = np.array([arc_of[int(tiles[u]), int(tiles[v])] for u, v in zip(t.tail, t.head, strict=True)])
    known = {tuple(routes.path(p)) for p in range(routes.paths)}
    return all(tuple(image[list(path)].tolist()) in known for path in known)

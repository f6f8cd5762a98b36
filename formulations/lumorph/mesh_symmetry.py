r"""Symmetries of a round program: reflections and transpositions of the mesh that leave all its data as they are.

A permutation g of the tiles maps schedules to schedules with as many rounds if it maps arcs to arcs, the collective to
itself (chunks renamed accordingly) and candidate routes to candidate routes. Each is *checked*; failed links, one-sided
collectives or odd route sets break it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from instances.lightpath import LightpathMesh

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from formulations.lumorph.round_program import RoundProgram
    from formulations.rounds.collectives import Collective

    I64 = NDArray[np.int64]


def delivery_symmetries(program: RoundProgram) -> list[I64]:
    """Permutations of the deliveries by the checked symmetries of the mesh, the identity left out."""
    if not isinstance(program.topology, LightpathMesh) or program.fixed:
        return []
    found = []
    for tiles in _mesh_maps(program.topology):
        deliveries = _of_deliveries(program.collective, tiles)
        if deliveries is not None and _keeps_routes(program, tiles):
            found.append(deliveries)
    return found


def _mesh_maps(mesh: LightpathMesh) -> Iterator[I64]:
    """Reflections, and transpositions of a square mesh, that map arcs to arcs: vertex v goes to ``map[v]``."""
    grid = np.arange(mesh.n).reshape(mesh.shape[0], mesh.shape[1])
    images = [grid[::-1], grid[:, ::-1], grid[::-1, ::-1]]
    if mesh.shape[0] == mesh.shape[1]:
        images += [grid.T, grid.T[::-1], grid.T[:, ::-1], grid.T[::-1, ::-1]]
    arcs = np.unique(mesh.tail * mesh.n + mesh.head)
    for image in images:
        tiles = image.ravel()
        if np.array_equal(np.unique(tiles[mesh.tail] * mesh.n + tiles[mesh.head]), arcs):
            yield tiles


def _of_deliveries(collective: Collective, tiles: I64) -> I64 | None:
    """Where every delivery goes if tiles are renamed, None if the collective does not stay the same."""
    renamed = collective.relabelled(tiles)
    kinds: dict[bytes, list[int]] = {}
    for chunk, kind in enumerate(_kinds(collective)):
        kinds.setdefault(kind, []).append(chunk)
    chunks = np.empty(collective.chunks, dtype=np.int64)
    for chunk, kind in enumerate(_kinds(renamed)):
        if not kinds.get(kind):
            return None
        chunks[chunk] = kinds[kind].pop(0)
    image = np.column_stack([chunks[collective.deliveries[:, 0]], tiles[collective.deliveries[:, 1]]])
    return np.searchsorted(collective.key(collective.deliveries), collective.key(image))


def _kinds(collective: Collective) -> list[bytes]:
    """Who holds and who wants each chunk, as something to compare."""
    parts = []
    for pairs in (collective.pre, collective.post):
        first = np.searchsorted(pairs[:, 0], np.arange(collective.chunks + 1))
        parts.append([pairs[first[c] : first[c + 1], 1].tobytes() for c in range(collective.chunks)])
    return [pre + b"|" + post for pre, post in zip(*parts, strict=True)]


def _keeps_routes(program: RoundProgram, tiles: I64) -> bool:
    """Whether the image of every candidate route is one."""
    routes, t = program.routes, program.topology
    arc_of = {(int(u), int(v)): a for a, (u, v) in enumerate(zip(t.tail, t.head, strict=True))}
    image = np.array([arc_of[int(tiles[u]), int(tiles[v])] for u, v in zip(t.tail, t.head, strict=True)])
    known = {tuple(routes.path(p)) for p in range(routes.paths)}
    return all(tuple(image[list(path)].tolist()) in known for path in known)

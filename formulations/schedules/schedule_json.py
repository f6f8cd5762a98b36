"""Read and write link schedules and routes as JSON.

Common fields: ``format`` (opticoll-schedule/1), ``kind``, ``collective``, ``instance`` and ``instance_hash`` (optional
when read, checked if present), ``chunks`` D per shard. Vertices are numbers of the topology; parallel arcs between two
vertices act as one with their total capacity.

kind "links"
    ``collective`` alltoall or allgather; ``steps``: a list of steps, each a list of transfers ``[from, to, source,
    target, chunk]`` (allgather: ``[from, to, source, chunk]``). Before a chunk moves, ``from`` holds it.
kind "routes"
    ``collective`` alltoall; ``routes``: a list of ``{"source", "target", "path": [vertices], "weight", "chunks"}``; the
    weights of a pair sum to 1, its chunks (optional, with ``chunks`` of the document) to D.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opticoll.errors import BadFile
from opticoll.instances.readers import untrusted

if TYPE_CHECKING:
    from pathlib import Path

    from opticoll.formulations.schedules.link_schedule import LinkSchedule
    from opticoll.formulations.schedules.shard_routes import Chunked
    from opticoll.instances.digraph import Topology

FORMAT = "opticoll-schedule/1"
#: Largest file [bytes], and most transfers or vertices on routes in it.
MAX_BYTES = 256 << 20
MAX_ITEMS = 5_000_000
#: Most chunks per shard.
MAX_CHUNKS = 1 << 31


@dataclass(frozen=True)
class LinkSteps:
    """A link schedule as a file states it: transfers (from, to, chunk), a chunk (source, target or -1, number)."""

    collective: str
    chunks: int
    steps: list[list[tuple[int, int, tuple[int, int, int]]]]


@dataclass(frozen=True)
class VertexRoute:
    """A route as a file states it: the vertices of its path, and its share of the pair's shard."""

    source: int
    target: int
    path: tuple[int, ...]
    weight: float
    chunks: int | None


@dataclass(frozen=True)
class RouteTable:
    """All routes of an all-to-all; ``chunks`` is None where the weights are not cut."""

    chunks: int | None
    routes: list[VertexRoute]


def links_document(schedule: LinkSchedule) -> dict[str, Any]:
    """A link schedule as a JSON-able document."""
    topology = schedule.topology
    steps: list[list[list[int]]] = [[] for _ in range(schedule.steps)]
    tails, heads = topology.tail.tolist(), topology.head.tolist()
    for step, arc, source, target, chunk in schedule.transfers.tolist():
        steps[step].append([tails[arc], heads[arc], source, target, chunk])
    return {**_head(topology, "links"), "chunks": schedule.chunks, "steps": steps}


def routes_document(topology: Topology, chunked: Chunked) -> dict[str, Any]:
    """Cut routes as a JSON-able document, without routes that carry no chunk."""
    routes = []
    for route, count in zip(chunked.routes, chunked.carried.tolist(), strict=True):
        if count:
            path = [route.source, *topology.head[list(route.arcs)].tolist()]
            entry = {"source": route.source, "target": route.target, "path": path}
            routes.append({**entry, "weight": count / chunked.chunks, "chunks": count})
    return {**_head(topology, "routes"), "chunks": chunked.chunks, "routes": routes}


def _head(topology: Topology, kind: str) -> dict[str, Any]:
    return {
        "format": FORMAT, "kind": kind, "collective": "alltoall", "instance": topology.spec,
        "instance_hash": topology.hash,
    }  # fmt: skip


def is_schedule(document: Any) -> bool:
    """Whether a JSON document has the format of a schedule."""
    return isinstance(document, dict) and document.get("format") == FORMAT


def load(path: Path) -> Any:
    """The JSON in a file.

    Raises
    ------
    BadFile
        If it cannot be read, is too large or is not JSON.
    """
    return untrusted.read_json(path, MAX_BYTES, "name a schedule file")


def read_schedule(document: Any, path: Path, topology: Topology) -> LinkSteps | RouteTable:
    """The schedule in a document.

    Raises
    ------
    BadFile
        If it is invalid, or for another instance.
    """
    if not is_schedule(document):
        msg = f"{path}: not a schedule (format {FORMAT!r})"
        raise BadFile(msg)
    given = document.get("instance_hash")
    if given is not None and given != topology.hash:
        msg = f"{path}: instance_hash does not match {topology.spec}; use the instance of the file"
        raise BadFile(msg)
    kind = document.get("kind")
    if kind == "links":
        return _links(document, path, topology.n)
    if kind == "routes":
        return _routes(document, path, topology.n)
    msg = f"{path}: 'kind' must be 'links' or 'routes', not {str(kind)[:40]!r}"
    raise BadFile(msg)


def _links(document: dict[str, Any], path: Path, n: int) -> LinkSteps:
    collective = document.get("collective", "alltoall")
    if collective not in ("alltoall", "allgather"):
        msg = f"{path}: 'collective' must be alltoall or allgather, not {str(collective)[:40]!r}"
        raise BadFile(msg)
    width = 5 if collective == "alltoall" else 4
    chunks = _chunks(document.get("chunks"), path)
    given = document.get("steps")
    if not isinstance(given, list) or not all(isinstance(step, list) for step in given):
        msg = f"{path}: 'steps' must be a list of lists of transfers"
        raise BadFile(msg)
    if sum(map(len, given)) > MAX_ITEMS:
        msg = f"{path}: more than {MAX_ITEMS} transfers"
        raise BadFile(msg)
    steps = []
    for t, step in enumerate(given):
        moves = []
        for i, row in enumerate(step):
            good = isinstance(row, list) and len(row) == width and all(type(v) is int for v in row)
            if not good or not all(0 <= v < n for v in row[:-1]) or row[-1] < 0:
                form = "[from, to, source, target, chunk]" if width == 5 else "[from, to, source, chunk]"
                msg = f"{path}: steps[{t}][{i}] must be {form} with vertices 0..{n - 1}, not {str(row)[:60]}"
                raise BadFile(msg)
            moves.append((row[0], row[1], (row[2], row[3] if width == 5 else -1, row[-1])))
        steps.append(moves)
    return LinkSteps(collective, chunks, steps)


def _routes(document: dict[str, Any], path: Path, n: int) -> RouteTable:
    if document.get("collective", "alltoall") != "alltoall":
        msg = f"{path}: routes must be for alltoall, not {str(document['collective'])[:40]!r}"
        raise BadFile(msg)
    chunks = None if document.get("chunks") is None else _chunks(document["chunks"], path)
    given = document.get("routes")
    if not isinstance(given, list):
        msg = f"{path}: 'routes' must be a list"
        raise BadFile(msg)
    routes, items = [], 0
    for i, entry in enumerate(given):
        route = _route(entry, n, cut=chunks is not None)
        if route is None:
            what = "source, target, path (vertices), weight" + (", chunks" if chunks is not None else "")
            msg = f"{path}: routes[{i}] must have {what}, not {str(entry)[:80]}"
            raise BadFile(msg)
        items += len(route.path)
        if items > MAX_ITEMS:
            msg = f"{path}: more than {MAX_ITEMS} vertices on routes"
            raise BadFile(msg)
        routes.append(route)
    return RouteTable(chunks, routes)


def _route(entry: Any, n: int, *, cut: bool) -> VertexRoute | None:
    if not isinstance(entry, dict):
        return None
    source, target, path = entry.get("source"), entry.get("target"), entry.get("path")
    weight, count = entry.get("weight"), entry.get("chunks")
    vertices = [source, target, *path] if isinstance(path, list) else [None]
    if not all(type(v) is int and 0 <= v < n for v in vertices):
        return None
    if type(weight) not in (int, float) or not 0 <= weight <= sys.float_info.max:  # type: ignore[operator]
        return None
    if cut and not (type(count) is int and 0 <= count <= MAX_CHUNKS):
        return None
    return VertexRoute(source, target, tuple(path), float(weight), count if cut else None)  # type: ignore[arg-type]


def _chunks(value: Any, path: Path) -> int:
    if type(value) is not int or not 1 <= value <= MAX_CHUNKS:
        msg = f"{path}: 'chunks' must be a whole number from 1 to {MAX_CHUNKS}, not {str(value)[:40]}"
        raise BadFile(msg)
    return value

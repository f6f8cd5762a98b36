"""Read and write schedules as JSON.

Common fields: ``format`` (opticoll-schedule/1), ``kind``, ``collective``, ``instance`` and ``instance_hash`` (optional
when read; the hash is checked if present, else the name), ``chunks`` D per shard. Other fields are refused. Vertices
are numbers of the topology; parallel arcs between two vertices act as one with their total capacity.

``demand`` (alltoall, optional): a list of ``[source, target, amount]`` with the shards of every pair that sends;
without it, 1 shard between all ranks. A chunk is 1/D of the pair's amount.

kind "moves"
    ``collective`` alltoall, allgather, broadcast (with ``root``, a vertex), reducescatter or allreduce; ``steps``: a
    list of steps, each a list of moves ``[path, shard, chunk, "copy" | "add"]``: a chunk of the shard of a rank (a
    vertex; of an all-reduce, of the part of the buffer that is summed there; of an all-to-all, a pair ``[source,
    target]``) goes over a path of vertices between two ranks, over switches only
    (:mod:`opticoll.solvers.schedules.collective_steps`).
kind "rounds"
    Circuits of light and transfers over them: ``rounds``, a list of ``{"circuits": [[path, wavelength], ...],
    "transfers": [[from, to, chunk, "copy" | "add"], ...]}``. A path lists the vertices of a circuit; of parallel arcs,
    circuits of one wavelength take one after the other. ``collective`` and ``chunks`` are optional; chunks are numbered
    as by :func:`opticoll.formulations.rounds.collectives.collective`.
kind "configurations"
    Circuits that change (``topology.sequence``): ``chunks``, a list of ``[source, target, amount]`` in shards, and
    ``configurations``, a list of ``{"start", "end", "circuits": [[from, to, number], ...], "transfers": [[path, chunk,
    start, end], ...]}``: a chunk, by its place in the list, flows along a path of nodes at a constant rate. Times in
    shards / link bandwidth, from the start of the collective (:mod:`opticoll.solvers.schedules.sequence_simulator`).
kind "routes"
    ``collective`` alltoall; ``routes``: a list of ``{"source", "target", "path": [vertices], "weight", "chunks"}``; the
    weights of a pair sum to 1, its chunks (optional, with ``chunks`` of the document) to D. With ``layer`` (all routes
    or none, from 1), a virtual channel, routes of a layer must not wait for each other in a circle. With ``images``,
    lists of the images of all vertices under symmetries, every route stands for all to which these move it, and a pair
    has one; ``orders``, lists of links ``[from, to]``, are the layers: a route takes the first in which its links
    ascend.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import msgspec
import numpy as np
from msgspec import Meta

from opticoll.instances.readers.reading import as_struct, refuse
from opticoll.solvers.schedules.collective_steps import CollectiveSteps, Move
from opticoll.solvers.schedules.link_schedule import RouteTable, VertexRoute
from opticoll.solvers.schedules.sequence_schedule import LitCircuits, SequenceSchedule, TimedTransfer
from opticoll.solvers.schedules.shard_routes import amounts_of

if TYPE_CHECKING:
    from pathlib import Path

    from opticoll.formulations.alltoall.moved_routes import MovedRoutes
    from opticoll.formulations.rounds.round_schedule import RoundSchedule
    from opticoll.instances.topology import Instance, Topology
    from opticoll.solvers.schedules.shard_routes import Chunked
    from opticoll.types import Json


FORMAT = "opticoll-schedule/1"
#: Most chunks per shard.
MAX_CHUNKS = 20_000_000

# Writing ----------------------------------------------------------------------------------------------------------


def routes_document(topology: Topology, chunked: Chunked) -> dict[str, Json]:
    """Cut routes as a JSON-able document, without routes that carry no chunk; with their layers if they have any."""
    table, used = chunked.routes, np.flatnonzero(chunked.carried)
    heads, first, D = topology.head[table.arcs].tolist(), table.first.tolist(), chunked.chunks
    columns = (used, table.source[used], table.target[used], chunked.carried[used])
    routes = [
        {"source": s, "target": t, "path": [s, *heads[first[r] : first[r + 1]]], "weight": count / D, "chunks": count}
        for r, s, t, count in zip(*(column.tolist() for column in columns), strict=True)
    ]
    if table.layer is not None:
        routes = [{**route, "layer": layer} for route, layer in zip(routes, table.layer[used].tolist(), strict=True)]
    amount = amounts_of(topology, chunked)
    return {**_head(topology, "routes", amount), "chunks": chunked.chunks, "routes": routes}


def moved_document(routes: MovedRoutes, chunks: int) -> dict[str, Json]:
    """Routes with their images, each of so many chunks, and orders of links, as a JSON-able document."""
    paths, topology = routes.paths, routes.paths.topology
    heads, first, sources = topology.head[paths.arcs].tolist(), paths.start.tolist(), paths.sources[paths.pair].tolist()
    listed: list[Json] = [
        {"source": s, "target": heads[end - 1], "path": [s, *heads[begin:end]], "weight": 1, "chunks": chunks}
        for s, begin, end in zip(sources, first, first[1:], strict=False)
    ]
    links = np.stack([topology.tail, topology.head], axis=1)
    orders = [links[order].tolist() for order in np.argsort(routes.place, axis=0, kind="stable").T]
    head = {**_head(topology, "routes", None), "chunks": chunks, "images": routes.images.tolist(), "orders": orders}
    return {**head, "routes": listed}


def _head(topology: Instance, kind: str, amount: dict[tuple[int, int], float] | None) -> dict[str, Json]:
    head: dict[str, Json] = {
        "format": FORMAT,
        "kind": kind,
        "collective": "alltoall",
        "instance": topology.spec,
        "instance_hash": topology.hash,
    }
    return head if amount is None else {**head, "demand": [[s, t, shards] for (s, t), shards in sorted(amount.items())]}


def moves_document(topology: Topology, schedule: CollectiveSteps) -> dict[str, Json]:
    """A schedule of moves as a JSON-able document."""
    return {**_moves_head(topology, schedule), "steps": list(_listed(schedule))}


def _moves_head(topology: Topology, schedule: CollectiveSteps) -> dict[str, Json]:
    root: dict[str, Json] = {} if schedule.root is None else {"root": schedule.root}
    head = {**_head(topology, "moves", schedule.demand), "collective": schedule.collective}
    return {**head, **root, "chunks": schedule.chunks}


def moves_text(topology: Topology, schedule: CollectiveSteps) -> Iterator[str]:
    """The text of :func:`moves_document`, step by step."""
    yield json.dumps({**_moves_head(topology, schedule), "steps": []}).removesuffix("]}")
    for number, step in enumerate(_listed(schedule)):
        yield (", " if number else "") + json.dumps(step)
    yield "]}\n"


def _listed(schedule: CollectiveSteps) -> Iterator[Json]:
    """The moves of every step, as lists."""
    for step in schedule.by_step():
        yield [[path, shard, chunk, "add" if adds else "copy"] for path, shard, chunk, adds in step]


def rounds_document(topology: Topology, schedule: RoundSchedule) -> dict[str, Json]:
    """A schedule of rounds as a JSON-able document."""
    rounds: list[dict[str, list[Any]]] = [{"circuits": [], "transfers": []} for _ in range(schedule.rounds)]
    heads = topology.head.tolist()
    for k, (r, source, w) in enumerate(
        zip(
            schedule.circuit_round.tolist(),
            schedule.circuit_source.tolist(),
            schedule.circuit_wavelength.tolist(),
            strict=True,
        )
    ):
        rounds[r]["circuits"].append([[source, *(heads[a] for a in schedule.path(k))], w])
    names = ("round", "source", "target", "chunk", "adds")
    columns = (getattr(schedule, f"transfer_{name}").tolist() for name in names)
    for r, source, target, chunk, adds in zip(*columns, strict=True):
        rounds[r]["transfers"].append([source, target, chunk, "add" if adds else "copy"])
    head = _head(topology, "rounds", None)
    del head["collective"]
    return {**head, "rounds": rounds}


def configurations_document(instance: Instance, schedule: SequenceSchedule) -> dict[str, Json]:
    """A schedule of circuits that change as a JSON-able document."""
    configurations: list[dict[str, Any]] = []
    for one in schedule.configurations:
        tail, head = np.nonzero(one.circuits)
        circuits = np.column_stack([tail, head, one.circuits[tail, head]])
        transfers = [[list(move.path), move.chunk, move.start, move.end] for move in one.transfers]
        configurations.append(
            {"start": one.start, "end": one.end, "circuits": circuits.tolist(), "transfers": transfers}
        )
    chunks: list[Json] = [list(chunk) for chunk in schedule.chunks]
    return {
        **_head(instance, "configurations", None),
        "chunks": chunks,
        "configurations": configurations,
    }


# Reading ----------------------------------------------------------------------------------------------------------

Vertex = Annotated[int, Meta(ge=0)]
Number = Annotated[int, Meta(ge=0, le=MAX_CHUNKS)]
Chunks = Annotated[int, Meta(ge=1, le=MAX_CHUNKS)]
Time = Annotated[float, Meta(ge=-sys.float_info.max, le=sys.float_info.max)]
Amount = Annotated[float, Meta(gt=0, le=sys.float_info.max)]
#: Vertices of a path, in order.
Way = Annotated[tuple[Vertex, ...], Meta(min_length=2)]
#: Source and target; not every version of msgspec takes a tuple of fixed length here.
Pair = Annotated[tuple[Vertex, ...], Meta(min_length=2, max_length=2)]
Does = Literal["copy", "add"]
Demand = list[tuple[Vertex, Vertex, Amount]]


class Document(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, tag_field="kind"):
    """The fields of every document."""

    format: Literal["opticoll-schedule/1"]
    instance: str | None = None
    instance_hash: str | None = None

    def _vertices(self) -> Iterator[int]:
        """The vertices that it names."""
        raise NotImplementedError


class RoutesDocument(Document, kw_only=True, tag="routes"):
    """Routes with their shares."""

    collective: Literal["alltoall"] = "alltoall"
    chunks: Chunks | None = None
    routes: list[VertexRoute]
    demand: Demand | None = None
    images: Annotated[list[list[Vertex]], Meta(min_length=1)] | None = None
    orders: list[list[tuple[Vertex, Vertex]]] | None = None

    def _vertices(self) -> Iterator[int]:
        paths = chain.from_iterable((route.source, route.target, *route.path) for route in self.routes)
        links = chain.from_iterable(chain.from_iterable(self.orders or ()))
        return chain(paths, _ends(self.demand), links, chain.from_iterable(self.images or ()))


class MovesDocument(Document, kw_only=True, tag="moves"):
    """Copies and sums over paths in steps."""

    collective: Literal["alltoall", "allgather", "broadcast", "reducescatter", "allreduce"]
    chunks: Chunks
    steps: list[list[tuple[Way, Vertex | Pair, Number, Does]]]
    root: Vertex | None = None
    demand: Demand | None = None

    def _vertices(self) -> Iterator[int]:
        moves = chain.from_iterable(self.steps)
        shards = chain.from_iterable(
            (*way, *(shard if isinstance(shard, tuple) else [shard])) for way, shard, *_ in moves
        )
        return chain(shards, _ends(self.demand))


class CircuitRound(msgspec.Struct, forbid_unknown_fields=True):
    """Circuits, each a path with a wavelength, and transfers over them."""

    circuits: list[tuple[Way, Annotated[int, Meta(ge=0, lt=1 << 20)]]]
    transfers: list[tuple[Vertex, Vertex, Number, Does]]


class RoundsDocument(Document, kw_only=True, tag="rounds"):
    """Circuits of light in rounds."""

    collective: str | None = None
    chunks: Chunks | None = None
    rounds: list[CircuitRound]

    def _vertices(self) -> Iterator[int]:
        for one in self.rounds:
            yield from chain.from_iterable(way for way, _ in one.circuits)
            yield from chain.from_iterable(move[:2] for move in one.transfers)


class CircuitConfiguration(msgspec.Struct, forbid_unknown_fields=True):
    """Numbers of circuits that are set from a time to another, and transfers: path, chunk, start and end."""

    start: Time
    end: Time
    circuits: list[tuple[Vertex, Vertex, Annotated[int, Meta(ge=1, le=1 << 31)]]]
    transfers: list[tuple[Way, Number, Time, Time]]


class ConfigurationsDocument(Document, kw_only=True, tag="configurations"):
    """Circuits that change."""

    collective: str | None = None
    chunks: Demand
    configurations: Annotated[list[CircuitConfiguration], Meta(min_length=1)]

    def _vertices(self) -> Iterator[int]:
        yield from _ends(self.chunks)
        for one in self.configurations:
            yield from chain.from_iterable(row[:2] for row in one.circuits)
            yield from chain.from_iterable(row[0] for row in one.transfers)


Kind = TypeVar("Kind", bound=Document)


def _ends(demand: Demand | None) -> Iterator[int]:
    return chain.from_iterable(row[:2] for row in demand or ())


def _read(document: Any, path: Path, instance: Instance, n: int, kind: type[Kind]) -> Kind:
    """The document, for an instance of n vertices.

    Raises
    ------
    BadFile
        If it is of another kind or malformed, states another instance, or names a vertex that there is not.
    """
    result = as_struct(document, kind, path)
    if result.instance_hash not in (None, instance.hash):
        refuse(path, f"instance_hash does not match {instance.spec}; use the instance of the file")
    if result.instance_hash is None and result.instance not in (None, instance.spec):
        given = str(result.instance)[:80]
        refuse(path, f"is for the instance {given}, not for {instance.spec}; name that of the file, or omit it")
    beyond = next((v for v in result._vertices() if v >= n), None)
    if beyond is not None:
        refuse(path, f"vertex {beyond} is not one of {instance.spec}, 0..{n - 1}; use the instance of the file")
    return result


def read_schedule(document: Any, path: Path, topology: Topology) -> RouteTable | CollectiveSteps:
    """The schedule in a document of kind moves or routes.

    Raises
    ------
    BadFile
        If it is invalid, or for another instance.
    """
    name = document.get("kind")
    if name == "routes":
        return _route_table(_read(document, path, topology, topology.n, RoutesDocument), path, topology.n)
    if name != "moves":
        refuse(path, f"'kind' must be 'moves' or 'routes', not {str(name)[:40]!r}")
    read = _read(document, path, topology, topology.n, MovesDocument)
    if (read.collective == "broadcast") != (read.root is not None):
        refuse(path, "'root' must be the vertex of a broadcast, and absent otherwise")
    if read.demand is not None and read.collective != "alltoall":
        refuse(path, f"'demand' is that of an all-to-all; omit it for {read.collective}")
    steps = [[Move(way, shard, chunk, does == "add") for way, shard, chunk, does in step] for step in read.steps]
    return CollectiveSteps.of(read.collective, read.chunks, steps, read.root, _demand(read.demand, path))


def _route_table(read: RoutesDocument, path: Path, n: int) -> RouteTable:
    for i, route in enumerate(read.routes):
        if read.chunks is not None and route.chunks is None:
            refuse(path, f"routes[{i}] must have the number of its chunks, since the document has 'chunks'")
        if (route.layer is None) != (read.routes[0].layer is None):
            refuse(path, f"routes[{i}]: give all routes a layer, or none")
        if read.images is not None and route.layer is not None:
            refuse(path, f"routes[{i}]: the layers of routes with 'images' are 'orders'; omit 'layer'")
    if (read.images is None) != (read.orders is None):
        refuse(path, "'images' and 'orders' belong together; give both or none")
    if read.images is not None and (read.demand is not None or any(len(image) != n for image in read.images)):
        refuse(path, f"'images' are lists of {n} vertices each, for 1 shard between all ranks; omit 'demand'")
    return RouteTable(read.chunks, read.routes, _demand(read.demand, path), read.images, read.orders)


def _demand(rows: Demand | None, path: Path) -> dict[tuple[int, int], float] | None:
    if rows is None:
        return None
    demand: dict[tuple[int, int], float] = {}
    for i, (s, t, amount) in enumerate(rows):
        if s == t or (s, t) in demand:
            refuse(path, f"demand[{i}] must be for two different vertices, and each pair stand once")
        demand[s, t] = amount
    return demand


def read_rounds(document: dict[str, Json], path: Path, topology: Topology) -> RoundSchedule:
    """The schedule of rounds in a document of that kind.

    Raises
    ------
    BadFile
        If it is malformed or for another instance, or a circuit follows no arcs.
    """
    from opticoll.formulations.rounds.round_schedule import RoundSchedule

    rounds = _read(document, path, topology, topology.n, RoundsDocument).rounds
    arcs: dict[tuple[int, int], list[int]] = {}
    for a, ends in enumerate(zip(topology.tail.tolist(), topology.head.tolist(), strict=True)):
        arcs.setdefault(ends, []).append(a)
    circuits: list[tuple[int, int, int, int]] = []
    transfers = [(r, *move[:3], move[3] == "add") for r, one in enumerate(rounds) for move in one.transfers]
    taken, start = [], [0]
    for r, one in enumerate(rounds):
        used: dict[tuple[int, int, int], int] = {}
        for i, (way, w) in enumerate(one.circuits):
            if not all(ends in arcs for ends in pairwise(way)):
                refuse(path, f"rounds[{r}].circuits[{i}]: {list(way)[:12]} is no path along arcs of {topology.spec}")
            circuits.append((r, way[0], way[-1], w))
            for u, v in pairwise(way):
                k = used.get((u, v, w), 0)
                used[u, v, w] = k + 1
                taken.append(arcs[u, v][k % len(arcs[u, v])])
            start.append(len(taken))
    if not transfers:
        refuse(path, "has no transfers")
    table, light_paths = np.array(transfers, dtype=np.int64), np.array(circuits, dtype=np.int64).reshape(-1, 4)
    return RoundSchedule(
        circuit_round=light_paths[:, 0],
        circuit_source=light_paths[:, 1],
        circuit_target=light_paths[:, 2],
        circuit_wavelength=light_paths[:, 3],
        circuit_start=np.array(start),
        circuit_arcs=np.array(taken, dtype=np.int64),
        transfer_round=table[:, 0],
        transfer_source=table[:, 1],
        transfer_target=table[:, 2],
        transfer_chunk=table[:, 3],
        transfer_adds=table[:, 4].astype(bool),
    )


def read_configurations(document: dict[str, Json], path: Path, instance: Instance, n: int) -> SequenceSchedule:
    """The schedule in a document of kind ``configurations``, for an instance with n nodes.

    Raises
    ------
    BadFile
        If it is malformed or for another instance.
    """
    read = _read(document, path, instance, n, ConfigurationsDocument)
    configurations = []
    for k, one in enumerate(read.configurations):
        i = next((i for i, row in enumerate(one.transfers) if row[1] >= len(read.chunks)), None)
        if i is not None:
            refuse(path, f"configurations[{k}].transfers[{i}]: the document has {len(read.chunks)} chunks")
        counts = np.zeros((n, n), dtype=np.int64)
        for u, v, number in one.circuits:
            counts[u, v] += number
        transfers = [TimedTransfer(*row) for row in one.transfers]
        configurations.append(LitCircuits(one.start, one.end, counts, transfers))
    return SequenceSchedule(configurations, read.chunks)

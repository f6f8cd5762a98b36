"""Read and write link schedules and routes as JSON; verify a schedule file on a topology.

Common fields: ``format`` (opticoll-schedule/1), ``kind``, ``collective``, ``instance`` and ``instance_hash`` (optional
when read; the hash is checked if present, else the name), ``chunks`` D per shard. Other fields are refused. Vertices
are numbers of the topology; parallel arcs between two vertices act as one with their total capacity.

``demand`` (alltoall, optional): a list of ``[source, target, amount]`` with the shards of every pair that sends;
without it, 1 shard between all ranks. A chunk is 1/D of the pair's amount.

kind "links"
    ``collective`` alltoall or allgather; ``steps``: a list of steps, each a list of transfers ``[from, to, source,
    target, chunk]`` (allgather: ``[from, to, source, chunk]``). Before a chunk moves, ``from`` holds it.
kind "moves"
    ``collective`` allgather, broadcast (with ``root``, a vertex), reducescatter or allreduce; ``steps``: a list of
    steps, each a list of moves ``[path, shard, chunk, "copy" | "add"]``: a chunk of the shard of a rank (a vertex; of
    an all-reduce, of the part of the buffer that is summed there) goes over a path of vertices between two ranks, over
    switches only (:mod:`opticoll.solvers.schedules.collective_steps`).
kind "rounds"
    Circuits of light and transfers over them: ``rounds``, a list of ``{"circuits": [[path, wavelength], ...],
    "transfers": [[from, to, chunk, "copy" | "add"], ...]}``. A path lists the vertices of a circuit; of parallel arcs,
    circuits of one wavelength take one after the other. ``collective`` and ``chunks`` are optional; chunks are numbered
    as by :func:`opticoll.formulations.rounds.collectives.collective`.
kind "configurations"
    Circuits that change (``topology.sequence``): ``chunks``, a list of ``[source, target, amount]`` in shards, and
    ``configurations``, a list of ``{"start", "end", "circuits": [[from, to, number], ...], "transfers": [[path, chunk,
    start, end], ...]}``: a chunk, by its place in the list, flows along a path of nodes at a constant rate. Times in
    shards / link bandwidth, from the start of the collective. ``per_shard`` (for information) is the number of equal
    chunks of every shard, null for the pieces of a fluid (:mod:`opticoll.solvers.schedules.sequence_simulator`).
kind "routes"
    ``collective`` alltoall; ``routes``: a list of ``{"source", "target", "path": [vertices], "weight", "chunks"}``; the
    weights of a pair sum to 1, its chunks (optional, with ``chunks`` of the document) to D. With ``layer`` (all routes
    or none, from 1), a virtual channel, routes of a layer must not wait for each other in a circle.

The time of a verified schedule is compared with the best lower bound on the fluid time.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import BadFile
from opticoll.formulations.model import NotApplicable
from opticoll.instances.readers import reading
from opticoll.instances.topology import Topology
from opticoll.nearest_names import nearest
from opticoll.solvers.schedules.collective_steps import COLLECTIVES, CollectiveSteps, Move, moves_document, run_moves
from opticoll.solvers.schedules.link_schedule import (
    LinkSteps,
    RouteTable,
    VertexRoute,
    pair_capacity,
    run_links,
    run_routes,
    ways_between,
)
from opticoll.solvers.schedules.msccl_xml import read_xml
from opticoll.solvers.schedules.runtimes import TARGETS, exceeded, usage
from opticoll.solvers.schedules.schedule_check import ScheduleCheck, format_of, refused
from opticoll.solvers.schedules.shard_routes import amounts_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from opticoll.formulations.rounds.round_schedule import RoundSchedule
    from opticoll.instances.topology import F64, Instance
    from opticoll.solvers.schedules.link_schedule import LinkSchedule
    from opticoll.solvers.schedules.program import Program
    from opticoll.solvers.schedules.sequence_schedule import SequenceSchedule
    from opticoll.solvers.schedules.shard_routes import Chunked
    from opticoll.types import Json


FORMAT = "opticoll-schedule/1"
#: Largest file [bytes], and most transfers or vertices on routes in it.
MAX_BYTES = 512 << 20
MAX_ITEMS = 20_000_000
#: Most chunks per shard, and largest number of a layer.
MAX_CHUNKS, MAX_LAYERS = 1 << 31, 1 << 20
#: Fields of every document, and those of each kind.
_HEAD = ("format", "kind", "collective", "instance", "instance_hash", "chunks")
_FIELDS = {
    "links": ("steps", "demand"),
    "moves": ("steps", "root"),
    "rounds": ("rounds",),
    "configurations": ("configurations", "per_shard"),
    "routes": ("routes", "demand"),
}
_ROUTE = ("source", "target", "path", "weight", "chunks", "layer")


def links_document(schedule: LinkSchedule) -> dict[str, Json]:
    """A link schedule as a JSON-able document."""
    topology = schedule.topology
    steps: list[list[list[int]]] = [[] for _ in range(schedule.steps)]
    tails, heads = topology.tail.tolist(), topology.head.tolist()
    for step, arc, source, target, chunk in schedule.transfers.tolist():
        steps[step].append([tails[arc], heads[arc], source, target, chunk])
    return {**_head(topology, "links", schedule.amount), "chunks": schedule.chunks, "steps": steps}


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


def _head(topology: Instance, kind: str, amount: dict[tuple[int, int], float] | None) -> dict[str, Json]:
    head: dict[str, Json] = {
        "format": FORMAT,
        "kind": kind,
        "collective": "alltoall",
        "instance": topology.spec,
        "instance_hash": topology.hash,
    }
    return head if amount is None else {**head, "demand": [[s, t, shards] for (s, t), shards in sorted(amount.items())]}


def collective_document(topology: Topology, schedule: CollectiveSteps) -> dict[str, Json]:
    """A schedule of moves as a JSON-able document."""
    return {**_head(topology, "moves", None), **moves_document(schedule)}


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
        "per_shard": schedule.per_shard,
        "chunks": chunks,
        "configurations": configurations,
    }


def is_schedule(document: Any, path: Path) -> bool:
    """Whether a JSON document has the format of a schedule, ours or that of another tool."""
    return (isinstance(document, dict) and document.get("format") == FORMAT) or format_of(document, path) is not None


def load(path: Path) -> Any:
    """The JSON in a file.

    Raises
    ------
    BadFile
        If it cannot be read, is too large or is not JSON.
    """
    return reading.read_json(path, MAX_BYTES, "name a schedule file")


def read_schedule(document: Any, path: Path, topology: Topology) -> LinkSteps | RouteTable | CollectiveSteps:
    """The schedule in a document.

    Raises
    ------
    BadFile
        If it is invalid, or for another instance.
    """
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        msg = f"{path}: not a schedule (format {FORMAT!r})"
        raise BadFile(msg)
    refuse_other_document(document, path, topology)
    kind = document.get("kind")
    if kind == "links":
        return _links(document, path, topology.n)
    if kind == "routes":
        return _routes(document, path, topology.n)
    if kind == "moves":
        return _moves(document, path, topology.n)
    msg = f"{path}: 'kind' must be 'links', 'moves' or 'routes', not {str(kind)[:40]!r}"
    raise BadFile(msg)


def refuse_other_document(document: dict[str, Json], path: Path, instance: Instance) -> None:
    """Refuse a schedule for another instance, or with fields that its kind does not have.

    Raises
    ------
    BadFile
        If its hash differs, or, without one, its name; for an unknown field, with the nearest known one.
    """
    refuse_other_fields(document, (*_HEAD, *_FIELDS.get(str(document.get("kind")), document)), str(path))
    instance_hash, spec = document.get("instance_hash"), document.get("instance")
    if instance_hash is not None and instance_hash != instance.hash:
        msg = f"{path}: instance_hash does not match {instance.spec}; use the instance of the file"
        raise BadFile(msg)
    if instance_hash is None and spec is not None and spec != instance.spec:
        msg = (
            f"{path}: is for the instance {str(spec)[:80]}, not for {instance.spec}; name that of the file, or omit it"
        )
        raise BadFile(msg)


def refuse_other_fields(entry: Mapping[str, Json], known: Iterable[str], where: str) -> None:
    """Refuse an object with a field that is not known, which states what would not be read.

    Raises
    ------
    BadFile
        With the nearest known field.
    """
    names = list(known)
    unknown = next((name for name in entry if name not in names), None)
    if unknown is not None:
        msg = f"{where}: unknown field {unknown[:60]!r}; {nearest(unknown, names)}"
        raise BadFile(msg)


def _links(document: dict[str, Json], path: Path, n: int) -> LinkSteps:
    collective = document.get("collective", "alltoall")
    if collective not in ("alltoall", "allgather"):
        msg = f"{path}: 'collective' must be alltoall or allgather, not {str(collective)[:40]!r}"
        raise BadFile(msg)
    width = 5 if collective == "alltoall" else 4
    chunks = _chunks(document.get("chunks"), path)
    rows = document.get("steps")
    if not isinstance(rows, list) or not all(isinstance(step, list) for step in rows):
        msg = f"{path}: 'steps' must be a list of lists of transfers"
        raise BadFile(msg)
    if sum(map(len, rows)) > MAX_ITEMS:
        msg = f"{path}: more than {MAX_ITEMS} transfers"
        raise BadFile(msg)
    steps = []
    for t, step in enumerate(rows):
        moves = []
        for i, row in enumerate(step):
            valid = isinstance(row, list) and len(row) == width and all(type(v) is int for v in row)
            if not valid or not all(0 <= v < n for v in row[:-1]) or row[-1] < 0:
                form = "[from, to, source, target, chunk]" if width == 5 else "[from, to, source, chunk]"
                msg = f"{path}: steps[{t}][{i}] must be {form} with vertices 0..{n - 1}, not {str(row)[:60]}"
                raise BadFile(msg)
            moves.append((row[0], row[1], (row[2], row[3] if width == 5 else -1, row[-1])))
        steps.append(moves)
    return LinkSteps(collective, chunks, steps, _demand(document, path, n) if width == 5 else None)


def _moves(document: dict[str, Json], path: Path, n: int) -> CollectiveSteps:
    collective, root = str(document.get("collective")), document.get("root")
    if collective not in COLLECTIVES.values():
        msg = f"{path}: 'collective' must be one of {', '.join(COLLECTIVES.values())}, not {collective[:40]!r}"
        raise BadFile(msg)
    if (collective == "broadcast") != (type(root) is int and 0 <= root < n):
        msg = f"{path}: 'root' must be a vertex 0..{n - 1} of a broadcast, and absent otherwise, not {str(root)[:40]!r}"
        raise BadFile(msg)
    chunks = _chunks(document.get("chunks"), path)
    rows = document.get("steps")
    if not isinstance(rows, list) or not all(isinstance(step, list) for step in rows):
        msg = f"{path}: 'steps' must be a list of lists of moves"
        raise BadFile(msg)
    if sum(map(len, rows)) > MAX_ITEMS or chunks > MAX_ITEMS:
        msg = f"{path}: more than {MAX_ITEMS} moves or chunks"
        raise BadFile(msg)
    steps = []
    for t, step in enumerate(rows):
        moves = []
        for i, row in enumerate(step):
            move = _move(row, n)
            if move is None:
                form = f"[path, shard, chunk, 'copy' or 'add'] with a path of vertices 0..{n - 1}"
                msg = f"{path}: steps[{t}][{i}] must be {form}, not {str(row)[:60]}"
                raise BadFile(msg)
            moves.append(move)
        steps.append(moves)
    return CollectiveSteps(collective, chunks, steps, root if isinstance(root, int) else None)


def _move(row: Any, n: int) -> Move | None:
    if not isinstance(row, list) or len(row) != 4 or not isinstance(row[0], list) or not 2 <= len(row[0]) <= n:
        return None
    path, shard, chunk, what = row
    if not all(type(v) is int and 0 <= v < n for v in (*path, shard)) or type(chunk) is not int or chunk < 0:
        return None
    return Move(tuple(path), shard, chunk, what == "add") if what in ("add", "copy") else None


def read_rounds(document: dict[str, Json], path: Path, topology: Topology) -> RoundSchedule:
    """The schedule of rounds in a document of that kind.

    Raises
    ------
    BadFile
        If it is malformed, too large or for another instance, or a circuit follows no arcs.
    """
    from opticoll.formulations.rounds.round_schedule import RoundSchedule

    refuse_other_document(document, path, topology)
    rounds = document.get("rounds")
    if not isinstance(rounds, list) or not all(isinstance(one, dict) for one in rounds):
        msg = f"{path}: 'rounds' must be a list of objects with 'circuits' and 'transfers'"
        raise BadFile(msg)
    arcs: dict[tuple[int, int], list[int]] = {}
    for a, ends in enumerate(zip(topology.tail.tolist(), topology.head.tolist(), strict=True)):
        arcs.setdefault(ends, []).append(a)
    circuits: list[tuple[int, int, int, int]] = []
    transfers: list[tuple[int, int, int, int, bool]] = []
    taken, start = [], [0]
    for r, one in enumerate(rounds):
        listed = [one.get(name) for name in ("circuits", "transfers")]
        if set(one) - {"circuits", "transfers"} or not all(isinstance(rows, list) for rows in listed):
            msg = f"{path}: rounds[{r}] must have the lists 'circuits' and 'transfers'"
            raise BadFile(msg)
        used: dict[tuple[int, int, int], int] = {}
        for i, row in enumerate(one["circuits"]):
            way = _circuit(row, topology.n)
            if way is None or not all(ends in arcs for ends in pairwise(way[0])):
                msg = f"{path}: rounds[{r}].circuits[{i}] must be [path along arcs, wavelength], not {str(row)[:60]}"
                raise BadFile(msg)
            vertices, w = way
            circuits.append((r, vertices[0], vertices[-1], w))
            for u, v in pairwise(vertices):
                k = used.get((u, v, w), 0)
                used[u, v, w] = k + 1
                taken.append(arcs[u, v][k % len(arcs[u, v])])
            start.append(len(taken))
        for i, row in enumerate(one["transfers"]):
            if not _is_transfer(row, topology.n):
                form = "[from, to, chunk, 'copy' or 'add']"
                msg = f"{path}: rounds[{r}].transfers[{i}] must be {form}, not {str(row)[:60]}"
                raise BadFile(msg)
            transfers.append((r, *row[:3], row[3] == "add"))
        if len(taken) + len(transfers) > MAX_ITEMS:
            msg = f"{path}: more than {MAX_ITEMS} transfers and arcs of circuits"
            raise BadFile(msg)
    if not transfers:
        msg = f"{path}: has no transfers"
        raise BadFile(msg)
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


def _is_transfer(row: Any, n: int) -> bool:
    if not isinstance(row, list) or len(row) != 4 or not all(type(v) is int and v >= 0 for v in row[:3]):
        return False
    return max(row[:2]) < n and row[2] <= MAX_CHUNKS and row[3] in ("copy", "add")


def _circuit(row: Any, n: int) -> tuple[list[int], int] | None:
    if not isinstance(row, list) or len(row) != 2 or not isinstance(row[0], list) or not 2 <= len(row[0]) <= n:
        return None
    numbers = all(type(v) is int and 0 <= v < n for v in row[0]) and type(row[1]) is int and 0 <= row[1] < 1 << 20
    return (row[0], row[1]) if numbers else None


def _routes(document: dict[str, Json], path: Path, n: int) -> RouteTable:
    if document.get("collective", "alltoall") != "alltoall":
        msg = f"{path}: routes must be for alltoall, not {str(document['collective'])[:40]!r}"
        raise BadFile(msg)
    chunks = None if document.get("chunks") is None else _chunks(document["chunks"], path)
    entries = document.get("routes")
    if not isinstance(entries, list):
        msg = f"{path}: 'routes' must be a list"
        raise BadFile(msg)
    routes: list[VertexRoute] = []
    items = 0
    for i, entry in enumerate(entries):
        route = _route(entry, n, cut=chunks is not None)
        if route is None:
            columns = "source, target, path (vertices), weight" + (", chunks" if chunks is not None else "")
            columns += ", and a layer from 1" if isinstance(entry, dict) and "layer" in entry else ""
            msg = f"{path}: routes[{i}] must have {columns}, not {str(entry)[:80]}"
            raise BadFile(msg)
        refuse_other_fields(entry, _ROUTE, f"{path}: routes[{i}]")
        items += len(route.path)
        if items > MAX_ITEMS:
            msg = f"{path}: more than {MAX_ITEMS} vertices on routes"
            raise BadFile(msg)
        if routes and (routes[0].layer is None) != (route.layer is None):
            msg = f"{path}: routes[{i}]: give all routes a layer, or none"
            raise BadFile(msg)
        routes.append(route)
    return RouteTable(chunks, routes, _demand(document, path, n))


def _demand(document: dict[str, Json], path: Path, n: int) -> dict[tuple[int, int], float] | None:
    entries = document.get("demand")
    if entries is None:
        return None
    demand: dict[tuple[int, int], float] = {}
    for i, row in enumerate(entries if isinstance(entries, list) and len(entries) <= MAX_ITEMS else [None]):
        valid = isinstance(row, list) and len(row) == 3 and all(type(v) is int and 0 <= v < n for v in row[:2])
        valid = valid and row[0] != row[1] and type(row[2]) in (int, float) and 0 < row[2] <= sys.float_info.max
        if not valid or (row[0], row[1]) in demand:
            msg = f"{path}: demand[{i}] must be [source, target, amount > 0], each pair once, not {str(row)[:60]}"
            raise BadFile(msg)
        demand[row[0], row[1]] = float(row[2])
    return demand


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
    layer = entry.get("layer")
    if layer is not None and not (type(layer) is int and 1 <= layer <= MAX_LAYERS):
        return None
    return VertexRoute(source, target, tuple(path), float(weight), count if cut else None, layer)  # type: ignore[arg-type]


def _chunks(value: Any, path: Path) -> int:
    if type(value) is not int or not 1 <= value <= MAX_CHUNKS:
        msg = f"{path}: 'chunks' must be a whole number from 1 to {MAX_CHUNKS}, not {str(value)[:40]}"
        raise BadFile(msg)
    return value


def verify_file(
    path: Path,
    instance: object,
    collective: str = "alltoall",
    *,
    traffic: F64 | None = None,
    root: int = 0,
    alpha: float = 0.0,
    beta: float = 1.0,
) -> ScheduleCheck:
    """Execute the schedule in an ``.xml`` (MSCCL) or JSON file on a topology; also in those of other tools.

    ``traffic`` is the demand between ranks, ``(N, N)``, that an all-to-all must send; None for 1 shard between all.
    ``root`` is the rank of a broadcast, counted from 0.

    Raises
    ------
    BadFile
        If the file is malformed, too large, or for another instance.
    NotApplicable
        If the instance is not a topology.
    """
    if not isinstance(instance, Topology):
        msg = f"{path}: schedules are checked on topologies; {getattr(instance, 'spec', instance)} is not a topology"
        raise NotApplicable(msg)
    if path.suffix.lower() == ".xml":
        if traffic is not None:
            return refused("demand", "MSCCL XML holds equal shards between all ranks, and the demand is another")
        if (other := format_of(None, path)) is not None:
            return _with_bound(other.execute(None, path, instance, collective), instance, collective)
        return verify_program(read_xml(path), instance, collective, alpha=alpha, beta=beta)
    document = load(path)
    return verify_document(document, path, instance, collective, traffic=traffic, root=root, alpha=alpha, beta=beta)


def verify_document(
    document: Any,
    path: Path,
    topology: Topology,
    collective: str = "alltoall",
    *,
    traffic: F64 | None = None,
    root: int = 0,
    alpha: float = 0.0,
    beta: float = 1.0,
) -> ScheduleCheck:
    """Execute the schedule in a JSON document; errors as in :func:`verify_file`."""
    if (form := format_of(document, path)) is not None:
        verdict = form.execute(document, path, topology, collective)
        if verdict.valid and collective == "alltoall":
            verdict = _other_demand(None, topology, traffic) or verdict
        return _with_bound(verdict, topology, collective, traffic)
    schedule = read_schedule(document, path, topology)
    performed = schedule.collective if isinstance(schedule, LinkSteps | CollectiveSteps) else "alltoall"
    if performed != collective:
        return refused("collective", f"the file is a schedule for {performed}, not for {collective}")
    if isinstance(schedule, CollectiveSteps):
        return _with_bound(run_moves(schedule, topology, root, alpha=alpha, beta=beta), topology, collective, root=root)
    if performed == "alltoall" and (other := _other_demand(schedule.demand, topology, traffic)) is not None:
        return other
    if isinstance(schedule, LinkSteps):
        verdict = run_links(schedule, topology, alpha=alpha, beta=beta)
    else:
        verdict = run_routes(schedule, topology)
    return _with_bound(verdict, topology, collective, traffic)


def _other_demand(
    demand: dict[tuple[int, int], float] | None, topology: Topology, traffic: F64 | None
) -> ScheduleCheck | None:
    """The first pair for which a schedule states another amount than ``traffic``, as a verdict."""
    if demand is None and traffic is None:
        return None
    ends = topology.terminals
    uniform = np.ones((ends.size, ends.size)) - np.eye(ends.size)
    expected, actual = uniform if traffic is None else traffic, uniform
    if demand is not None:
        actual, place = np.zeros_like(uniform), {v: rank for rank, v in enumerate(ends.tolist())}
        for (s, t), amount in demand.items():
            if s not in place or t not in place:
                return refused("demand", f"the file states a demand of {s} to {t}, which are not both ranks", rank=s)
            actual[place[s], place[t]] = amount
    differs = np.argwhere(np.abs(actual - expected) > 1e-9 * np.maximum(expected, actual))
    if not differs.size:
        return None
    s, t = differs[0].tolist()
    names = [topology.labels[ends[rank]] for rank in (s, t)]
    msg = (
        f"the file sends {actual[s, t]:g} from {names[0]} to {names[1]}, and the demand is {expected[s, t]:g}; "
        "give the demand of the file"
    )
    return refused("demand", msg, rank=int(ends[s]))


def verify_program(
    program: Program, topology: Topology, collective: str, *, alpha: float = 0.0, beta: float = 1.0
) -> ScheduleCheck:
    """Execute a program with rank r on the r-th terminal of the topology, over arcs and through forwarding vertices."""
    if program.collective != collective:
        return refused("collective", f"the file is a schedule for {program.collective}, not for {collective}")
    if len(program.ranks) != topology.num_ranks:
        msg = f"the file has {len(program.ranks)} ranks, {topology.spec} has {topology.num_ranks}"
        return refused("ranks", msg)
    verdict = execute_program(program, topology, alpha=alpha, beta=beta)
    if verdict.valid:
        used = usage(program)
        excess = {name: exceeded(program, target, used) for name, target in TARGETS.items()}
        fits = [name for name, result in excess.items() if not result]
        over = {name: "; ".join(result) for name, result in excess.items() if result}
        verdict = replace(verdict, metrics={**verdict.metrics, "fits_runtime": fits, "exceeds": over})
    return _with_bound(verdict, topology, collective)


def execute_program(program: Program, topology: Topology, *, alpha: float = 0.0, beta: float = 1.0) -> ScheduleCheck:
    """As :func:`verify_program`, without limits of runtimes and bounds."""
    from opticoll.solvers.schedules import interpreter

    number = {int(v): r for r, v in enumerate(topology.terminals)}
    ways = {(number[u], number[v]): those for (u, v), those in ways_between(topology).items()}
    # The buffer of an all-reduce is one shard for every rank.
    shards = len(program.ranks) if program.collective == "allreduce" else 1
    return interpreter.run(program, pair_capacity(topology), ways, alpha=alpha, beta=beta * shards)


def _with_bound(
    verdict: ScheduleCheck, topology: Topology, collective: str, traffic: F64 | None = None, root: int = 0
) -> ScheduleCheck:
    """Add ``T_bound``, the best analytic lower bound on the fluid time, and ``over_bound`` to a valid verdict."""
    if not verdict.valid:
        return verdict
    time = verdict.time
    bound = _fluid_bound(topology, collective, traffic, root)
    metrics = {**verdict.metrics, "T_bound": bound}
    if bound and time is not None:
        metrics["over_bound"] = time / bound
    return replace(verdict, metrics=metrics)


def _fluid_bound(topology: Topology, collective: str, traffic: F64 | None, root: int) -> float:
    from opticoll.formulations.flows.concurrent_flow import ConcurrentFlow, all_to_all_topology
    from opticoll.formulations.flows.flow_bounds import bounds, closed_forms
    from opticoll.formulations.registry import formulation

    if collective in COLLECTIVES.values():
        model = formulation(next(name for name, performed in COLLECTIVES.items() if performed == collective))
        settings = {"root": root} if collective == "broadcast" else {}
        return max(bound.value for bound in model.prepare(topology, settings).bounds())
    data = ConcurrentFlow.by_source(all_to_all_topology(topology, "alltoall") if traffic is None else topology, traffic)
    # A known optimum is the nearest float above it, so that no other bound is smaller.
    return max(1.0 / bound.value for bound in closed_forms(data) or bounds(data) if bound.value > 0)

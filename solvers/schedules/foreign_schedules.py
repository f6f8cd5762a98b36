"""Schedules of TE-CCL, msccl-tools (SCCL) and ForestColl, read and executed on a topology.

TE-CCL (github.com/microsoft/TE-CCL, JSON). ``N-Flows`` is a list of ``Chunk c from s traveled over i->j with volume x
in epoch k via switches w``; the volume is given for all-to-all only. Numbers are vertices of the topology, switches
included. Chunk c of an all-to-all is for rank c mod N and is its chunk c div N. Data sent in epoch k was held before k;
switches store nothing. ``async_time`` is the end of an execution in which every link serves its sends in the order of
their epochs; epochs themselves, into which TE-CCL rounds up, take no time. A send to several ranks through a switch
counts for each of them.

msccl-tools (msccl/serialization.py, JSON). ``steps`` of ``sends`` ``[address, source, destination]``; ``input_map`` and
``output_map`` hold the addresses of every rank at the start and at the end. Rank r is the r-th rank of the topology;
ranks that no arc joins send along one shortest path through switches. Reducing collectives, in which several ranks
hold an address at the start, are not supported.

ForestColl (github.com/liangyuRain/ForestColl, XML of ``spanning_trees_to_xml``). Trees of an all-gather: every rank is
the root of trees with ``nchunkspernode`` chunks together, and each reaches all ranks. Names are labels of the topology.
``time`` is that of the flow, the load of the busiest link.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any

from opticoll.errors import BadFile
from opticoll.file_contents import check_file, read_bytes
from opticoll.instances.readers import reading
from opticoll.instances.readers.reading import parses_as_float
from opticoll.solvers.schedules.link_schedule import chunk_name, pair_capacity, ways_between
from opticoll.solvers.schedules.msccl_xml import MAX_BYTES as MSCCL_BYTES
from opticoll.solvers.schedules.schedule_check import ScheduleCheck, refused
from opticoll.types import Json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Set
    from pathlib import Path

    from opticoll.instances.readers.reading import XmlElement
    from opticoll.instances.topology import Topology


#: Limits: size of a ForestColl file [bytes], number of sends, and largest number in a file.
MAX_BYTES = 256 << 20
MAX_SENDS = 5_000_000
#: Tolerance on the sum of the volumes of a chunk, which TE-CCL rounds to 6 digits.
VOLUME = 1e-4
_FLOWS = re.compile(r"[0-9]-Flows")
_FLOW = re.compile(
    r"Chunk (?P<chunk>\d{1,9}) from (?P<source>\d{1,9}) traveled over (?P<tail>\d{1,9})->(?P<head>\d{1,9})"
    r"(?: with volume (?P<volume>[-+.0-9eE]{1,30}))? in epoch (?P<epoch>\d{1,9})"
    r"(?: via switches (?P<via>[-> 0-9]{1,200}))?"
)
#: A chunk: source, target (-1 for all ranks) and number.
Chunk = tuple[int, int, int]


@dataclass(frozen=True)
class Send:
    """Send of ``amount`` of a chunk along a path of vertices in one step."""

    step: int
    path: tuple[int, ...]
    chunk: Chunk
    amount: float = 1.0


@dataclass(frozen=True)
class Sends:
    """A schedule as sends.

    ``moves`` is whether a sender gives away what it sends, in parts, or keeps a copy; ``synchronous`` is whether a step
    begins only after the previous one has ended.
    """

    collective: str
    chunks: int
    sends: list[Send]
    moves: bool
    synchronous: bool


def foreign_tool(document: object) -> str | None:
    """Tool that wrote the schedule in a JSON document: ``TE-CCL`` or ``msccl``; None for any other document."""
    if not isinstance(document, dict):
        return None
    if document.get("msccl_type") == "algorithm":
        return "msccl"
    return "TE-CCL" if any(_FLOWS.fullmatch(str(key)) for key in document) else None


def read_foreign(document: dict[str, Json], path: Path, topology: Topology) -> Sends:
    """Read the schedule in a JSON document of TE-CCL or msccl-tools.

    Raises
    ------
    BadFile
        If it is malformed, or neither an all-to-all nor an all-gather.
    """
    return (_msccl if foreign_tool(document) == "msccl" else _teccl)(document, path, topology)


def _teccl(document: dict[str, Json], path: Path, topology: Topology) -> Sends:
    name, *more = (key for key in document if _FLOWS.fullmatch(key))
    if more:
        msg = f"{path}: it has {name!r} and {more[0]!r}; keep one of them"
        raise BadFile(msg)
    flows = document[name]
    if not isinstance(flows, list) or not flows or len(flows) > MAX_SENDS:
        msg = f"{path}: {name!r} must be a list of 1 to {MAX_SENDS} strings"
        raise BadFile(msg)
    with_volume = "volume" in str(flows[0])
    sends = [_flow(text, f"{path}: {name}[{i}]", topology, with_volume=with_volume) for i, text in enumerate(flows)]
    chunks = 1 + max(send.chunk[2] for send in sends)
    sends.sort(key=lambda send: send.step)
    return Sends("alltoall" if with_volume else "allgather", chunks, sends, moves=with_volume, synchronous=False)


def _flow(text: object, where: str, topology: Topology, *, with_volume: bool) -> Send:
    """The send that a string of TE-CCL describes."""
    match = _FLOW.fullmatch(text) if isinstance(text, str) else None
    if match is None or (match["volume"] is not None) != with_volume:
        msg = f"{where}: {str(text)[:80]!r} is not 'Chunk c from s traveled over i->j in epoch k'"
        raise BadFile(msg + ", with a volume in all entries or in none")
    vertices = [int(v) for v in (match["tail"], *re.findall(r"\d+", match["via"] or ""), match["head"])]
    source, number = int(match["source"]), int(match["chunk"])
    beyond = next((v for v in (*vertices, source) if v >= topology.n), None)
    if beyond is not None:
        msg = f"{where}: vertex {beyond} is not one of {topology.spec}, 0..{topology.n - 1}; "
        raise BadFile(msg + "number vertices as TE-CCL does")
    if not with_volume:
        return Send(int(match["epoch"]), tuple(vertices), (source, -1, number))
    amount = float(match["volume"]) if parses_as_float(match["volume"]) else 0.0
    if not 0 < amount <= 1:
        msg = f"{where}: volume {match['volume']!r} must be above 0 and at most 1"
        raise BadFile(msg)
    number, target = divmod(number, topology.num_ranks)
    return Send(int(match["epoch"]), tuple(vertices), (source, int(topology.terminals[target]), number), amount)


def _msccl(document: dict[str, Json], path: Path, topology: Topology) -> Sends:
    held = {key: _map(document.get(key), path, key, topology.num_ranks) for key in ("input_map", "output_map")}
    inputs, outputs = held["input_map"], held["output_map"]
    if len(set().union(*inputs.values())) < sum(map(len, inputs.values())):
        msg = f"{path}: several ranks hold an address at the start; reducing collectives are not supported"
        raise BadFile(msg)
    collective, chunks, chunk_of = _msccl_chunks(inputs, outputs, path, topology)
    terminal = topology.terminals.tolist()
    sends: list[Send] = []
    way = _ways(topology)
    steps = document.get("steps")
    for k, step in enumerate(steps if isinstance(steps, list) else [None]):
        rows = step.get("sends") if isinstance(step, dict) else None
        if not isinstance(rows, list) or len(sends) + len(rows) > MAX_SENDS:
            msg = f"{path}: steps[{k}] must have a list of 'sends', at most {MAX_SENDS} in all steps"
            raise BadFile(msg)
        for i, row in enumerate(rows):
            valid = isinstance(row, list) and len(row) == 3 and all(type(v) is int for v in row)
            if not valid or row[0] not in chunk_of or not all(0 <= v < topology.num_ranks for v in row[1:]):
                msg = f"{path}: steps[{k}].sends[{i}] must be [address, source, destination], not {str(row)[:60]}"
                raise BadFile(msg)
            sends.append(Send(k, way(terminal[row[1]], terminal[row[2]]), chunk_of[row[0]]))
    return Sends(collective, chunks, sends, moves=False, synchronous=True)


def _msccl_chunks(
    inputs: dict[int, set[int]], outputs: dict[int, set[int]], path: Path, topology: Topology
) -> tuple[str, int, dict[int, Chunk]]:
    """Collective, chunks of a shard and the chunk of every address, given those at the start and at the end."""
    ranks, everything = range(topology.num_ranks), set().union(*inputs.values())
    size = len(everything) // topology.num_ranks
    terminal = topology.terminals.tolist()
    chunk_of: dict[int, Chunk] = {}
    if size and all(len(inputs[r]) == size and outputs[r] == everything for r in ranks):
        for r in ranks:
            chunk_of.update({a: (terminal[r], -1, i) for i, a in enumerate(sorted(inputs[r]))})
        return "allgather", size, chunk_of
    chunks = size // topology.num_ranks
    parts = {(s, t): sorted(inputs[s] & outputs[t]) for s in ranks for t in ranks}
    if not chunks or {*map(len, parts.values())} != {chunks} or set().union(*outputs.values()) != everything:
        number = topology.num_ranks
        msg = f"{path}: input_map and output_map are neither an all-gather nor an all-to-all of {number} ranks"
        raise BadFile(msg)
    for (s, t), part in parts.items():
        chunk_of.update({a: (terminal[s], terminal[t], i) for i, a in enumerate(part)})
    return "alltoall", chunks, chunk_of


def _map(value: Any, path: Path, key: str, ranks: int) -> dict[int, set[int]]:
    valid = isinstance(value, dict) and set(value) == {str(r) for r in range(ranks)}
    valid = valid and all(isinstance(row, list) and all(type(a) is int for a in row) for row in value.values())
    if not valid or any(len(set(row)) < len(row) for row in value.values()):
        msg = f"{path}: {key!r} must hold a list of different addresses for each of the ranks 0..{ranks - 1}"
        raise BadFile(msg)
    return {int(r): set(row) for r, row in value.items()}


def _ways(topology: Topology) -> Callable[[int, int], tuple[int, ...]]:
    """Function of two ranks that returns a shortest path through switches only, or just the two if there is none."""
    known = ways_between(topology)

    def way(source: int, target: int) -> tuple[int, ...]:
        result = known.get((source, target))
        return (source, target) if result is None else (source, *(v for _, v in result[0]))

    return way


def run_sends(schedule: Sends, topology: Topology) -> ScheduleCheck:
    """Execute a schedule step by step.

    Returns
    -------
    A valid verdict has the metrics ``async_time``; ``time`` for schedules of synchronous steps (msccl), the sum over
    steps of the busiest link; ``steps``, ``transfers``, ``redundant`` (sends of data that the receiver already has),
    ``chunks`` of a shard, ``ranks``.
    """
    capacity, ranks = pair_capacity(topology), set(topology.terminals.tolist())
    gathering, D = schedule.collective == "allgather", schedule.chunks
    share: dict[tuple[int, Chunk], float] = defaultdict(float)
    ready: dict[tuple[int, Chunk], float] = defaultdict(float)
    free: dict[tuple[int, int], float] = defaultdict(float)
    time, end, steps, redundant = 0.0, 0.0, 0, 0
    for step, group in groupby(schedule.sends, key=lambda send: send.step):
        load: dict[tuple[int, int], float] = defaultdict(float)
        arriving: list[Send] = []
        for send in group:
            u, v, chunk = send.path[0], send.path[-1], send.chunk
            source = chunk[0]
            if u == source and (u, chunk) not in share:
                share[u, chunk] = 1.0
            violation = _violation(send, capacity, ranks, gathering=gathering)
            if violation is None and share[u, chunk] < send.amount - VOLUME:
                violation = "not-held", f"{u} sends {send.amount:g} of it but holds {share[u, chunk]:g}"
            if violation is not None:
                name = chunk_name(chunk, gathering=gathering)
                return refused(violation[0], f"step {step}: {name}: {violation[1]}", rank=u, chunk=chunk[2], step=step)
            start = max(ready[u, chunk], *(free[arc] for arc in pairwise(send.path)))
            for arc in pairwise(send.path):
                free[arc] = start + send.amount / (D * capacity[arc])
                load[arc] += send.amount
            finished = max(free[arc] for arc in pairwise(send.path))
            end = max(end, finished)
            if schedule.moves:
                share[u, chunk] -= send.amount
            arriving.append(send)
            if not schedule.moves and (v == source or share[v, chunk] > 0):
                redundant += 1
            else:
                ready[v, chunk] = max(ready[v, chunk], finished)
        for send in arriving:
            place = send.path[-1], send.chunk
            share[place] = share[place] + send.amount if schedule.moves else 1.0
        time += max(q / (D * capacity[arc]) for arc, q in load.items())
        steps += 1
    missing = _missing(schedule, topology.terminals.tolist(), share)
    if missing is not None:
        return missing
    metrics: dict[str, float | list[str] | dict[str, str] | None] = {
        "async_time": end,
        "steps": steps,
        "transfers": len(schedule.sends),
        "redundant": redundant,
        "chunks": D,
        "ranks": len(ranks),
    }
    return ScheduleCheck(True, metrics={"time": time, **metrics} if schedule.synchronous else metrics)


def _violation(
    send: Send, capacity: dict[tuple[int, int], float], ranks: set[int], *, gathering: bool
) -> tuple[str, str] | None:
    """Reason and message if a send is impossible on the topology; None if it is possible."""
    source, target, _ = send.chunk
    arc = next((arc for arc in pairwise(send.path) if arc not in capacity), None)
    if arc is not None:
        return "no-arc", f"moves {arc[0]}->{arc[1]}, which is not an arc"
    if source not in ranks or not (gathering or (target in ranks and target != source)):
        return "no-chunk", "only ranks send shards, and only to other ranks"
    ends, inner = {send.path[0], send.path[-1]}, send.path[1:-1]
    if not ends <= ranks or len(ends) < 2 or ranks.intersection(inner):
        return "no-route", f"{list(send.path)} does not lead from a rank to another through switches"
    return None


def _missing(schedule: Sends, ends: list[int], share: dict[tuple[int, Chunk], float]) -> ScheduleCheck | None:
    gathering = schedule.collective == "allgather"
    for target in ends:
        for source in ends:
            for number in range(schedule.chunks) if source != target else ():
                got = share.get((target, (source, -1 if gathering else target, number)), 0.0)
                if got < 1.0 - VOLUME:
                    part = "never arrives" if not got else f"arrives only in part ({got:g})"
                    msg = f"rank {target}: chunk {number} of {source} {part}"
                    return refused("missing-chunk", msg, rank=target, chunk=number)
    return None


def is_tree_file(path: Path) -> bool:
    """Whether an XML file is from ForestColl: its root element is ``<Algo>``; that of MSCCL XML is ``<algo>``."""
    check_file(path, MSCCL_BYTES, "name a schedule file")
    with path.open("rb") as stream:
        start = re.sub(rb"<!--.*?-->|<\?.*?\?>", b"", stream.read(65536), flags=re.DOTALL)
    return re.match(rb"[\xef\xbb\xbf\s]*<Algo[\s/>]", start) is not None


def run_trees(path: Path, topology: Topology) -> ScheduleCheck:
    """Check the trees of a ForestColl file (see the module docstring).

    Returns
    -------
    A valid verdict has the metrics ``time``, ``trees``, ``height`` (largest number of sends from a root), ``chunks``,
    ``ranks``.

    Raises
    ------
    BadFile
        If the file is malformed, or names something that is not a vertex.
    """
    root = reading.parse_xml(read_bytes(path, MAX_BYTES, "name a schedule file"), path, "write ForestColl XML")
    number = {label: v for v, label in enumerate(topology.labels)}
    if len(number) < topology.n:
        msg = f"{path}: vertices of {topology.spec} share labels, but the file names them by label; give each its own"
        raise BadFile(msg)
    capacity, ranks = pair_capacity(topology), set(topology.terminals.tolist())
    chunks = _whole(root, "nchunkspernode", path)
    load: dict[tuple[int, int], float] = defaultdict(float)
    carried: dict[int, int] = defaultdict(int)
    height = 0
    trees = root.all("tree")
    for tree in trees:
        where = f"{path}, line {tree.line}"
        top, weight = _vertex(tree, "root", number, path), _whole(tree, "nchunks", path)
        level = {top: 0}
        for send in tree.all("send"):
            u, v = (_vertex(send, end, number, path) for end in ("src", "dst"))
            way = [
                _named(name, number, f"{path}, line {send.line}") for name in _names(send.attributes.get("path", ""))
            ]
            arc = next((arc for arc in pairwise(way) if arc not in capacity), None)
            place = f"line {send.line}: the send {topology.labels[u]} to {topology.labels[v]}"
            if arc is not None:
                names = "->".join(topology.labels[x] for x in arc)
                return refused("no-arc", f"{place} moves over {names}, which is not an arc", rank=u)
            fault = _wrong_send(u, v, way, level.keys(), ranks)
            if fault is not None:
                return refused(fault[0], f"{place} {fault[1]}", rank=v if fault[0] == "duplicate" else u)
            level[v] = level[u] + 1
            for arc in pairwise(way):
                load[arc] += weight
        if ranks - set(level):
            left = topology.labels[min(ranks - set(level))]
            return refused("missing-chunk", f"{where}: the tree does not reach {left}", rank=min(ranks - set(level)))
        height = max(height, *level.values())
        carried[top] += weight
    wrong = next((r for r in sorted(ranks | set(carried)) if carried.get(r, 0) != (chunks if r in ranks else 0)), None)
    if wrong is not None:
        msg = f"trees of {topology.labels[wrong]} carry {carried.get(wrong, 0)} of {chunks} chunks"
        return refused("weights", msg, rank=wrong)
    time = max((q / (chunks * capacity[arc]) for arc, q in load.items()), default=0.0)
    return ScheduleCheck(
        True, metrics={"time": time, "trees": len(trees), "height": height, "chunks": chunks, "ranks": len(ranks)}
    )


def _wrong_send(u: int, v: int, way: list[int], reached: Set[int], ranks: set[int]) -> tuple[str, str] | None:
    """Reason and message if a send over arcs does not extend a tree from the vertices reached; None if it does."""
    if len(way) < 2 or (way[0], way[-1]) != (u, v) or ranks.intersection(way[1:-1]):
        return "no-route", "has a path that does not join them through switches"
    if u not in reached:
        return "not-held", "starts at a vertex that the tree has not reached yet"
    if v in reached or v not in ranks:
        return "duplicate", "ends at a vertex of the tree or at no rank"
    return None


def _names(text: str) -> Iterable[str]:
    """Return the vertices of a path; tuple names contain commas within parentheses."""
    return [name.strip() for name in re.findall(r"\([^()]*\)|[^,()]+", text)]


def _vertex(element: XmlElement, key: str, number: dict[str, int], path: Path) -> int:
    return _named(element.attributes.get(key, ""), number, f"{path}, line {element.line}")


def _named(name: str, number: dict[str, int], where: str) -> int:
    if name not in number:
        msg = f"{where}: {name[:60]!r} is not the label of a vertex; label vertices of the topology as ForestColl does"
        raise BadFile(msg)
    return number[name]


def _whole(element: XmlElement, key: str, path: Path) -> int:
    text = element.attributes.get(key, "")
    if not re.fullmatch(r"[1-9][0-9]{0,8}", text):
        msg = f"{path}, line {element.line}: {key}={text[:20]!r} must be a whole number of at least 1"
        raise BadFile(msg)
    return int(text)

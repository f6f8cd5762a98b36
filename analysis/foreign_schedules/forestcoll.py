"""Trees of ForestColl (github.com/liangyuRain/ForestColl, XML of ``spanning_trees_to_xml``).

Trees of an all-gather: every rank is the root of trees with ``nchunkspernode`` chunks together, and each reaches all
ranks. Names are labels of the topology. ``time`` is that of the flow, the load of the busiest link.
"""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING

from opticoll.file_contents import check_file, read_bytes
from opticoll.instances.readers import reading
from opticoll.instances.readers.reading import refuse
from opticoll.solvers.schedules.collective_steps import pair_capacity
from opticoll.solvers.schedules.msccl_xml import MAX_BYTES as MSCCL_BYTES
from opticoll.solvers.schedules.schedule_check import ScheduleCheck, ScheduleFormat, refused

if TYPE_CHECKING:
    from collections.abc import Iterable, Set
    from pathlib import Path
    from xml.etree.ElementTree import Element

    from opticoll.instances.topology import Topology
    from opticoll.types import Json


#: Size limit of a file [bytes].
MAX_BYTES = 256 << 20


def _recognises(document: Json, path: Path) -> bool:
    """Whether a file is from ForestColl: its root element is ``<Algo>``; that of MSCCL XML is ``<algo>``."""
    if document is not None or path.suffix.lower() != ".xml":
        return False
    check_file(path, MSCCL_BYTES, "name a schedule file")
    with path.open("rb") as stream:
        start = re.sub(rb"<!--.*?-->|<\?.*?\?>", b"", stream.read(65536), flags=re.DOTALL)
    return re.match(rb"[\xef\xbb\xbf\s]*<Algo[\s/>]", start) is not None


def _executed(_: Json, path: Path, topology: Topology, collective: str) -> ScheduleCheck:
    """Check the trees of a file.

    Returns
    -------
    A valid verdict has the metrics ``time``, ``trees``, ``height`` (largest number of sends from a root), ``chunks``,
    ``ranks``.

    Raises
    ------
    BadFile
        If the file is malformed, or names something that is not a vertex.
    """
    if collective != "allgather":
        return refused("collective", f"the file is a schedule for allgather, not for {collective}")
    root = reading.parse_xml(read_bytes(path, MAX_BYTES, "name a schedule file"), path, "write ForestColl XML")
    number = {label: v for v, label in enumerate(topology.labels)}
    if len(number) < topology.n:
        refuse(path, f"vertices of {topology.spec} share labels, but the file names them by label; give each its own")
    capacity, ranks = pair_capacity(topology), set(topology.terminals.tolist())
    chunks = _whole(root, "nchunkspernode", path)
    load: dict[tuple[int, int], float] = defaultdict(float)
    carried: dict[int, int] = defaultdict(int)
    height = 0
    trees = root.findall("tree")
    for tree in trees:
        where = f"{path}, line {reading.line_of(tree)}"
        top, weight = _vertex(tree, "root", number, path), _whole(tree, "nchunks", path)
        level = {top: 0}
        for send in tree.findall("send"):
            u, v = (_vertex(send, end, number, path) for end in ("src", "dst"))
            way = [
                _named(name, number, f"{path}, line {reading.line_of(send)}") for name in _names(send.get("path", ""))
            ]
            arc = next((arc for arc in pairwise(way) if arc not in capacity), None)
            place = f"line {reading.line_of(send)}: the send {topology.labels[u]} to {topology.labels[v]}"
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


def _vertex(element: Element, key: str, number: dict[str, int], path: Path) -> int:
    return _named(element.get(key, ""), number, f"{path}, line {reading.line_of(element)}")


def _named(name: str, number: dict[str, int], where: str) -> int:
    if name not in number:
        refuse(where, f"{name[:60]!r} is not the label of a vertex; label vertices of the topology as ForestColl does")
    return number[name]


def _whole(element: Element, key: str, path: Path) -> int:
    text = element.get(key, "")
    if not re.fullmatch(r"[1-9][0-9]{0,8}", text):
        refuse(f"{path}, line {reading.line_of(element)}", f"{key}={text[:20]!r} must be a whole number of at least 1")
    return int(text)


FORMAT = ScheduleFormat(_recognises, _executed)

"""Schedules of TE-CCL (github.com/microsoft/TE-CCL, JSON).

``N-Flows`` is a list of ``Chunk c from s traveled over i->j with volume x in epoch k via switches w``; the volume is
given for all-to-all only. Numbers are vertices of the topology, switches included. Chunk c of an all-to-all is for rank
c mod N and is its chunk c div N. Data sent in epoch k was held before k; switches store nothing. ``async_time`` is the
end of an execution in which every link serves its sends in the order of their epochs; epochs themselves, into which
TE-CCL rounds up, take no time. A send to several ranks through a switch counts for each of them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opticoll.analysis.foreign_schedules.sends import MAX_SENDS, Send, Sends, run_sends
from opticoll.errors import BadFile
from opticoll.instances.readers.reading import parses_as_float, refuse
from opticoll.solvers.schedules.schedule_check import ScheduleFormat

if TYPE_CHECKING:
    from pathlib import Path

    from opticoll.instances.topology import Topology
    from opticoll.solvers.schedules.schedule_check import ScheduleCheck
    from opticoll.types import Json


_FLOWS = re.compile(r"[0-9]-Flows")
_FLOW = re.compile(
    r"Chunk (?P<chunk>\d{1,9}) from (?P<source>\d{1,9}) traveled over (?P<tail>\d{1,9})->(?P<head>\d{1,9})"
    r"(?: with volume (?P<volume>[-+.0-9eE]{1,30}))? in epoch (?P<epoch>\d{1,9})"
    r"(?: via switches (?P<via>[-> 0-9]{1,200}))?"
)


def _recognises(document: Json, _path: Path) -> bool:
    return isinstance(document, dict) and any(map(_FLOWS.fullmatch, document))


def _executed(document: dict[str, Json], path: Path, topology: Topology, collective: str) -> ScheduleCheck:
    return run_sends(_sends(document, path, topology), topology, collective)


def _sends(document: dict[str, Json], path: Path, topology: Topology) -> Sends:
    name, *more = (key for key in document if _FLOWS.fullmatch(key))
    if more:
        refuse(path, f"it has {name!r} and {more[0]!r}; keep one of them")
    flows = document[name]
    if not isinstance(flows, list) or not flows or len(flows) > MAX_SENDS:
        refuse(path, f"{name!r} must be a list of 1 to {MAX_SENDS} strings")
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
        refuse(where, f"volume {match['volume']!r} must be above 0 and at most 1")
    number, target = divmod(number, topology.num_ranks)
    return Send(int(match["epoch"]), tuple(vertices), (source, int(topology.terminals[target]), number), amount)


FORMAT = ScheduleFormat(_recognises, _executed)

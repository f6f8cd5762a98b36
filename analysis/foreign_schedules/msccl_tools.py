"""Schedules of msccl-tools, and of SCCL (msccl/serialization.py, JSON).

``steps`` of ``sends`` ``[address, source, destination]``; ``input_map`` and ``output_map`` hold the addresses of every
rank at the start and at the end. Rank r is the r-th rank of the topology; ranks that no arc joins send along one
shortest path through switches. Reducing collectives, in which several ranks hold an address at the start, are not
supported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opticoll.analysis.foreign_schedules.sends import MAX_SENDS, Chunk, Send, Sends, run_sends
from opticoll.instances.readers.reading import refuse
from opticoll.solvers.schedules.link_schedule import ways_between
from opticoll.solvers.schedules.schedule_check import ScheduleFormat

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from opticoll.instances.topology import Topology
    from opticoll.solvers.schedules.schedule_check import ScheduleCheck
    from opticoll.types import Json


def _recognises(document: Json, _path: Path) -> bool:
    return isinstance(document, dict) and document.get("msccl_type") == "algorithm"


def _executed(document: dict[str, Json], path: Path, topology: Topology, collective: str) -> ScheduleCheck:
    return run_sends(_sends(document, path, topology), topology, collective)


def _sends(document: dict[str, Json], path: Path, topology: Topology) -> Sends:
    held = {key: _map(document.get(key), path, key, topology.num_ranks) for key in ("input_map", "output_map")}
    inputs, outputs = held["input_map"], held["output_map"]
    if len(set().union(*inputs.values())) < sum(map(len, inputs.values())):
        refuse(path, "several ranks hold an address at the start; reducing collectives are not supported")
    collective, chunks, chunk_of = _chunks(inputs, outputs, path, topology)
    terminal = topology.terminals.tolist()
    sends: list[Send] = []
    way = _ways(topology)
    steps = document.get("steps")
    for k, step in enumerate(steps if isinstance(steps, list) else [None]):
        rows = step.get("sends") if isinstance(step, dict) else None
        if not isinstance(rows, list) or len(sends) + len(rows) > MAX_SENDS:
            refuse(path, f"steps[{k}] must have a list of 'sends', at most {MAX_SENDS} in all steps")
        for i, row in enumerate(rows):
            valid = isinstance(row, list) and len(row) == 3 and all(type(v) is int for v in row)
            if not valid or row[0] not in chunk_of or not all(0 <= v < topology.num_ranks for v in row[1:]):
                refuse(path, f"steps[{k}].sends[{i}] must be [address, source, destination], not {str(row)[:60]}")
            sends.append(Send(k, way(terminal[row[1]], terminal[row[2]]), chunk_of[row[0]]))
    return Sends(collective, chunks, sends, moves=False, synchronous=True)


def _chunks(
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
        refuse(path, f"input_map and output_map are neither an all-gather nor an all-to-all of {number} ranks")
    for (s, t), part in parts.items():
        chunk_of.update({a: (terminal[s], terminal[t], i) for i, a in enumerate(part)})
    return "alltoall", chunks, chunk_of


def _map(value: Any, path: Path, key: str, ranks: int) -> dict[int, set[int]]:
    valid = isinstance(value, dict) and set(value) == {str(r) for r in range(ranks)}
    valid = valid and all(isinstance(row, list) and all(type(a) is int for a in row) for row in value.values())
    if not valid or any(len(set(row)) < len(row) for row in value.values()):
        refuse(path, f"{key!r} must hold a list of different addresses for each of the ranks 0..{ranks - 1}")
    return {int(r): set(row) for r, row in value.items()}


def _ways(topology: Topology) -> Callable[[int, int], tuple[int, ...]]:
    """Function of two ranks that returns a shortest path through switches only, or just the two if there is none."""
    known = ways_between(topology)

    def way(source: int, target: int) -> tuple[int, ...]:
        result = known.get((source, target))
        return (source, target) if result is None else (source, *(v for _, v in result[0]))

    return way


FORMAT = ScheduleFormat(_recognises, _executed)

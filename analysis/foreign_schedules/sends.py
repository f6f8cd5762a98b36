"""Schedules of other tools as sends of chunks, in order of their steps, and their execution."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

from opticoll.solvers.schedules.collective_steps import pair_capacity
from opticoll.solvers.schedules.moves_execution import chunk_name
from opticoll.solvers.schedules.schedule_check import ScheduleCheck, refused

if TYPE_CHECKING:
    from opticoll.instances.topology import Topology


#: Maximum number of sends in a file.
MAX_SENDS = 5_000_000
#: Tolerance on the sum of the volumes of a chunk, which TE-CCL rounds to 6 digits.
VOLUME = 1e-4
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


def run_sends(schedule: Sends, topology: Topology, collective: str) -> ScheduleCheck:
    """Execute a schedule step by step; refuse one that performs another collective.

    Returns
    -------
    A valid verdict has the metrics ``async_time``; ``time`` for schedules of synchronous steps (msccl), the sum over
    steps of the busiest link; ``steps``, ``transfers``, ``redundant`` (sends of data that the receiver already has),
    ``chunks`` of a shard, ``ranks``.
    """
    if schedule.collective != collective:
        return refused("collective", f"the file is a schedule for {schedule.collective}, not for {collective}")
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
                name = chunk_name(chunk[0] if gathering else chunk[:2], chunk[2])
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

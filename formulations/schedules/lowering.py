"""Lower link schedules to programs, and write solutions of formulations as schedule files.

A program has one thread block per rank, neighbour and direction; chunks in transit lie in scratch. Chunk c of (s, t)
leaves the input of s at [t D + c], has its own place in the scratch of every rank on its way, and arrives in the output
of t at [s D + c]. Thread blocks work through the steps in order; transfers of one arc and step whose places are
contiguous on both ends become one instruction. A relay's send waits only for the receive that brought its chunk: there
are no barriers, so the program may run ahead of the steps. It cannot deadlock: a send of one step waits only for
receives of earlier steps, and receives wait for no dependency.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

import numpy as np

from opticoll.errors import BadInput
from opticoll.formulations.model import NotApplicable
from opticoll.formulations.schedules.link_schedule import schedule_routes
from opticoll.formulations.schedules.msccl_xml import write_xml
from opticoll.formulations.schedules.program import Instruction, Place, Program, Rank, ThreadBlock
from opticoll.formulations.schedules.schedule_json import links_document, routes_document
from opticoll.formulations.schedules.shard_routes import cut, refuse_without_routes, routes_of, without_steps

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from opticoll.formulations.schedules.link_schedule import LinkSchedule
    from opticoll.instances.digraph import Topology


#: Most chunks per instruction (MSCCL_MAX_COUNT is 72, exclusive).
MOST_COUNT = 71
#: Other limits of the runtime (its msccl.h): instructions per thread block, thread blocks per rank.
MOST_STEPS, MOST_BLOCKS = 256, 216
#: Default for the most chunks per shard.
MOST_CHUNKS = 24


@dataclass
class _Move:
    """Contiguous chunks that one arc moves in one step, and the receives that brought them."""

    count: int
    source: Place
    target: Place
    brought: set[tuple[int, int]]


def lower(schedule: LinkSchedule, name: str = "opticoll") -> Program:
    """The program of an all-to-all link schedule.

    Raises
    ------
    NotApplicable
        If some vertex is not a rank: only ranks run programs.
    """
    topology, D = schedule.topology, schedule.chunks
    if topology.ranks != topology.n:
        msg = (
            f"lowering: {topology.spec} has {topology.n - topology.ranks} vertices that are not ranks and cannot run a "
            "program; write the schedule as .json, or use a topology whose vertices are all ranks"
        )
        raise NotApplicable(msg)
    N = topology.n
    builder = _Builder(N, D)
    table = schedule.transfers
    pair = topology.tail[table[:, 1]] * N + topology.head[table[:, 1]]
    order = np.lexsort((table[:, 4], table[:, 3], table[:, 2], pair, table[:, 0]))
    rows = np.column_stack([table[order, 0], pair[order], table[order, 2:]]).tolist()
    first = 0
    while first < len(rows):
        last = first
        while last < len(rows) and rows[last][:2] == rows[first][:2]:
            last += 1
        tail, head = divmod(rows[first][1], N)
        builder.move(tail, head, [tuple(row[2:]) for row in rows[first:last]])
        first = last
    return builder.program(name)


class _Builder:
    def __init__(self, N: int, D: int) -> None:
        self.N, self.D = N, D
        self.outgoing: list[dict[int, list[_Move]]] = [{} for _ in range(N)]
        self.incoming: list[dict[int, list[_Move]]] = [{} for _ in range(N)]
        self.scratch = [0] * N
        # Scratch offset of every chunk in transit, and the receive (sender, position) that brought it.
        self.held: list[dict[tuple[int, int, int], tuple[int, tuple[int, int]]]] = [{} for _ in range(N)]

    def move(self, tail: int, head: int, chunks: list[tuple[int, int, int]]) -> None:
        """Move chunks (source, target, number) in one step; join moves that are contiguous on both ends."""
        placed = sorted((*self._origin(tail, chunk), chunk) for chunk in chunks)
        sends = self.outgoing[tail].setdefault(head, [])
        receives = self.incoming[head].setdefault(tail, [])
        open_end = len(sends)  # moves of this step start here
        for buffer, offset, brought, chunk in placed:
            target = self._destination(head, chunk)
            by = {brought} if brought is not None else set()
            joined = None
            if len(sends) > open_end:
                last = sends[-1]
                ends = (last.source.offset + last.count, last.target.offset + last.count)
                same = last.source.buffer == buffer and last.target.buffer == target.buffer
                if same and ends == (offset, target.offset) and last.count < MOST_COUNT:
                    joined = last
            if joined is not None:
                joined.count += 1
                joined.brought |= by
                receives[-1].count += 1
            else:
                sends.append(_Move(1, Place(buffer, offset), target, by))
                receives.append(_Move(1, Place(buffer, offset), target, set()))
            if chunk[1] != head:
                self.held[head][chunk] = (target.offset, (tail, len(receives) - 1))

    def _origin(self, rank: int, chunk: tuple[int, int, int]) -> tuple[str, int, tuple[int, int] | None]:
        source, target, number = chunk
        if source == rank:
            return "i", target * self.D + number, None
        if chunk not in self.held[rank]:
            name = f"chunk {number} of {source}->{target}"
            msg = f"lowering: rank {rank} sends {name} before receiving it; check the schedule"
            raise NotApplicable(msg)
        offset, brought = self.held[rank][chunk]
        return "s", offset, brought

    def _destination(self, rank: int, chunk: tuple[int, int, int]) -> Place:
        source, target, number = chunk
        if target == rank:
            return Place("o", source * self.D + number)
        self.scratch[rank] += 1
        return Place("s", self.scratch[rank] - 1)

    def program(self, name: str) -> Program:
        """The program: per rank, sends by peer, receives by peer, then the copy of its own shard."""
        size = self.N * self.D
        return Program(name, "alltoall", size, [self._rank(v, size) for v in range(self.N)])

    def _rank(self, v: int, size: int) -> Rank:
        rank = Rank({"i": size, "o": size, "s": self.scratch[v]})
        receivers = {peer: len(self.outgoing[v]) + j for j, peer in enumerate(sorted(self.incoming[v]))}
        awaited: set[tuple[int, int]] = set()
        for number, peer in enumerate(sorted(self.outgoing[v])):
            block = ThreadBlock(number, peer, -1, 0)
            passed: dict[int, int] = {}
            for move in self.outgoing[v][peer]:
                need: dict[int, int] = {}
                for sender, position in move.brought:
                    need[receivers[sender]] = max(need.get(receivers[sender], -1), position)
                waits = sorted((b, s) for b, s in need.items() if s > passed.get(b, -1))
                passed.update(waits)
                awaited.update(waits)
                for extra in waits[:-1]:
                    block.instructions.append(Instruction("nop", Place("i", -1), Place("o", -1), 0, extra))
                last = waits[-1] if waits else None
                block.instructions.append(Instruction("s", move.source, move.target, move.count, last))
            rank.blocks[number] = block
        for peer, number in receivers.items():
            block = ThreadBlock(number, -1, peer, 0)
            for position, move in enumerate(self.incoming[v][peer]):
                one = Instruction("r", move.source, move.target, move.count)
                block.instructions.append(replace(one, signals=(number, position) in awaited))
            rank.blocks[number] = block
        own = len(rank.blocks)
        copies = ThreadBlock(own, -1, -1, 0)
        for first in range(0, self.D, MOST_COUNT):
            place = v * self.D + first
            count = min(MOST_COUNT, self.D - first)
            copies.instructions.append(Instruction("cpy", Place("i", place), Place("o", place), count))
        rank.blocks[own] = copies
        return rank


def fits_runtime(program: Program) -> bool:
    """Whether the program keeps the MSCCL runtime's limits on steps, thread blocks and counts."""
    blocks = [block for rank in program.ranks for block in rank.blocks.values()]
    return (
        all(len(rank.blocks) <= MOST_BLOCKS for rank in program.ranks)
        and all(len(block.instructions) <= MOST_STEPS for block in blocks)
        and all(one.count <= MOST_COUNT for block in blocks for one in block.instructions)
    )


class CutFacts(TypedDict):
    """The cost of cutting a flow into chunks; ``loss`` is ``time / fluid_time - 1``."""

    chunks: int
    fluid_time: float | None
    time: float
    loss: float
    steps: NotRequired[int]
    alpha_beta_time: NotRequired[float]


def refuse_early(path: Path, name: str, topology: Any) -> None:
    """Check before a solve that its schedule can be written.

    Raises
    ------
    BadInput
        For a file name that does not end in ``.xml`` or ``.json``, or vertices that cannot run a program.
    NotApplicable
        For a formulation without routes.
    """
    if path.suffix.lower() not in {".xml", ".json"}:
        msg = f"{path}: unknown schedule format; use .xml (MSCCL), .json (links) or .routes.json (routes)"
        raise BadInput(msg)
    refuse_without_routes(name)
    if path.suffix.lower() == ".xml" and getattr(topology, "ranks", None) != getattr(topology, "n", None):
        msg = f"{path}: some vertices of {topology.spec} are not ranks and cannot run a program; use .json"
        raise BadInput(msg)


def schedule_text(
    path: Path,
    name: str,
    data: Any,
    topology: Topology,
    values: Mapping[str, NDArray[np.float64]],
    *,
    most: int = MOST_CHUNKS,
    alpha: float = 0.0,
    beta: float = 1.0,
) -> tuple[str, CutFacts]:
    """The text of a schedule file, and the cost of cutting the flow into chunks.

    Parameters
    ----------
    path
        File name; its suffix selects the format: ``.xml`` MSCCL, ``.routes.json`` routes, other ``.json`` links.
    name, data, topology, values
        The formulation and its verified solution.
    most
        Most chunks per shard.
    alpha, beta
        Cost model by which list scheduling chooses the size of its steps.

    Returns
    -------
    text
        Contents of the file.
    facts
        See :class:`CutFacts`.
    """
    facts: CutFacts
    routes = routes_of(name, data, values)
    if path.name.lower().endswith(".routes.json"):
        chunked = cut(topology, without_steps(routes), most)
        facts = {"chunks": chunked.chunks, "fluid_time": chunked.fluid_time, "time": chunked.time, "loss": chunked.loss}
        return json.dumps(routes_document(topology, chunked)) + "\n", facts
    schedule = schedule_routes(topology, routes, most=most, alpha=alpha, beta=beta)
    fluid, time = schedule.fluid_time, schedule.time()
    facts = {
        "chunks": schedule.chunks, "steps": schedule.steps, "fluid_time": fluid, "time": time,
        "alpha_beta_time": schedule.time(alpha, beta), "loss": max(time / fluid - 1.0, 0.0) if fluid else 0.0,
    }  # fmt: skip
    if path.suffix.lower() == ".xml":
        return write_xml(lower(schedule, f"{name} {topology.spec}")), facts
    return json.dumps(links_document(schedule)) + "\n", facts

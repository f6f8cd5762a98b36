"""Lower schedules of collectives with copies and sums to programs.

A program has a thread block for every rank, neighbour, direction and channel; receives that add are ``rrc``. Partial
sums lie in scratch (reduce-scatter) or in the output (all-reduce); inputs are not written. An instruction waits for the
receive that wrote its chunk last. It cannot deadlock: an instruction waits for instructions of earlier steps, or of the
same step and a lower peer.

The messages of a connection are dealt out in turn to its channels, at both ends alike. With I instances every chunk is
divided into I parts, each with channels of its own.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from opticoll.formulations.model import NotApplicable
from opticoll.formulations.schedules.program import (
    Instruction,
    Place,
    Program,
    Rank,
    Target,
    ThreadBlock,
    deal_channels,
)

if TYPE_CHECKING:
    from opticoll.formulations.schedules.collective_steps import CollectiveSteps, Move
    from opticoll.instances.digraph import Topology

#: (sender, receiver, instance)
Line = tuple[int, int, int]


class _Written(NamedTuple):
    """Where a rank holds a chunk, and the message that wrote it last: its connection and number there."""

    place: Place
    by: tuple[Line, int] | None


def lower_moves(
    schedule: CollectiveSteps,
    topology: Topology,
    name: str = "opticoll",
    *,
    target: Target | None = None,
    channels: int = 1,
    instances: int = 1,
) -> Program:
    """The program of a schedule.

    Parameters
    ----------
    schedule, topology
        What is sent, and where.
    name
        Name of the program.
    target
        Runtime whose steps a thread block, and peers a channel, are kept; None for no limits.
    channels
        Least channels of a connection that has as many messages.
    instances
        Parts of every chunk with channels of their own.

    Raises
    ------
    NotApplicable
        For a broadcast, whose root the format does not state.
    """
    if schedule.collective == "broadcast":
        msg = "lowering: MSCCL XML does not state the root of a broadcast; write the schedule as .json"
        raise NotApplicable(msg)
    number = {v: r for r, v in enumerate(topology.terminals.tolist())}
    lowering = _Lowering(schedule.collective, len(number), schedule.chunks, instances)
    for step in schedule.steps:
        for move in sorted(step, key=lambda move: (number[move.path[-1]], number[move.path[0]], move)):
            for part in range(instances):
                line = number[move.path[0]], number[move.path[-1]], part
                lowering.send(line, number[move.shard], move, move.chunk + part * schedule.chunks)
        lowering.end_step()
    return lowering.program(name, target, channels)


class _Lowering:
    def __init__(self, collective: str, N: int, D: int, instances: int) -> None:
        self.collective, self.N, self.D = collective, N, D * instances
        self.lines: dict[Line, list[tuple[_Written, str, _Written, Place]]] = defaultdict(list)
        self.held: list[dict[tuple[int, int], _Written]] = [{} for _ in range(N)]
        self.later: list[tuple[Line, int, int, bool, _Written]] = []
        self.scratch = [0] * N

    def _own(self, rank: int, shard: int, chunk: int) -> _Written:
        offset = chunk if self.collective == "allgather" else shard * self.D + chunk
        return self.held[rank].get((shard, chunk), _Written(Place("i", offset), None))

    def send(self, line: Line, shard: int, move: Move, chunk: int) -> None:
        """Add a message; what it brings counts from the end of the step."""
        self.later.append((line, shard, chunk, move.adds, self._own(line[0], shard, chunk)))

    def end_step(self) -> None:
        """Deliver the messages of a step."""
        for line, shard, chunk, adds, source in self.later:
            v = line[1]
            before = self._own(v, shard, chunk)
            target = self._target(v, shard, chunk, before.place)
            self.lines[line].append((source, "rrc" if adds else "r", before, target))
            self.held[v][shard, chunk] = _Written(target, (line, len(self.lines[line]) - 1))
        self.later = []

    def _target(self, rank: int, shard: int, chunk: int, before: Place) -> Place:
        if self.collective != "reducescatter":
            return Place("o", shard * self.D + chunk)
        if rank == shard:
            return Place("o", chunk)
        if before.buffer == "s":
            return before
        self.scratch[rank] += 1
        return Place("s", self.scratch[rank] - 1)

    def program(self, name: str, target: Target | None, channels: int) -> Program:
        """The program: per rank, sends by peer and channel, receives likewise, then the copy of its own shard."""
        split = {
            line: max(min(channels, len(those)), 1 if target is None else -(-len(those) // target.steps))
            for line, those in self.lines.items()
        }
        self.channels = deal_channels(split, self.N if target is None else target.peers)
        ranks = [self._rank(v) for v in range(self.N)]
        return Program(name, self.collective, self.N * self.D, ranks)

    def _rank(self, v: int) -> Rank:
        N, D = self.N, self.D
        sizes = {
            "i": D if self.collective == "allgather" else N * D,
            "o": D if self.collective == "reducescatter" else N * D,
            "s": self.scratch[v],
        }
        rank = Rank(sizes)
        out, into = ([line for line in sorted(self.lines) if line[end] == v] for end in (0, 1))
        block_of = {
            (line, j): number
            for number, (line, j) in enumerate(
                (line, j) for line in (*out, *into) for j in range(len(self.channels[line]))
            )
        }
        awaited: set[tuple[int, int]] = set()

        def waits(written: _Written, own: int) -> tuple[int, int] | None:
            if written.by is None:
                return None
            line, i = written.by
            many = len(self.channels[line])
            found = block_of[line, i % many], i // many
            if found[0] == own:
                return None
            awaited.add(found)
            return found

        listed: list[tuple[ThreadBlock, list[Instruction]]] = []
        for (line, j), b in block_of.items():
            sends, those = line[0] == v, self.lines[line][j :: len(self.channels[line])]
            steps = [
                Instruction("s", source.place, target, 1, waits(source, b))
                if sends
                else Instruction("rrc", before.place, target, 1, waits(before, b))
                if kind == "rrc"
                else Instruction("r", target, target)
                for source, kind, before, target in those
            ]
            ends = (line[1], -1) if sends else (-1, line[0])
            listed.append((ThreadBlock(b, *ends, self.channels[line][j]), steps))
        for block, steps in listed:
            block.instructions += [replace(one, signals=(block.number, i) in awaited) for i, one in enumerate(steps)]
            rank.blocks[block.number] = block
        if self.collective == "allgather":
            own = ThreadBlock(len(rank.blocks), -1, -1, 0)
            own.instructions += [Instruction("cpy", Place("i", c), Place("o", v * D + c)) for c in range(D)]
            rank.blocks[own.number] = own
        return rank

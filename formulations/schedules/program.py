"""Programs of thread blocks as the MSCCL interpreter runs them, collectives, and verdicts.

A rank has three buffers of chunks: input ``i``, output ``o``, scratch ``s``. A thread block sends to at most one rank
and receives from at most one, over one channel, and executes its instructions in order:

    s     send src                            r     receive into dst
    cpy   src to dst                          re    dst + src into dst
    rcs   receive into dst and send on        rrc   receive, + src, into dst
    rrs   receive, + src, send on             rrcs  receive, + src, into dst and send on
    nop   no operation: carries one more dependency of the next instruction

An instruction may wait until another thread block of its rank has finished a step (``waits``); a thread block
publishes its progress only at instructions that ``signal``.

Collectives. N ranks, D chunks per shard; every chunk of a result is a sum of contributions (origin rank, index there).

    alltoall        input of r: N D chunks, [t D + c] for rank t;     output of r: [s D + c] = [r D + c] of s
    allgather       input of r: D chunks;                             output of r: [s D + c] = [c] of s
    reducescatter   input of r: N D chunks;                           output of r: [c] = sum over s of its [r D + c]
    allreduce       input of r: C chunks;                             output of r: [c] = sum over s of its [c]

In place, input and output share memory: entirely for alltoall and allreduce; the input of allgather is the part
[r D, (r+1) D) of its output, and the output of reducescatter that part of its input.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


#: Reasons for which a schedule is refused.
REASONS = {
    "collective": "the schedule performs another collective",
    "ranks": "the schedule has another number of ranks",
    "no-arc": "a transfer uses an arc that the topology does not have",
    "two-owners": "two thread blocks of a rank use one end of a connection",
    "unmatched-send": "a send without a receive",
    "unmatched-receive": "a receive without a send",
    "count-mismatch": "the k-th send and the k-th receive of a connection move different numbers of chunks",
    "numbering": "steps of a thread block do not count up from 0",
    "bounds": "a step accesses chunks outside its buffer",
    "no-peer": "a thread block without a peer sends or receives",
    "dependency": "an instruction waits for a step that does not exist",
    "deadlock": "no thread block can proceed",
    "race": "two thread blocks access a chunk, at least one writing it, in no defined order",
    "missing-chunk": "a chunk never arrives",
    "wrong-chunk": "an output holds the wrong chunk",
    "wrong-sum": "a sum misses a contribution or counts it more than once",
    "uninitialised": "a chunk was read before it was written",
    "not-held": "a rank sends a chunk that it does not hold yet",
    "no-chunk": "a transfer names a chunk that the collective does not have",
    "duplicate": "a rank receives a chunk that it already holds",
    "no-route": "a route is not a path from its source to its target",
    "weights": "the routes of a pair do not carry exactly its shard",
}


@dataclass(frozen=True)
class Verdict:
    """The result of a check; an invalid one has a ``reason`` (a key of REASONS) and the first violation."""

    valid: bool
    reason: str = ""
    message: str = ""
    rank: int | None = None
    chunk: int | None = None
    step: str | None = None
    metrics: dict[str, float | None] = field(default_factory=dict)


def refused(
    reason: str, message: str, *, rank: int | None = None, chunk: int | None = None, step: str | int | None = None
) -> Verdict:
    """An invalid verdict; its message starts with the reason."""
    where = None if step is None else str(step)
    return Verdict(False, reason, f"{reason}: {message}", rank, chunk, where)


SENDS = frozenset({"s", "rcs", "rrs", "rrcs"})
RECEIVES = frozenset({"r", "rcs", "rrc", "rrs", "rrcs"})
READS = frozenset({"s", "cpy", "re", "rrc", "rrs", "rrcs"})
WRITES = frozenset({"r", "cpy", "re", "rcs", "rrc", "rrcs"})
KINDS = SENDS | RECEIVES | READS | WRITES | {"nop"}
COLLECTIVES = ("alltoall", "allgather", "reducescatter", "allreduce")

#: Contributions to a chunk: (origin rank, index in its input), ascending.
Contributions = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Place:
    """Chunk ``offset`` of buffer ``i``, ``o`` or ``s``."""

    buffer: str
    offset: int


@dataclass(frozen=True)
class Instruction:
    """One step of a thread block; ``waits`` is (thread block, step) of the same rank or None.

    ``number`` is the step number in the file if it differs from the position.
    """

    kind: str
    source: Place
    target: Place
    count: int = 1
    waits: tuple[int, int] | None = None
    signals: bool = False
    number: int | None = None


@dataclass
class ThreadBlock:
    """Instructions in order; ``send`` and ``receive`` are the peers' ranks or -1."""

    number: int
    send: int
    receive: int
    channel: int
    instructions: list[Instruction] = field(default_factory=list)


@dataclass
class Rank:
    """Declared buffer sizes [chunks] and thread blocks of one rank, by number."""

    sizes: dict[str, int]
    blocks: dict[int, ThreadBlock] = field(default_factory=dict)


@dataclass
class Program:
    """The program of a collective: ``chunks_per_loop`` is N D, or C for allreduce."""

    name: str
    collective: str
    chunks_per_loop: int
    ranks: list[Rank]
    inplace: bool = False
    protocol: str = "Simple"

    @property
    def chunks(self) -> int:
        """Chunks D of a shard (C for allreduce)."""
        return self.chunks_per_loop if self.collective == "allreduce" else self.chunks_per_loop // len(self.ranks)

    @property
    def instructions(self) -> int:
        """Number of instructions in all thread blocks."""
        return sum(len(block.instructions) for rank in self.ranks for block in rank.blocks.values())

    def initial(self, rank: int, place: Place) -> Contributions | None:
        """Initial contents of a place (see :meth:`located`); None if empty."""
        part = self.chunks
        gathering = self.collective == "allgather"
        if self.inplace and gathering:
            held = place.buffer == "o" and place.offset // part == rank
            return ((rank, place.offset - rank * part),) if held else None
        if self.inplace and self.collective in {"alltoall", "allreduce", "reducescatter"}:
            return ((rank, place.offset),) if place.buffer == "i" and place.offset < self.chunks_per_loop else None
        most = part if gathering else self.chunks_per_loop
        return ((rank, place.offset),) if place.buffer == "i" and place.offset < most else None

    def located(self, rank: int, place: Place) -> Place:
        """The canonical place of a memory location that two buffers share."""
        if not self.inplace or place.buffer == "s":
            return place
        if self.collective == "allgather":
            return place if place.buffer == "o" else Place("o", rank * self.chunks + place.offset)
        if place.buffer == "i":
            return place
        shift = rank * self.chunks if self.collective == "reducescatter" else 0
        return Place("i", shift + place.offset)

    def demanded(self, rank: int) -> Iterator[tuple[Place, Contributions]]:
        """Every chunk of the rank's output and its required contributions."""
        N, D = len(self.ranks), self.chunks
        if self.collective in {"alltoall", "allgather"}:
            for s in range(N):
                for c in range(D):
                    index = rank * D + c if self.collective == "alltoall" else c
                    yield Place("o", s * D + c), ((s, index),)
        else:
            shift = rank * D if self.collective == "reducescatter" else 0
            for c in range(D):
                yield Place("o", c), tuple((s, shift + c) for s in range(N))

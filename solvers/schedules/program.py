"""Programs of collectives: ranks, thread blocks and instructions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator


SENDS = frozenset({"s", "rcs", "rrs", "rrcs"})
RECEIVES = frozenset({"r", "rcs", "rrc", "rrs", "rrcs"})
READS = frozenset({"s", "cpy", "re", "rrc", "rrs", "rrcs"})
WRITES = frozenset({"r", "cpy", "re", "rcs", "rrc", "rrcs"})
KINDS = SENDS | RECEIVES | READS | WRITES | {"nop"}
COLLECTIVES = ("alltoall", "allgather", "reducescatter", "allreduce")

#: (sender, receiver, channel)
Connection = tuple[int, int, int]
#: Contributions to a chunk: (origin rank, index in its input), ascending.
Contributions = tuple[tuple[int, int], ...]


class Place(NamedTuple):
    """Chunk ``offset`` of buffer ``i``, ``o`` or ``s``."""

    buffer: str
    offset: int


@dataclass(frozen=True, slots=True)
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
    """The program of a collective: ``chunks_per_loop`` is N D, or C for allreduce.

    ``min_bytes`` and ``max_bytes`` are the sizes of the whole buffer for which a runtime should select it. ``spelled``
    is the file's name for the collective if it differs, ``missing`` the attributes that the file lacks.
    """

    name: str
    collective: str
    chunks_per_loop: int
    ranks: list[Rank]
    inplace: bool = False
    protocol: str = "Simple"
    min_bytes: int = 0
    max_bytes: int = 0
    spelled: str | None = None
    missing: tuple[str, ...] = ()

    @property
    def chunks(self) -> int:
        """Chunks D of a shard (C for allreduce)."""
        return self.chunks_per_loop if self.collective == "allreduce" else self.chunks_per_loop // len(self.ranks)

    def blocks(self) -> Iterator[tuple[int, ThreadBlock]]:
        """Every thread block with its rank."""
        return ((v, block) for v, rank in enumerate(self.ranks) for block in rank.blocks.values())

    @property
    def instructions(self) -> int:
        """Number of instructions in all thread blocks."""
        return sum(len(block.instructions) for _, block in self.blocks())

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

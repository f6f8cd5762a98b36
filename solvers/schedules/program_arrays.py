"""Programs in flat arrays: from programs of objects and back, written as MSCCL XML, and their limits."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Self

import numpy as np

from opticoll.solvers.schedules.program import Instruction, Place, Rank, ThreadBlock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opticoll.instances.topology import I64, Mask
    from opticoll.solvers.schedules.program import Program

#: Kinds of instructions and buffers by their numbers in the arrays.
NAMES = ("s", "r", "cpy", "nop", "rrc", "rcs", "rrs", "rrcs", "re")
SEND, RECEIVE, COPY, NOP, ADD, SUM = 0, 1, 2, 3, 4, 8
BUFFERS = "ios"


@dataclass(frozen=True, eq=False)
class ProgramArrays:
    """Thread blocks b, rank by rank, and their instructions ``first[b] : first[b + 1]``.

    Parameters
    ----------
    rank, number, send, receive, channel
        Of every block: its rank and number there, peers or -1, channel.
    first
        First instruction of every block, and their number, ``(blocks + 1,)``.
    kind, source, target, count
        Of every instruction: its kind, a number in :data:`NAMES`; rows (buffer, offset); chunks.
    waits
        Rows (block of the same rank, step) for which an instruction waits, or -1.
    signals
        Whether others wait for an instruction.
    sizes
        Declared sizes of the three buffers of every rank, ``(N, 3)``.
    """

    rank: I64
    number: I64
    send: I64
    receive: I64
    channel: I64
    first: I64
    kind: I64
    source: I64
    target: I64
    count: I64
    waits: I64
    signals: Mask
    sizes: I64

    @classmethod
    def of(cls, program: Program) -> Self:
        """The arrays of a program of objects."""
        blocks: list[tuple[int, int, int, int, int, int]] = []
        steps: list[tuple[int, ...]] = []
        names, buffers = {name: i for i, name in enumerate(NAMES)}, {name: i for i, name in enumerate(BUFFERS)}
        for place, block in program.blocks():
            blocks.append((place, block.number, block.send, block.receive, block.channel, len(block.instructions)))
            for step in block.instructions:
                a, b = step.source, step.target
                ends = (buffers[a.buffer], a.offset, buffers[b.buffer], b.offset)
                steps.append((names[step.kind], *ends, step.count, *(step.waits or (-1, -1)), step.signals))
        columns = np.array(blocks, dtype=np.int64).reshape(-1, 6).T
        table = np.array(steps, dtype=np.int64).reshape(-1, 9)
        v, number, send, receive, channel, length = columns
        first = np.concatenate([[0], np.cumsum(length)])
        sizes = np.array([[rank.sizes[name] for name in BUFFERS] for rank in program.ranks], dtype=np.int64)
        kind, source, target, count = table[:, 0], table[:, 1:3], table[:, 3:5], table[:, 5]
        waits, signals, sizes = table[:, 6:8], table[:, 8] > 0, sizes.reshape(-1, 3)
        return cls(v, number, send, receive, channel, first, kind, source, target, count, waits, signals, sizes)

    def ranks(self, *, instructions: bool = True) -> list[Rank]:
        """The ranks as objects; without ``instructions``, their blocks are empty."""
        result = [Rank(dict(zip(BUFFERS, row, strict=True))) for row in self.sizes.tolist()]
        known: dict[tuple[int, int], Place] = {}

        def place(buffer: int, offset: int) -> Place:
            found = known.get((buffer, offset))
            if found is None:
                found = known[buffer, offset] = Place(BUFFERS[buffer], offset)
            return found

        for b, (v, number, send, receive, channel) in enumerate(self._blocks()):
            block = result[v].blocks[number] = ThreadBlock(number, send, receive, channel)
            if instructions:
                block.instructions += [
                    Instruction(
                        NAMES[kind], place(*a), place(*to), count, None if wait[0] < 0 else (wait[0], wait[1]), signals
                    )
                    for kind, a, to, count, wait, signals in self._rows(*self.first[b : b + 2])
                ]
        return result

    def _blocks(self) -> list[list[int]]:
        columns = (self.rank, self.number, self.send, self.receive, self.channel)
        rows: list[list[int]] = np.column_stack(columns).tolist()
        return rows

    def _rows(self, first: int, last: int) -> Iterator[tuple[int, list[int], list[int], int, list[int], bool]]:
        part = slice(first, last)
        columns = (self.kind, self.source, self.target, self.count, self.waits, self.signals)
        return zip(*(column[part].tolist() for column in columns), strict=True)

    def xml(self) -> Iterator[str]:
        """The elements ``<gpu>`` of MSCCL XML, one after the other."""
        blocks = self._blocks()
        bounds = np.searchsorted(self.rank, np.arange(len(self.sizes) + 1)).tolist()
        for v, (begin, end) in enumerate(pairwise(bounds)):
            sizes = " ".join(f'{name}_chunks="{size}"' for name, size in zip(BUFFERS, self.sizes[v], strict=True))
            lines = [f'  <gpu id="{v}" {sizes}>']
            for b in range(begin, end):
                _, number, send, receive, channel = blocks[b]
                lines.append(f'    <tb id="{number}" send="{send}" recv="{receive}" chan="{channel}">')
                lines += [
                    f'      <step s="{s}" type="{NAMES[kind]}" srcbuf="{BUFFERS[a[0]]}" srcoff="{a[1]}" '
                    f'dstbuf="{BUFFERS[to[0]]}" dstoff="{to[1]}" '
                    f'cnt="{count}" depid="{wait[0]}" deps="{wait[1]}" hasdep="{1 if signals else 0}"/>'
                    for s, (kind, a, to, count, wait, signals) in enumerate(
                        self._rows(self.first[b], self.first[b + 1])
                    )
                ]
                lines.append("    </tb>")
            yield "\n".join([*lines, "  </gpu>\n"])

    @property
    def block(self) -> I64:
        """Block of every instruction."""
        return np.repeat(np.arange(self.rank.size), np.diff(self.first))

    def usage(self) -> dict[str, int]:
        """What the program uses of every limit of a :class:`opticoll.solvers.schedules.runtimes.Target`.

        ``loose`` are steps after a waiting ``nop`` that do not wait, although the parsers of all runtimes require it.
        """
        steps, N = np.diff(self.first), len(self.sizes)
        blocks = np.bincount(self.rank, minlength=N)
        whole = 1 + N + blocks + np.bincount(self.rank, steps, minlength=N).astype(np.int64)
        width = int(self.channel.max(initial=0)) + 1

        def peers(ends: I64) -> int:
            return int(np.bincount((self.rank * width + self.channel)[ends >= 0]).max(initial=0))

        after = self._after_nops()
        return {
            "steps": int(steps.max(initial=0)),
            "blocks": int(self.number.max(initial=-1)) + 1,
            "channels": int(self.channel.max(initial=-1)) + 1,
            "sends": peers(self.send),
            "receives": peers(self.receive),
            "count": int(self.count.max(initial=0)),
            "wait": int(self.waits[:, 0].max(initial=0)),
            "offset": int(self.sizes.max(initial=1)) - 1,
            "nodes": int(whole.max(initial=0)),
            "loose": int((self.waits[after, 0] < 0).sum()),
        }

    def _after_nops(self) -> I64:
        """The instructions that follow a waiting ``nop``.

        The parsers merge a ``re`` that does not wait into the preceding ``re`` that sums into the same place.
        """
        block, step = self.block, np.flatnonzero(self.kind != NOP)
        before, now = step[:-1], step[1:]
        merged = (self.kind[now] == SUM) & (self.kind[before] == SUM) & (block[now] == block[before])
        merged &= (self.waits[now, 0] < 0) & ~self.signals[before] & (self.source[now, 0] == self.source[before, 0])
        merged &= (self.target[now] == self.target[before]).all(axis=1)
        step = step[np.append(np.ones(min(step.size, 1), dtype=bool), ~merged)]
        waiting = np.flatnonzero((self.kind == NOP) & (self.waits[:, 0] >= 0))
        at = np.searchsorted(step, waiting)
        waiting, at = waiting[at < step.size], at[at < step.size]
        return np.unique(step[at][block[step[at]] == block[waiting]])

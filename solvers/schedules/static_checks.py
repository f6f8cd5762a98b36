"""Checks of a program before it is executed: numbering, blocks, connections."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opticoll.solvers.schedules.program import READS, RECEIVES, SENDS, WRITES
from opticoll.solvers.schedules.schedule_check import refused

if TYPE_CHECKING:
    from opticoll.solvers.schedules.program import Connection, Place, Program, Rank, ThreadBlock
    from opticoll.solvers.schedules.schedule_check import ScheduleCheck


def static_violation(program: Program) -> ScheduleCheck | None:
    """First violation visible without execution; None if there is none."""
    found = (_block_violation(v, program.ranks[v], block) for v, block in program.blocks())
    return next(filter(None, found), None) or _connection_violations(program)


def numbering_violation(program: Program) -> ScheduleCheck | None:
    """The first step whose number in the file is not its position; None if there is none.

    The runtime executes in file order and reads numbers only for dependencies, so this is checked last.
    """
    for v, block in program.blocks():
        for position, instruction in enumerate(block.instructions):
            if instruction.number is not None:
                what = f"the file numbers it {instruction.number}; number steps from 0 without gaps"
                return violation("numbering", v, block, position, what)
    return None


def label(block: ThreadBlock, position: int) -> str:
    """Name of a step for messages."""
    instruction = block.instructions[position] if position < len(block.instructions) else None
    return f"tb {block.number} step {position}" + ("" if instruction is None else f" ({instruction.kind})")


def violation(
    reason: str, rank: int, block: ThreadBlock, position: int, what: str, chunk: int | None = None
) -> ScheduleCheck:
    """The refusal of a program for what is wrong with a step of a rank."""
    where = label(block, position)
    return refused(reason, f"rank {rank}, {where}: {what}", rank=rank, chunk=chunk, step=where)


def _block_violation(v: int, rank: Rank, block: ThreadBlock) -> ScheduleCheck | None:
    sizes, alone = rank.sizes, v in (block.send, block.receive)
    for position, step in enumerate(block.instructions):
        kind, count = step.kind, step.count
        if step.waits is not None:
            other = rank.blocks.get(step.waits[0])
            if other is None or not 0 <= step.waits[1] < len(other.instructions):
                what = f"waits for tb {step.waits[0]} step {step.waits[1]}, which does not exist"
                return violation("dependency", v, block, position, what)
        if alone or (kind in SENDS and block.send < 0) or (kind in RECEIVES and block.receive < 0):
            what = f"needs another rank as its peer, not send={block.send}, recv={block.receive}"
            return violation("no-peer", v, block, position, what)
        if kind in READS and not 0 <= step.source.offset <= sizes[step.source.buffer] - count:
            return _out_of_range(v, rank, block, position, step.source)
        if kind in WRITES and not 0 <= step.target.offset <= sizes[step.target.buffer] - count:
            return _out_of_range(v, rank, block, position, step.target)
    return None


def _out_of_range(v: int, rank: Rank, block: ThreadBlock, position: int, place: Place) -> ScheduleCheck:
    last = place.offset + block.instructions[position].count - 1
    what = f"chunks {place.offset}..{last} of buffer {place.buffer}, whose size is {rank.sizes[place.buffer]}"
    return violation("bounds", v, block, position, what, place.offset)


def _connection_violations(program: Program) -> ScheduleCheck | None:
    ends: dict[Connection, list[ThreadBlock | None]] = {}
    for v, block in program.blocks():
        for side, peer, kinds in ((0, block.send, SENDS), (1, block.receive, RECEIVES)):
            if not any(instruction.kind in kinds for instruction in block.instructions):
                continue
            key = (v, peer, block.channel) if side == 0 else (peer, v, block.channel)
            pair = ends.setdefault(key, [None, None])
            first = pair[side]
            if first is not None:
                verb = "send to" if side == 0 else "receive from"
                both = f"tb {first.number} and tb {block.number}"
                msg = f"rank {v}: {both} both {verb} rank {peer} over channel {key[2]}"
                return refused("two-owners", msg, rank=v, step=label(block, 0))
            pair[side] = block
    return next(filter(None, (_connection_violation(key, *ends[key]) for key in sorted(ends))), None)


def _connection_violation(
    key: Connection, sender: ThreadBlock | None, receiver: ThreadBlock | None
) -> ScheduleCheck | None:
    s, r, channel = key
    sends = _of_kinds(sender, SENDS)
    receives = _of_kinds(receiver, RECEIVES)
    between = f"{len(sends)} sends and {len(receives)} receives from rank {s} to rank {r} over channel {channel}"
    if len(sends) > len(receives):
        assert sender is not None
        at = sends[len(receives)]
        return violation("unmatched-send", s, sender, at, between, sender.instructions[at].source.offset)
    if len(receives) > len(sends):
        assert receiver is not None
        at = receives[len(sends)]
        return violation("unmatched-receive", r, receiver, at, between, receiver.instructions[at].target.offset)
    assert sender is not None
    assert receiver is not None
    for i, j in zip(sends, receives, strict=True):
        sent, got = sender.instructions[i], receiver.instructions[j]
        if sent.count != got.count:
            what = f"receives {got.count} chunks where rank {s}, {label(sender, i)} sends {sent.count}"
            return violation("count-mismatch", r, receiver, j, what, got.target.offset)
    return None


def _of_kinds(block: ThreadBlock | None, kinds: frozenset[str]) -> list[int]:
    return [] if block is None else [i for i, instruction in enumerate(block.instructions) if instruction.kind in kinds]


def channels_of(program: Program) -> int:
    """Number of channels that a program uses."""
    return 1 + max((block.channel for _, block in program.blocks()), default=0)

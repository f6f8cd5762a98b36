"""What can be said of a program before it runs: places, peers, dependencies, and the two ends of every connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from formulations.schedules.program import READS, RECEIVES, SENDS, WRITES
from formulations.schedules.verdict import Verdict, refused

if TYPE_CHECKING:
    from formulations.schedules.program import Instruction, Program, Rank, ThreadBlock

#: (sender, receiver, channel)
Connection = tuple[int, int, int]


def static_violation(program: Program) -> Verdict | None:
    """The first violation that no execution is needed for, None if there is none."""
    for v, rank in enumerate(program.ranks):
        for block in rank.blocks.values():
            found = _of_block(v, rank, block)
            if found is not None:
                return found
    return _of_connections(program)


def numbering_violation(program: Program) -> Verdict | None:
    """The first step that its file numbers otherwise than by its position, None if there is none.

    The runtime executes in the order of the file and reads numbers only where steps wait for each other: asked last.
    """
    for v, rank in enumerate(program.ranks):
        for block in rank.blocks.values():
            for position, one in enumerate(block.instructions):
                if one.number is not None:
                    where = label(block, position)
                    msg = f"rank {v}, {where}: the file numbers it {one.number}; steps count up from 0 without gaps"
                    return refused("numbering", msg, rank=v, step=where)
    return None


def label(block: ThreadBlock, position: int) -> str:
    """How a step is called in messages."""
    one = block.instructions[position] if position < len(block.instructions) else None
    return f"tb {block.number} step {position}" + ("" if one is None else f" ({one.kind})")


def _of_block(v: int, rank: Rank, block: ThreadBlock) -> Verdict | None:
    for position, one in enumerate(block.instructions):
        where = label(block, position)
        if one.waits is not None:
            other = rank.blocks.get(one.waits[0])
            if other is None or not 0 <= one.waits[1] < len(other.instructions):
                msg = f"rank {v}, {where}: waits for tb {one.waits[0]} step {one.waits[1]}, which does not exist"
                return refused("dependency", msg, rank=v, step=where)
        peerless = (one.kind in SENDS and block.send < 0) or (one.kind in RECEIVES and block.receive < 0)
        if peerless or v in (block.send, block.receive):
            msg = f"rank {v}, {where}: send={block.send} and recv={block.receive} name no other rank for it"
            return refused("no-peer", msg, rank=v, step=where)
        found = _outside(v, rank, one, where)
        if found is not None:
            return found
    return None


def _outside(v: int, rank: Rank, one: Instruction, where: str) -> Verdict | None:
    for place, used in ((one.source, one.kind in READS), (one.target, one.kind in WRITES)):
        if used and not 0 <= place.offset <= rank.sizes[place.buffer] - one.count:
            last = place.offset + one.count - 1
            msg = (
                f"rank {v}, {where}: chunks {place.offset}..{last} of buffer {place.buffer}, "
                f"which has {rank.sizes[place.buffer]}"
            )
            return refused("bounds", msg, rank=v, chunk=place.offset, step=where)
    return None


def _of_connections(program: Program) -> Verdict | None:
    ends: dict[Connection, list[ThreadBlock | None]] = {}
    for v, rank in enumerate(program.ranks):
        for block in rank.blocks.values():
            for side, peer, kinds in ((0, block.send, SENDS), (1, block.receive, RECEIVES)):
                if not any(one.kind in kinds for one in block.instructions):
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
    for key in sorted(ends):
        found = _of_connection(key, ends[key][0], ends[key][1])
        if found is not None:
            return found
    return None


def _of_connection(key: Connection, sender: ThreadBlock | None, receiver: ThreadBlock | None) -> Verdict | None:
    s, r, channel = key
    sends = _those(sender, SENDS)
    receives = _those(receiver, RECEIVES)
    between = f"from rank {s} to rank {r} over channel {channel} are {len(sends)} sends and {len(receives)} receives"
    if len(sends) > len(receives):
        assert sender is not None
        at = sends[len(receives)]
        where, chunk = label(sender, at), sender.instructions[at].source.offset
        return refused("unmatched-send", f"rank {s}, {where}: {between}", rank=s, chunk=chunk, step=where)
    if len(receives) > len(sends):
        assert receiver is not None
        at = receives[len(sends)]
        where, chunk = label(receiver, at), receiver.instructions[at].target.offset
        return refused("unmatched-receive", f"rank {r}, {where}: {between}", rank=r, chunk=chunk, step=where)
    assert sender is not None
    assert receiver is not None
    for i, j in zip(sends, receives, strict=True):
        sent, got = sender.instructions[i], receiver.instructions[j]
        if sent.count != got.count:
            where = label(receiver, j)
            msg = (
                f"rank {r}, {where}: receives {got.count} chunks where rank {s}, {label(sender, i)} sends {sent.count}"
            )
            return refused("count-mismatch", msg, rank=r, chunk=got.target.offset, step=where)
    return None


def _those(block: ThreadBlock | None, kinds: frozenset[str]) -> list[int]:
    return [] if block is None else [i for i, one in enumerate(block.instructions) if one.kind in kinds]

"""Schedules of flows cut into chunks: construction, lowering to programs, and verification by simulation.

shard_routes    shares of a commodity along paths, read off a flow, and their division into whole chunks
link_schedule   steps of (arc, chunk): from timed routes or by list scheduling; execution and alpha-beta time
lowering        a link schedule as a program: thread blocks, buffers, dependencies
msccl_xml       programs as MSCCL XML, laid out, written and read
schedule_json   link schedules and routes as JSON, written and read; any schedule file against a topology
foreign_schedules   schedules of TE-CCL, msccl-tools and ForestColl, read and executed
interpreter     execution of programs

Programs are made of thread blocks, as the MSCCL interpreter runs them.
A rank has three chunk buffers: input ``i``, output ``o``, scratch ``s``. A thread block sends to at most one rank
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

import gc
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


#: Reasons for rejecting a schedule.
REASONS = {
    "collective": "the schedule performs a different collective",
    "demand": "the schedule does not send the amounts of the demand",
    "ranks": "the schedule has a different number of ranks",
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
    "wrong-sum": "a sum lacks a contribution or counts it more than once",
    "uninitialised": "a chunk was read before it was written",
    "not-held": "a rank sends a chunk that it does not hold yet",
    "no-chunk": "a transfer names a chunk that the collective does not have",
    "duplicate": "a rank receives a chunk that it already holds",
    "no-route": "a route is not a path from its source to its target",
    "weights": "the routes of a pair do not carry exactly its shard",
}


@dataclass(frozen=True)
class ScheduleCheck:
    """The result of a check; an invalid one has a ``reason`` (a key of REASONS) and the first violation."""

    valid: bool
    reason: str = ""
    message: str = ""
    rank: int | None = None
    chunk: int | None = None
    step: str | None = None
    metrics: dict[str, float | list[str] | dict[str, str] | None] = field(default_factory=dict)

    @property
    def time(self) -> float | None:
        """Time of a valid schedule; None if it has none."""
        result = self.metrics.get("time", self.metrics.get("async_time"))
        return float(result) if isinstance(result, (int, float)) else None


@contextmanager
def many_objects() -> Iterator[None]:
    """Suspend garbage collection while millions of acyclic objects are made: it would scan them again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def refused(
    reason: str, message: str, *, rank: int | None = None, chunk: int | None = None, step: str | int | None = None
) -> ScheduleCheck:
    """Return an invalid verdict; its message starts with the reason."""
    where = None if step is None else str(step)
    return ScheduleCheck(False, reason, f"{reason}: {message}", rank, chunk, where)


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


@dataclass(frozen=True, slots=True)
class Place:
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


@dataclass(frozen=True)
class Target:
    """Limits of a runtime that executes MSCCL XML.

    Parameters
    ----------
    name, source
        Name of the runtime, and the files of its repository that define the limits.
    steps, blocks, channels
        Maximum numbers of steps per thread block (numbered, with ``nop``), of thread blocks per rank, and of channels.
    peers
        Maximum number of thread blocks of a rank that send, and that receive, over one channel.
    count, dependency, offset
        Maximum number of chunks per step; largest number of an awaited thread block; largest buffer offset.
    nodes
        Maximum number of file elements that a rank keeps: the algorithm, all ranks, its own thread blocks and steps.
    unlimited
        Value of maxBytes for buffers of any size; None if the range must be stated.
    whole_loop
        Whether the elements for a peer must be a multiple of all chunks of the buffer, N D, rather than of D.
    skipped
        Elements of a rank that the runtime does not execute.
    optional
        Attributes that its parser does not require.
    missing_most
        Largest buffer [bytes] if maxBytes is missing; None if maxBytes is required.
    reducescatter
        Its name for reduce-scatter; the other collectives have the same name in every runtime.
    whole_sizes
        Whether declared sizes of input and output must be those of the collective, or 0.
    """

    name: str
    source: str
    steps: int
    blocks: int
    channels: int = 32
    peers: int = 32
    count: int = 71
    dependency: int = 127
    offset: int = 32767
    nodes: int | None = None
    unlimited: int | None = None
    whole_loop: bool = False
    skipped: tuple[str, ...] = ("copy",)
    optional: tuple[str, ...] = ("name",)
    missing_most: int | None = None
    reducescatter: str = "reducescatter"
    whole_sizes: bool = False

    def name_of(self, collective: str) -> str:
        """Name of a collective in files for this runtime."""
        return self.reducescatter if collective == "reducescatter" else collective

    def multiple_of(self, program: Program) -> int:
        """Divisor required of the number of elements for a peer (of elements in the buffer, for allreduce)."""
        return program.chunks_per_loop if self.whole_loop else program.chunks


#: Runtimes, by name.
TARGETS = {
    target.name: target
    for target in (
        Target(
            "msccl", "github.com/microsoft/msccl: src/include/msccl.h, src/include/devcomm.h, src/graph/topo.cc",
            256, 216, optional=("outofplace", "minBytes", "maxBytes"), missing_most=1 << 27,
            reducescatter="reduce_scatter", whole_sizes=True,
        ),
        Target(
            "rccl", "github.com/ROCm/rccl: src/include/msccl/msccl_struct.h, src/include/msccl/msccl_parser.h, "
            "src/misc/msccl/msccl_parser.cc", 64, 64, nodes=4096, unlimited=0,
        ),
        Target(
            "azure-msccl", "github.com/Azure/msccl-executor-nccl: src/include/msccl/msccl_struct.h, "
            "src/misc/msccl/msccl_lifecycle.cc, src/misc/msccl/msccl_parser.cc", 64, 1024, unlimited=0, whole_loop=True,
        ),
    )
}  # fmt: skip
#: Protocols that every runtime supports.
PROTOCOLS = ("Simple", "LL", "LL128")


def usage(program: Program) -> dict[str, int]:
    """Usage of every limit of a :class:`Target` by a program."""
    names = ("steps", "blocks", "channels", "sends", "receives", "count", "wait", "offset", "nodes", "loose")
    result = dict.fromkeys(names, 0)
    for rank in program.ranks:
        sends: dict[int, int] = {}
        receives: dict[int, int] = {}
        whole = 1 + len(program.ranks)
        for block in rank.blocks.values():
            steps = block.instructions
            whole += 1 + len(steps)
            result["steps"] = max(result["steps"], len(steps))
            result["channels"] = max(result["channels"], block.channel + 1)
            result["count"] = max(result["count"], max((step.count for step in steps), default=0))
            result["wait"] = max(result["wait"], max((step.waits[0] for step in steps if step.waits), default=0))
            if any(step.kind == "nop" for step in steps):
                result["loose"] += _loose(steps)
            for peer, per_channel in ((block.send, sends), (block.receive, receives)):
                if peer >= 0:
                    per_channel[block.channel] = per_channel.get(block.channel, 0) + 1
        result["blocks"] = max(result["blocks"], max(rank.blocks, default=-1) + 1)
        result["sends"] = max(result["sends"], *sends.values(), 0)
        result["receives"] = max(result["receives"], *receives.values(), 0)
        result["offset"] = max(result["offset"], *(size - 1 for size in rank.sizes.values()))
        result["nodes"] = max(result["nodes"], whole)
    return result


def _loose(steps: Sequence[Instruction]) -> int:
    """Number of steps after a waiting ``nop`` that do not wait, although the parsers of all runtimes require it.

    The parsers merge a ``re`` that does not wait into the preceding ``re`` that sums into the same place.
    """
    result, pending = 0, False
    before: Instruction | None = None
    for step in steps:
        if step.kind == "nop":
            pending |= step.waits is not None
            continue
        joined = (
            before is not None and step.kind == "re" == before.kind and step.waits is None and not before.signals
            and (step.target, step.source.buffer) == (before.target, before.source.buffer)
        )  # fmt: skip
        before = step
        if not joined:
            result += pending and step.waits is None
            pending = False
    return result


def exceeded(program: Program, target: Target, used: Mapping[str, int] | None = None) -> list[str]:
    """Why a target rejects a program, and by how much it exceeds the limits; empty if it fits.

    ``used`` is its :func:`usage`, counted here if None.
    """
    result = usage(program) if used is None else used
    limits = {
        "steps": (target.steps, "steps in a thread block"), "blocks": (target.blocks, "thread blocks in a rank"),
        "channels": (target.channels, "channels"), "sends": (target.peers, "sending thread blocks on a channel"),
        "receives": (target.peers, "receiving thread blocks on a channel"), "count": (target.count, "chunks in a step"),
        "wait": (target.dependency, "as the number of an awaited thread block"),
        "offset": (target.offset, "as the largest offset in a buffer"),
        "nodes": (target.nodes, "elements that a rank reads"),
    }  # fmt: skip
    excess = [
        f"{result[name]} {what} (at most {most})"
        for name, (most, what) in limits.items()
        if most is not None and result[name] > most
    ]
    if program.protocol not in PROTOCOLS:
        excess.append(f"protocol {program.protocol} (supported: {', '.join(PROTOCOLS)})")
    most = program.max_bytes
    if "maxBytes" in program.missing and target.missing_most is not None:
        most = target.missing_most
    if most <= program.min_bytes and most != target.unlimited:
        excess.append(f"no buffer size from minBytes={program.min_bytes} to maxBytes={most}")
    return [*excess, *_refused_form(program, target, result["loose"])]


def _refused_form(program: Program, target: Target, loose: int) -> list[str]:
    """Reasons other than sizes for which the target's parser rejects a program."""
    spelled, name = program.spelled or program.collective, target.name_of(program.collective)
    results = [f"coll={spelled!r}, which must be {name!r}"] if spelled != name else []
    missing = [key for key in program.missing if key not in target.optional]
    if missing:
        results.append(f"no attribute {', '.join(missing)}")
    gap = next((v for v, rank in enumerate(program.ranks) if sorted(rank.blocks) != list(range(len(rank.blocks)))), -1)
    if gap >= 0:
        results.append(f"thread blocks of rank {gap} that are not numbered from 0 without gaps")
    if any(block.channel < 0 for rank in program.ranks for block in rank.blocks.values()):
        results.append("a thread block without a channel")
    if loose:
        results.append(f"steps after a nop that wait for nothing ({loose})")
    if target.whole_sizes:
        every, part = program.chunks_per_loop, program.chunks
        due = {"i": part if program.collective == "allgather" else every,
               "o": part if program.collective == "reducescatter" else every}  # fmt: skip
        for v, rank in enumerate(program.ranks):
            other = next((b for b in "io" if rank.sizes[b] not in (0, due[b])), None)
            if other is not None:
                results.append(f"{other}_chunks={rank.sizes[other]} of rank {v}, which must be {due[other]} or 0")
                break
    return results


# Static checks ----------------------------------------------------------------------------------------------------


def static_violation(program: Program) -> ScheduleCheck | None:
    """First violation visible without execution; None if there is none."""
    for v, rank in enumerate(program.ranks):
        for block in rank.blocks.values():
            violation = _block_violation(v, rank, block)
            if violation is not None:
                return violation
    return _connection_violations(program)


def numbering_violation(program: Program) -> ScheduleCheck | None:
    """The first step whose number in the file is not its position; None if there is none.

    The runtime executes in file order and reads numbers only for dependencies, so this is checked last.
    """
    for v, rank in enumerate(program.ranks):
        for block in rank.blocks.values():
            for position, instruction in enumerate(block.instructions):
                if instruction.number is not None:
                    where = label(block, position)
                    msg = (
                        f"rank {v}, {where}: the file numbers it {instruction.number}; number steps from 0 without gaps"
                    )
                    return refused("numbering", msg, rank=v, step=where)
    return None


def label(block: ThreadBlock, position: int) -> str:
    """Name of a step for messages."""
    instruction = block.instructions[position] if position < len(block.instructions) else None
    return f"tb {block.number} step {position}" + ("" if instruction is None else f" ({instruction.kind})")


def _block_violation(v: int, rank: Rank, block: ThreadBlock) -> ScheduleCheck | None:
    sizes, alone = rank.sizes, v in (block.send, block.receive)
    for position, step in enumerate(block.instructions):
        kind, count = step.kind, step.count
        if step.waits is not None:
            other = rank.blocks.get(step.waits[0])
            if other is None or not 0 <= step.waits[1] < len(other.instructions):
                where = label(block, position)
                msg = f"rank {v}, {where}: waits for tb {step.waits[0]} step {step.waits[1]}, which does not exist"
                return refused("dependency", msg, rank=v, step=where)
        if alone or (kind in SENDS and block.send < 0) or (kind in RECEIVES and block.receive < 0):
            where = label(block, position)
            msg = f"rank {v}, {where}: needs another rank as its peer, not send={block.send}, recv={block.receive}"
            return refused("no-peer", msg, rank=v, step=where)
        if kind in READS and not 0 <= step.source.offset <= sizes[step.source.buffer] - count:
            return _out_of_range(v, rank, block, position, step.source)
        if kind in WRITES and not 0 <= step.target.offset <= sizes[step.target.buffer] - count:
            return _out_of_range(v, rank, block, position, step.target)
    return None


def _out_of_range(v: int, rank: Rank, block: ThreadBlock, position: int, place: Place) -> ScheduleCheck:
    last, where = place.offset + block.instructions[position].count - 1, label(block, position)
    msg = (
        f"rank {v}, {where}: chunks {place.offset}..{last} of buffer {place.buffer}, "
        f"whose size is {rank.sizes[place.buffer]}"
    )
    return refused("bounds", msg, rank=v, chunk=place.offset, step=where)


def _connection_violations(program: Program) -> ScheduleCheck | None:
    ends: dict[Connection, list[ThreadBlock | None]] = {}
    for v, rank in enumerate(program.ranks):
        for block in rank.blocks.values():
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
    for key in sorted(ends):
        violation = _connection_violation(key, ends[key][0], ends[key][1])
        if violation is not None:
            return violation
    return None


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


def _of_kinds(block: ThreadBlock | None, kinds: frozenset[str]) -> list[int]:
    return [] if block is None else [i for i, instruction in enumerate(block.instructions) if instruction.kind in kinds]


# Channels ---------------------------------------------------------------------------------------------------------


def channels_of(program: Program) -> int:
    """Number of channels that a program uses."""
    return 1 + max((block.channel for rank in program.ranks for block in rank.blocks.values()), default=0)


def deal_channels(split: Mapping[tuple[int, int, int], int], most_peers: int) -> dict[tuple[int, int, int], list[int]]:
    """Assign every connection the first free channels on which neither end has too many peers.

    Parameters
    ----------
    split
        Number of channels for each (sender, receiver, part); parts of a connection get different ones.
    most_peers
        Maximum number of thread blocks of a rank that send, and that receive, over one channel.
    """
    used: dict[tuple[int, int, int], int] = {}  # (rank, channel, sends?): peers
    taken: dict[tuple[int, int], set[int]] = {}
    result: dict[tuple[int, int, int], list[int]] = {}
    for (tail, head, part), many in sorted(split.items()):
        busy = taken.setdefault((tail, head), set())
        mine: list[int] = []
        channel = 0
        while len(mine) < many:
            out, into = (tail, channel, 1), (head, channel, 0)
            if channel not in busy and max(used.get(out, 0), used.get(into, 0)) < most_peers:
                mine.append(channel)
                used[out], used[into] = used.get(out, 0) + 1, used.get(into, 0) + 1
            channel += 1
        busy.update(mine)
        result[tail, head, part] = mine
    return result

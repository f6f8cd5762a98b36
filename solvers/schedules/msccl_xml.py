"""Programs as MSCCL XML, the format of msccl-tools and the MSCCL runtime: their layout, reading and writing.

The layout of a link schedule is its moves with their thread blocks, channels and dependencies, in flat arrays.

Source  github.com/microsoft/msccl-tools (msccl/language/ir.py), github.com/Azure/msccl-executor-nccl (its parser)

    <algo name proto nchannels nchunksperloop ngpus coll inplace outofplace minBytes maxBytes>
      <gpu id i_chunks o_chunks s_chunks>
        <tb id send recv chan>
          <step s type srcbuf srcoff dstbuf dstoff cnt depid deps hasdep/>

What some runtime can do without is optional when read; :func:`opticoll.solvers.schedules.runtimes.exceeded` says
which runtimes ask for it. Elements that no runtime executes (``<copy>`` in a
``<gpu>``) are skipped. Files are untrusted: entities and document types are refused, sizes are limited before
allocation, and declared sizes allocate nothing.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import BadFile, NotApplicable
from opticoll.file_contents import check_file
from opticoll.solvers.schedules.program import COLLECTIVES, KINDS, Instruction, Place, Program, Rank, ThreadBlock
from opticoll.solvers.schedules.runtimes import TARGETS
from opticoll.solvers.schedules.schedule_check import many_objects
from opticoll.solvers.schedules.static_checks import channels_of, deal_channels

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from opticoll.instances.topology import I64
    from opticoll.solvers.schedules.link_schedule import LinkSchedule
    from opticoll.solvers.schedules.runtimes import Target


#: Buffers by their numbers in the arrays.
BUFFERS = ("i", "o", "s")
INPUT, OUTPUT, SCRATCH = range(3)
#: Times that a program is laid out again with more channels.
LAYOUTS = 6


def _turn(group: I64) -> I64:
    """How many earlier elements have the same group, for every element."""
    order = np.argsort(group, kind="stable")
    ordered = group[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    result = np.empty(group.size, dtype=np.int64)
    result[order] = np.arange(group.size) - np.repeat(starts, np.diff(np.append(starts, group.size)))
    return result


class ChunkMoves:
    """Moves between ranks, in order of their steps: contiguous chunks over one connection in one step.

    Move i takes ``count[i]`` chunks in ``step[i]`` from rank ``tail[i]`` to ``head[i]`` for the instance ``part[i]``,
    from the place ``source[i]`` to ``target[i]``, rows (buffer, offset). It waits for the moves ``bringing`` where
    ``waiting`` is i. Ranks are numbered as in the program.

    Raises
    ------
    NotApplicable
        If a chunk is sent before it arrives.
    """

    def __init__(self, schedule: LinkSchedule, instances: int, most: int) -> None:
        topology = schedule.topology
        number = np.full(topology.n, -1, dtype=np.int64)
        number[topology.terminals] = np.arange(topology.num_ranks)
        step, tail, head, origin, final, chunk = schedule.moves()[0].T
        tail, head, origin, final = number[tail], number[head], number[origin], number[final]
        self.N, self.D, self.most = topology.num_ranks, schedule.chunks * instances, most
        parts = np.repeat(np.arange(instances), step.size)
        rows = np.column_stack(
            [
                np.tile(step, instances),
                parts,
                np.tile(tail, instances),
                np.tile(head, instances),
                np.tile(origin, instances),
                np.tile(final, instances),
                np.tile(chunk, instances) + schedule.chunks * parts,
            ]
        )
        rows = rows[np.lexsort(rows.T[::-1])]
        self._join(rows, *self._places(rows, self._brought(rows)))

    def _brought(self, rows: I64) -> I64:
        """The row that brings the chunk of every row to its tail, -1 for the rank's own chunks."""
        step, _, tail, head, origin, final, chunk = rows.T
        token = (origin * self.N + final) * self.D + chunk
        every = self.N * self.N * self.D
        onward = np.flatnonzero(head != final)
        onward = onward[np.argsort(head[onward] * every + token[onward], kind="stable")]
        held = head[onward] * every + token[onward]
        sought = np.flatnonzero(origin != tail)
        wanted = tail[sought] * every + token[sought]
        at = np.minimum(np.searchsorted(held, wanted), max(held.size - 1, 0))
        result = onward[at] if held.size else np.full(sought.size, -1, dtype=np.int64)
        known = held[at] == wanted if held.size else np.zeros(sought.size, dtype=bool)
        early = np.flatnonzero(~known | (step[result] >= step[sought]))
        if early.size:
            _, _, rank, _, s, t, c = rows[sought[early[0]]].tolist()
            msg = f"lowering: rank {rank} sends chunk {c} of {s}->{t} before receiving it; check the schedule"
            raise NotApplicable(msg)
        brought = np.full(len(rows), -1, dtype=np.int64)
        brought[sought] = result
        return brought

    def _places(self, rows: I64, brought: I64) -> tuple[I64, I64, I64, I64]:
        """An order of the rows within their steps, their places (buffer, offset) at both ends, and ``brought``.

        Chunks in transit lie in scratch in the order in which they arrive.
        """
        step, part, tail, head, origin, final, chunk = rows.T
        source, target = np.zeros((len(rows), 2), dtype=np.int64), np.zeros((len(rows), 2), dtype=np.int64)
        source[:, 1] = final * self.D + chunk
        arrives = head == final
        target[:, 0] = np.where(arrives, OUTPUT, SCRATCH)
        target[:, 1] = origin * self.D + chunk
        self.scratch = np.zeros(self.N, dtype=np.int64)
        order = np.arange(len(rows))
        for first, last in pairwise([*np.flatnonzero(np.diff(step, prepend=-1)).tolist(), len(rows)]):
            now = order[first:last]
            later = now[brought[now] >= 0]
            source[later] = target[brought[later]]
            now = now[
                np.lexsort(
                    (
                        chunk[now],
                        final[now],
                        origin[now],
                        source[now, 1],
                        source[now, 0],
                        head[now],
                        tail[now],
                        part[now],
                    )
                )
            ]
            order[first:last] = now
            transit = now[~arrives[now]]
            target[transit, 1] = self.scratch[head[transit]] + _turn(head[transit])
            self.scratch += np.bincount(head[transit], minlength=self.N)
        return order, source, target, brought

    def _join(self, rows: I64, order: I64, source: I64, target: I64, brought: I64) -> None:
        """Join chunks that one connection moves in one step and that are contiguous at both ends."""
        lines, source, target = rows[order, :4], source[order], target[order]
        joined = np.zeros(order.size, dtype=bool)
        joined[1:] = (lines[1:] == lines[:-1]).all(axis=1)
        for place in (source, target):
            joined[1:] &= (place[1:] - place[:-1] == (0, 1)).all(axis=1)
        run = np.cumsum(~joined) - 1
        starts = _turn(run) % self.most == 0
        move = np.cumsum(starts) - 1
        self.step, self.part, self.tail, self.head = lines[starts].T
        self.source, self.target = source[starts], target[starts]
        self.count = np.bincount(move, minlength=0).astype(np.int64)
        place = np.empty(order.size, dtype=np.int64)
        place[order] = np.arange(order.size)
        later = np.flatnonzero(brought[order] >= 0)
        self.waiting, self.bringing = move[later], move[place[brought[order[later]]]]


class Layout:
    """Thread blocks and channels of moves, for the limits of a target.

    Entries are the sends and receives of all moves, by rank and thread block, in the order of execution: ``move`` and
    ``sends`` of every entry, ``block`` its thread block among all. ``position`` is its step there, behind ``nops``.
    Entry ``entry[k]`` waits for the receive of move ``awaited[k]``.
    """

    def __init__(self, moves: ChunkMoves, target: Target, channels: int, instances: int) -> None:
        self.moves, self.target, self.instances = moves, target, instances
        name = (moves.tail * moves.N + moves.head) * instances + moves.part
        names, self.line = np.unique(name, return_inverse=True)
        self.turn = _turn(self.line)
        ends, part = np.divmod(names, instances)
        self.lines = list(zip((ends // moves.N).tolist(), (ends % moves.N).tolist(), part.tolist(), strict=True))
        self.split = {
            key: max(min(channels, many), -(-many // target.steps))
            for key, many in zip(self.lines, np.bincount(self.line).tolist(), strict=True)
        }
        peers = [0] * moves.N
        for (tail, head, _), many in self.split.items():
            peers[tail] += many
            peers[head] += many
        self.fused = max(peers, default=0) + 1 > target.blocks
        for _ in range(LAYOUTS):
            self._lay_out()
            self._wait()
            if not self._widened():
                break

    def _lay_out(self) -> None:
        """Give every move a channel, and order the entries."""
        moves = self.moves
        dealt = deal_channels(self.split, self.target.peers)
        mine = [dealt[key] for key in self.lines]
        many = np.array([len(one) for one in mine], dtype=np.int64)
        first = np.cumsum(many) - many
        table = np.array([channel for one in mine for channel in one], dtype=np.int64)
        channel = table[first[self.line] + self.turn % many[self.line]] if self.line.size else self.line
        every = int(table.max(initial=0)) + 1
        size = self.line.size
        sends = np.repeat([True, False], size)
        me, peer = np.concatenate([moves.tail, moves.head]), np.concatenate([moves.head, moves.tail])
        key = ((me * 2 + (0 if self.fused else 1) * ~sends) * moves.N + peer) * every + np.tile(channel, 2)
        order = np.argsort(key, kind="stable")
        if self.fused:
            # In every step, sends and receives in turn: then neither side fills its buffers before it receives.
            step = np.tile(moves.step, 2)
            turn = _turn(np.unique((key * (step.max(initial=0) + 1) + step) * 2 + sends, return_inverse=True)[1])
            order = np.lexsort((~sends, turn, step, key))
        self.move, self.sends = order % max(size, 1), sends[order]
        starts = np.flatnonzero(np.diff(key[order], prepend=-1))
        self.first = np.append(starts, order.size)
        self.block = np.repeat(np.arange(starts.size), np.diff(self.first))
        rest, self.channel = np.divmod(key[order[starts]], every)
        owner, self.peer = np.divmod(rest, moves.N)
        self.rank = owner // 2
        self.number = _turn(self.rank)

    def _wait(self) -> None:
        """The receives that a send waits for: the last one in every other thread block, unless already passed."""
        moves, size = self.moves, self.line.size
        sent, received = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
        at = np.arange(self.move.size)
        sent[self.move[self.sends]] = at[self.sends]
        received[self.move[~self.sends]] = at[~self.sends]
        entry, awaited = sent[moves.waiting], moves.bringing
        other = self.block[received[awaited]]
        keep = other != self.block[entry]
        entry, awaited, other = entry[keep], awaited[keep], other[keep]
        order = np.lexsort((awaited, other, entry))
        entry, awaited, other = entry[order], awaited[order], other[order]
        last = np.append((np.diff(entry) != 0) | (np.diff(other) != 0), True)[: entry.size]
        entry, awaited, other = entry[last], awaited[last], other[last]
        order = np.lexsort((entry, other, self.block[entry]))
        pair = self.block[entry[order]] * self.rank.size + other[order]
        group = np.cumsum(np.diff(pair, prepend=-1) != 0)
        reached = np.maximum.accumulate(awaited[order] + group * max(size, 1))
        new = np.ones(order.size, dtype=bool)
        new[1:] = reached[1:] > reached[:-1]
        keep = np.zeros(order.size, dtype=bool)
        keep[order] = new
        self.entry, self.awaited = entry[keep], awaited[keep]
        waits = np.bincount(self.entry, minlength=self.move.size)
        self.nops = np.maximum(waits - 1, 0)
        through = np.cumsum(self.nops)
        base = (through - self.nops)[self.first[:-1]] + self.first[:-1] if self.rank.size else self.first[:-1]
        self.position = at + through - base[self.block]
        self.received = received

    def _widened(self) -> bool:
        """Whether some connection got more channels, because its thread blocks have too many steps."""
        wider = False
        steps = np.diff(self.first) + np.bincount(self.block, self.nops, minlength=self.rank.size).astype(np.int64)
        for block in np.flatnonzero(steps > self.target.steps).tolist():
            v, peer = int(self.rank[block]), int(self.peer[block])
            for key in ((v, peer), (peer, v)):
                for part in range(self.instances):
                    many = self.split.get((*key, part))
                    if many is not None and many < self.target.channels:
                        self.split[*key, part] = min(many + max(many // 2, 1), self.target.channels)
                        wider = True
        return wider

    def ranks(self) -> list[Rank]:
        """Per rank, sends by peer and channel, receives likewise, then the copy of its own shard."""
        moves = self.moves
        largest = [int(max(moves.source[:, 1].max(initial=0), moves.target[:, 1].max(initial=0))) + 1] * 3
        known = [[Place(buffer, k) for k in range(many)] for buffer, many in zip(BUFFERS, largest, strict=True)]
        source, target = ([known[b][k] for b, k in places.tolist()] for places in (moves.source, moves.target))
        signals = np.zeros(self.line.size, dtype=bool)
        signals[self.awaited] = True
        behind = self.received[self.awaited]
        waits: dict[int, list[tuple[int, int]]] = {}
        for e, number, position in zip(
            self.entry.tolist(), self.number[self.block[behind]].tolist(), self.position[behind].tolist(), strict=True
        ):
            waits.setdefault(e, []).append((number, position))
        size = moves.N * moves.D
        ranks = [Rank({"i": size, "o": size, "s": many}) for many in moves.scratch.tolist()]
        move, sends, count, signalling = self.move.tolist(), self.sends.tolist(), moves.count.tolist(), signals.tolist()
        none = Place("i", -1), Place("o", -1)
        blocks = zip(
            self.rank.tolist(),
            self.number.tolist(),
            self.peer.tolist(),
            self.channel.tolist(),
            pairwise(self.first.tolist()),
            strict=True,
        )
        for v, number, peer, channel, (first, last) in blocks:
            mine = sends[first:last]
            block = ThreadBlock(number, peer if any(mine) else -1, -1 if all(mine) else peer, channel)
            put = block.instructions.append
            for e in range(first, last):
                i = move[e]
                if not sends[e]:
                    put(Instruction("r", source[i], target[i], count[i], None, signalling[i]))
                    continue
                awaited = waits.get(e)
                if awaited is None:
                    put(Instruction("s", source[i], target[i], count[i]))
                    continue
                for extra in awaited[:-1]:
                    put(Instruction("nop", *none, 0, extra))
                put(Instruction("s", source[i], target[i], count[i], awaited[-1]))
            ranks[v].blocks[number] = block
        for v, rank in enumerate(ranks):
            self._add_copies(v, rank)
        return ranks

    def _add_copies(self, v: int, rank: Rank) -> None:
        moves, own = self.moves, len(rank.blocks)
        copies = rank.blocks[own] = ThreadBlock(own, -1, -1, 0)
        for first in range(0, moves.D, moves.most):
            place = v * moves.D + first
            count = min(moves.most, moves.D - first)
            copies.instructions.append(Instruction("cpy", Place("i", place), Place("o", place), count))


#: Largest file [bytes], number of ranks and of steps, and declared size or offset in chunks.
MAX_BYTES = 1 << 30
MAX_RANKS = 4096
MAX_STEPS = 8_000_000
MAX_CHUNKS = 1 << 31
#: Most chunks that all steps together move, and a single step (the MSCCL runtime allows 72).
MAX_MOVED, MAX_COUNT = 20_000_000, 1024
#: Longest name, and no double quotes in it: the runtimes copy it to 64 bytes, and read up to the next double quote.
MAX_NAME = 63
_NAMES = {"reduce_scatter": "reducescatter", "all_reduce": "allreduce", "all_gather": "allgather"}
_WHOLE = re.compile(r"-?[0-9]{1,19}")
#: Attributes of ``<algo>`` that are not needed to execute it.
_NAMED = ("name", "proto", "nchannels", "outofplace")
_LEVELS = ("algo", "gpu", "tb", "step")
_SKIPPED = frozenset(name for target in TARGETS.values() for name in target.skipped)


def write_xml(program: Program) -> str:
    """The program as MSCCL XML."""
    from xml.sax.saxutils import quoteattr

    name = quoteattr(program.name[:MAX_NAME].replace('"', "'"))
    lines = [
        f'<algo name={name} proto="{program.protocol}" nchannels="{channels_of(program)}" '
        f'nchunksperloop="{program.chunks_per_loop}" ngpus="{len(program.ranks)}" '
        f'coll="{program.spelled or program.collective}" '
        f'inplace="{int(program.inplace)}" outofplace="{int(not program.inplace)}" '
        f'minBytes="{program.min_bytes}" maxBytes="{program.max_bytes}">'
    ]
    for v, rank in enumerate(program.ranks):
        sizes = " ".join(f'{b}_chunks="{rank.sizes[b]}"' for b in "ios")
        lines.append(f'  <gpu id="{v}" {sizes}>')
        for block in rank.blocks.values():
            lines.append(
                f'    <tb id="{block.number}" send="{block.send}" recv="{block.receive}" chan="{block.channel}">'
            )
            for s, step in enumerate(block.instructions):
                source, target = step.source, step.target
                depid, deps = step.waits or (-1, -1)
                lines.append(
                    f'      <step s="{s}" type="{step.kind}" srcbuf="{source.buffer}" srcoff="{source.offset}" '
                    f'dstbuf="{target.buffer}" dstoff="{target.offset}" '
                    f'cnt="{step.count}" depid="{depid}" deps="{deps}" hasdep="{1 if step.signals else 0}"/>'
                )
            lines.append("    </tb>")
        lines.append("  </gpu>")
    return "\n".join([*lines, "</algo>", ""])


def read_xml(path: Path) -> Program:
    """The program in an MSCCL XML file.

    Raises
    ------
    BadFile
        If the file cannot be read, is too large, or is not MSCCL XML; the message says where.
    """
    from xml.parsers import expat

    check_file(path, MAX_BYTES, "name an MSCCL XML file")
    reader = _Reader(path)
    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = reader.start, reader.end
    parser.StartDoctypeDeclHandler = reader.refuse_document_type
    try:
        with path.open("rb") as stream, many_objects():
            parser.ParseFile(stream)
    except OSError as reason:
        msg = f"{path}: cannot be read ({reason.strerror}); name an MSCCL XML file"
        raise BadFile(msg) from None
    except (expat.ExpatError, UnicodeError, LookupError) as reason:
        msg = f"{path}: is not valid XML ({' '.join(str(reason).split())})"
        raise BadFile(msg) from None
    return reader.finish()


class _Reader:
    """Build the program from start and end tags, at most four levels deep."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.depth = 0
        self.program: Program | None = None
        self.ranks: dict[int, Rank] = {}
        self.rank: Rank | None = None
        self.block: ThreadBlock | None = None
        self.steps = self.moved = self.declared = 0
        self.skipping = 0
        self.numbers: dict[str, int] = {}
        self.known: dict[tuple[str, int], Place] = {}
        self.missing: dict[str, None] = {}

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Process a start tag."""
        if self.skipping or (self.depth == 2 and tag in _SKIPPED):
            self.skipping += 1
            return
        if self.depth >= len(_LEVELS) or tag != _LEVELS[self.depth]:
            expected = f"<{_LEVELS[self.depth]}>" if self.depth < len(_LEVELS) else "nothing"
            self._refuse(f"<{str(tag)[:40]}> instead of {expected}")
        self.depth += 1
        getattr(self, f"_{tag}")(attributes)

    def refuse_document_type(self, *_: object) -> None:
        """Refuse a document type: without one, a file defines no entities."""
        msg = f"{self.path}: is not valid MSCCL XML (it has a document type); remove <!DOCTYPE ...>"
        raise BadFile(msg)

    def end(self, _tag: str) -> None:
        """Process an end tag."""
        if self.skipping:
            self.skipping -= 1
        else:
            self.depth -= 1

    def finish(self) -> Program:
        """The complete program."""
        program = self.program
        if program is None:
            self._refuse("missing <algo>")
        assert program is not None
        if sorted(self.ranks) != list(range(self.declared)):
            self._refuse(
                f"ngpus is {self.declared}, but there are {len(self.ranks)} gpus; number them from 0 to ngpus - 1"
            )
        program.ranks = [self.ranks[v] for v in range(self.declared)]
        program.missing = tuple(self.missing)
        return program

    def _algo(self, attributes: Mapping[str, str]) -> None:
        self.declared = self._whole(attributes, "ngpus", 1, MAX_RANKS)
        per_loop = self._whole(attributes, "nchunksperloop", 1, MAX_CHUNKS)
        named = attributes.get("coll", "")
        collective = _NAMES.get(named, named)
        if collective not in COLLECTIVES:
            self._refuse(f"coll={named[:40]!r} is not supported; use one of {', '.join(COLLECTIVES)}")
        if collective != "allreduce" and per_loop % self.declared:
            self._refuse(f"nchunksperloop={per_loop} is not a multiple of ngpus={self.declared}")
        inplace = bool(self._whole(attributes, "inplace", 0, 1, default=0))
        name, protocol = attributes.get("name", ""), attributes.get("proto", "Simple")
        sizes = [self._whole(attributes, key, -1, 1 << 62, default=0) for key in ("minBytes", "maxBytes")]
        self.missing.update(dict.fromkeys(key for key in _NAMED if key not in attributes))
        spelled = None if named == collective else named
        self.program = Program(
            name[:200], collective, per_loop, [], inplace, protocol[:20], sizes[0], sizes[1], spelled
        )

    def _gpu(self, attributes: Mapping[str, str]) -> None:
        number = self._whole(attributes, "id", 0, self.declared - 1)
        if number in self.ranks:
            self._refuse(f"gpu {number} is declared twice")
        sizes = {b: self._whole(attributes, f"{b}_chunks", 0, MAX_CHUNKS) for b in "ios"}
        self.rank = self.ranks[number] = Rank(sizes)

    def _tb(self, attributes: Mapping[str, str]) -> None:
        assert self.rank is not None
        number = self._whole(attributes, "id", 0, MAX_STEPS)
        if number in self.rank.blocks:
            self._refuse(f"gpu {len(self.ranks) - 1}: thread block {number} is declared twice")
        peers = [self._whole(attributes, key, -1, self.declared - 1) for key in ("send", "recv")]
        channel = self._whole(attributes, "chan", -1, MAX_RANKS, default=0)
        self.block = self.rank.blocks[number] = ThreadBlock(number, peers[0], peers[1], channel)

    def _step(self, attributes: Mapping[str, str]) -> None:
        assert self.block is not None
        self.steps += 1
        if self.steps > MAX_STEPS:
            self._refuse(f"more than {MAX_STEPS} steps")
        kind = attributes.get("type", "")
        if kind not in KINDS:
            self._refuse(f"type={kind[:20]!r} is not one of {', '.join(sorted(KINDS))}")
        nothing = kind == "nop"
        count = self._whole(attributes, "cnt", 0, MAX_COUNT, default=1)
        if count == 0 and not nothing:
            self._refuse(f"a step of type {kind} moves cnt=0 chunks")
        self.moved += count
        if self.moved > MAX_MOVED:
            self._refuse(f"its steps move more than {MAX_MOVED} chunks")
        places = [self._place(attributes, end) for end in ("src", "dst")]
        depid, deps = (self._whole(attributes, key, -1, MAX_STEPS, default=-1) for key in ("depid", "deps"))
        waits = (depid, deps) if depid >= 0 else None
        signals = bool(self._whole(attributes, "hasdep", 0, 1, default=0))
        number = self._whole(attributes, "s", 0, MAX_STEPS, default=len(self.block.instructions))
        odd = None if number == len(self.block.instructions) else number
        self.block.instructions.append(Instruction(kind, places[0], places[1], count, waits, signals, odd))

    def _place(self, attributes: Mapping[str, str], end: str) -> Place:
        buffer = attributes.get(f"{end}buf", "i")
        if buffer not in {"i", "o", "s"}:
            self._refuse(f"{end}buf={buffer[:20]!r} is not one of i, o, s")
        at = buffer, self._whole(attributes, f"{end}off", -1, MAX_CHUNKS, default=-1)
        result = self.known.get(at)
        if result is None:
            result = self.known[at] = Place(*at)
        return result

    def _whole(self, attributes: Mapping[str, str], key: str, least: int, most: int, default: int | None = None) -> int:
        text = attributes.get(key)
        known = self.numbers.get(text)  # type: ignore[arg-type]
        if known is not None and least <= known <= most:
            return known
        if text is None and default is not None:
            self.missing[key] = None
            return default
        if text is None or not _WHOLE.fullmatch(text):
            self._refuse(f"{key} must be a whole number, not {'missing' if text is None else repr(text[:20])}")
        value = int(str(text))
        if not least <= value <= most:
            self._refuse(f"{key}={value} is outside {least}..{most}")
        self.numbers[str(text)] = value
        return value

    def _refuse(self, reason: str) -> Any:
        level = _LEVELS[min(max(self.depth - 1, 0), len(_LEVELS) - 1)]
        where = f"gpu {len(self.ranks) - 1}" if self.ranks else level
        if self.block is not None and level in {"tb", "step"}:
            where += f", thread block {self.block.number}, step {len(self.block.instructions)}"
        msg = f"{self.path}: invalid MSCCL XML at {where}: {reason}"
        raise BadFile(msg)

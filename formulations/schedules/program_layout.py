"""Moves of a link schedule, and their thread blocks, channels and dependencies, in flat arrays."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.model import NotApplicable
from opticoll.formulations.schedules.program import Instruction, Place, Rank, ThreadBlock, deal_channels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from opticoll.formulations.schedules.link_schedule import LinkSchedule
    from opticoll.formulations.schedules.program import Target

    I64 = NDArray[np.int64]
    Mask = NDArray[np.bool_]

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
    found = np.empty(group.size, dtype=np.int64)
    found[order] = np.arange(group.size) - np.repeat(starts, np.diff(np.append(starts, group.size)))
    return found


class Moves:
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
        number[topology.terminals] = np.arange(topology.ranks)
        step, tail, head, origin, final, chunk = schedule.moves().T
        tail, head, origin = number[tail], number[head], number[origin]
        self.gathering = bool(final.size) and bool((final < 0).all())
        final = np.where(final < 0, 0, number[final])
        self.N, self.D, self.most = topology.ranks, schedule.chunks * instances, most
        parts = np.repeat(np.arange(instances), step.size)
        rows = np.column_stack([
            np.tile(step, instances), parts, np.tile(tail, instances), np.tile(head, instances),
            np.tile(origin, instances), np.tile(final, instances),
            np.tile(chunk, instances) + schedule.chunks * parts,
        ])  # fmt: skip
        rows = rows[np.lexsort(rows.T[::-1])]
        self._join(rows, *self._places(rows, self._brought(rows)))

    def _brought(self, rows: I64) -> I64:
        """The row that brings the chunk of every row to its tail, -1 for the rank's own chunks."""
        step, _, tail, head, origin, final, chunk = rows.T
        token = (origin * self.N + final) * self.D + chunk
        every = self.N * self.N * self.D
        onward = np.flatnonzero((head != final) | self.gathering)
        onward = onward[np.argsort(head[onward] * every + token[onward], kind="stable")]
        held = head[onward] * every + token[onward]
        sought = np.flatnonzero(origin != tail)
        wanted = tail[sought] * every + token[sought]
        at = np.minimum(np.searchsorted(held, wanted), max(held.size - 1, 0))
        found = onward[at] if held.size else np.full(sought.size, -1, dtype=np.int64)
        known = held[at] == wanted if held.size else np.zeros(sought.size, dtype=bool)
        early = np.flatnonzero(~known | (step[found] >= step[sought]))
        if early.size:
            _, _, rank, _, s, t, c = rows[sought[early[0]]].tolist()
            msg = f"lowering: rank {rank} sends chunk {c} of {s}->{t} before receiving it; check the schedule"
            raise NotApplicable(msg)
        brought = np.full(len(rows), -1, dtype=np.int64)
        brought[sought] = found
        return brought

    def _places(self, rows: I64, brought: I64) -> tuple[I64, I64, I64, I64]:
        """An order of the rows within their steps, their places (buffer, offset) at both ends, and ``brought``.

        Chunks in transit lie in scratch in the order in which they arrive.
        """
        step, part, tail, head, origin, final, chunk = rows.T
        source, target = np.zeros((len(rows), 2), dtype=np.int64), np.zeros((len(rows), 2), dtype=np.int64)
        source[:, 1] = (0 if self.gathering else final * self.D) + chunk
        arrives = (head == final) | self.gathering
        target[:, 0] = np.where(arrives, OUTPUT, SCRATCH)
        target[:, 1] = origin * self.D + chunk
        self.scratch = np.zeros(self.N, dtype=np.int64)
        order = np.arange(len(rows))
        for first, last in pairwise([*np.flatnonzero(np.diff(step, prepend=-1)).tolist(), len(rows)]):
            now = order[first:last]
            later = now[brought[now] >= 0]
            source[later] = target[brought[later]]
            now = now[np.lexsort((
                chunk[now], final[now], origin[now], source[now, 1], source[now, 0], head[now], tail[now], part[now],
            ))]  # fmt: skip
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

    def __init__(self, moves: Moves, target: Target, channels: int, instances: int) -> None:
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
        inputs = moves.D if moves.gathering else size
        ranks = [Rank({"i": inputs, "o": size, "s": many}) for many in moves.scratch.tolist()]
        move, sends, count, signalling = self.move.tolist(), self.sends.tolist(), moves.count.tolist(), signals.tolist()
        none = Place("i", -1), Place("o", -1)
        blocks = zip(
            self.rank.tolist(), self.number.tolist(), self.peer.tolist(), self.channel.tolist(),
            pairwise(self.first.tolist()), strict=True,
        )  # fmt: skip
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
            origin = Place("i", first if moves.gathering else place)
            count = min(moves.most, moves.D - first)
            copies.instructions.append(Instruction("cpy", origin, Place("o", place), count))

"""The layout of a program: moves of chunks with their thread blocks, channels and dependencies, in flat arrays."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import NotApplicable
from opticoll.formulations.rounds.segments import turns
from opticoll.solvers.schedules.program_arrays import ADD, COPY, NOP, RECEIVE, SEND, ProgramArrays

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opticoll.instances.topology import I64
    from opticoll.solvers.schedules.runtimes import Target


#: Numbers of buffers in the arrays.
OUTPUT, SCRATCH = 1, 2
#: Times that a program is laid out again with more channels.
LAYOUTS = 6


class ChunkMoves:
    """Moves between ranks, in order of their steps: contiguous chunks over one connection in one step.

    Move i takes ``count[i]`` chunks in ``step[i]`` from rank ``tail[i]`` to ``head[i]`` for the instance ``part[i]``,
    from the place ``source[i]`` to ``target[i]``, rows (buffer, offset); if it ``adds[i]``, with what is at
    ``prior[i]``. It waits for the moves ``bringing`` where ``waiting`` is i: its send, or where ``receives`` its
    receive. Ranks are numbered as in the program.

    Parameters
    ----------
    collective, N, chunks
        The collective, its ranks, and the chunks of a shard.
    table
        Rows (step, tail, head, shard, chunk, adds); a shard is a rank, in an all-to-all source * N + target.
    instances
        Number of parts into which every chunk is divided.
    most
        Most chunks of a move.

    Raises
    ------
    NotApplicable
        If a chunk is sent before it arrives.
    """

    def __init__(self, collective: str, N: int, chunks: int, table: I64, instances: int, most: int) -> None:
        self.collective, self.N, self.D, self.most = collective, N, chunks * instances, most
        step, tail, head, shard, chunk, adds = (np.tile(column, instances) for column in table.T)
        part = np.repeat(np.arange(instances), len(table))
        rows = np.column_stack([step, part, tail, head, shard, chunk + chunks * part, adds])
        rows = rows[np.lexsort(rows.T[::-1])]
        self._join(rows, *self._places(rows, *self._written(rows)))

    def _written(self, rows: I64) -> tuple[I64, I64]:
        """The row that last wrote what every row sends, and what it adds to; -1 for a rank's own input."""
        step, _, tail, head, shard, chunk, adds = rows.T
        token = shard * self.D + chunk
        every, index = int(token.max(initial=0)) + 1, np.arange(len(rows))
        held = head * every + token
        order = np.argsort(held, kind="stable")
        key = held[order] * len(rows) + order

        def last(place: I64, row: I64) -> I64:
            """The last row before ``row`` that wrote a place."""
            if not key.size:
                return np.full(place.size, -1)
            found = order[np.searchsorted(key, place * len(rows) + row) - 1]
            return np.where((held[found] == place) & (found < row), found, -1)

        brought = last(tail * every + token, np.searchsorted(step, step))
        origin = shard // self.N if self.collective == "alltoall" else shard
        own = (tail == origin) | (self.collective in {"reducescatter", "allreduce"})
        early = np.flatnonzero((brought < 0) & ~own)
        if early.size:
            rank, c = tail[early[0]], chunk[early[0]]
            msg = f"lowering: rank {rank} sends chunk {c} of {origin[early[0]]} before receiving it; check the schedule"
            raise NotApplicable(msg)
        return brought, np.where(adds == 1, last(held, index), -1)

    def _places(self, rows: I64, brought: I64, before: I64) -> tuple[I64, I64, I64, I64, I64, I64]:
        """An order of the rows within their steps, the places (buffer, offset) that each reads, writes and adds to.

        Inputs are not written. Partial sums of an all-reduce lie in the output, those of a reduce-scatter and chunks in
        transit in scratch, in the order in which they arrive.
        """
        step, part, tail, head, shard, chunk, _ = rows.T
        source, target = np.zeros((len(rows), 2), dtype=np.int64), np.zeros((len(rows), 2), dtype=np.int64)
        whole, passes = shard * self.D + chunk, np.zeros(len(rows), dtype=bool)
        target[:, 1] = whole
        source[:, 1] = chunk if self.collective == "allgather" else whole
        if self.collective == "alltoall":
            origin, final = np.divmod(shard, self.N)
            source[:, 1], target[:, 1], passes = final * self.D + chunk, origin * self.D + chunk, head != final
        elif self.collective == "reducescatter":
            target[:, 1], passes = chunk, head != shard
        prior = source.copy()
        target[:, 0] = np.where(passes, SCRATCH, OUTPUT)
        first_sum = np.where(before < 0, np.arange(len(rows)), before)
        while not np.array_equal(first_sum, earlier := first_sum[first_sum]):
            first_sum = earlier
        self.scratch = np.zeros(self.N, dtype=np.int64)
        order = np.arange(len(rows))
        for first, last in pairwise([*np.flatnonzero(np.diff(step, prepend=-1)).tolist(), len(rows)]):
            now = order[first:last]
            later = now[brought[now] >= 0]
            source[later] = target[brought[later]]
            keys = (chunk, shard, source[:, 1], source[:, 0], head, tail, part)
            now = now[np.lexsort([key[now] for key in keys])]
            order[first:last] = now
            new = now[passes[now] & (before[now] < 0)]
            target[new, 1] = self.scratch[head[new]] + turns(head[new])
            self.scratch += np.bincount(head[new], minlength=self.N)
            again = now[passes[now] & (before[now] >= 0)]
            target[again] = target[first_sum[again]]
        prior[before >= 0] = target[before[before >= 0]]
        return order, source, target, prior, brought, before

    def _join(self, rows: I64, order: I64, source: I64, target: I64, prior: I64, brought: I64, before: I64) -> None:
        """Join chunks that one connection moves in one step and that are contiguous at both ends."""
        lines, source, target, prior = rows[order][:, [0, 1, 2, 3, 6]], source[order], target[order], prior[order]
        joined = np.zeros(order.size, dtype=bool)
        joined[1:] = (lines[1:] == lines[:-1]).all(axis=1)
        for place in (source, target, prior):
            follows = (place[1:] - place[:-1] == (0, 1)).all(axis=1)
            joined[1:] &= follows | (lines[1:, 4] == 0) if place is prior else follows
        run = np.cumsum(~joined) - 1
        starts = turns(run) % self.most == 0
        move = np.cumsum(starts) - 1
        self.step, self.part, self.tail, self.head, self.adds = lines[starts].T
        self.source, self.target, self.prior = source[starts], target[starts], prior[starts]
        self.count = np.bincount(move, minlength=0).astype(np.int64)
        place = np.empty(order.size, dtype=np.int64)
        place[order] = np.arange(order.size)
        sends, sums = (np.flatnonzero(written[order] >= 0) for written in (brought, before))
        self.waiting = np.concatenate([move[sends], move[sums]])
        self.bringing = move[place[np.concatenate([brought[order[sends]], before[order[sums]]])]]
        self.receives = np.repeat([False, True], [sends.size, sums.size])


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
        self.turn = turns(self.line)
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
        dealt = _dealt(self.split, self.target.peers)
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
            turn = turns(np.unique((key * (step.max(initial=0) + 1) + step) * 2 + sends, return_inverse=True)[1])
            order = np.lexsort((~sends, turn, step, key))
        self.move, self.sends = order % max(size, 1), sends[order]
        starts = np.flatnonzero(np.diff(key[order], prepend=-1))
        self.first = np.append(starts, order.size)
        self.block = np.repeat(np.arange(starts.size), np.diff(self.first))
        rest, self.channel = np.divmod(key[order[starts]], every)
        owner, self.peer = np.divmod(rest, moves.N)
        self.rank = owner // 2
        self.number = turns(self.rank)

    def _wait(self) -> None:
        """The receives that an entry waits for: the last one in every other thread block, unless already passed."""
        moves, size = self.moves, self.line.size
        sent, received = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
        at = np.arange(self.move.size)
        sent[self.move[self.sends]] = at[self.sends]
        received[self.move[~self.sends]] = at[~self.sends]
        entry, awaited = np.where(moves.receives, received[moves.waiting], sent[moves.waiting]), moves.bringing
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

    def arrays(self) -> ProgramArrays:
        """Per rank, sends by peer and channel, receives likewise, then the copy of its own shard."""
        moves, N, D = self.moves, self.moves.N, self.moves.D
        own = N if moves.collective in {"alltoall", "allgather"} else 0
        parts = -(-D // moves.most)
        rank = np.concatenate([self.rank, np.arange(own)])
        order = np.argsort(rank, kind="stable")  # what a rank copies itself comes last
        into = np.empty_like(order)
        into[order] = np.arange(order.size)
        length = np.diff(self.first) + np.bincount(self.block, self.nops, minlength=self.rank.size).astype(np.int64)
        first = np.concatenate([[0], np.cumsum(np.append(length, np.full(own, parts))[order])])
        size = int(first[-1])
        kind, count = np.full(size, NOP), np.zeros(size, dtype=np.int64)
        source, target = np.tile([0, -1], (size, 1)), np.tile([OUTPUT, -1], (size, 1))
        waits, signals = np.full((size, 2), -1), np.zeros(size, dtype=bool)
        at = first[into[self.block]] + self.position
        move, adds = self.move, moves.adds[self.move] == 1
        kind[at] = np.where(self.sends, SEND, np.where(adds, ADD, RECEIVE))
        source[at] = np.where((adds & ~self.sends)[:, None], moves.prior[move], moves.source[move])
        target[at], count[at] = moves.target[move], moves.count[move]
        signalling = np.zeros(self.line.size, dtype=bool)
        signalling[self.awaited] = True
        signals[at] = signalling[move] & ~self.sends
        turn = turns(self.entry)  # all waits of an entry but the last stand in front of it
        behind = self.received[self.awaited]
        waits[at[self.entry] - self.nops[self.entry] + turn] = np.column_stack(
            [self.number[self.block[behind]], self.position[behind]]
        )
        send, receive = np.full(rank.size, -1), np.full(rank.size, -1)
        some = np.zeros((2, self.rank.size), dtype=bool)
        some[self.sends.astype(np.int64), self.block] = True
        send[: self.rank.size][some[1]], receive[: self.rank.size][some[0]] = self.peer[some[1]], self.peer[some[0]]
        if own:
            v, part = (one.ravel() for one in np.indices((N, parts)))
            at = first[into[self.rank.size + v]] + part
            offset = v * D + part * moves.most
            kind[at], count[at] = COPY, np.minimum(moves.most, D - part * moves.most)
            source[at, 1] = part * moves.most if moves.collective == "allgather" else offset
            target[at, 1] = offset
        channel = np.concatenate([self.channel, np.zeros(own, dtype=np.int64)])
        sizes = np.full((N, 3), N * D)
        sizes[:, 2] = moves.scratch
        if moves.collective in {"allgather", "reducescatter"}:
            sizes[:, OUTPUT if moves.collective == "reducescatter" else 0] = D
        number = turns(rank[order])
        return ProgramArrays(
            rank[order],
            number,
            send[order],
            receive[order],
            channel[order],
            first,
            kind,
            source,
            target,
            count,
            waits,
            signals,
            sizes,
        )


def _dealt(split: Mapping[tuple[int, int, int], int], most_peers: int) -> dict[tuple[int, int, int], list[int]]:
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

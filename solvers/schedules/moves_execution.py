"""Execution of schedules in steps: every move is replayed, from the moves alone.

Every rank holds, for every chunk, a set of ranks whose contributions are summed in it; a sum of two sets that share a
rank counts that rank twice and is refused. In a collective without sums a chunk has one contribution, that of its
origin. Chunks do not depend on each other: as many are replayed together as their sets, of one bit for every
contribution, leave room for.
"""

from __future__ import annotations

from itertools import pairwise, permutations
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.rounds.segments import turns
from opticoll.solvers.schedules.schedule_check import FREE_STEPS, Cost, ScheduleCheck, refused

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from opticoll.instances.topology import I64, Mask, Topology
    from opticoll.solvers.schedules.collective_steps import CollectiveSteps, Shard

    #: Sets of contributions, one bit each, in the words of the last axis.
    Sets = NDArray[np.uint64] | NDArray[np.uint8]

#: Maximum size of all sets that are held at a time [bytes].
MOST_BYTES = 256_000_000
#: Collectives with sums.
SUMS = frozenset({"reducescatter", "allreduce"})


def run_moves(
    schedule: CollectiveSteps, topology: Topology, root: int = 0, *, cost: Cost = FREE_STEPS
) -> ScheduleCheck:
    """Execute a schedule; a valid one has metrics ``time`` (alpha-beta), ``steps``, ``transfers``, ``chunks``.

    ``root`` is the rank of a broadcast, counted from 0.
    """
    ranks = topology.terminals.tolist()
    if schedule.collective == "broadcast" and schedule.root != ranks[root]:
        where = f"from vertex {schedule.root}, but the root is {ranks[root]}"
        return refused("collective", f"the file broadcasts {where}; give the root of the file")
    wrong = _Execution(schedule, topology).violation()
    if wrong is not None:
        return wrong
    return ScheduleCheck(
        True,
        metrics={
            "time": schedule.time(topology, cost),
            "steps": int(np.unique(schedule.step).size),
            "transfers": schedule.moves,
            "chunks": schedule.chunks,
            "ranks": len(ranks),
        },
    )


class _Execution:
    """A schedule on a topology: tokens are the chunks of all shards, numbered shard by shard."""

    def __init__(self, schedule: CollectiveSteps, topology: Topology) -> None:
        self.schedule, self.topology = schedule, topology
        self.sums = schedule.collective in SUMS
        self.ranks = topology.terminals
        self.number = np.full(topology.n, -1)
        self.number[self.ranks] = np.arange(self.ranks.size)
        self.shards = self._shards()
        self.start, self.end = schedule.vertices[schedule.first[:-1]], schedule.vertices[schedule.first[1:] - 1]
        width = topology.n + 1
        key = self.shards[:, 0] * width + self.shards[:, 1] + 1
        order = np.argsort(key)
        mine = schedule.shard[:, 0] * width + schedule.shard[:, 1] + 1
        at = np.minimum(np.searchsorted(key[order], mine), max(key.size - 1, 0))
        self.known = key[order[at]] == mine if key.size else np.zeros(mine.size, dtype=bool)
        self.known &= (schedule.chunk >= 0) & (schedule.chunk < schedule.chunks)
        self.token = np.where(self.known, order[at] * schedule.chunks + schedule.chunk, 0) if key.size else mine

    def _shards(self) -> I64:
        """Vertices of every shard, ``(S, 2)``: source and target of the pairs of an all-to-all, else rank and -1."""
        schedule, ranks = self.schedule, self.ranks.tolist()
        if schedule.collective == "alltoall":
            pairs = list(permutations(ranks, 2) if schedule.demand is None else schedule.demand)
        else:
            pairs = [(rank, -1) for rank in (ranks if schedule.root is None else [schedule.root])]
        return np.array(pairs, dtype=np.int64).reshape(-1, 2)

    def violation(self) -> ScheduleCheck | None:
        """The first violation; None if the schedule performs its collective."""
        static, N = self._static(), self.ranks.size
        words, kind = (-(-N // 64), np.dtype(np.uint64)) if self.sums else (1, np.dtype(np.uint8))
        tokens = len(self.shards) * self.schedule.chunks
        many = max(MOST_BYTES // (N * words * kind.itemsize), 1)
        wrong: list[tuple[int, int, int, str, str]] = []
        bad = np.flatnonzero(static)
        if bad.size:
            i = int(bad[0])
            wrong.append((int(self.schedule.step[i]), 0, i, *self._described(i)))
        moves = np.flatnonzero(~static)
        moves = moves[np.argsort(self.token[moves], kind="stable")]
        missing: ScheduleCheck | None = None
        for begin in range(0, tokens, many):
            size = min(many, tokens - begin)
            first, last = np.searchsorted(self.token[moves], [begin, begin + size])
            held = np.zeros((N, size, words), dtype=kind)
            if self.sums:
                held[np.arange(N), :, np.arange(N) // 64] = _bits(N)[:, None]
            else:
                origin = self.shards[(begin + np.arange(size)) // self.schedule.chunks, 0]
                held[self.number[origin], np.arange(size), 0] = 1
            found = self._replayed(np.sort(moves[first:last]), begin, held)
            wrong += [] if found is None else [found]
            if not wrong and missing is None:
                missing = self._lacking(held, begin)
        if not wrong:
            return missing
        _, late, i, reason, message = min(wrong)
        return self._refused(i, reason, message, rank=int(self.end[i] if late else self.start[i]))

    # What a move states

    def _static(self) -> Mask:
        """Moves that are wrong whatever the ranks hold, ``(moves,)``."""
        schedule, n = self.schedule, self.topology.n
        move, tail, head = schedule.crossings()
        absent = ~np.isin(tail * n + head, self.topology.tail * n + self.topology.head)
        self.no_arc = np.bincount(move[absent], minlength=schedule.moves) > 0
        is_rank, length = self.number >= 0, np.diff(schedule.first)
        owner = np.repeat(np.arange(schedule.moves), length)
        inner = np.bincount(owner, is_rank[schedule.vertices], minlength=schedule.moves) > 2
        self.no_route = ~is_rank[self.start] | ~is_rank[self.end] | (self.start == self.end) | inner
        order = np.lexsort((schedule.vertices, owner))
        again = (np.diff(schedule.vertices[order]) == 0) & (np.diff(owner[order]) == 0)
        self.no_route[owner[order][1:][again]] = True
        wrong = self.no_arc | self.no_route | ~self.known
        return wrong if self.sums else wrong | schedule.adds

    def _described(self, i: int) -> tuple[str, str]:
        """Reason and message for a move that is wrong whatever the ranks hold."""
        schedule, n = self.schedule, self.topology.n
        path = schedule.vertices[schedule.first[i] : schedule.first[i + 1]].tolist()
        if self.no_arc[i]:
            arcs = set((self.topology.tail * n + self.topology.head).tolist())
            u, v = next((u, v) for u, v in pairwise(path) if u * n + v not in arcs)
            return "no-arc", f"moves {u}->{v}, which is not an arc"
        if self.no_route[i]:
            return "no-route", f"moves over {path[:12]}; a path joins two ranks through switches only"
        if not self.known[i]:
            has = f"a shard has {schedule.chunks} chunks"
            return "no-chunk", f"{has}, and only ranks, or pairs that send, have shards"
        return "wrong-sum", "is added, but this collective has no sums"

    def _refused(self, i: int, reason: str, message: str, rank: int) -> ScheduleCheck:
        schedule = self.schedule
        source, target = schedule.shard[i].tolist()
        name = chunk_name((source, target) if target >= 0 else source, int(schedule.chunk[i]))
        step = int(schedule.step[i])
        return refused(reason, f"step {step}: {name}: {message}", rank=rank, chunk=int(schedule.chunk[i]), step=step)

    # What ranks hold

    def _replayed(self, mine: I64, begin: int, held: Sets) -> tuple[int, int, int, str, str] | None:
        """Apply these moves to the sets ``held``, ``(N, tokens, words)``; the first one that cannot be, and why."""
        schedule, step = self.schedule, self.schedule.step[mine]
        for first, last in pairwise([*np.flatnonzero(np.diff(step, prepend=-1)).tolist(), mine.size]):
            now = mine[first:last]
            at, to, token = self.number[self.start[now]], self.number[self.end[now]], self.token[now] - begin
            sent = held[at, token]
            early = np.flatnonzero(~sent.any(axis=1))
            if early.size:
                i = int(now[early[0]])
                return int(schedule.step[i]), 0, i, "not-held", f"{self.start[i]} sends it before receiving it"
            place = to * held.shape[1] + token
            turn = turns(place)
            wrong: list[int] = []
            twice: dict[int, Sets] = {}
            for k in range(int(turn.max(initial=-1)) + 1):  # what one rank receives of a chunk, one after the other
                rows = np.flatnonzero(turn == k)
                before, new, adds = held[to[rows], token[rows]], sent[rows], schedule.adds[now[rows]]
                both = before & new
                fails = np.where(adds, both.any(axis=1), (both == new).all(axis=1))
                wrong += rows[fails].tolist()
                twice |= dict(zip(rows[fails].tolist(), both[fails], strict=True))
                held[to[rows], token[rows]] = np.where(adds[:, None], before | new, new)
            if wrong:
                j = min(wrong)
                i, v = int(now[j]), int(self.end[now[j]])
                if not schedule.adds[i]:
                    return int(schedule.step[i]), 1, i, "duplicate", f"{v} receives it, but already has it"
                message = f"{v} adds it, which counts the contribution of {self._last_of(twice[j])} twice"
                return int(schedule.step[i]), 1, i, "wrong-sum", message
        return None

    def _last_of(self, members: Sets) -> int:
        """The last rank of a set."""
        word = int(np.flatnonzero(members)[-1])
        return int(self.ranks[word * 64 + int(members[word]).bit_length() - 1])

    def _lacking(self, held: Sets, begin: int) -> ScheduleCheck | None:
        """The first chunk that is not complete where it must be at the end."""
        N, D = self.ranks.size, self.schedule.chunks
        due = np.zeros(held.shape[2], dtype=held.dtype)
        np.bitwise_or.at(due, np.arange(N if self.sums else 1) // 64, _bits(N if self.sums else 1).astype(held.dtype))
        whole = (held == due).all(axis=2)  # (N, tokens)
        shard, chunk = np.divmod(begin + np.arange(held.shape[1]), D)
        if self.schedule.collective in {"reducescatter", "alltoall"}:
            mine = np.zeros_like(whole)
            mine[self.number[self.shards[shard, 0 if self.sums else 1]], np.arange(shard.size)] = True
            whole |= ~mine
        lacking = np.argwhere(~whole.T)
        if not lacking.size:
            return None
        # By shard, then rank, then chunk.
        token, rank = lacking[np.lexsort((chunk[lacking[:, 0]], lacking[:, 1], shard[lacking[:, 0]]))[0]].tolist()
        source, target = self.shards[shard[token]].tolist()
        v, c = int(self.ranks[rank]), int(chunk[token])
        name = chunk_name((source, target) if target >= 0 else source, c)
        if not self.sums:
            return refused("missing-chunk", f"rank {v}: {name} never arrives", rank=v, chunk=c)
        first = self._last_of(due & ~held[rank, token])
        return refused("wrong-sum", f"rank {v}: the sum of {name} lacks the contribution of {first}", rank=v, chunk=c)


def _bits(count: int) -> NDArray[np.uint64]:
    """One bit for every contribution, in words of 64, ``(count,)``."""
    return np.uint64(1) << (np.arange(count) % 64).astype(np.uint64)


def chunk_name(shard: Shard, chunk: int) -> str:
    """What messages call a chunk."""
    return f"chunk {chunk} of {f'{shard[0]}->{shard[1]}' if isinstance(shard, tuple) else shard}"

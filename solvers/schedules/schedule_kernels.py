"""Compiled kernels of schedules: balance of chunks over routes, list scheduling, and execution of programs that copy.

Importing this module compiles or loads the kernels. Schedules made here are checked by independent code: link schedules
by :func:`opticoll.solvers.schedules.collective_steps.run_moves`, routes by
:func:`opticoll.solvers.schedules.link_schedule.run_routes`.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TYPE_CHECKING

import numpy as np

from opticoll.compiled import compiled
from opticoll.solvers.schedules.program_arrays import COPY, NOP, RECEIVE, SEND, ProgramArrays

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opticoll.instances.topology import F64, I64, Mask
    from opticoll.solvers.schedules.program import Program


#: Largest exponent of a potential: sums of some thousand terms stay finite.
STEEPEST = 300.0


@compiled(nogil=True, error_model="numpy")
def balance(
    members: I64,
    first_member: I64,
    first: I64,
    cells: I64,
    size: F64,
    carried: I64,
    load: F64,
    room: F64,
    steepness: F64,
    order: I64,
    seed: int,
) -> None:
    r"""Move chunks between routes of a commodity while that lowers the potential of the cells' loads.

    The potential is :math:`\sum_i e^{\beta (load_i / room_i - 1)}`: with growing beta it comes close to the largest
    relative load. A chunk is taken off its route and put where that costs least; ties are broken at random.

    Parameters
    ----------
    members, first_member
        Routes of commodity k: ``members[first_member[k] : first_member[k + 1]]``.
    first, cells
        Cells of route r: ``cells[first[r] : first[r + 1]]``.
    size
        Load of one chunk of a route, ``(R,)``.
    carried, load
        Chunks of every route and load of every cell; changed in place.
    room
        Load that every cell should not exceed, ``(cells,)``.
    steepness
        Values of beta, one per sweep.
    order
        Commodities with several routes, shuffled in place.
    seed
        Of the random numbers.
    """
    np.random.seed(seed)  # noqa: NPY002 - the compiled generator is a process-wide one
    price = np.empty(load.size)
    for beta in steepness:
        for i in range(load.size):
            price[i] = np.exp(min(beta * (load[i] / room[i] - 1.0), STEEPEST))
        for i in range(order.size - 1, 0, -1):
            j = np.random.randint(0, i + 1)  # noqa: NPY002
            order[i], order[j] = order[j], order[i]
        for k in order:
            for at in range(first_member[k], first_member[k + 1]):
                r = members[at]
                for _ in range(carried[r]):
                    for i in cells[first[r] : first[r + 1]]:
                        load[i] -= size[r]
                        price[i] = np.exp(min(beta * (load[i] / room[i] - 1.0), STEEPEST))
                    best, least = r, np.inf
                    for other in range(first_member[k], first_member[k + 1]):
                        q = members[other]
                        cost = 0.0
                        for i in cells[first[q] : first[q + 1]]:
                            grown = min(beta * size[q] / room[i], STEEPEST)
                            cost += price[i] * (np.exp(grown) - 1.0)
                        cost *= 1.0 + 1e-9 * np.random.random()  # noqa: NPY002
                        if cost < least:
                            best, least = q, cost
                    for i in cells[first[best] : first[best + 1]]:
                        load[i] += size[best]
                        price[i] = np.exp(min(beta * (load[i] / room[i] - 1.0), STEEPEST))
                    if best != r:
                        carried[r] -= 1
                        carried[best] += 1


@compiled(nogil=True)
def list_schedule(
    first: I64, arcs: I64, urgency: I64, until: I64, route: I64, size: F64, limit: F64, step: I64, arc: I64, token: I64
) -> None:
    """Steps of every hop: in a step each arc sends waiting chunks up to its budget, the most urgent first.

    Parameters
    ----------
    first, arcs
        Arcs of route r: ``arcs[first[r] : first[r + 1]]``.
    urgency
        Of every entry of ``arcs``, from 0; equals are sent in the order of arrival.
    until
        Of every entry of ``arcs``: the end of the entries that are crossed in one step with it.
    route, size
        Route and size of every chunk, ``(P,)``.
    limit
        A chunk may cross an arc while what has crossed it in the step is below this, ``(m,)``.
    step, arc, token
        Of every transfer, filled in order, ``(hops,)``.
    """
    chunks, m, width = route.size, limit.size, urgency.max() + 1
    head, tail = np.full(m * width, -1, dtype=np.int64), np.full(m * width, -1, dtype=np.int64)
    after, top = np.full(chunks, -1, dtype=np.int64), np.full(m, -1, dtype=np.int64)
    hops = np.zeros(chunks, dtype=np.int64)
    moved, sent = np.arange(chunks), np.zeros(m)
    count, placed, now, left = chunks, 0, 0, chunks
    while True:
        for j in range(count):
            p = moved[j]
            at = first[route[p]] + hops[p]
            if at == first[route[p] + 1]:
                left -= 1
                continue
            cell = arcs[at] * width + urgency[at]
            after[p] = -1
            if tail[cell] < 0:
                head[cell] = p
            else:
                after[tail[cell]] = p
            tail[cell] = p
            top[arcs[at]] = max(top[arcs[at]], urgency[at])
        if left == 0:
            return
        count = 0
        sent[:] = 0.0
        for turn in range(m):
            a = (turn + now) % m  # arcs take turns where chunks share arcs behind the first one
            while sent[a] < limit[a] - 1e-9 and top[a] >= 0:
                cell = a * width + top[a]
                p = head[cell]
                if p < 0:
                    top[a] -= 1
                    continue
                head[cell] = after[p]
                if head[cell] < 0:
                    tail[cell] = -1
                moved[count] = p
                count += 1
                at = first[route[p]] + hops[p]
                free = True
                for i in range(at + 1, until[at]):
                    free = free and sent[arcs[i]] < limit[arcs[i]] - 1e-9
                if not free:
                    continue  # queued again for the next step
                for i in range(at, until[at]):
                    step[placed], arc[placed], token[placed] = now, arcs[i], p
                    placed += 1
                    sent[arcs[i]] += size[p]
                hops[p] = until[at] - first[route[p]]
        moved[:count].sort()
        now += 1


@compiled(nogil=True)
def execute(
    first: I64,
    sends: I64,
    receives: I64,
    wire: I64,
    duration: F64,
    awaited: I64,
    owner: I64,
    message: I64,
    slots: int,
    alpha: float,
    end: F64,
    position: I64,
) -> None:
    """Progress of thread blocks in simulated time, until none can proceed.

    Parameters
    ----------
    first
        Instructions of block g: ``first[g] .. first[g + 1]``.
    sends, receives
        Of every instruction: number of the connection that it uses, or -1.
    wire, duration
        Of every instruction that sends: the link and the time that it occupies it.
    awaited
        Of every instruction: one that must have ended, -1 for none, -2 if there will never be one.
    owner
        Block of every instruction.
    message
        Messages of connection k: ``message[k] .. message[k + 1]``, one after the other.
    slots
        Messages that are in flight on a connection at most.
    alpha
        Latency of a message.
    end
        Filled with the end of every instruction.
    position
        Filled with the instruction that every block has come to, ``(blocks,)``.
    """
    blocks, connections = first.size - 1, message.size - 1
    links = wire.max() + 1 if wire.size else 0
    free = np.zeros(max(links, 1))
    arrival, granted = np.zeros(message[connections] + 1), np.zeros(message[connections] + 1)
    sent, got = np.zeros(connections, dtype=np.int64), np.zeros(connections, dtype=np.int64)
    sender, receiver = np.full(connections, -1, dtype=np.int64), np.full(connections, -1, dtype=np.int64)
    waiting, after = np.full(blocks, -1, dtype=np.int64), np.full(blocks, -1, dtype=np.int64)
    clock = np.zeros(blocks)
    ready = [(0.0, np.int64(0))]
    ready.pop()
    woken = np.empty(blocks + 2, dtype=np.int64)
    count = blocks
    for g in range(blocks):
        position[g] = first[g]
        woken[g] = g
    while True:
        for j in range(count):
            g = woken[j]
            i = position[g]
            if i == first[g + 1]:
                continue
            start = clock[g]
            if awaited[i] == -2:
                continue
            if awaited[i] >= 0:
                other = owner[awaited[i]]
                if position[other] <= awaited[i]:
                    after[g] = waiting[other]
                    waiting[other] = g
                    continue
                start = max(start, end[awaited[i]])
            k = receives[i]
            if k >= 0:
                if got[k] == sent[k]:
                    receiver[k] = g
                    continue
                start = max(start, arrival[message[k] + got[k]])
            k = sends[i]
            if k >= 0:
                if sent[k] - got[k] >= slots:
                    sender[k] = g
                    continue
                if sent[k] >= slots:
                    start = max(start, granted[message[k] + sent[k] - slots])
            heappush(ready, (start, g))
        if len(ready) == 0:
            return
        start, turn = heappop(ready)
        g = int(turn)
        i = position[g]
        count = 1
        woken[0] = g
        finish = start
        k = receives[i]
        if k >= 0:
            granted[message[k] + got[k]] = start
            got[k] += 1
            if sender[k] >= 0:
                woken[count] = sender[k]
                count += 1
                sender[k] = -1
        k = sends[i]
        if k >= 0:
            finish = max(start, free[wire[i]]) + duration[i]
            free[wire[i]] = finish
            arrival[message[k] + sent[k]] = finish + alpha
            sent[k] += 1
            if receiver[k] >= 0:
                woken[count] = receiver[k]
                count += 1
                receiver[k] = -1
        end[i] = clock[g] = finish
        position[g] = i + 1
        h = waiting[g]
        waiting[g] = -1
        while h >= 0:
            following = after[h]
            woken[count] = h
            count += 1
            h = following


@compiled(nogil=True)
def fair_rates(first: I64, arcs: I64, capacity: F64) -> F64:
    """Max-min fair rates of messages that share arcs, ``(messages,)``.

    Parameters
    ----------
    first, arcs
        Arcs of message k: ``arcs[first[k] : first[k + 1]]``.
    capacity
        Capacity of every arc.
    """
    messages, left = first.size - 1, capacity.copy()
    rate = np.full(messages, -1.0)
    waiting = np.zeros(capacity.size, dtype=np.int64)
    for a in arcs:
        waiting[a] += 1
    rest = messages
    while rest > 0:
        least = np.inf
        for a in range(capacity.size):
            if waiting[a] > 0:
                least = min(least, left[a] / waiting[a])
        full = np.zeros(capacity.size, dtype=np.bool_)
        for a in range(capacity.size):
            full[a] = waiting[a] > 0 and left[a] / waiting[a] <= least * (1.0 + 1e-12)
        for k in range(messages):
            limited = False
            for a in arcs[first[k] : first[k + 1]]:
                limited = limited or full[a]
            if limited and rate[k] < 0.0:
                rate[k] = least
                rest -= 1
                for a in arcs[first[k] : first[k + 1]]:
                    left[a] = max(left[a] - least, 0.0)
                    waiting[a] -= 1
    return rate


def _awaited(given: ProgramArrays, signals: Mask) -> I64:
    """The step that ends the wait of every instruction, as in :class:`Copies`; a wait is for a block and its step."""
    # A wait for step j ends with the first signalling step from j on.
    nothing, waiting = signals.size, np.flatnonzero(given.waits[:, 0] >= 0)
    signalling = np.where(signals, np.arange(nothing), nothing)
    following = np.append(np.minimum.accumulate(signalling[::-1])[::-1], nothing)
    block = given.awaited_block(waiting)
    end = following[given.first[block] + given.waits[waiting, 1]]
    awaited = np.full(nothing, -1, dtype=np.int64)
    awaited[waiting] = np.where(end < given.first[block + 1], end, -2)
    return awaited


def _partners(sends: I64, receives: I64) -> I64 | None:
    """The partner of every instruction, as in :class:`Copies`; None if a connection has more of one kind."""
    partner = np.arange(sends.size)
    senders, receivers = np.flatnonzero(sends >= 0), np.flatnonzero(receives >= 0)
    senders = senders[np.argsort(sends[senders], kind="stable")]
    receivers = receivers[np.argsort(receives[receivers], kind="stable")]
    if not np.array_equal(sends[senders], receives[receivers]):
        return None
    partner[receivers] = senders
    return partner


@dataclass(frozen=True, eq=False)
class Copies:
    """A program that sends, receives and copies into empty places, each once, in flat arrays.

    If every chunk that is read was written before by the same thread block, or by a step that the block has waited for
    itself, nothing depends on the order of execution: what a place holds follows from where it was copied from.

    Parameters
    ----------
    first
        Instructions of block g: ``first[g] .. first[g + 1]``.
    sends, receives
        Connection of every instruction, or -1.
    partner
        Of every receive: the send whose message it takes; of others: themselves.
    awaited
        Of every instruction: the step that it waits for, -1 for none, -2 if none can end the wait.
    count
        Chunks of every instruction.
    source, target
        First place that every instruction reads and writes, -1 for none; places of a rank and buffer are consecutive.
    ends
        Ranks (from, to) of every connection, ``(connections, 2)``.
    """

    first: I64
    sends: I64
    receives: I64
    partner: I64
    awaited: I64
    count: I64
    source: I64
    target: I64
    ends: I64

    @classmethod
    def of(cls, program: Program, arrays: ProgramArrays | None = None) -> Copies | None:
        """The arrays of a program without static violations; None if it adds, forwards on the way or is in place.

        ``arrays`` are its instructions, if the program has none itself.
        """
        if program.inplace or program.collective not in {"alltoall", "allgather"}:
            return None
        given = ProgramArrays.of(program) if arrays is None else arrays
        kind, block = given.kind, given.block
        sending, receiving, copying = kind == SEND, kind == RECEIVE, kind == COPY
        if not (sending | receiving | copying | (kind == NOP)).all():
            return None
        out, into = (
            np.column_stack(ends)
            for ends in (
                (given.rank, given.send, given.channel),
                (given.receive, given.rank, given.channel),
            )
        )
        names, number = np.unique(np.concatenate([out, into]), axis=0, return_inverse=True)
        number = number.ravel()
        sends = np.where(sending, number[: out.shape[0]][block], -1)
        receives = np.where(receiving, number[out.shape[0] :][block], -1)
        partner = _partners(sends, receives)
        if partner is None:
            return None
        begin = (given.rank[block] * 3)[:, None] + np.column_stack([given.source[:, 0], given.target[:, 0]]) << 32
        source = np.where(sending | copying, begin[:, 0] + given.source[:, 1], -1)
        target = np.where(receiving | copying, begin[:, 1] + given.target[:, 1], -1)
        awaited = _awaited(given, given.signals & (kind != NOP))
        first = given.first.copy()
        return cls(first, sends, receives, partner, awaited, given.count.copy(), source, target, names[:, :2].copy())

    def _places(self, which: I64, begin: I64) -> tuple[I64, I64]:
        """Instruction and place of every chunk that these instructions read or write from ``begin`` on."""
        count = self.count[which]
        owner = np.repeat(which, count)
        inside = np.arange(owner.size) - np.repeat(np.cumsum(count) - count, count)
        return owner, np.repeat(begin[which], count) + inside

    def ordered(self) -> bool:
        """Whether every place is written at most once, no input is, and every read comes after the write."""
        writer, written = self._places(np.flatnonzero(self.target >= 0), self.target)
        reader, read = self._places(np.flatnonzero(self.source >= 0), self.source)
        order = np.argsort(written, kind="stable")
        writer, written = writer[order], written[order]
        if (np.diff(written) == 0).any() or ((written >> 32) % 3 == 0).any():
            return False
        at = np.minimum(np.searchsorted(written, read), max(written.size - 1, 0))
        held = written[at] == read if written.size else np.zeros(read.size, dtype=bool)
        if ((read[~held] >> 32) % 3 != 0).any():
            return False  # read, and never written
        reader, by = reader[held], writer[at[held]]
        block = np.repeat(np.arange(self.first.size - 1), np.diff(self.first))
        pending = block[reader] != block[by]
        if not (by[~pending] < reader[~pending]).all():
            return False
        return _all_awaited(self.first, self.awaited, block, reader[pending], by[pending])

    def correct(self, program: Program) -> bool:
        """Whether every output ends with the chunk that the collective demands."""
        writer, written = self._places(np.flatnonzero(self.target >= 0), self.target)
        where = self.source[self.partner[writer]] + (written - self.target[writer])
        order = np.argsort(written)
        written, where = written[order], where[order]
        for _ in range(2 * len(program.ranks)):
            at = np.minimum(np.searchsorted(written, where), written.size - 1)
            moved = written[at] == where
            if not moved.any():
                break
            where = np.where(moved, where[at], where)
        N, D = len(program.ranks), program.chunks
        rank, s, c = (index.ravel() for index in np.indices((N, N, D)))
        due = ((s * 3) << 32) + c + (rank * D if program.collective == "alltoall" else 0)
        output = ((rank * 3 + 1) << 32) + s * D + c
        at = np.minimum(np.searchsorted(written, output), max(written.size - 1, 0))
        return bool(written.size) and bool((written[at] == output).all() and (where[at] == due).all())

    def run(
        self, capacity: Mapping[tuple[int, int], float], chunks: int, slots: int, alpha: float, beta: float
    ) -> float | None:
        """Simulated time at which the last thread block ends; None if some never does."""
        at = np.flatnonzero(self.sends >= 0)
        link = self.ends[self.sends[at]]
        pairs, number = np.unique(link, axis=0, return_inverse=True)
        rate = np.array([capacity[u, v] for u, v in pairs.tolist()])
        wire, duration = np.full(self.sends.size, -1, dtype=np.int64), np.zeros(self.sends.size)
        wire[at] = number.ravel()
        duration[at] = beta * self.count[at] / chunks / rate[wire[at]]
        message = np.concatenate([[0], np.cumsum(np.bincount(self.sends[at], minlength=len(self.ends)))])
        owner = np.repeat(np.arange(self.first.size - 1), np.diff(self.first))
        end, position = np.zeros(self.sends.size), np.zeros(self.first.size - 1, dtype=np.int64)
        execute(
            self.first,
            self.sends,
            self.receives,
            wire,
            duration,
            self.awaited,
            owner,
            message,
            slots,
            alpha,
            end,
            position,
        )
        return float(end.max(initial=0.0)) if (position == self.first[1:]).all() else None


@compiled(nogil=True)
def _all_awaited(first: I64, awaited: I64, block: I64, reader: I64, by: I64) -> bool:
    """Whether the block of every reader has waited, up to it, for a step of the writer's block from the writer on."""
    order = np.argsort(reader)
    blocks = first.size - 1
    passed = np.full(blocks, -1, dtype=np.int64)
    touched = np.empty(awaited.size + 1, dtype=np.int64)
    known, mine, at = 0, -1, 0
    for j in order:
        r = reader[j]
        if block[r] != mine:
            for i in range(known):
                passed[touched[i]] = -1
            known, mine, at = 0, block[r], first[block[r]]
        while at <= r:
            if awaited[at] >= 0:
                other = block[awaited[at]]
                passed[other] = max(passed[other], awaited[at])
                touched[known] = other
                known += 1
            at += 1
        if passed[block[by[j]]] < by[j]:
            return False
    return True

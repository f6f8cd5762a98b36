"""Execute a program and decide whether it performs its collective.

Static checks precede execution: buffer ranges, peers, dependencies, and the two ends of every connection.

Execution. Every chunk is symbolic: the multiset of contributions that were summed into it. Thread blocks run
concurrently. A send occupies its link and waits only while ``SLOTS`` messages of its connection are not yet received;
the k-th receive of a connection takes the message of the k-th send; an instruction that waits for step j of a thread
block proceeds once that block has passed a *signalling* step >= j, as in the runtime. Execution follows simulated time:
a message of q shards over a link of capacity c occupies it for beta q / c and arrives alpha later. Between ranks that
switches join, a message takes the shortest path of largest capacity; messages in progress share the arcs by max-min
fairness, as in flow-level simulators of networks: the lowest rate is as high as possible, then the second lowest, ...

One execution decides for all timings. The accesses to one place are divided into periods in which its value is
constant. Every write of a period must follow, by dependencies and messages (vector clocks), all accesses of the period
before, and every read a write of its period; otherwise there is a race and the program is refused. So a value may
be rewritten in any order, but not while another one is being read. Without races every order of execution gives the
same result, and with bounded buffers deadlock does not depend on the order either.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import BadInput
from opticoll.solvers.schedules.program import READS, RECEIVES, SENDS, WRITES, Connection, Contributions, Place
from opticoll.solvers.schedules.schedule_check import FREE_STEPS, Cost, ScheduleCheck, refused
from opticoll.solvers.schedules.static_checks import label, numbering_violation, static_violation, violation

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from opticoll.instances.topology import I32, I64
    from opticoll.solvers.schedules.program import Instruction, Program, ThreadBlock

    Ways = Mapping[tuple[int, int], Sequence[Sequence[tuple[int, int]]]]


#: Maximum number of messages in flight per connection: NCCL buffers hold 8 steps, an MSCCL message takes 4.
SLOTS = 2
#: Relative difference of times up to which messages end at the same time.
ALIKE = 1e-12
#: Maximum number of entries in all vector clocks (4 bytes each).
MOST_CLOCK_ENTRIES = 400_000_000


@dataclass(frozen=True)
class InvalidValue:
    """The value of a chunk that was read before it was written, or summed with a repeated contribution."""

    reason: str
    message: str


Value = Contributions | InvalidValue
Access = tuple[int, int]


@dataclass(slots=True)
class _Period:
    """Accesses to a place while its value is constant, as positions in the thread blocks.

    ``writes`` has the first write of every block, None if the place is initialised at the start; ``accesses`` the last
    access of every block, ``before`` those of the previous period.
    """

    writes: dict[int, int] | None
    accesses: dict[int, int] = field(default_factory=dict)
    before: dict[int, int] = field(default_factory=dict)
    last: Access | None = None


@dataclass
class _Link:
    """One connection: messages in flight, and the thread blocks that wait at its ends."""

    queue: deque[tuple[float, list[Value], I32]] = field(default_factory=deque)
    sent: int = 0
    grants: list[float] = field(default_factory=list)
    sender: int | None = None
    receiver: int | None = None


@dataclass
class _Block:
    """Execution state of a thread block."""

    rank: int
    block: ThreadBlock
    clock: I32
    position: int = 0
    time: float = 0.0
    signal_steps: list[int] = field(default_factory=list)
    signals: list[tuple[float, I32]] = field(default_factory=list)
    waiters: list[int] = field(default_factory=list)


def run(
    program: Program, capacity: Mapping[tuple[int, int], float], ways: Ways, *, cost: Cost = FREE_STEPS
) -> ScheduleCheck:
    """Execute ``program``.

    Parameters
    ----------
    program
        What to execute.
    capacity
        Capacity between vertices (from, to).
    ways
        For ranks (from, to), lists of pairs of vertices that a message may cross, all at the same time; other pairs are
        refused. Of several ways the widest is taken, and among equals the least used.
    cost
        Latency per message, and time per shard over a link of capacity 1.

    Returns
    -------
    The verdict; a valid one has the metrics ``async_time`` (end of the last thread block), ``transfers``, ``redundant``
    (receives that changed nothing), ``ranks``, ``chunks``.

    Raises
    ------
    BadInput
        If the program is too large for the simulation.
    """
    found = static_violation(program) or _arc_violation(program, ways)
    return found or _Execution(program, capacity, ways, cost).run()


def _clock_entries(program: Program) -> int:
    """Number of entries in the vector clocks of all thread blocks and dependencies."""
    blocks = [block.instructions for _, block in program.blocks()]
    return len(blocks) * (len(blocks) + sum(one.signals for block in blocks for one in block))


def _arc_violation(program: Program, joined: Collection[tuple[int, int]]) -> ScheduleCheck | None:
    for v, block in program.blocks():
        for position, instruction in enumerate(block.instructions):
            if instruction.kind in SENDS and (v, block.send) not in joined:
                what = f"sends to rank {block.send}, but there is no arc {v}->{block.send}"
                return violation("no-arc", v, block, position, what, instruction.source.offset)
    return None


class _Execution:
    def __init__(self, program: Program, capacity: Mapping[tuple[int, int], float], ways: Ways, cost: Cost) -> None:
        #: None where every message crosses a single arc.
        self.ways = None if all(those == [[pair]] for pair, those in ways.items()) else ways
        self.program, self.capacity, self.cost = program, capacity, cost
        pairs = list(program.blocks())
        count = len(pairs)
        if _clock_entries(program) > MOST_CLOCK_ENTRIES:
            msg = (
                f"simulation: {count} thread blocks with their dependencies are too many ({MOST_CLOCK_ENTRIES} clock "
                "entries); check the schedule in .json format, which has no thread blocks"
            )
            raise BadInput(msg)
        self.blocks = [_Block(v, block, np.zeros(count, dtype=np.int32)) for v, block in pairs]
        self.index = {(v, block.number): g for g, (v, block) in enumerate(pairs)}
        self.links: dict[Connection, _Link] = {}
        self.free: dict[tuple[int, int], float] = {}
        self.memory: list[dict[Place, Value]] = [{} for _ in program.ranks]
        self.periods: list[dict[Place, _Period]] = [{} for _ in program.ranks]
        self.race: ScheduleCheck | None = None
        self.ready: list[tuple[float, int]] = []
        self.transfers = self.redundant = 0

    def run(self) -> ScheduleCheck:
        """Execute until no thread block can proceed."""
        for g in range(len(self.blocks)):
            self._enqueue(g)
        if self.ways is not None:
            self._share_arcs()
        while self.ready:
            start, g = heappop(self.ready)
            self._execute(g, start)
        stuck = [g for g, b in enumerate(self.blocks) if b.position < len(b.block.instructions)]
        if stuck:
            return self._deadlock(stuck)
        return self.race or self._wrong_output() or numbering_violation(self.program) or self._valid()

    # Progress

    def _enqueue(self, g: int) -> None:
        """Queue the next instruction of a thread block if it is ready, else register it with whatever it waits for."""
        state = self.blocks[g]
        if state.position >= len(state.block.instructions):
            return
        instruction, start = state.block.instructions[state.position], state.time
        if instruction.waits is not None:
            other, at = self._signal(state.rank, *instruction.waits)
            if at == len(other.signals):
                other.waiters.append(g)
                return
            start = max(start, other.signals[at][0])
        if instruction.kind in RECEIVES:
            link = self._link(g, receiving=True)
            if not link.queue:
                link.receiver = g
                return
            start = max(start, link.queue[0][0])
        if instruction.kind in SENDS:
            link = self._link(g, receiving=False)
            if link.sent - len(link.grants) >= SLOTS:
                link.sender = g
                return
            if link.sent >= SLOTS:
                start = max(start, link.grants[link.sent - SLOTS])
        heappush(self.ready, (start, g))

    def _signal(self, rank: int, number: int, step: int) -> tuple[_Block, int]:
        """A thread block, and the number of its first signal at or after a step."""
        other = self.blocks[self.index[rank, number]]
        return other, bisect_left(other.signal_steps, step)

    def _link(self, g: int, *, receiving: bool) -> _Link:
        state = self.blocks[g]
        block = state.block
        key = (block.receive, state.rank, block.channel) if receiving else (state.rank, block.send, block.channel)
        return self.links.setdefault(key, _Link())

    def _execute(self, g: int, start: float) -> None:
        state = self.blocks[g]
        instruction = state.block.instructions[state.position]
        values = self._begin(g, start)
        end = start
        if instruction.kind in SENDS:
            end = self._occupy(state.rank, state.block.send, instruction.count, start)
        self._end(g, end, values)

    def _begin(self, g: int, start: float) -> list[Value]:
        """Receive and compute; return the values that the instruction sends."""
        state = self.blocks[g]
        instruction = state.block.instructions[state.position]
        if instruction.waits is not None:
            other, at = self._signal(state.rank, *instruction.waits)
            np.maximum(state.clock, other.signals[at][1], out=state.clock)
        values: list[Value] = []
        waiting: int | None = None
        if instruction.kind in RECEIVES:
            link = self._link(g, receiving=True)
            _, values, clock = link.queue.popleft()
            np.maximum(state.clock, clock, out=state.clock)
            link.grants.append(start)
            waiting, link.sender = link.sender, None
        state.clock[g] = state.position + 1
        values = self._compute(g, instruction, values)
        if waiting is not None:
            self._enqueue(waiting)
        return values

    def _end(self, g: int, end: float, values: list[Value]) -> None:
        """Deliver the message, publish progress, and continue."""
        state = self.blocks[g]
        instruction = state.block.instructions[state.position]
        woken: list[int] = []
        if instruction.kind in SENDS:
            link = self._link(g, receiving=False)
            link.queue.append((end + self.cost.alpha, values, state.clock.copy()))
            link.sent += 1
            self.transfers += 1
            if link.receiver is not None:
                woken.append(link.receiver)
                link.receiver = None
        if instruction.signals and instruction.kind != "nop":
            state.signal_steps.append(state.position)
            state.signals.append((end, state.clock.copy()))
            woken += state.waiters
            state.waiters = []
        state.time = end
        state.position += 1
        for ready in (g, *woken):
            self._enqueue(ready)

    def _occupy(self, source: int, target: int, count: int, start: float) -> float:
        """Time when a message sent at ``start`` has left its link, which serves one message at a time."""
        begin = max(start, self.free.get((source, target), 0.0))
        self.free[source, target] = begin + self.cost.beta * count / self.program.chunks / self.capacity[source, target]
        return self.free[source, target]

    def _share_arcs(self) -> None:
        """Execute until no thread block can proceed; messages in progress share arcs by max-min fairness."""
        from opticoll.solvers.schedules.schedule_kernels import fair_rates

        assert self.ways is not None
        number = {arc: a for a, arc in enumerate(self.capacity)}
        rate = np.array(list(self.capacity.values()))
        crossing = np.zeros(rate.size)
        widest = {pair: _widest(ways, self.capacity, number) for pair, ways in self.ways.items()}
        now, left = 0.0, np.zeros(0)
        sending: list[int] = []
        message: dict[int, tuple[list[Value], I64]] = {}
        while self.ready or sending:
            before = len(sending)
            while self.ready and self.ready[0][0] <= now:
                start, g = heappop(self.ready)
                state = self.blocks[g]
                instruction = state.block.instructions[state.position]
                values = self._begin(g, start)
                if instruction.kind not in SENDS:
                    self._end(g, start, values)
                    continue
                ways = widest[state.rank, state.block.send]
                way = min(ways, key=lambda arcs: float(((crossing[arcs] + 1) / rate[arcs]).max()))
                crossing[way] += 1
                message[g] = values, way
                sending.append(g)
            new = [self.blocks[g].block.instructions[self.blocks[g].position].count for g in sending[before:]]
            left = np.concatenate([left, self.cost.beta / self.program.chunks * np.array(new, dtype=float)])
            then = self.ready[0][0] if self.ready else np.inf
            if sending:
                arcs = [message[g][1] for g in sending]
                first = np.cumsum([0, *map(len, arcs)])
                arc, speed = np.concatenate(arcs), np.zeros(len(arcs))
                fair_rates(np.arange(speed.size), first, arc, np.ones(arc.size), rate, speed)
                end = now + left / speed
                then = min(then, float(end.min()))
                left = left - speed * (then - now)
                over = end <= then * (1 + ALIKE)
                done = [g for g, ended in zip(sending, over.tolist(), strict=True) if ended]
                sending = [g for g, ended in zip(sending, over.tolist(), strict=True) if not ended]
                left = left[~over]
                for g in done:
                    values, way = message.pop(g)
                    crossing[way] -= 1
                    self._end(g, then, values)
            now = then

    # Data

    def _compute(self, g: int, instruction: Instruction, received: list[Value]) -> list[Value]:
        """Read, sum and write; return the values that the instruction sends."""
        if instruction.kind == "nop":
            return []
        values = received
        if instruction.kind in READS:
            source = [self._read(g, instruction.source, c) for c in range(instruction.count)]
            values = [self._sum(g, a, b) for a, b in zip(values, source, strict=True)] if received else source
        if instruction.kind == "re":
            target = [self._read(g, instruction.target, c) for c in range(instruction.count)]
            values = [self._sum(g, a, b) for a, b in zip(target, values, strict=True)]
        if instruction.kind in WRITES:
            same = [self._write(g, instruction.target, c, value) for c, value in enumerate(values)]
            if instruction.kind in RECEIVES and all(same):
                self.redundant += 1
        return values

    def _place(self, g: int, place: Place, c: int) -> Place:
        return self.program.located(self.blocks[g].rank, Place(place.buffer, place.offset + c))

    def _now(self, g: int) -> str:
        return f"rank {self.blocks[g].rank}, {label(self.blocks[g].block, self.blocks[g].position)}"

    def _content(self, rank: int, at: Place) -> Value | None:
        value = self.memory[rank].get(at)
        return self.program.initial(rank, at) if value is None else value

    def _read(self, g: int, place: Place, c: int) -> Value:
        state, at = self.blocks[g], self._place(g, place, c)
        period = self._period(state.rank, at)
        if period.writes is not None:
            written = period.writes.items()
            if not any(h == g or state.clock[h] >= position for h, position in written) and period.last is not None:
                self._report_race(g, at, period.last, "reads", "wrote")
        period.accesses[g] = state.position + 1
        value = self._content(state.rank, at)
        if value is None:
            return InvalidValue(
                "uninitialised", f"{self._now(g)} read chunk {at.offset} of buffer {at.buffer} before it was written"
            )
        return value

    def _write(self, g: int, place: Place, c: int, value: Value) -> bool:
        """Write a chunk; return whether its value is unchanged."""
        state, at = self.blocks[g], self._place(g, place, c)
        rank, period = state.rank, self._period(state.rank, at)
        same = self._content(rank, at) == value
        for h, position in (period.before if same else period.accesses).items():
            if h != g and state.clock[h] < position:
                self._report_race(g, at, (h, position), "writes", "wrote" if (h, position) == period.last else "used")
        if not same:
            period = self.periods[rank][at] = _Period({}, {}, period.accesses)
        if period.writes is not None:
            period.writes.setdefault(g, state.position + 1)
        period.accesses[g] = state.position + 1
        period.last = (g, state.position + 1)
        self.memory[rank][at] = value
        return same

    def _period(self, rank: int, at: Place) -> _Period:
        result = self.periods[rank].get(at)
        if result is None:
            result = self.periods[rank][at] = _Period(None)
        return result

    def _report_race(self, g: int, at: Place, other: Access, does: str, did: str) -> None:
        if self.race is None:
            theirs = label(self.blocks[other[0]].block, other[1] - 1)
            where = label(self.blocks[g].block, self.blocks[g].position)
            msg = (
                f"{self._now(g)} {does} chunk {at.offset} of buffer {at.buffer}, which {theirs} {did}, in no "
                "defined order; add a dependency"
            )
            self.race = refused("race", msg, rank=self.blocks[g].rank, chunk=at.offset, step=where)

    def _sum(self, g: int, a: Value, b: Value) -> Value:
        if isinstance(a, InvalidValue):
            return a
        if isinstance(b, InvalidValue):
            return b
        if len(a) + len(b) > len(self.program.ranks):
            return InvalidValue("wrong-sum", f"{self._now(g)} adds a contribution twice")
        return tuple(sorted(a + b))

    # Verdicts

    def _deadlock(self, stuck: list[int]) -> ScheduleCheck:
        lines = []
        for g in stuck[:8]:
            state = self.blocks[g]
            instruction = state.block.instructions[state.position]
            lines.append(
                f"rank {state.rank} {label(state.block, state.position)} waits for {self._awaited(g, instruction)}"
            )
        more = f", and {len(stuck) - 8} more" if len(stuck) > 8 else ""
        first = self.blocks[stuck[0]]
        instruction = first.block.instructions[first.position]
        chunk = instruction.target.offset if instruction.kind in WRITES else instruction.source.offset
        where = label(first.block, first.position)
        return refused("deadlock", "; ".join(lines) + more, rank=first.rank, chunk=chunk, step=where)

    def _awaited(self, g: int, instruction: Instruction) -> str:
        state = self.blocks[g]
        if instruction.waits is not None:
            other, at = self._signal(state.rank, *instruction.waits)
            if at == len(other.signals):
                never = other.position > instruction.waits[1]
                return f"tb {instruction.waits[0]} step {instruction.waits[1]}" + (
                    ", which does not signal (hasdep=0)" if never else ""
                )
        if instruction.kind in RECEIVES and not self._link(g, receiving=True).queue:
            return f"a message from rank {state.block.receive}"
        return f"buffer space towards rank {state.block.send}"

    def _wrong_output(self) -> ScheduleCheck | None:
        for rank in range(len(self.program.ranks)):
            for place, demanded in self.program.demanded(rank):
                at = self.program.located(rank, place)
                value = self._content(rank, at)
                if value != demanded:
                    return self._output_violation(rank, place, at, value, demanded)
        return None

    def _output_violation(
        self, rank: int, place: Place, at: Place, value: Value | None, demanded: Contributions
    ) -> ScheduleCheck:
        writer = self._period(rank, at).last
        step = None if writer is None else label(self.blocks[writer[0]].block, writer[1] - 1)
        where = f"rank {rank}, output chunk {place.offset}"
        due = _sum_text(demanded)
        if value is None or (writer is None and not isinstance(value, InvalidValue)):
            return refused("missing-chunk", f"{where}: {due} never arrives", rank=rank, chunk=place.offset, step=step)
        if isinstance(value, InvalidValue):
            msg = f"{where} should be {due}, but {value.message}"
            return refused(value.reason, msg, rank=rank, chunk=place.offset, step=step)
        reason = "wrong-chunk" if len(demanded) == 1 else "wrong-sum"
        msg = f"{where} should be {due} but is {_sum_text(value)}, written by {step}"
        return refused(reason, msg, rank=rank, chunk=place.offset, step=step)

    def _valid(self) -> ScheduleCheck:
        metrics: dict[str, float | list[str] | dict[str, str] | None] = {
            "async_time": max((b.time for b in self.blocks), default=0.0),
            "transfers": self.transfers,
            "redundant": self.redundant,
            "ranks": len(self.program.ranks),
            "chunks": self.program.chunks,
        }
        return ScheduleCheck(True, metrics=metrics)


def _widest(
    ways: Sequence[Sequence[tuple[int, int]]],
    capacity: Mapping[tuple[int, int], float],
    number: Mapping[tuple[int, int], int],
) -> list[I64]:
    """Ways of largest capacity, as arc numbers."""
    width = [min(capacity[arc] for arc in way) for way in ways]
    most = max(width)
    return [
        np.array([number[arc] for arc in way], dtype=np.int64) for way, c in zip(ways, width, strict=True) if c == most
    ]


def _sum_text(value: Contributions) -> str:
    parts = [f"chunk {c} of rank {s}" for s, c in value[:4]]
    return " + ".join(parts) + (f" + {len(value) - 4} more" if len(value) > 4 else "")

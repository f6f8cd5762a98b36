"""Lower link schedules to programs, and write solutions of formulations as schedule files.

A program has thread blocks for every rank, neighbour and direction, one a channel; chunks in transit lie in scratch.
Chunk c of (s, t) leaves the input of s at [t D + c], has its own place in the scratch of every rank on its way, and
arrives in the output of t at [s D + c]. In an all-gather, chunk c of s lies in the output of every rank at [s D + c].
Transfers of one arc and step whose places are contiguous on both ends become one instruction. A relay's send waits only
for the receive that brought its chunk: there are no barriers, so the program may run ahead of the steps. It cannot
deadlock: a send of one step waits only for receives of earlier steps, and receives wait for no dependency.

Limits of a runtime (:class:`opticoll.formulations.schedules.program.Target`). The transfers of a connection are dealt
out to as many channels as keep its thread blocks within the steps. Every channel takes a limited number of peers; the
others get another channel. With more thread blocks than a rank may have, the two directions of a connection share one.
With I instances every chunk is divided into I parts, each with channels of its own.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

import numpy as np

from opticoll.errors import BadInput
from opticoll.formulations.model import NotApplicable
from opticoll.formulations.schedules import collective_steps
from opticoll.formulations.schedules.collective_programs import lower_moves
from opticoll.formulations.schedules.link_schedule import BUDGETS, schedule_routes
from opticoll.formulations.schedules.msccl_xml import write_xml
from opticoll.formulations.schedules.program import (
    PROTOCOLS,
    TARGETS,
    Instruction,
    Place,
    Program,
    Rank,
    ThreadBlock,
    channels_of,
    deal_channels,
    exceeded,
    many_objects,
)
from opticoll.formulations.schedules.schedule_json import collective_document, links_document, routes_document
from opticoll.formulations.schedules.shard_routes import cut, refuse_without_routes, routes_of, without_steps
from opticoll.formulations.schedules.verification import execute_program

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from opticoll.formulations.schedules.link_schedule import LinkSchedule
    from opticoll.instances.digraph import Topology

#: Why a demand that is not uniform has no program.
EQUAL_SHARDS = "MSCCL XML holds equal shards between all ranks; write .json or .routes.json for another demand"
#: Largest buffer [bytes] for which a program is selected, where a runtime wants a range.
MOST_BYTES = 1 << 30
#: Transfers up to which schedules of larger steps are tried for a program that exceeds the limits.
MOST_RETRIED = 200_000
#: Chunks and trees per shard of programs of collectives that are tried, and most moves for which they are.
PROGRAM_CHUNKS, PROGRAM_TREES, MOST_TRIED = (4, 8), (1,), 20_000
#: Times that a program is laid out again with more channels.
LAYOUTS = 6


@dataclass(frozen=True)
class XmlOptions:
    """How a link schedule is lowered to MSCCL XML.

    Parameters
    ----------
    target
        The runtime whose limits are kept, a name of :data:`opticoll.formulations.schedules.program.TARGETS`.
    protocol
        ``Simple``, ``LL`` or ``LL128``.
    channels
        Least channels of every connection; more are used where the steps of a thread block are too many.
    instances
        Parts of every chunk with channels of their own.
    sizes
        Sizes [bytes] of the whole buffer, from and to, for which the runtime selects the program; None for all.

    Raises
    ------
    BadInput
        For other values.
    """

    target: str = "msccl"
    protocol: str = "Simple"
    channels: int = 1
    instances: int = 1
    sizes: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        for name, value, known in (("target", self.target, tuple(TARGETS)), ("protocol", self.protocol, PROTOCOLS)):
            if value not in known:
                msg = f"schedule: unknown {name} {value!r}; use one of {', '.join(known)}"
                raise BadInput(msg)
        if min(self.channels, self.instances) < 1:
            msg = f"schedule: channels={self.channels} and instances={self.instances} must be at least 1"
            raise BadInput(msg)
        most = TARGETS[self.target].channels
        if self.channels * self.instances > most:
            msg = (
                f"schedule: channels={self.channels} for each of instances={self.instances} are more than the {most} "
                f"of {self.target}; ask for fewer"
            )
            raise BadInput(msg)
        if self.sizes is not None and not 0 <= self.sizes[0] < self.sizes[1]:
            msg = f"schedule: no buffer has {self.sizes[0]} to {self.sizes[1]} bytes; give the smaller size first"
            raise BadInput(msg)


def lower(schedule: LinkSchedule, name: str = "opticoll", options: XmlOptions | None = None) -> Program:
    """The program of a link schedule of an all-to-all or all-gather.

    Parameters
    ----------
    schedule
        Its targets are -1 in an all-gather.
    name
        Name of the program.
    options
        Runtime, channels and instances. What exceeds the limits of the runtime all the same is named by
        :func:`opticoll.formulations.schedules.program.exceeded`.

    Raises
    ------
    NotApplicable
        If a chunk is sent before it arrives.
    """
    chosen = options or XmlOptions()
    with many_objects():
        return _Layout(_Moves(schedule, chosen.instances, TARGETS[chosen.target].count), chosen).program(name)


def _selected(options: XmlOptions) -> tuple[int, int]:
    """Sizes [bytes] of the whole buffer for which the runtime should select a program."""
    unlimited = TARGETS[options.target].unlimited
    return options.sizes or (0, MOST_BYTES if unlimited is None else unlimited)


class _Moves:
    """Moves between ranks, in order: contiguous chunks over one connection in one step.

    ``rows`` are lists (step, tail, head, instance, count, source, target); ``brought[i]`` the moves that move i waits
    for. Ranks are numbered as in the program.
    """

    def __init__(self, schedule: LinkSchedule, instances: int, most: int) -> None:
        topology = schedule.topology
        number = np.full(topology.n, -1, dtype=np.int64)
        number[topology.terminals] = np.arange(topology.ranks)
        step, tail, head, source, target, chunk = schedule.moves().T
        tail, head, source = number[tail], number[head], number[source]
        self.gathering = bool(target.size) and bool((target < 0).all())
        target = np.where(target < 0, 0, number[target])
        self.N, self.D, self.most = topology.ranks, schedule.chunks * instances, most
        parts = np.repeat(np.arange(instances), step.size)
        rows = np.column_stack([
            np.tile(step, instances), parts, np.tile(tail, instances), np.tile(head, instances),
            np.tile(source, instances), np.tile(target, instances),
            np.tile(chunk, instances) + schedule.chunks * parts,
        ])  # fmt: skip
        rows = rows[np.lexsort(rows.T[::-1])]
        self.rows: list[tuple[int, int, int, int]] = []
        self.count: list[int] = []
        self.places: list[tuple[Place, Place]] = []
        self.brought: list[tuple[int, ...]] = []
        self.scratch = [0] * self.N
        self._held: list[dict[int, tuple[int, int]]] = [{} for _ in range(self.N)]
        change = np.flatnonzero(np.diff(rows[:, :4], axis=0).any(axis=1)) + 1
        ends: list[int] = [0, *change.tolist(), len(rows)] if len(rows) else []
        chunks = rows[:, 4:].tolist()
        heads = rows[:, :4].tolist()
        for first, last in pairwise(ends):
            self._move(heads[first], chunks[first:last])

    def _move(self, group: list[int], chunks: list[list[int]]) -> None:
        """Move chunks (source, target, number) over one connection; join those contiguous on both ends."""
        step, part, tail, head = group
        placed = sorted((*self._origin(tail, *chunk), chunk) for chunk in chunks)
        last: tuple[str, int, str, int] | None = None
        for buffer, offset, brought, (s, t, c) in placed:
            into, to = self._destination(head, s, t, c)
            if last == (buffer, offset, into, to) and self.count[-1] < self.most:
                self.count[-1] += 1
            else:
                self.rows.append((step, part, tail, head))
                self.count.append(1)
                self.places.append((Place(buffer, offset), Place(into, to)))
                self.brought.append(())
            if brought >= 0:
                self.brought[-1] += (brought,)
            last = (buffer, offset + 1, into, to + 1)
            if self.gathering or t != head:
                self._held[head][self._key(s, t, c)] = (to, len(self.rows) - 1)

    def _key(self, s: int, t: int, c: int) -> int:
        return (s * self.N + t) * self.D + c

    def _origin(self, rank: int, s: int, t: int, c: int) -> tuple[str, int, int]:
        if s == rank:
            return "i", (0 if self.gathering else t * self.D) + c, -1
        held = self._held[rank].get(self._key(s, t, c))
        if held is None:
            msg = f"lowering: rank {rank} sends chunk {c} of {s}->{t} before receiving it; check the schedule"
            raise NotApplicable(msg)
        return "o" if self.gathering else "s", *held

    def _destination(self, rank: int, s: int, t: int, c: int) -> tuple[str, int]:
        if self.gathering or t == rank:
            return "o", s * self.D + c
        self.scratch[rank] += 1
        return "s", self.scratch[rank] - 1


class _Layout:
    """Thread blocks and channels of moves, for the limits of a target."""

    def __init__(self, moves: _Moves, options: XmlOptions) -> None:
        self.moves, self.options, self.target = moves, options, TARGETS[options.target]
        self.by_connection: dict[tuple[int, int, int], list[int]] = {}
        for i, (_, part, tail, head) in enumerate(moves.rows):
            self.by_connection.setdefault((tail, head, part), []).append(i)
        self.split = {
            key: max(min(options.channels, len(those)), -(-len(those) // self.target.steps))
            for key, those in self.by_connection.items()
        }
        peers = [0] * moves.N
        for (tail, head, _), many in self.split.items():
            peers[tail] += many
            peers[head] += many
        self.fused = max(peers) + 1 > self.target.blocks
        for _ in range(LAYOUTS):
            self._lay_out()
            if not self._widened():
                break

    def _lay_out(self) -> None:
        """Give every move a channel, and every rank blocks (send peer, receive peer, channel) of (move, sends?)."""
        dealt = deal_channels(self.split, self.target.peers)
        self.channel = [0] * len(self.moves.rows)
        for key, those in self.by_connection.items():
            for place, i in enumerate(those):
                self.channel[i] = dealt[key][place % len(dealt[key])]
        contents: list[dict[tuple[int, int, int], list[tuple[int, bool]]]] = [{} for _ in range(self.moves.N)]
        for sends in (True, False):
            for i, (_, _, tail, head) in enumerate(self.moves.rows):
                me, peer = (tail, head) if sends else (head, tail)
                kind = 0 if sends or self.fused else 1
                contents[me].setdefault((kind, peer, self.channel[i]), []).append((i, sends))
        self.blocks: list[list[tuple[tuple[int, int, int], list[tuple[int, bool]]]]] = []
        self.receiver = [-1] * len(self.moves.rows)
        for those_blocks in contents:
            ordered = sorted(those_blocks.items())
            for number, (_, entries) in enumerate(ordered):
                if self.fused:
                    self._alternate(entries)
                for i, sends in entries:
                    if not sends:
                        self.receiver[i] = number
            self.blocks.append(ordered)
        self.waits: list[dict[int, list[int]]] = []
        for blocks in self.blocks:
            for number, (_, entries) in enumerate(blocks):
                passed: dict[int, int] = {}
                self.waits.append({i: self._waits(number, i, passed) for i, sends in entries if sends})

    def _alternate(self, entries: list[tuple[int, bool]]) -> None:
        """In every step, sends and receives in turn: then neither side fills its buffers before it receives."""
        turn: dict[tuple[int, bool], int] = {}
        order: dict[tuple[int, bool], tuple[int, int, bool]] = {}
        for i, sends in entries:
            step = self.moves.rows[i][0]
            turn[step, sends] = turn.get((step, sends), -1) + 1
            order[i, sends] = (step, turn[step, sends], not sends)
        entries.sort(key=order.__getitem__)

    def _waits(self, number: int, i: int, passed: dict[int, int]) -> list[int]:
        """The receives that a send waits for: the last one in every other thread block, unless already passed."""
        need: dict[int, int] = {}
        for brought in self.moves.brought[i]:
            block = self.receiver[brought]
            if block != number:
                need[block] = max(need.get(block, -1), brought)
        waits = sorted((block, last) for block, last in need.items() if last > passed.get(block, -1))
        passed.update(waits)
        return [last for _, last in waits]

    def _widened(self) -> bool:
        """Whether some connection got more channels, because its thread blocks have too many steps."""
        wider = False
        at = 0
        for v, blocks in enumerate(self.blocks):
            for (_, peer, _), entries in blocks:
                waits = self.waits[at]
                at += 1
                steps = len(entries) + sum(max(len(those) - 1, 0) for those in waits.values())
                over = -(-steps // self.target.steps)
                if over < 2:
                    continue
                for key in ((v, peer), (peer, v)):
                    for part in range(self.options.instances):
                        many = self.split.get((*key, part))
                        if many is not None and many < self.target.channels:
                            self.split[*key, part] = min(many + max(many // 2, 1), self.target.channels)
                            wider = True
        return wider

    def program(self, name: str) -> Program:
        """The program: per rank, sends by peer and channel, receives likewise, then the copy of its own shard."""
        moves, size = self.moves, self.moves.N * self.moves.D
        position: dict[int, int] = {}
        at = 0
        starts = []
        for blocks in self.blocks:
            starts.append(at)
            for _, entries in blocks:
                waits, place = self.waits[at], 0
                at += 1
                for i, sends in entries:
                    place += max(len(waits[i]) - 1, 0) if sends else 0
                    if not sends:
                        position[i] = place
                    place += 1
        options = self.options
        ranks = [self._rank(v, starts[v], position) for v in range(moves.N)]
        collective = "allgather" if moves.gathering else "alltoall"
        return Program(name, collective, size, ranks, False, options.protocol, *_selected(options))

    def _rank(self, v: int, start: int, position: dict[int, int]) -> Rank:
        moves = self.moves
        mine = self.waits[start : start + len(self.blocks[v])]
        awaited = {i for waits in mine for those in waits.values() for i in those}
        size = moves.N * moves.D
        rank = Rank({"i": moves.D if moves.gathering else size, "o": size, "s": moves.scratch[v]})
        for number, ((_, peer, channel), entries) in enumerate(self.blocks[v]):
            send = peer if any(sends for _, sends in entries) else -1
            receive = peer if any(not sends for _, sends in entries) else -1
            block = ThreadBlock(number, send, receive, channel)
            put = block.instructions.append
            for i, sends in entries:
                source, target = moves.places[i]
                if not sends:
                    put(Instruction("r", source, target, moves.count[i], None, i in awaited))
                    continue
                waits = [(self.receiver[j], position[j]) for j in self.waits[start + number][i]]
                for extra in waits[:-1]:
                    put(Instruction("nop", Place("i", -1), Place("o", -1), 0, extra))
                put(Instruction("s", source, target, moves.count[i], waits[-1] if waits else None))
            rank.blocks[number] = block
        own = len(rank.blocks)
        copies = ThreadBlock(own, -1, -1, 0)
        for first in range(0, moves.D, moves.most):
            place = v * moves.D + first
            count = min(moves.most, moves.D - first)
            origin = Place("i", first if moves.gathering else place)
            copies.instructions.append(Instruction("cpy", origin, Place("o", place), count))
        rank.blocks[own] = copies
        return rank


class CutFacts(TypedDict):
    """The cost of cutting a flow into chunks; ``loss`` is ``time / fluid_time - 1``.

    ``time_by_chunks`` is the time of the cut flow, before it is scheduled in steps, for every number of chunks that was
    tried. For a program, ``target`` is its runtime, and ``multiple_of`` divides the elements for a peer.
    """

    chunks: int
    fluid_time: float | None
    time: float
    loss: float
    time_by_chunks: dict[str, float]
    steps: NotRequired[int]
    alpha_beta_time: NotRequired[float]
    target: NotRequired[str]
    multiple_of: NotRequired[int]
    channels: NotRequired[int]


def refuse_early(path: Path, name: str) -> None:
    """Check before a solve that its schedule can be written.

    Raises
    ------
    BadInput
        For a file name that does not end in ``.xml`` or ``.json``.
    NotApplicable
        For a formulation without routes.
    """
    if path.suffix.lower() not in {".xml", ".json"}:
        msg = f"{path}: unknown schedule format; use .xml (MSCCL), .json (links) or .routes.json (routes)"
        raise BadInput(msg)
    if name not in collective_steps.COLLECTIVES:
        refuse_without_routes(name)
    elif path.name.lower().endswith(".routes.json"):
        msg = f"{path}: {name} sends copies or sums, which are no routes; use .json or .xml"
        raise BadInput(msg)
    elif path.suffix.lower() == ".xml" and name == "alltoall.broadcast":
        msg = f"{path}: MSCCL XML does not state the root of a broadcast; use .json"
        raise BadInput(msg)


def schedule_text(
    path: Path,
    name: str,
    data: Any,
    topology: Topology,
    values: Mapping[str, NDArray[np.float64]],
    *,
    chunks: int | Sequence[int] | None = None,
    alpha: float = 0.0,
    beta: float = 1.0,
    options: XmlOptions | None = None,
) -> tuple[str, CutFacts]:
    """The text of a schedule file, and the cost of cutting the flow into chunks.

    Parameters
    ----------
    path
        File name; its suffix selects the format: ``.xml`` MSCCL, ``.routes.json`` routes, other ``.json`` links.
    name, data, topology, values
        The formulation and its verified solution.
    chunks
        Chunks per shard, see :func:`opticoll.formulations.schedules.shard_routes.cut`.
    alpha, beta
        Cost model by which list scheduling chooses the size of its steps.
    options
        For ``.xml``. If the shortest schedule exceeds the limits of the runtime, one of fewer and larger steps is
        written that keeps them, if there is any.

    Returns
    -------
    text
        Contents of the file.
    facts
        See :class:`CutFacts`.
    """
    facts: CutFacts
    if name in collective_steps.COLLECTIVES:
        return _collective_text(
            path, name, data, topology, values, chunks=chunks, alpha=alpha, beta=beta, options=options
        )
    routes = routes_of(name, data, values)
    if path.name.lower().endswith(".routes.json"):
        chunked = cut(topology, without_steps(routes), chunks)
        facts = {
            "chunks": chunked.chunks, "fluid_time": chunked.fluid_time, "time": chunked.time, "loss": chunked.loss,
            "time_by_chunks": {str(D): time for D, time in chunked.prices.items()},
        }  # fmt: skip
        return json.dumps(routes_document(topology, chunked)) + "\n", facts
    if topology.ranks < topology.n and getattr(data, "relays", None) != "pass":
        routes = without_steps(routes)  # steps may hold data in a vertex that only forwards
    schedule = schedule_routes(topology, routes, chunks=chunks, alpha=alpha, beta=beta)
    program: Program | None = None
    if path.suffix.lower() == ".xml":
        if schedule.amount is not None:
            msg = f"{path}: {EQUAL_SHARDS}"
            raise BadInput(msg)
        chosen = options or XmlOptions()
        title = f"{name} {topology.spec}"
        program = lower(schedule, title, chosen)
        excess = exceeded(program, TARGETS[chosen.target])
        for budget in (*BUDGETS[1:], None) if excess and len(schedule.transfers) <= MOST_RETRIED else ():
            other = schedule_routes(topology, routes, chunks=chunks, alpha=alpha, beta=beta, budgets=(budget,))
            trial = lower(other, title, chosen)
            if not exceeded(trial, TARGETS[chosen.target]):
                schedule, program, excess = other, trial, []
                break
    fluid, time = schedule.fluid_time, schedule.time()
    facts = {
        "chunks": schedule.chunks, "steps": schedule.steps, "fluid_time": fluid, "time": time,
        "alpha_beta_time": schedule.time(alpha, beta), "loss": max(time / fluid - 1.0, 0.0) if fluid else 0.0,
        "time_by_chunks": {str(D): price for D, price in schedule.prices.items()},
    }  # fmt: skip
    if program is None:
        return json.dumps(links_document(schedule)) + "\n", facts
    facts["target"] = chosen.target
    facts["multiple_of"] = TARGETS[chosen.target].multiple_of(program)
    facts["channels"] = channels_of(program)
    return write_xml(program), facts


def _collective_text(
    path: Path,
    name: str,
    data: Any,
    topology: Topology,
    values: Mapping[str, NDArray[np.float64]],
    *,
    chunks: int | Sequence[int] | None,
    alpha: float,
    beta: float,
    options: XmlOptions | None,
) -> tuple[str, CutFacts]:
    """As :func:`schedule_text`, for collectives by packed trees."""
    root = data.root if name == "alltoall.broadcast" else None
    program: Program | None = None
    if path.suffix.lower() == ".xml":
        chosen = options or XmlOptions()
        found, program = _collective_program(name, topology, chunks, alpha, beta, chosen)
    else:
        found = collective_steps.best_schedule(name, topology, root, chunks=chunks, alpha=alpha, beta=beta)
    fluid = float(values["T"])
    facts: CutFacts = {
        "chunks": found.steps.chunks, "steps": len(found.steps.steps), "fluid_time": fluid, "time": found.time,
        "alpha_beta_time": found.alpha_beta_time, "loss": max(found.time / fluid - 1.0, 0.0), "time_by_chunks": {},
    }  # fmt: skip
    if program is None:
        return json.dumps(collective_document(topology, found.steps)) + "\n", facts
    facts["chunks"] = program.chunks // (topology.ranks if program.collective == "allreduce" else 1)
    facts["target"], facts["channels"] = chosen.target, channels_of(program)
    facts["multiple_of"] = TARGETS[chosen.target].multiple_of(program)
    return write_xml(program), facts


def _collective_program(
    name: str,
    topology: Topology,
    chunks: int | Sequence[int] | None,
    alpha: float,
    beta: float,
    options: XmlOptions,
) -> tuple[collective_steps.CollectiveSchedule, Program]:
    """The schedule whose program takes the least simulated time within the limits of the target, and that program.

    Programs run without synchronous steps: fewer trees, which load the network more, can take less time.
    """
    target = TARGETS[options.target]
    made = [collective_steps.best_schedule(name, topology, chunks=chunks, alpha=alpha, beta=beta)]
    if made[0].steps.moves <= MOST_TRIED:
        numbers = (chunks,) if isinstance(chunks, int) else PROGRAM_CHUNKS if chunks is None else sorted(set(chunks))
        made += [
            collective_steps.schedule_collective(name, topology, chunks=D, trees=trees, alpha=alpha, beta=beta)
            for D in numbers
            for trees in PROGRAM_TREES
            if D % trees == 0
        ]
    best: tuple[tuple[bool, float, int], collective_steps.CollectiveSchedule, Program] | None = None
    for found in made:
        program = lower_moves(
            found.steps, topology, f"{name} {topology.spec}", target=target, channels=options.channels,
            instances=options.instances,
        )  # fmt: skip
        low, high = _selected(options)
        program = replace(program, protocol=options.protocol, min_bytes=low, max_bytes=high)
        if len(made) == 1:
            return found, program
        time = execute_program(program, topology, alpha=alpha, beta=beta).time
        key = (bool(exceeded(program, target)), round(time or inf, 9), found.steps.chunks)
        if best is None or key < best[0]:
            best = key, found, program
    assert best is not None
    return best[1:]

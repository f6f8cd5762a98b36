"""Lower link schedules and collective schedules to programs, and write solutions of formulations as schedule files.

Collectives with copies and sums. A program has a thread block for every rank, neighbour, direction and channel;
receives that add are ``rrc``. Partial sums lie in scratch (reduce-scatter) or in the output (all-reduce); inputs are
not written. An instruction waits for the receive that last wrote its chunk. Deadlock is impossible: an instruction
waits for instructions of earlier steps, or of the same step and a lower peer.

The messages of a connection are dealt to its channels in turn, at both ends alike. With I instances every chunk
is divided into I parts, each with its own channels.

Link schedules. A program has thread blocks for every rank, neighbour and direction, one per channel; chunks in transit
lie in scratch. Chunk c of (s, t) leaves the input of s at [t D + c], has its own place in the scratch of every rank on
its way, and arrives in the output of t at [s D + c]. Transfers of one arc and step whose places are contiguous on both
ends become one instruction. A relay's send waits only for the receive that brought its chunk: there are no barriers, so
the program may run ahead of the steps. It cannot deadlock: a send of one step waits only for receives of earlier steps,
and receives wait for no dependency.

Limits of a runtime (:class:`opticoll.solvers.schedules.runtimes.Target`). The transfers of a connection are spread
over enough channels to keep its thread blocks within the step limit. Every channel takes a limited number of peers; the
rest use another channel. With more thread blocks than a rank may have, the two directions of a connection share one.
With I instances every chunk is divided into I parts, each with its own channels.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple, NotRequired, TypedDict

from opticoll.errors import BadInput, NotApplicable
from opticoll.solvers.schedules import collective_steps
from opticoll.solvers.schedules.link_schedule import BUDGETS, schedule_routes
from opticoll.solvers.schedules.msccl_xml import ChunkMoves, Layout, write_xml
from opticoll.solvers.schedules.program import Instruction, Place, Program, Rank, ThreadBlock
from opticoll.solvers.schedules.runtimes import PROTOCOLS, TARGETS, Target, exceeded
from opticoll.solvers.schedules.schedule_check import many_objects
from opticoll.solvers.schedules.schedule_json import moves_document, routes_document
from opticoll.solvers.schedules.schedule_kinds import root_of
from opticoll.solvers.schedules.shard_routes import cut, routes_in_steps, routes_of, uncut, without_steps
from opticoll.solvers.schedules.static_checks import channels_of, deal_channels
from opticoll.solvers.schedules.verification import execute_program

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from opticoll.instances.topology import F64, Topology
    from opticoll.solvers.schedules.collective_steps import CollectiveSteps, Move
    from opticoll.solvers.schedules.link_schedule import LinkSchedule


#: (sender, receiver, instance)
Line = tuple[int, int, int]


class _Written(NamedTuple):
    """Where a rank holds a chunk, and the message that last wrote it: its connection and its number there."""

    place: Place
    by: tuple[Line, int] | None


def lower_moves(
    schedule: CollectiveSteps,
    topology: Topology,
    name: str = "opticoll",
    *,
    target: Target | None = None,
    channels: int = 1,
    instances: int = 1,
) -> Program:
    """Lower a schedule of moves to a program.

    Parameters
    ----------
    schedule, topology
        Schedule, and topology on which it runs.
    name
        Name of the program.
    target
        Runtime whose limits on steps per thread block and peers per channel are kept; None for no limits.
    channels
        Minimum number of channels of a connection with at least as many messages.
    instances
        Number of parts into which every chunk is divided, each with its own channels.

    Raises
    ------
    NotApplicable
        For a broadcast, whose root the format does not state.
    """
    if schedule.collective == "broadcast":
        msg = "lowering: MSCCL XML does not state the root of a broadcast; write the schedule as .json"
        raise NotApplicable(msg)
    number = {v: r for r, v in enumerate(topology.terminals.tolist())}
    lowering = _Lowering(schedule.collective, len(number), schedule.chunks, instances)
    for step in schedule.steps:
        for move in sorted(step, key=lambda move: (number[move.path[-1]], number[move.path[0]], move)):
            for part in range(instances):
                line = number[move.path[0]], number[move.path[-1]], part
                lowering.send(line, number[move.shard], move, move.chunk + part * schedule.chunks)
        lowering.end_step()
    return lowering.program(name, target, channels)


class _Lowering:
    def __init__(self, collective: str, N: int, D: int, instances: int) -> None:
        self.collective, self.N, self.D = collective, N, D * instances
        self.lines: dict[Line, list[tuple[_Written, str, _Written, Place]]] = defaultdict(list)
        self.held: list[dict[tuple[int, int], _Written]] = [{} for _ in range(N)]
        self.later: list[tuple[Line, int, int, bool, _Written]] = []
        self.scratch = [0] * N

    def _own(self, rank: int, shard: int, chunk: int) -> _Written:
        offset = chunk if self.collective == "allgather" else shard * self.D + chunk
        return self.held[rank].get((shard, chunk), _Written(Place("i", offset), None))

    def send(self, line: Line, shard: int, move: Move, chunk: int) -> None:
        """Add a message; its data is available from the end of the step."""
        self.later.append((line, shard, chunk, move.adds, self._own(line[0], shard, chunk)))

    def end_step(self) -> None:
        """Deliver the messages of a step."""
        for line, shard, chunk, adds, source in self.later:
            v = line[1]
            before = self._own(v, shard, chunk)
            target = self._target(v, shard, chunk, before.place)
            self.lines[line].append((source, "rrc" if adds else "r", before, target))
            self.held[v][shard, chunk] = _Written(target, (line, len(self.lines[line]) - 1))
        self.later = []

    def _target(self, rank: int, shard: int, chunk: int, before: Place) -> Place:
        if self.collective != "reducescatter":
            return Place("o", shard * self.D + chunk)
        if rank == shard:
            return Place("o", chunk)
        if before.buffer == "s":
            return before
        self.scratch[rank] += 1
        return Place("s", self.scratch[rank] - 1)

    def program(self, name: str, target: Target | None, channels: int) -> Program:
        """Build the program: per rank, sends by peer and channel, receives likewise, then the copy of its own shard."""
        split = {
            line: max(min(channels, len(those)), 1 if target is None else -(-len(those) // target.steps))
            for line, those in self.lines.items()
        }
        self.channels = deal_channels(split, self.N if target is None else target.peers)
        ranks = [self._rank(v) for v in range(self.N)]
        return Program(name, self.collective, self.N * self.D, ranks)

    def _rank(self, v: int) -> Rank:
        N, D = self.N, self.D
        sizes = {
            "i": D if self.collective == "allgather" else N * D,
            "o": D if self.collective == "reducescatter" else N * D,
            "s": self.scratch[v],
        }
        rank = Rank(sizes)
        out, into = ([line for line in sorted(self.lines) if line[end] == v] for end in (0, 1))
        block_of = {
            (line, j): number
            for number, (line, j) in enumerate(
                (line, j) for line in (*out, *into) for j in range(len(self.channels[line]))
            )
        }
        awaited: set[tuple[int, int]] = set()

        def waits(written: _Written, own: int) -> tuple[int, int] | None:
            if written.by is None:
                return None
            line, i = written.by
            many = len(self.channels[line])
            result = block_of[line, i % many], i // many
            if result[0] == own:
                return None
            awaited.add(result)
            return result

        listed: list[tuple[ThreadBlock, list[Instruction]]] = []
        for (line, j), b in block_of.items():
            sends, those = line[0] == v, self.lines[line][j :: len(self.channels[line])]
            steps = [
                Instruction("s", source.place, target, 1, waits(source, b))
                if sends
                else Instruction("rrc", before.place, target, 1, waits(before, b))
                if kind == "rrc"
                else Instruction("r", target, target)
                for source, kind, before, target in those
            ]
            ends = (line[1], -1) if sends else (-1, line[0])
            listed.append((ThreadBlock(b, *ends, self.channels[line][j]), steps))
        for block, steps in listed:
            block.instructions += [replace(one, signals=(block.number, i) in awaited) for i, one in enumerate(steps)]
            rank.blocks[block.number] = block
        if self.collective == "allgather":
            own = ThreadBlock(len(rank.blocks), -1, -1, 0)
            own.instructions += [Instruction("cpy", Place("i", c), Place("o", v * D + c)) for c in range(D)]
            rank.blocks[own.number] = own
        return rank


#: Message when a demand that is not uniform is written as MSCCL XML.
EQUAL_SHARDS = "MSCCL XML holds equal shards between all ranks; write .json or .routes.json for any other demand"
#: Largest buffer [bytes] for which a program is selected, where a runtime requires a range.
MOST_BYTES = 1 << 30
#: Maximum number of transfers for which a program over the limits is retried with larger steps.
MOST_RETRIED = 200_000
#: Chunks and trees per shard tried for programs of collectives, and maximum number of moves for trying them.
PROGRAM_CHUNKS, PROGRAM_TREES, MOST_TRIED = (4, 8), (1,), 20_000
#: Relative difference of times that counts as round-off.
ROUND_OFF = 1e-9


@dataclass(frozen=True)
class XmlOptions:
    """How a link schedule is lowered to MSCCL XML.

    Parameters
    ----------
    target
        Runtime whose limits are kept, a key of :data:`opticoll.solvers.schedules.runtimes.TARGETS`.
    protocol
        ``Simple``, ``LL`` or ``LL128``.
    channels
        Minimum number of channels per connection; more are used where a thread block has too many steps.
    instances
        Number of parts into which every chunk is divided, each with its own channels.
    sizes
        Smallest and largest whole buffer [bytes] for which the runtime selects the program; None for all sizes.

    Raises
    ------
    BadInput
        If a value is unknown or out of range.
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
                f"schedule: channels={self.channels} for each of instances={self.instances} exceed the {most} channels "
                f"of {self.target}; ask for fewer"
            )
            raise BadInput(msg)
        if self.sizes is not None and not 0 <= self.sizes[0] < self.sizes[1]:
            msg = f"schedule: no buffer has {self.sizes[0]} to {self.sizes[1]} bytes; give the smaller size first"
            raise BadInput(msg)


def lower(schedule: LinkSchedule, name: str = "opticoll", options: XmlOptions | None = None) -> Program:
    """Lower a link schedule to a program.

    Parameters
    ----------
    schedule, name
        The schedule, and the name of the program.
    options
        Runtime, channels and instances. Limits that are exceeded nevertheless are listed by
        :func:`opticoll.solvers.schedules.runtimes.exceeded`.

    Raises
    ------
    NotApplicable
        If a chunk is sent before it arrives.
    """
    chosen = options or XmlOptions()
    target = TARGETS[chosen.target]
    moves = ChunkMoves(schedule, chosen.instances, target.count)
    layout = Layout(moves, target, chosen.channels, chosen.instances)
    with many_objects():
        ranks = layout.ranks()
    return Program(name, "alltoall", moves.N * moves.D, ranks, False, chosen.protocol, *_selected(chosen))


def _selected(options: XmlOptions) -> tuple[int, int]:
    """Smallest and largest whole buffer [bytes] for which the runtime should select a program."""
    unlimited = TARGETS[options.target].unlimited
    return options.sizes or (0, MOST_BYTES if unlimited is None else unlimited)


class CutFacts(TypedDict):
    """The cost of cutting a flow into chunks; ``loss`` is ``time / fluid_time - 1``.

    ``time_by_chunks`` is the time of the chunked flow, before it is scheduled in steps, for every number of chunks
    tried. For a program, ``target`` is its runtime, and the elements for a peer must be a multiple of ``multiple_of``.
    ``keeps`` says which restriction of the schedule, that the model does not have, makes it longer.
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
    keeps: NotRequired[str]


def schedule_text(
    path: Path,
    name: str,
    data: Any,
    topology: Topology,
    values: Mapping[str, F64],
    *,
    chunks: int | Sequence[int] | None = None,
    alpha: float = 0.0,
    beta: float = 1.0,
    options: XmlOptions | None = None,
) -> tuple[str, CutFacts]:
    """Return the text of a file of a schedule along routes, and the cost of cutting the flow into chunks.

    Parameters
    ----------
    path
        File name; its suffix selects the format: ``.xml`` MSCCL, ``.routes.json`` routes, other ``.json`` moves.
    name, data, topology, values
        The formulation and its verified solution.
    chunks
        Chunks per shard, see :func:`opticoll.solvers.schedules.shard_routes.cut`.
    alpha, beta
        Cost model by which list scheduling chooses the size of its steps.
    options
        For ``.xml``. If the shortest schedule exceeds the limits of the runtime, one with fewer and larger steps is
        written that meets them, if one is found.

    Returns
    -------
    text
        Contents of the file.
    facts
        See :class:`CutFacts`.
    """
    facts: CutFacts
    if path.name.lower().endswith(".routes.json"):
        routes = routes_of(name, data, values)
        layered = routes[0].layer is not None  # other routes could close a cycle
        chunked = uncut(topology, routes, chunks) if layered else cut(topology, without_steps(routes), chunks)
        facts = {
            "chunks": chunked.chunks,
            "fluid_time": chunked.fluid_time,
            "time": chunked.time,
            "loss": chunked.loss,
            "time_by_chunks": {str(D): time for D, time in chunked.prices.items()},
        }
        return json.dumps(routes_document(topology, chunked)) + "\n", facts
    routes = routes_in_steps(name, data, topology, values)
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
        "chunks": schedule.chunks,
        "steps": schedule.steps,
        "fluid_time": fluid,
        "time": time,
        "alpha_beta_time": schedule.time(alpha, beta),
        "loss": _loss(time, fluid),
        "time_by_chunks": {str(D): price for D, price in schedule.prices.items()},
    }
    if program is None:
        return json.dumps(moves_document(topology, collective_steps.moves_of(schedule))) + "\n", facts
    facts["target"] = chosen.target
    facts["multiple_of"] = TARGETS[chosen.target].multiple_of(program)
    facts["channels"] = channels_of(program)
    return write_xml(program), facts


def _loss(time: float, fluid: float | None) -> float:
    """Relative increase over the time of the flow; 0 if that is round-off."""
    loss = time / fluid - 1.0 if fluid else 0.0
    return loss if loss > ROUND_OFF else 0.0


def _unequal_switches(topology: Topology) -> bool:
    """Whether the capacities into and out of some switch differ, so that copies or sums at it may save time."""
    net = abs(topology.incidence() @ topology.capacity)
    net[topology.terminals] = 0.0
    return bool(net.max(initial=0.0) > ROUND_OFF * topology.capacity.max())


def collective_text(
    path: Path,
    name: str,
    data: Any,
    topology: Topology,
    values: Mapping[str, F64],
    *,
    chunks: int | Sequence[int] | None = None,
    alpha: float = 0.0,
    beta: float = 1.0,
    options: XmlOptions | None = None,
) -> tuple[str, CutFacts]:
    """As :func:`schedule_text`, for collectives by packed trees."""
    root = root_of(name, data)
    program: Program | None = None
    if path.suffix.lower() == ".xml":
        chosen = options or XmlOptions()
        result, program = _collective_program(name, topology, chunks, alpha, beta, chosen)
    else:
        result = collective_steps.best_schedule(name, topology, root, chunks=chunks, alpha=alpha, beta=beta)
    fluid = float(values["T"])
    facts: CutFacts = {
        "chunks": result.steps.chunks,
        "steps": len(result.steps.steps),
        "fluid_time": fluid,
        "time": result.time,
        "alpha_beta_time": result.alpha_beta_time,
        "loss": _loss(result.time, fluid),
        "time_by_chunks": {},
    }
    if _unequal_switches(topology) and _loss(result.fluid_time, fluid):
        facts["keeps"] = f"switches only forward, without copies or sums: the trees take T = {result.fluid_time:.8g}"
    if program is None:
        return json.dumps(moves_document(topology, result.steps)) + "\n", facts
    facts["chunks"] = program.chunks // (topology.num_ranks if program.collective == "allreduce" else 1)
    facts["target"], facts["channels"] = chosen.target, channels_of(program)
    facts["multiple_of"] = TARGETS[chosen.target].multiple_of(program)
    return write_xml(program), facts


def _collective_program(
    name: str, topology: Topology, chunks: int | Sequence[int] | None, alpha: float, beta: float, options: XmlOptions
) -> tuple[collective_steps.CollectiveSchedule, Program]:
    """Schedule whose program has the shortest simulated time within the limits of the target, and that program.

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
    for result in made:
        program = lower_moves(
            result.steps,
            topology,
            f"{name} {topology.spec}",
            target=target,
            channels=options.channels,
            instances=options.instances,
        )
        low, high = _selected(options)
        spelled = target.name_of(program.collective)
        program = replace(program, protocol=options.protocol, min_bytes=low, max_bytes=high, spelled=spelled)
        if len(made) == 1:
            return result, program
        time = execute_program(program, topology, alpha=alpha, beta=beta).time
        key = (bool(exceeded(program, target)), round(time or inf, 9), result.steps.chunks)
        if best is None or key < best[0]:
            best = key, result, program
    assert best is not None
    return best[1:]

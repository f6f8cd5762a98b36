"""Lower link schedules and collective schedules to programs, and write solutions of formulations as schedule files.

A program has thread blocks for every rank, neighbour and direction, one per channel
(:mod:`opticoll.solvers.schedules.program_layout`). Chunk c of (s, t) of an all-to-all leaves the input of s at
[t D + c], has its own place in the scratch of every rank on its way, and arrives in the output of t at [s D + c].
Receives that add are ``rrc``; partial sums lie in scratch (reduce-scatter) or in the output (all-reduce); inputs are
not written. In an all-to-all, moves of one connection and step that are contiguous on both ends become one instruction.

A send waits for the receive that last wrote its chunk, a receive that adds for the one that last wrote what it adds to:
there are no barriers, so the program may run ahead of the steps. It cannot deadlock: an instruction waits for
instructions of earlier steps, or of the same step and a lower peer.

Limits of a runtime (:class:`opticoll.solvers.schedules.runtimes.Target`). The transfers of a connection are spread
over enough channels to keep its thread blocks within the step limit. Every channel takes a limited number of peers; the
rest use another channel. With more thread blocks than a rank may have, the two directions of a connection share one.
With I instances every chunk is divided into I parts, each with its own channels.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple, NotRequired, TypedDict

import numpy as np

from opticoll.errors import BadInput, NotApplicable, refuse
from opticoll.formulations.alltoall import channels_routes
from opticoll.formulations.modelling_layers import many_objects
from opticoll.solvers.schedules import collective_steps
from opticoll.solvers.schedules.collective_steps import COLLECTIVES
from opticoll.solvers.schedules.interpreter import MOST_CLOCK_ENTRIES
from opticoll.solvers.schedules.link_schedule import BUDGETS, schedule_routes
from opticoll.solvers.schedules.moves_execution import run_moves
from opticoll.solvers.schedules.msccl_xml import xml_of
from opticoll.solvers.schedules.program import Program
from opticoll.solvers.schedules.program_layout import ChunkMoves, Layout
from opticoll.solvers.schedules.runtimes import PROTOCOLS, TARGETS, exceeded
from opticoll.solvers.schedules.schedule_check import FREE_STEPS, Cost
from opticoll.solvers.schedules.schedule_json import moved_document, moves_text, routes_document
from opticoll.solvers.schedules.schedule_kinds import root_of
from opticoll.solvers.schedules.shard_routes import LIMITED, cut, routes_in_steps, routes_of, uncut, without_steps
from opticoll.solvers.schedules.static_checks import channels_of
from opticoll.solvers.schedules.verification import execute_program, with_limits

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from opticoll.instances.topology import F64, I64, Topology
    from opticoll.solvers.schedules.collective_steps import CollectiveSchedule, CollectiveSteps
    from opticoll.solvers.schedules.program_arrays import ProgramArrays
    from opticoll.solvers.schedules.schedule_check import ScheduleCheck
    from opticoll.solvers.schedules.shard_routes import Routes


#: Message when a demand that is not uniform is written as MSCCL XML.
EQUAL_SHARDS = "MSCCL XML holds equal shards between all ranks; write .json or .routes.json for any other demand"
#: Largest buffer [bytes] for which a program is selected, where a runtime requires a range.
MOST_BYTES = 1 << 30
#: Maximum number of transfers for which a program over the limits is retried with larger steps.
MOST_RETRIED = 200_000
#: Chunks per shard tried along one tree for programs of collectives, and maximum number of moves for trying them.
PROGRAM_CHUNKS, MOST_TRIED = (4, 8), 20_000
#: Number of moves up to which a file is read and executed, instead of what is written to it.
MOST_READ = 50_000
#: Clock entries of a program (:mod:`opticoll.solvers.schedules.interpreter`) up to which its file is read and executed.
MOST_EXECUTED = 100_000_000
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
                refuse("schedule", f"unknown {name} {value!r}; use one of {', '.join(known)}")
        if min(self.channels, self.instances) < 1:
            refuse("schedule", f"channels={self.channels} and instances={self.instances} must be at least 1")
        most = TARGETS[self.target].channels
        if self.channels * self.instances > most:
            msg = (
                f"schedule: channels={self.channels} for each of instances={self.instances} exceed the {most} channels "
                f"of {self.target}; ask for fewer"
            )
            raise BadInput(msg)
        if self.sizes is not None and not 0 <= self.sizes[0] < self.sizes[1]:
            refuse("schedule", f"no buffer has {self.sizes[0]} to {self.sizes[1]} bytes; give the smaller size first")


class Lowered(NamedTuple):
    """A program whose thread blocks are empty, and its instructions in arrays."""

    program: Program
    arrays: ProgramArrays


class ScheduleFile(NamedTuple):
    """A file to write: its text in parts, the cost of cutting into chunks, and how what is written was executed.

    ``verdict`` is None where the file is read and executed instead, unless it is too large.
    """

    parts: Iterable[str]
    facts: CutFacts
    verdict: ScheduleCheck | None = None


def lower(
    schedule: CollectiveSteps, topology: Topology, name: str = "opticoll", options: XmlOptions | None = None
) -> Program:
    """Lower a schedule of moves to a program.

    Parameters
    ----------
    schedule, topology, name
        The schedule, where it runs, and the name of the program.
    options
        Runtime, channels and instances. Limits that are exceeded nevertheless are listed by
        :func:`opticoll.solvers.schedules.runtimes.exceeded`.

    Raises
    ------
    NotApplicable
        If a chunk is sent before it arrives; for a broadcast, whose root the format does not state.
    """
    return _whole(_lowered(schedule, topology, name, options or XmlOptions()))


def _lowered(schedule: CollectiveSteps, topology: Topology, name: str, options: XmlOptions) -> Lowered:
    if schedule.collective == "broadcast":
        msg = "lowering: MSCCL XML does not state the root of a broadcast; write the schedule as .json"
        raise NotApplicable(msg)
    number = np.full(topology.n, -1, dtype=np.int64)
    number[topology.terminals] = np.arange(topology.num_ranks)
    ends = (number[schedule.vertices[end]] for end in (schedule.first[:-1], schedule.first[1:] - 1))
    shard = number[schedule.shard[:, 0]]
    if schedule.collective == "alltoall":
        shard = shard * topology.num_ranks + number[schedule.shard[:, 1]]
    rows = np.column_stack([schedule.step, *ends, shard, schedule.chunk, schedule.adds])
    return _program(schedule.collective, topology.num_ranks, schedule.chunks, rows, name, options)


def _whole(lowered: Lowered) -> Program:
    """The program with its instructions as objects."""
    with many_objects():
        return replace(lowered.program, ranks=lowered.arrays.ranks())


def _program(collective: str, N: int, chunks: int, table: I64, name: str, options: XmlOptions) -> Lowered:
    target = TARGETS[options.target]
    most = target.count if collective == "alltoall" else 1  # chunks of trees wait less one by one
    moves = ChunkMoves(collective, N, chunks, table, options.instances, most)
    arrays = Layout(moves, target, options.channels, options.instances).arrays()
    ranks, spelled = arrays.ranks(instructions=False), target.name_of(collective)
    program = Program(name, collective, N * moves.D, ranks, False, options.protocol, *_selected(options), spelled)
    return Lowered(program, arrays)


def _selected(options: XmlOptions) -> tuple[int, int]:
    """Smallest and largest whole buffer [bytes] for which the runtime should select a program."""
    unlimited = TARGETS[options.target].unlimited
    return options.sizes or (0, MOST_BYTES if unlimited is None else unlimited)


class CutFacts(TypedDict):
    """The cost of cutting a flow into chunks; ``loss`` is ``time / fluid_time - 1``.

    ``time_by_chunks`` is the time of the chunked flow, before it is scheduled in steps, for every number of chunks
    tried. For a program, ``target`` is its runtime, and the elements for a peer must be a multiple of ``multiple_of``.
    ``keeps`` says which restriction of the schedule, that the model does not have, makes it longer, or that a program
    is too large to be executed.
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


def schedule_file(
    path: Path,
    name: str,
    data: Any,
    topology: Topology,
    values: Mapping[str, F64],
    *,
    chunks: int | Sequence[int] | None = None,
    cost: Cost = FREE_STEPS,
    options: XmlOptions | None = None,
) -> ScheduleFile:
    """The file of a schedule along routes or packed trees, and the cost of cutting the flow into chunks.

    Parameters
    ----------
    path
        File name; its suffix selects the format: ``.xml`` MSCCL, ``.routes.json`` routes, other ``.json`` moves.
    name, data, topology, values
        The formulation and its verified solution.
    chunks
        Chunks per shard, see :func:`opticoll.solvers.schedules.shard_routes.cut`.
    cost
        Cost model by which list scheduling chooses the size of its steps.
    options
        For ``.xml``. If the shortest schedule exceeds the limits of the runtime, one with fewer and larger steps is
        written that meets them, if one is found.
    """
    if path.name.lower().endswith(".routes.json"):
        return _routes_file(name, data, topology, values, chunks)
    chosen = (options or XmlOptions()) if path.suffix.lower() == ".xml" else None
    trees, root, lowered = name in COLLECTIVES, root_of(name, data), None
    if trees and chosen is not None:
        made, lowered = _collective_program(name, topology, chunks, cost, chosen)
    elif trees:
        made = collective_steps.best_schedule(name, topology, root, chunks=chunks, cost=cost)
    else:
        routes = routes_in_steps(name, data, topology, values)
        made = schedule_routes(topology, routes, chunks=chunks, cost=cost)
        if chosen is not None:
            if made.steps.demand is not None:
                refuse(path, EQUAL_SHARDS)
            made, lowered = _routes_program(name, topology, routes, made, chunks, cost, chosen)
    fluid = float(values["T"]) if trees else made.fluid_time
    facts: CutFacts = {
        "chunks": made.steps.chunks,
        "steps": made.steps.steps,
        "fluid_time": fluid,
        "time": made.time,
        "alpha_beta_time": made.alpha_beta_time,
        "loss": _loss(made.time, fluid),
        "time_by_chunks": {str(D): price for D, price in made.prices.items()},
    }
    if _unequal_switches(topology) and _loss(made.fluid_time, fluid):
        facts["keeps"] = f"switches only forward, without copies or sums: the trees take T = {made.fluid_time:.8g}"
    if chosen is not None and lowered is not None:
        return _program_file(lowered, made.steps, topology, facts, chosen, cost)
    # A large schedule is executed from the arrays that are written.
    number = 0 if root is None else int(np.searchsorted(topology.terminals, root))
    large = made.steps.moves > MOST_READ
    verdict = run_moves(made.steps, topology, number, cost=cost) if large else None
    return ScheduleFile(moves_text(topology, made.steps), facts, verdict)


def _routes_file(
    name: str, data: Any, topology: Topology, values: Mapping[str, F64], chunks: int | Sequence[int] | None
) -> ScheduleFile:
    """A file of routes: those of some pairs with their images, or all of them, cut unless they have layers."""
    if "images" in values:
        moved = channels_routes.moved_routes(data, values)
        assert moved is not None
        time = float(channels_routes.moved_load(data, moved).max())
        number = chunks if isinstance(chunks, int) else min(chunks or (1,))
        prices = {str(number): time}
        facts = CutFacts(chunks=number, fluid_time=time, time=time, loss=0.0, time_by_chunks=prices)
        return ScheduleFile([json.dumps(moved_document(moved, number)), "\n"], facts)
    routes = routes_of(name, data, values)
    if routes.layer is not None:  # other routes could close a cycle
        chunked = uncut(topology, routes, chunks)
    else:
        chunked = cut(topology, without_steps(routes), chunks, fixed=name in LIMITED)
    facts = {
        "chunks": chunked.chunks,
        "fluid_time": chunked.fluid_time,
        "time": chunked.time,
        "loss": chunked.loss,
        "time_by_chunks": {str(D): time for D, time in chunked.prices.items()},
    }
    return ScheduleFile([json.dumps(routes_document(topology, chunked)), "\n"], facts)


def _routes_program(
    name: str,
    topology: Topology,
    routes: Routes,
    made: CollectiveSchedule,
    chunks: int | Sequence[int] | None,
    cost: Cost,
    options: XmlOptions,
) -> tuple[CollectiveSchedule, Lowered]:
    """The program of a schedule along routes, or of one with larger steps if only that is within the limits."""
    title = f"{name} {topology.spec}"
    lowered = _lowered(made.steps, topology, title, options)
    if not _excess(lowered, options) or made.steps.vertices.size - made.steps.moves > MOST_RETRIED:
        return made, lowered
    for budget in (*BUDGETS[1:], None):
        other = schedule_routes(topology, routes, chunks=chunks, cost=cost, budgets=(budget,))
        trial = _lowered(other.steps, topology, title, options)
        if not _excess(trial, options):
            return other, trial
    return made, lowered


def _excess(lowered: Lowered, options: XmlOptions) -> list[str]:
    return exceeded(lowered.program, TARGETS[options.target], lowered.arrays.usage())


def _program_file(
    lowered: Lowered, steps: CollectiveSteps, topology: Topology, facts: CutFacts, options: XmlOptions, cost: Cost
) -> ScheduleFile:
    """A program; of one that is too large to be executed, the moves are."""
    program, arrays = lowered
    facts["chunks"] = program.chunks // (topology.num_ranks if program.collective == "allreduce" else 1)
    facts["target"] = options.target
    facts["multiple_of"] = TARGETS[options.target].multiple_of(program)
    facts["channels"] = channels_of(program)
    blocks, verdict = arrays.rank.size, None
    entries = blocks * (blocks + int(arrays.signals.sum()))
    if entries > MOST_EXECUTED:
        later = "`opticoll check` executes the program" if entries <= MOST_CLOCK_ENTRIES else "the program is too large"
        facts["keeps"] = f"the times of its moves, which were executed; {later}"
        verdict = with_limits(run_moves(steps, topology, cost=cost), program, arrays.usage())
    return ScheduleFile(xml_of(program, arrays), facts, verdict)


def _loss(time: float, fluid: float | None) -> float:
    """Relative increase over the time of the flow; 0 if that is round-off."""
    loss = time / fluid - 1.0 if fluid else 0.0
    return loss if loss > ROUND_OFF else 0.0


def _unequal_switches(topology: Topology) -> bool:
    """Whether the capacities into and out of some switch differ, so that copies or sums at it may save time."""
    net = abs(topology.incidence() @ topology.capacity)
    net[topology.terminals] = 0.0
    return bool(net.max(initial=0.0) > ROUND_OFF * topology.capacity.max())


def _collective_program(
    name: str, topology: Topology, chunks: int | Sequence[int] | None, cost: Cost, options: XmlOptions
) -> tuple[CollectiveSchedule, Lowered]:
    """Schedule whose program has the shortest simulated time within the limits of the target, and that program.

    Programs run without synchronous steps: fewer trees, which load the network more, can take less time.
    """
    target = TARGETS[options.target]
    made = [collective_steps.best_schedule(name, topology, chunks=chunks, cost=cost)]
    if made[0].steps.moves <= MOST_TRIED:
        numbers = (chunks,) if isinstance(chunks, int) else PROGRAM_CHUNKS if chunks is None else sorted(set(chunks))
        made += [collective_steps.schedule_collective(name, topology, chunks=D, trees=1, cost=cost) for D in numbers]
    best: tuple[tuple[bool, float, int], CollectiveSchedule, Lowered] | None = None
    for result in made:
        lowered = _lowered(result.steps, topology, f"{name} {topology.spec}", options)
        if len(made) == 1:
            return result, lowered
        time = execute_program(_whole(lowered), topology, cost=cost).time
        excess = exceeded(lowered.program, target, lowered.arrays.usage())
        key = (bool(excess), round(time or inf, 9), result.steps.chunks)
        if best is None or key < best[0]:
            best = key, result, lowered
    assert best is not None
    return best[1:]

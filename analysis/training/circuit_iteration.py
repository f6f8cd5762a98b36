"""The time of a training iteration on circuits that are set in rounds, on a LIGHTPATH mesh.

The tasks become stages (:mod:`opticoll.instances.training.iteration_stages`); their all-reduces and exchanges become
rounds of circuits with known times (:mod:`opticoll.analysis.training.timed_rounds`); ``lumorph.iteration``
chooses when each all-reduce runs. The paper's heuristic goes first; if its value is not proven optimal, the program is
solved.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from opticoll.analysis.training.circuit_replay import CircuitIteration, residuals
from opticoll.analysis.training.network_iteration import ServerNetwork, bounds, flows_of
from opticoll.analysis.training.timed_rounds import CircuitCosts, CircuitRounds
from opticoll.errors import NoSolution
from opticoll.formulations.lumorph.iteration import NAME, StagedCalls
from opticoll.formulations.lumorph.iteration_solution import values_of
from opticoll.instances.families.machines import ideal_switch
from opticoll.instances.training.iteration_stages import iteration_stages
from opticoll.instances.training.task_graph import ALL_REDUCE, COMPUTING
from opticoll.instances.training.training_iteration import AllReduceCall, Stage, TrainingIteration
from opticoll.solvers.solve import solve
from opticoll.solvers.task import PROVEN, Fields, Task

if TYPE_CHECKING:
    from opticoll.analysis.training.circuit_replay import Communication
    from opticoll.analysis.training.timed_rounds import AllReduce, TimedRounds
    from opticoll.instances.photonics import LightpathMesh
    from opticoll.instances.topology import F64, I64
    from opticoll.instances.training.iteration_stages import IterationStages
    from opticoll.instances.training.task_graph import TaskGraph
    from opticoll.solvers.run import Run
    from opticoll.types import Setting

#: Parameters of ``lumorph.iteration``: circuits of two calls could share waveguides, so calls run one at a time.
SETTINGS: dict[str, Setting] = {"boundaries": "stages", "batches": False}
#: Rate of a wavelength, latency of a round and delay of a change [s], as in sections 4 and 6 of the paper.
WAVELENGTH = "150Gb/s"
LATENCY_S = 0.7e-6
DELAY_S = 3.7e-6


class CircuitTimes(Fields, frozen=True, kw_only=True):
    """Parts of an iteration on circuits in rounds [s], and what it is compared with.

    ``algorithms`` counts calls by the algorithm that they take, ``exchanges`` names that of every exchange.
    ``exposed_s`` is the time of the iteration without that of its stages' computing; ``exchanges_s`` and
    ``all_reduces_s`` are the times of all rounds, ``changing_s`` the part of them in which circuits change. ``naive_s``
    is the time with all all-reduces at the end, ``switch_s`` that on an ideal electrical switch of the same bandwidth,
    with rings, and ``switch_bound_s`` a lower bound on it. ``proof`` says what the bound proves about the order and the
    times of these calls and exchanges. With these lasers, nothing takes less than ``least_s``, whatever the algorithms,
    circuits and stages.
    """

    algorithm: str
    algorithms: dict[str, int]
    exchanges: list[str]
    latency_s: float
    delay_s: float
    proof: str
    gap: float
    stages: int
    calls: int
    rounds: int
    exposed_s: float
    exchanges_s: float
    all_reduces_s: float
    changing_s: float
    naive_s: float
    switch_s: float
    switch_bound_s: float
    least_s: float

    def lines(self, seconds: float, changes: int) -> dict[str, str]:
        """The parts of an iteration of this time and number of changes of circuits, in words, by name of the line."""
        calls = ", ".join(f"{count} by {name}" for name, count in self.algorithms.items())
        ways = ", ".join(dict.fromkeys(self.exchanges))
        sent = f"{len(self.exchanges)} exchanges {milliseconds(self.exchanges_s)} ({ways})"
        reduced = f"{self.calls} calls {milliseconds(self.all_reduces_s)} ({calls})"
        changed = f"{changes} circuit changes of {1e6 * self.delay_s:.6g} us: {milliseconds(self.changing_s)}"
        slower = f"{self.switch_s / seconds:.4g} times as long"
        return {
            "exposed": f"{milliseconds(self.exposed_s)} of communication that no computing hides",
            "least": f"{milliseconds(self.least_s)} with any algorithms, circuits and stages",
            "all-reduces": reduced if self.calls else "none",
            "exchanges": sent if self.exchanges else "none",
            "rounds": f"{self.rounds}, {changed}",
            "naive": f"{milliseconds(self.naive_s)} with all all-reduces at the end",
            "switch": f"{milliseconds(self.switch_s)} on an ideal switch with rings, {slower}",
        }


def milliseconds(seconds: float) -> str:
    """A time in words."""
    return f"{1e3 * seconds:.6g} ms"


@dataclass(frozen=True)
class TimedIteration:
    """A schedule, its time and lower bounds by name [s], its parts, and its worst violation (None if not checked)."""

    schedule: CircuitIteration
    seconds: float
    bounds: dict[str, float]
    changes: int
    parts: CircuitTimes
    violation: float | None


@dataclass(frozen=True, eq=False)
class _Calls:
    """The tasks of a graph as stages and calls of ``lumorph.iteration``.

    ``last[b]`` is the stage at whose end the exchange of stage b of the graph is sent; ``tasks[k]`` is that of call k.
    """

    instance: TrainingIteration
    last: list[int]
    tasks: list[int]


@dataclass(frozen=True, eq=False)
class _Chosen:
    """When everything is sent.

    ``starts`` are s of ``lumorph.iteration``, ``end`` is z and ``bounds`` bound it [us]; ``order`` has the stage and
    the number in ``data`` of every call, in the order of time; ``gap`` is relative.
    """

    data: StagedCalls | None
    starts: F64
    order: list[tuple[int, int]]
    end: float
    bounds: dict[str, float]
    proof: str
    gap: float


def _microseconds(seconds: float) -> float:
    """A time in microseconds, rounded up to nanoseconds."""
    return ceil(round(seconds * 1e9, 3)) / 1e3


def _as_calls(stages: IterationStages, times: dict[int, float], sent: list[float], spec: str) -> _Calls:
    """Stages that end where calls become ready or exchanges are sent.

    ``times`` are those of calls by task, ``sent`` those of the exchanges of every stage of the graph [s].
    """
    graph, listed, last, ready = stages.graph, list[Stage](), list[int](), dict[int, int]()
    for b in range(stages.count):
        mine = [task for task in times if stages.stage[task] == b]
        ends = sorted(
            {_microseconds(float(stages.begin[task])) for task in mine} | {_microseconds(stages.computing[b])}
        )
        for task in mine:
            ready[task] = len(listed) + ends.index(_microseconds(float(stages.begin[task])))
        lengths = np.round(np.diff([0.0, *ends]), 3).tolist()
        listed += [Stage(length, transfers_us=0.0) for length in lengths[:-1]]
        listed.append(Stage(lengths[-1], transfers_us=_microseconds(sent[b])))
        last.append(len(listed) - 1)
    calls = [
        AllReduceCall(
            tuple(sorted(graph.groups[graph.group[task]])),
            max(round(graph.amount[task]), 1),
            ready[task],
            _microseconds(time),
        )
        for task, time in times.items()
    ]
    return _Calls(TrainingIteration(graph.servers, calls, (), listed, spec=spec), last, list(times))


def _chosen(calls: _Calls, time_limit: float) -> _Chosen:
    """The best known times of the calls, by the paper's heuristic or, if that is not proven optimal, by the program."""
    if not calls.tasks:
        return _without_calls(calls.instance)
    data = StagedCalls.prepare(calls.instance, SETTINGS)
    runs = [solve(Task(NAME, calls.instance, "boundary-batches", settings=SETTINGS))]
    if runs[0].proof not in PROVEN:
        runs.append(solve(Task(NAME, calls.instance, settings=SETTINGS, time_limit_s=time_limit)))
    best: Run | None = None
    for run in runs:
        if run.verified and run.objective is not None and (best is None or run.objective < _value(best)):
            best = run
    if best is None or best.values is None:
        msg = f"iteration: no schedule of {calls.instance.spec} was found; raise"
        raise NoSolution(msg, remedy={"time_limit": None})
    b, _, k = (each[np.asarray(best.values["x"]) > 0.5] for each in data.choices)
    order = sorted(zip(b.tolist(), k.tolist(), strict=True))
    values = values_of(data, [(stage, [call]) for stage, call in order])
    below = {one.name: float(one.value) for one in data.bounds()}
    most = max((float(run.bound) for run in runs if run.bound is not None), default=0.0)
    if most > max(below.values()):
        below["program"] = most
    end = float(values["z"])
    proven = [run.proof for run in runs if run.proof in PROVEN]
    gap = 0.0 if proven else max(0.0, 1.0 - max(below.values()) / end)
    return _Chosen(data, values["s"], order, end, below, str(proven[0] if proven else best.proof), gap)


def _value(run: Run) -> float:
    return np.inf if run.objective is None else run.objective


def _without_calls(instance: TrainingIteration) -> _Chosen:
    """Stages alone: each begins when the transfers of the one before have arrived."""
    computing = np.array([stage.computing_us for stage in instance.stages])
    sent = np.array([stage.transfers_us or 0.0 for stage in instance.stages])
    starts = np.cumsum(computing) + np.cumsum(sent) - sent
    end = float(computing.sum() + sent.sum())
    return _Chosen(None, starts, [], end, {"computing": end}, "optimal", 0.0)


def circuit_iteration(
    graph: TaskGraph,
    mesh: LightpathMesh,
    *,
    rate: float,
    latency: float = LATENCY_S,
    delay: float = DELAY_S,
    algorithm: AllReduce = "auto",
    time_limit: float = 20.0,
    check: bool = False,
) -> TimedIteration:
    """Schedule a task graph on circuits that are set in rounds.

    Parameters
    ----------
    graph, mesh
        Tasks, whose server s is tile s of the mesh.
    rate
        Of a wavelength [bytes/s].
    latency, delay
        Of a round, and of a change of circuits [s].
    algorithm
        Of all-reduces, see :mod:`opticoll.analysis.training.timed_rounds`.
    time_limit
        Limit of the program, if the paper's heuristic is not proven optimal [s].
    check
        Replay the schedule.

    Raises
    ------
    BadInput
        If a task waits for an all-reduce, or for an unknown algorithm.
    NotApplicable
        If a GPU has too few lasers for the algorithm.
    NoSolution
        If there is no schedule within the limit.
    """
    rounds = CircuitRounds(mesh, CircuitCosts(latency, delay, rate))
    stages = iteration_stages(graph)
    reduced = {
        task: rounds.all_reduce(graph.groups[graph.group[task]], float(graph.amount[task]), algorithm)
        for task in np.flatnonzero((graph.kind == ALL_REDUCE) & (graph.amount > 0)).tolist()
    }
    exchanged = [_exchange(stages, b, rounds) for b in range(stages.count)]
    sent = [0.0 if each is None else each.seconds for each in exchanged]
    calls = _as_calls(stages, {task: each.seconds for task, each in reduced.items()}, sent, mesh.spec)
    chosen = _chosen(calls, time_limit)
    switch = _chosen(_on_switch(stages, calls, mesh, rate, latency), time_limit)
    schedule = _timeline(stages, calls, chosen, reduced, exchanged)
    violation = None
    if check:
        worst = residuals(graph, mesh, schedule, latency=latency, delay=delay, rate=rate)
        largest = float(graph.amount[graph.kind != COMPUTING].max(initial=0.0))
        scale = {"delivered": max(largest, 1.0), "circuits": 1.0}
        violation = max(value / scale.get(name, 1e-6 * chosen.end) for name, value in worst.items())
    exchanges = [each for each in exchanged if each is not None]
    all_rounds = [*reduced.values(), *exchanges]
    changes = sum(each.changes for each in all_rounds)
    everything_us = [stage.computing_us + (stage.transfers_us or 0.0) for stage in calls.instance.stages]
    everything_us += [call.time_us or 0.0 for call in calls.instance.calls]
    least = _of_every_schedule(graph, mesh, rate)
    parts = CircuitTimes(
        algorithm=algorithm,
        algorithms=dict(Counter(each.algorithm for each in reduced.values())),
        exchanges=[each.algorithm for each in exchanges],
        latency_s=latency,
        delay_s=delay,
        proof=chosen.proof,
        gap=chosen.gap,
        stages=stages.count,
        calls=len(reduced),
        rounds=sum(each.durations.size for each in all_rounds),
        exposed_s=1e-6 * chosen.end - float(stages.computing.sum()),
        exchanges_s=sum(sent),
        all_reduces_s=sum(each.seconds for each in reduced.values()),
        changing_s=delay * changes,
        naive_s=1e-6 * sum(everything_us),
        switch_s=1e-6 * switch.end,
        switch_bound_s=1e-6 * max(switch.bounds.values()),
        least_s=max(least.values()),
    )
    below = {name: 1e-6 * value for name, value in chosen.bounds.items()} | least
    return TimedIteration(schedule, 1e-6 * chosen.end, below, changes, parts, violation)


def _of_every_schedule(graph: TaskGraph, mesh: LightpathMesh, rate: float) -> dict[str, float]:
    """Bounds on every schedule with these lasers [s]: the longest chain of tasks, and the computing of one server.

    A transfer alone takes at least its bytes over all lasers of a server. In an all-reduce among k servers, every
    element of the buffer is sent k - 1 times until some server has its sum, and k - 1 times after that: one of them
    sends 2 (k-1)/k of the buffer. With tiles outside the group, which could add up for them, each still sends every
    element once, its own part of it or the sum.
    """
    network = ServerNetwork(ideal_switch(graph.servers, mesh.lasers), rate, 0.0, "even")
    alone = all(len(members) == mesh.n for members in graph.groups)
    found = bounds(graph, flows_of(graph, network, ring_factor=None if alone else 1.0), 0.0)
    return {one.name: float(one.value) for one in found if one.name in {"chain", "server"}}


def _exchange(stages: IterationStages, stage: int, rounds: CircuitRounds) -> TimedRounds | None:
    """The rounds of the transfers at the end of a stage; None if nothing is sent."""
    graph, tasks = stages.graph, stages.turn(stage)
    amounts = np.zeros((rounds.mesh.n, rounds.mesh.n))
    np.add.at(amounts, (graph.server[tasks], graph.target[tasks]), graph.amount[tasks])
    return rounds.exchange(amounts) if amounts.any() else None


def _on_switch(stages: IterationStages, calls: _Calls, mesh: LightpathMesh, rate: float, latency: float) -> _Calls:
    """The same tasks on an ideal electrical switch with all lasers' bandwidth, all-reduces by rings."""
    graph, whole = stages.graph, mesh.lasers * rate
    times = {}
    for task in calls.tasks:
        members = len(graph.groups[graph.group[task]])
        times[task] = 2 * (members - 1) * (latency + float(graph.amount[task]) / members / whole)
    sent = []
    for b in range(stages.count):
        tasks = stages.turn(b)
        most = max(
            float(np.bincount(ends[tasks], graph.amount[tasks], graph.servers).max(initial=0.0))
            for ends in (graph.server, graph.target)
        )
        sent.append(latency + most / whole if most else 0.0)
    return _as_calls(stages, times, sent, f"{mesh.spec} as a switch")


def _timeline(
    stages: IterationStages,
    calls: _Calls,
    chosen: _Chosen,
    reduced: dict[int, TimedRounds],
    exchanged: list[TimedRounds | None],
) -> CircuitIteration:
    """Begin and end of every task, and all communications, from the chosen times."""
    graph, listed = stages.graph, calls.instance.stages
    begin, end = np.zeros(graph.tasks), np.zeros(graph.tasks)
    communications: list[Communication] = []

    def send(each: TimedRounds, at_us: float, tasks: I64) -> None:
        communications.append(each.at(1e-6 * at_us, tasks))
        begin[tasks] = 1e-6 * at_us
        end[tasks] = begin[tasks] + each.seconds

    stage_begin = [0.0]  # of the stages of the graph [us]
    at = dict.fromkeys(range(len(listed)), 0.0)  # when the device is free for the calls of a stage of the instance
    for number, start in enumerate(chosen.starts.tolist()):
        at[number] = start + (listed[number].transfers_us or 0.0)
    first = 0
    for b, last in enumerate(calls.last):
        computed = stage_begin[b] + sum(stage.computing_us for stage in listed[first : last + 1])
        tasks, each = stages.turn(b), exchanged[b]
        begin[tasks] = end[tasks] = 1e-6 * computed
        if each is not None:
            send(each, float(chosen.starts[last]), tasks[graph.amount[tasks] > 0])
        stage_begin.append(computed if each is None else at[last])
        first = last + 1
    for number, call in chosen.order:
        assert chosen.data is not None
        task = calls.tasks[int(chosen.data.call[call])]
        send(reduced[task], at[number], np.array([task]))
        at[number] += float(chosen.data.time[call])
    own = (graph.kind == COMPUTING) | ((graph.kind == ALL_REDUCE) & (graph.amount == 0))
    begin[own] = 1e-6 * np.array(stage_begin)[stages.stage[own]] + stages.begin[own]
    end[own] = begin[own] + np.where(graph.kind[own] == COMPUTING, graph.amount[own], 0.0)
    return CircuitIteration(begin, end, tuple(sorted(communications, key=lambda one: one.begin)))

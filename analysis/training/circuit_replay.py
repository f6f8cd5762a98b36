r"""Replay of a training iteration on circuits that are set in rounds: what a schedule must satisfy, from numpy alone.

Source  LuMorph, sections 2 and 3 (lasers, waveguides, reconfiguration), appendix C (one device, one queue)
Data    a task graph (:mod:`opticoll.instances.training.task_graph`) on the first vertices of a LIGHTPATH mesh; latency
        alpha of a round and delay r of a change of circuits [s]; rate of a wavelength [bytes/s]

A schedule has the begin and end of every task, and communications: each begins at a time, has rounds one after the
other with their circuits and chunks (:mod:`opticoll.formulations.rounds.round_schedule`), and carries certain tasks. It
is valid if these are 0:

    order      the largest time by which a task begins before one that it waits for has ended [s]
    computing  the largest time that a computing task falls short of its length, or runs beside another on a server [s]
    device     the largest time by which a communication begins before the last round of the one before has ended [s]
    window     the largest time by which rounds begin before a task that they carry, or end after it [s]
    rounds     the largest time that a round falls short of alpha + r + bytes of a pair / (its circuits rate) [s];
               without r if its circuits, with routes and wavelengths, are those of the round before it in the
               communication
    circuits   violations of the replay of every communication: paths, lasers, photodiodes, waveguides, payload,
               causality, redundant transfers and chunks that are missing at the end
    delivered  the largest number of bytes that the chunks fall short of the tasks, and tasks that nothing carries
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.rounds.round_schedule import Limits, violations
from opticoll.formulations.rounds.segments import select
from opticoll.instances.training.task_graph import ALL_REDUCE, COMPUTING, TRANSFER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opticoll.formulations.rounds.collectives import Collective
    from opticoll.formulations.rounds.round_schedule import RoundSchedule
    from opticoll.instances.photonics import LightpathMesh
    from opticoll.instances.topology import F64, I64
    from opticoll.instances.training.task_graph import TaskGraph

BLOCKS = ("order", "computing", "device", "window", "rounds", "circuits", "delivered")


@dataclass(frozen=True, eq=False)
class Communication:
    """Rounds of circuits.

    Parameters
    ----------
    begin
        Begin of the first round [s].
    durations
        Time of every round [s], ``(R,)``.
    schedule
        Circuits and transfers by round.
    collective
        What vertices hold at the start and require at the end.
    size
        Bytes of every chunk, ``(chunks,)``.
    tasks
        Numbers of the tasks that it carries.
    """

    begin: float
    durations: F64
    schedule: RoundSchedule
    collective: Collective
    size: F64
    tasks: I64


@dataclass(frozen=True, eq=False)
class CircuitIteration:
    """Begin and end of every task [s], ``(T,)`` each, and the communications in the order of time."""

    begin: F64
    end: F64
    communications: tuple[Communication, ...]


def residuals(
    graph: TaskGraph,
    mesh: LightpathMesh,
    iteration: CircuitIteration,
    *,
    latency: float,
    delay: float,
    rate: float,
) -> dict[str, float]:
    """Worst violation of every block, see the module; infinite if arrays have the wrong shape."""
    begin, end = iteration.begin, iteration.end
    if begin.shape != (graph.tasks,) or end.shape != begin.shape or not np.isfinite([begin, end]).all():
        return dict.fromkeys(BLOCKS, np.inf)
    first, then = graph.waits.T if graph.waits.size else np.zeros((2, 0), dtype=np.int64)
    result = dict.fromkeys(BLOCKS, 0.0)
    result["order"] = max(float((end[first] - begin[then]).max(initial=0.0)), float(-begin.min(initial=0.0)))
    result["computing"] = _computing(graph, begin, end)
    free = 0.0
    carried = np.zeros(graph.tasks, dtype=np.int64)
    limits = Limits(mesh.lasers, mesh.waveguides, load=None, fibres=mesh.scarce_fibres)
    seen: dict[tuple[int, int, bytes, bytes], tuple[float, float]] = {}
    for each in iteration.communications:
        last = each.begin + float(each.durations.sum())
        result["device"] = max(result["device"], free - each.begin)
        free = last
        early = float((begin[each.tasks] - each.begin).max(initial=0.0))
        result["window"] = max(result["window"], early, float((last - end[each.tasks]).max(initial=0.0)))
        # Calls of one size share one object, which is replayed once.
        key = (id(each.schedule), id(each.collective), each.durations.tobytes(), each.size.tobytes())
        if key not in seen:
            counts = violations(mesh, each.collective, limits, each.schedule, relays=True)
            seen[key] = _short(each, mesh.n, latency, delay, rate), float(sum(counts.values()))
        result["rounds"] = max(result["rounds"], seen[key][0])
        result["circuits"] = max(result["circuits"], seen[key][1])
        result["delivered"] = max(result["delivered"], _missing(graph, each))
        carried[each.tasks] += 1
    some = (graph.kind != COMPUTING) & (graph.amount > 0)
    result["delivered"] = max(result["delivered"], float((carried[some] != 1).sum()), float(carried[~some].sum()))
    return result


def _computing(graph: TaskGraph, begin: F64, end: F64) -> float:
    """How far computing tasks are too short, or overlap on their server [s]."""
    tasks = np.flatnonzero((graph.kind == COMPUTING) & (graph.server >= 0))
    worst = float((begin[tasks] + graph.amount[tasks] - end[tasks]).max(initial=0.0))
    order = tasks[np.lexsort((end[tasks], begin[tasks], graph.server[tasks]))]
    same = graph.server[order[1:]] == graph.server[order[:-1]]
    return max(worst, float((end[order[:-1]] - begin[order[1:]])[same].max(initial=0.0)))


def _short(each: Communication, n: int, latency: float, delay: float, rate: float) -> float:
    """How far rounds are too short for their latency, their change of circuits and their bytes [s]."""
    schedule, rounds = each.schedule, each.schedule.rounds
    if each.durations.shape != (rounds,) or each.size.shape != (each.collective.chunks,):
        return np.inf
    place = (schedule.transfer_round * n + schedule.transfer_source) * n + schedule.transfer_target
    pairs, inverse = np.unique(place, return_inverse=True)
    amount = np.bincount(inverse, each.size[schedule.transfer_chunk], pairs.size)
    connected = (schedule.circuit_round * n + schedule.circuit_source) * n + schedule.circuit_target
    known, lanes = np.unique(connected, return_counts=True)
    if not np.isin(pairs, known).all():
        return np.inf
    sending = amount / (lanes[np.searchsorted(known, pairs)] * rate)
    least = np.full(rounds, latency + delay)
    previous = np.zeros(0, dtype=np.int64)
    for r, now in enumerate(_circuits_of(schedule, rounds)):
        if r and np.array_equal(now, previous):
            least[r] = latency
        previous = now
    longest = np.zeros(rounds)
    np.maximum.at(longest, pairs // (n * n), sending)
    return float((least + longest - each.durations).max(initial=0.0))


def _circuits_of(schedule: RoundSchedule, rounds: int) -> Iterator[I64]:
    """The circuits of every round as one array each: sources, wavelengths, lengths of routes, and routes."""
    source, wave = schedule.circuit_source, schedule.circuit_wavelength
    order = np.lexsort((wave, source, schedule.circuit_round))
    cut = np.searchsorted(schedule.circuit_round[order], np.arange(rounds + 1))
    for a, b in zip(cut[:-1].tolist(), cut[1:].tolist(), strict=True):
        members = order[a:b]
        start, arcs = select(schedule.circuit_start, schedule.circuit_arcs, members)
        yield np.concatenate([source[members], wave[members], start, arcs])


def _missing(graph: TaskGraph, each: Communication) -> float:
    """Bytes by which the chunks fall short of the tasks; infinite for tasks of other kinds or vertices."""
    kinds = set(graph.kind[each.tasks].tolist())
    holders = each.collective.pre
    if kinds == {ALL_REDUCE} and each.tasks.size == 1:
        task = int(each.tasks[0])
        members = np.sort(graph.groups[graph.group[task]])
        everyone = np.column_stack(
            [np.repeat(np.arange(each.collective.chunks), members.size), np.tile(members, each.collective.chunks)]
        )
        whole = each.collective.summing and np.array_equal(holders, everyone)
        if not whole or not np.array_equal(each.collective.post, everyone):
            return np.inf
        return max(float(graph.amount[task] - each.size.sum()), 0.0)
    if kinds != {TRANSFER}:
        return np.inf
    n = each.collective.n
    held = np.zeros((n, n))
    source = np.full(each.collective.chunks, -1)
    source[holders[:, 0]] = holders[:, 1]
    if np.unique(holders[:, 0]).size < len(holders) or each.collective.summing:
        return np.inf
    np.add.at(
        held, (source[each.collective.post[:, 0]], each.collective.post[:, 1]), each.size[each.collective.post[:, 0]]
    )
    asked = np.zeros((n, n))
    np.add.at(asked, (graph.server[each.tasks], graph.target[each.tasks]), graph.amount[each.tasks])
    return float((asked - held).max(initial=0.0))

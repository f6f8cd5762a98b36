"""Schedules of jobs on a shared cluster: what is true of them, from NumPy alone.

Source  TopoOpt, section 5.6; appendix C (sharding, look-ahead)
Data    jobs j in the order of arrival: a_j arrival [s], k_j servers, w_j work [s], its duration on a network of its
        own
Given   H_j servers; g_j when it gets them, b_j when it begins, e_j when it ends [s]; pieces of its run, on each of
        which it is x >= 1 times as slow as on a network of its own

    size      H_j are k_j servers of the cluster
    overlap   no server is held by two jobs, from g to e
    early     a_j <= g_j <= b_j <= e_j
    order     g_1 <= g_2 <= ...: the queue is served in the order of arrival
    idle      the first job of the queue waits only while there are fewer than k_j free servers, or as many jobs as may
              be active
    work      the pieces of a run make up b_j to e_j, and sum (length / x) = w_j
    busy      the servers are held for sum_j k_j (e_j - g_j) seconds
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from opticoll.analysis.training.cluster_jobs import ClusterJob
    from opticoll.instances.topology import F64, I64


@dataclass(frozen=True, eq=False)
class ClusterSchedule:
    """When and where jobs run (see the module docstring).

    Parameters
    ----------
    jobs, servers
        The jobs in the order of arrival, and the number of servers of the cluster.
    held
        Servers of every job, in the order of its ring.
    granted, begun, ended
        g, b and e [s], ``(J,)``.
    piece_job, piece_from, piece_to, slowdown
        Job, begin and end [s], and x of every piece of a run, ``(P,)``.
    """

    jobs: tuple[ClusterJob, ...]
    servers: int
    held: tuple[I64, ...]
    granted: F64
    begun: F64
    ended: F64
    piece_job: I64
    piece_from: F64
    piece_to: F64
    slowdown: F64

    @cached_property
    def arrival(self) -> F64:
        """a, ``(J,)`` [s]."""
        return np.array([job.arrival for job in self.jobs])

    @cached_property
    def size(self) -> I64:
        """k, ``(J,)``."""
        return np.array([job.servers for job in self.jobs], dtype=np.int64)

    @property
    def utilisation(self) -> float:
        """Share of the servers' time, from the first arrival to the last end, that jobs hold."""
        held = float((self.size * (self.ended - self.granted)).sum())
        return held / (self.servers * float(self.ended.max() - self.arrival.min()))

    @cached_property
    def mean_slowdown(self) -> F64:
        """Running time of every job over its work: the mean of x over its iterations, ``(J,)``."""
        return (self.ended - self.begun) / np.array([job.work for job in self.jobs])


def residuals(schedule: ClusterSchedule, active: int | None = None) -> dict[str, float]:
    """Worst violation of every condition of the module docstring.

    Seconds for ``overlap``, ``early``, ``order`` and ``idle``; ``size`` is 0 or infinite; ``work`` and ``busy`` are
    relative. ``active`` is the largest number of jobs at a time; None: no limit.
    """
    granted, begun, ended = schedule.granted, schedule.begun, schedule.ended
    sized = all(
        held.size == job.servers == np.unique(held).size and held.min() >= 0 and held.max() < schedule.servers
        for job, held in zip(schedule.jobs, schedule.held, strict=True)
    )
    early = np.concatenate([schedule.arrival - granted, granted - begun, begun - ended])
    by_server = np.zeros(schedule.servers)
    for number, held in enumerate(schedule.held):
        by_server[held] += ended[number] - granted[number]
    total = float((schedule.size * (ended - granted)).sum())
    return {
        "size": 0.0 if sized else np.inf,
        "overlap": _overlap(schedule) if sized else np.inf,
        "early": max(float(early.max()), 0.0),
        "order": max(float((granted[:-1] - granted[1:]).max(initial=0.0)), 0.0),
        "idle": _idle(schedule, active),
        "work": _work(schedule),
        "busy": abs(float(by_server.sum()) - total) / max(total, np.finfo(float).tiny),
    }


def _overlap(schedule: ClusterSchedule) -> float:
    """Most seconds between the grant of a server and the end of the job that held it before."""
    worst = 0.0
    last = np.full(schedule.servers, -np.inf)
    for number in np.argsort(schedule.granted, kind="stable").tolist():
        held = schedule.held[number]
        worst = max(worst, float((last[held] - schedule.granted[number]).max()))
        last[held] = schedule.ended[number]
    return worst


def _idle(schedule: ClusterSchedule, active: int | None) -> float:
    """Most seconds for which the first job of the queue waits although it could have its servers."""
    granted, ended, worst = schedule.granted, schedule.ended, 0.0
    limit = np.inf if active is None else active
    for number, job in enumerate(schedule.jobs):
        first = max(job.arrival, float(granted[number - 1]) if number else job.arrival)
        until = float(granted[number])
        if not until > first:
            continue
        before = np.flatnonzero(granted[:number] <= first)
        times = np.unique(np.clip(np.concatenate([[first], ended[before]]), first, until))
        for begin, end in zip(times, [*times[1:].tolist(), until], strict=True):
            still = before[ended[before] > begin]
            free = schedule.servers - int(schedule.size[still].sum())
            if free >= job.servers and still.size < limit:
                worst = max(worst, float(end - begin))
    return worst


def _work(schedule: ClusterSchedule) -> float:
    """Worst relative difference between the work done and that of a job, or between its pieces and its run."""
    count = len(schedule.jobs)
    length = schedule.piece_to - schedule.piece_from
    if (length < 0).any() or (schedule.slowdown < 1 - 1e-12).any():
        return np.inf
    done = np.bincount(schedule.piece_job, length / schedule.slowdown, count)
    ran = np.bincount(schedule.piece_job, length, count)
    work, run = np.array([job.work for job in schedule.jobs]), schedule.ended - schedule.begun
    inside = (schedule.piece_from >= schedule.begun[schedule.piece_job]) & (
        schedule.piece_to <= schedule.ended[schedule.piece_job]
    )
    if not inside.all():
        return np.inf
    return float(max((np.abs(done - work) / work).max(), (np.abs(ran - run) / run).max()))

"""Jobs of a shared cluster, event by event: arrival, queue, placement, set-up and run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from opticoll.analysis.training.cluster_schedule import ClusterSchedule

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opticoll.analysis.training.cluster_jobs import ClusterJob
    from opticoll.instances.topology import F64, I64

    #: Numbers of the running jobs and their servers -> how many times as slow as alone each of them is.
    Slowdowns = Callable[[Sequence[int], Sequence[I64]], Sequence[float]]

PLACEMENTS = ("first", "random")
LOOK_AHEADS = ("none", "arrival", "sequence")


@dataclass
class _Running:
    """A job that holds servers: ``left`` seconds of work, ``rate`` of work done per second."""

    number: int
    held: I64
    begins: float
    left: float
    rate: float = 1.0
    pieces: list[tuple[float, float, float]] = field(default_factory=list)

    def ends(self, now: float) -> float:
        """When it ends if its rate stays."""
        return max(now, self.begins) + self.left / self.rate


def simulate_cluster(
    jobs: Sequence[ClusterJob],
    servers: int,
    *,
    slowdowns: Slowdowns | None = None,
    placement: str = "first",
    active: int | None = None,
    setup: float = 0.0,
    look_ahead: str = "none",
    seed: int = 0,
) -> ClusterSchedule:
    """Run jobs in the order of their arrival; the first one of the queue waits for servers, and the others behind it.

    Parameters
    ----------
    jobs, servers
        The jobs in the order of arrival, and the number of servers, enough for each.
    slowdowns
        How many times as slow as on a network of its own every running job is, whenever one begins or ends; None: all
        are as fast as alone, as on shards of their own.
    placement
        ``first``: the free servers of lowest numbers; ``random``: a random choice of the free servers.
    active
        Largest number of jobs at a time; None: no limit.
    setup
        Time to set up the circuits of a job [s].
    look_ahead
        When that may begin. ``none``: once the job has its servers. Otherwise on the second ports of its servers
        (appendix C), which are free since the job before on the same server began: from the ``arrival`` of the job, or,
        where the ``sequence`` is known beforehand, at any time.
    seed
        Seed of random placements.
    """
    draw = np.random.default_rng(seed)
    free, flipped = np.ones(servers, dtype=bool), np.full(servers, -np.inf)
    running: list[_Running] = []
    finished: dict[int, _Running] = {}
    granted, ended = np.zeros(len(jobs)), np.zeros(len(jobs))
    now, following = 0.0, 0
    while following < len(jobs) or running:
        while following < len(jobs) and jobs[following].arrival <= now:
            job = jobs[following]
            if int(free.sum()) < job.servers or (active is not None and len(running) >= active):
                break
            places = np.flatnonzero(free)
            held = places[: job.servers] if placement == "first" else draw.permutation(places)[: job.servers]
            known = {"none": now, "arrival": job.arrival, "sequence": -np.inf}[look_ahead]
            ready = max(known, now if look_ahead == "none" else float(flipped[held].max())) + setup
            free[held] = False
            flipped[held] = max(now, ready)
            granted[following] = now
            running.append(_Running(following, held, max(now, ready), job.work))
            following += 1
        _set_rates(running, now, slowdowns)
        times = [one.ends(now) for one in running]
        times += [one.begins for one in running if one.begins > now]
        if following < len(jobs) and jobs[following].arrival > now:
            times.append(jobs[following].arrival)
        after = min(times)
        for one in list(running):
            ends = one.ends(now) <= after
            _advance(one, now, after, ends=ends)
            if ends:
                running.remove(one)
                free[one.held] = True
                ended[one.number] = after
                finished[one.number] = one
        now = after
    return _schedule(jobs, servers, finished, granted, ended)


def _set_rates(running: list[_Running], now: float, slowdowns: Slowdowns | None) -> None:
    """Give every running job its rate among those that have begun."""
    begun = [one for one in running if one.begins <= now]
    slower = [1.0] * len(begun)
    if slowdowns is not None and begun:
        slower = list(slowdowns([one.number for one in begun], [one.held for one in begun]))
    for one, slow in zip(begun, slower, strict=True):
        one.rate = 1.0 / slow


def _advance(one: _Running, now: float, after: float, *, ends: bool) -> None:
    """Let a job work until ``after``."""
    begin = max(now, one.begins)
    if after <= begin:
        return
    one.left = 0.0 if ends else one.left - (after - begin) * one.rate
    slower = 1.0 / one.rate
    if one.pieces and one.pieces[-1][1:] == (begin, slower):
        begin = one.pieces.pop()[0]
    one.pieces.append((begin, after, slower))


def _schedule(
    jobs: Sequence[ClusterJob], servers: int, finished: dict[int, _Running], granted: F64, ended: F64
) -> ClusterSchedule:
    """The schedule of all jobs."""
    order = [finished[number] for number in range(len(jobs))]
    pieces = [(one.number, *piece) for one in order for piece in one.pieces]
    numbers, begin, end, slower = (np.array(column) for column in zip(*pieces, strict=True))
    return ClusterSchedule(
        tuple(jobs),
        servers,
        tuple(one.held for one in order),
        granted,
        np.array([one.begins for one in order]),
        ended,
        numbers.astype(np.int64),
        begin,
        end,
        slower,
    )

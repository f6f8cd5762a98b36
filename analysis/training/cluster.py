"""Training jobs that share a cluster: ``opticoll cluster``."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from opticoll.analysis.plots.style import counted
from opticoll.analysis.rendering import Listing, Printed
from opticoll.analysis.training.cluster_jobs import MIX, ClusterJob, draw_jobs
from opticoll.analysis.training.cluster_queue import LOOK_AHEADS, PLACEMENTS, simulate_cluster
from opticoll.analysis.training.cluster_schedule import ClusterSchedule, residuals
from opticoll.analysis.training.iteration import iteration
from opticoll.analysis.training.rack_uplinks import fair_rates
from opticoll.arguments import check_mapping, number, whole_number
from opticoll.errors import BadInput, refuse
from opticoll.instances.quantities import parse_rate
from opticoll.solvers.task import Fields

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from opticoll.instances.topology import F64, I64
    from opticoll.types import Rate, Seconds

#: Networks, and the specs of those of one job alone.
NETWORKS = {
    "topoopt": "circuits:n={n},degree={d}",
    "ideal-switch": "ideal-switch:n={n},capacity={d}",
    "fat-tree": "ideal-switch:n={n},capacity={d}",
    "oversubscribed-fat-tree": "ideal-switch:n={n},capacity={d}",
}
#: Bandwidth of TopoOpt over that of a fat-tree of similar cost, as section 5.5 of the paper implies it.
FAT_TREE = 5.7 / 1.4
#: Servers of a rack of the oversubscribed fat-tree, and their bandwidth over that of its uplinks.
RACK, OVERSUBSCRIPTION = 6, 2.0
#: Conditions whose violation is in seconds; relative to the mean duration of a job in the result.
_SECONDS = ("overlap", "early", "order", "idle")
#: Parts of the bandwidth at which iterations are simulated; in between, times are linear in the inverse.
_PARTS = (1.0, 0.8, 2 / 3, 0.5, 0.4, 1 / 3, 0.25, 0.2)


class ModelRow(Fields, frozen=True, kw_only=True):
    """Jobs of one model: their number, and the time of an iteration: alone, on average, and at most [s]."""

    model: str
    jobs: int
    alone_s: float
    mean_s: float
    most_s: float


class Cluster(Printed, Fields, frozen=True, kw_only=True):
    """What a simulated cluster did.

    ``mean_s`` and ``tail_s`` are the mean and the 99 % quantile of the time of a random iteration of a random job.
    ``wait_s`` is the mean time in the queue, ``waiting`` the share of jobs that wait; ``setup_s`` is the mean time
    between getting servers and beginning, ``delayed`` the share of jobs for which it is not 0. ``violation`` is the
    worst violation of the schedule's conditions.
    """

    network: str
    servers: int
    degree: int
    link: str
    job_servers: int
    jobs: int
    active: int | None
    load: float | None
    seed: int
    mean_s: float
    tail_s: float
    wait_s: float
    waiting: float
    setup_s: float
    delayed: float
    utilisation: float
    violation: float
    models: list[ModelRow]

    @property
    def _title(self) -> str:
        ports = counted(self.degree, "interface")
        return f"cluster of {self.servers} servers with {ports} of {self.link}, {self.network}"

    def lines(self) -> dict[str, str]:
        """What the cluster did, in words, by name of the line."""
        kept = f"{self.active} active" if self.active is not None else f"load {self.load:.3g}"
        queue = f"{100 * self.waiting:.3g} % of the jobs wait, {self.wait_s:.6g} s on average"
        return {
            "jobs": f"{self.jobs} of {self.job_servers} servers, {kept}",
            "iteration": f"{1e3 * self.mean_s:.6g} ms on average, {1e3 * self.tail_s:.6g} ms at 99 %",
            **({"queue": queue} if self.active is None else {}),
            "set-up": f"delays {100 * self.delayed:.3g} % of the jobs, {self.setup_s:.6g} s on average",
            "held": f"{100 * self.utilisation:.4g} % of the servers' time",
            "check": f"worst violation {self.violation:.2g}",
        }

    def tables(self) -> list[Listing]:
        """A row for every model."""
        return [Listing(None, ["model", "jobs", "alone_s", "mean_s", "most_s"], self.models)]


@cache
def alone(model: str, network: str, servers: int, degree: int, link: float) -> float:
    """Simulated time of an iteration of a job on a network of its own [s]; ``link`` in bits/s."""
    spec = NETWORKS[network].format(n=servers, d=degree)
    return iteration(model, spec, link=f"{link / 1e9:.12g}Gb/s", section="5.6").seconds


@cache  # a simulation asks for a few parts thousands of times
def slowed(model: str, servers: int, degree: int, link: float, part: float) -> float:
    """How many times as long an iteration takes behind a switch with a part of the bandwidth."""
    inverse = [1.0 / one for one in _PARTS]
    times = [alone(model, "ideal-switch", servers, degree, link * one) for one in _PARTS]
    return float(np.interp(1.0 / part, inverse, times)) / times[0]


def cluster(
    network: str = "topoopt",
    *,
    servers: int = 432,
    degree: int = 8,
    link: Rate = "100Gb/s",
    job_servers: int = 16,
    jobs: int = 400,
    load: float | None = None,
    active: int | None = None,
    work: Seconds = 86400.0,
    mix: Mapping[str, float] | None = None,
    placement: str = "first",
    setup: Seconds = 0.0,
    look_ahead: str = "none",
    seed: int = 0,
) -> Cluster:
    """Simulate jobs that arrive at a cluster, wait in one queue, get free servers and train (TopoOpt, section 5.6).

    Parameters
    ----------
    network
        ``topoopt``: every job has a shard of its own, with TopologyFinder's circuits; ``ideal-switch``; ``fat-tree``:
        of full bisection and of bandwidth smaller by :data:`FAT_TREE`; ``oversubscribed-fat-tree``: of full bandwidth
        up to the racks (:data:`RACK`).
    servers, degree, link
        Servers, interfaces of each, and their rate.
    job_servers, jobs
        Servers of a job, and number of jobs.
    load
        Work that arrives per time, over that which the servers can do at once; 0.6 unless ``active`` is given.
    active
        Keep this many jobs active, all of which are there from the beginning, instead of letting them arrive.
    work, mix
        Mean duration of a job on a network of its own [s], and as for
        :func:`opticoll.analysis.training.cluster_jobs.draw_jobs`.
    placement, setup, look_ahead
        As for :func:`opticoll.analysis.training.cluster_queue.simulate_cluster`.
    seed
        Seed of jobs and placements.

    Returns
    -------
    Cluster
        Times of iterations, the queue and the servers, checked.

    Raises
    ------
    BadInput
        For settings out of range, or unknown names.
    """
    if mix is not None:
        check_mapping(mix, "cluster: mix")
    for name, value, least in (
        ("servers", servers, 2),
        ("degree", degree, 1),
        ("job_servers", job_servers, 2),
        ("jobs", jobs, 1),
        ("seed", seed, 0),
        ("active", 1 if active is None else active, 1),
    ):
        whole_number(value, f"cluster: {name}", least)
    for name, size, positive in (
        ("work", work, True),
        ("load", 1.0 if load is None else load, True),
        ("setup", setup, False),
    ):
        number(size, f"cluster: {name}", positive=positive)
    names = {
        "network": (network, NETWORKS),
        "placement": (placement, PLACEMENTS),
        "look_ahead": (look_ahead, LOOK_AHEADS),
    }
    for name, (word, choices) in names.items():
        if word not in tuple(choices):
            refuse("cluster", f"{name} {word!r}; use one of {', '.join(choices)}")
    if load is not None and active is not None:
        msg = "cluster: load and active exclude each other; give the load of arriving jobs, or the number kept active"
        raise BadInput(msg)
    if job_servers > servers or setup < 0:
        msg = (
            f"cluster: jobs of {job_servers} of {servers} servers, a set-up of {setup} s; use at most all, at least 0 s"
        )
        raise BadInput(msg)
    rate = parse_rate(link, "link") / (FAT_TREE if network == "fat-tree" else 1.0)
    offered = None if active is not None else 0.6 if load is None else load
    interval = 0.0 if offered is None else work * job_servers / (offered * servers)
    drawn = draw_jobs(jobs, servers=job_servers, work=work, interval=interval, mix=mix, seed=seed)
    if active is not None:
        drawn = tuple(ClusterJob(one.model, one.servers, 0.0, one.work) for one in drawn)
    shared = None
    if network == "oversubscribed-fat-tree":
        shared = _uplinks([job.model for job in drawn], servers, degree, rate)
    schedule = simulate_cluster(
        drawn,
        servers,
        slowdowns=shared,
        placement=placement,
        active=active,
        setup=setup,
        look_ahead=look_ahead,
        seed=seed,
    )
    own = np.array([alone(job.model, network, job_servers, degree, rate) for job in drawn])
    mean, tail = statistics(schedule, own)
    wait = schedule.granted - schedule.arrival
    times = own * schedule.mean_slowdown
    rows = []
    for model in MIX if mix is None else mix:
        which = np.array([job.model == model for job in drawn])
        if which.any():
            rows.append(
                ModelRow(
                    model=model,
                    jobs=int(which.sum()),
                    alone_s=float(own[which][0]),
                    mean_s=float(times[which].mean()),
                    most_s=float(times[which].max()),
                )
            )
    violations = residuals(schedule, active)
    scaled = [value / work if name in _SECONDS else value for name, value in violations.items()]
    return Cluster(
        network=network,
        servers=servers,
        degree=degree,
        link=link,
        job_servers=job_servers,
        jobs=jobs,
        active=active,
        load=offered,
        seed=seed,
        mean_s=mean,
        tail_s=tail,
        wait_s=float(wait.mean()),
        waiting=float((wait > 0).mean()),
        setup_s=float((schedule.begun - schedule.granted).mean()),
        delayed=float((schedule.begun > schedule.granted).mean()),
        utilisation=schedule.utilisation,
        violation=max(scaled),
        models=rows,
    )


def statistics(schedule: ClusterSchedule, own: F64, share: float = 0.99) -> tuple[float, float]:
    """Mean and quantile of the time of a random iteration of a random job [s]; ``own`` are times alone, ``(J,)``."""
    work = np.array([job.work for job in schedule.jobs])
    done = (schedule.piece_to - schedule.piece_from) / schedule.slowdown
    weight = done / work[schedule.piece_job] / len(schedule.jobs)
    times = own[schedule.piece_job] * schedule.slowdown
    order = np.argsort(times, kind="stable")
    passed = np.cumsum(weight[order])
    place = int(np.searchsorted(passed, share * passed[-1] * (1 - 1e-12)))
    return float((weight * times).sum() / weight.sum()), float(times[order][place])


def _uplinks(
    models: list[str], servers: int, degree: int, rate: float
) -> Callable[[Sequence[int], Sequence[I64]], Sequence[float]]:
    """How much the uplinks of racks slow jobs down."""

    def slowdowns(numbers: Sequence[int], held: Sequence[I64]) -> list[float]:
        rates = fair_rates(held, servers, RACK, OVERSUBSCRIPTION)
        return [
            slowed(models[number], one.size, degree, rate, max(round(part, 6), _PARTS[-1]))
            for number, one, part in zip(numbers, held, rates.tolist(), strict=True)
        ]

    return slowdowns

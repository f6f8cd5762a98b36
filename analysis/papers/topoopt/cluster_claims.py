"""Claims of the TopoOpt paper about a shared cluster, by simulating its jobs (section 5.6, appendix C)."""

from __future__ import annotations

import math
from functools import cache
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from opticoll.analysis.ledger.claim import Measurement, Measures
from opticoll.analysis.ledger.printed_number import similar
from opticoll.analysis.ledger.readings import Readings
from opticoll.analysis.training.cluster import cluster
from opticoll.analysis.training.cluster_jobs import MIX
from opticoll.instances.training.training_jobs import shared_cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opticoll.analysis.ledger.claim import Laboratory
    from opticoll.instances.training.training_jobs import PublishedIterations


MEASURES = Measures("topoopt")
SERVERS, DEGREE, LINK = 432, 8, 100
#: Jobs that are simulated at every load.
JOBS = 2000
#: Largest violation of a schedule's conditions.
CHECKED = 1e-6
#: Standard errors of a mean in which 99 % of the samples lie.
NINETY_NINE = 2.576
#: Mean duration of a job [s] that leaves 10 % above 96 hours, and 79 % above 10: section 2.2 has 10 % and "most".
DURATION = 96 * 3600 / math.log(10)
LOADS = [5, 10, 15, 20, 27]
_SCOPE = {"servers": SERVERS, "degree": DEGREE, "link [Gb/s]": LINK, "active jobs": LOADS}
#: Shares of the models: those that are printed, and those of all published iterations with d = 8.
_MIXES = ("as printed", "as in the published data")
_REASON = (
    "Shards do not disturb each other, so the load matters only through the draw of the jobs: the published numbers "
    "are of 25 to 135 of them"
)


def published(network: str, *, degree: int = 8, jobs: int = 0, model: str = "") -> list[PublishedIterations]:
    """Published iterations on a network, of all loads and models unless given; the ideal switch has one link."""
    key = (network, degree if network == "topoopt" else 1)
    of_network = (one for one in shared_cluster() if (one.network, one.degree) == key)
    return [one for one in of_network if jobs in (0, one.jobs) and model in ("", one.model)]


def published_mean(rows: Sequence[PublishedIterations]) -> float:
    """Mean over all published iterations [s]."""
    return sum(one.samples * one.mean for one in rows) / sum(one.samples for one in rows)


def published_shares() -> dict[str, float]:
    """Shares of the models among the published iterations of TopoOpt with d = 8."""
    rows = published("topoopt")
    total = sum(one.samples for one in rows)
    return {model: sum(one.samples for one in rows if one.model == model) / total for model in MIX}


@cache
def drawn(
    network: str, servers: int, degree: int, link: int, active: int, kept: str, mix: str, seed: int
) -> tuple[np.ndarray, ...]:
    """Numbers of jobs and iteration times [s] of the models, ``(m,)`` each."""
    load = 16 * active / servers
    result = cluster(
        network,
        servers=servers,
        degree=degree,
        link=f"{link}Gb/s",
        jobs=JOBS,
        active=active if kept == "kept active" else None,
        load=None if kept == "kept active" else min(load, 0.95),
        mix=MIX if mix == _MIXES[0] else published_shares(),
        seed=seed,
    )
    if result.violation > CHECKED:
        msg = f"shared cluster: the schedule violates its conditions by {result.violation:.2g}"
        raise ArithmeticError(msg)
    return np.array([row.jobs for row in result.models]), np.array([row.mean_s for row in result.models])


def _means(network: str) -> Callable[[Laboratory], Measurement]:
    """Compare published means with those of as many simulated jobs."""

    def measure(laboratory: Laboratory) -> Measurement:
        servers, degree, link, loads = laboratory.scope.values(*_SCOPE)
        choices = Readings("jobs; shares of the models; average")
        seed, ranges = laboratory.seeds(1)[0], []
        for kept, mix, average in product(("kept active", "arriving"), _MIXES, ("over jobs", "over iterations")):
            means, holds = {}, []
            for active in loads:
                jobs, times = drawn(network, servers, degree, link, active, kept, mix, seed)
                weight = jobs if average == "over jobs" else jobs / times
                mean = float(np.average(times, weights=weight))
                deviation = math.sqrt(float(np.average((times - mean) ** 2, weights=weight)))
                rows = published(network, jobs=active)
                ranges.append(NINETY_NINE * deviation / math.sqrt(sum(one.samples for one in rows)))
                holds.append(abs(published_mean(rows) - mean) <= ranges[-1])
                means[str(active)] = round(1e3 * mean, 2)
            choices.add((kept, mix, average), all(holds), means)
        pooled = 1e3 * published_mean([one for active in loads for one in published(network, jobs=active)])
        return choices.measurement(
            (f"{network}, {servers} servers, d = {degree}",),
            f"{_REASON}. The range of 99 % of their means is {1e3 * ranges[0]:.1f} ms to either side with "
            f"{loads[0]} active jobs, {1e3 * ranges[len(loads) - 1]:.1f} with {loads[-1]}. All published iterations "
            f"have a mean of {pooled:.1f} ms. Nothing is fitted.",
            choices.agreement,
        )

    return measure


def _tails(laboratory: Laboratory) -> Measurement:
    """Compare published 99 % tails with simulated ones."""
    servers, degree, link, loads = laboratory.scope.values(*_SCOPE)
    choices = Readings("jobs; shares of the models; average")
    seed = laboratory.seeds(1)[0]
    for kept, mix, average in product(("kept active", "arriving"), _MIXES, ("over jobs", "over iterations")):
        tails, holds = {}, []
        for active in loads:
            jobs, times = drawn("topoopt", servers, degree, link, active, kept, mix, seed)
            ours = _quantile(times, jobs if average == "over jobs" else jobs / times)
            rows = published("topoopt", jobs=active)
            real = _quantile(np.array([one.most for one in rows]), np.array([one.samples for one in rows]))
            holds.append(similar(ours / real))
            tails[str(active)] = round(1e3 * ours, 2)
        choices.add((kept, mix, average), all(holds), tails)
    return choices.measurement(
        (f"topoopt, {servers} servers, d = {degree}",),
        f"{_REASON}. The tail is the time of CANDLE, whose packet headers and start-up are left out of our model.",
        choices.agreement,
    )


def _quantile(times: np.ndarray, weights: np.ndarray, share: float = 0.99) -> float:
    """The time that this share of the weight does not exceed [s]."""
    order = np.argsort(times)
    passed = np.cumsum(weights[order]) / weights.sum()
    return float(times[order][int(np.searchsorted(passed, share * (1 - 1e-12)))])


MEASURES.of("published-means")(_means("topoopt"))


MEASURES.of("published-means-ideal")(_means("ideal-switch"))


MEASURES.of("published-tails")(_tails)


@MEASURES.of("look-ahead")
def _look_ahead(laboratory: Laboratory) -> Measurement:
    servers, minutes, loads, share = laboratory.scope.values("servers", "several [min]", "loads", "share of the jobs")
    choices, delays, natural = Readings("jobs are known; set-up; jobs"), [], []
    seed = laboratory.seeds(1)[0]
    known = {"beforehand": "sequence", "when they arrive": "arrival"}
    for (words, look), several, load in product(known.items(), (minutes, 10), (*loads, None)):
        result = cluster(
            "topoopt",
            servers=servers,
            jobs=JOBS,
            load=load,
            active=None if load else servers // 16,
            work=DURATION,
            setup=60.0 * several,
            look_ahead=look,
            seed=seed,
        )
        if look == "sequence":
            delays.append(result.setup_s)
            natural += [result.delayed] if several == minutes else []
        arriving = f"arriving, load {load}" if load else f"{servers // 16} kept active"
        tried = (words, "several minutes" if several == minutes else f"{several} min", arriving)
        choices.add(tried, result.delayed <= 1 - share, round(100 * result.delayed, 3))
    return choices.measurement(
        (f"topoopt, {servers} servers",),
        "Share of the jobs [%] that wait for their circuits. Durations are exponential with a mean of "
        f"{DURATION / 3600:.1f} h: 10 % last over 96 hours, 79 % over 10. Only a job that follows one shorter than the "
        f"set-up waits. If jobs are known beforehand, the mean delay is at most {max(delays):.3g} s. If they are known "
        "only when they arrive, all that find free servers wait.",
        {"jobs delayed, at most [%]": round(100 * max(natural), 3)},
    )

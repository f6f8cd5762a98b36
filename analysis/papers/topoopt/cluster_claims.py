"""Claims of the TopoOpt paper about a shared cluster, by simulating its jobs (section 5.6, appendix C)."""

from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING

from opticoll.analysis.ledger.claim import Measurement, Measures
from opticoll.analysis.ledger.readings import Readings
from opticoll.analysis.training.cluster import cluster
from opticoll.instances.training.training_jobs import shared_cluster

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opticoll.analysis.ledger.claim import Laboratory
    from opticoll.instances.training.training_jobs import PublishedIterations


MEASURES = Measures("topoopt")
#: Jobs that are simulated at every load.
JOBS = 2000
#: Mean duration of a job [s] that leaves 10 % above 96 hours, and 79 % above 10: section 2.2 has 10 % and "most".
DURATION = 96 * 3600 / math.log(10)
LOADS = [5, 10, 15, 20, 27]


def published(network: str, *, degree: int = 8, jobs: int = 0, model: str = "") -> list[PublishedIterations]:
    """Published iterations on a network, of all loads and models unless given; the ideal switch has one link."""
    key = (network, degree if network == "topoopt" else 1)
    of_network = (one for one in shared_cluster() if (one.network, one.degree) == key)
    return [one for one in of_network if jobs in (0, one.jobs) and model in ("", one.model)]


def published_mean(rows: Sequence[PublishedIterations]) -> float:
    """Mean over all published iterations [s]."""
    return sum(one.samples * one.mean for one in rows) / sum(one.samples for one in rows)


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

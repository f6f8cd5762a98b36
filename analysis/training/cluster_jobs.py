"""Training jobs that arrive at a shared cluster, as in section 5.6 of the TopoOpt paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import refuse

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Shares of the models among the jobs: section 5.6.
MIX = {"dlrm": 0.4, "bert": 0.3, "candle": 0.2, "vgg": 0.1}


@dataclass(frozen=True)
class ClusterJob:
    """A job of ``servers`` servers that arrives at ``arrival`` and takes ``work`` seconds on a network of its own."""

    model: str
    servers: int
    arrival: float
    work: float


def draw_jobs(
    count: int,
    *,
    servers: int,
    work: float,
    interval: float,
    mix: Mapping[str, float] | None = None,
    seed: int = 0,
) -> tuple[ClusterJob, ...]:
    """Draw jobs in the order of their arrival; their durations do not depend on their models.

    The models have their shares of the jobs up to rounding (largest remainders), in random order.

    Parameters
    ----------
    count, servers
        Number of jobs, and of servers of each.
    work
        Mean duration of a job on a network of its own, exponentially distributed [s].
    interval
        Mean time between two arrivals, exponentially distributed [s]; 0: all arrive at time 0.
    mix
        Weights of the models; those of section 5.6 if None.
    seed
        Seed of the draws.

    Raises
    ------
    BadInput
        For weights that are negative or all 0.
    """
    weights = dict(MIX if mix is None else mix)
    values = np.array(list(weights.values()), dtype=np.float64)
    if not np.isfinite(values).all() or (values < 0).any() or not values.sum() > 0:
        refuse("jobs", f"weights {weights}; give at least one model a positive weight, and none a negative one")
    draw = np.random.default_rng(seed)
    wanted = count * values / values.sum()
    number = np.floor(wanted).astype(np.int64)
    more = np.argsort(-(wanted - number), kind="stable")[: count - int(number.sum())]
    number[more] += 1
    models = draw.permutation(np.repeat(list(weights), number)).tolist()
    arrivals = np.cumsum(draw.exponential(1.0, count)) * interval
    lasting = draw.exponential(work, count)
    rows = zip(models, arrivals.tolist(), lasting.tolist(), strict=True)
    return tuple(ClusterJob(model, servers, arrival, seconds) for model, arrival, seconds in rows)

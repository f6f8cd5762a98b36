"""Training jobs that arrive at a shared cluster, as in section 5.6 of the TopoOpt paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from opticoll.arguments import whole_number
from opticoll.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Shares of the models among the jobs: section 5.6.
MIX = {"dlrm": 0.4, "bert": 0.3, "candle": 0.2, "vgg": 0.1}
DURATIONS = ("exponential", "fixed")


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
    durations: str = "exponential",
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
        Mean duration of a job on a network of its own [s].
    interval
        Mean time between two arrivals, exponentially distributed [s]; 0: all arrive at time 0.
    durations
        ``exponential``, or ``fixed``: all the same.
    mix
        Weights of the models; those of section 5.6 if None.
    seed
        Seed of the draws.

    Raises
    ------
    BadInput
        For numbers out of range, unknown ``durations``, or weights that are negative or all 0.
    """
    whole_number(count, "jobs: jobs", 1)
    whole_number(servers, "jobs: servers of a job", 2)
    weights = dict(MIX if mix is None else mix)
    values = np.array(list(weights.values()), dtype=np.float64)
    if not np.isfinite(values).all() or (values < 0).any() or not values.sum() > 0:
        msg = f"jobs: weights {weights}; give at least one model a positive weight, and none a negative one"
        raise BadInput(msg)
    if not 0 < work < np.inf or not 0 <= interval < np.inf:
        msg = f"jobs: mean duration {work} s, mean interval {interval} s; use a positive and a nonnegative number"
        raise BadInput(msg)
    if durations not in DURATIONS:
        msg = f"jobs: durations {durations!r}; use one of {', '.join(DURATIONS)}"
        raise BadInput(msg)
    draw = np.random.default_rng(seed)
    wanted = count * values / values.sum()
    number = np.floor(wanted).astype(np.int64)
    more = np.argsort(-(wanted - number), kind="stable")[: count - int(number.sum())]
    number[more] += 1
    models = draw.permutation(np.repeat(list(weights), number)).tolist()
    arrivals = np.cumsum(draw.exponential(1.0, count)) * interval
    lasting = draw.exponential(work, count) if durations == "exponential" else np.full(count, work)
    rows = zip(models, arrivals.tolist(), lasting.tolist(), strict=True)
    return tuple(ClusterJob(model, servers, arrival, seconds) for model, arrival, seconds in rows)

"""Traffic, weights and times of the parts of a model, by the way in which they are placed."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import NotApplicable, refuse
from opticoll.formulations.parameters import Parameter
from opticoll.formulations.topoopt.circuit_design import server_pool
from opticoll.formulations.topoopt.forwarding import travelled
from opticoll.instances.servers import AllReduceGroup, ServerPool
from opticoll.instances.training.training_jobs import JOBS, measured_kinds, traffic_of, training_job

if TYPE_CHECKING:
    from collections.abc import Callable

    from opticoll.formulations.topoopt.strategy import Plane
    from opticoll.instances.topology import F64, I64, Mask
    from opticoll.instances.training.training_jobs import Traffic, TrainingJob

#: Bandwidth of an interface [bytes/s]: 100 Gb/s.
BANDWIDTH = 12.5e9
#: Maximum number of servers, which limits the size of the traffic matrices of all ways.
MOST_SERVERS = 512
#: Parameters of ``topoopt.strategy``.
PARAMETERS = (
    Parameter("bandwidth", float, default=BANDWIDTH, help="bandwidth of an interface [bytes/s]", least=0),
    Parameter("memory", float, default=0.0, help="memory of a server for weights [GiB]; 0: no limit", least=0),
    Parameter(
        "weight_bytes",
        float,
        default=8.0,
        help="bytes per weight, including its gradient",
        least=0,
        only_with={"memory": ()},
    ),
    Parameter("computing", float, default=0.0, help="C of Eq. (1) [s], in addition to the operators", least=0),
    Parameter("alpha", float, default=0.0, help="slow-down by forwarding; 0: the minimum over all topologies", least=0),
    Parameter(
        "operators",
        str,
        default="list-1",
        help="layers of List 1, or operators with the authors' times",
        choices=("list-1", "measured"),
    ),
)


def prepared(
    cls: type[Plane],
    instance: object,
    *,
    bandwidth: float,
    memory: float,
    weight_bytes: float,
    computing: float,
    alpha: float,
    operators: str,
) -> Plane:
    """The problem on a pool of servers with the traffic of a training job.

    Raises
    ------
    NotApplicable
        For other traffic, too many servers, parameters of 0, or too little memory for any strategy.
    """
    pool = server_pool(instance, cls.name)
    family = dict(pool.parameters)
    name = str(family.get("traffic", ""))
    if name not in JOBS:
        msg = f"{cls.name}: the traffic of {pool.spec} is not a training job; use traffic= one of {', '.join(JOBS)}"
        raise NotApplicable(msg)
    if pool.n > MOST_SERVERS:
        msg = f"{cls.name}: the traffic of {pool.n} servers is too large to list; use at most {MOST_SERVERS}"
        raise NotApplicable(msg)
    for key, number in (("bandwidth", bandwidth), ("weight_bytes", weight_bytes)):
        if not number:
            refuse(cls.name, f"{key}=0; use a number above 0", NotApplicable)
    given_job = name, str(family.get("section") or "5.3"), int(family.get("batch") or 0)
    times: tuple[dict[int, float], ...] = ()
    if operators == "measured":
        result, rest = measured_kinds(*given_job, pool.n)
        kinds, count = tuple(kind.job for kind in result), [kind.count for kind in result]
        times = tuple(kind.seconds for kind in result)
        computing += rest
    else:
        kinds, count = parts_of_job(training_job(*given_job))
    divisors = [s for s in range(2, pool.n + 1) if pool.n % s == 0]
    ways = ("replicated", "placed", *(f"shards={s}" for s in divisors))
    data = cls(
        pool,
        kinds,
        np.array(count, dtype=np.int64),
        ways,
        (0, 0, *divisors),
        bandwidth,
        memory * 2**30,
        weight_bytes,
        computing,
        alpha,
        times,
    )
    least = float(data.count @ np.where(data.allowed, data.held, np.inf).min(axis=1))
    if 0 < data.memory < least:
        msg = (
            f"{cls.name}: {name} needs at least {least / 2**30:.4g} GiB per server; raise memory, or set 0 for no limit"
        )
        raise NotApplicable(msg)
    return data


def allowed_ways(data: Plane) -> Mask:
    """Whether a kind can be placed in a way, ``(K, C)``."""
    rows = []
    for kind in data.kinds:
        split = bool(kind.layers) and kind.layers[0].split
        rows.append(
            [
                way == "replicated" or (way == "placed" and bool(kind.tables)) or (s > 0 and split)
                for way, s in zip(data.ways, data.sharding, strict=True)
            ]
        )
    possible = np.array(rows, dtype=bool)
    for k, times in enumerate(data.measured):
        possible[k] &= [s in times for s in data.sharding]
        possible[k, 0] &= not data.kinds[k].tables
    return possible


def computing_times(data: Plane) -> F64:
    """t_kc [s]; 0 if not allowed."""
    values = np.zeros(data.allowed.shape)
    for k, times in enumerate(data.measured):
        values[k] = [times.get(s, 0.0) for s in data.sharding]
    return np.where(data.allowed, values, 0.0)


def traffic_of_part(data: Plane, kind: int, way: int) -> Traffic:
    """Point-to-point bytes, ``(n, n)``, and groups of one part."""
    job = data.kinds[kind]
    if data.ways[way] == "replicated":
        return traffic_of(job, data.pool.n, "data")
    return traffic_of(job, data.pool.n, "hybrid", data.sharding[way] or 2)


def traffic_patterns(data: Plane) -> dict[tuple[int, int], Traffic]:
    """Traffic of every allowed kind and way."""
    return {(k, c): data.traffic(k, c) for k, c in np.argwhere(data.allowed).tolist()}


def _of_patterns(data: Plane, number: Callable[[Traffic], float]) -> F64:
    """A number of the traffic of every kind and way, ``(K, C)``; 0 if not allowed."""
    values = np.zeros(data.allowed.shape)
    for at, traffic in data.patterns.items():
        values[at] = number(traffic)
    return values


def reduced_bytes(data: Plane) -> F64:
    """R_kc [bytes]: k servers that sum w numbers of 4 bytes send 8 (k - 1) w, a whole number."""
    return _of_patterns(data, lambda traffic: round(sum(group.total for group in traffic[1])))


def direct_bytes(data: Plane) -> F64:
    """A_kc [bytes]."""
    return _of_patterns(data, lambda traffic: traffic[0].sum())


def byte_hops(data: Plane) -> F64:
    """alpha_c A_kc [bytes]: point-to-point byte-hops."""
    if data.alpha > 0:
        return data.alpha * data.direct
    return _of_patterns(data, lambda traffic: travelled(traffic[0], data.pool.degree))


def time_of_part(data: Plane) -> F64:
    """Time of one part [s], ``(K, C)``; 0 if not allowed."""
    return np.asarray(data.work + (data.reduced + data.hops) / (data.pool.n * data.pool.degree * data.bandwidth))


def held_bytes(data: Plane) -> F64:
    """W_kc [bytes]."""
    values = np.zeros(data.allowed.shape)
    for k, c in data.patterns:
        values[k, c] = float(data.weights(k, c)) * data.weight_bytes
    return values


def weights_of_part(data: Plane, k: int, c: int) -> Fraction:
    """Weights of one part on the fullest server."""
    kind = data.kinds[k]
    if data.ways[c] == "placed":
        return Fraction(max(-(-t.count // data.pool.n) * t.rows * t.columns for t in kind.tables))
    return Fraction(kind.dense_weights + kind.table_weights) / (data.sharding[c] or 1)


def job_pool(data: Plane, x: I64) -> ServerPool:
    """Build the pool with the traffic of a strategy, ``(K, C)``; groups with the same members are merged."""
    matrix = np.zeros((data.pool.n, data.pool.n))
    together: dict[tuple[int, ...], float] = {}
    for (k, c), (part, groups) in data.patterns.items():
        if x[k, c]:
            matrix += x[k, c] * part
            for group in groups:
                together[group.members] = together.get(group.members, 0.0) + float(x[k, c]) * group.transfer
    return ServerPool(
        data.pool.n, data.pool.degree, matrix, groups=[AllReduceGroup(m, size) for m, size in together.items()]
    )


def parts_of_job(job: TrainingJob) -> tuple[tuple[TrainingJob, ...], list[int]]:
    """The different layers of a job and its tables, each as a job of its own, and how often the job has them."""
    bare = replace(job, layers=(), tables=())
    layers = list(dict.fromkeys(job.layers))
    kinds = [replace(bare, layers=(one,)) for one in layers] + [replace(bare, tables=(one,)) for one in job.tables]
    return tuple(kinds), [job.layers.count(one) for one in layers] + [1] * len(job.tables)

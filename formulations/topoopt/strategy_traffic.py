"""Traffic, weights and times of the parts of a model, by the way in which they are placed."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.topoopt.forwarding import travelled
from opticoll.instances.servers import AllReduceGroup, ServerPool
from opticoll.instances.training.training_jobs import traffic_of

if TYPE_CHECKING:
    from opticoll.formulations.topoopt.strategy import Plane
    from opticoll.instances.topology import F64, I64, Mask
    from opticoll.instances.training.training_jobs import Traffic, TrainingJob


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


def reduced_bytes(data: Plane) -> F64:
    """R_kc [bytes]: k servers that sum w numbers of 4 bytes send 8 (k - 1) w, a whole number."""
    values = np.zeros(data.allowed.shape)
    for (k, c), (_, groups) in data.patterns.items():
        values[k, c] = round(sum(group.total for group in groups))
    return values


def direct_bytes(data: Plane) -> F64:
    """A_kc [bytes]."""
    values = np.zeros(data.allowed.shape)
    for (k, c), (matrix, _) in data.patterns.items():
        values[k, c] = matrix.sum()
    return values


def byte_hops(data: Plane) -> F64:
    """alpha_c A_kc [bytes]: point-to-point byte-hops."""
    if data.alpha > 0:
        return data.alpha * data.direct
    values = np.zeros(data.allowed.shape)
    for (k, c), (matrix, _) in data.patterns.items():
        values[k, c] = travelled(matrix, data.pool.degree)
    return values


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

"""Solutions of ``sipml.placement``: arrays, earliest starts, and what they say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import NotApplicable, refuse
from opticoll.formulations.model import of_kind
from opticoll.formulations.parameters import Parameter
from opticoll.formulations.variables import Array, Axis, members
from opticoll.instances.families.op_graphs import OpGraph

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from opticoll.formulations.sipml.placement import Placement
    from opticoll.instances.topology import F64, I64
    from opticoll.types import Json

RULES = ("distance", "degree")
PARAMETERS = (
    Parameter("k", int, default=4, help="GPUs per group (model parallel)", least=1),
    Parameter("degree", int, default=3, help="circuits per GPU, D", least=0),
    Parameter("replicas", int, 2, help="groups (data parallel); with more than one, Delta = D - 1", least=1),
    Parameter(
        "rule", str, default="distance", help="the paper's distance on a circle, or the degree alone", choices=RULES
    ),
    Parameter("bandwidth", float, 0.0, help="bytes/s between two GPUs; 0: communication takes no time", least=0),
    Parameter("memory", float, default=0.0, help="memory of a GPU [GiB]; 0: no limit", least=0),
    Parameter("states", float, 2.0, help="copies of the parameters, including gradients and optimizer", least=0),
)
#: Maximum number of sub-operations whose pairs are listed to estimate a size.
MOST_LISTED = 2000


def prepared(
    cls: type[Placement],
    instance: object,
    *,
    k: int,
    degree: int,
    replicas: int,
    rule: str,
    bandwidth: float,
    memory: float,
    states: float,
) -> Placement:
    """The problem on a computation graph.

    Raises
    ------
    NotApplicable
        For anything else, too few circuits or too many GPUs, and memory that cannot hold the sub-operations.
    """
    name = cls.name
    instance = of_kind(OpGraph, instance, name, "a computation graph, op-graph:model=...,layers=...,parts=...")
    ring = int(replicas > 1)
    if degree < ring + (k > 1):
        reason = "one circuit goes to the next group" if ring else "a GPU needs a circuit"
        refuse(name, f"degree={degree}; {reason}, so use at least {ring + (k > 1)}", NotApplicable)
    if k > instance.n:
        msg = f"{name}: a group of k={k} GPUs for {instance.n} sub-operations; use k={instance.n}, or more parts"
        raise NotApplicable(msg)
    data = cls(instance, k, min(degree - ring, k - 1), rule, bandwidth, replicas, memory * 2**30, states)
    least = max(float(data.occupied.max()), float(data.occupied.sum()) / k)
    if 0 < data.memory < least * (1 - 1e-9):
        msg = f"{name}: the sub-operations need at least {least / 2**30:.4g} GiB per GPU; increase memory or k"
        raise NotApplicable(msg)
    return data


def unordered_pairs(data: Placement) -> tuple[I64, I64]:
    """Pairs u < v of which neither precedes the other, ``(|U|,)`` each."""
    behind = np.zeros((data.n, data.n), dtype=bool)
    for v in range(data.n):
        before = data.graph.tail[data.graph.first_in[v] : data.graph.first_in[v + 1]]
        behind[before, v] = True
        behind[:, v] |= behind[:, before].any(axis=1)
    first, second = np.nonzero(np.triu(~behind, k=1))
    return first, second


def arrays(data: Placement, names: Collection[str]) -> dict[str, Array]:
    """Shapes of ``device`` and ``start``, or of a and S; and of the other variables if given."""
    k, gpu = data.devices, Axis("gpu", data.devices)
    named = {"sub-operation": range(data.n), "operation": data.graph.operation.tolist()}
    op = Axis("sub-operation", data.n, named)
    result = {"q": Array((Axis("src_gpu", k), Axis("dst_gpu", k)), required=False), "C": Array(required=False)}
    own = "device" not in names
    if not own:
        result["device"] = members(op, of=gpu)
        result["start"] = Array((op,), unit="us")
    result |= {"a": Array((op, gpu), required=own), "S": Array((op,), required=own)}
    if "y" in names:
        first, second = data.unordered
        pair = Axis("unordered pair", first.size, lambda _: [f"{u}, {v}" for u, v in np.c_[first, second].tolist()])
        result["y"] = Array((pair,), required=False)
    return result


def repair(data: Placement, values: Mapping[str, F64]) -> dict[str, F64] | None:
    """Keep GPUs and order, and start as early as possible."""
    device, start, _ = placed(data, values)
    fresh = starts(data, device, np.lexsort((np.arange(data.n), np.round(start / data.work, 9))))
    if fresh is None:
        fresh = starts(data, device, np.arange(data.n))
    if fresh is None:
        return None
    kept = {"device": device.astype(float), "start": fresh}
    return kept if "a" not in values else {**kept, **program_values(data, device, fresh)}


def metrics(data: Placement, value: float | None) -> dict[str, Json]:
    """Time of the step on one GPU over that on all of them, and their number."""
    return {"speedup": None if value is None else data.work / value, "gpus": data.devices * data.replicas}


def placed(data: Placement, values: Mapping[str, F64]) -> tuple[I64, F64, float]:
    """GPU and start [us] of every sub-operation, and the GPUs' distance from integers."""
    if "device" in values:
        return np.asarray(values["device"]).astype(np.int64), np.asarray(values["start"], dtype=float), 0.0
    a, S = (np.asarray(values[name], dtype=float) for name in ("a", "S"))
    worst = max(np.minimum(np.abs(a), np.abs(a - 1)).max(), np.abs(a.sum(axis=1) - 1).max())
    return a.argmax(axis=1), S * data.horizon, float(worst)


def held_by(data: Placement, device: I64) -> F64:
    """Bytes held by every GPU, ``(k,)``."""
    return np.bincount(device, data.occupied, data.devices).astype(np.float64)


def peers_of(data: Placement, device: I64) -> tuple[I64, I64]:
    """Numbers of other GPUs that each GPU sends to and receives from, ``(k,)`` each."""
    graph, k = data.graph, data.devices
    key = np.unique(device[graph.tail] * k + device[graph.head])
    source, target = np.divmod(key, k)
    other = source != target
    return np.bincount(source[other], minlength=k), np.bincount(target[other], minlength=k)


def program_values(data: Placement, device: I64, start: F64) -> dict[str, F64]:
    """Compute the model's variables from a placement."""
    n, k, graph = data.n, data.devices, data.graph
    a, q = np.zeros((n, k)), np.zeros((k, k))
    a[np.arange(n), device] = 1.0
    q[device[graph.tail], device[graph.head]] = 1.0
    np.fill_diagonal(q, 0.0)
    first, second = data.unordered
    return {
        "a": a,
        "q": q,
        "S": start / data.horizon,
        "C": np.asarray((start + graph.duration).max() / data.horizon),
        "y": (start[first] <= start[second]).astype(float),
    }


def starts(data: Placement, device: I64, order: I64) -> F64 | None:
    """Earliest starts [us] if the GPUs run sub-operations in this order; None if it violates a dependency."""
    graph = data.graph
    tail, first = graph.tail.tolist(), graph.first_in.tolist()
    delay, duration, at = data.delay.tolist(), graph.duration.tolist(), device.tolist()
    free = [0.0] * data.devices
    end = [-1.0] * data.n
    begun = np.zeros(data.n)
    for v in order.tolist():
        ready = free[at[v]]
        for e in range(first[v], first[v + 1]):
            u = tail[e]
            if end[u] < 0:
                return None
            ready = max(ready, end[u] + (delay[e] if at[u] != at[v] else 0.0))
        begun[v] = ready
        free[at[v]] = end[v] = ready + duration[v]
    return begun


def estimate(data: Placement) -> dict[str, int]:
    """About the size of the model; with more than ``MOST_LISTED`` sub-operations as if no pair were ordered."""
    n, k, m = data.n, data.devices, data.graph.dependencies
    pairs = data.unordered[0].size if n <= MOST_LISTED else n * (n - 1) // 2
    rows = 2 * n + m * k + 2 * pairs * k
    return {"variables": n * k + pairs + n + 1, "constraints": rows, "nonzeros": 3 * n * k + 3 * m * k + 10 * pairs * k}

"""Bounds on the makespan of a placement: chains of dependencies, and the work between them."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations import rounding
from opticoll.formulations.model import Bound

if TYPE_CHECKING:
    from opticoll.formulations.sipml.placement import Placement
    from opticoll.instances.families.op_graphs import OpGraph
    from opticoll.instances.topology import F64

#: Number of thresholds for heads, and for tails, in the heads-tails bound.
THRESHOLDS = 64


def derived(data: Placement) -> list[Fraction]:
    """Durations and delays in units of the horizon, their differences to 1, 2 and 3, the horizon, and memory."""
    durations = [rounding.decimal(value) for value in data.graph.duration.tolist()]
    horizon, delays = sum(durations, Fraction(0)), []
    if data.bandwidth:
        rate = rounding.entered(data.bandwidth) / 10**6
        delays = [rounding.decimal(value) / rate for value in data.graph.volume.tolist()]
    if data.memory:
        horizon += sum(delays, Fraction(0))
    shares = {value / horizon for value in durations}
    results = [horizon, *shares, *(k - share for k in (1, 2, 3) for share in shares)]
    results += [delay / horizon for delay in delays]
    if data.memory:
        results += [rounding.entered(held) / rounding.entered(data.memory) for held in data.occupied.tolist()]
    return results


def heads(data: Placement) -> F64:
    """Longest chain before every sub-operation [us], ``(n,)``."""
    return chains(data.graph, data.forced)[0]


def tails(data: Placement) -> F64:
    """Longest chain after every sub-operation [us], ``(n,)``."""
    return chains(data.graph, data.forced)[1]


def forced_delays(data: Placement) -> F64:
    """Delay of dependencies whose ends do not fit together on one GPU [us], 0 for the others, ``(m,)``."""
    together = data.occupied[data.graph.tail] + data.occupied[data.graph.head]
    return np.where((data.memory > 0) & (together > data.memory * (1 + 1e-9)), data.delay, 0.0)


def chains(graph: OpGraph, delay: F64) -> tuple[F64, F64]:
    """Longest chains before and after every sub-operation [us], with these delays of dependencies; ``(n,)`` each."""
    n, duration = graph.n, graph.duration.tolist()
    before, after = [0.0] * n, [0.0] * n
    ends = list(zip(graph.tail.tolist(), graph.head.tolist(), delay.tolist(), strict=True))
    for u, v, wait in ends:  # sorted by head
        before[v] = max(before[v], before[u] + duration[u] + wait)
    for u, v, wait in reversed(ends):
        after[u] = max(after[u], after[v] + duration[v] + wait)
    return np.array(before), np.array(after)


def bounds(data: Placement) -> list[Bound]:
    """Bounds from the longest chain, from the work, and from the work between heads and tails."""
    k, heads, tails, p = data.devices, data.heads, data.tails, data.graph.duration
    chain = float((heads + p + tails).max())
    best = 0.0
    for h in np.unique(np.quantile(heads, np.linspace(0, 1, THRESHOLDS), method="lower")):
        late = heads >= h
        for r in np.unique(np.quantile(tails[late], np.linspace(0, 1, THRESHOLDS), method="lower")):
            some = late & (tails >= r)
            parallel = max(float(p[some].sum()) / k, -(-int(some.sum()) // k) * float(p[some].min()))
            best = max(best, float(h) + parallel + float(r))
    # A head and a tail together are sums of at most n durations and n delays, and so is the work.
    chain, work, best = (float(rounding.down(t, 4 * data.n + 10)) for t in (chain, data.work / k, best))
    return [
        Bound("critical-path", chain, "the longest chain of dependencies", "sipml"),
        Bound("work", work, "all GPUs busy throughout", "sipml"),
        Bound("heads-tails", best, "work between the chains before and after it", "sipml"),
    ]

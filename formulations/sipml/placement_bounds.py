"""Lower bounds on the makespan of a placement: chains, work, and work between chains.

Chains (``critical-path``) add the delay of a dependency where both ends need more memory than one GPU has, so that they
must be apart. For the m sub-operations with chains of at least h before and at least r after them (``heads-tails``),
h + max(work/k, ceil(m/k) shortest) + r.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations import outward
from opticoll.formulations.model import Bound

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from opticoll.formulations.sipml.placement import Placement
    from opticoll.instances.op_graph import OpGraph

    F64 = NDArray[np.float64]

#: Thresholds on either side of the bound by heads and tails.
THRESHOLDS = 64


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
    """Bounds by the longest chain, by the work, and by the work between heads and tails."""
    k, heads, tails, p = data.devices, data.heads, data.tails, data.graph.duration
    chain = float((heads + p + tails).max())
    best = 0.0
    for h in np.unique(np.quantile(heads, np.linspace(0, 1, THRESHOLDS), method="lower")):
        late = heads >= h
        for r in np.unique(np.quantile(tails[late], np.linspace(0, 1, THRESHOLDS), method="lower")):
            some = late & (tails >= r)
            parallel = max(float(p[some].sum()) / k, -(-int(some.sum()) // k) * float(p[some].min()))
            best = max(best, float(h) + parallel + float(r))
    # A head and a tail are sums of at most n durations and n delays together, and so is the work.
    chain, work, best = (float(outward.down(t, 4 * data.n + 10)) for t in (chain, data.work / k, best))
    return [
        Bound("critical-path", chain, "the longest chain of dependencies", "sipml"),
        Bound("work", work, "all GPUs busy throughout", "sipml"),
        Bound("heads-tails", best, "work between the chains before and after it", "sipml"),
    ]

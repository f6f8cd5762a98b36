r"""Times of communication steps on topologies, recomputed from a flow and from lengths.

Source  maximum concurrent flow: Shahrokhi & Matula, J. ACM 37(2), 1990
Data    C_ij >= 0 capacity from i to j [link bandwidths], (n,n); D_ij >= 0 demand of a step [shards], (n,n)

The time of the step is the least T in which flows within capacities C T serve D. A flow proves that a time suffices,
lengths l >= 0 of the links that no less does: T >= sum_ij D_ij dist_l(i,j) / sum_ij C_ij l_ij.

If C and D are invariant under the translations of a group on the nodes (all i -> i + g modulo n, or all i -> i xor g),
the mean of all translates of a flow is a flow with the same or a smaller largest load. Then the flow of node 0 stands
for all, and links with the same difference have equal loads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations import rounding

if TYPE_CHECKING:
    from opticoll.instances.topology import F64, I64

#: Largest negative stock of a node, relative to the largest demand, that counts as round-off.
ROUND_OFF = 1e-7


@dataclass(frozen=True, eq=False)
class PatternFlow:
    """Flows ``(n, n, n)`` by source, or ``(1, n, n)`` for node 0 under a group, and lengths of links ``(n, n)``."""

    flows: F64
    lengths: F64


def differences(capacity: F64, demand: F64) -> I64 | None:
    """Element that takes i to j, ``(n, n)``, of a group under which both matrices are invariant; None without one."""
    n = len(capacity)
    node = np.arange(n)
    tables = [(node[None, :] - node[:, None]) % n]
    if n & (n - 1) == 0:
        tables.append(node[None, :] ^ node[:, None])
    for table in tables:
        if all((matrix == matrix[0][table]).all() for matrix in (capacity, demand)):
            return np.asarray(table)
    return None


def achieved(capacity: F64, demand: F64, flow: PatternFlow) -> float:
    """Time in which the flow serves the demand; infinite if it does not."""
    n = len(capacity)
    table = differences(capacity, demand) if len(flow.flows) == 1 else None
    if len(flow.flows) == 1 and table is None:
        return math.inf
    wanted = demand[:1] if table is not None else demand
    moved = np.maximum(flow.flows, 0.0)
    arrived = moved.sum(axis=1) - moved.sum(axis=2)
    arrived[np.arange(len(wanted)), np.arange(len(wanted))] = 0.0  # the source sends what the others receive
    due = wanted > 0
    if (arrived < -ROUND_OFF * demand.max()).any() or (arrived[due] <= 0).any():
        return math.inf
    scale = max(float((wanted[due] / arrived[due]).max()), 1.0)
    if table is not None:
        sums = np.bincount(table.ravel(), moved[0].ravel(), minlength=n)
        load = sums[table]
    else:
        load = moved.sum(axis=0)
    if (load[capacity == 0] > ROUND_OFF * demand.max()).any():
        return math.inf
    return float((load[capacity > 0] / capacity[capacity > 0]).max()) * scale


def distances(lengths: F64) -> F64:
    """Shortest distances, ``(n, n)``, rounded down; lengths are infinite where there is no link."""
    far = lengths.copy()
    np.fill_diagonal(far, 0.0)
    for k in range(len(far)):
        np.minimum(far, far[:, k : k + 1] + far[k : k + 1, :], out=far)
    return np.where(np.isfinite(far), np.asarray(rounding.down(far, len(far))), np.inf)


def least(capacity: F64, demand: F64, lengths: F64) -> float:
    """Time below which nothing serves the demand, from lengths of links; infinite if some pair has no path."""
    lengths = np.where(np.isfinite(lengths) & (lengths > 0) & (capacity > 0), lengths, 0.0)
    far = distances(np.where(capacity > 0, lengths, np.inf))
    due = demand > 0
    if np.isinf(far[due]).any():
        return math.inf
    cost = rounding.dot_up(capacity[capacity > 0], lengths[capacity > 0])
    if not cost > 0:
        return 0.0
    return rounding.quotient_down(rounding.dot_down(demand[due], np.maximum(far[due], 0.0)), cost)


def hops(capacity: F64, demand: F64) -> float:
    """Time below which nothing serves the demand, by hops over all links."""
    return least(capacity, demand, np.where(capacity > 0, 1.0, 0.0))

"""Concurrent flows of communication steps, by linear programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.topology.pattern_times import PatternFlow, differences

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opticoll.instances.topology import F64


def step_flow(capacity: F64, demand: F64) -> PatternFlow | None:
    """Flow of least time for a demand within capacities, ``(n, n)`` each, and lengths that prove it.

    Minimize T, with flows by source, or of node 0 alone where a group makes all nodes alike. The lengths are the duals
    of the capacities. None where nothing serves the demand.
    """
    import scipy.sparse as sp
    from scipy.optimize import linprog

    n = len(capacity)
    tail, head = np.nonzero(capacity)
    table = differences(capacity, demand)
    sources = np.arange(1) if table is not None else np.flatnonzero(demand.any(axis=1))
    m, S = len(tail), len(sources)
    which, arc = np.repeat(np.arange(S), m), np.tile(np.arange(m), S)
    inward = head[arc] != sources[which]
    which, arc = which[inward], arc[inward]
    F = len(arc)
    out = tail[arc] != sources[which]
    place = np.arange(F)
    # what other nodes receive less what they send is at least their demand
    rows = np.concatenate([which * n + head[arc], (which * n + tail[arc])[out]])
    columns = np.concatenate([place, place[out]])
    signs = np.concatenate([-np.ones(F), np.ones(int(out.sum()))])
    others = np.flatnonzero((np.arange(n)[None, :] != sources[:, None]).ravel())
    stock = sp.csr_array((signs, (rows, columns)), shape=(S * n, F + 1))[others]
    group = np.arange(m) if table is None else np.unique(table[tail, head], return_inverse=True)[1]
    groups = int(group.max()) + 1
    room = np.zeros(groups)
    room[group] = capacity[tail, head]
    load = sp.csr_array(
        (
            np.concatenate([np.ones(F), -room]),
            (np.concatenate([group[arc], np.arange(groups)]), np.concatenate([place, np.full(groups, F)])),
        ),
        shape=(groups, F + 1),
    )
    right = np.concatenate([-demand[sources].ravel()[others], np.zeros(groups)])
    cost = np.append(np.zeros(F), 1.0)
    solved = linprog(cost, A_ub=sp.vstack([stock, load]), b_ub=right, method="highs")
    if solved.status != 0:
        return None
    flows = np.zeros((1 if table is not None else n, n, n))
    flows[sources[which] if table is None else which, tail[arc], head[arc]] = solved.x[:F]
    lengths = np.zeros((n, n))
    lengths[tail, head] = np.maximum(-solved.ineqlin.marginals[len(others) :], 0.0)[group]
    return PatternFlow(flows, lengths)


def step_flows(pairs: Sequence[tuple[F64, F64]]) -> list[PatternFlow | None]:
    """Flows of many steps, see :func:`step_flow`."""
    return [step_flow(capacity, demand) for capacity, demand in pairs]

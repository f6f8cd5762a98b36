"""Branch and bound over configurations: sequences of circuits that their hops do not exclude.

Configurations are chosen one after the other. Those that are chosen, and the most hops of the others, bound the work,
demand times circuits: let n_a nodes be at a hops from a source after the chosen configurations, and let the r others
lead from a node to at most N_b nodes at b hops (:func:`~opticoll.formulations.topology.sequence_bounds.nodes_at`),
N_0 = 1. A shortest walk of h hops has a shortest one of a hops in the chosen configurations, and b = h - a in the
others, so at most sum_(a+b=h) n_a N_b nodes are at h hops in the end. The largest demands take the fewest hops. Nodes
that send more than they receive, or less, leave circuits idle as well.

A whole sequence is also bounded by prices of its circuits (:mod:`opticoll.solvers.methods.topology.sequence_prices`).

For uniform demand, renamings of nodes leave one configuration of each class as the first one, and those renamings that
do not change it leave fewer as the second one.
"""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np

from opticoll.compiled import compiled
from opticoll.formulations import rounding
from opticoll.formulations.topology.sequence_bounds import circuits, nodes_at, unmatched
from opticoll.solvers.methods.topology.sequence_enumeration import MOST_RENAMED, distinct
from opticoll.solvers.methods.topology.sequence_flows import no_hops, with_circuits
from opticoll.solvers.methods.topology.sequence_prices import priced_time

if TYPE_CHECKING:
    from opticoll.formulations.topology.sequence import TopologySequence
    from opticoll.instances.topology import I64


def surviving(data: TopologySequence, every: I64, limit: float, most: int, nodes: int) -> tuple[list[I64] | None, int]:
    """Circuits ``(K, n, n)`` of sequences of the configurations ``every`` that may take less than ``limit`` of time.

    One of those that renamings turn into each other; None if they are more than ``most``, or if more than ``nodes``
    nodes of the tree have to be bounded. Also that number of nodes.
    """
    fixed = 0 if data.standing is None else 1
    if data.standing is not None:
        every = np.concatenate([data.standing[None], every])
    others = np.arange(fixed, len(every))
    first, parts = np.arange(1 if fixed else len(every)), [others]
    if data.amount is not None and not fixed and data.n <= MOST_RENAMED:
        first = distinct(every)
        if data.configurations > 1:
            parts = [unlike(every, every[at]) for at in first]
    ends = np.cumsum([len(part) for part in parts])
    begins = ends - [len(part) for part in parts]
    at = np.zeros(len(first), dtype=np.int64) if len(parts) < len(first) else np.arange(len(first))
    later = np.array([[_later(data, r, b) for b in range(data.n)] for r in range(data.configurations)], dtype=np.int64)
    found, count, bounded = _branched(
        every,
        first,
        np.concatenate(parts),
        begins[at],
        ends[at],
        fixed,
        data.demand,
        -np.sort(-data.demand, axis=1),
        later,
        data.relays == "step",
        limit,
        circuits(data),
        rounding.fraction_down(unmatched(data.demand)),
        most,
        nodes,
    )
    return (None if count < 0 else [every[chosen] for chosen in found[:count]]), int(bounded)


def unlike(every: I64, one: I64) -> I64:
    """Numbers of the configurations up to renamings of nodes that do not change ``one``, ``(n, n)``."""
    n = len(one)
    orders = np.array(list(permutations(range(n))))
    orders = orders[(one[orders[:, :, None], orders[:, None, :]] == one).all(axis=(1, 2))]
    # any codes will do: of configurations that are renamed into each other, the one with the least code is kept
    weights = np.random.default_rng(0).integers(1 << 40, size=n * n)
    least = codes = every.reshape(len(every), -1) @ weights
    for order in orders:
        least = np.minimum(least, every[:, order[:, None], order[None, :]].reshape(len(every), -1) @ weights)
    return np.flatnonzero(least == codes)


def _later(data: TopologySequence, configurations: int, hops: int) -> int:
    """N_b: the most nodes at so many hops in so many configurations, all at most."""
    if hops == 0 or configurations == 0:
        return int(hops == 0)
    degree = min(data.degree, data.n - 1)
    return min(nodes_at(hops, configurations, degree, directed=data.directed, step=data.relays == "step"), data.n)


@compiled()
def _least_work(hops, ordered, later):  # type: ignore[no-untyped-def]
    """Least demand times hops, of demands by decreasing size ``(n, n)``, with the most hops that are to come."""
    n, work = hops.shape[0], 0.0
    at = np.zeros(n, np.int64)
    for s in range(n):
        at[:] = 0
        for v in range(n):
            if hops[s, v] < n:
                at[hops[s, v]] += 1
        place = 0
        for h in range(1, n):
            room = 0
            for a in range(h + 1):
                room += at[a] * later[h - a]
            while room > 0 and place < n and ordered[s, place] > 0:
                work += h * ordered[s, place]
                place += 1
                room -= 1
        if place < n and ordered[s, place] > 0:
            return np.inf
    return work


@compiled()
def _branched(  # type: ignore[no-untyped-def]
    every, first, second, begins, ends, fixed, demand, ordered, later, step, limit, number, idle, most, nodes
):
    """Sequences that may take less than ``limit``, ``(., K)``, their number, -1 for too many, and the nodes bounded.

    A configuration has ``number`` circuits at most; of all that they can carry, ``idle`` is not used.
    """
    E, n, K = every.shape[0], every.shape[1], later.shape[0]
    hops = np.zeros((K + 1, n, n), np.int64)
    hops[0] = no_hops(n)
    found, count, bounded = np.zeros((most, K), np.int64), 0, 0
    chosen, place, sequence = np.zeros(K, np.int64), np.full(K, -1), np.zeros((K, n, n), np.int64)
    level = 0
    while level >= 0:
        place[level] += 1
        if level == 0:
            if place[0] == len(first):
                break
            chosen[0] = first[place[0]]
        elif level == 1:
            if begins[place[0]] + place[1] == ends[place[0]]:
                level = 0
                continue
            chosen[1] = second[begins[place[0]] + place[1]]
        else:
            if fixed + place[level] == E:
                level -= 1
                continue
            chosen[level] = fixed + place[level]
        bounded += 1
        if bounded > nodes:
            return found, -1, bounded
        hops[level + 1] = with_circuits(hops[level], every[chosen[level]], step)
        if _least_work(hops[level + 1], ordered, later[K - 1 - level]) + idle >= limit * number:
            continue
        if level < K - 1:
            level += 1
            place[level] = -1
            continue
        for k in range(K):
            sequence[k] = every[chosen[k]]
        if priced_time(sequence, demand, step, limit) < limit:
            if count == most:
                return found, -1, bounded
            found[count] = chosen
            count += 1
    return found, count, bounded

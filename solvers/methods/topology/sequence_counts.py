"""One-way circuits with few hops in time, without symmetry: annealing on the counts of walks of at most two circuits.

An exchange of the heads of two circuits changes few of these walks, so it takes about as long for a hundred nodes as
for ten. Nodes that no such walk reaches count as three hops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.compiled import compiled
from opticoll.solvers.methods.topology.sequence_orbits import accepted

if TYPE_CHECKING:
    from opticoll.instances.topology import I64


def annealed_circuits(
    rng: np.random.Generator, n: int, degree: int, configurations: int, *, step: bool, moves: int
) -> tuple[int, I64]:
    """One-way circuits of every configuration with few hops over all pairs, after so many exchanges.

    Parameters
    ----------
    n, degree, configurations
        Nodes, at least 2, circuits out of and into each, and configurations.
    step
        Whether a walk takes at most one circuit of a configuration.

    Returns
    -------
    tuple[int, I64]
        Sum over all pairs of nodes of their hops, with three where it takes more than two; circuits ``(K, n, n)``.
    """
    heads = np.array([_derangement(rng, n) for _ in range(configurations * degree)])
    hops, best = _annealed(rng, heads.reshape(configurations, degree, n), step, moves)
    counts = np.zeros((configurations, n, n), dtype=np.int64)
    k, _, u = np.indices(best.shape)
    np.add.at(counts, (k, u, best), 1)
    return int(hops), counts


def _derangement(rng: np.random.Generator, n: int) -> I64:
    while True:
        heads = rng.permutation(n)
        if (heads != np.arange(n)).all():
            return heads


@compiled()
def _annealed(rng: np.random.Generator, start: I64, step: bool, moves: int) -> tuple[int, I64]:
    """Exchange heads of circuits ``(K, d, n)``: circuit j of configuration k from u leads to ``heads[k, j, u]``."""
    K, d, n = start.shape
    heads, tails = np.full((K, d, n), -1), np.full((K, d, n), -1)
    ends, walks = np.eye(n, dtype=np.int64), np.eye(n, dtype=np.int64)
    now = 3 * n * (n - 1)
    for k in range(K):
        for j in range(d):
            for u in range(n):
                now += _put(heads, tails, ends, walks, step, k, j, u, start[k, j, u])
    best, kept = now, heads.copy()
    for move in range(moves):
        k, j, a, b = int(rng.integers(0, K)), int(rng.integers(0, d)), int(rng.integers(0, n)), int(rng.integers(0, n))
        to_a, to_b = heads[k, j, a], heads[k, j, b]
        if a == b or to_a == b or to_b == a:
            continue
        total = now + _exchange(heads, tails, ends, walks, step, k, j, a, b)
        if accepted(rng, total - now, move / moves):
            now = total
            if now < best:
                best, kept = now, heads.copy()
        else:
            _exchange(heads, tails, ends, walks, step, k, j, a, b)
    return best, kept


@compiled()
def _exchange(heads: I64, tails: I64, ends: I64, walks: I64, step: bool, k: int, j: int, a: int, b: int) -> int:
    """Exchange the heads of two circuits; change in hops, as counted."""
    to_a, to_b = heads[k, j, a], heads[k, j, b]
    hops = _take(heads, tails, ends, walks, step, k, j, a) + _take(heads, tails, ends, walks, step, k, j, b)
    hops += _put(heads, tails, ends, walks, step, k, j, a, to_b)
    return hops + _put(heads, tails, ends, walks, step, k, j, b, to_a)


@compiled()
def _put(heads: I64, tails: I64, ends: I64, walks: I64, step: bool, k: int, j: int, u: int, v: int) -> int:
    hops = _count(heads, tails, ends, walks, step, k, u, v, 1)
    heads[k, j, u], tails[k, j, v] = v, u
    return hops


@compiled()
def _take(heads: I64, tails: I64, ends: I64, walks: I64, step: bool, k: int, j: int, u: int) -> int:
    v = heads[k, j, u]
    heads[k, j, u], tails[k, j, v] = -1, -1
    return _count(heads, tails, ends, walks, step, k, u, v, -1)


@compiled()
def _count(heads: I64, tails: I64, ends: I64, walks: I64, step: bool, k: int, u: int, v: int, change: int) -> int:
    """Add ``change`` to the counts of the circuit (u, v) and of the walks of two circuits over it; change in hops."""
    K, d, _ = heads.shape
    place = 0 if change > 0 else 1  # what a pair has besides this walk, where the walk alone connects it
    hops = -change if ends[u, v] == place else 0
    ends[u, v] += change
    hops -= change if walks[u, v] == place else 0
    walks[u, v] += change
    for other in range(K):
        for j in range(d):
            if other > k or (other == k and not step):
                w = heads[other, j, v]
                if w >= 0:
                    hops -= change if walks[u, w] == place else 0
                    walks[u, w] += change
            if other < k or (other == k and not step):
                w = tails[other, j, u]
                if w >= 0:
                    hops -= change if walks[w, v] == place else 0
                    walks[w, v] += change
    return hops

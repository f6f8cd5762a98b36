"""Sequences of circuits by annealing on exchanges of circuits, under the demand times the hops of its walks.

A single configuration without parallel circuits is a topology, of which the norm of the loads is a better measure.

What every node sends takes a circuit for each hop, so demand times hops, over the circuits of a configuration, is a
lower bound on the sum of the lengths. It orders sequences well enough to choose the few whose linear program is solved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.compiled import compiled
from opticoll.compiled_arrays import max_of, sum_of
from opticoll.formulations.topology.sequence_bounds import one_by_one
from opticoll.solvers.methods.topology.sequence_flows import no_hops, with_circuits
from opticoll.solvers.methods.topology.split_loads import load_norm

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opticoll.formulations.topology.sequence import TopologySequence
    from opticoll.instances.topology import I64

#: Share of the cost by which an exchange may be worse at first.
THRESHOLD = 0.02
#: One of so many exchanges moves a circuit to free ports.
TO_FREE = 8
#: Exchanges between two looks at the clock.
CALLED = 500
#: Nodes of a rack, and most circuits from one rack to another and from a rack to all others; 0 for no limit.
Racks = tuple[int, int, int]
NO_RACKS: Racks = (0, 0, 0)


@compiled()
def work(counts, demand, step):  # type: ignore[no-untyped-def]
    """Demand times hops over circuits ``(K, n, n)``; very large where some demand is not served."""
    hops, total = no_hops(counts.shape[1]), 0.0
    for k in range(len(counts)):
        hops = with_circuits(hops, counts[k], step)
    for u in range(len(hops)):
        for v in range(len(hops)):
            total += demand[u, v] * hops[u, v]
    return total


@compiled()
def cost_of(counts, demand, step, squarings):  # type: ignore[no-untyped-def]
    """The work of circuits, or, unless ``squarings`` is -1, the norm of the loads of a single configuration."""
    return work(counts, demand, step) if squarings < 0 else load_norm(counts[0], demand, squarings)


@compiled()
def listed(counts, directed):  # type: ignore[no-untyped-def]
    """Number of circuits of every configuration, ``(K,)``, and their tails and heads, ``(K, A)``.

    Unless ``directed``, a circuit at an even place is followed by that of the other way.
    """
    K, n = counts.shape[0], counts.shape[1]
    number = np.zeros(K, np.int64)
    for k in range(K):
        number[k] = sum_of(counts[k])
    tail, head = np.zeros((K, max_of(number)), np.int64), np.zeros((K, max_of(number)), np.int64)
    for k in range(K):
        place = 0
        for u in range(n):
            for v in range(n if directed else u):
                for _ in range(counts[k, u, v]):
                    tail[k, place], head[k, place] = u, v
                    place += 1
                    if not directed:
                        tail[k, place], head[k, place] = v, u
                        place += 1
    return number, tail, head


@compiled()
def _add(counts, u, v, way, directed):  # type: ignore[no-untyped-def]
    """Add (``way`` = 1) or remove (-1) a circuit of a configuration."""
    counts[u, v] += way
    if not directed:
        counts[v, u] += way


@compiled()
def _swap(counts, tail, head, k, a, b, y, directed):  # type: ignore[no-untyped-def]
    """Exchange the heads of circuits a and b of configuration k; without b (-1), lead a to y. Return a's last head."""
    c, u, v = counts[k], tail[k, a], head[k, a]
    if b >= 0:
        x, y = tail[k, b], head[k, b]
        _add(c, x, y, -1, directed)
        _add(c, x, v, 1, directed)
        head[k, b] = v
        if not directed:
            tail[k, b ^ 1] = v
    _add(c, u, v, -1, directed)
    _add(c, u, y, 1, directed)
    head[k, a] = y
    if not directed:
        tail[k, a ^ 1] = y
    return v


@compiled()
def _drawn(random, counts, number, tail, head, fixed, degree, directed):  # type: ignore[no-untyped-def]
    """A random exchange for :func:`_swap`; a configuration of -1 if this one is none."""
    k = random.integers(fixed, counts.shape[0])
    if number[k] < 2:
        return -1, 0, 0, 0
    a, b = random.integers(0, number[k]), random.integers(0, number[k])
    u, v, x, y = tail[k, a], head[k, a], tail[k, b], head[k, b]
    if random.integers(0, TO_FREE) == 0:
        y = random.integers(0, counts.shape[1])
        if y in (u, v) or sum_of(counts[k, :, y]) >= degree:
            return -1, 0, 0, 0
        return k, a, -1, y
    if u in (x, y) or v in (x, y) or a == b:
        return -1, 0, 0, 0
    return k, a, b, y


@compiled()
def _fits(counts, parallel, rack, cables, uplinks):  # type: ignore[no-untyped-def]
    """Whether circuits ``(n, n)`` keep to the limits on parallel ones and on those between racks."""
    n = counts.shape[0]
    side = rack if rack > 0 else n
    R = (n + side - 1) // side
    between, sent, got = np.zeros((R, R), np.int64), np.zeros(R, np.int64), np.zeros(R, np.int64)
    for u in range(n):
        for v in range(n):
            a, b = u // side, v // side
            if counts[u, v] > parallel:
                return False
            if a != b:
                between[a, b] += counts[u, v]
                sent[a] += counts[u, v]
                got[b] += counts[u, v]
                if 0 < cables < between[a, b] or 0 < uplinks < max(sent[a], got[b]):
                    return False
    return True


@compiled()
def _annealed(  # type: ignore[no-untyped-def]
    rng, counts, now, span, worse, squarings, demand, step, fixed, degree, directed, limits
):
    """Exchanges ``span[0]`` to ``span[1]`` of ``span[2]`` in ``counts``, whose cost is ``now``.

    Returns the last cost, the least one, and its circuits.
    """
    begin, end, moves = span
    number, tail, head = listed(counts, directed)
    best, kept = now, counts.copy()
    for move in range(begin, end):
        k, a, b, y = _drawn(rng, counts, number, tail, head, fixed, degree, directed)
        if k < 0:
            continue
        v = _swap(counts, tail, head, k, a, b, y, directed)
        value = cost_of(counts, demand, step, squarings) if _fits(counts[k], *limits) else np.inf
        if value > now * (1 + worse * (1 - move / moves) ** 2):
            _swap(counts, tail, head, k, a, b, v, directed)
            continue
        now = value
        if now < best:
            best, kept = now, counts.copy()
    return now, best, kept


def anneal_circuits(
    data: TopologySequence,
    random: np.random.Generator,
    counts: I64,
    moves: int,
    wait: Callable[[], object],
    *,
    squarings: int = -1,
    worse: float = THRESHOLD,
    racks: Racks = NO_RACKS,
) -> I64:
    """Circuits ``(K, n, n)`` of the least :func:`cost_of` that is found by so many exchanges.

    Exchanges that are worse within a threshold, which falls from the share ``worse`` to 0, are accepted (Dueck &
    Scheuer, J. Comput. Phys. 90, 1990); ``wait`` is called now and then.
    """
    step, fixed = one_by_one(data), 0 if data.standing is None else 1
    settings = worse, squarings, data.demand, step, fixed, data.degree, data.directed, (data.parallel, *racks)
    now = best = cost_of(counts, data.demand, step, squarings)
    result, counts = counts, counts.copy()
    for begin in range(0, moves, CALLED):
        wait()
        now, least, kept = _annealed(random, counts, now, (begin, min(begin + CALLED, moves), moves), *settings)
        if least < best:
            best, result = least, kept
    return np.array(result)


def exchanged(data: TopologySequence, random: np.random.Generator, counts: I64, most: int) -> Iterator[I64]:
    """Circuits that differ from these by one of ``most`` random exchanges, those of the least work first."""
    step, fixed = one_by_one(data), 0 if data.standing is None else 1
    counts = counts.copy()
    number, tail, head = listed(counts, data.directed)
    found = []
    for _ in range(most):
        k, a, b, y = _drawn(random, counts, number, tail, head, fixed, data.degree, data.directed)
        if k < 0:
            continue
        v = _swap(counts, tail, head, k, a, b, y, data.directed)
        if counts[k].max() <= data.parallel:
            found.append((work(counts, data.demand, step), counts.copy()))
        _swap(counts, tail, head, k, a, b, v, data.directed)
    for _, other in sorted(found, key=lambda one: one[0]):
        yield other


def add_circuits(data: TopologySequence, circuits: I64, pairs: list[list[int]], racks: Racks = NO_RACKS) -> None:
    """Add a circuit for every pair in turn whose ports are free, within the limits of racks."""
    out, into = circuits.sum(axis=1), circuits.sum(axis=0)
    for u, v in pairs:
        if out[u] < data.degree and into[v] < data.degree and circuits[u, v] < data.parallel:
            if not data.directed and (out[v] >= data.degree or into[u] >= data.degree):
                continue
            _add(circuits, u, v, 1, data.directed)
            if not _fits(circuits, data.parallel, *racks):
                _add(circuits, u, v, -1, data.directed)
                continue
            for a, b in ((u, v),) if data.directed else ((u, v), (v, u)):
                out[a] += 1
                into[b] += 1


def fill_ports(data: TopologySequence, random: np.random.Generator, counts: I64, racks: Racks = NO_RACKS) -> None:
    """Add a random circuit between free ports of every configuration ``(K, n, n)``, as long as there are any."""
    for circuits in counts[0 if data.standing is None else 1 :]:
        add_circuits(data, circuits, random.permutation(np.argwhere(data.off)).tolist(), racks)


def random_circuits(data: TopologySequence, random: np.random.Generator, racks: Racks = NO_RACKS) -> I64:
    """Random circuits of every configuration, ``(K, n, n)``, without loops and with all ports that allow it."""
    counts = np.zeros((data.configurations, data.n, data.n), dtype=np.int64)
    if data.standing is not None:
        counts[0] = data.standing
    for _ in range(data.parallel):
        fill_ports(data, random, counts, racks)
    return counts

"""Method ``ring-first-fit``: circuits on a ring by first fit."""

from __future__ import annotations

from heapq import heapify, heappop, heapreplace
from typing import TYPE_CHECKING

import numpy as np

from opticoll.solvers.methods.method import Answer, Method
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from opticoll.formulations.sipml.ring_wavelengths import RingTraffic
    from opticoll.instances.topology import F64, I64
    from opticoll.solvers.methods.method import Context


def attainable_times(data: RingTraffic) -> F64:
    """Times V_p / (c B) between the analytic bound and one circuit per pair, ascending [s].

    The last one, of the largest transfer over one circuit, is attained by every assignment.
    """
    moves = data.transfers
    pair = np.repeat(np.arange(moves.pairs), data.high)
    first = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(data.high)[:-1]])
    times = moves.volume[pair] / (np.arange(pair.size) - first[pair] + 1) / moves.bandwidth
    return np.unique(times[times >= data.least])


def first_fit(data: RingTraffic, needs: I64) -> I64 | None:
    """Circuits (pair, direction, wavelength), ``(E, 3)``, that meet needs, ``(|P|,)``; None if first fit fails."""
    n, moves = data.n, data.transfers
    if int((needs * data.hops.min(axis=1)).sum()) > 2 * n * data.wavelengths:
        return None
    full = (1 << n) - 1

    def mask(start: int, length: int) -> int:
        bits = ((1 << length) - 1) << start
        return (bits | bits >> n) & full

    free: list[list[int]] = [[full] * data.wavelengths, [full] * data.wavelengths]
    load = [0, 0]
    circuits: list[tuple[int, int, int]] = []
    hops = data.hops.tolist()
    order = np.lexsort((np.arange(moves.pairs), -data.hops.min(axis=1)))
    for p in order.tolist():
        s, t = int(moves.source[p]), int(moves.target[p])
        ways = [mask(s, hops[p][0]), mask(t, hops[p][1])]
        at = [0, 0]
        for _ in range(int(needs[p])):
            near = (hops[p][0], load[0]) > (hops[p][1], load[1])
            for way in (int(near), 1 - int(near)):
                row, bits = free[way], ways[way]
                w = at[way]
                while w < data.wavelengths and row[w] & bits != bits:
                    w += 1
                at[way] = w
                if w < data.wavelengths:
                    row[w] ^= bits
                    load[way] += hops[p][way]
                    circuits.append((p, way, w))
                    break
            else:
                return None
    return np.array(circuits, dtype=np.int64).reshape(-1, 3)


def ring_circuits(demand: F64, wavelengths: int) -> I64:
    """Circuits (source, target, direction, wavelength), ``(E, 4)``, by demand on a ring; see the module.

    ``demand`` is ``(n, n)``; direction 0 is clockwise, from i to i + 1. Ties go to the pair with the lowest numbers.
    """
    n = demand.shape[0]
    full = (1 << n) - 1
    free = [[full] * wavelengths, [full] * wavelengths]
    source, target = (ends.tolist() for ends in np.nonzero(demand * (1 - np.eye(n))))
    queue = [(-float(demand[s, t]), s, t, 1) for s, t in zip(source, target, strict=True)]
    heapify(queue)
    results: list[tuple[int, int, int, int]] = []
    while queue:
        _, s, t, more = queue[0]
        hops = ((t - s) % n, (s - t) % n)
        for way in sorted((0, 1), key=lambda way: hops[way]):
            bits = ((1 << hops[way]) - 1) << (t if way else s)
            bits = (bits | bits >> n) & full
            w = next((w for w, row in enumerate(free[way]) if row & bits == bits), wavelengths)
            if w < wavelengths:
                free[way][w] ^= bits
                results.append((s, t, way, w))
                heapreplace(queue, (-float(demand[s, t]) / (more + 1), s, t, more + 1))
                break
        else:
            heappop(queue)
    return np.array(results, dtype=np.int64).reshape(-1, 4)


def search(data: RingTraffic, context: Context | None = None) -> tuple[I64, float] | None:
    """Find circuits by bisection over times; return them and their time [s], None if one per pair does not fit."""
    times = attainable_times(data)
    best = first_fit(data, data.transfers.needs(float(times[-1])))
    if best is None:
        return None
    low, high = -1, times.size - 1
    while high - low > 1:
        if context is not None:
            context.remaining()
        middle = (low + high) // 2
        circuits = first_fit(data, data.transfers.needs(float(times[middle])))
        if circuits is None:
            low = middle
        else:
            best, high = circuits, middle
    return best, float(times[high])


def run_ring_first_fit(context: Context) -> Answer:
    """Wavelengths on a ring by first fit at bisected times.

    At a time T every pair p needs n_p(T) circuits. The times that integer circuits can attain are searched, between the
    analytic bound and the time of one circuit per pair.

    Bisection finds a time at which first fit places all circuits: longest first, shorter direction first, lowest free
    wavelength.
    """
    result = search(context.data, context)
    if result is None:
        return Answer(Termination.ITERATION_LIMIT, message="first fit does not place one circuit per pair")
    return Answer.heuristic({"circuits": result[0].astype(float)}, "longest first, first fit")


METHOD = Method(
    name="ring-first-fit",
    title="First fit on the ring",
    summary="circuits on the ring by first fit, longest first, at bisected times; bounds by segments and cuts",
    serves=("sipml.ring-wavelengths",),
    run=run_ring_first_fit,
)

"""Wavelengths on a ring by first fit: longest circuits first, the shorter way first, the first wavelength that is free.

For a time T every pair needs n_p(T) circuits; first fit places them or not. The times that whole circuits can attain
are bisected for one at which it does, between the analytic bound and one circuit a pair.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from solvers.methods.base import Answer, Method
from solvers.outcome import Termination

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from formulations.sipml.ring_wavelengths import RingTraffic
    from solvers.methods.base import Context

    I64 = NDArray[np.int64]


def attainable_times(data: RingTraffic) -> NDArray[np.float64]:
    """Times V_p / (c B) of whole circuits between the analytic bound and one circuit a pair, ascending [s].

    The last is that of the largest transfer over one circuit, which every assignment attains.
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
    found: list[tuple[int, int, int]] = []
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
                    found.append((p, way, w))
                    break
            else:
                return None
    return np.array(found, dtype=np.int64).reshape(-1, 3)


def search(data: RingTraffic, context: Context | None = None) -> tuple[I64, float] | None:
    """The circuits of the least time that bisection finds, and that time [s]; None if not one each is placed."""
    times = attainable_times(data)
    best = first_fit(data, data.transfers.needs(float(times[-1])))
    if best is None:
        return None
    low, high = -1, times.size - 1
    while high - low > 1:
        if context is not None:
            context.remaining()
        middle = (low + high) // 2
        found = first_fit(data, data.transfers.needs(float(times[middle])))
        if found is None:
            low = middle
        else:
            best, high = found, middle
    return best, float(times[high])


def run(context: Context) -> Answer:
    """First fit at bisected times."""
    found = search(context.data, context)
    solver: dict[str, Any] = {
        "name": "ring-first-fit",
        "version": None,
        "algorithm": "longest first, first fit",
        "options": {},
    }
    if found is None:
        return Answer(
            Termination.ITERATION_LIMIT, solver=solver, message="first fit places not even one circuit a pair"
        )
    return Answer(Termination.TOLERANCE, values={"circuits": found[0].astype(float)}, solver=solver)


METHOD = Method(
    name="ring-first-fit",
    title="First fit on the ring",
    summary="circuits on the ring by first fit, longest first, at bisected times; certified by segments and cuts",
    applies=lambda formulation: formulation.name == "sipml.ring-wavelengths",
    run=run,
)

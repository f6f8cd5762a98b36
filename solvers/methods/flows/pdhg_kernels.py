"""Compiled passes over the (source x arc) array, and the threads that run them.

Layout. Sources are stored in blocks of ``LANES``, contiguous in memory: one vertex or arc of a block is a run of
``LANES`` numbers, so gathering over the graph reads whole cache lines and every inner loop vectorises. Arcs are
sorted by head; ``start[v] .. start[v+1]`` are those into v. Flows, potentials and widths are in single or double
precision, sums over blocks in double precision.

A kernel processes a block or a range of blocks and writes nothing that another block writes; sums over blocks are
formed afterwards in a fixed order. Kernels release the global interpreter lock. Threads persist between passes and
share the chunks of a pass, so an iteration starts no threads.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Self

import numpy as np

from opticoll.compiled import compiled

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from opticoll.instances.topology import F64, I64

    Array = NDArray[np.floating]
    Job = Callable[[int], object]


#: Sources per block.
LANES = 64
#: Single-precision constants: double ones would widen every vector.
ONE, TWO, NIL = np.float32(1.0), np.float32(2.0), np.float32(0.0)


@compiled(nogil=True, fastmath=True, error_model="numpy")
def advance(
    first: int,
    last: int,
    start: I64,
    tail: I64,
    length: Array,
    flow: Array,
    flow0: Array,
    price: Array,
    price0: Array,
    demand: Array,
    width: Array,
    stiff: Array,
    tau: np.floating,
    sigma: np.floating,
    pull: np.floating,
    net: Array,
    buffer: Array,
    load: F64,
) -> None:
    r"""Make one reflected Halpern step of blocks ``first .. last`` in a single pass, in place.

    .. math::

        y^+ = \max(0, y - \tau w (\ell_a - \pi_{head} + \pi_{tail})), \qquad \bar y = 2 y^+ - y,\\
        \pi^+ = \pi + \sigma r (D - M \bar y), \qquad
        (y, \pi) \leftarrow \alpha (2 (y^+, \pi^+) - (y, \pi)) + (1 - \alpha) (y_0, \pi_0)

    with w = ``width`` and r = ``stiff`` by (vertex, source), alpha = ``pull``; ``load`` becomes
    :math:`\sum_s \bar y_{as}` over these blocks.
    """
    n = start.size - 1
    rest = ONE - pull
    load[:] = 0.0
    for b in range(first, last):
        for v in range(n):
            for i in range(LANES):
                net[v, i] = -demand[b, v, i]
        for v in range(n):
            for a in range(start[v], start[v + 1]):
                u = tail[a]
                cost = length[a]
                for i in range(LANES):
                    old = flow[b, a, i]
                    new = max(NIL, old - tau * width[b, v, i] * (cost - price[b, v, i] + price[b, u, i]))
                    bar = new + new - old
                    buffer[i] = bar
                    flow[b, a, i] = pull * bar + rest * flow0[b, a, i]
                total = NIL
                for i in range(LANES):
                    bar = buffer[i]
                    total += bar
                    net[u, i] -= bar
                for i in range(LANES):
                    net[v, i] += buffer[i]
                load[a] += total
        for v in range(n):
            for i in range(LANES):
                bar = price[b, v, i] - TWO * sigma * stiff[b, v, i] * net[v, i]
                price[b, v, i] = pull * bar + rest * price0[b, v, i]


@compiled(nogil=True, error_model="numpy")
def price_simplex(
    weight: F64, weight0: F64, ratio: F64, stiff: F64, sigma: float, pull: float, plain: F64, guess: float
) -> float:
    r"""The same step for the arc weights :math:`\lambda_a = c_a \ell_a` on the simplex, in place.

    ``plain`` becomes :math:`\lambda^+`, the projection of :math:`\lambda + \sigma r \cdot load/c` in the norm
    :math:`\sum_a x_a^2 / r_a`: :math:`\lambda^+_a = \max(0, v_a - r_a \mu)` with the root mu of
    :math:`\sum_a \lambda^+_a = 1` by Newton's method on a convex piecewise linear function. Returns mu, to start
    the next search from.
    """
    m = weight.size
    for a in range(m):
        plain[a] = weight[a] + sigma * stiff[a] * ratio[a]
    mu = guess
    for step in range(200):
        total = 0.0
        slope = 0.0
        for a in range(m):
            entry = plain[a] - stiff[a] * mu
            if entry > 0.0:
                total += entry
                slope += stiff[a]
        if slope == 0.0:  # right of every breakpoint: restart left of the root
            mu = np.inf
            for a in range(m):
                mu = min(mu, (plain[a] - 1.0) / stiff[a])
            continue
        change = (total - 1.0) / slope
        mu += change
        if abs(change) <= 1e-15 * (1.0 + abs(mu)) or (step > 0 and change == 0.0):
            break
    for a in range(m):
        plain[a] = max(0.0, plain[a] - stiff[a] * mu)
        weight[a] = pull * (2.0 * plain[a] - weight[a]) + (1.0 - pull) * weight0[a]
    return mu


@compiled(nogil=True, error_model="numpy")
def distance_sum(start: I64, tail: I64, length: F64, demand: F64, source: I64, reach: F64) -> float:
    r""":math:`\sum_{u,s} D_{us} dist_\ell(s, u)` of one block, by label-correcting sweeps back and forth.

    Sweeps repeat until no label falls: with labels that are too long, the bound would be invalid. ``demand`` has one
    row per vertex, ``source`` one entry per lane, -1 for none.
    """
    n = start.size - 1
    for v in range(n):
        for i in range(LANES):
            reach[v, i] = np.inf
    for i in range(LANES):
        if source[i] >= 0:
            reach[source[i], i] = 0.0
    forward = changed = True
    while changed:
        changed = False
        for position in range(n):
            v = position if forward else n - 1 - position
            for a in range(start[v], start[v + 1]):
                u = tail[a]
                cost = length[a]
                fell = 0
                for i in range(LANES):
                    distance = reach[u, i] + cost
                    better = distance < reach[v, i]
                    fell += better
                    reach[v, i] = distance if better else reach[v, i]
                changed |= fell > 0
        forward = not forward
    result = 0.0
    for v in range(n):
        for i in range(LANES):
            if demand[v, i] > 0.0:
                result += demand[v, i] * reach[v, i]
    return result


class Team:
    """The calling thread and ``size - 1`` helpers.

    Chunks are handed out one by one, so a helper whose core is taken by another program delays a pass by at most one
    chunk. A chunk gives the same result on every thread, so results do not depend on ``size``.

    Parameters
    ----------
    size
        Threads in all, at least 1.
    """

    def __init__(self, size: int) -> None:
        self.size = max(1, size)
        self._helpers = ThreadPoolExecutor(max(self.size - 1, 1))

    def run(self, job: Job, chunks: int) -> None:
        """Call ``job(chunk)`` for every chunk and return when all are done.

        An exception in any of them is raised here after the others have ended.
        """
        left = iter(range(chunks))

        def take() -> None:
            for chunk in left:
                job(chunk)

        helping = [self._helpers.submit(take) for _ in range(1, min(self.size, chunks))]
        try:
            take()
        finally:
            wait(helping)
        for helper in helping:
            helper.result()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._helpers.shutdown()

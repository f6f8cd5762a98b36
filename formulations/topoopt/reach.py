r"""How far bytes must go where servers have few ports: bounds by transport, whatever the circuits.

Source  TopoOpt, section 5.4 (bandwidth tax); Bienstock & Guenluek, Mathematical Programming 68, 1995 (the problem)

With d ports at most c_h = d + d^2 + ... + d^h servers are within h hops of one server, and it is within h hops of at
most c_h. So the pairs within h hops are a set with at most c_h in every row and column, and of the traffic D

    sum_st D_st dist(s,t)  >=  sum_{h >= 0} (sum D - W_h),    W_h = the most traffic of such a set, W_0 = 0.

W_h needs no optimal set: any u, v >= 0 prove W_h <= c_h (sum u + sum v) + sum_st max(0, D_st - u_s - v_t). They are
found by coordinate descent: the best u_s for given v is the (c_h + 1)-th largest of D_st - v_t, or 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from formulations import outward

if TYPE_CHECKING:
    from numpy.typing import NDArray

    F64 = NDArray[np.float64]

#: Rounds of coordinate descent; they end sooner where nothing changes.
ROUNDS = 40


def travelled(demand: F64, degree: int) -> float:
    """The least byte-hops of this traffic by the formula of the module, rounded down.

    Parameters
    ----------
    demand
        Bytes, ``(n, n)``, zero diagonal.
    degree
        Ports of a server, d >= 1.
    """
    n, total = len(demand), outward.sum_down(demand)
    found, within, layer = [0.0], 0, 1
    while within < n - 1:
        found.append(max(outward.sum_down([total, -most_within(demand, within)]), 0.0) if within else total)
        layer = min(layer * degree, n)
        within += layer
    return max(outward.sum_down(found), 0.0)


def most_within(demand: F64, count: int) -> float:
    """An upper bound on W: traffic of a set of pairs with at most ``count`` in every row and column, rounded up."""
    n, total = len(demand), outward.sum_up(demand)
    if count >= n - 1:
        return total
    rows, columns = np.zeros(n), np.zeros(n)
    best = np.inf
    for _ in range(ROUNDS):
        rows = np.maximum(np.sort(demand - columns[None, :], axis=1)[:, n - 1 - count], 0.0)
        columns = np.maximum(np.sort(demand - rows[:, None], axis=0)[n - 1 - count], 0.0)
        excess = outward.sum_up(np.maximum(demand - rows[:, None] - columns[None, :], 0.0))
        # Where some excess is positive its two subtractions lose at most a few units in the last place of the demand.
        dual = outward.up(count * outward.sum_up(np.concatenate([rows, columns])))
        value = outward.sum_up([float(dual), excess, float(outward.up(outward.gamma(4) * total))])
        if value >= best * (1 - 1e-12):
            break
        best = value
    return best

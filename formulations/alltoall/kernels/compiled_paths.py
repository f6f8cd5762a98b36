"""Paths out of a single-source flow, compiled; :mod:`formulations.alltoall.weighted_paths` checks what comes out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    F64 = NDArray[np.float64]
    I64 = NDArray[np.int64]
    I32 = NDArray[np.int32]


@njit(cache=True, nogil=True, error_model="numpy")
def strip(
    left: F64,
    source: int,
    targets: I64,
    amount: F64,
    least: float,
    tail: I64,
    first_in: I64,
    entering: I64,
    walk: I64,
    per_target: I64,
    lengths: I32,
    rates: F64,
    arcs: I32,
) -> tuple[int, int]:
    """Split an acyclic flow that brings ``amount`` to the targets into paths, walking back along the fullest arcs.

    Parameters
    ----------
    left
        The flow, ``(m,)``; what is left of it afterwards.
    targets, amount
        Vertices, and what each gets, positive.
    least
        A demand is served when no more than this share of it is missing.
    per_target, lengths, rates, arcs
        Become the number of paths of each target, and of every path its arcs' number, its rate and, one behind the
        other, its arcs from the source on.

    Returns
    -------
    Numbers of paths and of their arcs; (-1, target) if a target gets too little, (-2, 0) if there is no room.
    """
    paths = 0
    used = 0
    for i in range(targets.size):
        need = amount[i]
        count = 0
        while need > least * amount[i]:
            width = need
            u = targets[i]
            depth = 0
            while u != source:
                best = -1
                fullest = 0.0
                for j in range(first_in[u], first_in[u + 1]):
                    a = entering[j]
                    if left[a] > fullest:
                        fullest = left[a]
                        best = a
                if best < 0:
                    return -1, i
                walk[depth] = best
                depth += 1
                width = min(width, fullest)
                u = tail[best]
            if paths == lengths.size or used + depth > arcs.size:
                return -2, 0
            for k in range(depth):
                a = walk[depth - 1 - k]
                arcs[used + k] = a
                left[a] -= width
            used += depth
            lengths[paths] = depth
            rates[paths] = width
            paths += 1
            count += 1
            need -= width
        # What is missing, within round-off, goes to the paths in proportion.
        for p in range(paths - count, paths):
            rates[p] /= 1.0 - need / amount[i]
        per_target[i] = count
    return paths, used

"""Orbits of permutation groups that are given by generators."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    I64 = NDArray[np.int64]


def orbits_of(images: I64, count: int) -> I64:
    """The orbit of every element 0 .. count-1 under permutations ``(k, count)``, numbered from 0 by least element."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    if not images.size:
        return np.arange(count)
    rows = np.tile(np.arange(count), images.shape[0])
    graph = coo_array((np.ones(rows.size, dtype=np.int8), (rows, images.ravel())), shape=(count, count))
    _, label = connected_components(graph.tocsr(), directed=False)
    _, first, number = np.unique(label, return_index=True, return_inverse=True)
    rank = np.empty(first.size, dtype=np.int64)
    rank[np.argsort(first)] = np.arange(first.size)
    return np.asarray(rank[number], dtype=np.int64)

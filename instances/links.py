"""Undirected links written as pairs of opposite arcs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def both_ways(
    u: ArrayLike, v: ArrayLike, capacity: ArrayLike | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Write every link ``{u, v}`` as the arcs ``u -> v`` and ``v -> u``.

    Parameters
    ----------
    u, v
        Ends of the links, shape ``(links,)``.
    capacity
        Capacity of each direction [link bandwidths], shape ``(links,)``; all ones if None.

    Returns
    -------
    tuple of arrays
        Tails, heads and capacities of the arcs, each of shape ``(2 links,)``.
    """
    first = np.asarray(u, dtype=np.int64).ravel()
    second = np.asarray(v, dtype=np.int64).ravel()
    each = np.ones(first.size) if capacity is None else np.asarray(capacity, dtype=np.float64)
    return np.concatenate([first, second]), np.concatenate([second, first]), np.concatenate([each, each])


def link_groups(
    tail: NDArray[np.int64], head: NDArray[np.int64], capacity: NDArray[np.float64]
) -> tuple[NDArray[np.int64], int]:
    """Tell which arcs make up one link.

    If the arcs other than loops pair off as ``u -> v`` and ``v -> u`` of equal capacity, each pair is one
    link, and so is each loop; otherwise every arc is a link of its own.

    Returns
    -------
    group, links
        The link of every arc, shape ``(m,)``, and the number of links.
    """
    order = np.lexsort((capacity, np.maximum(tail, head), np.minimum(tail, head)))
    ahead, back = order[tail[order] < head[order]], order[tail[order] > head[order]]
    group: NDArray[Any] = np.arange(tail.size)
    if (
        ahead.size != back.size
        or not np.array_equal(tail[ahead], head[back])
        or not np.array_equal(head[ahead], tail[back])
        or not np.array_equal(capacity[ahead], capacity[back])
    ):
        return group, int(tail.size)
    loops = np.flatnonzero(tail == head)
    group[ahead] = np.arange(ahead.size)
    group[back] = np.arange(ahead.size)
    group[loops] = ahead.size + np.arange(loops.size)
    return group, int(ahead.size + loops.size)

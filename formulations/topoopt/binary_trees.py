"""Double binary trees and their traffic."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import NotApplicable

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from opticoll.instances.topology import F64, I64


def binary_tree(n: int) -> I64:
    """Parent of every server in the in-order binary tree, -1 for the root 0; odd servers are leaves. ``(n,)``.

    Raises
    ------
    NotApplicable
        For fewer than two servers.
    """
    if n < 2:
        msg = f"binary tree: a tree needs at least 2 servers, not {n}"
        raise NotApplicable(msg)
    servers = np.arange(1, n)
    bit = servers & -servers
    up = (servers ^ bit) | (bit << 1)
    return np.concatenate([[-1], np.where(up < n, up, servers ^ bit)])


def double_binary_tree(n: int) -> tuple[I64, I64]:
    """Parents in both trees, ``(n,)`` each: the second is the first mirrored (even n) or shifted by one (odd n)."""
    first = binary_tree(n)
    servers = np.arange(n)
    image = n - 1 - servers if n % 2 == 0 else (servers + 1) % n
    second = np.full(n, -1, dtype=np.int64)
    inner = first >= 0
    second[image[inner]] = image[first[inner]]
    return first, second


def permuted(trees: tuple[I64, I64], order: ArrayLike) -> tuple[I64, I64]:
    """Both trees with server v renamed to ``order[v]``.

    Raises
    ------
    NotApplicable
        If ``order`` is not a permutation of the servers.
    """
    new = np.asarray(order, dtype=np.int64)
    if not np.array_equal(np.sort(new), np.arange(trees[0].size)):
        msg = f"binary trees: the order is not a permutation of the {trees[0].size} servers"
        raise NotApplicable(msg)
    rings = []
    for parent in trees:
        renamed = np.full(parent.size, -1, dtype=np.int64)
        renamed[new] = np.where(parent >= 0, new[parent], -1)
        rings.append(renamed)
    return rings[0], rings[1]


def tree_traffic(trees: tuple[I64, I64], size: float) -> F64:
    """Bytes between servers for an all-reduce of ``size`` bytes over both trees, ``(n, n)``."""
    n = trees[0].size
    matrix = np.zeros((n, n))
    for parent in trees:
        child = np.flatnonzero(parent >= 0)
        np.add.at(matrix, (child, parent[child]), size / 2)
        np.add.at(matrix, (parent[child], child), size / 2)
    return matrix


def depth(parent: I64) -> int:
    """Edges between the root and the deepest leaf.

    Raises
    ------
    NotApplicable
        If the parents contain a cycle.
    """
    at, edges = np.arange(parent.size), 0
    while (parent[at] >= 0).any():
        at = np.where(parent[at] >= 0, parent[at], at)
        edges += 1
        if edges >= parent.size:
            msg = "binary tree: the parents contain a cycle; every server but the root needs a parent nearer to it"
            raise NotApplicable(msg)
    return edges

"""Double binary trees and their traffic."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from opticoll.instances.topology import F64, I64


def binary_tree(n: int) -> I64:
    """Parent of every one of n >= 2 servers in the in-order binary tree, -1 for the root 0; odd ones are leaves."""
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


def tree_traffic(trees: tuple[I64, I64], size: float) -> F64:
    """Bytes between servers for an all-reduce of ``size`` bytes over both trees, ``(n, n)``."""
    n = trees[0].size
    matrix = np.zeros((n, n))
    for parent in trees:
        child = np.flatnonzero(parent >= 0)
        np.add.at(matrix, (child, parent[child]), size / 2)
        np.add.at(matrix, (parent[child], child), size / 2)
    return matrix

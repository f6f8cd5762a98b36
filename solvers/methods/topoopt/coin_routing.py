"""Routing along rings as coin change (TopoOpt, appendix)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import NotApplicable
from opticoll.solvers.methods.topoopt.ring_permutations import hops

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opticoll.instances.topology import I64


def geometric_coins(ratio: int, count: int) -> int:
    """Most coins 1, x, .. x^(d-1) that any amount below x^d needs without wrapping round, by dynamic programming."""
    most = ratio**count
    needed = np.zeros(most, dtype=np.int64)
    coins = [ratio**i for i in range(count)]
    for amount in range(1, most):
        needed[amount] = 1 + min(int(needed[amount - c]) for c in coins if c <= amount)
    return int(needed.max())


def coin_table(size: int, coins: Sequence[int]) -> tuple[I64, I64]:
    """Smallest number of coins that add up to each m modulo ``size``, and the last coin; ``(size,)`` each, 0 for m = 0.

    Raises
    ------
    NotApplicable
        If some m cannot be reached.
    """
    distance = hops(size, coins)
    if (distance < 0).any():
        msg = f"coin change: steps {', '.join(map(str, coins))} do not reach all {size} servers; add one co-prime to it"
        raise NotApplicable(msg)
    last = np.zeros(size, dtype=np.int64)
    amounts = np.arange(1, size)
    for coin in sorted(set(coins), reverse=True):  # the smallest fitting coin is written last
        fits = distance[(amounts - coin) % size] == distance[amounts] - 1
        last[amounts[fits]] = coin
    return distance, last


def coin_sequence(size: int, last: I64, amount: int) -> list[int]:
    """The coins that add up to ``amount``, in the order of the route."""
    coins_used: list[int] = []
    left = amount % size
    while left:
        coins_used.append(int(last[left]))
        left = (left - coins_used[-1]) % size
    return coins_used[::-1]


def coin_routes(size: int, coins: Sequence[int]) -> list[list[int]]:
    """Places on the route from place 0 to place m, both included, for every m = 0 .. size-1."""
    _, last = coin_table(size, coins)
    return [np.cumsum([0, *coin_sequence(size, last, m)]).tolist() for m in range(size)]

r"""CoinChangeMod: fewest hops and a route for every distance on overlaid rings.

Source  TopoOpt, appendix E.3, Algorithm 4

Coins are the steps of the rings; the server m places on is reached by coins that add up to m modulo n. The table of
fewest coins is filled breadth first, with the last coin of each entry as back-trace; one table serves all servers.

As printed Algorithm 4 starts a coin at distance 0 where it is one hop: its distances are one too small throughout,
its routes the same. :func:`as_printed` runs the print, for the ledger.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from formulations.base import NotApplicable
from formulations.topoopt.rings import hops

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    I64 = NDArray[np.int64]


def coin_table(size: int, coins: Sequence[int]) -> tuple[I64, I64]:
    """Fewest coins that add up to each m modulo ``size``, and the last of them; ``(size,)`` each, 0 and 0 for m = 0.

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
    for coin in sorted(set(coins), reverse=True):  # the least coin of all that fit stays
        fits = distance[(amounts - coin) % size] == distance[amounts] - 1
        last[amounts[fits]] = coin
    return distance, last


def coin_sequence(size: int, last: I64, amount: int) -> list[int]:
    """The coins that make ``amount``, the last of them last."""
    found: list[int] = []
    left = amount % size
    while left:
        found.append(int(last[left]))
        left = (left - found[-1]) % size
    return found[::-1]


def coin_routes(size: int, coins: Sequence[int]) -> list[list[int]]:
    """Places that a route from place 0 comes to, itself included, for every m = 0 .. size-1."""
    _, last = coin_table(size, coins)
    return [np.cumsum([0, *coin_sequence(size, last, m)]).tolist() for m in range(size)]


def as_printed(size: int, coins: Sequence[int]) -> I64 | None:
    """The distances that Algorithm 4 computes if it is run as printed, ``(size,)``; None if it does not end.

    Entry 0 is not set by the print; it is taken as infinite, as all entries that are no coins.
    """
    distance = np.full(size, np.inf)
    distance[list(coins)] = 0
    for _ in range(2 * size):
        if np.isfinite(distance[1:]).all():
            return np.concatenate([[0], distance[1:]]).astype(np.int64)
        new = distance.copy()
        for i in range(1, size):
            for coin in coins:
                before = distance[(i - coin) % size]
                if before < new[i]:
                    new[i] = before + 1
        distance = new
    return None

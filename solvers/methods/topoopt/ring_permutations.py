"""Regular rings by TotientPerms and SelectPermutations, and routes along them by coin change."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opticoll.instances.topology import I64


def totient_perms(size: int, *, primes: bool = False) -> list[int]:
    """Steps p of all regular rings on ``size`` places, ascending: 1 <= p < size, gcd(p, size) = 1 (Algorithm 2).

    With ``primes`` only +1 and the prime steps, as section 4.3 suggests for large clusters.
    """
    steps = np.arange(1, size)
    coprime: list[int] = steps[np.gcd(steps, size) == 1].tolist()
    return [p for p in coprime if p == 1 or _is_prime(p)] if primes else coprime


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % q for q in range(2, int(number**0.5) + 1))


def is_single_ring(size: int, step: int) -> bool:
    """Whether steps of +step from place 0 visit every place once and return, by walking them."""
    place, visited = step % size, 1
    while place:  # every place has one place before it, so the walk first returns to place 0
        place = (place + step) % size
        visited += 1
    return visited == size


def select_permutations(size: int, count: int, candidates: Sequence[int], ratio: float | None = None) -> list[int]:
    """Steps of ``count`` rings near a geometric sequence of ``ratio``, size^(1/count) by default (Algorithm 3).

    Starts at the smallest candidate. The next one is always the unused candidate nearest to the ratio times the
    previous one, the lower of two at the same distance. With fewer candidates than rings, all are used before any is
    reused.
    """
    factor = size ** (1.0 / count) if ratio is None else ratio
    unused = sorted(candidates)
    chosen = [unused.pop(0)]
    while len(chosen) < count:
        if not unused:
            unused = sorted(candidates)
        goal = factor * chosen[-1]
        chosen.append(unused.pop(int(np.argmin(np.abs(np.array(unused) - goal)))))
    return chosen


def hops(size: int, steps: Sequence[int]) -> I64:
    """Fewest hops to the server m places ahead over the +p rings, for m = 0 .. size-1; -1 if unreachable."""
    distance = np.full(size, -1, dtype=np.int64)
    distance[0] = 0
    front, count = np.zeros(1, dtype=np.int64), 0
    coins = np.asarray(sorted(set(steps)), dtype=np.int64)
    while front.size:
        count += 1
        reached = np.unique((front[:, None] + coins) % size)
        front = reached[distance[reached] < 0]
        distance[front] = count
    return distance


@lru_cache(maxsize=65536)
def selected(size: int, count: int, primes: bool = False, binary: bool = False) -> tuple[int, ...]:
    """Steps that SelectPermutations chooses among those of TotientPerms.

    With ``binary`` and size^(1/count) < 2 there are only log2(size) rings, rounded up, of ratio 2 (appendix E.2).
    """
    candidates = totient_perms(size, primes=primes)
    if binary and size < 2**count:
        return tuple(select_permutations(size, (size - 1).bit_length(), candidates, ratio=2.0))
    return tuple(select_permutations(size, count, candidates))


def diameter(size: int, steps: Sequence[int]) -> int:
    """Most hops between two servers on these rings, which connect all."""
    return int(hops(size, steps).max())


def mean_hops(size: int, steps: Sequence[int]) -> float:
    """Mean hops over all ordered pairs of distinct servers."""
    return float(hops(size, steps).sum()) / (size - 1)


def theorem_1(size: int, count: int) -> float:
    """The expression d n^(1/d) inside the O of Theorem 1."""
    return count * size ** (1.0 / count)


def as_printed(size: int, coins: Sequence[int]) -> I64 | None:
    """The distances that Algorithm 4 computes as printed, ``(size,)``; None if it does not terminate.

    The print does not set entry 0; it is taken as infinite, like all entries that are not coins.
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

    Every m can be reached.
    """
    distance = hops(size, coins)
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

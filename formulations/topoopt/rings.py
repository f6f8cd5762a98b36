r"""Rings of all-reduce groups: TotientPerms, SelectPermutations, and how far apart servers are on them.

Source  TopoOpt, section 4.3, Algorithms 2 and 3, Theorems 1 and 2, appendix E

The +p ring on k places goes from place i to i + p mod k. Theorem 2: it is one ring if and only if gcd(p, k) = 1, so
there are phi(k) of them, all different. d of them together are a directed circulant; a server reaches the one
m places on with as few hops as the fewest coins p_1 .. p_d add up to m modulo k.

Theorem 1 says that d rings near a geometric sequence of ratio x = k^(1/d) have a diameter of O(d k^(1/d)). Appendix E.2
argues with coins 1, x, .. x^(d-1) for a whole x and k = x^d, without wrapping round: the largest amount, k - 1, then
takes x - 1 of each coin, d (x - 1) together (the text's d x bounds that).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from formulations.base import NotApplicable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    I64 = NDArray[np.int64]


def totient_perms(size: int, *, primes: bool = False) -> list[int]:
    """Steps p of all regular rings on ``size`` places, ascending: 1 <= p < size, gcd(p, size) = 1 (Algorithm 2).

    With ``primes`` only +1 and the prime steps, as section 4.3 does for large clusters.

    Raises
    ------
    NotApplicable
        For fewer than two places.
    """
    if size < 2:
        msg = f"rings: {size} server makes no ring; take at least 2"
        raise NotApplicable(msg)
    steps = np.arange(1, size)
    found: list[int] = steps[np.gcd(steps, size) == 1].tolist()
    return [p for p in found if p == 1 or _is_prime(p)] if primes else found


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % q for q in range(2, int(number**0.5) + 1))


def is_single_ring(size: int, step: int) -> bool:
    """Whether going +step from place 0 comes to every place once and back: walked, not calculated."""
    place, seen = 0, np.zeros(size, dtype=bool)
    for _ in range(size):
        if seen[place]:
            return False
        seen[place] = True
        place = (place + step) % size
    return place == 0


def select_permutations(size: int, count: int, candidates: Sequence[int]) -> list[int]:
    """Steps of ``count`` rings near a geometric sequence of ratio size^(1/count) (Algorithm 3).

    Starts at the least candidate; each next one is the unused candidate nearest (the lower of two) to the ratio times
    the one before. Where there are fewer candidates than rings, all are used before any is used again.

    Raises
    ------
    NotApplicable
        Without candidates, or for no rings.
    """
    if not candidates or count < 1:
        msg = f"rings: {count} rings out of {len(candidates)} candidates; take at least one of each"
        raise NotApplicable(msg)
    ratio = size ** (1.0 / count)
    unused = sorted(candidates)
    chosen = [unused.pop(0)]
    while len(chosen) < count:
        if not unused:
            unused = sorted(candidates)
        wanted = ratio * chosen[-1]
        chosen.append(unused.pop(int(np.argmin(np.abs(np.array(unused) - wanted)))))
    return chosen


def hops(size: int, steps: Sequence[int]) -> I64:
    """Fewest hops to the server m places on over the +p rings, for m = 0 .. size-1; -1 where there is no way."""
    distance = np.full(size, -1, dtype=np.int64)
    distance[0] = 0
    front, here = np.zeros(1, dtype=np.int64), 0
    coins = np.asarray(sorted(set(steps)), dtype=np.int64)
    while front.size:
        here += 1
        reached = np.unique((front[:, None] + coins) % size)
        front = reached[distance[reached] < 0]
        distance[front] = here
    return distance


@lru_cache(maxsize=65536)
def selected(size: int, count: int, primes: bool = False) -> tuple[int, ...]:
    """Steps that SelectPermutations takes out of those of TotientPerms."""
    return tuple(select_permutations(size, count, totient_perms(size, primes=primes)))


def diameter(size: int, steps: Sequence[int]) -> int:
    """Most hops between two servers on these rings.

    Raises
    ------
    NotApplicable
        If they do not connect the servers.
    """
    distance = hops(size, steps)
    if (distance < 0).any():
        msg = f"rings: steps {', '.join(map(str, steps))} do not connect {size} servers; take one that is co-prime"
        raise NotApplicable(msg)
    return int(distance.max())


def mean_hops(size: int, steps: Sequence[int]) -> float:
    """Mean hops over all ordered pairs of distinct servers."""
    return float(hops(size, steps).sum()) / (size - 1)


def theorem_1(size: int, count: int) -> float:
    """The expression d n^(1/d) inside the O of Theorem 1."""
    return count * size ** (1.0 / count)


def geometric_coins(ratio: int, count: int) -> int:
    """Most coins 1, x, .. x^(d-1) that an amount below x^d needs without wrapping round, by dynamic programming."""
    most = ratio**count
    needed = np.zeros(most, dtype=np.int64)
    coins = [ratio**i for i in range(count)]
    for amount in range(1, most):
        needed[amount] = 1 + min(int(needed[amount - c]) for c in coins if c <= amount)
    return int(needed.max())

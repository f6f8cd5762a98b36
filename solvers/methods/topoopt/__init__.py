"""Methods for TopoOpt's formulations, with their engines; and the rings that they share.

Rings of all-reduce groups by TotientPerms and SelectPermutations, and routes over them by CoinChangeMod.

Source  TopoOpt, sections 4.3 and E, Algorithms 2, 3 and 4, Theorems 1 and 2

The +p ring on k places goes from place i to i + p mod k. Theorem 2: it is a single ring if and only if gcd(p, k) = 1,
so there are phi(k) different ones. d of them together form a directed circulant, in which the number of hops to the
server m places ahead is the smallest number of coins p_1 .. p_d that add up to m modulo k. CoinChangeMod tabulates
these numbers breadth first, with the last coin of every entry to trace routes back; one table serves all servers.

Appendix E.2 adds that if k^(1/d) < 2 a ratio of 2 is better, with log2 k rings, rounded up; ``binary`` applies it.

Theorem 1: d rings near a geometric sequence of ratio x = k^(1/d) have a diameter of O(d k^(1/d)). Appendix E.2 argues
with coins 1, x, .. x^(d-1) for an integer x and k = x^d, without wrapping round: the largest amount, k - 1, then takes
x - 1 of each coin, d (x - 1) together (the text bounds this by d x).

As printed, Algorithm 4 starts a coin at distance 0 although it is one hop, so all its distances are one too small; the
routes are the same. :func:`as_printed` follows the print, for the comparison with the paper.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.model import NotApplicable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from opticoll.instances.digraph import F64, I64


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


def totient_perms(size: int, *, primes: bool = False) -> list[int]:
    """Steps p of all regular rings on ``size`` places, ascending: 1 <= p < size, gcd(p, size) = 1 (Algorithm 2).

    With ``primes`` only +1 and the prime steps, as section 4.3 suggests for large clusters.

    Raises
    ------
    NotApplicable
        For fewer than two places.
    """
    if size < 2:
        msg = f"rings: a ring needs at least 2 servers, not {size}"
        raise NotApplicable(msg)
    steps = np.arange(1, size)
    coprime: list[int] = steps[np.gcd(steps, size) == 1].tolist()
    return [p for p in coprime if p == 1 or _is_prime(p)] if primes else coprime


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % q for q in range(2, int(number**0.5) + 1))


def is_single_ring(size: int, step: int) -> bool:
    """Whether steps of +step from place 0 visit every place once and return, by walking them."""
    place, seen = 0, np.zeros(size, dtype=bool)
    for _ in range(size):
        if seen[place]:
            return False
        seen[place] = True
        place = (place + step) % size
    return place == 0


def select_permutations(size: int, count: int, candidates: Sequence[int], ratio: float | None = None) -> list[int]:
    """Steps of ``count`` rings near a geometric sequence of ``ratio``, size^(1/count) by default (Algorithm 3).

    Starts at the smallest candidate. The next one is always the unused candidate nearest to the ratio times the
    previous one, the lower of two at the same distance. With fewer candidates than rings, all are used before any is
    reused.

    Raises
    ------
    NotApplicable
        Without candidates, or for fewer than one ring.
    """
    if not candidates or count < 1:
        msg = f"rings: cannot choose {count} rings from {len(candidates)} candidates; use at least one of each"
        raise NotApplicable(msg)
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
    """Most hops between two servers on these rings.

    Raises
    ------
    NotApplicable
        If they do not connect the servers.
    """
    distance = hops(size, steps)
    if (distance < 0).any():
        msg = f"rings: steps {', '.join(map(str, steps))} do not connect {size} servers; add a step co-prime to it"
        raise NotApplicable(msg)
    return int(distance.max())


def mean_hops(size: int, steps: Sequence[int]) -> float:
    """Mean hops over all ordered pairs of distinct servers."""
    return float(hops(size, steps).sum()) / (size - 1)


def theorem_1(size: int, count: int) -> float:
    """The expression d n^(1/d) inside the O of Theorem 1."""
    return count * size ** (1.0 / count)


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

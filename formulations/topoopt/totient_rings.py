"""Rings of all-reduce groups: TotientPerms, SelectPermutations, and how far apart servers are on them.

Source  TopoOpt, section 4.3, Algorithms 2 and 3, Theorems 1 and 2, appendix E

The +p ring on k places goes from place i to i + p mod k. Theorem 2: it is one ring if and only if gcd(p, k) = 1, so
there are phi(k) of them, all different. d of them together are a directed circulant; a server reaches the one
m places on with as few hops as the fewest coins p_1 .. p_d add up to m modulo k.

Theorem 1 says that d rings near a geometric sequence of ratio x = k^(1/d) have a diameter of O(d k^(1/d)). Appendix E.2
argues with coins 1, x, .. x^(d-1) for a whole x and k = x^d, without wrapping round: the largest amount, k - 1, then
takes x - 1 of each coin, d (x - 1) together (the text's d x bounds that).

Double binary trees: an all-reduce over two trees, each server inner in one and leaf in the other.

Source  TopoOpt, appendix A; trees as in NCCL (Sanders, Speck & Traeff, Parallel Computing 35, 2009)

Each tree reduces one half of S bytes to its root and broadcasts it back: S/2 up and S/2 down every edge, so all servers
together send 2 (n-1) S, as over a ring, and none sends more than 2 S. Server labels may be permuted at will, which
changes the traffic matrix and not the time (mutability); the paper takes the permutations i -> p i mod n with
gcd(p, n) = 1.

CoinChangeMod: fewest hops and a route for every distance on overlaid rings.

Source  TopoOpt, appendix E.3, Algorithm 4

Coins are the steps of the rings; the server m places on is reached by coins that add up to m modulo n. The table of
fewest coins is filled breadth first, with the last coin of each entry as back-trace; one table serves all servers.

As printed Algorithm 4 starts a coin at distance 0 where it is one hop: its distances are one too small throughout,
its routes the same. :func:`as_printed` runs the print, for the ledger.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.model import NotApplicable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    I64 = NDArray[np.int64]
    from numpy.typing import ArrayLike, NDArray


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


def binary_tree(n: int) -> I64:
    """Parent of every server in the in-order binary tree, -1 for the root 0; odd servers are leaves. ``(n,)``.

    Raises
    ------
    NotApplicable
        For fewer than two servers.
    """
    if n < 2:
        msg = f"binary tree: {n} server makes no tree; take at least 2"
        raise NotApplicable(msg)
    servers = np.arange(1, n)
    bit = servers & -servers
    up = (servers ^ bit) | (bit << 1)
    return np.concatenate([[-1], np.where(up < n, up, servers ^ bit)])


def double_binary_tree(n: int) -> tuple[I64, I64]:
    """Parents in both trees, ``(n,)`` each: the second is the first mirrored (even n) or moved on by one (odd n)."""
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
        If ``order`` is no permutation of the servers.
    """
    new = np.asarray(order, dtype=np.int64)
    if not np.array_equal(np.sort(new), np.arange(trees[0].size)):
        msg = f"binary trees: the order is no permutation of the {trees[0].size} servers"
        raise NotApplicable(msg)
    found = []
    for parent in trees:
        renamed = np.full(parent.size, -1, dtype=np.int64)
        renamed[new] = np.where(parent >= 0, new[parent], -1)
        found.append(renamed)
    return found[0], found[1]


def tree_traffic(trees: tuple[I64, I64], size: float) -> NDArray[np.float64]:
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
        If the parents are no tree.
    """
    at, hops = np.arange(parent.size), 0
    while (parent[at] >= 0).any():
        at = np.where(parent[at] >= 0, parent[at], at)
        hops += 1
        if hops >= parent.size:
            msg = "binary tree: the parents go round in a circle; give every server but the root one nearer to it"
            raise NotApplicable(msg)
    return hops


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

"""Low-diameter graphs: Petersen, Slim Fly (McKay-Miller-Siran) and Dragonfly."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import BadInput
from opticoll.instances.digraph import Topology, both_ways, check_size
from opticoll.instances.spec import check_positive, family

if TYPE_CHECKING:
    from numpy.typing import NDArray


@family("petersen", example="petersen", source="Petersen, L'Intermediaire des Mathematiciens 5, 1898")
def petersen() -> Topology:
    r"""Petersen graph: 10 nodes, degree 3, diameter 2, the Moore bound.

    Outer ring 0..4, spokes :math:`i \leftrightarrow i+5`, inner pentagram on 5..9.
    """
    i = np.arange(5)
    u = np.concatenate([i, i, i + 5])
    v = np.concatenate([(i + 1) % 5, i + 5, (i + 2) % 5 + 5])
    return Topology(10, *both_ways(u, v), spec="petersen")


def _prime_power(q: int) -> tuple[int, int] | None:
    """``(p, k)`` with ``q = p**k`` and ``p`` prime, or None."""
    p = next((f for f in range(2, int(q**0.5) + 1) if q % f == 0), q)
    k, rest = 0, q
    while rest % p == 0:
        rest, k = rest // p, k + 1
    return (p, k) if rest == 1 and q > 1 else None


def _primitive_powers(p: int, k: int) -> NDArray[np.int64]:
    """The powers 0 .. q-2 of a primitive element of GF(q), q = p^k, as coefficient vectors.

    The element is x modulo the first monic polynomial of degree k that makes x primitive (for k = 1 the
    smallest primitive root), so the result is unique. Shape ``(q - 1, k)``, constant term first.
    """
    q = p**k
    for low in itertools.product(range(p), repeat=k):  # x^k = low[0] + low[1] x + ...
        powers = np.zeros((q - 1, k), dtype=np.int64)
        current = np.zeros(k, dtype=np.int64)
        current[0] = 1
        power = current.copy()
        for exponent in range(q - 1):
            powers[exponent] = current
            top = current[-1]
            current = (np.concatenate([[0], current[:-1]]) + top * np.array(low)) % p
            if np.array_equal(current, power) or not current.any():
                break
        if exponent == q - 2 and np.array_equal(current, power):
            return powers
    msg = f"no primitive element of GF({q})"  # unreachable: every finite field has one
    raise AssertionError(msg)


@family("slimfly", example="slimfly:q=5", source="McKay, Miller & Siran 1998; Besta & Hoefler, SC14 (Slim Fly)")
def slimfly(q: int) -> Topology:
    r"""Slim Fly: the McKay-Miller-Siran graphs, of diameter 2 near the Moore bound.

    :math:`q = 4w + \delta` is a prime power, :math:`\delta \in \{-1, 0, 1\}`, and :math:`\xi` a primitive
    element of :math:`GF(q)`. Nodes :math:`(0, x, y)` and :math:`(1, m, c)`, numbered in this order
    (elements as numbers in base :math:`p`), with links

    * :math:`(0,x,y) \sim (0,x,y')` if :math:`y - y' \in X`,
    * :math:`(1,m,c) \sim (1,m,c')` if :math:`c - c' \in X'`,
    * :math:`(0,x,y) \sim (1,m,c)` if :math:`y = m x + c`,

    where :math:`X` contains the even and :math:`X'` the odd powers of :math:`\xi`; for :math:`\delta = -1`,
    :math:`X = \{\xi^0, \xi^2, …, \xi^{2w-2}, \xi^{2w-1}, \xi^{2w+1}, …, \xi^{4w-3}\}` and
    :math:`X' = \xi X`; for :math:`\delta = 0`, :math:`X = \{\xi^0, …, \xi^{q-2}\}` and
    :math:`X' = \xi X`. Order :math:`2q^2`, degree :math:`(3q - \delta)/2`, diameter 2. ``q=5`` is the
    Hoffman-Singleton graph.

    Parameters
    ----------
    q
        Prime power, at least 3, not 2 modulo 4.

    Raises
    ------
    BadInput
        If ``q`` is not such a prime power, or the graph is too large.
    """
    check_positive(q, "q", "slimfly", least=3)
    check_size(2 * q * q, 3 * q * q * q, "slimfly")
    factors = _prime_power(q)
    if factors is None or q % 4 == 2:
        msg = f"slimfly: q={q} must be a prime power 4w-1, 4w or 4w+1, such as 3, 4, 5, 7, 8, 9, 11"
        raise BadInput(msg)
    p, k = factors
    digits = np.arange(q)[:, None] // p ** np.arange(k) % p
    weights = p ** np.arange(k)
    powers = _primitive_powers(p, k) @ weights  # power -> element
    logarithm = np.zeros(q, dtype=np.int64)
    logarithm[powers] = np.arange(q - 1)
    subtract = ((digits[:, None, :] - digits[None, :, :]) % p) @ weights
    product = powers[(logarithm[:, None] + logarithm[None, :]) % (q - 1)]
    product[0, :] = product[:, 0] = 0
    if q % 4 == 3:
        w = (q + 1) // 4
        even = np.concatenate([np.arange(0, 2 * w - 1, 2), np.arange(2 * w - 1, 4 * w - 2, 2)])
    else:
        even = np.arange(0, q - 1, 2)
    inside = np.zeros((2, q), dtype=bool)
    inside[0, powers[even]] = True
    inside[1, powers[(even + 1) % (q - 1)]] = True
    column = np.arange(q)
    u, v = [], []
    for side in range(2):
        a, b = np.nonzero(np.triu(inside[side][subtract], k=1))
        u.append((side * q * q + column[:, None] * q + a).ravel())
        v.append((side * q * q + column[:, None] * q + b).ravel())
    x, m, y = (axis.ravel() for axis in np.meshgrid(column, column, column, indexing="ij"))
    u.append(x * q + y)
    v.append(q * q + m * q + subtract[y, product[m, x]])
    return Topology(2 * q * q, *both_ways(np.concatenate(u), np.concatenate(v)), spec="slimfly")


@family(
    "dragonfly",
    example="dragonfly:a=4,h=2",
    source="Kim, Dally, Scott & Abts, ISCA 2008; palm tree: Camarero, Vallejo & Beivide, TACO 11(4), 2014",
)
def dragonfly(a: int, h: int, g: int | None = None) -> Topology:
    r"""Dragonfly of routers: complete groups, and global links in the palm-tree arrangement.

    Router :math:`r` of group :math:`G` is node :math:`G a + r`. Routers of a group are all linked. Port
    :math:`k` of a group, :math:`0 \le k < a h`, sits on its router :math:`\lfloor k / h \rfloor`. For
    :math:`0 \le i < \lfloor a h / (g-1) \rfloor` and :math:`0 \le j \le g-2`, port :math:`i(g-1) + j` of
    group :math:`G` joins port :math:`i(g-1) + g-2-j` of group :math:`G + j + 1 \bmod g`. So every pair of
    groups has :math:`\lfloor a h/(g-1) \rfloor` links, and leftover ports are unused; with few groups some
    links may join the same two routers. With the default :math:`g = a h + 1` every pair has one link,
    the degree is :math:`a - 1 + h`, and the diameter is at most 3. The routers themselves are the
    terminals, so the usual third parameter *p* (hosts on a router) does not appear.

    Parameters
    ----------
    a
        Routers in a group, at least 1.
    h
        Global links of a router, at least 1.
    g
        Groups, ``2 <= g <= a h + 1``; ``a h + 1`` if not given.

    Raises
    ------
    BadInput
        If a parameter is out of range.
    """
    check_positive(a, "a", "dragonfly")
    check_positive(h, "h", "dragonfly")
    groups = a * h + 1 if g is None else g
    if not 2 <= groups <= a * h + 1:
        msg = f"dragonfly: g={groups} groups must lie in 2..{a * h + 1} (at most a*h+1)"
        raise BadInput(msg)
    rounds = a * h // (groups - 1)
    check_size(groups * a, groups * (a * (a - 1) + rounds * (groups - 1)), "dragonfly")
    group = np.arange(groups)[:, None]
    left, right = np.triu_indices(a, k=1)
    i, j = (axis.ravel() for axis in np.meshgrid(np.arange(rounds), np.arange(groups - 1), indexing="ij"))
    router = group * a + (i * (groups - 1) + j) // h
    peer_group = (group + j + 1) % groups
    peer = peer_group * a + (i * (groups - 1) + groups - 2 - j) // h
    once = group < peer_group
    u = np.concatenate([(group * a + left).ravel(), router[once]])
    v = np.concatenate([(group * a + right).ravel(), peer[once]])
    names = tuple(f"{G}.{r}" for G in range(groups) for r in range(a))
    return Topology(groups * a, *both_ways(u, v), spec="dragonfly", labels=names)

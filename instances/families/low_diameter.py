"""Low-diameter graphs: Kautz, de Bruijn, Petersen, Slim Fly, PolarFly, Dragonfly; metacyclic Cayley graphs."""

from __future__ import annotations

import itertools
from fractions import Fraction
from itertools import pairwise
from math import log
from typing import TYPE_CHECKING

import numpy as np

from opticoll.arguments import whole_number
from opticoll.errors import refuse
from opticoll.instances.spec import Dimensions, family
from opticoll.instances.topology import MAX_VERTICES, Topology, both_ways, check_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opticoll.instances.topology import I64


def _power(d: int, exponent: int, name: str) -> int:
    """``d**exponent``, refused as soon as it exceeds the largest number of vertices."""
    value = 1
    for _ in range(exponent if d > 1 else 0):
        value *= d
        if value > MAX_VERTICES:
            refuse(name, f"{d}**{exponent} vertices exceed the limit of {MAX_VERTICES}; choose a smaller instance")
    return value


def _digraph(head: I64, loops: str, name: str, labels: tuple[str, ...] | None = None) -> Topology:
    """Topology in which node v has arcs to ``head[v]``; ``head`` has shape ``(n, d)``."""
    n, d = head.shape
    tail, heads = np.repeat(np.arange(n), d), head.ravel()
    keep = np.ones(n * d, dtype=bool) if loops == "keep" else tail != heads
    return Topology(n, tail[keep], heads[keep], spec=name, labels=labels)


def _check_loops(loops: str, name: str) -> None:
    if loops not in {"drop", "keep"}:
        refuse(name, f"loops={loops!r} is unknown; write loops=drop or loops=keep")


def _spelled(words: I64) -> tuple[str, ...]:
    """Labels for words ``(n, length)``, with dots between the letters if any letter has two digits."""
    between = "" if words.max(initial=0) < 10 else "."
    return tuple(between.join(map(str, word)) for word in words.tolist())


def _letter_swaps(words: I64) -> Iterator[I64]:
    """Swaps of neighbouring letters, as permutations of the words ``(n, length)`` that name the vertices."""
    count = int(words.max()) + 1
    place_values = count ** np.arange(words.shape[1])
    keys = words @ place_values
    order = np.argsort(keys)
    for a, b in pairwise(range(count)):
        letter = np.arange(count)
        letter[[a, b]] = b, a
        yield order[np.searchsorted(keys, letter[words] @ place_values, sorter=order)]


def _kautz_words(d: int, D: int) -> I64:
    """Letters of every vertex: the first as it is, every later one as its distance - 1 from the previous one."""
    length = D if d > 1 else min(D, 2)  # two letters alternate: the first one determines the word
    shorter = d ** (D - 1)
    first, steps = np.divmod(np.arange(shorter * (d + 1)), shorter)
    words = np.empty((first.size, length), dtype=np.int64)
    words[:, 0] = first
    for k in range(1, length):
        words[:, k] = (words[:, k - 1] + steps // d ** (D - 1 - k) % d + 1) % (d + 1)
    return words


def _debruijn_words(d: int, D: int) -> I64:
    """The digits of 0 .. d^D - 1 in base d, most significant first."""
    return np.asarray(np.arange(d**D)[:, None] // d ** np.arange(D - 1, -1, -1) % d, dtype=np.int64)


def _genkautz_swaps(n: int, d: int, **_: object) -> Iterator[I64]:
    r"""Letter swaps for :math:`n = d^k`, where the generalized Kautz digraph is the de Bruijn digraph.

    With :math:`(d+1) c = -d \pmod n`, the digits of :math:`x - c` in base :math:`-d` are shifted by one along each
    arc.
    """
    length = round(log(n, d)) if 1 < d < n else 0
    if d**length != n:
        return
    rest = (np.arange(n) + d * pow(d + 1, -1, n)) % n
    words = np.empty((n, length), dtype=np.int64)
    for k in range(length):
        words[:, k] = rest % d
        rest = (words[:, k] - rest) // d % d ** (length - k)
    yield from _letter_swaps(words)


@family(
    "kautz",
    example="kautz:d=2,D=2",
    source="Kautz, Proc. 1968 Symp. Switching & Automata Theory",
    automorphisms=lambda d, D: _letter_swaps(_kautz_words(d, D)),
)
def kautz(d: int, D: int) -> Topology:
    r"""Kautz digraph: words without equal neighbours, shifted by one letter along each arc.

    Nodes are the words :math:`x_1 … x_D` over :math:`d + 1` letters with :math:`x_i \ne x_{i+1}`; arcs
    :math:`x_1 … x_D \to x_2 … x_D y` for each :math:`y \ne x_D`. Order :math:`d^D + d^{D-1}`, out- and
    in-degree :math:`d`, diameter :math:`D`, no loops; isomorphic to ``genkautz`` of that order and degree
    (Imase & Itoh 1983). Labels are the words.

    Parameters
    ----------
    d
        Degree, at least 1.
    D
        Diameter (length of the words), at least 1.

    Raises
    ------
    BadInput
        If a parameter is out of range.
    """
    whole_number(d, "kautz: d", 1)
    whole_number(D, "kautz: D", 1)
    shorter = _power(d, D - 1, "kautz")
    n = shorter * (d + 1)
    check_size(n, n * d, "kautz")
    words = _kautz_words(d, D)
    first, steps = np.divmod(np.arange(n), shorter)
    new = np.arange(d)
    if words.shape[1] == 1:
        head = (first[:, None] + new + 1) % (d + 1)
    else:
        head = (words[:, 1] * shorter + steps * d % shorter)[:, None] + new
    return _digraph(head, "keep", "kautz", _spelled(words))


@family(
    "debruijn",
    example="debruijn:d=2,D=3",
    source="de Bruijn, Proc. Kon. Ned. Akad. Wet. 49, 1946",
    automorphisms=lambda d, D, **_: _letter_swaps(_debruijn_words(d, D)),
)
def debruijn(d: int, D: int, loops: str = "drop") -> Topology:
    r"""De Bruijn digraph: all words, shifted by one letter along each arc.

    Node :math:`i` has arcs to :math:`d i + j \bmod d^D` for :math:`0 \le j < d`; its label is its word,
    :math:`i` in base :math:`d`. Order :math:`d^D`, diameter :math:`D`. The :math:`d` constant words have
    a self-loop each, which carries no flow: dropped by default, so those nodes have degree
    :math:`d - 1` and all others :math:`d`.

    Parameters
    ----------
    d
        Degree and number of letters, at least 2.
    D
        Diameter (length of the words), at least 1.
    loops
        ``drop`` or ``keep``.

    Raises
    ------
    BadInput
        If a parameter is out of range.
    """
    whole_number(d, "debruijn: d", 2)
    whole_number(D, "debruijn: D", 1)
    _check_loops(loops, "debruijn")
    n = _power(d, D, "debruijn")
    check_size(n, n * d, "debruijn")
    head = (d * np.arange(n)[:, None] + np.arange(d)) % n
    return _digraph(head, loops, "debruijn", _spelled(_debruijn_words(d, D)))


@family(
    "genkautz",
    example="genkautz:n=16,d=4",
    source="Imase & Itoh, IEEE Trans. Computers C-32(8), 1983",
    automorphisms=_genkautz_swaps,
)
def genkautz(n: int, d: int, loops: str = "drop") -> Topology:
    r"""Generalized Kautz (Imase-Itoh) digraph: any order and degree, near-optimal distances.

    Node :math:`i` has arcs to :math:`-d i - j \bmod n` for :math:`1 \le j \le d`. Out- and in-degree
    :math:`d`, counting loops and parallel arcs; diameter at most :math:`\lceil \log_d n \rceil` for
    :math:`d \ge 2`; strongly connected for :math:`d \ge 2`. With :math:`g = \gcd(d+1, n)` exactly
    :math:`g \lfloor d/g \rfloor` arcs are self-loops (none if and only if :math:`d+1` divides :math:`n`).
    A self-loop carries no flow: dropped by default, so its node has degree below :math:`d`. Parallel
    arcs, which exist if and only if :math:`d > n`, are kept, each with capacity 1.

    Parameters
    ----------
    n
        Number of nodes, at least 2.
    d
        Degree, at least 1 (1 gives the involution :math:`i \to -i-1`, disconnected for :math:`n > 2`).
    loops
        ``drop`` or ``keep``.

    Raises
    ------
    BadInput
        If a parameter is out of range.
    """
    whole_number(n, "genkautz: n", 2)
    whole_number(d, "genkautz: d", 1)
    _check_loops(loops, "genkautz")
    check_size(n, n * d, "genkautz")
    nodes = np.arange(n)
    head = (-d * nodes[:, None] - np.arange(1, d + 1)) % n
    return _digraph(head, loops, "genkautz")


@family(
    "petersen",
    example="petersen",
    source="Petersen, L'Intermediaire des Mathematiciens 5, 1898",
    closed_form=lambda: Fraction(5),  # 3 nodes at distance 1 and 6 at 2, over 3 arcs, which are all alike
)
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


def _primitive_powers(p: int, k: int) -> I64:
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


def _field(p: int, k: int) -> tuple[I64, I64, I64]:
    """Differences and products in GF(q), q = p^k, ``(q, q)`` each, and the powers of a primitive element, ``(q - 1,)``.

    Elements are numbers in base p, whose digits are the coefficients of polynomials, the constant term the lowest.
    """
    q, weights = p**k, p ** np.arange(k)
    digits = np.arange(q)[:, None] // weights % p
    powers = _primitive_powers(p, k) @ weights
    logarithm = np.zeros(q, dtype=np.int64)
    logarithm[powers] = np.arange(q - 1)
    difference = ((digits[:, None, :] - digits[None, :, :]) % p) @ weights
    product = powers[(logarithm[:, None] + logarithm[None, :]) % (q - 1)]
    product[0, :] = product[:, 0] = 0
    return difference, product, powers


@family(
    "slimfly",
    example="slimfly:q=5",
    source="McKay, Miller & Siran 1998; Besta & Hoefler, SC14 (Slim Fly)",
    closed_form=lambda q: Fraction(3 * q - 2),
)
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

    :math:`T = 3q - 2` for every such :math:`q`. Lower bound: give length 1 to the links between the halves and 0 to
    those inside columns (of equal half and :math:`x` or :math:`m`). Of a node, the :math:`q^2` nodes of the other half
    are at least 1 away, the :math:`q^2 - q` of other columns of its half 2, and :math:`q` links have length 1:
    :math:`T \ge (q^2 + 2 (q^2 - q)) / q`. It is attained by equal split over shortest paths, as follows. These cross
    between the halves no more often than that. The maps :math:`(0,x,y) \to (0, x+a, y+b+tx)`,
    :math:`(1,m,c) \to (1, m+t, c+b-(m+t)a)` are automorphisms that join all links between the halves, so these carry
    :math:`3q - 2` each. A link inside a column, of difference :math:`d`, carries 1 for its ends, at most :math:`2q` for
    pairs in different halves (the link and one of the :math:`q` links between the halves at either end), and in its
    column, for each element :math:`e` not in :math:`X` as difference of a pair, twice the share
    :math:`[e - d \in X] / r(e)`, where :math:`r(e)` counts the ordered sums of two elements of :math:`X`. The latter
    add up to 2 for :math:`\delta = 1`, where :math:`r(e) = (q-1)/4`; to at most :math:`q/2 - 1` for
    :math:`\delta = 0`, where :math:`r(e)` is even; and to at most :math:`q - 3` for :math:`\delta = -1`, with
    :math:`(q-3)/2` such elements: never more than :math:`3q - 2` in all.

    Parameters
    ----------
    q
        Prime power, at least 3 and not 2 modulo 4.

    Raises
    ------
    BadInput
        If ``q`` is not such a prime power, or the graph is too large.
    """
    whole_number(q, "slimfly: q", 3)
    check_size(2 * q * q, 3 * q * q * q, "slimfly")
    factors = _prime_power(q)
    if factors is None or q % 4 == 2:
        refuse("slimfly", f"q={q} must be a prime power 4w-1, 4w or 4w+1, such as 3, 4, 5, 7, 8, 9, 11")
    subtract, product, powers = _field(*factors)
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


class _ProjectivePlane:
    """Projective plane over GF(q): its points, ``(q^2 + q + 1, 3)``, have 1 as the first coordinate other than 0."""

    def __init__(self, p: int, k: int) -> None:
        self.q = p**k
        self.difference, self.product, _ = _field(p, k)
        x, y = np.divmod(np.arange(self.q**2), self.q)
        line, plane = np.stack([0 * y, 0 * y + 1, y], axis=1)[: self.q], np.stack([0 * x + 1, x, y], axis=1)
        self.points = np.concatenate([[[0, 0, 1]], line, plane])

    def total(self, first: I64, *others: I64) -> I64:
        """Sum in GF(q)."""
        for other in others:
            first = self.difference[first, self.difference[0, other]]
        return first

    def numbers(self, vectors: I64) -> I64:
        """Number of the point of every vector ``(..., 3)`` other than 0."""
        inverse = np.argmax(self.product == 1, axis=1)
        lead = np.take_along_axis(vectors, np.argmax(vectors != 0, axis=-1)[..., None], axis=-1)
        x, y, z = np.moveaxis(self.product[inverse[lead], vectors], -1, 0)
        return np.where(x == 1, 1 + self.q + y * self.q + z, np.where(y == 1, 1 + z, 0))

    def sheared(self, axis: list[int], factor: int) -> I64:
        """Numbers of the images under v -> v + factor (v . axis) axis."""
        along = self.total(*(self.product[c, self.points[:, i]] for i, c in enumerate(axis)))
        step = self.product[self.product[factor, along][:, None], np.array(axis)]
        return self.numbers(self.total(self.points, step))


def _polar_symmetries(q: int) -> Iterator[I64]:
    """Permutations of coordinates, powers of p, and reflections, or for even q transvections: all keep v . w = 0."""
    p, k = _prime_power(q) or (q, 1)
    plane = _ProjectivePlane(p, k)
    for order in ([1, 2, 0], [1, 0, 2]):
        yield plane.numbers(plane.points[:, order])
    if k > 1:
        image = plane.points
        for _ in range(p - 1):
            image = plane.product[image, plane.points]
        yield plane.numbers(image)
    for y in range(q):
        norm = int(plane.total(np.array(1), np.array(1), plane.product[y, y]))
        if q % 2 == 0:
            yield plane.sheared([1, y, int(plane.total(np.array(1), np.array(y)))], 1)
        elif norm:
            two = int(plane.total(np.array(1), np.array(1)))
            yield plane.sheared([1, y, 1], int(np.argmax(plane.product[norm] == plane.difference[0, two])))


@family(
    "polarfly",
    example="polarfly:q=5",
    source="Erdos & Renyi 1962, Brown 1966 (polarity graphs); Lakhotia et al., SC22 (PolarFly)",
    automorphisms=_polar_symmetries,
)
def polarfly(q: int) -> Topology:
    r"""PolarFly: the Erdős-Rényi polarity graphs, of diameter 2 and asymptotically the Moore bound.

    Nodes are the points of the projective plane over :math:`GF(q)`, given by the vectors whose first coordinate other
    than 0 is 1, in lexicographic order; labels are ``x.y.z`` (elements as numbers in base :math:`p`). Two points are
    linked if :math:`x \cdot x' + y \cdot y' + z \cdot z' = 0`; the loops of the :math:`q + 1` points that are
    orthogonal to themselves (quadrics) are dropped. Order :math:`q^2 + q + 1`, degree :math:`q + 1`, of quadrics
    :math:`q`, diameter 2. Two nodes have one common neighbour, or none if they are a quadric and its neighbour, so
    shortest paths are unique and load a link of a quadric by :math:`2q`, every other one by :math:`2q - 1`.

    Parameters
    ----------
    q
        Prime power, at least 2.

    Raises
    ------
    BadInput
        If ``q`` is no prime power, or the graph is too large.
    """
    whole_number(q, "polarfly: q", 2)
    n = q * q + q + 1
    check_size(n, q * (q + 1) ** 2, "polarfly")
    factors = _prime_power(q)
    if factors is None:
        refuse("polarfly", f"q={q} must be a prime power, such as 2, 3, 4, 5, 7, 8, 9, 11")
    plane = _ProjectivePlane(*factors)
    x, y, z = plane.points.T
    minus = plane.difference[0]
    # Two points of the line orthogonal to each point, which with all sums v + s w make up the line.
    v = np.stack([np.where(x == 1, minus[y], 1), x, 0 * x], axis=1)
    w = np.stack(
        [np.where(x == 1, minus[z], 0), np.where(x == 1, 0, np.where(y == 1, minus[z], 1)), (x == 1) | (y == 1)], axis=1
    )
    multiples = plane.product[np.arange(q)[:, None], w[:, None, :]]
    head = plane.numbers(np.concatenate([plane.total(v[:, None, :], multiples), w[:, None, :]], axis=1))
    labels = tuple(".".join(map(str, point)) for point in plane.points.tolist())
    return _digraph(head, "drop", "polarfly", labels)


@family(
    "dragonfly",
    example="dragonfly:a=4,h=2",
    source="Kim, Dally, Scott & Abts, ISCA 2008; palm tree: Camarero, Vallejo & Beivide, TACO 11(4), 2014",
)
def dragonfly(a: int, h: int, g: int | None = None) -> Topology:
    r"""Dragonfly of routers: complete groups, and global links in the palm-tree arrangement.

    Router :math:`r` of group :math:`G` is node :math:`G a + r`. Routers of a group are all linked. Port
    :math:`k` of a group, :math:`0 \le k < a h`, belongs to its router :math:`\lfloor k / h \rfloor`. For
    :math:`0 \le i < \lfloor a h / (g-1) \rfloor` and :math:`0 \le j \le g-2`, port :math:`i(g-1) + j` of
    group :math:`G` joins port :math:`i(g-1) + g-2-j` of group :math:`G + j + 1 \bmod g`. So every pair of
    groups has :math:`\lfloor a h/(g-1) \rfloor` links, and leftover ports are unused; with few groups some
    links may join the same two routers. With the default :math:`g = a h + 1` every pair has one link,
    the degree is :math:`a - 1 + h`, and the diameter is at most 3. The routers themselves are the
    terminals, so the usual third parameter *p* (hosts per router) does not appear.

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
    whole_number(a, "dragonfly: a", 1)
    whole_number(h, "dragonfly: h", 1)
    groups = a * h + 1 if g is None else g
    if not 2 <= groups <= a * h + 1:
        refuse("dragonfly", f"g={groups} groups must lie in 2..{a * h + 1} (at most a*h+1)")
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


def product(m: int, k: int, r: int, left: I64 | int, right: I64 | int) -> I64:
    r"""Product of elements of :math:`Z_m \rtimes_r Z_k`, numbered :math:`bm + a` for :math:`(a, b)`."""
    power = np.array([pow(r, b, m) for b in range(k)], dtype=np.int64)
    b, a = np.divmod(left, m)
    e, c = np.divmod(right, m)
    return np.asarray((b + e) % k * m + (a + power[b] * c) % m, dtype=np.int64)


def inverse(m: int, k: int, r: int, element: I64 | int) -> I64:
    """Inverse of elements of the same group."""
    back = np.array([pow(r, -b % k, m) for b in range(k)], dtype=np.int64)
    b, a = np.divmod(element, m)
    return np.asarray(-b % k * m + -back[b] * a % m, dtype=np.int64)


def _left_translations(m: int, k: int, r: int, generators: Dimensions, directed: bool = False) -> Iterator[I64]:
    """Left translations by (1, 0) and (0, 1): they generate a group that is transitive on the nodes."""
    nodes = np.arange(m * k)
    yield product(m, k, r, 1 % m, nodes)
    yield product(m, k, r, m % (m * k), nodes)


@family(
    "cayley",
    example="cayley:m=7,k=3,r=2,generators=1x8",
    source="Biggs, Algebraic Graph Theory, 2nd ed. 1993, chapter 16; Curran & Gallian, Discrete Mathematics 156, 1996",
    automorphisms=_left_translations,
)
def cayley(m: int, k: int, r: int, generators: Dimensions, directed: bool = False) -> Topology:
    r"""Cayley graph of a metacyclic group: vertex-transitive, of any order and degree.

    The group :math:`Z_m \rtimes_r Z_k` has the elements :math:`(a, b)`, node :math:`bm + a`, and the product
    :math:`(a, b)(c, e) = (a + r^b c \bmod m, \; b + e \bmod k)`. Node :math:`x` has arcs to :math:`xg` for every
    generator :math:`g`, and unless ``directed`` to :math:`xg^{-1}`. With :math:`k = 1` it is a circulant graph, with
    :math:`r = 1` an abelian group, with :math:`k = 2`, :math:`r = m - 1` a dihedral one. Degree: one for each
    generator; two-way, two for each that is not its own inverse. Connected if and only if the generators generate the
    group; others are accepted.

    Parameters
    ----------
    m, k
        Orders of the two cyclic groups, at least 1.
    r
        Multiplier, with :math:`r^k \equiv 1 \pmod m`.
    generators
        Out-neighbours of node 0, in :math:`1 .. mk-1`, such as ``1x8``; two-way graphs take only one of :math:`g` and
        :math:`g^{-1}`.
    directed
        Whether arcs run one way only; otherwise every arc has a reverse.

    Raises
    ------
    BadInput
        If a parameter is out of range, ``r`` does not fit, or a generator is repeated.
    """
    whole_number(m, "cayley: m", 1)
    whole_number(k, "cayley: k", 1)
    n = m * k
    whole_number(n, "cayley: m k", 2)
    check_size(n, n * len(generators) * (1 if directed else 2), "cayley")
    if not 0 <= r < max(m, 2) or pow(r, k, m) != 1 % m:
        refuse("cayley", f"r={r} must lie in 0..{m - 1} with r^{k} = 1 modulo {m}; r=1 always does")
    seen: dict[int, int] = {}
    for g in generators:
        if not 1 <= g < n:
            refuse("cayley", f"generator {g} must lie in 1..{n - 1}")
        for element in {g} if directed else {g, int(inverse(m, k, r, g))}:
            if element in seen:
                refuse("cayley", f"generators {seen[element]} and {g} give the same links; omit one of them")
            seen[element] = g
    nodes = np.arange(n)
    head = product(m, k, r, nodes[:, None], np.array(sorted(seen), dtype=np.int64)[None, :])
    return Topology(n, np.repeat(nodes, len(seen)), head.ravel(), spec="cayley")

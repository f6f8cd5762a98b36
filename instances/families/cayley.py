"""Cayley graphs of metacyclic groups: vertex-transitive graphs of every order and degree."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import BadInput
from opticoll.instances.digraph import Topology, check_size
from opticoll.instances.spec import Dimensions, check_positive, family

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    I64 = NDArray[np.int64]


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
    check_positive(m, "m", "cayley")
    check_positive(k, "k", "cayley")
    n = m * k
    check_positive(n, "m k", "cayley", least=2)
    check_size(n, n * len(generators) * (1 if directed else 2), "cayley")
    if not 0 <= r < max(m, 2) or pow(r, k, m) != 1 % m:
        msg = f"cayley: r={r} must lie in 0..{m - 1} with r^{k} = 1 modulo {m}; r=1 always does"
        raise BadInput(msg)
    seen: dict[int, int] = {}
    for g in generators:
        if not 1 <= g < n:
            msg = f"cayley: generator {g} must lie in 1..{n - 1}"
            raise BadInput(msg)
        for element in {g} if directed else {g, int(inverse(m, k, r, g))}:
            if element in seen:
                msg = f"cayley: generators {seen[element]} and {g} give the same links; leave one out"
                raise BadInput(msg)
            seen[element] = g
    nodes = np.arange(n)
    head = product(m, k, r, nodes[:, None], np.array(sorted(seen), dtype=np.int64)[None, :])
    return Topology(n, np.repeat(nodes, len(seen)), head.ravel(), spec="cayley")

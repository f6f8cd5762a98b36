"""Rings, paths, stars, complete and complete bipartite graphs, and circulant graphs."""

from __future__ import annotations

from fractions import Fraction
from math import gcd
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import BadInput
from opticoll.instances.digraph import Topology, both_ways, check_size
from opticoll.instances.spec import Dimensions, check_positive, family

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray


def _ring_time(n: int, directed: bool) -> Fraction:
    if directed:
        return Fraction(n * (n - 1), 2)
    return Fraction(n * n // 4, 2) if n > 2 else Fraction(1)


@family(
    "ring",
    example="ring:8",
    source="Diestel, Graph Theory, 5th ed. 2017, section 1.3 (cycles)",
    closed_form=_ring_time,
)
def ring(n: int, directed: bool = False) -> Topology:
    r"""Ring of n nodes, both ways or one way round.

    Node :math:`i` has arcs to :math:`i \pm 1 \bmod n`, or with ``directed`` to :math:`i+1 \bmod n` only.
    Degree 2 and diameter :math:`\lfloor n/2 \rfloor`; directed: degree 1, diameter :math:`n-1`. The
    two-way ring of two nodes is a single link.

    Parameters
    ----------
    n
        Number of nodes, at least 2.
    directed
        Whether arcs run one way only.

    Raises
    ------
    BadInput
        If ``n`` is out of range.
    """
    check_positive(n, "n", "ring", least=2)
    check_size(n, n if directed else 2 * n, "ring")
    i = np.arange(n)
    if directed:
        return Topology(n, i, (i + 1) % n, spec="ring")
    i = i[: 1 if n == 2 else n]
    return Topology(n, *both_ways(i, (i + 1) % n), spec="ring")


@family(
    "path",
    example="path:4",
    source="Diestel, Graph Theory, 5th ed. 2017, section 1.3 (paths)",
    closed_form=lambda n: Fraction((n // 2) * ((n + 1) // 2)),  # the middle link
)
def path(n: int) -> Topology:
    r"""Path of n nodes, links both ways between neighbours.

    Arcs :math:`i \leftrightarrow i+1` for :math:`0 \le i < n-1`; diameter :math:`n-1`.

    Parameters
    ----------
    n
        Number of nodes, at least 2.

    Raises
    ------
    BadInput
        If ``n`` is out of range.
    """
    check_positive(n, "n", "path", least=2)
    check_size(n, 2 * (n - 1), "path")
    i = np.arange(n - 1)
    return Topology(n, *both_ways(i, i + 1), spec="path")


@family("star", example="star:6", source="Diestel, Graph Theory, 5th ed. 2017, section 1.7 (stars)")
def star(n: int) -> Topology:
    """Star of n nodes: hub 0 linked to all others.

    The hub is one of the n nodes: :math:`n-1` leaves of degree 1, diameter 2 for :math:`n > 2`.

    Parameters
    ----------
    n
        Number of nodes, hub included, at least 2.

    Raises
    ------
    BadInput
        If ``n`` is out of range.
    """
    check_positive(n, "n", "star", least=2)
    check_size(n, 2 * (n - 1), "star")
    leaves = np.arange(1, n)
    return Topology(n, *both_ways(np.zeros_like(leaves), leaves), spec="star")


def _transposed(n: int, u: int, v: int) -> NDArray[np.int64]:
    image = np.arange(n)
    image[[u, v]] = v, u
    return image


@family(
    "complete",
    example="complete:5",
    source="Diestel, Graph Theory, 5th ed. 2017, section 1.1",
    automorphisms=lambda n: [_transposed(n, 0, 1)],
    closed_form=lambda n: Fraction(1),
)
def complete(n: int) -> Topology:
    r"""Complete graph: every node linked to every other.

    :math:`n(n-1)` arcs, degree :math:`n-1`, diameter 1.

    Parameters
    ----------
    n
        Number of nodes, at least 2.

    Raises
    ------
    BadInput
        If ``n`` is out of range.
    """
    check_positive(n, "n", "complete", least=2)
    check_size(n, n * (n - 1), "complete")
    return Topology(n, *both_ways(*np.triu_indices(n, k=1)), spec="complete")


def _bipartite_automorphisms(shape: Dimensions) -> Iterator[NDArray[np.int64]]:
    """A rotation and a transposition of each side, and the exchange of equal sides."""
    a, b = shape
    left, right = np.arange(a), np.arange(b)
    yield np.concatenate([np.roll(left, -1), a + right])
    yield np.concatenate([left, a + np.roll(right, -1)])
    for size, first in ((a, 0), (b, a)):
        if size > 1:
            yield _transposed(a + b, first, first + 1)
    if a == b:
        yield np.concatenate([a + left, right])


@family(
    "bipartite",
    example="bipartite:4x4",
    source="Diestel, Graph Theory, 5th ed. 2017, section 1.6",
    automorphisms=_bipartite_automorphisms,
    closed_form=lambda shape: 3 - Fraction(2, shape[0]) if len(shape) == 2 and shape[0] == shape[1] else None,
)
def bipartite(shape: Dimensions) -> Topology:
    r"""Complete bipartite graph: every node of one side linked to every node of the other.

    Sides :math:`0 .. a-1` and :math:`a .. a+b-1`; :math:`2ab` arcs, degrees :math:`b` and :math:`a`,
    diameter 2 (1 if :math:`a=b=1`).

    Parameters
    ----------
    shape
        The two sides, ``axb``, each at least 1.

    Raises
    ------
    BadInput
        If there are not two sides, or one is out of range.
    """
    if len(shape) != 2:
        msg = f"bipartite: {shape} has {len(shape)} sides; write two, such as 4x4"
        raise BadInput(msg)
    a, b = shape
    check_positive(min(a, b), "each side", "bipartite")
    check_size(a + b, 2 * a * b, "bipartite")
    left, right = np.divmod(np.arange(a * b), b)
    return Topology(a + b, *both_ways(left, a + right), spec="bipartite")


def _unit_multiplications(n: int, offsets: Dimensions, directed: bool) -> Iterator[NDArray[np.int64]]:
    """Multiplications of Z_n by units that map the set of jumps to itself."""
    jumps = np.unique(offsets if directed else [*offsets, *(n - offset for offset in offsets)])
    for unit in range(2, n):
        if gcd(unit, n) == 1 and np.array_equal(np.unique(jumps * unit % n), jumps):
            yield np.arange(n) * unit % n


@family(
    "circulant",
    example="circulant:n=12,offsets=1x5",
    source="Elspas & Turner, J. Combinatorial Theory 9(3), 1970; directed: TopoOpt, Theorem 2 (+p rings)",
    automorphisms=_unit_multiplications,
)
def circulant(n: int, offsets: Dimensions, directed: bool = False) -> Topology:
    r"""Circulant graph: every node linked to the nodes at a fixed set of jumps.

    Node :math:`i` has arcs to :math:`i \pm o \bmod n` for every offset :math:`o`, or with ``directed`` to
    :math:`i + o \bmod n` only. Degree two for each offset, one for :math:`o = n/2`; directed: one for each.
    Connected if and only if :math:`\gcd(n, o_1, …, o_k) = 1`; other offsets are accepted.

    Parameters
    ----------
    n
        Number of nodes, at least 2.
    offsets
        Jumps in :math:`1 .. n-1`, such as ``1x5``; two-way graphs take only one of :math:`o` and
        :math:`n - o`.
    directed
        Whether arcs run one way only.

    Raises
    ------
    BadInput
        If ``n`` is out of range, or an offset is out of range or repeated.
    """
    check_positive(n, "n", "circulant", least=2)
    check_size(n, n * len(offsets) * (1 if directed else 2), "circulant")
    seen: dict[int, int] = {}
    for offset in offsets:
        if not 1 <= offset < n:
            msg = f"circulant: offset {offset} must lie in 1..{n - 1}"
            raise BadInput(msg)
        jump = offset if directed else min(offset, n - offset)
        if jump in seen:
            msg = f"circulant: offsets {seen[jump]} and {offset} give the same links; leave one out"
            raise BadInput(msg)
        seen[jump] = offset
    nodes = np.arange(n)
    tails, heads = [], []
    for jump in seen:
        start = nodes[: n // 2] if not directed and 2 * jump == n else nodes
        tails.append(start)
        heads.append((start + jump) % n)
    u, v = np.concatenate(tails), np.concatenate(heads)
    return Topology(n, u, v, spec="circulant") if directed else Topology(n, *both_ways(u, v), spec="circulant")

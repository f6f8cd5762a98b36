"""Rings, paths, stars, complete and complete bipartite graphs: the families with textbook optima.

Circulant graphs: fixed jumps round a ring.
"""

from __future__ import annotations

import numpy as np

from opticoll.errors import BadInput
from opticoll.instances.digraph import Topology, both_ways, check_size
from opticoll.instances.spec import Dimensions, check_positive, family


@family("ring", example="ring:8", source="Diestel, Graph Theory, 5th ed. 2017, section 1.3 (cycles)")
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


@family("path", example="path:4", source="Diestel, Graph Theory, 5th ed. 2017, section 1.3 (paths)")
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

    The hub counts: :math:`n-1` leaves of degree 1, diameter 2 for :math:`n > 2`.

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


@family("complete", example="complete:5", source="Diestel, Graph Theory, 5th ed. 2017, section 1.1")
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


@family("bipartite", example="bipartite:4x4", source="Diestel, Graph Theory, 5th ed. 2017, section 1.6")
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
        msg = f"bipartite: {shape} names {len(shape)} sides; write two, such as 4x4"
        raise BadInput(msg)
    a, b = shape
    check_positive(min(a, b), "each side", "bipartite")
    check_size(a + b, 2 * a * b, "bipartite")
    left, right = np.divmod(np.arange(a * b), b)
    return Topology(a + b, *both_ways(left, a + right), spec="bipartite")


@family(
    "circulant",
    example="circulant:n=12,offsets=1x5",
    source="Elspas & Turner, J. Combinatorial Theory 9(3), 1970; directed: TopoOpt, Theorem 2 (+p rings)",
)
def circulant(n: int, offsets: Dimensions, directed: bool = False) -> Topology:
    r"""Circulant graph: every node linked to those a fixed set of jumps away.

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
            msg = f"circulant: offsets {seen[jump]} and {offset} make the same links; leave one out"
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

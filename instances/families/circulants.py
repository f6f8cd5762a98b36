"""Circulant graphs: fixed jumps round a ring."""

from __future__ import annotations

import numpy as np

from instances.errors import BadInput
from instances.links import both_ways
from instances.spec import Dimensions, check_positive, family
from instances.topology import Topology, check_size


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

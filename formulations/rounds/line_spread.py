r"""Fewest arcs that one chunk occupies on a line or ring until every node has it, by the number of rounds.

A circuit occupies every arc from its sender to its receiver, and a node sends a chunk only if it had it before the
round began. Let g_R(m) be the fewest arcs over which m consecutive nodes without the chunk, between two nodes that have
it, receive it in R rounds, and o_R(m) the same beyond the last node that has it, at an end of the line:

    g_0(m) = o_0(m) = 0 if m = 0, else infinite
    g_R(m) = min over positions 1 <= p_1 < ... < p_k <= m of  sum_i min(p_i, m + 1 - p_i) + sum over gaps of g_(R-1)
    o_R(m) = min over positions of  sum_i p_i + sum over inner gaps of g_(R-1) + o_(R-1)(m - p_k)

Proof by induction on R: in the first round some of the m nodes receive the chunk. Nodes that have it are only at the
ends of the gap and beyond, so each of them takes at least the arcs from the nearer end. Afterwards they cut the gap
into shorter ones, to each of which the same applies. g_1(m) = floor((m + 1)^2 / 4) is the one-stage model of OpTree,
Lemma 1, and g_R(m) = m for R >= m / 2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opticoll.instances.topology import F64


def arcs_to_fill(most: int) -> Iterator[tuple[F64, F64]]:
    """For R = 1, 2, ... the fewest arcs ``g_R(m)`` and ``o_R(m)`` for m = 0 .. ``most``, ``(most + 1,)`` each."""
    size = np.arange(most + 1)[:, None]
    place = np.arange(most + 2)[None, :]
    between, beyond = np.minimum(place, np.maximum(size + 1 - place, 0)).astype(float), np.arange(most + 1.0)
    closed, open_ended = (np.where(np.arange(most + 1) == 0, 0.0, np.inf) for _ in range(2))
    while True:
        # ``fewest[m, p]``: arcs if p is the last position so far and everything before it is complete.
        fewest, single = np.zeros((most + 1, most + 2)), np.zeros(most + 1)
        for p in range(1, most + 2):
            fewest[:, p] = between[:, p] + (fewest[:, :p] + closed[p - 1 :: -1]).min(axis=1)
            if p <= most:
                single[p] = beyond[p] + (single[:p] + closed[p - 1 :: -1]).min()
        open_ended = np.array([(single[: m + 1] + open_ended[m::-1]).min() for m in range(most + 1)])
        closed = fewest[np.arange(most + 1), np.arange(1, most + 2)]
        yield closed, open_ended

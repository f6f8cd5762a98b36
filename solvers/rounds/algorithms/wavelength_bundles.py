r"""Edge colouring of bipartite multigraphs: bundles of wavelengths for circuits that share no waveguide.

Source  König 1916: max degree colours suffice; by alternating paths, O(E (V + degree))

Senders are one side, receivers the other: a colour is a bundle of wavelengths, which a GPU sends and receives once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    I64 = NDArray[np.int64]


def edge_colours(sources: I64, targets: I64, n: int) -> I64:
    """Colours of edges ``sources[k] -> targets[k]``, ``(K,)``: as many as the largest degree, no two alike."""
    degree = max(int(np.bincount(ends, minlength=1).max()) for ends in (sources, targets)) if sources.size else 0
    # at[v][c]: the edge of colour c at vertex v; senders are 0 .. n - 1, receivers n .. 2 n - 1.
    at = np.full((2 * n, max(degree, 1)), -1, dtype=np.int64)
    ends = np.column_stack([sources, targets + n])
    colour = np.full(sources.size, -1, dtype=np.int64)
    for k in range(sources.size):
        u, v = ends[k]
        a, b = int(np.argmin(at[u] >= 0)), int(np.argmin(at[v] >= 0))
        if at[v, a] >= 0:
            # The path from v that alternates a, b does not end in u: swap its colours and a is free at both.
            edges, here, want = [], int(v), a
            while (e := int(at[here, want])) >= 0:
                edges.append(e)
                here = int(ends[e].sum()) - here
                want = a + b - want
            for e in edges:
                at[ends[e], colour[e]] = -1
            for e in edges:
                colour[e] = a + b - colour[e]
                at[ends[e], colour[e]] = e
        colour[k] = a
        at[u, a] = at[v, a] = k
    return colour

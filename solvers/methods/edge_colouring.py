"""Matrices of whole numbers as sums of permutations, and edge colourings of bipartite multigraphs (Koenig)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import refuse

if TYPE_CHECKING:
    from opticoll.instances.topology import I64


def filled_up(matrix: I64, top: int) -> I64:
    """A matrix no smaller than this one whose rows and columns all have the sum ``top``, at least the largest here."""
    out, into = top - matrix.sum(axis=1), top - matrix.sum(axis=0)
    result, i, j = matrix.copy(), 0, 0
    while i < len(matrix) and j < len(matrix):
        more = min(out[i], into[j])
        result[i, j] += more
        out[i] -= more
        into[j] -= more
        if out[i] == 0:
            i += 1
        else:
            j += 1
    return result


def permutations_and_weights(matrix: I64) -> tuple[I64, I64]:
    """Permutations ``(m, n)`` and their whole weights ``(m,)``, for a matrix of equal line sums.

    Hopcroft and Karp's algorithm finds a perfect matching of the positive entries, which exists by Hall's theorem; its
    weight is its least entry, so that at least one entry vanishes with each.
    """
    import scipy.sparse as sp
    from scipy.sparse.csgraph import maximum_bipartite_matching

    left, rows = matrix.copy(), np.arange(len(matrix))
    heads, weights = [], []
    while left.any():
        image = maximum_bipartite_matching(sp.csr_matrix(left > 0), perm_type="column").astype(np.int64)
        least = int(left[rows, image].min())
        left[rows, image] -= least
        heads.append(image)
        weights.append(least)
    return np.array(heads, dtype=np.int64).reshape(-1, len(matrix)), np.array(weights, dtype=np.int64)


def matchings(n: int, source: I64, target: I64, colours: int) -> I64:
    """Find a matching for every switch: ``match[q, i]`` is the server to which i sends on switch q, -1 for none.

    The numbers of circuits are filled up to D in all rows and columns: a sum of D permutations, without what was added.

    Parameters
    ----------
    n
        Number of servers.
    source, target
        Ends of every circuit, parallel ones repeated, ``(E,)``.
    colours
        Number of switches D.

    Raises
    ------
    BadInput
        If a server has more outgoing or incoming circuits than there are switches.
    """
    count = np.bincount(source * n + target, minlength=n * n).reshape(n, n)
    for name, degree in (("out of", count.sum(axis=1)), ("into", count.sum(axis=0))):
        if degree.max(initial=0) > colours:
            i = int(degree.argmax())
            refuse("edge colouring", f"{int(degree[i])} circuits {name} server {i} on {colours} switches; remove some")
    match = np.repeat(*permutations_and_weights(filled_up(count, colours)), axis=0)
    servers = np.arange(n)
    for row in match:
        wanted = count[servers, row] > 0
        count[servers, row] -= wanted
        row[~wanted] = -1
    return match

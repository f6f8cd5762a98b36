"""Method ``birkhoff``: the demand as a combination of permutations, which ignores the delay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.solvers.methods.method import Answer, Method
from opticoll.solvers.methods.topology.matching_schedules import assigned, values_of, wanted
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from opticoll.formulations.topology.matchings import TopologyMatchings
    from opticoll.instances.topology import F64, I64
    from opticoll.solvers.methods.method import Context

#: Units of the largest line sum in which demands are counted, rounded up.
UNITS = 2.0**40


def filled_up(demand: I64) -> I64:
    """A matrix no smaller than the demand whose rows and columns all have its largest line sum."""
    out, into = demand.sum(axis=1), demand.sum(axis=0)
    top = max(out.max(), into.max())
    result, i, j = demand.copy(), 0, 0
    out, into = top - out, top - into
    while i < len(demand) and j < len(demand):
        more = min(out[i], into[j])
        result[i, j] += more
        out[i] -= more
        into[j] -= more
        if out[i] == 0:
            i += 1
        else:
            j += 1
    return result


def decomposed(matrix: I64) -> tuple[I64, I64]:
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
    return np.array(heads), np.array(weights)


def permutations_of(data: TopologyMatchings) -> tuple[I64, F64]:
    """Matchings of pairs with demand ``(m, n)`` and their lengths ``(m,)``."""
    unit = max(data.demand.sum(axis=1).max(), data.demand.sum(axis=0).max()) / UNITS
    heads, weights = decomposed(filled_up(np.ceil(data.demand / unit).astype(np.int64)))
    heads = wanted(data, heads)
    some = (heads >= 0).any(axis=1)
    return heads[some], weights[some] * unit


def run(context: Context) -> Answer:
    """Birkhoff and von Neumann's decomposition, its permutations assigned longest first.

    The demand, rounded up to 2^-40 of the largest line sum, is filled up to equal line sums and decomposed into
    permutations by perfect matchings of its positive entries, each as long as its least entry. Their lengths add up to
    the largest line sum, which is optimal without delay; their number, up to (n-1)^2 + 1, does not count.
    """
    data: TopologyMatchings = context.data
    heads, lengths = permutations_of(data)
    schedule = assigned(data, heads, lengths)
    return Answer(
        Termination.TOLERANCE,
        values=values_of(data, schedule),
        solver={"name": "birkhoff", "version": None, "algorithm": "perfect matchings", "options": {}},
    )


def refuse(data: TopologyMatchings) -> str | None:
    """Why it does not serve the data: it keeps to no number of configurations."""
    return None if data.enough else "its number of matchings cannot be limited; leave out configurations="


METHOD = Method(
    name="birkhoff",
    title="Birkhoff and von Neumann's decomposition",
    summary="the demand as a combination of permutations, assigned to the switches longest first; ignores the delay",
    serves=("topology.matchings",),
    run=run,
    refuse=refuse,
)

"""Methods ``birkhoff`` and ``spectra``: the demand as a combination of permutations."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.topology import matching_bounds
from opticoll.solvers.methods.edge_colouring import filled_up, permutations_and_weights
from opticoll.solvers.methods.method import Answer, Method
from opticoll.solvers.methods.topology.matching_schedules import (
    assigned,
    equalized,
    extended,
    fitted,
    heads_of,
    values_of,
    wanted,
)

if TYPE_CHECKING:
    from opticoll.formulations.topology.matchings import TopologyMatchings
    from opticoll.instances.topology import F64, I64
    from opticoll.solvers.methods.method import Context


#: Units of the largest line sum in which demands are counted, rounded up.
UNITS = 2.0**40


def permutations_of(data: TopologyMatchings) -> tuple[I64, F64]:
    """Matchings of pairs with demand ``(m, n)`` and their lengths ``(m,)``."""
    unit = max(data.demand.sum(axis=1).max(), data.demand.sum(axis=0).max()) / UNITS
    counted = np.ceil(data.demand / unit).astype(np.int64)
    top = max(counted.sum(axis=1).max(), counted.sum(axis=0).max())
    heads, weights = permutations_and_weights(filled_up(counted, top))
    heads = wanted(data, heads)
    some = (heads >= 0).any(axis=1)
    return heads[some], weights[some] * unit


def run_birkhoff(context: Context) -> Answer:
    """Birkhoff and von Neumann's decomposition, its permutations assigned longest first.

    The demand, rounded up to 2^-40 of the largest line sum, is filled up to equal line sums and decomposed into
    permutations by perfect matchings of its positive entries, each as long as its least entry. Their lengths add up to
    the largest line sum, which is optimal without delay; their number, up to (n-1)^2 + 1, does not count.
    """
    data: TopologyMatchings = context.data
    heads, lengths = permutations_of(data)
    schedule = assigned(data, heads, lengths)
    return Answer.heuristic(values_of(data, schedule), "perfect matchings")


def refuse(data: TopologyMatchings) -> str | None:
    """Why it does not serve the data: it keeps to no number of configurations."""
    return None if data.enough else "cannot limit the number of matchings; leave out configurations="


BIRKHOFF = Method(
    name="birkhoff",
    title="Birkhoff and von Neumann's decomposition",
    summary="the demand as a combination of permutations, assigned to the switches longest first; ignores the delay",
    serves=("topology.matchings",),
    run=run_birkhoff,
    refuse=refuse,
)


def fewest_matchings(demand: F64) -> I64:
    """Heads of as many matchings as a node has partners, each pair with demand in one of them, ``(Delta, n)``."""
    return heads_of(matching_bounds.fewest_matchings(demand), len(demand))


def fewest_permutations(data: TopologyMatchings) -> tuple[I64, F64]:
    """The matchings, extended to pairs that others serve at idle ports, and lengths of least sum."""
    heads = extended(data, fewest_matchings(data.demand))
    single = fitted(replace(data, switches=1), heads, np.zeros(len(heads), dtype=np.int64))
    assert single is not None
    return single.heads, single.lengths


def run_spectra(context: Context) -> Answer:
    """Decompose, Schedule, Equalize: the three steps of Spectra (arXiv 2603.07373), in our reading.

    1. Decompose: a minimal set of weighted permutations, as many as a node has partners. The abstract states no more;
       that each covers the nodes with the most partners left and is then of largest weight, and that the weights are
       of least sum (a linear program), is our reading.
    2. Schedule: the longest first, on the switch that ends first.
    3. Equalize: half of the difference between the last and the first switch, less the delay, moves as a part of the
       longest permutation, until no move pays.
    """
    data: TopologyMatchings = context.data
    heads, lengths = fewest_permutations(data)
    schedule = equalized(data, assigned(data, heads, lengths))
    return Answer.heuristic(values_of(data, schedule), "decompose, schedule, equalize")


SPECTRA = Method(
    name="spectra",
    title="Decompose, schedule, equalize (Spectra)",
    summary="as few permutations as a node has partners, assigned to the switches and split for equal loads, in our "
    "reading of arXiv 2603.07373",
    serves=("topology.matchings",),
    run=run_spectra,
    refuse=refuse,
)


METHODS = (BIRKHOFF, SPECTRA)

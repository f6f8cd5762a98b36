"""Method ``spectra``: as few permutations as a node has partners, assigned and split for equal loads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.topology import matching_bounds
from opticoll.solvers.methods.method import Answer, Method
from opticoll.solvers.methods.topology.birkhoff import refuse
from opticoll.solvers.methods.topology.matching_schedules import (
    assigned,
    equalized,
    extended,
    fitted,
    heads_of,
    values_of,
)
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from opticoll.formulations.topology.matchings import TopologyMatchings
    from opticoll.instances.topology import F64, I64
    from opticoll.solvers.methods.method import Context


def fewest_matchings(demand: F64) -> I64:
    """Heads of as many matchings as a node has partners, each pair with demand in one of them, ``(Delta, n)``."""
    return heads_of(matching_bounds.fewest_matchings(demand), len(demand))


def decomposed(data: TopologyMatchings) -> tuple[I64, F64]:
    """The matchings, extended to pairs that others serve at idle ports, and lengths of least sum."""
    heads = extended(data, fewest_matchings(data.demand))
    single = fitted(_on_one_switch(data), heads, np.zeros(len(heads), dtype=np.int64))
    assert single is not None
    return single.heads, single.lengths


def _on_one_switch(data: TopologyMatchings) -> TopologyMatchings:
    from dataclasses import replace

    return replace(data, switches=1)


def run(context: Context) -> Answer:
    """Decompose, Schedule, Equalize: the three steps of Spectra (arXiv 2603.07373), in our reading.

    1. Decompose: a minimal set of weighted permutations, as many as a node has partners. The abstract states no more;
       that each covers the nodes with the most partners left and is then of largest weight, and that the weights are
       of least sum (a linear program), is our reading.
    2. Schedule: the longest first, on the switch that ends first.
    3. Equalize: half of the difference between the last and the first switch, less the delay, moves as a part of the
       longest permutation, until no move pays.
    """
    data: TopologyMatchings = context.data
    heads, lengths = decomposed(data)
    schedule = equalized(data, assigned(data, heads, lengths))
    return Answer(
        Termination.TOLERANCE,
        values=values_of(data, schedule),
        solver={"name": "spectra", "version": None, "algorithm": "decompose, schedule, equalize", "options": {}},
    )


METHOD = Method(
    name="spectra",
    title="Decompose, schedule, equalize (Spectra)",
    summary="as few permutations as a node has partners, assigned to the switches and split for equal loads, in our "
    "reading of arXiv 2603.07373",
    serves=("topology.matchings",),
    run=run,
    refuse=refuse,
)

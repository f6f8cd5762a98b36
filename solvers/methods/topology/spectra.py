"""Method ``spectra``: as few permutations as a node has partners, assigned and split for equal loads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.solvers.methods.method import Answer, Method
from opticoll.solvers.methods.topology.birkhoff import refuse
from opticoll.solvers.methods.topology.matching_schedules import (
    assigned,
    equalized,
    extended,
    fitted,
    values_of,
)
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from opticoll.formulations.topology.matchings import TopologyMatchings
    from opticoll.instances.topology import F64, I64
    from opticoll.solvers.methods.method import Context


def fewest_matchings(demand: F64) -> I64:
    """As many matchings as a node has partners, each pair with demand in one of them, ``(Delta, n)``.

    Each covers every node that has the most partners left, by Koenig's theorem, and then is of largest demand.
    """
    from scipy.optimize import linear_sum_assignment

    left, n = demand.copy(), len(demand)
    result = []
    bonus = float(demand.max()) * (n + 1)
    while left.any():
        out, into = (left > 0).sum(axis=1), (left > 0).sum(axis=0)
        most = max(out.max(), into.max())
        urgent = (out == most)[:, None].astype(float) + (into == most)[None, :]
        rows, heads = linear_sum_assignment(np.where(left > 0, left + bonus * urgent, 0.0), maximize=True)
        used = left[rows, heads] > 0
        left[rows[used], heads[used]] = 0.0
        result.append(np.where(used, heads, -1))
    return np.array(result)


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

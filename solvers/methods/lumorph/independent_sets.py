"""Method ``independent-sets``: batches of all-reduces as greedy maximal independent sets (appendix C)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.lumorph.co_scheduling_solution import values_of
from opticoll.solvers.methods.lumorph.collective_algorithms import independent_sets
from opticoll.solvers.methods.method import Answer, Beyond, Method

if TYPE_CHECKING:
    from opticoll.formulations.lumorph.co_scheduling import CallBatches
    from opticoll.solvers.methods.method import Context


def _run_sets(context: Context) -> Answer:
    """Greedy maximal independent sets of the conflict graph, each a batch (appendix C)."""
    data: CallBatches = context.data
    batches = independent_sets([np.flatnonzero(row) for row in data.member], data.member.shape[1])
    return Answer.heuristic(values_of(data, batches), "fewest conflicts first", {"batches": len(batches)})


METHOD = Method(
    name="independent-sets",
    title="Greedy maximal independent sets",
    summary="greedy maximal independent sets of the conflict graph, calls of fewest conflicts first (appendix C)",
    serves=("lumorph.co-scheduling",),
    # 32 GPUs, 128 random calls: 1,305 variables in 0.3 s.
    takes_over=(Beyond("lumorph.co-scheduling", 1_400, 9_000, proves=False),),
    run=_run_sets,
)

"""Method ``cycle-cover``: the one-stage all-to-all by covers of cycles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opticoll.formulations.optree.one_stage_solution import values_of
from opticoll.solvers.methods.method import Answer, Beyond, Method
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from opticoll.formulations.optree.one_stage import AllToAll
    from opticoll.solvers.methods.method import Context


def run_cycle_cover(context: Context) -> Answer:
    """The optimal one-stage all-to-all in closed form (:mod:`opticoll.formulations.rounds`)."""
    data: AllToAll = context.data
    return Answer(
        Termination.OPTIMAL,
        values=values_of(data),
        solver={
            "name": "cycle-cover",
            "version": None,
            "options": {},
            "algorithm": "rectangles and triangles" if data.fibres.circular else "chains of intervals",
        },
    )


METHOD = Method(
    name="cycle-cover",
    title="Full circles of wavelengths",
    summary="one-stage all-to-all on optical lines and rings in closed form: the fewest wavelengths for every n",
    serves=("optree.one-stage",),
    # A ring of 10 nodes 2,353 variables in 0.7 s, a line of 10 2,275 in 0.8 s; a ring of 11 3,536 not solved.
    takes_over=(Beyond("optree.one-stage", 2_500, 15_000),),
    run=run_cycle_cover,
)

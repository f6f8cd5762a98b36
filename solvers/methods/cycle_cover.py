"""One-stage all-to-all by full circles of wavelengths: optimal in closed form, for lines and rings of any size.

Every wavelength is filled: rectangles and triangles over opposite nodes on a ring, chains of intervals on a line, see
:mod:`formulations.optree.wavelengths`. The values go through the checker, which knows nothing of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from formulations.optree.one_stage import values_of
from solvers.methods.base import Answer, Method
from solvers.outcome import Termination

if TYPE_CHECKING:
    from formulations.optree.one_stage import AllToAll
    from solvers.methods.base import Context


def run(context: Context) -> Answer:
    """The assignment in closed form."""
    data: AllToAll = context.data
    return Answer(
        Termination.OPTIMAL,
        values=values_of(data),
        solver={"name": "cycle-cover", "version": None, "options": {},
                "algorithm": "rectangles and triangles" if data.fibres.circular else "chains of intervals"},
    )  # fmt: skip


METHOD = Method(
    name="cycle-cover",
    title="Full circles of wavelengths",
    summary="one-stage all-to-all on optical lines and rings in closed form: the fewest wavelengths for any n",
    applies=lambda formulation: formulation.name == "optree.one-stage",
    run=run,
)

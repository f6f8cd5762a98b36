"""Natural readings of the SiP-ML paper's claims, fixed before measuring."""

from __future__ import annotations

from opticoll.analysis.ledger.verdict import natural_reading

#: What decides how partners of a GPU are counted.
PARTNERS_LOST = "Figure 4 and the appendix, which show how the GPUs that a GPU communicates with are counted."
#: Distances between GPUs in section 3.2 are along a circle.
ON_THE_CIRCLE = (
    "around the circle, ties to the lower number",
    "around the circle, ties ahead",
    "around the circle, ties back",
    "ahead only",
    "back only",
)
CIRCLE = natural_reading(
    "GPUs on a circle, with every tie-break",
    "Section 3.2 takes distances modulo k and states no tie-break.",
    {"nearest GPU": ON_THE_CIRCLE},
)
SEQUENTIAL_STAGES = natural_reading(
    "sequential ops, computing time only",
    "Section 3.2 argues about sequentially dependent ops before placement, which accounts for communication.",
    {"setting": "sequential stages, computing time only", "ops": "sequential"},
)

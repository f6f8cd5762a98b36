"""Write the formulas of ``docs/guide/conjectures.md``: run ``python docs/conjecture_tables.py``.

Every optimum is solved exactly, which takes some minutes; runs in the store are used again.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import blocks

if TYPE_CHECKING:
    from opticoll.analysis.conjectures.conjecture import Conjecture

ROOT = Path(__file__).resolve().parent.parent
PAGE, BLOCK = ROOT / "docs" / "guide" / "conjectures.md", "conjectures"


class Family(NamedTuple):
    """Instances whose optima are fitted."""

    formulation: str
    over: str
    settings: Mapping[str, str] = MappingProxyType({})


FAMILIES = (
    Family("alltoall.master", "ring:{3..48}"),
    Family("alltoall.master", "ring:{3..28},directed"),
    Family("alltoall.master", "hypercube:{2..8}"),
    Family("alltoall.master", "torus:{4..40}x4"),
    Family("alltoall.master", "circulant:n={5..72},offsets=1x2"),
    Family("alltoall.master", "circulant:n={7..92},offsets=1x3"),
    Family("alltoall.master", "kautz:d={2..13},D=2"),
    Family("alltoall.master", "debruijn:d={2..11},D=2"),
    Family("alltoall.master", "kautz:d=2,D={1..6}"),
    Family("alltoall.master", "genkautz:n={4..40},d=2"),
    Family("alltoall.master", "genkautz:n={8..64},d=4"),
    Family("optree.tree", "wdm-ring:n={4..60},wavelengths=1", {"depth": "1"}),
    Family("optree.tree", "wdm-line:n={4..40},wavelengths=1", {"depth": "1"}),
    Family("optree.tree", "wdm-ring:n={3..40},wavelengths=4"),
    Family("optree.tree", "wdm-line:n={3..40},wavelengths=8"),
)


def table() -> str:
    """Markdown table with a row for every class of instances."""
    from opticoll.analysis.conjectures.conjecture import conjecture

    rows = []
    for one in FAMILIES:
        rows += _rows(one, conjecture(one.formulation, one.over, settings=one.settings, time_limit=120))
    heads = ("formulation, instances", "class", "formula", "fitted, held back", "exceptions")
    return "\n".join(blocks.table(heads, rows))


def _rows(family: Family, found: Conjecture) -> list[tuple[str, ...]]:
    chosen = "".join(f", `{name}={value}`" for name, value in family.settings.items())
    head = f"`{family.formulation}`, `{family.over}`{chosen}"
    solved = sum(one.value is not None for one in found.values)
    rows: list[tuple[str, ...]] = []
    if all(one.formula is None for one in found.formulas):
        return [(head, f"{solved} optima", "none found", "–", "–")]
    for one in found.formulas:
        formula = "none found" if one.latex is None else f"${found.quantity} = {one.latex}$"
        if found.quantity == "objective":
            formula = formula.replace("objective", r"\mathrm{opt}")
        apart = "none" if not one.exceptions else f"{len(one.exceptions)}, smallest `{one.exceptions[0]}`"
        rows.append((head, one.condition, formula, f"{one.fitted}, {one.held_back}", apart))
        head = ""
    return rows


if __name__ == "__main__":
    PAGE.write_text(blocks.replaced(PAGE.read_text(encoding="utf-8"), BLOCK, table()), encoding="utf-8")

"""What limits the value of a result, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from opticoll.analysis.rendering import Listing, Printed, frame_rows, number
from opticoll.analysis.result.bottleneck import Bottleneck, bottleneck, resting_on_bound
from opticoll.errors import OpticollError
from opticoll.formulations.model import states

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opticoll.analysis.result.result import Result
    from opticoll.types import Json


@dataclass(frozen=True, repr=False)
class Contradiction(Printed):
    """The rows and bounds that leave a problem without a solution.

    Attributes
    ----------
    rows
        ``kind``, ``name`` and ``statement`` of each.
    facts
        What else is known (:func:`opticoll.analysis.result.conflict_table.conflict`).
    """

    rows: list[dict[str, Json]]
    facts: Mapping[str, Json]

    _title = "no solution"

    def lines(self) -> dict[str, str]:
        """The proof that the program has no solution, if there is one."""
        proof = self.facts["proof"]
        return {"kind": "conflict", **({} if proof is None else {"reason": number(proof)})}

    def tables(self) -> list[Listing]:
        """The rows and bounds that contradict each other."""
        return [Listing("rows and bounds that contradict each other", ["kind", "name", "statement"], self.rows)]

    def document(self) -> dict[str, Json]:
        """What is found, as ``opticoll solve --why --json`` prints it."""
        return {"kind": "conflict", **self.facts, "rows": self.rows}


def diagnosis(result: Result) -> Bottleneck | Contradiction:
    """What limits the value of a result, or why it has none."""
    try:
        if not result.verified:
            found = result.conflict()
            return Contradiction(frame_rows(found), {str(name): value for name, value in found.attrs.items()})
        if not states(result.solved()[0].problem, "links"):
            return resting_on_bound(result, pd.DataFrame())
        return bottleneck(result)
    except OpticollError as error:
        return Bottleneck(None, str(error))

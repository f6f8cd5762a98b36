"""What limits the value of a result, or why there is none, as text and as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from opticoll.analysis.rendering import Listing, Printed, frame_rows, number
from opticoll.errors import OpticollError
from opticoll.formulations.model import states

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opticoll.analysis.result.result import Result
    from opticoll.types import Json

#: Number of names and links that are printed.
SHOWN = 12


@dataclass(frozen=True, repr=False)
class Reasons(Printed):
    """What limits the value of a result, or why there is no solution.

    Attributes
    ----------
    kind
        That of :class:`opticoll.analysis.result.sensitivity.Bottleneck`, ``"conflict"`` without a solution, or None if
        nothing can be said for the ``reason``.
    reason
        The proof in words; for a conflict that of the program without a solution, None where only the solver says so.
    sides
        Names of the vertices on the two sides of a cut, ``from`` and ``to``.
    links
        The links with a price, the dearest first: ``arc`` and the columns of :meth:`opticoll.Result.link_loads`.
    lengths
        Length of every link where lengths are the proof, by name.
    rows
        The rows and bounds that contradict each other: ``kind``, ``name``, ``statement``; None if there is a solution.
    facts
        What else is known of a conflict (:func:`opticoll.analysis.result.conflict_table.conflict`).
    """

    kind: str | None
    reason: str | None
    sides: Mapping[str, list[str]] | None = None
    links: list[dict[str, Json]] | None = None
    rows: list[dict[str, Json]] | None = None
    facts: Mapping[str, Json] | None = None
    lengths: Mapping[str, float] | None = None

    @property
    def _title(self) -> str:
        return "bottleneck" if self.rows is None else "no solution"

    def lines(self) -> dict[str, str]:
        """What is found, in words, by name of the line."""
        lines = {"kind": number(self.kind), **({} if self.reason is None else {"reason": self.reason})}
        for side, names in (self.sides or {}).items():
            more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
            lines[side] = ", ".join(map(str, names[:SHOWN])) + more
        if self.lengths is not None:
            from opticoll.analysis.result.sensitivity import lengths_line

            lines["lengths"] = lengths_line(self.lengths)
        return lines

    def tables(self) -> list[Listing]:
        """The links with a price, or the rows and bounds that contradict each other."""
        if self.rows is not None:
            title = "rows and bounds that contradict each other"
            return [Listing(title, ["kind", "name", "statement"], self.rows)]
        if not self.links:
            return []
        shown = [{name: number(value, 6) for name, value in link.items()} for link in self.links[:SHOWN]]
        columns = [name for name in shown[0] if name not in {"src", "dst"}]
        return [Listing(f"links with a price: {len(self.links)}", columns, shown)]

    def document(self) -> dict[str, Json]:
        """What is found, as ``opticoll solve --why --json`` prints it."""
        if self.rows is not None:
            return {"kind": self.kind, **(self.facts or {}), "rows": self.rows}
        found = {} if self.links is None else {"sides": self.sides, "links": self.links}
        lengths = {} if self.lengths is None else {"lengths": dict(self.lengths)}
        return {"kind": self.kind, "reason": self.reason, **found, **lengths}


def reasons(result: Result) -> Reasons:
    """What limits the value of a result, or why it has none."""
    try:
        if not result.verified:
            found = result.conflict()
            facts = {str(name): value for name, value in found.attrs.items()}
            return Reasons("conflict", facts["proof"], rows=frame_rows(found), facts=facts)
        if not states(result.solved()[0].problem, "links"):
            why = "the formulation states no load of links, by a method links or an axis 'arc'"
            return Reasons(result.record.bound_source, why, links=[])
        limit = result.bottleneck()
        sides = None if limit.sides is None else dict(zip(("from", "to"), limit.sides, strict=True))
        links = frame_rows(limit.links.reset_index())
        return Reasons(limit.kind, limit.reason, sides, links, lengths=limit.lengths)
    except OpticollError as error:
        return Reasons(None, str(error))

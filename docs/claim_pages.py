"""The pages of the papers' claims, from rows of the ledger, as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from blocks import table

from opticoll.analysis.ledger.explanation import (
    COUNTED,
    HEADINGS,
    capital,
    cell_text,
    compared,
    counted,
    fragile,
    tally,
    with_details,
)
from opticoll.analysis.ledger.verdict import Weight

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opticoll.analysis.ledger.claim import ClaimRow


def outcome(row: ClaimRow) -> str:
    """The verdict in one line: in words, the numbers compared, and the sensitivity to other readings."""
    verdict = capital(COUNTED[row.outcome])
    return "; ".join(filter(None, (verdict, compared(row), row.sensitive if row.choices else "")))


def page(title: str, rows: Sequence[ClaimRow]) -> str:
    """All claims of one paper as a Markdown page: the headline claims first, errata last, details folded."""
    parts = [
        f"# {title}: claims\n",
        f"{len(rows)} claims: {counted(rows)}. {fragile(rows)} Not reproduced speaks of our models "
        "and the inputs that the paper states. "
        "Content called lost is missing from the text available to us, not from the paper.\n",
        *_tally_table(rows),
        "",
    ]
    for weight, heading in HEADINGS.items():
        some = sorted((row for row in rows if row.weight is weight), key=lambda row: row.id)
        if some:
            parts.append(f"## {heading}\n")
            if weight is Weight.MISPRINT:
                parts += [*_errata(some), ""]
            parts += [_folded(row) for row in some]
    return "\n".join(parts)


def _tally_table(rows: Sequence[ClaimRow]) -> list[str]:
    entries = [{name: value for name, value in entry.items() if name != "paper"} for entry in tally(rows, {})]
    entries[-1]["weight"] = "all"
    return table(entries[0], (entry.values() for entry in entries))


def _errata(rows: Sequence[ClaimRow]) -> list[str]:
    """Table of misprints: where they are, what is printed, and what would be right."""
    cells = []
    for row in rows:
        right = row.saved_by[-1] if row.saved_by else row.reason
        cells.append((cell_text(row.where), f"[{cell_text(row.claim.rstrip('.'))}](#{anchor(row)})", cell_text(right)))
    return table(("where", "printed", "right"), cells)


def _folded(row: ClaimRow) -> str:
    """A claim on its paper's page: statement, procedure and outcome, and the rest to unfold."""
    return "\n".join(
        [
            f"({anchor(row)})=",
            f"### {row.claim.rstrip('.')}\n",
            f"**{outcome(row)}.** {row.procedure}\n",
            f"{row.reason}\n",
            "<details>",
            f"<summary>{row.where}: reading, numbers, readings tried, command</summary>",
            with_details("", row),
            "</details>\n",
        ]
    )


def anchor(row: ClaimRow) -> str:
    """Anchor of a claim on its paper's page."""
    return f"claim-{row.id.replace('.', '-')}"

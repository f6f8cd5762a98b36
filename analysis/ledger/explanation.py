"""Rows of the ledger explained to a reader who does not know this software, as Markdown."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from opticoll.analysis.ledger.claim import Verdict, in_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opticoll.analysis.ledger.claim import ClaimRow
    from opticoll.solvers.task import Json


#: Every verdict in words.
MEANING = {
    Verdict.REPRODUCED: "Reproduced.",
    Verdict.DEPENDS: "Depends on a choice that the paper leaves open.",
    Verdict.NOT_REPRODUCED: "Not reproduced under any reading tried.",
    Verdict.SELF_CONTRADICTED: "Two statements of the paper contradict each other.",
    Verdict.NOT_TESTABLE: "Not testable with what is available.",
}
#: Words for a number of claims with a verdict.
_COUNTED: Mapping[str, str] = {
    Verdict.REPRODUCED: "reproduced",
    Verdict.DEPENDS: "depend on an open choice",
    Verdict.NOT_REPRODUCED: "not reproduced",
    Verdict.SELF_CONTRADICTED: "contradicted by the paper itself",
    Verdict.NOT_TESTABLE: "not testable here",
    "failed": "failed",
}
#: Maximum number of instances listed with a claim.
MOST_INSTANCES = 6


def counted(rows: Sequence[ClaimRow]) -> str:
    """Number of claims with every verdict, such as `3 reproduced, 1 depends on an open choice`."""
    counts = Counter(row.outcome for row in rows)
    return ", ".join(
        f"{counts[outcome]} {words if counts[outcome] > 1 else words.replace('depend ', 'depends ')}"
        for outcome, words in _COUNTED.items()
        if counts[outcome]
    )


def explanation(row: ClaimRow, *, level: int = 1) -> str:
    """A row as Markdown: statement, procedure, result, verdict and its reason, and the command that repeats it.

    Parameters
    ----------
    row
        The row.
    level
        Level of its heading.
    """
    lines = [f"{'#' * level} {row.claim.rstrip('.')}", "", f"`{row.id}` · {row.where}", ""]
    if row.scope:
        lines.append(f"**Scope.** {'; '.join(f'{name} = {_nested(value)}' for name, value in row.scope.items())}.")
    if row.lost:
        lines.append(f"**Missing from the available text.** {row.lost}")
    lines.append(f"**Expected.** {in_words(row.expected)}{_tolerance(row.tolerance)}.")
    if row.procedure:
        lines.append(f"**Procedure.** {row.procedure}")
    if row.instances:
        rest = len(row.instances) - MOST_INSTANCES
        more = f" and {rest} more" if rest > 0 else ""
        lines.append(f"**Instances.** {', '.join(f'`{spec}`' for spec in row.instances[:MOST_INSTANCES])}{more}.")
    if row.measured is not None:
        listed = row.measured == {choice.tried: choice.measured for choice in row.choices}
        lines.append(f"**Measured.** {'See the table' if listed else in_words(row.measured)}{_cases(row)}.")
    lines.append(f"**Verdict.** {'Failed.' if row.failed else MEANING[row.verdict]} {row.reason}".rstrip())
    if row.witness:
        lines.append(f"**Witness.** {row.witness}")
    text = "\n".join(f"{line}\n" if line.startswith("**") else line for line in lines)
    if row.choices:
        text += "\n" + "\n".join(_table(row)) + "\n"
    return f"{text}\nRun again: `{row.rerun}`\n"


def _nested(value: Json) -> str:
    return f"({in_words(value)})" if isinstance(value, dict) else in_words(value)


def _tolerance(text: str) -> str:
    return f" ({text})" if text not in ("", "exact", "none") else ""


def _cases(row: ClaimRow) -> str:
    if row.count is None:
        return ""
    fails = "" if row.violations is None else f", {row.violations:,} failure{'s' * (row.violations != 1)}"
    ratios = row.tightness if "ratio" in row.reason.lower() else None  # the reason names the quantity
    spread = "" if ratios is None else f"; ratio {ratios.min:.4g} to {ratios.max:.4g}, median {ratios.median:.4g}"
    return f" ({row.count:,} case{'s' * (row.count != 1)}{fails}{spread})"


def _table(row: ClaimRow) -> list[str]:
    """The readings; one column for each open choice if all readings are about the same ones."""
    names = {choice.name for choice in row.choices}
    same = len(names) == 1
    heads = min(names).split("; ") if same else ["open choice", "reading"]
    tried = [one.tried.split("; ", len(heads) - 1) if same else [one.name, one.tried] for one in row.choices]
    if any(len(cells) != len(heads) for cells in tried):
        heads, tried = ["; ".join(heads)], [[choice.tried] for choice in row.choices]
    lines = [f"| {' | '.join(_cell(text) for text in (*heads, 'measured', 'verdict'))} |"]
    lines.append("|" + "---|" * (len(heads) + 2))
    for choice, cells in zip(row.choices, tried, strict=True):
        mark = " (as written)" if choice.natural else ""
        texts = (*cells[:-1], cells[-1] + mark, in_words(choice.measured), str(choice.verdict))
        lines.append(f"| {' | '.join(map(_cell, texts))} |")
    return lines


def _cell(text: str) -> str:
    return text.replace("|", "/")


def page(title: str, rows: Sequence[ClaimRow]) -> str:
    """All claims of one paper as a Markdown page, the headline results first."""
    ordered = sorted(rows, key=lambda row: (row.weight, row.id))
    table = ["| claim | verdict |", "|---|---|"]
    table += [f"| [{_cell(row.claim.rstrip('.'))}](#{anchor(row)}) | {row.outcome} |" for row in ordered]
    lost = "Content that a verdict calls lost is missing from the text available to us, not from the paper."
    parts = [f"# {title}: claims\n", f"{len(rows)} claims: {counted(rows)}.\n", f"{lost}\n", *table, ""]
    parts += [f"({anchor(row)})=\n{explanation(row, level=2)}" for row in ordered]
    return "\n".join(parts)


def anchor(row: ClaimRow) -> str:
    """Anchor of a claim on its paper's page."""
    return f"claim-{row.id.replace('.', '-')}"

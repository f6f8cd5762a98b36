"""Explain a row of the ledger to a reader who does not know this software, as Markdown."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from opticoll.analysis.ledger.claim import Verdict, in_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opticoll.analysis.ledger.claim import Row
    from opticoll.solvers.task import Json

#: Every verdict in words.
MEANING = {
    Verdict.REPRODUCED: "Reproduced.",
    Verdict.DEPENDS: "Depends on a choice that the paper leaves open.",
    Verdict.NOT_REPRODUCED: "Not reproduced under any reading tried.",
    Verdict.SELF_CONTRADICTED: "Two statements of the paper contradict each other.",
    Verdict.NOT_TESTABLE: "Not testable with what is available.",
}
#: What is said of a number of claims with a verdict.
_COUNTED = {
    Verdict.REPRODUCED: "reproduced",
    Verdict.DEPENDS: "depend on an open choice",
    Verdict.NOT_REPRODUCED: "not reproduced",
    Verdict.SELF_CONTRADICTED: "contradicted by the paper itself",
    Verdict.NOT_TESTABLE: "not testable here",
}
#: Most instances listed with a claim.
MOST_INSTANCES = 6


def counted(rows: Sequence[Row]) -> str:
    """Number of claims with every verdict, such as `3 reproduced, 1 depends on an open choice`."""
    counts = Counter(row.verdict for row in rows)
    return ", ".join(
        f"{counts[verdict]} {words if counts[verdict] > 1 else words.replace('depend ', 'depends ')}"
        for verdict, words in _COUNTED.items()
        if counts[verdict]
    )


def explanation(row: Row, *, level: int = 1) -> str:
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
    lines.append(
        f"**Verdict.** {'The measurement failed.' if row.failed else MEANING[row.verdict]} {row.reason}".rstrip()
    )
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


def _cases(row: Row) -> str:
    if row.count is None:
        return ""
    fails = "" if row.violations is None else f", fails in {row.violations:,}"
    ratios = row.tightness if "ratio" in row.reason.lower() else None  # the reason says of what
    spread = "" if ratios is None else f"; ratio {ratios.min:.4g} to {ratios.max:.4g}, median {ratios.median:.4g}"
    return f" ({row.count:,} case{'s' * (row.count != 1)}{fails}{spread})"


def _table(row: Row) -> list[str]:
    """The readings; one column for each open choice if all readings are about the same ones."""
    names = {choice.name for choice in row.choices}
    heads = min(names).split("; ") if len(names) == 1 else ["open choice", "reading"]
    tried = [
        choice.tried.split("; ", len(heads) - 1) if len(names) == 1 else [choice.name, choice.tried]
        for choice in row.choices
    ]
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


def page(title: str, rows: Sequence[Row]) -> str:
    """All claims of one paper as a Markdown page, the headline results first."""
    ordered = sorted(rows, key=lambda row: (row.weight, row.id))
    table = ["| claim | verdict |", "|---|---|"]
    table += [f"| [{row.claim.rstrip('.').replace('|', '/')}](#{anchor(row)}) | {row.verdict} |" for row in ordered]
    parts = [f"# {title}: claims\n", f"{len(rows)} claims: {counted(rows)}.\n", *table, ""]
    parts += [f"({anchor(row)})=\n{explanation(row, level=2)}" for row in ordered]
    return "\n".join(parts)


def anchor(row: Row) -> str:
    """Anchor of a claim on its paper's page."""
    return f"claim-{row.id.replace('.', '-')}"

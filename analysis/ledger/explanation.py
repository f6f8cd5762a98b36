"""Rows of the ledger explained to a reader who does not know this software, as Markdown."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from opticoll.analysis.ledger.claim import in_words
from opticoll.analysis.ledger.tolerances import TOLERANCES
from opticoll.analysis.ledger.verdict import Verdict, Weight

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opticoll.analysis.ledger.claim import ClaimRow
    from opticoll.types import Json


#: Every verdict in words.
MEANING = {
    Verdict.REPRODUCED: "Reproduced.",
    Verdict.AGREES: "Agrees with the authors' own figure or data, which are not computed again.",
    Verdict.NOT_REPRODUCED: "Not reproduced by our model and its stated inputs.",
    Verdict.REFUTED: "Refuted: it fails under every reading, and the witness shows it.",
    Verdict.OPEN: "Open: what the paper does not say, or what is lost, decides.",
    Verdict.NOT_TESTABLE: "Not testable here: hardware or prices decide.",
}
#: Verdicts in the order of tables, with their words.
COUNTED: Mapping[str, str] = {
    Verdict.REPRODUCED: "reproduced",
    Verdict.AGREES: "agrees with its figure",
    Verdict.NOT_REPRODUCED: "not reproduced",
    Verdict.REFUTED: "refuted",
    Verdict.OPEN: "open",
    Verdict.NOT_TESTABLE: "not testable",
    "failed": "failed",
}
#: Headings of the claims of a page, by weight; errata come last.
HEADINGS = {
    Weight.HEADLINE: "Headline claims",
    Weight.SUPPORTING: "Supporting claims",
    Weight.TEXTBOOK: "Textbook knowledge",
    Weight.MISPRINT: "Errata",
}
#: Maximum number of instances listed with a claim.
MOST_INSTANCES = 6


def counted(rows: Sequence[ClaimRow]) -> str:
    """Number of claims with every verdict, such as `3 reproduced, 1 open`."""
    counts = Counter(row.outcome for row in rows)
    return ", ".join(f"{counts[outcome]} {words}" for outcome, words in COUNTED.items() if counts[outcome])


def fragile(rows: Sequence[ClaimRow]) -> str:
    """How many of the claims that hold do so in few readings, in a sentence."""
    held = [row for row in rows if row.verdict.favours]
    few = sum(row.fragile for row in held)
    return f"Of the {len(held)} that hold, {few} fail under most (60 % or more) of three or more other readings."


def tally(rows: Sequence[ClaimRow], names: Mapping[str, str]) -> list[dict[str, Json]]:
    """Number of claims by paper, weight and verdict: one entry for each paper and weight, and one for all.

    Parameters
    ----------
    rows
        The claims.
    names
        Names of the papers by short name.
    """
    outcomes = [outcome for outcome in COUNTED if outcome != "failed" or any(row.failed for row in rows)]
    groups = [
        (names.get(paper, paper), str(weight), [row for row in rows if (row.paper, row.weight) == (paper, weight)])
        for paper in dict.fromkeys(row.paper for row in rows)
        for weight in Weight
    ]
    groups.append(("all", "", list(rows)))
    return [
        {
            "paper": paper,
            "weight": weight,
            "claims": len(some),
            **{COUNTED[outcome]: sum(row.outcome == outcome for row in some) for outcome in outcomes},
        }
        for paper, weight, some in groups
        if some
    ]


def compared(row: ClaimRow) -> str:
    """The number stated in the paper and the measured one with their distance, in words; empty without numbers."""
    if row.printed is None or row.distance is None:
        share = row.distance is not None and row.count
        return f"fails in {row.violations:,} of {row.count:,} cases" if share and row.violations is not None else ""
    stated = in_words(row.printed)
    if isinstance(row.expected, str) and row.expected != stated:
        # A claim in words: the number is what it is compared with, not what the paper prints.
        stated = f'as "{row.expected}", compared with {stated}'
    return f"stated {stated}, measured {in_words(row.measured)} ({away(row.distance)})"


def away(distance: float) -> str:
    """A relative deviation in words."""
    if distance > 10:
        return f"{distance + 1:.2g} times"
    if distance < 5e-6:
        return "equal"
    return f"{100 * distance:.0f} % away" if distance >= 0.1 else f"{100 * distance:.2g} % away"


def explanation(row: ClaimRow) -> str:
    """A row as Markdown: statement, verdict, its reading and reason, scope, result, and the command that repeats it."""
    lines = [f"# {row.claim.rstrip('.')}", "", f"`{row.id}` · {row.where} · {row.weight}", ""]
    lines.append(f"**Verdict.** {'Failed.' if row.failed else MEANING[row.verdict]} {row.reason}".rstrip())
    return with_details("\n".join([*lines, ""]), row)


def _natural(row: ClaimRow) -> str:
    if row.natural is None or not row.natural.choices:
        return ""
    return f"{capital(row.natural.name)}. {row.natural.because}"


def _scope(row: ClaimRow) -> str:
    values = [f"{name} = {_nested(value)}" for name, value in row.scope.items()]
    return f"{'; '.join(values)}." if values else ""


def _instances(row: ClaimRow) -> str:
    if not row.instances:
        return ""
    rest = len(row.instances) - MOST_INSTANCES
    more = f" and {rest} more" if rest > 0 else ""
    return f"{', '.join(f'`{spec}`' for spec in row.instances[:MOST_INSTANCES])}{more}."


def _measured(row: ClaimRow) -> str:
    if row.everything is None:
        return ""
    listed = row.everything == {choice.tried: choice.measured for choice in row.choices}
    return f"{'See the table' if listed else in_words(row.everything)}{_cases(row)}."


def with_details(text: str, row: ClaimRow) -> str:
    """A text with everything else that a row has to say, as Markdown."""
    parts = {
        "Numbers": f"{capital(words)}." if (words := compared(row)) else "",
        "Natural reading": _natural(row),
        "Sensitivity": f"It {row.sensitive}." if row.choices else "",
        "It would hold for": f"{'; '.join(row.saved_by)}." if row.saved_by else "",
        "Not stated in the paper": row.unpublished,
        "Missing from the available text": row.lost,
        "Rests on": f"{capital(row.rests_on)}." if row.rests_on else "",
        "Scope": _scope(row),
        "Expected": f"{in_words(row.expected)}{_tolerance(row.tolerance)}.",
        "Procedure": row.procedure,
        "Instances": _instances(row),
        "Measured": _measured(row),
        "Witness": row.witness,
        "Measured again": f"Independently, by `{row.second}` in the tests of the ledger." if row.second else "",
    }
    text += "\n" + "\n".join(f"**{heading}.** {words}\n" for heading, words in parts.items() if words)
    if row.choices:
        text += "\n" + "\n".join(_table(row)) + "\n"
    return f"{text}\nRun again: `{row.rerun}`\n"


def capital(text: str) -> str:
    """A text that begins with a capital letter."""
    return f"{text[0].upper()}{text[1:]}"


def _nested(value: Json) -> str:
    return f"({in_words(value)})" if isinstance(value, dict) else in_words(value)


def _tolerance(text: str) -> str:
    return f" ({text}{': ' * (text in TOLERANCES)}{TOLERANCES.get(text, '')})" if text not in ("", "exact") else ""


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
    lines = [f"| {' | '.join(cell_text(text) for text in (*heads, 'measured', 'verdict'))} |"]
    lines.append("|" + "---|" * (len(heads) + 2))
    every = all(choice.natural for choice in row.choices)
    for choice, cells in zip(row.choices, tried, strict=True):
        mark = " (natural)" if choice.natural and not every else ""
        texts = (*cells[:-1], cells[-1] + mark, in_words(choice.measured), str(choice.verdict))
        lines.append(f"| {' | '.join(map(cell_text, texts))} |")
    return lines


def cell_text(text: str) -> str:
    """A text that fits into a cell of a table."""
    return text.replace("|", "/")

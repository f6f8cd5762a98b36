"""The claims of a store as a section of the report."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pandas as pd

from opticoll.analysis.ledger.explanation import HEADINGS, MOST_INSTANCES, away
from opticoll.analysis.ledger.ledger import claims, latest
from opticoll.analysis.ledger.verdict import Verdict
from opticoll.analysis.papers.paper_figure import PAPER_NAMES
from opticoll.analysis.report.page import section_of
from opticoll.analysis.report.sections import AddedSection
from opticoll.solvers.task import plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markupsafe import Markup

    from opticoll.analysis.ledger.claim import ClaimRow
    from opticoll.analysis.report.findings import Findings
    from opticoll.analysis.store import Store

#: Colour class of every verdict, and words that are clear without the colour.
VERDICTS = {
    Verdict.REPRODUCED: ("good", "✓ reproduced"),
    Verdict.AGREES: ("good", "≈ agrees with its figure"),
    Verdict.NOT_REPRODUCED: ("fair", "✗ not reproduced"),
    Verdict.REFUTED: ("bad", "≠ refuted"),
    Verdict.OPEN: ("mute", "? open"),
    Verdict.NOT_TESTABLE: ("mute", "– not testable"),
}


def section(store: Store, findings: Findings) -> AddedSection | None:
    """The latest row of every claim; None for a store without runs and claims."""
    known = claims()
    rows = latest(store, known)
    if not rows and findings.results.empty:
        return None
    return AddedSection(
        "claims",
        "Claims",
        "results",
        _html(rows, len(known) - len(rows)),
        tables={"claims": _table(rows)},
    )


def _html(rows: Sequence[ClaimRow], unmeasured: int) -> Markup:
    return section_of(
        "claims.html.j2",
        rows=rows,
        unmeasured=unmeasured,
        VERDICTS=VERDICTS,
        HEADINGS=HEADINGS,
        MOST_INSTANCES=MOST_INSTANCES,
        PAPER_NAMES=PAPER_NAMES,
        away=away,
    )


def _table(rows: Sequence[ClaimRow]) -> pd.DataFrame:
    """Rows of the ledger as a table; lists and mappings as JSON."""
    cells = [
        {
            name: json.dumps(v, ensure_ascii=False) if isinstance(v, (dict, list)) else v
            for name, v in plain(row).items()
        }
        for row in rows
    ]
    return pd.DataFrame(cells, columns=None if cells else ["id"])

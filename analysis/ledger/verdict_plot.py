"""Plot of the claims by paper and verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opticoll.analysis.plots.panels import one_panel
from opticoll.analysis.plots.style import INK, ON_SERIES, PALETTE, label

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from opticoll.analysis.ledger.claim import ClaimRow


#: Colour and hatch of every verdict; each is clear without the other.
LOOK = {
    "reproduced": (PALETTE[2], ""),
    "not-reproduced": (PALETTE[1], "//"),
    "refuted": (PALETTE[3], "xx"),
    "open": (PALETTE[5], "\\\\"),
    "not-testable": (PALETTE[7], ".."),
}


def claims_by_verdict(rows: Sequence[ClaimRow]) -> Figure:
    """Draw one bar per paper, divided by verdict and labelled with the counts."""
    papers = list(dict.fromkeys(str(row["paper"]) for row in rows))
    with one_panel(6.6, 1.3 + 0.36 * max(len(papers), 1), x="number of claims", columns=2) as (figure, axes, handles):
        left = dict.fromkeys(papers, 0)
        for verdict, (colour, hatch) in LOOK.items():
            counts = [sum(row["paper"] == paper and row["verdict"] == verdict for row in rows) for paper in papers]
            if not any(counts):
                continue
            bars = axes.barh(
                range(len(papers)),
                counts,
                left=list(left.values()),
                color=colour,
                hatch=hatch,
                edgecolor=ON_SERIES,
                linewidth=0.8,
                height=0.72,
                label=verdict,
            )
            handles.append(bars)
            for place, (paper, count) in enumerate(zip(papers, counts, strict=True)):
                if count:
                    axes.text(
                        left[paper] + count / 2,
                        place,
                        str(count),
                        ha="center",
                        va="center",
                        fontsize=9,
                        color=INK,
                        bbox={"facecolor": ON_SERIES, "edgecolor": "none", "pad": 1.2},
                    )
                left[paper] += count
        axes.set_yticks(range(len(papers)), [label(paper) for paper in papers])
        axes.set_ylim(max(len(papers), 1) - 0.5, -0.5)
    return figure

"""The ledger as a picture: how many claims of each paper came out how."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analysis.plots_style import INK, ON_SERIES, PALETTE, label, legend_below, new_figure, style

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.figure import Figure

#: Colour and hatch of a verdict: either does without the other.
LOOK = {
    "reproduced": (PALETTE[2], ""),
    "not-reproduced": (PALETTE[1], "//"),
    "self-contradicted": (PALETTE[3], "xx"),
    "not-testable": (PALETTE[7], ".."),
}


def claims_by_verdict(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw one bar a paper, divided by verdict, with the counts in it."""
    papers = list(dict.fromkeys(str(row["paper"]) for row in rows))
    with style():
        figure = new_figure(6.6, 1.3 + 0.36 * max(len(papers), 1))
        axes = figure.add_subplot()
        left = dict.fromkeys(papers, 0)
        handles: list[Any] = []
        for verdict, (colour, hatch) in LOOK.items():
            counts = [sum(row["paper"] == paper and row["verdict"] == verdict for row in rows) for paper in papers]
            if not any(counts):
                continue
            bars = axes.barh(range(len(papers)), counts, left=list(left.values()), color=colour, hatch=hatch,
                             edgecolor=ON_SERIES, linewidth=0.8, height=0.72, label=verdict)  # fmt: skip
            handles.append(bars)
            for place, (paper, count) in enumerate(zip(papers, counts, strict=True)):
                if count:
                    axes.text(left[paper] + count / 2, place, str(count), ha="center", va="center", fontsize=9,
                              color=INK, bbox={"facecolor": ON_SERIES, "edgecolor": "none", "pad": 1.2})  # fmt: skip
                left[paper] += count
        axes.set_yticks(range(len(papers)), [label(paper) for paper in papers])
        axes.set_ylim(max(len(papers), 1) - 0.5, -0.5)
        axes.set_xlabel("claims")
        legend_below(figure, handles, columns=2)
    return figure

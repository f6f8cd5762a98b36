"""Plots of one problem: the sparsity pattern of its matrix, and the cases of a sweep."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.analysis.plots.panels import one_panel, styled_figure
from opticoll.analysis.plots.style import INK, MUTED, PALETTE, label, legend_mark

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from opticoll.formulations.standard_form import StandardForm


def sparsity(form: StandardForm) -> Figure:
    """Draw the nonzeros of the constraint matrix, rows and columns in their order in the program."""
    m, n = form.A.shape
    height = float(np.clip(1.4 + 5.2 * m / max(n, 1), 2.6, 6.6))
    with one_panel(6.6, height, x=f"variables [{n:,} columns]", y=f"constraints [{m:,} rows]") as (figure, axes, _):
        dot = float(np.clip(240.0 / max(m, n, 1), 0.3, 4.0))
        axes.spy(form.A, markersize=dot, color=PALETTE[0], aspect="auto")
        axes.set_title(f"{m:,} × {n:,}, {form.A.nnz:,} nonzeros", loc="left", pad=18)
    return figure


#: Colour and marker of the cases of a sweep.
_CASES = {"holds": (PALETTE[0], "o"), "violated": (PALETTE[1], "X")}


def bound_sweep(cases: pd.DataFrame, *, title: str, quantity: str) -> Figure:
    """Draw the distribution of bound / optimum, and the bound of every case against its optimum.

    Only cases with a proven optimum are drawn. On the dashed lines the bound is attained.

    Parameters
    ----------
    cases
        One row per case: ``status`` (``holds`` or ``violated``), ``optimum``, ``bound`` and ``ratio``.
    title
        Heading.
    quantity
        What is bounded, with its unit.
    """
    drawn = cases[cases["status"].isin(list(_CASES)) & cases["ratio"].notna()].astype(
        {"optimum": float, "bound": float, "ratio": float}
    )
    parts = {status: drawn[drawn["status"] == status] for status in _CASES}
    parts = {status: part for status, part in parts.items() if len(part)}
    colours = [_CASES[status][0] for status in parts]
    with styled_figure(7.2, 3.4) as (figure, handles):
        figure.suptitle(label(title, 80), fontsize=11)
        left, right = figure.subplots(1, 2)
        if not parts:
            left.text(0.5, 0.5, "no proven optimum", ha="center", va="center", transform=left.transAxes, color=MUTED)
            right.set_axis_off()
            return figure
        ratios = [part["ratio"].to_numpy() for part in parts.values()]
        low, high = min(1.0, *map(np.min, ratios)), max(1.0, *map(np.max, ratios))
        left.hist(ratios, bins=np.linspace(low, high, 26) if high > low else 1, stacked=True, color=colours)
        left.axvline(1.0, color=INK, linewidth=1, linestyle=(0, (4, 3)))
        left.set(xlabel="bound / optimum", ylabel="cases")
        left.yaxis.get_major_locator().set_params(integer=True)
        for status, part in parts.items():
            colour, marker = _CASES[status]
            right.scatter(part["optimum"], part["bound"], s=18, color=colour, marker=marker, linewidths=0, alpha=0.8)
        ends = np.array([drawn[["optimum", "bound"]].min().min(), drawn[["optimum", "bound"]].max().max()])
        right.plot(ends, ends, color=INK, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
        right.set(xlabel=f"optimum: {quantity}", ylabel="bound")
        names = {status: f"{status} ({len(part)})" for status, part in parts.items()}
        handles += [legend_mark(names[status], *_CASES[status]) for status in parts]
    return figure

"""How the time of methods grows with the number of nodes: exponents of power laws, with intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.analysis.papers.paper_figure import Figures
from opticoll.analysis.plots.marks import curve
from opticoll.analysis.plots.panels import one_panel
from opticoll.analysis.plots.style import log_axes, series

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

FIGURES = Figures("alltoall")
#: Fewest sizes of a fit, largest gap of a run that counts, and the level of the intervals.
FEWEST, GAP, LEVEL = 4, 2e-4, 0.95


def power_law(n: ArrayLike, seconds: ArrayLike) -> tuple[float, float, float]:
    """Least squares of log t = log c + b log n: b, half of its 95 % interval, and c.

    The interval is that of Student's t with k - 2 degrees of freedom for k points, which takes the deviations of
    log t as independent and normal with one variance.
    """
    from scipy.stats import linregress, t

    x, y = np.log(np.asarray(n, dtype=float)), np.log(np.asarray(seconds, dtype=float))
    line = linregress(x, y)
    half = float(t.ppf((1 + LEVEL) / 2, x.size - 2) * line.stderr)
    return float(line.slope), half, float(np.exp(line.intercept))


def _rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Verified runs to a gap of 1e-4 on GK(N,4), of the methods that solved at least four sizes.

    The time is the solver's, or of the solve for methods without one; the smallest size of a method, whose run also
    loads and compiles code, is left out.
    """
    taken = rows[rows["ok"] & rows["instance"].str.fullmatch(r"genkautz:n=\d+,d=4")].copy()
    taken = taken[taken["formulation"].isin(["alltoall.link-mcf", "alltoall.path-mcf", "alltoall.master"])]
    gap = (taken["objective"].astype(float) / taken["bound"].astype(float) - 1).abs()
    taken["seconds"] = taken["time_solver_s"].astype(float).fillna(taken["time_solve_s"].astype(float))
    taken = taken[(gap <= GAP) & (taken["seconds"] > 0)]
    taken["series"] = taken["method"] + ", " + taken["formulation"].str.removeprefix("alltoall.")
    taken = taken.sort_values("seconds").drop_duplicates(["series", "n"]).sort_values(["series", "n"])
    taken = taken[taken["n"] > taken.groupby("series")["n"].transform("min")]
    return taken[taken.groupby("series")["n"].transform("count") >= FEWEST]


def _draw(table: pd.DataFrame) -> Figure:
    with one_panel(6.6, 4.4, x="vertices N", y="solve time [s]") as (figure, axes, handles):
        for number, (name, group) in enumerate(table.groupby("series")):
            handles += curve(axes, group["n"], group["seconds"], number, str(name), linestyle="none")
            exponent, _, factor = power_law(group["n"], group["seconds"])
            axes.plot(group["n"], factor * group["n"].astype(float) ** exponent, color=series(number)[0], linewidth=1)
        log_axes(axes)
    return figure


@FIGURES.drawn("alltoall-scaling", _rows, _draw)
def _finding(table: pd.DataFrame) -> str:
    parts = []
    for name, group in table.groupby("series"):
        exponent, half, _ = power_law(group["n"], group["seconds"])
        parts.append(f"{name} {exponent:.2f} ± {half:.2f} ({len(group)} sizes up to {int(group['n'].max())})")
    return "Exponents of N with 95 % intervals: " + "; ".join(parts) + "."

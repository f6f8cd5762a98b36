"""Figure 3 of the LuMorph paper, the time to find routes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.analysis.papers.paper_figure import Figures, settings_of
from opticoll.analysis.plots.marks import marks, note, stars
from opticoll.analysis.plots.panels import one_panel
from opticoll.analysis.plots.style import MUTED, log_axes
from opticoll.instances.published.lumorph_numbers import figure as drawn_figure
from opticoll.solvers.task import PROVEN

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


FIGURES = Figures("lumorph")
_FORMULATION = "lumorph.min-overlap"
#: Largest size in figure 3, and its range of seconds ("tens").
_FIG3_LARGEST, _FIG3_SECONDS = 128, (10.0, 100.0)


def _time_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Permutations routed by negotiated rerouting, also with failed links, and by HiGHS on the printed arc form."""
    mesh = rows["instance"].str.startswith("lightpath:")
    table = rows[(rows["formulation"] == _FORMULATION) & mesh & rows["time_solve_s"].notna()]
    permutations = np.array(settings_of(table, "circuits")) == "permutation"
    table = table[permutations & (np.array(settings_of(table, "model")) == "arc")]
    table = table[table["method"].isin(("negotiated-rerouting", "highs"))].copy()
    failed = table["instance"].str.contains("+fail=", regex=False)
    table["how"] = np.where(
        table["method"] == "highs",
        "printed MILP, HiGHS",
        np.where(failed, "negotiated rerouting, a tenth of the links failed", "negotiated rerouting"),
    )
    return table


def _over_gpus(axes: Axes, table: pd.DataFrame) -> None:
    """Logarithmic axes with the sizes N on the horizontal one."""
    log_axes(axes)
    nodes = sorted(set(table["n"].astype(int)))
    axes.set_xticks(nodes, [str(n) for n in nodes])
    axes.minorticks_off()
    axes.set_xlabel("GPUs N")


def _time(rows: pd.DataFrame) -> Figure:
    with one_panel(6.6, 4.4, y="time to find routes [s]", columns=2) as (figure, axes, handles):
        for number, (how, group) in enumerate(rows.groupby("how")):
            proven = group["proof"].isin(PROVEN)
            handles += marks(axes, group["n"][proven], group["time_solve_s"][proven], number, str(how))
            if (~proven).any():
                handles += marks(
                    axes,
                    group["n"][~proven],
                    group["time_solve_s"][~proven],
                    number,
                    f"{how}, limit reached",
                    filled=False,
                )
        for name, curve in drawn_figure("3").items():
            known = {n: seconds for n, seconds in curve.items() if seconds > 0}
            handles += stars(
                axes,
                list(known),
                list(known.values()),
                f"paper, {name}",
                filled=True,
                markersize=6,
                marker="x" if name == "Lumorph-2" else "+",
            )
        low, high = _FIG3_SECONDS
        axes.fill_between([100, 150], low, high, color=MUTED, alpha=0.18, linewidth=0)
        note(
            axes,
            "paper: tens of seconds\nup to 128 nodes, Gurobi",
            (100, (low * high) ** 0.5),
            (-6, 0),
            ha="right",
            va="center",
        )
        _over_gpus(axes, rows)
    return figure


@FIGURES.drawn("lumorph-3", _time_rows, _time)
def _time_finding(rows: pd.DataFrame) -> str:
    parts = []
    for how, group in rows.groupby("how"):
        proven = group[group["proof"].isin(PROVEN)]
        if len(proven):
            top = proven[proven["n"] == proven["n"].max()]
            parts.append(f"{how}: proven up to N = {int(top['n'].iloc[0])}, {top['time_solve_s'].max():.3g} s there")
        for _, row in group[~group["proof"].isin(PROVEN)].sort_values("n").drop_duplicates("n").iterrows():
            value = "no routes" if not np.isfinite(row["objective"] or np.nan) else f"overlap {row['objective']:g}"
            parts.append(f"at N = {int(row['n'])} {value}, bound {row['bound']:g} after {row['time_solve_s']:.3g} s")
    ours = rows[(rows["method"] != "highs") & rows["proof"].isin(PROVEN) & (rows["n"] >= _FIG3_LARGEST)]
    verdict = ""
    if len(ours):
        worst = float(ours["time_solve_s"].max())
        verdict = (
            f" Instead of the paper's tens of seconds at 128 nodes we need at most {worst:.3g} s, up to N = "
            f"{int(ours['n'].max())}."
        )
    return "; ".join(parts) + "." + verdict if parts else "No result yet."

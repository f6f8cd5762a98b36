"""The papers' heuristics compared with the optimum: one figure per paper, over families of small instances.

The value of a heuristic is divided by the proven optimum of the same problem if any stored run has proven one (filled
markers), and otherwise by the best of our own bounds (open markers; the true ratio is at most this). Runs without a
verified value, or without an optimum or a bound, are counted and shown as a cross at the edge.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from opticoll.analysis.papers.paper_figure import paper_figure
from opticoll.analysis.plots.panels import one_panel
from opticoll.analysis.plots.style import BAND, INK, MUTED, label, legend_mark, log_axes, series
from opticoll.solvers.task import PROVEN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.random import Generator
    from numpy.typing import ArrayLike

_COLUMNS = [
    "formulation",
    "instance",
    "problem",
    "heuristic",
    "objective",
    "reference",
    "proven",
    "ratio",
    "ended",
    "id",
]


@dataclass(frozen=True)
class Heuristics:
    """The heuristics of a formulation and their reference.

    Parameters
    ----------
    formulation, methods
        The formulation of the runs, and its methods that are heuristics.
    settings
        Settings that distinguish variants of a method.
    over
        The formulation whose optimum of the same instance is the reference, in the same unit; empty: ``formulation``.
    metric
        A metric used instead of the objective, for which the optimum is only a bound; empty: the objective.
    called
        The name in the paper; empty: the method's name.
    """

    formulation: str
    methods: tuple[str, ...]
    settings: tuple[str, ...] = ()
    over: str = ""
    metric: str = ""
    called: str = ""


def gap_rows(rows: pd.DataFrame, wanted: tuple[Heuristics, ...]) -> pd.DataFrame:
    """Ratios of the values of heuristics to the optima or bounds of their problems.

    Parameters
    ----------
    rows
        Results with ``ok`` and ``problem`` (instance and the formulation's own parameters).
    wanted
        The heuristics.

    Returns
    -------
    DataFrame
        ``formulation``, ``instance``, ``problem``, ``heuristic``, ``objective``, ``reference``, ``proven`` (whether the
        reference is the optimum), ``ratio`` (at least 1: value over reference, inverted for a maximum; missing without
        a verified value or a reference), ``ended`` (how the run ended), ``id`` (its record).
    """
    records: list[dict[str, Any]] = []
    for heuristics in wanted:
        selected = rows[(rows["formulation"] == heuristics.formulation) & rows["method"].isin(heuristics.methods)]
        if selected.empty:
            continue
        same = "instance" if heuristics.over else "problem"
        others = dict(list(rows[rows["formulation"] == (heuristics.over or heuristics.formulation)].groupby(same)))
        for run in selected.to_dict("records"):
            reference, proven = _reference(others.get(run[same]), heuristics.metric)
            value = _value(run, heuristics.metric)
            ratio = None
            if value is not None and reference is not None:
                above, below = (value, reference) if run["sense"] == "min" else (reference, value)
                if below > 0:
                    ratio = max(above / below, 1.0) if proven else above / below
            records.append(
                {
                    "formulation": heuristics.formulation,
                    "instance": run["instance"],
                    "problem": run["problem"],
                    "heuristic": _name(run, heuristics),
                    "objective": value,
                    "reference": reference,
                    "proven": proven,
                    "ratio": ratio,
                    "ended": run.get("termination"),
                    "id": run.get("id"),
                }
            )
    table = pd.DataFrame(records, columns=_COLUMNS).astype({"ratio": float, "objective": float, "proven": bool})
    return table.drop_duplicates(["formulation", "problem", "heuristic", "objective"])


def _reference(runs: pd.DataFrame | None, metric: str) -> tuple[float | None, bool]:
    """The proven optimum among the runs of a problem, else their tightest bound; and whether it is the optimum."""
    if runs is None:
        return None, False
    optimum = runs.loc[runs["ok"] & runs["proof"].isin(PROVEN), "objective"]
    if not optimum.empty:
        return float(optimum.iloc[0]), not metric
    bounds = runs["bound"].dropna()
    if bounds.empty:
        return None, False
    return float(bounds.max() if runs["sense"].iloc[0] == "min" else bounds.min()), False


def _value(run: dict[Any, Any], metric: str) -> float | None:
    if not run["ok"]:
        return None
    value = json.loads(run["metrics"] or "{}").get(metric) if metric else run["objective"]
    return None if value is None else float(value)


def _name(run: dict[Any, Any], heuristics: Heuristics) -> str:
    asked = json.loads(run["requested_settings"] or "{}")
    words = ", ".join(f"{name} {asked[name]}" for name in heuristics.settings if name in asked)
    name = heuristics.called or str(run["method"])
    return f"{name}, {words}" if words else name


def _groups(rows: pd.DataFrame) -> list[tuple[str, str, pd.DataFrame]]:
    """Formulation, heuristic and runs of every row of the figure."""
    return [(str(key[0]), str(key[1]), group) for key, group in rows.groupby(["formulation", "heuristic"])]


def draw(rows: pd.DataFrame) -> Figure:
    """Draw a strip plot and a box for every heuristic; n is the number of problems."""
    groups = _groups(rows)
    measured = rows[rows["ratio"].notna()]
    spread = np.random.default_rng(0)
    with one_panel(7.0, 1.7 + 0.5 * max(len(groups), 1), x="heuristic's value ÷ optimum [–], 1 = optimal") as (
        figure,
        axes,
        handles,
    ):
        names = sorted(set(rows["formulation"]))
        for row, (formulation, _, every) in enumerate(groups):
            colour, marker = series(names.index(formulation))
            selected = every[every["ratio"].notna()]
            _strip_and_box(axes, row, selected["ratio"], selected["proven"].tolist(), colour, marker, spread)
            lost = len(every) - len(selected)
            if lost:
                edge = axes.get_yaxis_transform()
                axes.plot(1.012, row, marker="x", color=INK, markersize=6, transform=edge, clip_on=False)
                axes.text(1.028, row, str(lost), va="center", fontsize=9, transform=edge)
        _name_rows(axes, [_row_label(heuristic, selected) for _, heuristic, selected in groups])
        if len(measured) and measured["ratio"].max() > 4:
            log_axes(axes, "x")
        elif len(measured) and measured["ratio"].max() < 1.02:
            axes.set_xlim(0.98, 1.1)  # all at the optimum: a narrower scale would magnify rounding errors
        handles += [legend_mark(name, *series(k), size=5) for k, name in enumerate(names)]
        if not measured["proven"].all():
            handles.append(legend_mark("open: ÷ best bound", MUTED, "o", filled=False))
        if len(measured) < len(rows):
            handles.append(legend_mark("runs without a value", INK, "x"))
    return figure


def _row_label(heuristic: str, group: pd.DataFrame) -> str:
    """Name, number of problems, and of optimal values."""
    best = _met(group[group["proven"]])
    return f"{label(heuristic, 46)}\n{best} optimal, n = {group['problem'].nunique()}"


def _met(sure: pd.DataFrame) -> int:
    """Number of values that equal the optimum."""
    return int((abs(sure["ratio"] - 1) <= 1e-6).sum())


def finding(rows: pd.DataFrame) -> str:
    """Summarise every heuristic: how often it is optimal, its median and worst ratio, and the runs without a ratio."""
    parts = []
    for _, heuristic, every in _groups(rows):
        selected = every[every["ratio"].notna()]
        sure = selected[selected["proven"]]
        best = _met(sure)
        open_ = f", {len(selected) - len(sure)} over a bound" if len(sure) < len(selected) else ""
        lost = f", {len(every) - len(selected)} without a value or a bound" if len(selected) < len(every) else ""
        shown = (
            f", median {selected['ratio'].median():.3g}, worst {selected['ratio'].max():.3g}" if len(selected) else ""
        )
        parts.append(f"{heuristic}: optimal on {best} of {len(selected)}{open_}{lost}{shown}")
    return "; ".join(parts) + "."


#: The heuristics of each paper that are implemented as methods.
HEURISTICS: dict[str, tuple[Heuristics, ...]] = {
    "alltoall": (
        Heuristics("alltoall.min-congestion", ("sssp", "lp-rounding")),
        Heuristics("alltoall.path-mcf", ("mcf-extp",), over="alltoall.master"),
        Heuristics("alltoall.path-mcf", ("highs",), ("paths",), over="alltoall.master", called="pMCF"),
        Heuristics("alltoall.virtual-channels", ("layer-assignment",), ("heuristic",)),
    ),
    "lumorph": (
        Heuristics("lumorph.min-overlap", ("random-shortest", "xy-routes", "sssp", "lp-rounding")),
        Heuristics(
            "lumorph.rounds",
            ("recursive", "ring", "tree", "double-binary-tree", "divide-and-conquer", "layer-to-layer"),
            ("radix",),
        ),
    ),
    "sipml": (
        Heuristics("sipml.ring-wavelengths", ("ring-first-fit",)),
        Heuristics("sipml.placement", ("degree-aware",)),
    ),
    "optree": (Heuristics("optree.tree", ("uniform-tree",), ("count",)),),
    "topoopt": (
        Heuristics("topoopt.topology", ("topology-finder", "ocs-reconfig"), ("objective",)),
        Heuristics("topoopt.strategy", ("alternating",), metric="iteration_time"),
    ),
}


FIGURES = tuple(
    paper_figure(
        paper,
        f"gap-{paper}",
        partial(gap_rows, wanted=wanted),
        draw,
        finding,
    )
    for paper, wanted in HEURISTICS.items()
)


def _strip_and_box(
    axes: Axes, row: int, values: ArrayLike, sure: Sequence[bool], colour: str, marker: str, spread: Generator
) -> None:
    """Draw values along a row: quartiles as a box, a mark per value, filled where ``sure``; shade every other row."""
    at = np.asarray(values, dtype=float)
    if row % 2 == 0:
        axes.axhspan(row - 0.5, row + 0.5, color=BAND, linewidth=0, zorder=0)
    if at.size:
        axes.boxplot(
            [at],
            positions=[row],
            orientation="horizontal",
            widths=0.55,
            showfliers=False,
            manage_ticks=False,
            boxprops={"color": MUTED},
            whiskerprops={"color": MUTED},
            capprops={"color": MUTED},
            medianprops={"color": INK, "linewidth": 1.6},
        )
    fill = [colour if one else "none" for one in sure]
    aside = row + spread.uniform(-0.22, 0.22, at.size)
    axes.scatter(at, aside, marker=marker, s=20, edgecolors=colour, facecolors=fill, zorder=3)


def _name_rows(axes: Axes, names: Sequence[str]) -> None:
    """Label the rows of strips from the top, and draw a reference line at a ratio of 1."""
    axes.axvline(1.0, color=INK, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(max(len(names), 1) - 0.5, -0.5)
    axes.grid(visible=True, axis="x")
    axes.set_axisbelow(True)

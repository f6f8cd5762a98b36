"""Plots of stored results: bounds, solve times and all-to-all times.

Every function takes rows as :meth:`opticoll.analysis.store.records.Store.sql` returns them, and returns a matplotlib
``Figure``. Only measured values are drawn: a run stopped by its limit is an open marker at the limit and never a time,
a failed run has no marker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.analysis.plots.marks import marks, reference
from opticoll.analysis.plots.panels import one_panel
from opticoll.analysis.plots.style import (
    BAND,
    GRID,
    INK,
    MUTED,
    PALETTE,
    label,
    legend_mark,
    log_axes,
    series,
)
from opticoll.solvers.task import PROVEN

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


#: Colour and marker of common bounds; other bounds use the next free ones.
_BOUNDS = {
    "moore": (PALETTE[0], "o"),
    "distance": (PALETTE[2], "s"),
    "node-cut": (PALETTE[4], "v"),
    "sweep-cut": (PALETTE[3], "^"),
    "any-lengths": (PALETTE[1], "D"),
    "closed-form": (INK, "*"),
}


def throughput_over_bounds(table: pd.DataFrame, *, most: int = 20) -> Figure:
    """Draw the optimum as a fraction of each bound, one row per instance, sorted by the first bound.

    Parameters
    ----------
    table
        One row per instance and bound: ``instance``, ``bound`` (its name), ``ratio`` (optimum over bound, 1 where
        the bound is met), ``proof``.
    most
        Largest number of rows; the title counts the others.
    """
    drawn = table[np.isfinite(table["ratio"].astype(float))]
    names = [name for name in _BOUNDS if name in set(drawn["bound"])]
    names += sorted(set(drawn["bound"]) - set(_BOUNDS))
    ordered = _by_first_bound(drawn, names)
    shown = ordered[:most]
    looks = {name: _BOUNDS.get(name) or series(number + 5) for number, name in enumerate(names)}
    lane = np.linspace(-0.27, 0.27, len(names)) if len(names) > 1 else np.zeros(1)
    offsets = dict(zip(names, lane, strict=False))
    with one_panel(6.6, 1.6 + 0.34 * max(len(shown), 1), x="optimum ÷ bound [–], 1 = bound met", y="instance") as (
        figure,
        axes,
        handles,
    ):
        for row, name in enumerate(shown):
            if row % 2 == 0:
                axes.axhspan(row - 0.5, row + 0.5, color=BAND, linewidth=0, zorder=0)
            selected = drawn[drawn["instance"] == name]
            proven = bool(selected["proof"].isin(PROVEN).all())
            ratios = selected["ratio"].astype(float)
            axes.plot([ratios.min(), ratios.max()], [row, row], color=GRID, linewidth=2, zorder=1)
            for bound, ratio in zip(selected["bound"], ratios, strict=True):
                colour, marker = looks[bound]
                axes.plot(
                    ratio,
                    row + offsets[bound],
                    linestyle="none",
                    marker=marker,
                    color=colour,
                    zorder=3,
                    markersize=9 if marker == "*" else 6,
                    markerfacecolor=colour if proven else "none",
                )
        if len(shown) < len(ordered):
            axes.set_title(f"the first {len(shown)} of {len(ordered)} instances", loc="left")
        reference(axes, x=1.0, zorder=2)
        axes.set_yticks(range(len(shown)), [label(name) for name in shown])
        axes.set_ylim(max(len(shown), 1) - 0.5, -0.5)
        axes.tick_params(axis="y", length=0)
        low = min(0.0, float(drawn["ratio"].min())) if len(drawn) else 0.0
        axes.set_xlim(low, max(1.04, 1.02 * float(drawn["ratio"].max()) if len(drawn) else 0.0))
        axes.grid(visible=True, axis="x")
        axes.set_axisbelow(True)
        handles += [legend_mark(name, *looks[name], size=7) for name in names]
        if not drawn["proof"].isin(PROVEN).all():
            handles.append(legend_mark("open: optimum not proven", MUTED, "o", filled=False))
    return figure


def _by_first_bound(drawn: pd.DataFrame, names: list[str]) -> list[str]:
    """Instances by the ratio to their first bound, highest first, ties by name."""
    rank = drawn["bound"].map({name: place for place, name in enumerate(names)})
    first = drawn.assign(_rank=rank).sort_values("_rank", kind="stable").drop_duplicates("instance")
    first = first.assign(_key=first["ratio"].astype(float).round(6))
    return list(first.sort_values(["_rank", "_key", "instance"], ascending=[True, False, True])["instance"])


def time_by_size(results: pd.DataFrame) -> Figure:
    """Draw the all-to-all time T = 1/F by number of vertices, with a colour and marker per family.

    Parameters
    ----------
    results
        Rows with ``instance``, ``n``, ``T`` and ``proof``; rows without T are omitted.
    """
    drawn = results[results["T"].notna()].sort_values(["n", "instance"])
    families = drawn["instance"].map(family_of)
    with one_panel(6.6, 4.6, x="vertices N", y="time T [shard size ÷ bandwidth]") as (figure, axes, handles):
        for number, name in enumerate(sorted(set(families))):
            colour, marker = series(number)
            selected = drawn[families == name].drop_duplicates(["instance", "T"])
            fill = [colour if proof in PROVEN else "none" for proof in selected["proof"]]
            axes.plot(selected["n"], selected["T"], color=colour, linewidth=1, alpha=0.6, zorder=1)
            axes.scatter(
                selected["n"], selected["T"], marker=marker, s=34, edgecolors=colour, facecolors=fill, zorder=2
            )
            handles.append(legend_mark(label(name, 24), colour, marker))
        axes.margins(0.08)
        log_axes(axes)
    return figure


def solve_time(results: pd.DataFrame) -> Figure:
    """Draw the solve time by number of vertices, with a colour and marker per method.

    A filled marker is a proven optimum, an open one with a bar on top a run stopped by its time limit, drawn at the
    limit, and a cross a run that ended without a proof. The title counts the runs without a time.

    Parameters
    ----------
    results
        Rows with ``method``, ``termination``, ``proof``, ``time_solve_s``, ``requested_time_limit_s`` and ``n``.
    """
    from matplotlib.transforms import offset_copy

    kinds = run_kinds(results)
    seconds = (
        results["time_solve_s"].astype(float).where(kinds != "limit", results["requested_time_limit_s"].astype(float))
    )
    sizes = results["n"].astype(float)
    visible = (kinds != "failed") & np.isfinite(seconds) & (seconds > 0) & (sizes > 0)
    hidden = int((~visible).sum())
    methods = sorted(set(results["method"][visible].astype(str)))
    with one_panel(6.6, 4.6, x="vertices N", y="solve time [s]") as (figure, axes, handles):
        for number, name in enumerate(methods):
            colour, marker = series(number)
            mine = visible & (results["method"] == name)
            for kind, look in _TIME_LOOKS.items():
                these = mine & (kinds == kind)
                if these.any():
                    marks(axes, sizes[these], seconds[these], number, **look)
            stopped = mine & (kinds == "limit")
            if stopped.any():
                above = offset_copy(axes.transData, figure, y=6.5, units="points")
                axes.plot(sizes[stopped], seconds[stopped], linestyle="none", marker="_", color=colour, transform=above)
            handles.append(legend_mark(label(name, 24), colour, marker))
        axes.margins(0.08)
        log_axes(axes)
        present = set(kinds[visible])
        if "limit" in present:
            handles.append(legend_mark("open: stopped at its limit", MUTED, "o", filled=False))
        if "unproven" in present:
            handles.append(legend_mark("ended without a proof", MUTED, "x"))
        if hidden:
            axes.set_title(f"{hidden} run{'s' * (hidden > 1)} without a time are not drawn", loc="left")
    return figure


_TIME_LOOKS: dict[str, Any] = {
    "proven": {},
    "limit": {"markerfacecolor": "none", "markersize": 8},
    "unproven": {"marker": "x"},
}


def run_kinds(results: pd.DataFrame) -> pd.Series[str]:
    """Kind of every run, which determines its mark: ``proven``, ``limit``, ``unproven`` or ``failed``."""
    proven = results["proof"].isin(PROVEN) & results["verified"].fillna(value=False).astype(bool)
    refuted = results["termination"] == "infeasible"
    refuted &= results["infeasible_by"].notna() if "infeasible_by" in results else False  # shipped rows have no reasons
    kinds = results["termination"].astype("object").map(lambda _: "failed")
    ended = results["termination"].isin(("optimal", "iteration-limit", "tolerance-not-reached"))
    kinds = kinds.mask(ended, "unproven").mask(results["termination"] == "time-limit", "limit")
    return kinds.mask((proven & ended) | refuted, "proven")


def family_of(spec: str) -> str:
    """Family of an instance spec."""
    return str(spec).partition(":")[0].partition("+")[0]

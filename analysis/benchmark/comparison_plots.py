"""Plots of a comparison of solvers, from the tables of :mod:`opticoll.analysis.benchmark.solver_metrics`.

Only measured values are drawn: a run stopped by its limit is an open marker at the limit and never a time, a failed run
has no marker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.analysis.benchmark.solver_metrics import ACCURACIES
from opticoll.analysis.plots.marks import marks, note, reference
from opticoll.analysis.plots.panels import one_panel, styled_figure
from opticoll.analysis.plots.style import BAND, MUTED, ON_SERIES, PALETTE, label, legend_mark, log_axes, series

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from matplotlib.figure import Figure


#: End of the name of a contestant that was run here, beside a published one.
HERE = " (here)"
#: Ratio at which the left panel of a profile ends and the right one begins [-].
_NEAR = 3.0
_OPEN = {
    "limit": (">", "stopped by the time limit"),
    "memory": ("s", "out of memory"),
    "inexact": ("x", "ended, accuracy not reached"),
    "failed": ("+", "failed"),
    "wrong": ("1", "wrong answer"),
}


def profiles(steps: pd.DataFrame, solvers: Sequence[str]) -> Figure:
    """Draw performance profiles: factors near 1 on a linear axis, the tail on a logarithmic one.

    Parameters
    ----------
    steps
        ``solver``, ``ratio``, ``share``, see :func:`opticoll.analysis.benchmark.solver_metrics.performance_profile`.
    solvers
        All solvers of the benchmark, so each has the same colour in every figure.
    """
    shown = [name for name in solvers if (steps["solver"] == name).any()]
    end = {name: steps.loc[steps["solver"] == name, "share"].max() for name in shown}
    start = {name: steps.loc[steps["solver"] == name, "share"].iloc[0] for name in shown}
    far = max(10.0, 1.3 * float(steps["ratio"].max()))
    with styled_figure(7.2, 4.8, columns=2) as (figure, handles):
        near, tail = figure.subplots(1, 2, sharey=True, gridspec_kw={"width_ratios": [1, 1.4]})
        for name in sorted(shown, key=lambda one: -end[one]):
            look = _look(name, solvers)
            selected = steps[steps["solver"] == name]
            ratio = np.append(selected["ratio"].to_numpy(dtype=float), far)
            share = np.append(selected["share"].to_numpy(dtype=float), selected["share"].iloc[-1])
            text = f"{label(name, 24)}: {start[name]:.0%} fastest, {end[name]:.0%} solved"
            for axes in (near, tail):
                (line,) = axes.step(
                    ratio,
                    share,
                    where="post",
                    linewidth=1.5,
                    markersize=4,
                    label=text,
                    **look,
                )
            handles.append(line)
        near.set_xlim(1.0, _NEAR)
        log_axes(tail, "x")
        tail.set_xlim(_NEAR, far)
        for axes in (near, tail):
            axes.set_ylim(-0.02, 1.03)
            axes.grid(visible=True)
            axes.set_axisbelow(True)
        near.set_ylabel("share of problems solved [–]")
        near.set_xlabel("time ÷ fastest time [–]")
        tail.set_xlabel("time ÷ fastest time [–], logarithmic")
    return figure


def _look(name: str, solvers: Sequence[str]) -> dict[str, Any]:
    """Colour, line and marker of a contestant: those of its published runs for its runs ``(here)``, but dotted, hollow.

    No two of 16 contestants have the same colour and line.
    """
    bases = list(dict.fromkeys(one.removesuffix(HERE) for one in solvers))
    number, here = bases.index(name.removesuffix(HERE)), name.endswith(HERE)
    colour, marker = series(number)
    line = (0, (1, 1) if number < len(PALETTE) else (4, 1, 1, 1, 1, 1)) if here else _line(number)
    filled = ON_SERIES if here else colour
    return {"color": colour, "marker": marker, "linestyle": line, "markerfacecolor": filled}


def _line(number: int) -> Any:
    """Line style: dashed where colours repeat."""
    return "-" if number < len(PALETTE) else (0, (4, 2))


def times_by_problem(table: pd.DataFrame, solvers: Sequence[str], *, most: int = 60) -> Figure:
    """Draw the solver's time on every problem, easiest on top; censored runs are marks right of the limit.

    Parameters
    ----------
    table
        Verdicts, one row per problem and solver; repeated runs also have ``seconds_min`` and ``seconds_max``, the
        ends of a bar.
    solvers
        All solvers of the benchmark, so each has the same colour in every figure.
    """
    ran = table[table["verdict"] != "unavailable"]
    fastest = ran.groupby("problem")["seconds"].min().fillna(np.inf)
    solved = ran.groupby("problem")["seconds"].count()
    order = sorted(fastest.index, key=lambda one: (fastest[one], -solved[one], one))[:most]
    limit = float(ran["limit_s"].max()) if ran["limit_s"].notna().any() else float("nan")
    unlimited = not np.isfinite(limit)
    if unlimited:  # marks of failed runs are right of the slowest run
        times = ran["seconds"]
        limit = 2.0 * float(times.max()) if times.notna().any() else 1.0
    names = [name for name in solvers if (ran["solver"] == name).any()]
    lane = np.linspace(-0.3, 0.3, len(names)) if len(names) > 1 else np.zeros(1)
    with one_panel(
        7.2, 1.8 + 0.25 * max(len(order), 1), x="solver time [s]; right of the limit: no time", y="problem"
    ) as (figure, axes, handles):
        for row in range(0, len(order), 2):
            axes.axhspan(row - 0.5, row + 0.5, color=BAND, linewidth=0, zorder=0)
        seen: set[str] = set()
        for name, offset in zip(names, lane, strict=True):
            colour, marker = series(solvers.index(name))
            for one in ran[(ran["solver"] == name) & ran["problem"].isin(order)].to_dict("records"):
                at = order.index(one["problem"]) + offset
                if one["verdict"] == "solved":
                    axes.plot(max(one["seconds"], 1e-3), at, marker=marker, color=colour, markersize=4.5, zorder=3)
                    ends = np.maximum([one.get("seconds_min", np.nan), one.get("seconds_max", np.nan)], 1e-3)
                    if ends[1] > ends[0]:
                        axes.plot(ends, [at, at], color=colour, linewidth=1.2, marker="|", markersize=4, zorder=2)
                else:
                    seen.add(one["verdict"])
                    axes.plot(
                        1.35 * limit,
                        at,
                        marker=_OPEN[one["verdict"]][0],
                        color=colour,
                        markersize=5,
                        markerfacecolor="none",
                        zorder=3,
                    )
        if not unlimited:
            reference(axes, x=limit)
            note(axes, f"limit {limit:g} s", (limit, 1.0), (-3, 3), fraction="y", ha="right")
        axes.set_yticks(range(len(order)), [label(one, 72) for one in order])
        axes.tick_params(axis="y", length=0, labelsize=7)
        axes.set_ylim(max(len(order), 1) - 0.5, -0.5)
        log_axes(axes, "x")
        handles += [legend_mark(label(name, 24), *series(solvers.index(name)), size=5) for name in names]
        handles += [
            legend_mark(words, MUTED, marker, filled=False) for word, (marker, words) in _OPEN.items() if word in seen
        ]
    return figure


def accuracy_over_time(table: pd.DataFrame, solvers: Sequence[str]) -> Figure:
    """Draw the worst KKT residual of every run by its time.

    Parameters
    ----------
    table
        Rows with ``solver``, ``seconds_run`` (time of the run [s], solved or not), ``residual``.
    solvers
        All solvers of the benchmark, so each has the same colour in every figure.
    """
    drawn = table[np.isfinite(table["residual"]) & np.isfinite(table["seconds_run"])]
    with one_panel(6.8, 4.8, x="solver time [s]", y="worst relative KKT residual [–]") as (figure, axes, handles):
        for name in solvers:
            selected = drawn[drawn["solver"] == name]
            if len(selected):
                seconds, residual = selected["seconds_run"].clip(lower=1e-3), selected["residual"].clip(lower=1e-16)
                number, text = solvers.index(name), label(name, 24)
                handles += marks(axes, seconds, residual, number, text, markersize=5, alpha=0.85)
        for accuracy in ACCURACIES:
            reference(axes, y=accuracy, zorder=1)
            note(axes, f"{accuracy:.0e}", (1.0, accuracy), (2, 0), fraction="x", va="center")
        log_axes(axes)
    return figure


def gaps_over_time(steps: pd.DataFrame, solvers: Sequence[str]) -> Figure:
    """Draw the mean primal gap of every solver's incumbents over time.

    Parameters
    ----------
    steps
        ``solver``, ``seconds``, ``gap``, see :func:`opticoll.analysis.benchmark.solver_metrics.gap_over_time`.
    solvers
        All solvers of the benchmark, so each has the same colour in every figure.
    """
    with one_panel(6.8, 4.2, x="time [s]", y="mean gap to the best known value [–]") as (figure, axes, handles):
        for name in solvers:
            selected = steps[steps["solver"] == name]
            if len(selected):
                number = solvers.index(name)
                handles += axes.step(
                    selected["seconds"],
                    selected["gap"],
                    where="post",
                    color=series(number)[0],
                    linewidth=1.5,
                    linestyle=_line(number),
                    label=label(name, 24),
                )
        log_axes(axes, "x")
        axes.set_ylim(-0.02, 1.03)
    return figure

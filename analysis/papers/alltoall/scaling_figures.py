"""How the cost of an all-to-all optimum grows with N: methods on GenKautz of degree 4, by phase, to 1e-4."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.analysis.papers.paper_figure import Figures, argument, frame
from opticoll.analysis.plots.marks import curve, marks
from opticoll.analysis.plots.panels import styled_figure
from opticoll.analysis.plots.store_plots import family_of
from opticoll.analysis.plots.style import INK, MUTED, legend_mark, log_axes, series
from opticoll.solvers.task import PROVEN

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


FIGURES = Figures("alltoall")
#: Methods that reach the optimum: label, formulation, method.
ROUTES = (
    ("link MCF, one LP", "alltoall.link-mcf", "time-form"),
    ("master + children", "alltoall.link-mcf", "master-child"),
    ("master + path stripping", "alltoall.link-mcf", "flow-decomposition"),
    ("master + weighted paths", "alltoall.path-mcf", "flow-decomposition"),
    ("column generation", "alltoall.link-mcf", "column-generation"),
    ("master, interior point", "alltoall.master", "time-form"),
    ("master, certified PDHG", "alltoall.master", "certified-pdhg"),
)
#: Phases and the titles of their panels.
PHASES = {
    "build": "Build and compile the model",
    "solve": "Solve (for decompositions: the master)",
    "certify": "Verify and certify",
    "decompose": "Split the master's flows by destination",
}
TOL = 1e-4
#: Minimum number of points and factor of N for a slope; shorter times [s] are start-up.
FEWEST, SPAN, SHORTEST_S = 3, 1.7, 0.02
#: Start-up distorts the times of smaller N, which are omitted from a fit if there are enough larger ones.
LARGE = 64
COLUMNS = ["route", "phase", "n", "seconds", "state", "panel"]


def rows_of(rows: pd.DataFrame) -> pd.DataFrame:
    """Seconds of every phase by route and N.

    ``state`` is ``measured``; ``late`` for a solve stopped by its time limit, which is then ``seconds``, a lower bound;
    ``refused`` for one that would not fit in memory, with ``seconds`` undefined. Of several runs the fastest counts; a
    run that ended in time takes precedence over one that did not.
    """
    kautz = (rows["instance"].map(family_of) == "genkautz") & ~rows["instance"].str.contains("+", regex=False)
    degree = rows["instance"].map(lambda spec: argument(spec, "d")) == "4"
    tolerance = np.isclose(rows["requested_tol"].astype(float), TOL, rtol=1e-9)
    results: list[dict[str, Any]] = []
    for _, row in rows[kautz & degree & tolerance].iterrows():
        route = next((r for r, name, m in ROUTES if (row["formulation"], row["method"]) == (name, m)), None)
        if route is None:
            continue
        common = {"route": route, "n": int(row["n"])}
        if row["termination"] == "refused":
            results.append({**common, "phase": "solve", "seconds": np.nan, "state": "refused"})
        elif row["termination"] == "time-limit" and row["requested_time_limit_s"] is not None:
            limit = float(row["requested_time_limit_s"])
            results.append({**common, "phase": "solve", "seconds": limit, "state": "late"})
        elif row["ok"] and row["proof"] in PROVEN:
            for phase, seconds in _phases(row).items():
                if seconds is not None and seconds > 0:
                    results.append({**common, "phase": phase, "seconds": seconds, "state": "measured"})
    order = {"measured": 0, "late": 1, "refused": 2}
    table = frame(results, columns=COLUMNS[:-1])
    table["panel"] = table["phase"].map(PHASES)
    ranked = table.assign(_rank=table["state"].map(order)).sort_values(["_rank", "seconds"], kind="stable")
    return ranked.drop_duplicates(["route", "phase", "n"])[COLUMNS].sort_values(["route", "phase", "n"])


def _phases(row: Any) -> dict[str, float | None]:
    """Seconds by phase: those that a procedure reports, if any, since its process takes time to start."""
    metrics = json.loads(row["metrics"] or "{}")
    own = next((metrics[k] for k in ("master_s", "generation_s", "iteration_s") if metrics.get(k)), None)
    built = row["time_build_s"]
    return {
        "build": None if built is None or np.isnan(built) else float(built + row["time_compile_s"]),
        "solve": float(row["time_solve_s"]) if own is None else float(own),
        "certify": float(row["time_verify_s"]),
        "decompose": metrics.get("decompose_s"),
    }


def slope(points: pd.DataFrame) -> tuple[float, int, int] | None:
    """Exponent of N by least squares on log-log over measured points, with the N that it spans; None for too few."""
    used = points[(points["state"] == "measured") & (points["seconds"] >= SHORTEST_S)]
    large = used[used["n"] >= LARGE]
    for some in (large, used):
        if len(some) >= FEWEST and some["n"].max() >= SPAN * some["n"].min():
            break
    else:
        return None
    used = some
    exponent = np.polyfit(np.log(used["n"].to_numpy(float)), np.log(used["seconds"].to_numpy(float)), 1)[0]
    return float(exponent), int(used["n"].min()), int(used["n"].max())


def draw(table: pd.DataFrame) -> Figure:
    """Draw one panel per phase; a stopped solve is a hollow marker with an arrow, at its limit and never on a line."""
    with styled_figure(8.2, 7.6) as (figure, handles):
        grid = figure.subplots(2, 2, sharex=True)
        lines: dict[str, Any] = {}
        for axes, (phase, title) in zip(grid.ravel(), PHASES.items(), strict=True):
            selected = table[table["phase"] == phase]
            ends: list[tuple[float, float, str, str]] = []
            for number, (route, _, _) in enumerate(ROUTES):
                colour, _ = series(number)
                points = selected[selected["route"] == route].sort_values("n")
                known, late = points[points["state"] == "measured"], points[points["state"] == "late"]
                if len(known):
                    (lines[route],) = curve(axes, known["n"], known["seconds"], number, route, linewidth=1.4)
                    fitted = slope(points)
                    if fitted is not None:
                        last = known.iloc[-1]
                        ends.append(
                            (float(last["n"]), float(last["seconds"]), f"N^{round(fitted[0], 1) + 0.0:.1f}", colour)
                        )
                if len(late):
                    marks(axes, late["n"], late["seconds"], number, filled=False)
                    axes.plot(
                        late["n"], late["seconds"] * 1.35, color=colour, marker="^", markersize=4, linestyle="none"
                    )
                for n in points[points["state"] == "refused"]["n"]:
                    axes.plot(
                        n,
                        0.97,
                        color=colour,
                        marker="x",
                        markersize=7,
                        linestyle="none",
                        transform=axes.get_xaxis_transform(),
                        clip_on=False,
                    )
            log_axes(axes)
            _widen(axes)
            for x, y, text, colour in _moved_apart(ends):
                axes.annotate(text, (x, y), (6, 0), textcoords="offset points", color=colour, fontsize=8.5, va="center")
            axes.set_title(title, loc="left", color=INK)
        for axes in grid[1]:
            axes.set_xlabel("ranks N")
        for axes in grid[:, 0]:
            axes.set_ylabel("seconds")
        handles += [*lines.values(), *_state_marks(set(table["state"]))]
    return figure


def _widen(axes: Axes) -> None:
    """Leave room for labels on the right, and show at least two decades of time so that noise is not magnified."""
    if not axes.lines:
        return
    axes.set_xlim(24, 2200)
    low, high = axes.get_ylim()
    middle, half = np.sqrt(low * high), max(np.sqrt(high / low), 10.0)
    axes.set_ylim(middle / half, middle * half)


def _state_marks(states: set[str]) -> list[Any]:
    """Legend entries of points that are not measurements."""
    signs = {
        "late": legend_mark("stopped by the time limit (lower bound)", MUTED, "o", filled=False),
        "refused": legend_mark("refused: would not fit in memory", MUTED, "x"),
    }
    return [mark for state, mark in signs.items() if state in states]


def _moved_apart(ends: list[tuple[float, float, str, str]]) -> list[tuple[float, float, str, str]]:
    """Move overlapping labels apart vertically."""
    placed: list[tuple[float, float, str, str]] = []
    for x, y, text, colour in sorted(ends, key=lambda end: end[1]):
        for other in placed:
            if abs(np.log(x / other[0])) < 0.7 and y < 1.9 * other[1]:
                y = 1.9 * other[1]
        placed.append((x, y, text, colour))
    return placed


@FIGURES.drawn("alltoall-scaling", rows_of, draw)
def finding(table: pd.DataFrame) -> str:
    """Exponents of N with the fitted range of N, and the largest N solved in time."""
    parts = []
    for route, _, _ in ROUTES:
        selected = table[table["route"] == route]
        exponents = []
        for phase in PHASES:
            fitted = slope(selected[selected["phase"] == phase])
            if fitted is not None:
                exponents.append(f"{phase} N^{fitted[0]:.1f} (N = {fitted[1]} to {fitted[2]})")
        reached = selected[(selected["phase"] == "solve") & (selected["state"] == "measured")]["n"]
        top = "" if reached.empty else f", proven up to N = {int(reached.max())}"
        late = selected[selected["state"] == "late"]["n"]
        ended = "" if late.empty else f", stopped by its limit from N = {int(late.min())}"
        if exponents:
            parts.append(f"{route}: {', '.join(exponents)}{top}{ended}")
    return "; ".join(parts) + "." if parts else "Too few points for a slope so far."

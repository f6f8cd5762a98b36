"""Figures 6-8 of the LuMorph paper, rounds of every algorithm over the best bound, and programs of Algorithm 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.analysis.papers.paper_figure import Figures, argument, frame, settings_of
from opticoll.analysis.plots.marks import curve, marks, note, reference
from opticoll.analysis.plots.panels import one_panel, styled_figure
from opticoll.analysis.plots.style import INK, MUTED, log_axes, series

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


FIGURES = Figures("lumorph")
#: Grids of 256 tiles: eight wafers of 4x8 as a square, or in a row.
WIDE = ("16x16", "8x32", "4x64")
WAVEGUIDES = (4, 8, 16, 20, 32, 40, 64)
KB, MB = 1e3, 1e6
#: Buffers of figure 8, and of figure 7 [bytes].
BUFFERS = (64 * KB, 4 * MB, 64 * MB)
SIZES = tuple(sorted({*(float(size) for size in np.logspace(3, 9, 25)), *BUFFERS}))
#: Curves of figure 7: LuMorph's algorithms on LIGHTPATH, the baselines on an ideal electrical switch.
_OPTICAL = ("LUMORPH-2", "LUMORPH-4", "LUMORPH-16", "D&C")
_SWITCH = {"ring": "ring, ideal switch", "tree": "tree, ideal switch", "double-binary-tree": "two trees, ideal switch"}
_RING = _SWITCH["ring"]
#: Reconfiguration delays [us] and rates of a laser [Gb/s] of figure 8; 18.75 GB/s is 150 Gb/s.
DELAYS = tuple(float(r) for r in np.logspace(-2, 2, 33))
#: Maximum number of machine-collective pairs in the last figure.
MOST_PLACES = 30
#: Instances on which the programs of Algorithm 1 are compared.
PROGRAM_MESHES = tuple(f"lightpath:{shape},lasers={L},waveguides=20" for shape in ("2x2", "2x4") for L in (1, 4))
RATES = (10.0, 25.0, 50.0, 75.0, 112.0, 150.0, 224.0, 400.0, 800.0)


# figure 6 -----------------------------------------------------------------------------------------------------


def _split_rows(_: pd.DataFrame) -> pd.DataFrame:
    from opticoll.analysis.papers.lumorph.drawn_lines import reconfigurations

    # LUMORPH-2 has one bundle of all wavelengths per GPU, so both ways of counting agree.
    ways = (("LUMORPH-2", True), ("LUMORPH-4", True), ("LUMORPH-4", False))
    return frame(
        [
            {
                "grid": grid,
                "algorithm": name,
                "per_wavelength": each,
                "waveguides": w,
                "reconfigurations": reconfigurations(name, grid, w, per_wavelength=each),
            }
            for grid in WIDE
            for name, each in ways
            for w in WAVEGUIDES
        ]
    )


def _split(rows: pd.DataFrame) -> Figure:
    with styled_figure(7.2, 4.2) as (figure, handles):
        panels = figure.subplots(1, 2, sharey=True)
        for axes, name in zip(panels, ("LUMORPH-2", "LUMORPH-4"), strict=True):
            for number, grid in enumerate(WIDE):
                for each in (True, False):
                    selected = rows[
                        (rows["algorithm"] == name) & (rows["grid"] == grid) & (rows["per_wavelength"] == each)
                    ]
                    if selected.empty:
                        continue
                    text = grid if each else f"{grid}, wavelengths ignored"
                    handle = curve(
                        axes,
                        selected["waveguides"],
                        selected["reconfigurations"],
                        number,
                        text,
                        filled=each,
                        linestyle="-" if each else "--",
                    )
                    handles += handle if name == "LUMORPH-4" else []
            for w in (20, 40):
                reference(axes, x=w, color=MUTED, linestyle=(0, (2, 3)))
            log_axes(axes, "xy")
            axes.set_xticks([4, 8, 20, 40])
            axes.set_xlabel("waveguides per arc")
            axes.set_title(f"{name}, 256 GPUs")
        panels[0].set_ylabel("reconfigurations of an all-reduce")
    return figure


@FIGURES.drawn("lumorph-6-grids", _split_rows, _split)
def _split_finding(rows: pd.DataFrame) -> str:
    parts = []
    for (grid, name), group in rows.groupby(["grid", "algorithm"], sort=False):
        counts = []
        for each, words in ((True, ""), (False, " with wavelengths ignored")):
            mine = group[group["per_wavelength"] == each].set_index("waveguides")["reconfigurations"]
            if not mine.empty:
                counts.append(f"{mine[20]} and {mine[40]}{words}")
        parts.append(f"{name} on {grid} {', '.join(counts)}")
    return "Reconfigurations with 20 and 40 waveguides: " + "; ".join(parts) + "."


# figure 7 -----------------------------------------------------------------------------------------------------


def _time_rows(_: pd.DataFrame) -> pd.DataFrame:
    from opticoll.analysis.papers.lumorph.drawn_lines import GRIDS, optical, switch_times
    from opticoll.analysis.papers.lumorph.machine_times import LIGHTPATH, least_time

    rows = []
    for n in (64, 128, 256):
        for size in SIZES:
            each = {name: optical(name, GRIDS[n], waveguides=40).time(size) for name in _OPTICAL}
            each |= {title: switch_times(name, n, size) for name, title in _SWITCH.items()}
            each["lower bound, LIGHTPATH"] = least_time(n, size, LIGHTPATH)
            rows += [{"n": n, "size": size, "algorithm": name, "time_us": time} for name, time in each.items()]
    return frame(rows)


def _time(rows: pd.DataFrame) -> Figure:
    with styled_figure(9.4, 4.4, columns=4) as (figure, handles):
        numbers = {name: number for number, name in enumerate((*_OPTICAL, *_SWITCH.values()))}
        counts = sorted(set(rows["n"]))
        panels = figure.subplots(1, len(counts), sharey=True, squeeze=False)[0]
        for axes, n in zip(panels, counts, strict=True):
            for name, group in rows[rows["n"] == n].groupby("algorithm", sort=False):
                bound = name == "lower bound, LIGHTPATH"
                colour = INK if bound else series(numbers[str(name)])[0]
                handle = axes.plot(
                    group["size"] / MB,
                    group["time_us"],
                    color=colour,
                    linewidth=1.6 if not bound else 1,
                    linestyle=(0, (2, 2)) if bound else "--" if name in _SWITCH.values() else "-",
                    label=str(name),
                )
                handles += handle if n == counts[0] else []
            log_axes(axes)
            axes.set_xlabel("buffer [MB]")
            axes.set_title(f"{n} GPUs")
        panels[0].set_ylabel("all-reduce [µs]")
    return figure


@FIGURES.drawn("lumorph-7-schedules", _time_rows, _time)
def _time_finding(rows: pd.DataFrame) -> str:
    last = rows[rows["n"] == rows["n"].max()]
    wide = last.pivot_table(index="size", columns="algorithm", values="time_us")
    parts = []
    for size in BUFFERS:
        at = wide.loc[size]
        ours = at[["LUMORPH-2", "LUMORPH-4"]]
        parts.append(
            f"{_bytes(size)}: {ours.idxmin()} takes {ours.min():.0f} µs, {1 - ours.min() / at[_RING]:.0%} less than "
            f"the ring and {ours.min() / at[_SWITCH['double-binary-tree']]:.2f} times the two trees"
        )
    return f"{int(last['n'].iloc[0])} GPUs, " + "; ".join(parts) + "."


# figure 8 -----------------------------------------------------------------------------------------------------


def _sweep_rows(_: pd.DataFrame) -> pd.DataFrame:
    from opticoll.analysis.papers.lumorph.drawn_lines import optical, switch_times
    from opticoll.analysis.papers.lumorph.machine_times import Machine

    rows = []
    for size in BUFFERS:
        for what, values in (("delay", DELAYS), ("rate", RATES)):
            for value in values:
                machine = Machine(reconfigure_us=value) if what == "delay" else Machine(laser_gbps=value)
                each = {name: optical(name, "16x16", waveguides=40).time(size, machine) for name in _OPTICAL[:2]}
                each[_RING] = switch_times("ring", 256, size, machine if what == "delay" else Machine())
                rows += [
                    {"sweep": what, "value": value, "size": size, "algorithm": name, "time_us": time}
                    for name, time in each.items()
                ]
    return frame(rows)


def _sweep(rows: pd.DataFrame) -> Figure:
    with styled_figure(8.4, 4.6) as (figure, handles):
        panels = figure.subplots(1, 2)
        lines = dict(zip(BUFFERS, (":", "--", "-"), strict=True))
        for axes, what in zip(panels, ("delay", "rate"), strict=True):
            for number, (name, mine) in enumerate(rows[rows["sweep"] == what].groupby("algorithm", sort=False)):
                for size, group in mine.groupby("size"):
                    handle = axes.plot(
                        group["value"],
                        group["time_us"],
                        color=series(number)[0],
                        linewidth=1.5,
                        linestyle=lines[float(str(size))],
                        label=f"{name}, {_bytes(float(str(size)))}",
                    )
                    handles += handle if what == "delay" else []
            log_axes(axes)
        for value in (3.7, 25.0):
            reference(panels[0], x=value, color=MUTED, linestyle=(0, (2, 3)))
            note(panels[0], f"{value:g}", (value, 0.98), (3, 0), fraction="y", va="top")
        reference(panels[1], x=150, color=MUTED, linestyle=(0, (2, 3)))
        panels[0].set_xlabel("reconfiguration delay r [µs]")
        panels[1].set_xlabel("laser rate [Gb/s]; the ring has 300 GB/s")
        panels[0].set_ylabel("all-reduce, 256 GPUs [µs]")
    return figure


def _bytes(size: float) -> str:
    return f"{size / MB:g} MB" if size >= MB else f"{size / KB:g} KB"


@FIGURES.drawn("lumorph-8-schedules", _sweep_rows, _sweep)
def _sweep_finding(rows: pd.DataFrame) -> str:
    delays = rows[rows["sweep"] == "delay"]
    parts = []
    for size, group in delays.groupby("size"):
        wide = group.pivot_table(index="value", columns="algorithm", values="time_us")
        even_delays = []
        for name in _OPTICAL[:2]:
            gap = (wide[name] - wide[_RING]).to_numpy()
            # Time is linear in r, so the break-even follows from any two delays.
            r = wide.index.to_numpy()
            even = r[0] - gap[0] * (r[-1] - r[0]) / (gap[-1] - gap[0])
            even_delays.append(f"{name} {even:.1f} µs")
        parts.append(f"{_bytes(float(str(size)))}: {', '.join(even_delays)}")
    return "Delay at which the ring on an ideal switch is equally fast: " + "; ".join(parts) + "."


# rounds over the bound ----------------------------------------------------------------------------------------


def _over_rows(rows: pd.DataFrame) -> pd.DataFrame:
    runs = rows[rows["ok"] & (rows["formulation"] == "lumorph.rounds")].copy()
    if runs.empty:
        return runs
    # With a fixed wavelength per route the problem is a different one.
    runs = runs[np.array(settings_of(runs, "wavelengths", "free")) == "free"].copy()
    runs["collective"] = settings_of(runs, "collective", "all-gather")
    runs["radix"] = settings_of(runs, "radix", "2")
    runs["algorithm"] = [
        f"{method}, radix {radix}" if method == "recursive" else method
        for method, radix in zip(runs["method"], runs["radix"], strict=True)
    ]
    # Use the best bound of any run of the same problem.
    runs["pieces"] = settings_of(runs, "pieces", "1")
    problem = ["instance", "collective", "pieces"]
    runs["best_bound"] = runs.groupby(problem)["bound"].transform("max")
    runs = runs[runs["best_bound"].notna() & (runs["best_bound"] > 0)]
    runs["over"] = runs["objective"] / runs["best_bound"]
    return runs.drop_duplicates([*problem, "algorithm"]).sort_values(["n", *problem, "algorithm"])


def _place(instance: str, wanted: str, pieces: str) -> str:
    grid = instance.partition(":")[2].partition(",")[0]
    machine = f"{grid} L={argument(instance, 'lasers') or 16} W={argument(instance, 'waveguides') or 1}"
    return f"{machine} {wanted}" + (f" x{pieces}" if pieces != "1" else "")


def _over(rows: pd.DataFrame) -> Figure:
    cases = zip(rows["instance"], rows["collective"], rows["pieces"], strict=True)
    places = rows.assign(place=[_place(*each) for each in cases])
    # If there are too many, keep those on which most algorithms were run.
    tried = places.groupby("place")["algorithm"].nunique().sort_values(ascending=False, kind="stable")
    places = places[places["place"].isin(tried.index[:MOST_PLACES])]
    order = list(dict.fromkeys(places["place"]))
    names = sorted(set(places["algorithm"]))
    height = 1.6 + 0.27 * len(order)
    with one_panel(7.6, height, x="rounds ÷ best bound [–]", y="machine, collective") as (figure, axes, handles):
        for number, name in enumerate(names):
            selected = places[places["algorithm"] == name]
            shift = (number - (len(names) - 1) / 2) * 0.09
            handles += marks(
                axes, selected["over"], [order.index(p) + shift for p in selected["place"]], number, name, markersize=5
            )
        reference(axes, x=1.0, linestyle="-")
        log_axes(axes, "x")
        axes.set_yticks(range(len(order)), order, fontsize=8)
        axes.invert_yaxis()
    return figure


@FIGURES.drawn("lumorph-optimality", _over_rows, _over)
def _over_finding(rows: pd.DataFrame) -> str:
    parts = [
        f"{name}: median {group['over'].median():.2f}, worst {group['over'].max():.2f}, optimal in "
        f"{int((group['over'] <= 1).sum())} of {len(group)}"
        for name, group in rows.groupby("algorithm")
    ]
    return "Rounds over the best bound, " + "; ".join(parts) + "."


# Algorithm 1 as printed, as coded, corrected ----------------------------------------------------------------------


def _program_rows(rows: pd.DataFrame) -> pd.DataFrame:
    mask = (rows["formulation"] == "lumorph.rounds") & rows["instance"].isin(PROGRAM_MESHES)
    runs = rows[mask & rows["time_solver_s"].notna()].copy()
    if runs.empty:
        return runs
    runs["program"] = settings_of(runs, "program", "corrected")
    runs["rmax"] = list(map(int, settings_of(runs, "rmax", "0")))
    runs["lasers"] = [int(argument(instance, "lasers") or 16) for instance in runs["instance"]]
    # A solver's claim, since the proof is its own where analytic bounds are off.
    runs["ended"] = runs["termination"].isin(("optimal", "infeasible"))
    columns = [
        "instance",
        "n",
        "lasers",
        "rmax",
        "program",
        "method",
        "time_solver_s",
        "ended",
        "termination",
        "objective",
        "size_variables",
        "id",
        "ok",
    ]
    runs["order"] = runs["program"].map({"printed": 0, "coded": 1, "corrected": 2}) + (runs["rmax"] == 0)
    parts = zip(runs["n"], runs["lasers"], runs["rmax"], runs["program"], strict=True)
    runs["case"] = [f"{n} GPUs, L={L}, {f'R ≤ {R}' if R else 'default'}: {program}" for n, L, R, program in parts]
    return runs.sort_values(["n", "lasers", "order", "rmax", "method"])[[*columns, "case"]]


def _programs(rows: pd.DataFrame) -> Figure:
    order = list(dict.fromkeys(rows["case"]))
    height = 1.6 + 0.27 * len(order)
    with one_panel(7.6, height, x="solver time [s]", y="size, lasers, rounds: program") as (figure, axes, handles):
        for number, (method, group) in enumerate(rows.groupby("method")):
            for ended, runs in group.groupby("ended"):
                handles += marks(
                    axes,
                    runs["time_solver_s"],
                    [order.index(name) for name in runs["case"]],
                    number,
                    str(method) if ended else f"{method}, not finished",
                    filled=bool(ended),
                )
        log_axes(axes, "x")
        axes.set_yticks(range(len(order)), order, fontsize=8)
        axes.invert_yaxis()
    return figure


@FIGURES.drawn("lumorph-programs", _program_rows, _programs)
def _program_finding(rows: pd.DataFrame) -> str:
    parts = []
    for name, group in rows[rows["n"] == rows["n"].max()].groupby("program"):
        done = group[group["ended"]]
        slowest = f", slowest {done['time_solver_s'].max():.3g} s" if len(done) else ""
        parts.append(f"{name}: {len(done)} of {len(group)} runs finished{slowest}")
    return f"All-gather on {int(rows['n'].max())} GPUs, " + "; ".join(parts) + "."

"""Figures 4 to 14 of the all-to-all paper, except figure 6 by N."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.analysis.papers.paper_figure import Figures, argument, frame, settings_of
from opticoll.analysis.plots.marks import curve, marks, note, reference, stars
from opticoll.analysis.plots.panels import one_panel
from opticoll.analysis.plots.store_plots import family_of, solve_time
from opticoll.analysis.plots.style import INK, MUTED, label, log_axes
from opticoll.solvers.task import PROVEN

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd
    from matplotlib.figure import Figure


FIGURES = Figures("alltoall")


def degree_of(spec: str) -> int | None:
    """The degree in a spec; 4 for two-dimensional tori with sides longer than 2."""
    given = argument(spec, "d")
    if given is not None:
        return int(given)
    shape = re.fullmatch(r"torus:(\d+)x(\d+)", spec.partition("+")[0])
    return 4 if shape and min(map(int, shape.groups())) > 2 else None


def _best(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per instance: the strongest proof, then the largest objective."""
    order = {"exact": 0, "optimal": 0, "certified-gap": 1, "feasible": 2}
    ranked = rows.assign(_proof=rows["proof"].map(order).fillna(9)).sort_values(
        ["_proof", "objective"], ascending=[True, False], kind="stable"
    )
    return ranked.drop_duplicates("instance").drop(columns="_proof").sort_values(["n", "instance"])


def _flows(rows: pd.DataFrame) -> pd.DataFrame:
    """The best proven all-to-all optimum of every instance, from the master LP or the link MCF without ``printed``."""
    flows = rows[rows["ok"] & rows["formulation"].isin(("alltoall.master", "alltoall.link-mcf")) & rows["T"].notna()]
    texts = flows["settings"].unique()
    printed = [text for text in texts if json.loads(text or "{}").get("printed", "False") == "True"]
    return _best(flows[~flows["settings"].isin(printed)])


# figures 4, 5, 10 ---------------------------------------------------------------------------------------------

#: Topologies of the testbeds, links of 25 Gb/s. Hosts at TACC have 100 Gb/s, equal to four links.
TESTBEDS = {
    "hypercube:3": "hypercube, fig. 4",
    "twisted-hypercube:3": "twisted hypercube, fig. 4",
    "bipartite:4x4": "bipartite, fig. 4",
    "torus:3x3x3": "torus, no host limit",
    "torus:3x3x3+host=4.0": "torus, hosts forward, fig. 10",
    "torus:3x3x3+host=4.0,relay=nic": "torus, NICs forward, fig. 5",
}
_KINDS = {
    "alltoall.master": "MCF, any division",
    "alltoall.timestep-mcf": "tsMCF, steps = diameter",
    "alltoall.sccl": "SCCL's program, chunks",
    "alltoall.min-congestion": "one shortest path, ILP",
}
#: Statements of the text: tsMCF as fast as SCCL (section 6.2), one path as fast as the MCF on the torus.
_STATED = (("alltoall.sccl", 0), ("alltoall.sccl", 1), ("alltoall.sccl", 2), ("alltoall.min-congestion", 3))


def _testbed_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Smallest proven time of every kind of schedule on every testbed."""
    selected = rows[rows["ok"] & rows["instance"].isin(list(TESTBEDS)) & rows["formulation"].isin(list(_KINDS))].copy()
    one_path = np.array(settings_of(selected, "paths")) == "shortest"
    selected = selected[(selected["formulation"] != "alltoall.min-congestion") | one_path]
    selected = selected[selected["proof"].isin(PROVEN)]
    stepped = selected["formulation"] == "alltoall.timestep-mcf"
    selected["time"] = selected["T"].where(~stepped, selected["objective"]).astype(float)
    selected["testbed"] = selected["instance"].map(TESTBEDS)
    return selected.sort_values("time").drop_duplicates(["formulation", "instance"])[
        ["formulation", "instance", "testbed", "time"]
    ]


def _testbed(table: pd.DataFrame) -> Figure:
    names, heading = list(TESTBEDS), "time T [shard size ÷ bandwidth of a link]"
    with one_panel(7.0, 4.2, x=heading, y="topology and fabric") as (figure, axes, handles):
        for number, (formulation, kind) in enumerate(_KINDS.items()):
            mine = table[table["formulation"] == formulation]
            place = [names.index(i) + 0.16 * (number - 1.5) for i in mine["instance"]]
            handles += marks(axes, mine["time"], place, number, kind)
            reference = table[table["formulation"] == "alltoall.master"].set_index("instance")["time"]
            result = [i for name, i in _STATED if name == formulation and names[i] in reference.index]
            stars(
                axes,
                [reference[names[i]] for i in result],
                [i + 0.16 * (number - 1.5) for i in result],
                None,
                markersize=12,
                marker="o",
            )
        handles += stars(axes, [], [], "stated by the paper", markersize=12, marker="o")
        axes.set_yticks(range(len(names)), list(TESTBEDS.values()))
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_xlim(left=0)
        axes.grid(visible=True, axis="x")
    return figure


@FIGURES.drawn("alltoall-4", _testbed_rows, _testbed)
def _testbed_finding(table: pd.DataFrame) -> str:
    wide: Any = table.pivot_table(index="instance", columns="formulation", values="time")
    parts = []
    for name, text in TESTBEDS.items():
        if name in wide.index:
            times = wide.loc[name].dropna()
            parts.append(f"{text}: " + ", ".join(f"{_KINDS[kind]} {time:.4g}" for kind, time in times.items()))
    return "Times: " + "; ".join(parts) + "."


# figure 6 -----------------------------------------------------------------------------------------------------


def _decomposition_rows(rows: pd.DataFrame) -> pd.DataFrame:
    kautz = rows["instance"].map(family_of) == "genkautz"
    return rows[(rows["formulation"] == "alltoall.link-mcf") & kautz & ~rows["instance"].str.contains("+", regex=False)]


def _decomposition(rows: pd.DataFrame) -> Figure:
    figure = solve_time(rows)
    axes = figure.axes[0]
    stars(axes, 1000, 2400, None, filled=True, markersize=13)
    note(axes, "paper: 40 min, MOSEK,\nchildren on 1000 cores", (1000, 2400), (-8, -6), ha="right", va="top")
    axes.set_xlim(right=max(1600, axes.get_xlim()[1]))
    return figure


@FIGURES.drawn("alltoall-6", _decomposition_rows, _decomposition)
def _decomposition_finding(rows: pd.DataFrame) -> str:
    proven = rows[rows["proof"].isin(PROVEN)]
    parts = []
    for method, group in proven.groupby("method"):
        top = group.sort_values("n").iloc[-1]
        parts.append(f"{method}: N = {int(top['n'])} in {float(top['time_solve_s']):.3g} s")
    together: Any = proven.pivot_table(index="n", columns="method", values="time_solve_s", aggfunc="min")
    if {"highs-simplex", "flow-decomposition"} <= set(together.columns):
        common = together[["highs-simplex", "flow-decomposition"]].dropna()
        if len(common):
            n, row = common.index[-1], common.iloc[-1]
            ratio = row["highs-simplex"] / row["flow-decomposition"]
            parts.append(f"at N = {n} the link MCF by simplex takes {ratio:.3g} times as long as the decomposition")
    return "Largest proven: " + "; ".join(parts) + "." if parts else "No proven result yet."


# figure 7 -----------------------------------------------------------------------------------------------------

#: Scheme by (formulation, method); None matches any method.
_SCHEMES: tuple[tuple[str, str, str | None], ...] = (
    ("one path, SSSP heuristic", "alltoall.min-congestion", "sssp"),
    ("one path, rounded LP", "alltoall.min-congestion", "lp-rounding"),
    ("one path, best found", "alltoall.min-congestion", None),
    ("many paths, MCF-extP", "alltoall.path-mcf", "mcf-extp"),
    ("many paths, pMCF disjoint", "alltoall.path-mcf", None),
)


def _load_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Maximum link load (time on unit links) of every scheme over the MCF's time, one row per scheme and instance."""
    optimum = _flows(rows).set_index("instance")["T"]
    records: list[dict[str, Any]] = []
    schemes = {formulation for _, formulation, _ in _SCHEMES}
    drawn = rows[rows["ok"] & rows["formulation"].isin(schemes) & rows["instance"].isin(optimum.index)]
    for _, row in drawn.iterrows():
        settings = json.loads(row["settings"] or "{}")
        for scheme, formulation, method in _SCHEMES:
            if row["formulation"] != formulation or (method is not None and row["method"] != method):
                continue
            if formulation == "alltoall.min-congestion" and method is None and row["method"] in {"sssp", "lp-rounding"}:
                continue
            disjoint = settings.get("paths") == "disjoint" and row["method"] not in {"mcf-extp", "column-generation"}
            if formulation == "alltoall.path-mcf" and method is None and not disjoint:
                continue
            load = row["max_load"] if formulation == "alltoall.min-congestion" else row["T"]
            if load is None or not np.isfinite(load):
                continue
            records.append(
                {"scheme": scheme, "instance": row["instance"], "n": row["n"], "ratio": load / optimum[row["instance"]]}
            )
    table = frame(records, columns=["scheme", "instance", "n", "ratio"])
    return table.sort_values("ratio").drop_duplicates(["scheme", "instance"]).sort_values(["n", "instance"])


def _load(table: pd.DataFrame) -> Figure:
    instances = list(dict.fromkeys(table["instance"]))
    with one_panel(
        6.6, 1.7 + 0.34 * max(len(instances), 1), x="maximum link load ÷ optimal T [–]", y="instance", columns=2
    ) as (figure, axes, handles):
        axes.axvspan(1.6, 1.8, color=MUTED, alpha=0.18, linewidth=0)
        reference(axes, x=1.0)
        for number, (scheme, _, _) in enumerate(_SCHEMES):
            selected = table[table["scheme"] == scheme]
            if len(selected):
                handles += marks(
                    axes, selected["ratio"], [instances.index(i) for i in selected["instance"]], number, scheme
                )
        axes.set_yticks(range(len(instances)), [label(i) for i in instances])
        axes.set_ylim(max(len(instances), 1) - 0.5, -0.5)
        axes.grid(visible=True, axis="x")
        note(axes, "paper:\nSSSP", (1.7, 0.99), fraction="y", ha="center", va="top")
    return figure


@FIGURES.drawn("alltoall-7", _load_rows, _load)
def _load_finding(table: pd.DataFrame) -> str:
    parts = []
    for scheme, group in table.groupby("scheme"):
        low, high = group["ratio"].min(), group["ratio"].max()
        parts.append(f"{scheme} {low:.3g}-{high:.3g} ({len(group)})")
    return "Load over the optimum, range (number of instances): " + "; ".join(parts) + "."


# figures 8, 11 ------------------------------------------------------------------------------------------------


def _kautz_rows(rows: pd.DataFrame) -> pd.DataFrame:
    from opticoll.formulations.flows.flow_bounds import moore_depths

    table = _flows(rows)
    plain = table["instance"].str.fullmatch(r"genkautz:n=\d+,d=\d+")
    table = table[plain].copy()
    table["d"] = table["instance"].map(degree_of)
    least = [moore_depths(int(n) - 1, int(d)).sum() / int(d) for n, d in zip(table["n"], table["d"], strict=True)]
    table["over_bound"] = table["T"] / np.asarray(least, dtype=float)
    return table


def _kautz(rows: pd.DataFrame) -> Figure:
    with one_panel(6.6, 4.4, x="vertices N", y="T ÷ lower bound of Corollary 3 [–]") as (figure, axes, handles):
        for number, (degree, group) in enumerate(rows.groupby("d")):
            handles += curve(axes, group["n"], group["over_bound"], number, f"degree {degree}")
        reference(axes, y=1.0)
        log_axes(axes, "x")
        axes.set_ylim(bottom=min(0.98, float(rows["over_bound"].min()) - 0.01))
    return figure


@FIGURES.drawn("alltoall-8", _kautz_rows, _kautz)
def _kautz_finding(rows: pd.DataFrame) -> str:
    parts = []
    for degree, group in rows.groupby("d"):
        top = group.sort_values("n").iloc[-1]
        parts.append(
            f"degree {degree}: {group['over_bound'].min():.3f}-{group['over_bound'].max():.3f}, "
            f"{top['over_bound']:.3f} at N = {int(top['n'])}"
        )
    return "T over the bound: " + "; ".join(parts) + "."


def _of_degree_8(select: Callable[[pd.DataFrame], pd.DataFrame]) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """The rows of a figure of all degrees whose degree is 8."""

    def rows(runs: pd.DataFrame) -> pd.DataFrame:
        chosen = select(runs)
        return chosen[chosen["d"] == 8]

    return rows


FIGURES.drawn("alltoall-11", _of_degree_8(_kautz_rows), _kautz)(_kautz_finding)


# figures 9, 12 ------------------------------------------------------------------------------------------------


def _against_rows(rows: pd.DataFrame) -> pd.DataFrame:
    table = _flows(rows)
    table = table[~table["instance"].str.contains("+", regex=False)].copy()
    table["family"] = table["instance"].map(family_of)
    table["d"] = table["instance"].map(degree_of)
    table = table[table["family"].isin(("genkautz", "xpander", "random-regular", "torus", "sp-expander"))]
    table = table[table["d"].notna()]
    kautz = table[table["family"] == "genkautz"].set_index(["n", "d"])["objective"]
    others = table[table["family"] != "genkautz"].groupby(["family", "n", "d"], as_index=False)["objective"].mean()
    keys = list(zip(others["n"], others["d"], strict=True))
    others["ratio"] = [kautz.get(key, np.nan) for key in keys] / others["objective"]
    return others[others["ratio"].notna()]


def _against(table: pd.DataFrame) -> Figure:
    with one_panel(6.6, 4.4, x="vertices N", y="throughput of GenKautz ÷ other topology [–]") as (
        figure,
        axes,
        handles,
    ):
        for number, ((family, degree), group) in enumerate(table.groupby(["family", "d"])):
            handles += curve(axes, group["n"], group["ratio"], number, f"{family}, degree {degree:g}")
        stated = (2.4, (6, 2), "paper: 2.4, tori at large N"), (1.1, (1, 2), "paper: 1.1, Xpander and random")
        for height, dashes, note in stated if (table["d"] == 4).any() else ():
            handles.append(axes.axhline(height, color=INK, linewidth=1, linestyle=(0, dashes), label=note))
        log_axes(axes, "x")
        axes.set_xticks([16, 64, 256, 1024], ["16", "64", "256", "1024"])
        axes.set_xlim(min(13, 0.8 * table["n"].min()), max(1300, 1.25 * table["n"].max()))
    return figure


@FIGURES.drawn("alltoall-9", _against_rows, _against)
def _against_finding(table: pd.DataFrame) -> str:
    parts = []
    for (family, degree), group in table.groupby(["family", "d"]):
        top = group.sort_values("n").iloc[-1]
        parts.append(
            f"{family} (d = {degree:g}): mean {group['ratio'].mean():.3f}, {top['ratio']:.3f} at N = {int(top['n'])}"
        )
    return "GenKautz over " + "; ".join(parts) + "."


FIGURES.drawn("alltoall-12", _of_degree_8(_against_rows), _against)(_against_finding)


# figure 13 ----------------------------------------------------------------------------------------------------


def _host_rows(rows: pd.DataFrame) -> pd.DataFrame:
    table = _flows(rows)
    table = table[table["instance"].str.contains(r"\+host=")].copy()
    table["host_bandwidth"] = table["instance"].map(lambda spec: float(argument(spec, "host") or "nan"))
    table["topology"] = table["instance"].str.replace(r"\+host=[^+]+", "", regex=True)
    table["relay"] = table["instance"].map(lambda spec: argument(spec, "relay") or "host")
    table["base"] = table["topology"] + ", relay by " + table["relay"]
    counts = table.groupby("base")["host_bandwidth"].transform("count")
    return table[counts >= 3].sort_values(["base", "host_bandwidth"])


def _host(rows: pd.DataFrame) -> Figure:
    with one_panel(
        6.6,
        4.4,
        x="host-to-NIC bandwidth [link bandwidths], decreasing to the right",
        y="time T [shard size ÷ bandwidth]",
        columns=2,
    ) as (figure, axes, handles):
        numbers = {name: number for number, name in enumerate(dict.fromkeys(rows["topology"]))}
        for (topology, relay), group in rows.groupby(["topology", "relay"]):
            handles += curve(
                axes,
                group["host_bandwidth"],
                group["T"],
                numbers[topology],
                f"{family_of(str(topology))}, {relay} forwards",
                filled=relay == "host",
                linestyle="-" if relay == "host" else "--",
            )
        reference(axes, x=1.3, color=MUTED, linestyle=(0, (2, 3)))
        note(axes, "paper: tori catch up below about 1.3", (1.3, 0.97), (5, 0), fraction="y", va="top")
        axes.invert_xaxis()
        log_axes(axes)
    return figure


@FIGURES.drawn("alltoall-13", _host_rows, _host)
def _host_finding(rows: pd.DataFrame) -> str:
    parts = []
    for relay, mine in rows.groupby("relay"):
        ratios = [(host, group["T"].max() / group["T"].min()) for host, group in mine.groupby("host_bandwidth")]
        note = ", ".join(f"{ratio:.3f} at {host:g}" for host, ratio in ratios)
        parts.append(f"if the {relay} forwards, {note}")
    return "Slowest over fastest topology by host bandwidth: " + "; ".join(parts) + "."


# figure 14 ----------------------------------------------------------------------------------------------------

#: Degree and numbers of vertices of figure 14, and the families that its text names.
EXPANDER_DEGREE, EXPANDER_SIZES = 4, (64, 128, 256)
EXPANDERS = {
    "sp-expander": "shortest-path expanders",
    "xpander": "Xpander",
    "random-regular": "random regular graphs",
}


def _expander_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Throughput of every random graph over that of GenKautz of its size."""
    table = _flows(rows)
    table = table[~table["instance"].str.contains("+", regex=False) & table["n"].isin(EXPANDER_SIZES)].copy()
    table["family"] = table["instance"].map(family_of)
    table = table[table["instance"].map(degree_of) == EXPANDER_DEGREE]
    kautz = table[table["family"] == "genkautz"].set_index("n")["T"]
    others = table[table["family"].isin(list(EXPANDERS)) & table["n"].isin(kautz.index)].copy()
    others["ratio"] = others["n"].map(kautz).astype(float) / others["T"].astype(float)
    return others[["instance", "family", "n", "ratio"]]


def _expanders(table: pd.DataFrame) -> Figure:
    with one_panel(6.6, 4.2, x="vertices N", y="throughput ÷ that of GenKautz [–]") as (figure, axes, handles):
        for number, (family, name) in enumerate(EXPANDERS.items()):
            selected = table[table["family"] == family]
            if len(selected):
                place = [EXPANDER_SIZES.index(n) + 0.22 * (number - 1) for n in selected["n"]]
                handles += marks(axes, place, selected["ratio"], number, name, markersize=5)
        low, high = min(1.0, float(table["ratio"].min())), max(1.0, float(table["ratio"].max()))
        axes.set_ylim(low - 0.03, high + 0.05)
        reference(axes, y=1.0)
        axes.axhspan(1.0, high + 0.05, color=MUTED, alpha=0.12, linewidth=0)
        note(axes, "paper: shortest-path expanders similar or slightly better", (0.01, 0.985), fraction="xy", va="top")
        axes.set_xticks(range(len(EXPANDER_SIZES)), list(map(str, EXPANDER_SIZES)))
        axes.set_xlim(-0.5, len(EXPANDER_SIZES) - 0.5)
        axes.grid(visible=True, axis="y")
    return figure


@FIGURES.drawn("alltoall-14", _expander_rows, _expanders)
def _expanders_finding(table: pd.DataFrame) -> str:
    parts = []
    for family, name in EXPANDERS.items():
        ranges = [
            f"{group['ratio'].min():.3f}-{group['ratio'].max():.3f} at N = {n} ({len(group)})"
            for n, group in table[table["family"] == family].groupby("n")
        ]
        if ranges:
            parts.append(f"{name} {', '.join(ranges)}")
    return "Throughput over GenKautz, range (graphs): " + "; ".join(parts) + "."

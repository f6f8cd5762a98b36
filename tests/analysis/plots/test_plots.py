"""Figures show what was measured: labelled, with units; limits and failures are never drawn as times."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pandas as pd
import pytest

import opticoll as oc
from opticoll.analysis.benchmark import comparison_plots
from opticoll.analysis.plots import store_plots as plots
from opticoll.analysis.plots.network_plots import loads
from opticoll.analysis.plots.style import drawing, inline, label, png, series, svg
from opticoll.analysis.rendering import Listing, Printed
from opticoll.formulations.variables import Links
from opticoll.instances import parse


def bounds_table(**changes):
    rows = [
        {"instance": name, "bound": bound, "ratio": ratio, "proof": "optimal"}
        for name, ratios in {"ring:8": (0.8, 1.0), "mesh:4x4": (0.5, 0.9), "petersen": (1.0, 1.0)}.items()
        for bound, ratio in zip(("moore", "distance"), ratios, strict=True)
    ]
    return pd.DataFrame(rows).assign(**changes)


def run_table():
    """One run of every ending."""
    rows = [
        ("highs-simplex", "optimal", "optimal", True, 8, 0.5, None),
        ("highs-simplex", "time-limit", "feasible", True, 64, 10.7, 10.0),
        ("highs-simplex", "time-limit", "bound-only", False, 128, 99.0, None),
        ("highs-pdlp", "tolerance-not-reached", "certified-gap", True, 32, 3.0, None),
        ("highs-pdlp", "crashed", "none", False, 32, 7.25, 60.0),
        ("highs-ipx", "memory-limit", "none", False, 32, 6.5, 60.0),
    ]
    columns = ["method", "termination", "proof", "verified", "n", "time_solve_s", "requested_time_limit_s"]
    return pd.DataFrame(rows, columns=columns).assign(infeasible_by=None)


def points(figure):
    """All drawn markers as x, y, marker, whether filled."""
    results = []
    for line in figure.axes[0].lines:
        if line.get_linestyle() == "None" and line.get_marker() != "_":
            filled = line.get_markerfacecolor() != "none"
            results += [(float(x), float(y), line.get_marker(), filled) for x, y in line.get_xydata()]
    return results


def texts(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_bounds_are_sorted_and_named():
    figure = plots.throughput_over_bounds(bounds_table())
    axes = figure.axes[0]
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["petersen", "ring:8", "mesh:4x4"]
    assert axes.get_ylim()[0] > axes.get_ylim()[1], "the best is on top"
    assert texts(figure) == ["moore", "distance"]
    assert "[–]" in axes.get_xlabel()
    assert axes.get_ylabel() == "instance"


def test_unproven_values_are_open_markers():
    figure = plots.throughput_over_bounds(bounds_table(proof="certified-gap"))
    assert "open: optimum not proven" in texts(figure)
    assert not any(filled for *_, filled in points(figure))


def test_of_many_instances_the_first_are_drawn():
    table = pd.concat([bounds_table(instance=f"ring:{n}").head(2) for n in range(3, 103)])
    axes = plots.throughput_over_bounds(table, most=10).axes[0]
    assert len(axes.get_yticklabels()) == 10
    assert axes.get_title(loc="left") == "the first 10 of 100 instances"


def test_time_by_size_has_units_and_log_axes():
    table = pd.DataFrame(
        {
            "instance": ["ring:8", "ring:16", "petersen", "dgx1"],
            "n": [8, 16, 10, 8],
            "T": [8.0, 32.0, 5.0, None],
            "proof": ["optimal"] * 4,
        }
    )
    figure = plots.time_by_size(table)
    axes = figure.axes[0]
    assert axes.get_xscale() == axes.get_yscale() == "log"
    assert axes.get_xlabel() == "vertices N"
    assert "[shard size ÷ bandwidth]" in axes.get_ylabel()
    assert texts(figure) == ["petersen", "ring"], "a family without T is not drawn"


def test_limits_are_open_markers_at_the_limit_never_times():
    figure = plots.solve_time(run_table())
    drawn = points(figure)
    assert sorted((x, y) for x, y, *_ in drawn) == [(8.0, 0.5), (32.0, 3.0), (64.0, 10.0)]
    assert [filled for x, *_, filled in drawn if x == 64.0] == [False]
    assert [marker for x, _, marker, _ in drawn if x == 32.0] == ["x"]
    assert "open: stopped at its limit" in texts(figure)
    assert "3 runs without a time" in figure.axes[0].get_title(loc="left")
    assert figure.axes[0].get_ylabel() == "solve time [s]"
    assert figure.axes[0].get_xscale() == figure.axes[0].get_yscale() == "log"


def test_run_kinds():
    assert list(plots.run_kinds(run_table())) == ["proven", "limit", "limit", "unproven", "failed", "failed"]
    refuted = run_table()[:2].assign(termination="infeasible", infeasible_by=["a cut", None])
    assert list(plots.run_kinds(refuted)) == ["proven", "failed"]


@pytest.mark.parametrize("layout", ["circular", "spring"])
def test_topology_with_load(layout):
    instance = parse("genkautz:n=8,d=3")
    links = Links(instance, np.linspace(0, 1, instance.arcs), np.arange(1.0, 25.0), 1.0, "shards", "link bandwidth")
    figure = loads(links, instance, scale=lambda unit: None, layout=layout, title=instance.spec)
    assert [len(one.get_paths()) for one in figure.axes[0].collections[:2]] == [instance.arcs] * 2, "lines and heads"
    assert "[–]" in figure.axes[1].get_ylabel()
    assert instance.spec in figure.get_suptitle()


def test_topology_of_many_arcs():
    instance = parse("genkautz:n=200,d=4")
    assert len(oc.plot_topology(instance).axes[0].collections[0].get_paths()) == instance.arcs


@pytest.mark.parametrize("name", ["$\\frac{", "<b>&\"'", "\x00\x07\x9f", "日本:8", "a" * 300, "]]>", "--><script>", ""])
def test_any_name_is_drawn_as_text(name):
    figure = plots.throughput_over_bounds(bounds_table(instance=name))
    text = svg(figure)
    root = ET.fromstring(text)
    assert not [e for e in root.iter() if e.tag.endswith("script")]
    assert len(png(figure)) > 1000


def test_svg_loads_nothing():
    text = svg(plots.throughput_over_bounds(bounds_table()))
    assert not re.search(r"""(href|src)\s*=\s*["'](?!#|data:)""", text)
    assert "@import" not in text
    assert "url(http" not in text


def test_inline_svg_is_described_and_has_ids_of_its_own():
    text = drawing(plots.throughput_over_bounds(bounds_table()))
    one, other = (inline(text, name, "A <title>", "what it shows") for name in ("one", "other"))
    assert one.startswith("<svg role='img'")
    assert "A &lt;title&gt;" in one
    ids = [set(re.findall(r"""\bid=["']([^"']+)""", each)) for each in (one, other)]
    assert not ids[0] & ids[1]
    assert "http" not in one


def test_figures_repeat_exactly():
    once, again = (drawing(plots.throughput_over_bounds(bounds_table())) for _ in range(2))
    assert once == again


def test_series_repeat_only_after_every_pair():
    assert len({series(number) for number in range(64)}) == 64


def test_label_keeps_both_ends():
    assert label("x" * 10 + "y" * 90 + "end", 20).endswith("end")
    assert len(label("x" * 500, 20)) == 20


def test_nothing_to_draw():
    table = run_table().assign(termination="crashed")
    figure = plots.solve_time(table)
    assert "nothing to draw" in [text.get_text() for text in figure.axes[0].texts]
    assert len(png(figure)) > 1000
    assert len(png(plots.throughput_over_bounds(bounds_table().head(0)))) > 1000


def test_a_figure_grows_with_its_legend():
    names = tuple(f"solver-with-a-long-name-{k}" for k in range(40))
    few, many = (
        comparison_plots.profiles(pd.DataFrame({"solver": part, "ratio": 1.0, "share": 0.5}), part)
        for part in (names[:2], names)
    )
    assert few.get_figheight() == pytest.approx(4.8)
    assert many.get_figheight() > 1.4 * few.get_figheight()
    png(many)  # without a warning that the axes have no room


def test_sixteen_contestants_have_different_colours_or_lines_and_runs_here_those_of_the_published():
    names = [f"solver{number}" for number in range(16)]
    names += [f"{name} (here)" for name in names]
    looks = [comparison_plots._look(name, names) for name in names]
    assert len({(look["color"], str(look["linestyle"])) for look in looks}) == 32
    assert [look["color"] for look in looks[16:]] == [look["color"] for look in looks[:16]]


def test_tables_for_a_paper():
    class Tables(Printed):
        def tables(self):
            return [Listing("a_b", ["name", "mean_s"], [{"name": "50 %_x", "mean_s": 0.5}])]

    title, *lines = Tables().to_latex().splitlines()
    assert title == "% a_b"
    assert r"name & mean s \\" in lines
    assert r"50 \%\_x & 0.5 \\" in lines

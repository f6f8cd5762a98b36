"""Figures of the papers: their rows come from recorded runs, their ratios are right, and every study is valid."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from opticoll.analysis.ledger.comparisons import certified_flow
from opticoll.analysis.papers.alltoall.figures import degree_of
from opticoll.analysis.papers.alltoall.scaling_figures import power_law
from opticoll.analysis.papers.paper_figure import PAPERS, _stated, argument, figures
from opticoll.analysis.papers.topoopt import cluster_figures
from opticoll.analysis.papers.topoopt import figures as topoopt_figures
from opticoll.analysis.report.findings import collect
from opticoll.analysis.store import Store
from opticoll.analysis.study.study_file import STUDIES
from opticoll.instances import parse
from opticoll.solvers.solve import solve
from opticoll.solvers.task import Task


def test_every_stated_figure_is_drawn():
    stated = [(paper, name) for paper in PAPERS for name in _stated(paper)]
    assert sorted(stated) == sorted((one.paper, one.name) for one in figures())


def run(formulation, spec, time, **changes):
    """A proven run with the optimal time T = 1/F."""
    return {
        "formulation": formulation,
        "instance": spec,
        "n": parse(spec).n,
        "method": "auto",
        "settings": "{}",
        "proof": "optimal",
        "termination": "optimal",
        "ok": True,
        "verified": True,
        "objective": None if time is None else 1 / time,
        "T": time,
        "max_load": None,
        "time_solve_s": 0.1,
        "requested_time_limit_s": None,
    } | changes


@pytest.fixture(scope="module")
def results():
    """Runs on small graphs, with certified optima."""
    graphs = ("genkautz:n=9,d=4", "genkautz:n=16,d=4", "torus:3x3", "random-regular:n=9,d=4,seed=1", "bipartite:4x4")
    hosts = [f"torus:3x3+host={width}" for width in ("4.0", "2.0", "1.0")]
    times = {spec: 1 / certified_flow(parse(spec)) for spec in (*graphs, *hosts)}
    runs = [run("alltoall.master", spec, time) for spec, time in times.items()]
    for method in ("highs-simplex", "flow-decomposition"):
        runs.append(run("alltoall.link-mcf", graphs[0], times[graphs[0]], method=method))
    runs += [run("alltoall.link-mcf", "path:4", 3.0, settings='{"printed": "True"}')]
    congested = {"settings": '{"paths": "shortest"}', "objective": 3.0, "max_load": 3.0}
    return pd.DataFrame([*runs, run("alltoall.min-congestion", "bipartite:4x4", 3.0, **congested)])


@pytest.fixture(scope="module")
def no_results(tmp_path_factory):
    """The results of a store, without its run."""
    store = Store(tmp_path_factory.mktemp("store"))
    store.save(solve(Task("alltoall.master", "ring:4")))
    return collect(store).results.iloc[:0]


def figure(name):
    return next(one for one in figures() if one.name == name)


def test_arguments_are_read_out_of_specs():
    assert argument("genkautz:n=16,d=4+host=2.0", "d") == "4"
    assert argument("genkautz:n=16,d=4+host=2.0", "host") == "2.0"
    assert argument("torus:4x4", "d") is None
    assert [degree_of(s) for s in ("torus:3x3", "torus:2x4", "xpander:n=9,d=8", "ring:4")] == [4, None, 8, None]


@pytest.fixture(scope="module", autouse=True)
def fewer_points():
    """The batches that figures 12 to 15 quote, and the least and the most jobs of figure 16."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(topoopt_figures, "BATCHES", (64, 128, 2048))
        patch.setattr(cluster_figures, "LOADS", (5, 27))
        yield


@pytest.mark.parametrize("one", figures(), ids=lambda one: one.name)
def test_every_figure_is_computed_or_names_a_study_and_takes_an_empty_store(one, no_results):
    rows = one.select(no_results)
    assert one.study or one.basis
    if one.basis:
        assert len(rows) >= 4  # computed, not measured
        assert all(
            axes.has_data() and (axes.get_xlabel() or axes.get_ylabel() or axes.get_title())
            for axes in one.draw(rows).axes
        )
        assert any(digit in one.finding(rows) for digit in "123456789")
    else:
        assert rows.empty
    if one.study:
        assert (STUDIES / f"{one.study}.toml").exists()


@pytest.mark.parametrize("name", ["alltoall-4", "alltoall-6", "alltoall-8", "alltoall-9", "alltoall-13"])
def test_figures_are_drawn_with_labelled_axes(name, results):
    one = figure(name)
    rows = one.select(results)
    assert not rows.empty
    axes = one.draw(rows).axes[0]
    assert axes.get_xlabel()
    assert axes.get_ylabel()
    marks = [line.get_xdata() for line in axes.lines if line.get_marker() != "None"]
    low, high = sorted(axes.get_xlim())
    assert all(low <= x <= high for x in np.concatenate(marks).astype(float))
    assert one.finding(rows)


def test_one_path_is_slower_than_the_optimum_on_a_testbed(results):
    times = figure("alltoall-4").select(results).set_index("formulation")["time"]
    assert times.to_dict() == pytest.approx({"alltoall.master": 2.5, "alltoall.min-congestion": 3.0})


def test_the_ratios_are_those_of_the_optima(results):
    optimum = results.set_index("instance")["T"]
    optimum = optimum[~optimum.index.duplicated()]
    over = figure("alltoall-8").select(results).set_index("instance")["over_bound"]
    assert over["genkautz:n=9,d=4"] == pytest.approx(optimum["genkautz:n=9,d=4"] / ((4 + 2 * 4) / 4), rel=1e-6)
    against = figure("alltoall-9").select(results).set_index("family")["ratio"]
    assert against["torus"] == pytest.approx(optimum["torus:3x3"] / optimum["genkautz:n=9,d=4"], rel=1e-6)
    host = figure("alltoall-13").select(results)
    assert host["host_bandwidth"].tolist() == [1.0, 2.0, 4.0]
    assert (host["T"].diff().dropna() <= 1e-9).all()


@pytest.mark.parametrize(("name", "of"), [("alltoall-11", "alltoall-8"), ("alltoall-12", "alltoall-9")])
def test_figures_of_degree_8_are_those_of_all_degrees_restricted(name, of):
    """K(9,8) is complete but for the loops: T = 1, the bound of Corollary 3; K(16,8) is at (8 + 2 * 7) / 8 or above."""
    runs = pd.DataFrame(
        [
            run("alltoall.master", "genkautz:n=9,d=8", 1.0, n=9),
            run("alltoall.master", "genkautz:n=16,d=8", 3.3, n=16),
            run("alltoall.master", "xpander:n=16,d=8,seed=1", 3.6, n=16),
            run("alltoall.master", "genkautz:n=16,d=4", 9.0, n=16),
            run("alltoall.master", "torus:4x4", 8.0, n=16),
        ]
    )
    rows, everything = figure(name).select(runs), figure(of).select(runs)
    column = "over_bound" if name == "alltoall-11" else "ratio"
    assert set(rows["d"]) == {8}
    assert rows[column].tolist() == everything[everything["d"] == 8][column].tolist()
    expected = [1.0, 3.3 / (22 / 8)] if name == "alltoall-11" else [3.6 / 3.3]
    assert rows[column].tolist() == pytest.approx(expected)
    assert figure(name).draw(rows).axes[0].get_ylabel()
    assert "degree 8" in figure(name).finding(rows) or "d = 8" in figure(name).finding(rows)


def test_exponents_of_power_laws_and_their_intervals():
    """Exact laws have exact exponents; by hand, log2 t = 0, 1, 5, 6 at log2 n = 0..3: slope 2.2, residual sum 1.8."""
    sizes = np.array([1.0, 2.0, 4.0, 8.0])
    assert power_law(sizes, 3 * sizes**2) == (pytest.approx(2.0), pytest.approx(0.0, abs=1e-7), pytest.approx(3.0))
    exponent, half, _ = power_law(sizes, [1.0, 2.0, 32.0, 64.0])
    assert exponent == pytest.approx(2.2)
    assert half == pytest.approx(4.302653 * (1.8 / 2 / 5) ** 0.5, rel=1e-6)
    runs = [
        run(
            "alltoall.master",
            f"genkautz:n={n},d=4",
            1.0,
            method=method,
            bound=1.0,
            time_solve_s=seconds,
            time_solver_s=None,
        )
        for method, power in (("certified-pdhg", 1), ("time-form", 3))
        for n in (4, 8, 16, 32, 64)
        for seconds in (n**power / 100 if n > 4 else 5.0,)
    ]
    runs += [{**runs[0], "instance": "genkautz:n=128,d=4", "n": 128, "bound": 1.1, "time_solve_s": 9.0}]  # a gap
    rows = figure("alltoall-scaling").select(pd.DataFrame(runs))
    assert len(rows) == 8
    assert "certified-pdhg, master 1.00 ± 0.00 (4 sizes up to 64)" in figure("alltoall-scaling").finding(rows)
    assert "time-form, master 3.00 ± 0.00" in figure("alltoall-scaling").finding(rows)
    assert figure("alltoall-scaling").draw(rows).axes[0].get_ylabel() == "solve time [s]"


def test_loads_are_relative_to_the_optimum():
    paths = {name: {"settings": f'{{"paths": "{name}"}}'} for name in ("disjoint", "shortest")}
    rows = pd.DataFrame(
        [
            run("alltoall.master", "ring:8", 8.0),
            run("alltoall.min-congestion", "ring:8", None, method="sssp", max_load=12.0),
            run("alltoall.path-mcf", "ring:8", 8.0, method="highs", **paths["disjoint"]),
            run("alltoall.path-mcf", "ring:8", 9.0, method="highs", **paths["shortest"]),
        ]
    )
    one = figure("alltoall-7")
    table = one.select(rows).set_index("scheme")["ratio"]
    assert table["one path, SSSP heuristic"] == pytest.approx(1.5)
    assert table["many paths, pMCF disjoint"] == pytest.approx(1.0)
    assert one.draw(one.select(rows)).axes[0].get_xlabel()


def test_expanders_are_compared_with_genkautz_of_their_size_and_degree():
    times = {
        "genkautz:n=64,d=4": 45.0,
        "genkautz:n=64,d=8": 20.0,
        "genkautz:n=100,d=4": 80.0,
        "sp-expander:n=64,d=4,seed=1": 36.0,
        "sp-expander:n=64,d=4,seed=2": 50.0,
        "xpander:n=64,d=4,seed=1": 60.0,
        "sp-expander:n=100,d=4,seed=1": 80.0,
        "sp-expander:n=128,d=4,seed=1": 99.0,
        "sp-expander:n=64,d=4,seed=1+host=2.0": 70.0,
    }
    rows = pd.DataFrame([run("alltoall.master", spec, time) for spec, time in times.items()])
    one = figure("alltoall-14")
    table = one.select(rows)
    assert table.set_index("instance")["ratio"].to_dict() == pytest.approx(
        {
            "sp-expander:n=64,d=4,seed=1": 1.25,
            "sp-expander:n=64,d=4,seed=2": 0.9,
            "xpander:n=64,d=4,seed=1": 0.75,
        }
    )
    axes = one.draw(table).axes[0]
    assert axes.get_xlabel()
    assert axes.get_ylabel()
    assert axes.lines[0].get_ydata().tolist() == [1.25, 0.9]
    assert one.finding(table) == (
        "Throughput over GenKautz, range (graphs): shortest-path expanders 0.900-1.250 at N = 64 (2); "
        "Xpander 0.750-0.750 at N = 64 (1)."
    )


def test_the_front_has_the_least_load_and_the_best_bound_of_every_number_of_layers():
    def channels(spec, layers, load, bound, **more):
        settings = f'{{"layers": "{layers}", "paths": "{more.pop("paths", "all")}"}}'
        return run("alltoall.channels", spec, 1.0, settings=settings, bound=bound) | {"objective": load} | more

    rows = [
        channels("torus:5x5", 2, 15, 15),
        channels("torus:5x5", 1, 18, 15),
        channels("torus:5x5", 1, 19, 16),
        channels("torus:5x5", 1, 17, 16, ok=False),
        channels("torus:5x5", 1, 40, 40, paths="k"),
        channels("xpander:n=9,d=4,seed=1", 1, 8, 7),
        channels("genkautz:n=9,d=4", 1, 6, 5),
        channels("ring:5", 1, 4, 4),
    ]
    one = figure("alltoall-channels")
    table = one.select(pd.DataFrame(rows))
    assert table.to_numpy().tolist() == [
        ["torus:5x5", 1, 18, 16],
        ["torus:5x5", 2, 15, 15],
        ["genkautz:n=9,d=4", 1, 6, 5],
        ["xpander:n=9,d=4,seed=1", 1, 8, 7],
    ]
    panels = one.draw(table).axes
    assert [axes.get_title() for axes in panels] == ["torus 5x5", "GenKautz n=9,d=4", "Xpander n=9,d=4,seed=1"]
    bound, open_, proven = (line.get_xydata().tolist() for line in panels[0].lines)
    assert (bound, open_, proven) == ([[1, 16], [2, 15]], [[1, 18]], [[2, 15]])
    assert all(axes.get_xlabel() for axes in panels)
    assert " ".join(panels[0].get_ylabel().split()) == "largest load [shards \N{DIVISION SIGN} link bandwidth]"
    assert "torus 5x5 16 to 18, 15; GenKautz n=9,d=4 5 to 6" in one.finding(table)

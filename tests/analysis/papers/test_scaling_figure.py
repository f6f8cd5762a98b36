"""The figure of cost against N: slopes match the points, and runs that were stopped or refused have no time."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from opticoll.analysis.papers.alltoall.scaling_figures import ROUTES, TOL, draw, finding, rows_of, slope
from opticoll.analysis.papers.paper_figure import figures
from opticoll.analysis.study.study_file import STUDIES, load


def run(method: str, n: int, **changes: Any) -> dict[str, Any]:
    formulation = "alltoall.master" if method in {"certified-pdhg", "master-ipm"} else "alltoall.link-mcf"
    method = "time-form" if method == "master-ipm" else method
    return {
        "formulation": formulation,
        "method": method,
        "instance": f"genkautz:n={n},d=4",
        "n": n,
        "requested_tol": TOL,
        "requested_time_limit_s": 60.0,
        "termination": "optimal",
        "proof": "optimal",
        "ok": True,
        "metrics": "{}",
        "time_build_s": 0.5,
        "time_compile_s": 0.5,
        "time_solve_s": 0.001 * n**2.0,
        "time_verify_s": 0.1,
    } | changes


def test_phases_are_those_that_a_procedure_reports() -> None:
    metrics = json.dumps({"master_s": 3.0, "decompose_s": 5.0})
    rows = rows_of(
        pd.DataFrame([run("time-form", 50), run("master-child", 50, metrics=metrics, time_build_s=np.nan)])
    ).set_index(["route", "phase"])["seconds"]
    assert rows["link MCF, one LP", "build"] == 1.0
    assert rows["link MCF, one LP", "solve"] == 2.5
    assert rows["master + children", "solve"] == 3.0
    assert rows["master + children", "decompose"] == 5.0
    assert ("master + children", "build") not in rows.index


def test_slope_is_that_of_the_measured_points_alone() -> None:
    many = [run("time-form", n) for n in (50, 60, 100, 200)]
    late = run("time-form", 400, termination="time-limit", ok=False, proof="none", time_solve_s=60.2)
    refused = run("time-form", 800, termination="refused", ok=False, proof="none", time_solve_s=np.nan)
    table = rows_of(pd.DataFrame([*many, late, refused]))
    solve = table[table["phase"] == "solve"]
    assert solve["state"].tolist() == ["measured"] * 4 + ["late", "refused"]
    assert solve["seconds"].tolist()[-2] == 60.0
    fitted = slope(solve)
    assert fitted is not None
    assert fitted[0] == pytest.approx(2.0)
    assert fitted[1:] == (50, 200)
    assert "solve N^2.0 (N = 50 to 200), certify" in finding(table)
    assert "stopped by its limit from N = 400" in finding(table)


def test_start_up_at_small_sizes_is_left_out_where_there_are_enough_larger_ones() -> None:
    slow = [run("time-form", n, time_solve_s=40.0) for n in (27, 36)]
    table = rows_of(pd.DataFrame([*slow, *(run("time-form", n) for n in (64, 100, 200))]))
    fitted = slope(table[table["phase"] == "solve"])
    assert fitted is not None
    assert fitted[0] == pytest.approx(2.0)
    assert fitted[1:] == (64, 200)


@pytest.mark.parametrize("sizes", [(50, 100), (50, 55, 60)], ids=["few", "close"])
def test_no_slope_from_too_few_points(sizes: tuple[int, ...]) -> None:
    table = rows_of(pd.DataFrame([run("time-form", n) for n in sizes]))
    assert slope(table[table["phase"] == "solve"]) is None


def test_a_run_in_time_counts_before_one_that_was_ended_and_the_fastest_of_several() -> None:
    late = run("time-form", 50, termination="time-limit", ok=False, proof="none")
    table = rows_of(pd.DataFrame([late, run("time-form", 50), run("time-form", 50, time_solve_s=1.0)]))
    solve = table[table["phase"] == "solve"]
    assert solve["state"].tolist() == ["measured"]
    assert solve["seconds"].tolist() == [1.0]


def test_other_runs_stay_out() -> None:
    others = [
        run("time-form", 50, requested_tol=1e-6),
        run("time-form", 50, instance="genkautz:n=50,d=3"),
        run("time-form", 50, instance="genkautz:n=50,d=4+fail=3,seed=0"),
        run("glop", 50),
        run("time-form", 50, instance="torus:5x10"),
        run("time-form", 50, termination="crashed", ok=False, proof="none"),
        run("time-form", 50, proof="certified-gap"),
    ]
    assert rows_of(pd.DataFrame(others)).empty


def test_points_that_were_ended_are_on_no_line() -> None:
    many = [run(m, n) for m in ("time-form", "certified-pdhg", "master-ipm") for n in (50, 100, 200)]
    late = run("time-form", 400, termination="time-limit", ok=False, proof="none")
    figure = draw(rows_of(pd.DataFrame([*many, late])))
    (solve,) = [axes for axes in figure.axes if axes.get_title(loc="left").startswith("Solve")]
    for line in solve.lines:
        if line.get_linestyle() not in {"None", "none", ""}:
            assert 400 not in line.get_xdata()
    assert any(400 in line.get_xdata() for line in solve.lines)


def test_the_study_fills_it() -> None:
    (figure,) = [one for one in figures() if one.name == "alltoall-scaling"]
    assert figure.study is not None
    study = load(STUDIES / f"{figure.study}.toml")
    made = {(cell.task.formulation, cell.task.method) for cell in study.cells}
    assert made == {(name, method) for _, name, method in ROUTES}
    assert {cell.task.tol for cell in study.cells} == {TOL}
    sizes = {int(str(cell.task.instance).split("n=")[1].split(",")[0]) for cell in study.cells}
    assert min(sizes) == 27
    assert max(sizes) == 1000

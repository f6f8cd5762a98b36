"""Published results: tables from which the runs can be read back, comparisons, and a user's own runs alongside them."""

from __future__ import annotations

import csv

import pandas as pd
import pytest
from click.testing import CliRunner
from test_solver_metrics import run

from opticoll.analysis.benchmark import benchmark_set, published_results, solver_metrics
from opticoll.analysis.cli.main import cli, main
from opticoll.analysis.store import Store
from opticoll.errors import BadFile, BadInput, NoSolution

NAME = "min-congestion-hypercube-3"


def selected(**changes):
    """A run as the benchmark selects it from a store."""
    row = run(NAME, "highs", 0.5) | {"objective": 4.0, "bound": 4.0}
    columns = {
        "formulation": "alltoall.min-congestion",
        "solver_version": "1.2",
        "sense": "min",
        "problem_name": NAME,
        "linear": False,
        "requested_threads": 1,
        "requested_repetition": 0,
        "time_solver_cpu_s": 0.25,
        "finished": "2026-01-01",
        "size_variables": 3,
        "size_constraints": 2,
        "size_nonzeros": 4,
        "size_integers": 1,
        "infeasible_by": None,
        "incumbents": None,
    }
    return {**columns, **row, **changes}


def test_tables_give_the_verdicts_of_the_runs_back(tmp_path):
    trail = [[0.125 * k, 9.0 - 0.0625 * k] for k in range(80)]
    runs = pd.DataFrame([selected(incumbents=trail), selected(requested_repetition=1, termination="time-limit")])
    (path,) = published_results.write_tables(runs, tmp_path)
    assert path.name == "highs-1.2.csv"
    again = published_results.published(tmp_path)
    assert again["contestant"].tolist() == ["highs 1.2"] * 2
    assert again["time_solver_s"].tolist() == [0.25] * 2  # processor time
    best = benchmark_set.best_known()
    first, second = (solver_metrics.verdicts(rows, best) for rows in (runs, again))
    assert second["verdict"].tolist() == first["verdict"].tolist() == ["solved", "limit"]
    kept = again["incumbents"][0]
    assert len(kept) == published_results.MOST_INCUMBENTS
    assert (list(kept[0]), list(kept[-1])) == (trail[0], [9.875, 4.0625])


def test_a_run_is_published_once(tmp_path):
    published_results.write_tables(pd.DataFrame([selected()]), tmp_path)
    published_results.write_tables(pd.DataFrame([selected(objective=5.0), selected(requested_tol=1e-4)]), tmp_path)
    with (tmp_path / "highs-1.2.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["requested_tol"], row["objective"]) for row in rows] == [("0.0001", "4"), ("1e-06", "5")]


def test_a_killed_run_that_knows_only_the_version_of_its_package_is_of_the_same_solver(tmp_path):
    runs = [selected(solver_version="10.0 (Py 6.3.0)"), selected(solver_version="6.3.0", requested_repetition=1)]
    assert len(published_results.write_tables(pd.DataFrame(runs), tmp_path)) == 1
    (path,) = published_results.write_tables(pd.DataFrame([selected(solver_version="6.3.0")]), tmp_path)
    assert path.name == "highs-10.0-Py-6.3.0.csv"
    (path,) = published_results.write_tables(pd.DataFrame([selected(solver_version="3.0")]), tmp_path)
    assert path.name == "highs-3.0.csv"


def test_another_table_is_refused(tmp_path):
    (tmp_path / "highs-1.csv").write_text("a,b\n1,2\n")
    with pytest.raises(BadFile, match="publish"):
        published_results.published(tmp_path)


def test_repetitions_have_a_spread_and_tolerances_do_not_mix(tmp_path):
    runs = [selected(requested_repetition=k, time_solver_cpu_s=s) for k, s in enumerate((0.25, 0.5, 0.75))]
    runs.append(selected(requested_tol=1e-4, time_solver_cpu_s=0.375))
    published_results.write_tables(pd.DataFrame(runs), tmp_path)
    made = published_results.compared(published_results.published(tmp_path))
    assert made.each["seconds"].tolist() == [0.375]  # the fastest tolerance; of the other the median
    published_results.write_tables(pd.DataFrame([selected(requested_tol=1e-4, termination="time-limit")]), tmp_path)
    made = published_results.compared(published_results.published(tmp_path))
    assert made.each["seconds"].tolist() == [0.5]
    assert published_results.spread(made)["spread"].tolist() == [3.0]


def test_without_results_the_command_that_makes_them_is_named(tmp_path):
    with pytest.raises(NoSolution, match="opticoll benchmark run"):
        published_results.compared(published_results.published(tmp_path))


def test_a_subset_is_run_and_shown_beside_the_published_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(published_results, "FOLDER", tmp_path)
    monkeypatch.setattr(published_results.published, "__defaults__", (tmp_path, None))
    published_results.write_tables(pd.DataFrame([selected()]), tmp_path)
    words = ["run", NAME, "--solver", "highs", "--store", str(tmp_path / "store"), "--out", str(tmp_path / "page")]
    result = CliRunner().invoke(cli, ["benchmark", *words])
    assert result.exit_code == 0, result.output
    assert "(here)" in result.output
    assert "highs 1.2" in result.output
    assert (tmp_path / "page" / "index.html").exists()
    assert {path.suffix for path in (tmp_path / "page" / "figures").iterdir()} == {".svg", ".png"}
    made = pd.read_csv(tmp_path / "page" / "tables" / "solvers-runs.csv")
    assert set(made["verdict"]) == {"solved"}
    result = CliRunner().invoke(cli, ["benchmark", "show", NAME])
    assert result.exit_code == 0, result.output
    result = CliRunner().invoke(cli, ["benchmark", *words, "--alone"])
    assert result.exit_code == 0, result.output
    assert "highs 1.2" not in result.output
    assert len(list(Store(tmp_path / "store").names())) == 1


def test_an_interrupted_subset_says_how_to_resume(tmp_path, monkeypatch, capfd):
    words = ["run", NAME, "--solver", "highs", "--store", str(tmp_path / "store"), "--out", str(tmp_path / "page")]

    def interrupt(task):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("opticoll.solvers.solve.solve", interrupt)
        assert main(["benchmark", *words]) == 130
    assert f"0 of 1 runs are in {tmp_path / 'store'}; the same command resumes" in capfd.readouterr().err
    assert not (tmp_path / "page").exists()
    assert main(["benchmark", *words]) == 0


def test_a_contestant_is_a_solver_and_its_version_without_that_of_its_package(tmp_path):
    runs = [selected(solver_version="10.0 (Py 6.3.0)")]
    published_results.write_tables(pd.DataFrame(runs), tmp_path)
    assert published_results.published(tmp_path)["contestant"].tolist() == ["highs 10.0"]
    published_results.write_tables(pd.DataFrame([selected(solver_version="10.0 (Py 6.4.0)")]), tmp_path)
    two = published_results.published(tmp_path)["contestant"].tolist()
    assert two == ["highs 10.0 (Py 6.3.0)", "highs 10.0 (Py 6.4.0)"]


def test_solvers_that_take_none_of_the_problems_are_refused(tmp_path):
    chosen = [one for one in benchmark_set.problems() if one.name == NAME]
    with pytest.raises(BadInput, match="glop"):
        published_results.run_problems(chosen, ["glop"], Store(tmp_path))


def test_published_runs_are_of_the_benchmark():
    rows = published_results.published()
    names = {one.name for one in benchmark_set.problems()}
    assert rows["contestant"].nunique() >= 2
    for path in published_results.FOLDER.glob("*.csv"):
        with path.open(encoding="utf-8") as file:
            assert {row["problem_name"] for row in csv.DictReader(file)} <= names
    made = published_results.compared(rows)
    wrong = solver_metrics.wrong_answers(made.runs)
    assert (wrong["error"] > wrong["allowed"]).all()
    assert not wrong["solver"].str.contains("highs 1|scip|cp-sat|glop").any()

"""``opticoll compare``: contestants of any study, repetitions and their spread, failures, text, JSON and files."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from opticoll.analysis.benchmark import solver_metrics, study_comparison
from opticoll.analysis.cli.main import main
from opticoll.analysis.store import Store
from opticoll.analysis.study.study_file import load
from opticoll.errors import BadInput, NoSolution

STUDY = """
name = "small"
title = "Two programs & three contestants"
formulations = ["matrix.program"]
instances = ["mps:{folder}/{{a,b}}.lp"]
methods = ["highs", "scip", "copt"]
repetitions = 2
[limits]
time_limit_s = 60.0
[[include]]
methods = ["highs"]
[include.settings]
presolve = "off"
"""
LINEAR = "max\nobj: 3 x + 2 y\nst\na: x + 2 y <= 4\nb: 3 x + y <= 6.5\nend\n"
INTEGER = LINEAR.replace("end", "general\nx y\nend")


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """A study that has been run, and its store."""
    folder = tmp_path_factory.mktemp("compare")
    (folder / "a.lp").write_text(LINEAR, encoding="utf-8")
    (folder / "b.lp").write_text(INTEGER, encoding="utf-8")
    file = folder / "small.toml"
    file.write_text(STUDY.format(folder=folder), encoding="utf-8")
    assert main(["study", str(file), "--store", str(folder / "store")]) in (0, 1)
    return file, folder / "store"


@pytest.fixture(scope="module")
def study(ran):
    """That study, read once: its files of programs are read by several readers."""
    return load(ran[0])


@pytest.fixture(scope="module")
def made(ran, study):
    """Its comparison by the clock of the solvers."""
    return study_comparison.compare(study, Store(ran[1]))


def row_of(rows, contestant):
    return next(row for row in rows if row["contestant"] == contestant)


def test_a_contestant_is_a_method_with_its_options(ran, capsys):
    file, store = ran
    assert main(["compare", str(file), "--store", str(store), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["study"], document["cells"], document["missing"], document["clock"]) == ("small", 16, 0, "solver")
    assert [part["class"] for part in document["classes"]] == ["linear", "integer"]
    for part in document["classes"]:
        names = {row["contestant"] for row in part["contestants"]}
        assert {"highs", "highs presolve=off", "scip"} <= names
        one = row_of(part["contestants"], "highs presolve=off")
        assert (one["problems"], one["solved"], one["wrong"], one["runs"]) == (1, 1, 0, 2)
        assert one["spread"] >= 1
    runs = [run for run in document["runs"] if run["contestant"] == "scip"]
    for run in runs:
        assert run["seconds_min"] <= run["seconds"] <= run["seconds_max"]
    assert document["folder"] is None
    assert document["wrong"] == []


def test_a_solver_that_is_not_installed_is_not_a_contestant(made):
    from opticoll.solvers.adapters import adapter

    if adapter("copt").installed():
        pytest.skip("copt is installed")
    assert "copt" not in made.comparison.solvers
    assert (made.comparison.each["verdict"] == "unavailable").sum() == 2


def test_figures_and_tables_are_written(ran, tmp_path, capsys):
    file, store = ran
    out = tmp_path / "out"
    assert main(["compare", str(file), "--store", str(store), "--out", str(out)]) == 0
    printed = capsys.readouterr()
    assert "study small: linear programs" in printed.out
    assert "highs presolve=off" in printed.out
    for name in ("solvers-profile-linear", "solvers-profile-integer"):
        assert (out / "figures" / f"{name}.svg").stat().st_size > 1000
    rows = pd.read_csv(out / "tables" / "solvers-runs.csv")
    assert len(rows) == 16


def test_other_clocks_and_accuracies(ran, study, made):
    store = Store(ran[1])
    total = study_comparison.compare(study, store, clock="total")
    assert (total.comparison.each["seconds"].dropna() > made.comparison.each["seconds"].dropna()).all()
    with pytest.raises(BadInput, match="accuracy"):
        study_comparison.compare(study, store, accuracy=0.0)


def test_a_study_that_has_not_been_run_is_refused_in_one_line(ran, study, tmp_path, capsys):
    file, _ = ran
    with pytest.raises(NoSolution, match="opticoll study"):
        study_comparison.compare(study, Store(tmp_path))
    assert main(["compare", str(file), "--store", str(tmp_path)]) == 3
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
    assert main(["compare", "no-such-study"]) == 2


def test_a_folder_that_cannot_be_written_is_refused(ran, tmp_path, capsys):
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert main(["compare", str(ran[0]), "--store", str(ran[1]), "--out", str(tmp_path / "file")]) == 2
    assert "choose another --out" in capsys.readouterr().err


def verdicts(*rows):
    known = {
        "problem": "p",
        "solver": "a",
        "tol": 1e-6,
        "linear": False,
        "verdict": "solved",
        "seconds": 1.0,
        "limit_s": 60.0,
        "build_s": 0.1,
        "compile_s": 0.1,
        "residual": np.nan,
        "value": 10.0,
        "best": 10.0,
        "best_gap": 0.0,
        "error": 0.0,
        "allowed": 1e-4,
        "certified_gap": 0.0,
        "integral": 1.0,
    }
    return pd.DataFrame([{**known, **row} for row in rows])


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["solved", "solved", "solved"], "solved"),
        (["solved", "limit", "solved"], "limit"),
        (["limit", "failed", "failed"], "failed"),
        (["solved", "wrong", "limit"], "wrong"),
        (["unavailable", "solved"], "solved"),
        (["unavailable", "unavailable"], "unavailable"),
    ],
)
def test_repetitions_count_by_their_worst(words, expected):
    table = verdicts(*({"verdict": word, "seconds": 1.0 if word == "solved" else np.nan} for word in words))
    (row,) = solver_metrics.one_each(table).to_dict("records")
    assert row["verdict"] == expected
    assert np.isfinite(row["seconds"]) == (expected == "solved")


def test_the_median_counts_and_the_range_is_kept():
    table = verdicts({"seconds": 4.0}, {"seconds": 1.0}, {"seconds": 2.0, "best_gap": 0.5})
    (row,) = solver_metrics.one_each(table).to_dict("records")
    assert (row["seconds"], row["seconds_min"], row["seconds_max"]) == (2.0, 1.0, 4.0)
    assert (row["runs"], row["solved_runs"], row["best_gap"]) == (3, 3, 0.5)


def test_one_contestant_without_repetitions(ran, tmp_path):
    file, store = ran
    alone = tmp_path / "alone.toml"
    text = file.read_text(encoding="utf-8").partition("[[include]]")[0].replace("repetitions = 2", "repetitions = 1")
    alone.write_text(text.replace('["highs", "scip", "copt"]', '["scip"]'), encoding="utf-8")
    made = study_comparison.compare(load(alone), Store(store))
    assert made.comparison.solvers == ("scip",)
    assert made.missing == 0
    for frame in made.comparison.summaries.values():
        (row,) = frame.to_dict("records")
        assert (row["solved"], row["runs"]) == (1, 1)
        assert np.isnan(row["spread"])


def test_without_a_time_limit_a_failure_has_no_penalty():
    table = verdicts({"limit_s": np.nan}, {"solver": "b", "verdict": "failed", "seconds": np.nan, "limit_s": np.nan})
    rows = solver_metrics.summary(solver_metrics.one_each(table)).set_index("solver")
    assert rows.loc["a", "mean_penalised_s"] == pytest.approx(1.0)
    assert np.isnan(rows.loc["b", "mean_penalised_s"])

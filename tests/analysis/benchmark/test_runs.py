"""Runs of the benchmark: limits of processor time, tables and resuming, verdicts beside the published runs."""

from __future__ import annotations

import re
import sys
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from full_disks import no_file_above

from opticoll import package_code
from opticoll.analysis.benchmark import run_comparison, runs
from opticoll.analysis.benchmark.benchmark_set import best_known, problems_named
from opticoll.analysis.cli.main import cli
from opticoll.errors import BadFile, NoSolution, SolverUnavailable

NAME, LINEAR = "min-congestion-hypercube-3", "link-mcf-hypercube-3"
CONDITIONS = runs.Conditions(cpu_limit_s=20.0, tols=(1e-6,))


@pytest.fixture(autouse=True)
def calibrated(monkeypatch):
    monkeypatch.setattr(runs, "calibration", lambda: 1.0)


def row(**changes):
    return replace(ROW, **changes)


ROW = runs.RunRow(
    problem=NAME,
    solver="highs",
    version="1.2",
    algorithm="branch and bound",
    tol=1e-6,
    seed=0,
    order=0,
    repetition=0,
    threads=1,
    cpu_limit_s=10.0,
    memory_limit_gib=6.0,
    termination="optimal",
    message="",
    value=4.0,
    bound=None,
    verified=True,
    violation=0.0,
    kkt_primal=None,
    kkt_dual=None,
    kkt_gap=None,
    cpu_s=0.5,
    wall_s=2.0,
    memory_mb=100.0,
    incumbents="0.1:9 0.2:4",
    finished="2026-01-01 00:00:00",
    machine="a machine",
    calibration_s=1.0,
    load=0.5,
)


def made(folder, *names, solvers=("highs",), conditions=CONDITIONS):
    left = runs.missing(problems_named(names), solvers, folder, conditions)
    return [one for one, _ in runs.run_cells(left, folder, conditions)]


def test_a_run_is_judged_stored_and_not_repeated(tmp_path):
    (first,) = made(tmp_path, NAME)
    assert (first.termination, first.value, first.verified) == ("optimal", 4.0, True)
    assert 0 < first.cpu_s < CONDITIONS.cpu_limit_s
    assert runs.read_runs(tmp_path) == [runs.read_runs(tmp_path)[0]]
    assert runs.read_runs(tmp_path)[0].cell == first.cell
    assert made(tmp_path, NAME) == []
    (file,) = (tmp_path / "solutions").iterdir()
    assert file.name == f"{NAME}.sol.gz"


def test_runs_by_other_code_are_made_again_and_named(tmp_path, monkeypatch):
    made(tmp_path, NAME)
    assert run_comparison.compare([tmp_path], published=False).other_code == {}
    monkeypatch.setattr(package_code, "digest", lambda: "of other code")
    compared = run_comparison.compare([tmp_path], published=False)
    assert list(compared.other_code.values()) == [1]
    assert any("1 runs were made by other code" in remark for remark in compared.remarks())
    (again,) = made(tmp_path, NAME)
    assert again.code == "of other code"
    assert made(tmp_path, NAME) == []


@pytest.mark.parametrize("order", [0, 7])
def test_another_order_of_rows_and_columns_has_the_same_optimum(tmp_path, order):
    conditions = replace(CONDITIONS, orders=(order,))
    (one,) = made(tmp_path, LINEAR, conditions=conditions)
    best = best_known()[LINEAR]
    assert (one.value, one.bound) == (pytest.approx(best.value), pytest.approx(best.value))
    assert max(one.kkt_primal, one.kkt_dual, one.kkt_gap) < 1e-9


def test_a_solver_is_stopped_at_its_processor_time(tmp_path):
    conditions = replace(CONDITIONS, cpu_limit_s=0.2)
    (one,) = made(tmp_path, "design-servers-n-8-degree-2-directed-true", conditions=conditions)
    assert (one.termination, one.cpu_s) == ("time-limit", 0.2)
    assert made(tmp_path, one.problem, conditions=conditions) == []
    left = runs.missing(problems_named([one.problem]), ["highs"], tmp_path, CONDITIONS)
    assert sum(map(len, left.values())) == 1  # a larger limit may give another answer


def test_commands_are_stopped_at_their_processor_time_too(tmp_path, monkeypatch):
    table = tmp_path / "s.toml"
    spin = "while True: pass"
    table.write_text(f'[spin]\ncommand = \'"{sys.executable}" -c "{spin}" {{mps}} {{sol}}\'\n', encoding="utf-8")
    monkeypatch.setenv("OPTICOLL_SOLVERS", str(table))
    (one,) = made(tmp_path / "r", LINEAR, solvers=("spin",), conditions=replace(CONDITIONS, cpu_limit_s=0.1))
    assert one.termination == "time-limit"
    assert 0.1 <= one.cpu_s < 5.0


def test_the_processor_time_of_a_short_command_is_not_zero(tmp_path, monkeypatch):
    table = tmp_path / "s.toml"
    table.write_text("[quick]\ncommand = 'sh -c \"exit 3\" {mps} {sol}'\n", encoding="utf-8")
    monkeypatch.setenv("OPTICOLL_SOLVERS", str(table))
    (one,) = made(tmp_path / "r", LINEAR, solvers=("quick",))
    assert one.termination == "crashed"
    assert 0 < one.cpu_s < 1


@pytest.mark.parametrize("load", [0.0, 1e6])
def test_a_command_that_waits_reached_its_limit_unless_the_machine_was_busy(tmp_path, monkeypatch, load):
    table = tmp_path / "s.toml"
    table.write_text("[sleepy]\ncommand = 'sh -c \"sleep 60\" {mps} {sol}'\n", encoding="utf-8")
    monkeypatch.setenv("OPTICOLL_SOLVERS", str(table))
    monkeypatch.setattr(runs, "MOST_CLOCK", 0.5)
    monkeypatch.setattr(runs, "MORE_S", 0.0)
    monkeypatch.setattr(runs.os, "getloadavg", lambda: (load, load, load))
    conditions = replace(CONDITIONS, cpu_limit_s=1.0)
    (one,) = made(tmp_path / "r", LINEAR, solvers=("sleepy",), conditions=conditions)
    assert one.termination == "time-limit"
    assert one.cpu_s < 0.9
    if load:
        assert f"at a load of {load:.1f}" in one.message
        assert runs.read_runs(tmp_path / "r") == []
    else:
        assert "although a processor was free: it waited" in one.message
        assert made(tmp_path / "r", LINEAR, solvers=("sleepy",), conditions=conditions) == []


def test_if_no_named_solver_can_be_used_nothing_is_stored(tmp_path, monkeypatch):
    table = tmp_path / "s.toml"
    table.write_text('[bad]\ncomand = "a {mps} {sol}"\n', encoding="utf-8")
    monkeypatch.setenv("OPTICOLL_SOLVERS", str(table))
    with pytest.raises(SolverUnavailable, match="comand"):
        CliRunner().invoke(
            cli,
            ["benchmark", "run", LINEAR, "--solver", "bad", "--out", str(tmp_path / "r")],
            catch_exceptions=False,
            standalone_mode=False,
        )
    assert SolverUnavailable.exit_status == 4
    assert not (tmp_path / "r").exists()


def test_a_solver_without_its_licence_or_program_is_a_row_that_says_so(tmp_path, monkeypatch):
    table = tmp_path / "s.toml"
    table.write_text('[absent]\ncommand = "no-such-program {mps} {sol}"\n[bad]\ncommand = 1\n', encoding="utf-8")
    monkeypatch.setenv("OPTICOLL_SOLVERS", str(table))
    rows = made(tmp_path / "r", LINEAR, solvers=("absent", "bad", "highs"))
    assert [one.termination for one in rows] == ["unavailable", "unavailable", "optimal"]
    assert "not on PATH" in rows[0].message
    assert "command must be a string, not a whole number" in rows[1].message
    compared = run_comparison.compare([tmp_path / "r"], published=False).comparison
    assert set(compared.summaries["linear"]["solver"]) == {"highs 1.15.1 (here)"} or len(compared.solvers) == 1


def test_a_misstated_objective_is_told(tmp_path, monkeypatch):
    """The values count; that the file states another objective is a note in the row and in the comparison."""
    program = tmp_path / "lie.py"
    program.write_text(
        "import sys, highspy\n"
        "h = highspy.Highs(); h.setOptionValue('output_flag', False); h.readModel(sys.argv[1]); h.run()\n"
        "names = [h.getColName(j)[1] for j in range(h.getNumCol())]\n"
        "lines = [f'{n} {v!r}' for n, v in zip(names, h.getSolution().col_value)]\n"
        "own = h.getInfo().objective_function_value + float(sys.argv[3])\n"
        "open(sys.argv[2], 'w').write('\\n'.join([f'=obj= {own!r}', *lines, '']))\n",
        encoding="utf-8",
    )
    table = tmp_path / "s.toml"
    command = f'"{sys.executable}" "{program}" {{mps}} {{sol}}'
    table.write_text(
        f"[liar]\nmip = true\ncommand = '{command} -1'\n[honest]\nmip = true\ncommand = '{command} 0'\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("OPTICOLL_SOLVERS", str(table))
    liar, honest = made(tmp_path / "r", NAME, solvers=("liar", "honest"))
    assert (liar.value, liar.verified, honest.message) == (4.0, True, "")
    assert liar.message == "the solution file states the objective 3.0, but its values have 4.0"
    result = CliRunner().invoke(cli, ["benchmark", "compare", str(tmp_path / "r"), "--alone"])
    assert "states another objective than its values have (1 problems)" in result.output
    assert result.output.count("states another objective") == 1


def test_tables_are_read_as_they_were_written(tmp_path):
    for one in (row(), row(repetition=1, value=None, verified=False), row(repetition=1, value=5.0)):
        path = runs.append(tmp_path, one)
    assert path.name == "highs-1.2.csv"
    assert runs.read_runs(tmp_path) == [row(), row(repetition=1, value=5.0)]
    path.write_text("a,b\n1,2\n")
    with pytest.raises(BadFile, match="not a table of runs"):
        runs.read_runs(tmp_path)


def test_a_row_that_cannot_be_written_leaves_the_table_as_it_was(tmp_path):
    (tmp_path / "highs-1.2.csv").touch()  # as a full disk left it
    for size in (100, 1000):
        with no_file_above(size), pytest.raises(BadFile, match=r"highs-1\.2\.csv: cannot be written: File too large"):
            [runs.append(tmp_path, row(repetition=number)) for number in range(100)]
    kept = runs.read_runs(tmp_path)
    runs.append(tmp_path, row(repetition=100))
    assert kept
    assert runs.read_runs(tmp_path) == [*kept, row(repetition=100)]


def test_tolerances_only_where_a_solver_has_one():
    (problem,) = problems_named([LINEAR])
    assert len(list(runs.Conditions().cells(problem, "highs"))) == 1
    assert len(list(runs.Conditions().cells(problem, "clarabel"))) == len(problem.tols) > 1
    assert list(runs.Conditions().cells(problem, "cp-sat")) == []


# comparisons ----------------------------------------------------------------------------------------------------------


def test_runs_are_compared_under_the_smallest_limit_at_which_one_was_stopped(tmp_path):
    for one in (
        row(),
        row(solver="scip", termination="time-limit", cpu_s=2.0, cpu_limit_s=2.0, verified=False, value=None),
        row(solver="late", cpu_s=3.0),
    ):
        runs.append(tmp_path, one)
    compared = run_comparison.compare([tmp_path], published=False)
    assert compared.limit_s == 2.0
    verdicts = compared.comparison.each.set_index("solver")["verdict"]
    assert verdicts.to_dict() == {"highs 1.2 (here)": "solved", "scip 1.2 (here)": "limit", "late 1.2 (here)": "limit"}
    assert run_comparison.compare([tmp_path], published=False, limit_s=4.0).limit_s == 4.0


def test_repetitions_have_medians_and_other_orders_are_apart(tmp_path):
    for k, seconds in enumerate((0.25, 0.5, 3.0)):
        runs.append(tmp_path, row(repetition=k, cpu_s=seconds))
    for order in (0, 1, 2):
        for solver in ("a", "b"):
            slower = order == 2 and solver == "a"
            runs.append(
                tmp_path, row(solver=solver, order=order, cpu_s=9.0 if slower else 0.1 if solver == "a" else 1.0)
            )
    compared = run_comparison.compare([tmp_path], published=False)
    assert compared.comparison.each.set_index("solver")["seconds"]["highs 1.2 (here)"] == 0.5
    sensitivity = compared.sensitivity["integer"].set_index("solver")
    assert sensitivity.loc["a 1.2 (here)", ["variants", "rank_min", "rank_max"]].tolist() == [3, 1, 2]


def test_a_time_of_zero_counts_as_a_step_of_the_clock(tmp_path):
    runs.append(tmp_path, row(cpu_s=0.0))
    compared = run_comparison.compare([tmp_path], published=False)
    assert compared.comparison.each["seconds"].tolist() == [0.01]


def test_a_linear_program_without_duals_counts_by_its_certified_gap(tmp_path):
    best = best_known()[LINEAR]
    near, far = best.value * (1 - 1e-8), best.value * (1 - 1e-5)
    for solver, value in (("near", near), ("far", far)):
        runs.append(tmp_path, row(problem=LINEAR, solver=solver, value=value, kkt_primal=0.0))
    verdicts = run_comparison.compare([tmp_path], published=False).comparison.each.set_index("solver")["verdict"]
    assert verdicts.to_dict() == {"near 1.2 (here)": "solved", "far 1.2 (here)": "inexact"}


def test_published_runs_are_compared_on_the_problems_of_the_folders(tmp_path):
    runs.append(tmp_path, row(problem=LINEAR, solver="mine", value=best_known()[LINEAR].value, kkt_primal=0.0))
    made = run_comparison.compare([tmp_path]).comparison
    assert set(made.each["problem"]) == {LINEAR}
    assert len(made.solvers) > 2
    assert made.summaries["linear"]["mean_penalised_s"].notna().all()


def test_without_runs_the_command_that_makes_them_is_named(tmp_path):
    with pytest.raises(NoSolution, match="opticoll benchmark run"):
        run_comparison.compare(names=[], published=False)
    with pytest.raises(NoSolution, match=f"no runs in {tmp_path}.*opticoll benchmark run"):
        run_comparison.compare([tmp_path])


def test_commands_run_and_compare(tmp_path):
    folder, out = tmp_path / "mine", tmp_path / "out"
    words = ["run", NAME, "--solver", "highs", "--cpu-limit", "20", "--memory-limit", "0.9", "--out", str(folder)]
    result = CliRunner().invoke(cli, ["benchmark", *words])
    assert result.exit_code == 0, result.output
    assert re.search(rf"1 of 1: {NAME}, highs: optimal [\d.e-]+ s$", result.output, re.MULTILINE)
    again = CliRunner().invoke(cli, ["benchmark", *words])
    assert again.output.startswith(f"all of these runs are in {folder}; compare them")
    result = CliRunner().invoke(cli, ["benchmark", *words, "--seed", "3", "--order", "2"])
    assert f"1 of 1: {NAME}, highs seed=3 order=2: optimal" in result.output
    assert f"wrote 1 run to {folder};" in result.output
    words = ["compare", str(folder), "--problem", NAME, "--alone", "--out", str(out)]
    result = CliRunner().invoke(cli, ["benchmark", *words])
    assert result.exit_code == 0, result.output
    assert "(here)" in result.output
    assert "shift 10 ms" in result.output
    assert {path.suffix for path in (out / "figures").iterdir()} == {".svg"}
    assert {"solvers-machines.csv", "solvers-wrong.csv"} <= {path.name for path in (out / "tables").iterdir()}


def test_an_interrupted_run_says_how_to_resume(tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(runs, "_run", interrupt)
    result = CliRunner().invoke(cli, ["benchmark", "run", NAME, "--solver", "highs", "--out", str(tmp_path)])
    assert result.exit_code == 130 or "the same command resumes" in result.output
    assert f"0 of 1 runs are in {tmp_path}" in result.output


# what is published ----------------------------------------------------------------------------------------------------


def test_published_runs_are_of_the_benchmark_and_none_was_starved():
    published = runs.read_runs(runs.PUBLISHED)
    best = best_known()
    assert len({one.solver for one in published}) >= 8
    for one in published:
        assert one.problem in best
        assert one.termination not in runs.CENSORED or one.cpu_s >= runs.USED * one.cpu_limit_s
    wrong = run_comparison.compare().comparison.runs
    refuted = wrong[wrong["verdict"] == "wrong"]
    assert not refuted["solver"].str.contains("highs 1|scip|cp-sat|glop|cbc").any()
    assert np.isfinite([one.calibration_s for one in published]).all()

"""Solvers that run as commands: configuration, answers, and every way in which a command can fail."""

from __future__ import annotations

import inspect
import json
import os
import re
import shlex
import shutil
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import psutil
import pytest
import scipy.sparse as sp

import opticoll as oc
from opticoll.analysis.cli.main import main
from opticoll.analysis.describe import describe
from opticoll.errors import BadFile, BadOption, MethodMismatch, SolverUnavailable
from opticoll.formulations.standard_form import StandardForm
from opticoll.solvers import solve
from opticoll.solvers.adapters import adapter, adapters
from opticoll.solvers.adapters.command_line import VARIABLE, CommandLine, read_configuration
from opticoll.solvers.process.isolation import solve_isolated
from opticoll.solvers.resume_key import resume_key
from opticoll.solvers.task import Proof, SolveRequest, Task, Termination
from opticoll.solvers.verify import dual_bound

SCRIPT = Path(__file__).with_name("milp_command.py")
TABLE = """
[milp]
title = "A solver of programs"
command = '"{python}" "{script}" {{mps}} {{sol}} --time {{time_limit_s}}'
mip = true
version_command = '"{python}" "{script}" --version'
option = "--{{name}} {{value}}"
[milp.status]
infeasible = "problem is infeasible|no feasible point"
unbounded = "problem is unbounded"

[highs-command]
command = '"{python}" "{script}" {{lp}} {{sol}} --time {{time_limit_s}} --style highs'
mip = true
duals = true

[absent]
command = "no-such-program-anywhere {{mps}} {{sol}}"
"""
INF = np.inf


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """One folder for all tests: an idle worker serves one environment, which names the configuration file."""
    return tmp_path_factory.mktemp("commands")


@pytest.fixture(autouse=True)
def solvers(place, monkeypatch):
    """The configuration file, in a folder whose name has a blank."""
    folder = place / "my solvers"
    folder.mkdir()
    file = folder / "solvers.toml"
    file.write_text(TABLE.format(python=sys.executable, script=SCRIPT), encoding="utf-8")
    monkeypatch.setenv(VARIABLE, str(file))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(place / "none"))
    yield file
    shutil.rmtree(folder)


def form(*, integer: bool = False, sense: str = "max") -> StandardForm:
    """``max 3 x + 2 y + 1`` over ``x + 2 y <= 4, 3 x + y <= 6.5``, a free row, and an idle column in [2, 3]."""
    A = sp.csc_array(np.array([[1.0, 2, 0], [3, 1, 0], [1, 1, 0]]))
    flip = 1.0 if sense == "max" else -1.0
    return StandardForm(
        A,
        np.array([-INF, -INF, -INF]),
        np.array([4, 6.5, INF]),
        np.array([0, 0, 2.0]),
        np.array([INF, INF, 3]),
        flip * np.array([3.0, 2, 0]),
        sense,
        flip * 1.0,
        np.array([integer, integer, False]),
    )


OPTIMUM = 3 * 1.8 + 2 * 1.1 + 1  # at x = 1.8, y = 1.1; with whole numbers 7 at x = 2, y = 0


@pytest.mark.parametrize("name", ["milp", "highs-command"])
@pytest.mark.parametrize(("sense", "integer"), [("max", False), ("min", True)])
def test_a_command_solves_linear_and_integer_programs(name, sense, integer):
    flip = 1.0 if sense == "max" else -1.0
    problem = form(integer=integer, sense=sense)
    result = solve_isolated(problem, name, SolveRequest(time_limit_s=60.0))
    best = 7.0 if integer else OPTIMUM
    assert result.termination is Termination.OPTIMAL, result.message
    assert result.objective == pytest.approx(flip * best)
    assert result.x is not None
    assert 2 <= result.x[2] <= 3
    if name == "highs-command" and not integer:
        assert result.row_duals is not None
        assert dual_bound(problem, result.row_duals) == pytest.approx(flip * best)
    else:
        assert result.row_duals is None


def test_a_run_is_verified_and_proven_whether_or_not_there_are_duals():
    for name in ("milp", "highs-command"):
        run = solve.solve(Task("matrix.program", "mps:" + str(example()), name))
        assert (run.verified, run.proof) == (True, Proof.OPTIMAL)
        assert run.objective == pytest.approx(OPTIMUM)
        assert run.record.solver.name == name
    assert run.record.bound_source == "lp-dual"


def example() -> Path:
    path = Path(os.environ[VARIABLE]).with_name("p.lp")
    path.write_text("max\nobj: 3 x + 2 y + 1\nst\na: x + 2 y <= 4\nb: 3 x + y <= 6.5\nend\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("mode", "ending", "words"),
    [
        ("crash", Termination.CRASHED, "status 7; last output: cannot allocate the basis"),
        ("die", Termination.CRASHED, "signal SIGKILL"),
        ("silent", Termination.ERROR, "wrote no solution file"),
        ("garbage", Termination.ERROR, "the solution file of 'milp', line 1: 'this is' is not a name and a number"),
        ("strange", Termination.ERROR, "the solution file of 'milp': the program has no column 'somebody'; the"),
        ("infeasible", Termination.INFEASIBLE, ""),
    ],
)
def test_every_failure_is_reported_as_itself(mode, ending, words):
    result = solve_isolated(form(), "milp", SolveRequest(options={"mode": mode}))
    assert result.termination is ending
    assert words in result.message
    assert result.x is None
    assert "\n" not in result.message
    assert "{" not in result.message


@pytest.mark.parametrize(
    ("name", "end", "words"),
    [
        ("milp", "kill -9 $$", "signal SIGKILL"),
        ("highs-command", "exit 3", "status 3"),
        pytest.param("milp", "exit 3", "status 3", marks=pytest.mark.slow),
        pytest.param("highs-command", "kill -9 $$", "signal SIGKILL", marks=pytest.mark.slow),
    ],
)
def test_a_command_that_fails_after_its_answer_has_crashed_and_the_answer_is_kept(solvers, name, end, words):
    """It passed for solved without a trace."""
    script = solvers.with_name("failing.sh")
    script.write_text(f'"$@"\n{end}\n', encoding="utf-8")
    text = solvers.read_text(encoding="utf-8")
    start = "\ncommand = '"
    solvers.write_text(text.replace(start, f'{start}sh "{script}" '), encoding="utf-8")
    for integer in (False, True):
        result = solve_isolated(form(integer=integer), name, SolveRequest())
        assert result.termination is Termination.CRASHED
        assert result.objective == pytest.approx(7.0 if integer else OPTIMUM)
        assert result.bound is None
        assert f"the command wrote a solution, but ended with {words}" in result.message
        assert words in result.raw
    run = solve.solve(Task("matrix.program", f"mps:{example()}", name))
    assert (run.verified, run.record.termination) == (True, Termination.CRASHED)
    assert "wrote a solution, but ended" in run.record.message


def test_a_program_that_cannot_be_run_is_named_by_its_path(solvers):
    program = solvers.with_name("broken")
    program.write_bytes(b"\x7fELF no program")
    program.chmod(0o755)
    solvers.write_text('[broken]\ncommand = "{here}/broken {mps} {sol}"\n', encoding="utf-8")
    with pytest.raises(SolverUnavailable, match=f"'{re.escape(str(program))}' cannot be run"):
        solve_isolated(form(), "broken", SolveRequest())


def test_infeasible_and_unbounded_by_the_solution_file_or_the_output():
    crossed = StandardForm(
        sp.csc_array(np.array([[1.0, 1], [1, 1]])),
        np.array([3.0, -INF]),
        np.array([INF, 2]),
        np.zeros(2),
        np.full(2, INF),
        np.ones(2),
        "min",
    )
    free = StandardForm(
        sp.csc_array(np.array([[1.0, -1]])),
        np.array([-INF]),
        np.array([1.0]),
        np.zeros(2),
        np.full(2, INF),
        np.ones(2),
        "max",
    )
    for name in ("milp", "highs-command"):
        assert solve_isolated(crossed, name, SolveRequest()).termination is Termination.INFEASIBLE
        unbounded = solve_isolated(free, name, SolveRequest()).termination
        assert unbounded in (Termination.UNBOUNDED, Termination.INFEASIBLE_OR_UNBOUNDED)


@pytest.mark.parametrize(("mode", "solved"), [("zero", True), ("sleep", False)])
def test_a_command_is_killed_at_its_limit_and_its_solution_kept(mode, solved, tmp_path):
    note = tmp_path / "child"
    for limit_s in (0.8, 4.0, 16.0, 64.0, 256.0):  # on a busy machine the command itself starts late
        note.unlink(missing_ok=True)
        request = SolveRequest(time_limit_s=limit_s, options={"mode": mode, "child": str(note)})
        result = solve_isolated(form(integer=True), "milp", request)
        assert result.termination is Termination.TIME_LIMIT
        if note.exists() and note.read_text(encoding="utf-8") and (result.x is not None) == solved:
            break
    assert (result.x is not None) == solved
    if solved:
        assert result.objective == 1.0
    assert gone(int(note.read_text(encoding="utf-8")))


def gone(pid: int) -> bool:
    for _ in range(2400):
        with suppress(psutil.NoSuchProcess):
            if psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                time.sleep(0.1)
                continue
        return True
    return False


def test_a_stopped_solve_leaves_no_process(tmp_path):
    import threading

    note, stop = tmp_path / "child", threading.Event()
    request = SolveRequest(options={"mode": "sleep", "child": str(note)})

    def stop_when_started() -> None:
        while not note.exists() or not note.read_text(encoding="utf-8"):
            time.sleep(0.05)
        stop.set()

    thread = threading.Thread(target=stop_when_started, daemon=True)
    thread.start()
    result = solve_isolated(form(), "milp", request, stop=stop)
    thread.join()
    assert result.termination is Termination.INTERRUPTED
    assert gone(int(note.read_text(encoding="utf-8")))


def test_what_a_command_leaves_behind_has_ended_when_the_solve_returns(tmp_path):
    for note in (tmp_path / "one", tmp_path / "another"):
        result = solve_isolated(form(), "milp", SolveRequest(options={"child": str(note)}))
        assert result.termination is Termination.OPTIMAL
        assert not psutil.pid_exists(int(note.read_text(encoding="utf-8")))


def test_options_need_a_template():
    with pytest.raises(BadOption, match="accepts no options"):
        solve_isolated(form(), "highs-command", SolveRequest(options={"presolve": "off"}))


def test_a_program_that_is_not_there_is_unavailable(capsys):
    assert not adapter("absent").installed()
    with pytest.raises(SolverUnavailable, match="not on PATH"):
        solve_isolated(form(), "absent", SolveRequest())
    assert main(["solve", "matrix.program", f"mps:{example()}", "--method", "absent", "--no-store"]) == 4
    assert "no-such-program-anywhere" in capsys.readouterr().err


def test_a_path_that_is_no_program_is_not_looked_for_on_path(solvers):
    solvers.write_text('[absent]\ncommand = "bin/absent {mps} {sol}"\n', encoding="utf-8")
    program = solvers.parent / "bin" / "absent"
    assert adapter("absent").install == f"create '{program}', or correct its path in the table"
    with pytest.raises(SolverUnavailable, match="is not an executable file: create"):
        solve_isolated(form(), "absent", SolveRequest())


def test_the_example_of_describe_names_the_configuration_file(solvers, monkeypatch):
    monkeypatch.chdir(solvers.parent.parent)
    (one,) = describe("milp")
    assert "{mps} {sol} --time {time_limit_s}" in one.text
    assert one.example is not None
    assert one.example.endswith("--method milp --solver-config 'my solvers/solvers.toml'")
    monkeypatch.delenv(VARIABLE)
    assert main([*shlex.split(one.example)[1:], "--no-store"]) == 0


def test_an_unknown_solver_hints_at_configuration_files(monkeypatch):
    monkeypatch.delenv(VARIABLE)
    with pytest.raises(MethodMismatch, match=r"did you mean .*a file that OPTICOLL_SOLVERS names"):
        solve.solve(Task("alltoall.master", "ring:4", "highs-simplx"))


def test_solve_from_python_finds_the_files_of_the_variable(monkeypatch, solvers):
    monkeypatch.setenv(VARIABLE, str(solvers))
    assert oc.solve("alltoall.master", "ring:4", method="milp").proof is Proof.OPTIMAL


def test_capabilities_are_those_of_the_table(solvers):
    solvers.write_text('[only-lp]\ncommand = "true {mps} {sol}"\n', encoding="utf-8")
    with pytest.raises(MethodMismatch, match="does not support integer variables"):
        solve_isolated(form(integer=True), "only-lp", SolveRequest())


def test_the_version_and_the_resume_key_follow_the_configuration(solvers):
    task = Task("matrix.program", f"mps:{example()}", "milp")
    version, key = adapter("milp").version(), resume_key(task)
    assert version is not None
    assert version.startswith("1.2.3 (command ")
    solvers.write_text(solvers.read_text(encoding="utf-8").replace("--time", "--style plain --time"), encoding="utf-8")
    assert adapter("milp").version() != version
    assert resume_key(task) != key


def test_a_file_on_the_command_line_is_used_for_that_command(solvers, monkeypatch, capsys):
    monkeypatch.delenv(VARIABLE)
    command = [
        "solve",
        "matrix.program",
        f"mps:{solvers.with_name('p.lp')}",
        "--method",
        "milp",
        "--no-store",
        "--json",
    ]
    solvers.with_name("p.lp").write_text("max\nobj: 3 x\nst\na: x <= 4\nend\n", encoding="utf-8")
    assert main(command) == 2
    assert main([*command, "--solver-config", str(solvers)]) == 0
    assert json.loads(capsys.readouterr().out)["objective"] == pytest.approx(12)
    assert "milp" not in adapters()


def test_the_users_own_file_is_read(tmp_path, monkeypatch):
    folder = tmp_path / "config" / "opticoll"
    folder.mkdir(parents=True)
    (folder / "solvers.toml").write_text('[mine]\ncommand = "bin/mine {mps} {sol}"\n', encoding="utf-8")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert {"mine", "milp"} <= set(adapters())
    assert not adapter("mine").installed()
    program = folder / "bin" / "mine"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)
    assert adapter("mine").installed()  # relative to the file, not to the working directory


def test_a_study_runs_it_in_local_processes(tmp_path, capsys):
    study = tmp_path / "s.toml"
    study.write_text(
        f'name = "s"\nformulations = ["matrix.program"]\ninstances = ["mps:{example()}"]\nmethods = ["milp"]\n',
        encoding="utf-8",
    )
    assert main(["study", str(study), "--jobs", "2", "--store", str(tmp_path / "store"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["done"] == 1


@pytest.mark.parametrize(("text", "reason"), [("", "no tables"), ("[a", "not TOML")])
def test_a_wrong_file_is_refused_in_one_line(solvers, capsys, text, reason):
    solvers.write_text(text, encoding="utf-8")
    with pytest.raises(BadFile, match=reason):
        adapters()
    assert main(["list", "solvers"]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a = 1", "must be an object, not a whole number"),
        ("[a]\nlp = true", "lacks the field 'command'"),
        ('[a]\ncommand = "a {mps}"', "must contain {sol}"),
        ('[a]\ncommand = "a {mps} {lp} {sol}"', "one of {mps} and {lp}"),
        ('[a]\ncommand = "a {mps} {sol} {time}"', "unknown placeholder {time}"),
        ('[a]\ncommand = "a {mps} {sol:>3}"', "cannot be split into words"),
        ("[a]\ncommand = 'a \"{mps} {sol}'", "cannot be split into words"),
        ('[a]\ncommand = "a {mps} {sol}"\nmipp = true', "did you mean 'mip'"),
        ('[a]\ncommand = "a {mps} {sol}"\nmip = 1', "mip must be true or false, not a whole number"),
        ('[a]\ncommand = "a {mps} {sol}"\nlp = false', "both false"),
        ('[a]\ncommand = "a {mps} {sol}"\n[a.status]\noptimal = "("', "not a regular expression"),
        ('[a]\ncommand = "a {mps} {sol}"\n[a.status]\noptimum = "x"', "did you mean 'optimal'"),
    ],
)
def test_a_wrong_table_disables_its_solver_alone(solvers, capsys, text, reason):
    rest = solvers.read_text(encoding="utf-8")
    solvers.write_text(f"{text}\n{rest}", encoding="utf-8")
    assert reason in adapter("a").missing()
    assert adapter("milp").installed()
    assert main(["solve", "matrix.program", f"mps:{example()}", "--method", "a", "--no-store"]) == 4
    error = capsys.readouterr().err.strip()
    assert reason in error
    assert len(error.splitlines()) == 1


@pytest.mark.parametrize("name", ["highs", "ring-sets"])
def test_a_table_with_the_name_of_a_built_in_solver_is_ignored(solvers, caplog, name):
    rest = solvers.read_text(encoding="utf-8")
    solvers.write_text(f'[{name}]\ncommand = "a {{mps}} {{sol}}"\n{rest}', encoding="utf-8")
    assert name not in adapters() or not isinstance(adapters()[name], CommandLine)
    assert adapter("milp").installed()
    assert caplog.text.count("has the name of a built-in one") == 1  # once, however often solvers are looked up


def test_a_missing_file_is_refused(monkeypatch, tmp_path):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "none.toml"))
    with pytest.raises(BadFile, match=r"none\.toml cannot be read"):
        adapters()


def test_the_table_of_the_documentation_is_valid(tmp_path):
    from opticoll.solvers.adapters import command_line

    block = inspect.getdoc(command_line.CommandLine).split("::\n", 1)[1].split("\n``", 1)[0]
    file = tmp_path / "doc.toml"
    file.write_text("\n".join(line.removeprefix("    ") for line in block.splitlines()), encoding="utf-8")
    one = read_configuration(file)[0]
    assert (one.name, one.capabilities.mip, one.capabilities.duals) == ("mysolver", True, False)

"""Solvers' own logs: shown live, interleaved with incumbents and bounds, without any effect on the record."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from opticoll.analysis.cli.main import main
from opticoll.solvers import solve
from opticoll.solvers.adapters import adapter
from opticoll.solvers.process import solver_log
from opticoll.solvers.process.isolation import call_isolated
from opticoll.solvers.resume_key import resume_key
from opticoll.solvers.task import Task

#: A line of the log of every solver, and a formulation that it solves.
LOGS = {
    "highs": ("HiGHS", "alltoall.master"),
    "scip": ("SCIP Status", "alltoall.master"),
    "glop": ("Current status: OPTIMAL", "alltoall.master"),
    "pdlp": ("dual_obj", "alltoall.master"),
    "clarabel": ("Terminated with status", "alltoall.master"),
    "gurobi": ("Gurobi Optimizer", "alltoall.master"),
    "cp-sat": ("CpSolverResponse", "lumorph.rounds"),
}
INSTANCES = {"alltoall.master": "ring:4", "lumorph.rounds": "lightpath:2x2,lasers=4"}


@pytest.mark.parametrize("name", LOGS)
def test_the_log_is_shown_and_changes_nothing_on_record(name):
    if not adapter(name).installed():
        pytest.skip(f"{name} is not installed")
    word, formulation = LOGS[name]
    task = Task(formulation, INSTANCES[formulation], name, "cvxpy" if formulation == "alltoall.master" else "pyomo")
    stream = io.StringIO()
    logged = solve.solve(task, log=stream)
    assert word in stream.getvalue()
    assert f"opticoll: {name} starts on {logged.record.size.variables} variables" in stream.getvalue()
    assert logged.record.key == resume_key(task)
    if name in {"highs", "pdlp", "cp-sat"}:  # these record every option in force
        quiet = solve.solve(task)
        assert (logged.record.solver, logged.record.settings) == (quiet.record.solver, quiet.record.settings)


def test_incumbents_and_bounds_stand_between_the_solvers_lines():
    stream = io.StringIO()
    run = solve.solve(Task("lumorph.rounds", "lightpath:2x2,lasers=4", "cp-sat", "pyomo"), log=stream)
    lines = [line for line in stream.getvalue().splitlines() if " s  incumbent" in line]
    assert lines
    assert lines[-1].startswith("opticoll: ")
    assert f"incumbent {run.objective:.8g}" in lines[-1]


def test_logs_of_a_methods_own_solves_are_shown():
    stream = io.StringIO()
    solve.solve(Task("alltoall.master", "ring:4", "certified-pdlp"), log=stream)
    assert "opticoll: highs-pdlp starts on" in stream.getvalue()
    assert re.search(r"^LP has \d+ rows", stream.getvalue(), re.MULTILINE)  # its banner comes once in a process


def speak(report, **arguments):
    print("first")
    for _ in range(12_000):
        if Path(arguments["heard"]).exists():
            return {"heard": True}
        time.sleep(0.02)
    return {"heard": False}


class Listener(io.StringIO):
    def __init__(self, heard):
        super().__init__()
        self.heard = heard

    def write(self, text):
        if "first" in text:
            self.heard.touch()
        return super().write(text)


def test_output_arrives_while_the_worker_runs(tmp_path):
    stream = Listener(tmp_path / "heard")
    with solver_log.streamed(stream):
        answer = call_isolated("test_solver_log:speak", {"heard": str(stream.heard)})
    assert answer.values["heard"]
    assert stream.getvalue() == "first\n"


def test_without_a_stream_nothing_is_shown(capfd):
    solve.solve(Task("alltoall.master", "ring:4", "highs", "cvxpy"))
    assert capfd.readouterr() == ("", "")
    assert not solver_log.shown()


def test_json_stays_one_object_on_stdout(capfd):
    assert (
        main(["solve", "alltoall.master", "ring:4", "--method", "highs-simplex", "--log", "--json", "--no-store"]) == 0
    )
    out, err = capfd.readouterr()
    assert json.loads(out)["objective"] == pytest.approx(0.5)
    assert "HiGHS" in err


def test_a_solve_in_the_calling_process_prints_nothing():
    """HiGHS prints a banner on the standard output of the first process that makes an object of it."""
    code = "import opticoll as oc; oc.design(2, 1)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert shown.stdout + shown.stderr == ""

"""Running studies: they resume after any interruption; nothing is lost, nothing is counted twice."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from msgspec import structs

from opticoll.analysis.store import Store
from opticoll.analysis.study.cells import CellJob, attempt, record_attempt, run_cell
from opticoll.analysis.study.running import run_study
from opticoll.analysis.study.study_file import Cell, Study, load
from opticoll.errors import BadInput, SolverUnavailable
from opticoll.shared_files import claim
from opticoll.solvers import solve as runner
from opticoll.solvers.process.executor import InProcess, JobCrashed, make_executor
from opticoll.solvers.run import Run
from opticoll.solvers.task import Proof, Record, Task, Termination

if TYPE_CHECKING:
    from collections.abc import Callable

    from opticoll.analysis.study.cells import CellResult

ROOT = Path(__file__).resolve().parents[3]

#: A study of many cells whose solve is a short nap: what is tested is the study, not the solver.
DRIVER = """
import random, sys, time, types
from pathlib import Path
import numpy as np
from opticoll.solvers.task import Proof, Record, Task, Termination
from opticoll.solvers.run import Run

def solve(task, on_progress=None):
    time.sleep(random.uniform(0.001, 0.008) if task.seed < int(sys.argv[4]) else 3600.0)
    record = Record(formulation=task.formulation, instance=task.instance, termination=Termination.OPTIMAL,
                    proof=Proof.OPTIMAL, objective=float(task.seed), verified=True)
    return Run(task, record, values={"x": np.full(500, float(task.seed))})

import opticoll.solvers
opticoll.solvers.solve = sys.modules["opticoll.solvers.solve"] = types.SimpleNamespace(solve=solve)
if sys.argv[3] == "nolock":
    import contextlib
    import opticoll.analysis.study.running
    opticoll.analysis.study.running.claim = lambda path: contextlib.nullcontext(True)
from opticoll.analysis.store import Store
from opticoll.analysis.study.running import run_study
from opticoll.analysis.study.study_file import Cell, Study
from opticoll.solvers.process.executor import InProcess

cells = tuple(Cell(Task("alltoall.master", "ring:4", seed=i), f"{i:064x}") for i in range(int(sys.argv[2])))
print("ready", flush=True)
def report(result):
    if result.status == "done":
        print("done", result.key, flush=True)

summary = run_study(Study("naps", "", cells, Path("naps.toml")), Store(sys.argv[1]), InProcess(), on_result=report)
print(summary.count("done"), summary.count("skipped"), flush=True)
sys.exit(130 if summary.interrupted else 0)
"""


def start(store: Store, cells: int, mode: str = "lock", quick: int | None = None) -> subprocess.Popen[str]:
    """Start a study of so many cells; those from number ``quick`` on, if any, never end."""
    return subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(store.root), str(cells), mode, str(cells if quick is None else quick)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        start_new_session=True,
    )


def check_complete(store: Store, cells: int) -> None:
    """Every cell exactly once, every record whole, every solution there and its own."""
    names = sorted(store.names())
    assert names == [f"{i:064x}.1" for i in range(cells)]
    counts = store.sql("SELECT count(*) AS rows, count(DISTINCT key) AS keys FROM runs")
    assert counts.to_numpy().tolist() == [[cells, cells]]
    for name in names:
        record = store.read(name)
        values, _ = store.solution(name)
        assert record["objective"] == float(int(record["key"], 16))
        assert np.array_equal(values["x"], np.full(500, record["objective"]))


def wait_for(process: subprocess.Popen[str], store: Store, cells: int) -> None:
    """Wait until so many cells are stored, or the study is over."""
    while len(list(store.names())) < cells and process.poll() is None:
        time.sleep(0.01)


def snapshot(store: Store) -> dict[str, bytes]:
    return {name: (store.records / f"{name}.json").read_bytes() for name in store.names()}


@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.slow)])
def test_killed_often_nothing_is_lost_or_counted_twice(tmp_path: Path, kills: int) -> None:
    store, chance, cells = Store(tmp_path / "store"), random.Random(1), 80 * min(kills, 3)
    before: dict[str, bytes] = {}
    for k in range(kills):
        process = start(store, cells)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        if k % 2:  # however slow the machine, half of them get to work
            wait_for(process, store, len(before) + 1)
        time.sleep(chance.uniform(0.0, 0.3 if k % 2 == 0 else 0.1))
        os.kill(process.pid, signal.SIGKILL)
        reported = {line.split()[1] for line in process.stdout if line.endswith("\n")}
        process.wait()
        process.stdout.close()
        after = snapshot(store)
        assert {f"{key}.1" for key in reported} <= set(after)
        assert all(after[name] == text for name, text in before.items())
        assert all(json.loads(text)["termination"] == "optimal" for text in after.values())
        before = after
    assert len(before) >= kills // 2, "hardly a cell was finished before a kill: the test tests nothing"
    done, _ = start(store, cells).communicate(timeout=240)
    assert done.split()[-2:] == [str(cells - len(before)), str(len(before))]
    check_complete(store, cells)


@pytest.mark.parametrize("mode", ["lock", "nolock"])
def test_two_studies_at_once(tmp_path: Path, mode: str) -> None:
    store, cells = Store(tmp_path / "store"), 60
    both = [start(store, cells, mode) for _ in range(2)]
    values = [process.communicate(timeout=240)[0].split() for process in both]
    assert all(process.returncode == 0 for process in both)
    done = [int(words[-2]) for words in values]
    assert sum(done) == cells
    assert all(int(words[-2]) + int(words[-1]) == cells for words in values)
    check_complete(store, cells)
    assert len(list(store.solutions.glob("*.npz"))) == cells
    assert not list(store.locks.glob("*"))


def test_ctrl_c_ends_cleanly_and_the_next_start_resumes(tmp_path: Path) -> None:
    store, cells = Store(tmp_path / "store"), 100
    process = start(store, cells, quick=20)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        wait_for(process, store, 5)
        os.kill(process.pid, signal.SIGINT)
        process.communicate(timeout=240)
    finally:
        process.kill()
    assert process.returncode == 130
    assert 5 <= len(list(store.names())) <= 20
    assert not list(store.root.rglob(".tmp-*"))
    again = start(store, cells)
    again.communicate(timeout=240)
    assert again.returncode == 0
    check_complete(store, cells)


# one cell at a time, in this process --------------------------------------------------------------------------


CELL = Cell(Task("alltoall.master", "ring:4", "highs"), "a" * 64, "ring:4", facts={"n": 4})
STUDY = Study("one", "", (CELL,), Path("one.toml"))


class Solver:
    """Stands in for the runner: ends as given by ``ending``, counts its calls."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls = 0
        self.ending: Any = Termination.OPTIMAL
        self.message = ""
        self.verified = True
        monkeypatch.setattr(runner, "solve", self)

    def __call__(self, task: Task) -> Run:
        self.calls += 1
        if isinstance(self.ending, BaseException):
            raise self.ending
        proof = Proof.OPTIMAL if self.ending == Termination.OPTIMAL else Proof.NONE
        record = Record(
            formulation=task.formulation,
            method=task.method,
            termination=self.ending,
            message=self.message,
            proof=proof,
            verified=self.verified,
        )
        return Run(task, record)


@pytest.fixture
def solver(monkeypatch: pytest.MonkeyPatch) -> Solver:
    return Solver(monkeypatch)


def run(store: Store) -> str:
    summary = run_study(STUDY, store, InProcess())
    assert summary.complete
    return summary.results[CELL.key].status


@pytest.mark.parametrize("ending", ["optimal", "infeasible", "time-limit", "memory-limit"])
def test_what_is_neither_verified_nor_proven_is_tried_again(store: Store, solver: Solver, ending: str) -> None:
    solver.ending, solver.verified = Termination(ending), False
    assert [run(store), run(store)] == ["failed", "failed"]
    solver.verified = True
    assert [run(store), run(store)] == ["done", "skipped"]
    assert solver.calls == 3


def test_a_cell_without_an_answer_says_why_where_its_solver_does_not(store: Store, solver: Solver) -> None:
    solver.verified = False
    (line,) = run_study(STUDY, store, InProcess()).remarks()
    assert line.endswith("no solution: ended with optimal: highs returned no solution")
    solver.message = "words"
    (line,) = run_study(STUDY, store, InProcess()).remarks()
    assert line.endswith(": words")


@pytest.mark.parametrize("ending", ["optimal", "time-limit", "memory-limit", "iteration-limit"])
def test_answers_are_kept(store: Store, solver: Solver, ending: str) -> None:
    solver.ending = Termination(ending)
    assert [run(store), run(store)] == ["done", "skipped"]
    assert solver.calls == 1
    assert store.read(f"{CELL.key}.1")["study"] == "one"


@pytest.mark.parametrize("ending", ["crashed", "error", "interrupted"])
def test_failures_are_rows_and_tried_again(store: Store, solver: Solver, ending: str) -> None:
    solver.ending = Termination(ending)
    assert [run(store), run(store)] == ["failed", "failed"]
    solver.ending = Termination.OPTIMAL
    assert [run(store), run(store)] == ["done", "skipped"]
    assert solver.calls == 3
    assert [r["termination"] for r in store.attempts(CELL.key)] == [ending, ending, "optimal"]
    assert len(store.sql("FROM latest")) == 1


def test_whatever_a_cell_raises_is_a_row(store: Store, solver: Solver) -> None:
    solver.ending = ZeroDivisionError("oh")
    assert run(store) == "failed"
    record = store.read(f"{CELL.key}.1")
    assert record["termination"] == "error"
    assert "ZeroDivisionError: oh" in record["message"]
    assert record["n"] == 4
    solver.ending = BadInput("no such option")
    assert run(store) == "failed"
    assert store.read(f"{CELL.key}.2")["message"] == "no such option"


def test_unavailable_is_asked_again_but_recorded_once(store: Store, solver: Solver) -> None:
    solver.ending = SolverUnavailable("no licence")
    assert [run(store), run(store), run(store)] == ["unavailable"] * 3
    assert solver.calls == 3
    assert len(list(store.names())) == 1
    solver.ending = SolverUnavailable("licence too small")
    assert run(store) == "unavailable"
    assert len(list(store.names())) == 2
    solver.ending = Termination.OPTIMAL
    assert [run(store), run(store)] == ["done", "skipped"]


def test_a_cell_without_its_package_is_a_row(store: Store, solver: Solver) -> None:
    cell = Cell(CELL.task, CELL.key, "ring:4", unavailable="the package is not installed", facts={"n": 4})
    assert run_cell(CellJob(cell, store, "s")).status == "unavailable"
    assert solver.calls == 0
    assert store.read(f"{CELL.key}.1")["message"] == "the package is not installed"


def test_a_single_solve_answers_too(store: Store, solver: Solver) -> None:
    one = solver(CELL.task)
    store.save(replace(one, record=structs.replace(one.record, key=CELL.key)))
    assert run(store) == "skipped"
    assert solver.calls == 1


def test_a_dead_worker_is_a_row(store: Store) -> None:
    class Dying(InProcess):
        def map_unordered(self, function: Any, items: Any) -> Any:
            for index, _ in enumerate(items):
                yield index, JobCrashed("a job's process died (status -9)")

    summary = run_study(STUDY, store, Dying())
    assert summary.results[CELL.key].status == "failed"
    assert store.read(f"{CELL.key}.1")["termination"] == "crashed"


def test_a_held_cell_is_waited_for(store: Store, solver: Solver, monkeypatch: pytest.MonkeyPatch) -> None:
    held = claim(store.locks / f"{CELL.key}.lock")
    assert held.__enter__()
    naps: list[float] = []

    def nap(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) == 3:
            held.__exit__(None, None, None)

    monkeypatch.setattr("opticoll.analysis.study.running.time.sleep", nap)
    assert run_cell(CellJob(CELL, store, "s")).status == "busy"
    assert run(store) == "done"
    assert len(naps) == 3
    assert not list(store.locks.iterdir())


def test_a_store_that_cannot_be_written_ends_the_study(tmp_path: Path, solver: Solver) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="is not a folder"):
        run_study(STUDY, Store(tmp_path / "file"), InProcess())
    assert solver.calls == 0


# written beside the next cell ------------------------------------------------------------------------------------

FIVE = Study("five", "", tuple(Cell(Task("alltoall.master", "ring:4", seed=i), f"{i:064x}") for i in range(5)), Path())


def save_as(monkeypatch: pytest.MonkeyPatch, instead: Callable[[int], None]) -> None:
    """Let the store do something before it saves a run; it receives the run's seed."""
    save = Store.save

    def save_noted(self: Store, run: Run, **others: Any) -> str:
        instead(run.task.seed)
        return save(self, run, **others)

    monkeypatch.setattr(Store, "save", save_noted)


def solve_as(monkeypatch: pytest.MonkeyPatch, before: Callable[[int], None]) -> None:
    """Stand in for the runner, and do something before a cell is solved; it receives the cell's seed."""

    def solve(task: Task) -> Run:
        before(task.seed)
        optimal = {"termination": Termination.OPTIMAL, "proof": Proof.OPTIMAL, "verified": True}
        return Run(task, Record(formulation=task.formulation, **optimal), values={"x": np.full(9, float(task.seed))})

    monkeypatch.setattr(runner, "solve", solve)


def test_an_error_of_the_store_ends_the_study(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    solved: list[int] = []

    def full(seed: int) -> None:
        if seed >= 1:
            msg = "store: cannot write: No space left on device; choose another folder with --store"
            raise BadInput(msg)

    solve_as(monkeypatch, solved.append)
    save_as(monkeypatch, full)
    reported: list[CellResult] = []
    with pytest.raises(BadInput, match="No space left on device"):
        run_study(FIVE, store, InProcess(), on_result=reported.append)
    assert [result.key for result in reported] == [FIVE.cells[0].key]
    assert list(store.names()) == [f"{FIVE.cells[0].key}.1"]
    assert not list(store.locks.iterdir())
    monkeypatch.undo()
    solve_as(monkeypatch, solved.append)
    summary = run_study(FIVE, store, InProcess())
    assert (summary.count("done"), summary.count("skipped")) == (4, 1)


def test_an_unexpected_error_while_a_run_is_recorded_is_a_row(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[int] = []

    def once(seed: int) -> None:
        tries.append(seed)
        if tries == [0, 1]:
            raise ZeroDivisionError

    solve_as(monkeypatch, lambda seed: None)
    save_as(monkeypatch, once)
    summary = run_study(FIVE, store, InProcess())
    assert [summary.results[cell.key].status for cell in FIVE.cells] == ["done", "failed", "done", "done", "done"]
    assert store.read(f"{FIVE.cells[1].key}.1")["termination"] == "crashed"


def test_a_cell_that_cannot_be_claimed_is_a_row(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> Any:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("opticoll.analysis.study.cells.claim", refuse)
    assert run(store) == "failed"
    assert "Input/output error" in store.read(f"{CELL.key}.1")["message"]


def test_an_answer_that_another_study_has_stored_meanwhile_is_used(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = CellJob(FIVE.cells[3], store, "rival")

    def overtaken(seed: int) -> None:
        if seed == 3 and not store.attempts(job.cell.key):
            record_attempt(job, attempt(replace(job.cell, task=structs.replace(job.cell.task, seed=7))))

    solve_as(monkeypatch, lambda seed: None)
    save_as(monkeypatch, overtaken)
    summary = run_study(FIVE, store, InProcess())
    assert (summary.count("done"), summary.count("skipped")) == (4, 1)
    assert len(list(store.names())) == len(list(store.solutions.iterdir())) == 5


def test_ctrl_c_keeps_what_was_solved(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[CellResult] = []

    def solving(seed: int) -> None:
        if seed == 2:
            raise KeyboardInterrupt

    solve_as(monkeypatch, solving)
    summary = run_study(FIVE, store, InProcess(), on_result=reported.append)
    assert summary.interrupted
    assert [result.status for result in reported] == ["done", "done"]
    assert sorted(store.names()) == [f"{cell.key}.1" for cell in FIVE.cells[:2]]
    assert not list(store.locks.iterdir())


def test_without_locks_cells_still_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr("opticoll.shared_files.fcntl.flock", refuse)
    with claim(tmp_path / "x.lock") as ours:
        assert ours


# files that change -------------------------------------------------------------------------------------------


def _study_of(tmp_path: Path, text: str) -> Study:
    path = tmp_path / "files.toml"
    path.write_text(f'name = "files"\n{text}')
    return load(path)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_topology_file_that_changes_is_solved_as_it_was_read(store: Store, tmp_path: Path, jobs: int) -> None:
    edges = tmp_path / "edges.txt"
    text = f'formulations = ["alltoall.master"]\ninstances = ["file:{edges}"]\nmethods = ["highs-simplex"]\n'
    edges.write_text("0 1 1\n1 2 1\n2 0 1\n")
    study = _study_of(tmp_path, text)
    edges.write_text("0 1 5\n1 2 5\n2 0 5\n")
    values = []
    with make_executor(jobs) as executor:
        for one in (study, _study_of(tmp_path, text), study):
            summary = run_study(one, store, executor)
            (cell,) = one.cells
            record = store.read(f"{cell.key}.1")
            assert record["instance_hash"] == cell.facts["instance_hash"]
            assert record["instance"] == cell.canonical == f"file:{edges}"
            assert f"file:{edges}" in cell.label
            values.append((summary.results[cell.key].status, round(record["objective"], 9)))
    assert values == [("done", round(1 / 3, 9)), ("done", round(5 / 3, 9)), ("skipped", round(1 / 3, 9))]


def test_a_setting_s_file_that_changes_is_a_failure(store: Store, tmp_path: Path) -> None:
    demand = tmp_path / "demand.csv"
    demand.write_text("0,1,1\n1,0,1\n1,1,0\n")
    text = (
        'formulations = ["alltoall.master"]\ninstances = ["ring:3"]\nmethods = ["highs-simplex"]\n'
        f'[settings]\ndemand = "file:{demand}"\n'
    )
    study = _study_of(tmp_path, text)
    demand.write_text("0,9,9\n9,0,9\n9,9,0\n")
    summary = run_study(study, store, InProcess())
    (cell,) = study.cells
    assert summary.results[cell.key].status == "failed"
    record = store.read(f"{cell.key}.1")
    assert (record["termination"], record["objective"]) == ("error", None)
    assert "has changed since the study was read" in record["message"]
    again = _study_of(tmp_path, text)
    assert again.cells[0].key != cell.key
    assert run_study(again, store, InProcess()).results[again.cells[0].key].status == "done"


def test_what_a_cell_needed_is_stored(store: Store, tmp_path: Path) -> None:
    text = 'formulations = ["alltoall.child"]\ninstances = ["ring:3"]\nmethods = ["highs-simplex"]\n'
    study = _study_of(tmp_path, text)
    run_study(study, store, InProcess())
    result = store.read(f"{study.cells[0].key}.1")["needed"]
    basis = store.read(result["id"])
    assert (basis["formulation"], basis["proof"], basis["key"]) == ("alltoall.master", "optimal", result["key"])
    assert store.solution(result["id"])[0]["g"].shape == (6, 3)

"""The instance, the data and the bounds of a task are computed once per solve."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from opticoll.analysis.cli.main import main
from opticoll.analysis.store import Store
from opticoll.formulations import formulation
from opticoll.formulations.model import Bound
from opticoll.solvers import plan, procedure, solve
from opticoll.solvers.task import Proof, Task

CASES = {
    "alltoall.master": "torus:3x3",
    "alltoall.child": "ring:4",
    "lumorph.rounds": "lightpath:2x2",
    "topoopt.topology": "servers:n=3,degree=1",
}


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Calls by name: ``parse``, and ``prepare`` and ``bounds`` of each formulation."""
    counts: Counter[str] = Counter()

    def counted(name: str, function: Any) -> Any:
        def call(*arguments: Any) -> Any:
            solved_data = len(arguments) == 3  # a formulation that takes another's solution is checked without it first
            counts[f"{name} with a solution" if solved_data else name] += 1
            return function(*arguments)

        return call

    for module in (plan, procedure):
        monkeypatch.setattr(module, "parse", counted("parse", module.parse))
    for model in map(formulation, CASES):
        for method in ("prepare", "bounds", "_bound_parts"):
            monkeypatch.setattr(model, method, counted(f"{method} {model.name}", getattr(model, method)))
    return counts


@pytest.mark.parametrize("name", CASES)
def test_a_command_computes_everything_once(name: str, calls: Counter[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", name, CASES[name], "--no-store"]) == 0
    assert "analytic bounds" in capfd.readouterr().out or name == "alltoall.child"
    assert calls["parse"] == 1
    assert calls[f"prepare {name}"] == 1
    assert calls[f"bounds {name}"] <= 1
    assert set(calls.values()) == {1}
    assert (calls["prepare alltoall.child with a solution"] == 1) == (name == "alltoall.child")


def test_bounds_shown_beside_a_value_are_compared_with_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Also where the duals close the gap, and so no bound is computed by the run."""
    wrong = Bound("planted", 0.1, "wrong")
    monkeypatch.setattr("opticoll.solvers.judge.bounds_of", lambda problem, ready: [wrong])
    assert main(["solve", "alltoall.master", "ring:8", "--method", "highs", "--store", str(tmp_path)]) == 3
    shown = capfd.readouterr()
    assert "the value 0.125 satisfies every constraint, but planted gives 0.1; nothing is proven" in shown.err
    (name,) = Store(tmp_path).names()
    assert (Store(tmp_path).read(name).proof, Store(tmp_path).read(name).verified) == (Proof.NONE, False)


def test_bounds_of_a_plug_in_are_computed_once(calls: Counter[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if another method continues the run; the bounds of user-defined formulations are always computed."""
    monkeypatch.setattr(formulation("topoopt.topology"), "__module__", "own")
    run = solve.solve(Task("topoopt.topology", "servers:n=4,degree=1,traffic=random,seed=1"))
    assert run.bounds
    assert calls["bounds topoopt.topology"] == 1


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("alltoall.master", "certified-pdhg"),
        ("lumorph.rounds", "certified-rounds"),
        ("topoopt.topology", "design-search"),
    ],
)
def test_a_worker_computes_the_data_once(name: str, method: str, calls: Counter[str]) -> None:
    """The worker's side of a procedure, in this process."""
    task = Task(name, CASES[name], method, tol=1e-2)
    own = plan.make_plan(task)
    assert own.procedure is not None
    calls.clear()
    solve.run_in_worker(**procedure.send(task, own.instance), report=lambda *_: None)
    assert (calls["parse"], calls[f"prepare {name}"]) == (1, 1)

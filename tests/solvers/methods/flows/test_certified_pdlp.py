"""PDLP off the shelf, held to certified gaps."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from contexts import context_of
from reference import optimum_of

from opticoll.errors import MethodMismatch
from opticoll.formulations import formulation
from opticoll.formulations.model import Formulation
from opticoll.solvers import solve as runner
from opticoll.solvers.compile.compilation import compile_model
from opticoll.solvers.methods import methods_for
from opticoll.solvers.methods.flows import certified_pdlp
from opticoll.solvers.methods.flows.certified_pdlp import METHOD
from opticoll.solvers.methods.method import Context
from opticoll.solvers.plan import make_plan
from opticoll.solvers.task import Outcome, Task, Termination

#: A topology on which no flow is forced: what is off stays off after repair.
CROOKED = "genkautz:n=7,d=2"


def exact(spec: str) -> float:
    return optimum_of("alltoall.master", spec)


@pytest.mark.parametrize(("spec", "solver"), [("genkautz:n=12,d=2", "highs-pdlp"), ("petersen", "pdlp")])
def test_gap_is_closed_and_holds_the_optimum(solver: str, spec: str) -> None:
    run = runner.solve(Task("alltoall.master", spec, "certified-pdlp", settings={"solver": solver}, tol=1e-4))
    assert run.verified
    assert run.proof == "optimal"
    assert run.objective is not None
    assert run.bound is not None
    assert run.objective <= exact(spec) * (1 + 1e-9)
    assert run.bound >= exact(spec) * (1 - 1e-9)
    assert run.bound / run.objective - 1 <= 1e-4
    assert run.record["solver"]["name"] == solver
    assert "PDLP" in run.record["solver"]["algorithm"] or run.record["solver"]["algorithm"] == "presolve"
    assert run.record["metrics"]["rounds_of_pdlp"] >= 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "spec", "settings"),
    [
        ("alltoall.link-mcf", "ring:5,directed", {}),
        ("alltoall.path-mcf", "petersen", {"paths": "shortest"}),
        ("alltoall.master", "lightpath:2x2", {}),
    ],
)
def test_every_concurrent_flow_that_repairs_and_certifies(name: str, spec: str, settings: dict[str, Any]) -> None:
    if "certified-pdlp" not in methods_for(formulation(name)):
        pytest.skip(f"{name} has no repair or no certificate")
    run = runner.solve(Task(name, spec, "certified-pdlp", settings=settings, tol=1e-5))
    other = runner.solve(Task(name, spec, "highs-simplex", settings=settings))
    assert run.verified
    assert run.objective == pytest.approx(other.objective, rel=1e-5)
    assert run.proof == "optimal"


def test_supported_formulations(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "certified-pdlp" in methods_for(formulation("alltoall.master"))
    assert "certified-pdlp" not in methods_for(formulation("alltoall.min-congestion"))
    method = METHOD
    for name in ("alltoall.master", "alltoall.link-mcf"):
        for part in ("certify", "repair"):
            with monkeypatch.context() as changed:
                changed.setattr(formulation(name), part, getattr(Formulation, part))
                assert not method.applies(formulation(name))


def test_only_pdlp_codes_are_taken() -> None:
    with pytest.raises(Exception, match="highs-pdlp"):
        make_plan(Task("alltoall.master", "ring:5", "certified-pdlp", settings={"solver": "highs-ipx"}))


class Script:
    """A PDLP that returns given answers, in place of the real one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, answers: list[Outcome]) -> None:
        self.asked: list[float] = []
        self.answers = answers
        monkeypatch.setattr("opticoll.solvers.compile.scaling.solve_isolated", self.solve)

    def solve(self, form: Any, name: str, request: Any, **_options: Any) -> Outcome:
        self.asked.append(request.rel_tol)
        return self.answers[min(len(self.asked), len(self.answers)) - 1]


def context(tol: float) -> tuple[Context, list[Any]]:
    saved: list[Any] = []
    task = Task("alltoall.master", CROOKED, "certified-pdlp", tol=tol)
    return context_of(task, lambda answer, objective: saved.append((answer, objective))), saved


def rough(noise: float) -> Outcome:
    """An approximate answer on the time form: the optimal T and flow, off by so much."""
    plan = make_plan(Task("alltoall.master", CROOKED, "highs-simplex", form="matrix"))
    form = compile_model(plan.problem.matrix())
    from opticoll.solvers.compile.scaling import scaling_steps
    from opticoll.solvers.methods.flows.time_form import reformulate
    from opticoll.solvers.process.isolation import solve_isolated
    from opticoll.solvers.task import SolveRequest

    scaled = [form, *(step.form for step in scaling_steps(form))][-1]
    outcome = solve_isolated(reformulate(scaled, plan.problem).form, "highs-simplex", SolveRequest())
    rng = np.random.default_rng(1)
    assert outcome.x is not None
    assert outcome.row_duals is not None
    outcome.x = np.maximum(outcome.x + noise * rng.random(outcome.x.size), 0)
    outcome.row_duals = outcome.row_duals + noise * rng.standard_normal(outcome.row_duals.size)
    return outcome


def test_tolerance_is_tightened_until_the_gap_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [rough(0.3), rough(0.05), rough(0.0)]
    script = Script(monkeypatch, answers)
    current, saved = context(1e-4)
    answer = certified_pdlp.run(current)
    assert answer.termination == Termination.OPTIMAL
    assert script.asked == pytest.approx([1e-4, 1e-5, 1e-6])
    assert len(saved) == 3
    claims = [objective for _, objective in saved]
    assert claims == sorted(claims)
    bounds = [kept.bound for kept, _ in saved]
    assert bounds == sorted(bounds, reverse=True)
    assert claims[-1] == pytest.approx(exact(CROOKED))


def test_best_of_all_rounds_is_kept_and_a_remaining_gap_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(monkeypatch, [rough(0.05), rough(0.5)])
    current, saved = context(1e-4)
    answer = certified_pdlp.run(current)
    assert answer.termination == Termination.TOLERANCE
    assert "the gap stays at" in answer.message
    assert script.asked[-1] == pytest.approx(certified_pdlp.SMALLEST)
    assert answer.values is not None
    assert float(answer.values["F"]) == pytest.approx(saved[0][1])
    residuals = current.data.residuals(answer.values)
    assert max(residuals.values()) < 1e-9


def test_solver_that_ends_otherwise_ends_the_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(monkeypatch, [Outcome(Termination.MEMORY_LIMIT, message="too much")])
    current, _ = context(1e-4)
    answer = certified_pdlp.run(current)
    assert (answer.termination, answer.message) == (Termination.MEMORY_LIMIT, "too much")
    assert answer.values is None
    assert len(script.asked) == 1


@pytest.mark.parametrize("ended", ["by-the-solver", "between-rounds"])
def test_time_limit_keeps_what_there_is(ended: str, monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(monkeypatch, [rough(0.05), Outcome(Termination.TIME_LIMIT)])
    current, saved = context(1e-4)
    if ended == "between-rounds":
        current.deadline = time.monotonic() + 600.0

        def late(answer: Any, objective: Any) -> None:
            saved.append((answer, objective))
            current.deadline = time.monotonic()

        current.save = late
    answer = certified_pdlp.run(current)
    assert answer.termination == Termination.TIME_LIMIT
    assert len(script.asked) == (2 if ended == "by-the-solver" else 1)
    assert answer.solver["name"] == "highs-pdlp"
    assert answer.values is not None
    assert float(answer.values["F"]) == pytest.approx(saved[0][1])
    residuals = current.data.residuals(answer.values)
    assert max(residuals.values()) < 1e-9
    assert answer.bound is not None
    assert answer.bound >= float(answer.values["F"]) * (1 - 1e-9)


def test_a_time_limit_through_the_runner_is_a_row_with_a_bound() -> None:
    run = runner.solve(Task("alltoall.master", "genkautz:n=64,d=4", "certified-pdlp", tol=1e-9, time_limit_s=1e-3))
    assert run.termination == Termination.TIME_LIMIT
    assert run.bound is not None


def test_a_missing_package_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    from opticoll.errors import SolverUnavailable
    from opticoll.solvers.adapters import adapters

    if "cupdlpx" not in adapters() or adapters()["cupdlpx"].installed():
        pytest.skip("cupdlpx is installed")
    with pytest.raises(SolverUnavailable, match="cupdlpx") as caught:
        make_plan(Task("alltoall.master", "ring:5", "certified-pdlp", settings={"solver": "cupdlpx"}))
    assert caught.value.exit_status == 4


def test_unscaled_formulations_are_refused_by_the_time_form() -> None:
    with pytest.raises(MethodMismatch, match="certified-pdlp"):
        make_plan(Task("alltoall.min-congestion", "ring:5", "certified-pdlp"))

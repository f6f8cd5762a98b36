"""Wrong types, sizes and status words from solvers or methods are recorded as errors; limits hold here too."""

from __future__ import annotations

import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from opticoll.analysis.store import Store
from opticoll.errors import BadInput, BadOption, LimitSpent, one_line
from opticoll.formulations import formulation
from opticoll.formulations.model import Formulation
from opticoll.formulations.standard_form import StandardForm
from opticoll.instances import parse
from opticoll.solvers import procedure, run_state, solve, verify
from opticoll.solvers.adapters import adapters
from opticoll.solvers.adapters.interface import accepted
from opticoll.solvers.compile import building
from opticoll.solvers.exact import prove
from opticoll.solvers.methods import method_named
from opticoll.solvers.methods.branching import certified_branching
from opticoll.solvers.methods.method import Answer, Context
from opticoll.solvers.plan import make_plan
from opticoll.solvers.procedure import checked
from opticoll.solvers.process import budget, isolation
from opticoll.solvers.process.budget import Budget, LimitReached, limited
from opticoll.solvers.run import Run
from opticoll.solvers.run_state import RunState
from opticoll.solvers.task import Outcome, Proof, SolveRequest, Task, Termination

FORM = StandardForm(
    sp.csc_array([[1.0, 1.0]]),
    np.zeros(1),
    np.ones(1),
    np.zeros(2),
    np.ones(2),
    np.array([1.0, 2.0]),
    "max",
    integer=np.zeros(2, dtype=bool),
)
TRUE = Outcome(Termination.OPTIMAL, 2.0, 2.0, np.array([0.0, 1.0]), np.array([2.0]))
LIES: dict[str, tuple[dict[str, Any], str]] = {
    "short": ({"x": np.ones(1)}, "x of type float64 and shape (1,), expected real numbers of shape (2,)"),
    "long": ({"x": np.ones(3)}, "shape (3,)"),
    "a column": ({"x": np.ones((2, 1))}, "shape (2, 1)"),
    "complex": ({"x": np.ones(2, dtype=complex)}, "x of type complex128"),
    "texts": ({"x": np.array(["1", "2"])}, "x of type <U1"),
    "objects": ({"x": np.array([None, {}], dtype=object)}, "x of type object"),
    "long duals": ({"row_duals": np.ones(2)}, "row_duals of type float64 and shape (2,), expected"),
    "a word as value": (
        {"objective": "2"},
        "an invalid outcome: objective must be a number or null, not a string",
    ),
    "a complex bound": ({"bound": 1j}, "bound must be a number or null, not a string"),
    "an unknown word": ({"termination": "solved"}, "termination has the unknown value 'solved'"),
    "a number as word": ({"termination": 3}, "termination must be a string, not a whole number"),
    "no pairs": ({"incumbents": [1.0]}, "incumbents[0] must be a list"),
    "no options": ({"options": [1]}, "options must be an object"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_wrong_outcome_is_an_error_on_record(lie: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    wrong, message = LIES[lie]
    result = accepted("liar", FORM, replace(TRUE, **wrong))
    assert result.termination is Termination.ERROR
    assert message in result.message
    assert result.x is None

    def lying(form: StandardForm, *given: Any, **named: Any) -> Outcome:
        rows, columns = form.A.shape
        true = Outcome(Termination.OPTIMAL, 1.0, 1.0, np.zeros(columns), np.zeros(rows))
        return accepted("liar", form, replace(true, **wrong))

    monkeypatch.setattr("opticoll.solvers.compile.scaling.solve_isolated", lying)
    run = solve.solve(Task("alltoall.master", "ring:3", "highs-simplex"))
    assert run.termination is Termination.ERROR
    assert run.exit_status == 3
    store = Store(tmp_path / "store")
    assert store.read(store.save(run)).termination is Termination.ERROR


def test_a_right_outcome_is_left_as_it_is() -> None:
    result = accepted("honest", FORM, TRUE)
    assert (result.termination, result.objective, result.bound) == (Termination.OPTIMAL, 2.0, 2.0)
    assert result.x is not None
    assert result.x.tolist() == [0.0, 1.0]


def test_messages_are_one_line_that_can_be_stored() -> None:
    result = accepted("loud", FORM, replace(TRUE, message="\x1b[31mred\n\ud800" + "x" * 20_000_000, raw="\ud800"))
    assert "\x1b" not in result.message
    assert "\n" not in result.message
    assert result.message.encode()
    assert len(result.message) < 5000
    assert one_line("a\tb\r\nc") == "a b c"


@pytest.mark.parametrize(
    "answer",
    [
        Answer("done"),  # type: ignore[arg-type]
        Answer(Termination.OPTIMAL, bound="1"),  # type: ignore[arg-type]
        Answer(Termination.OPTIMAL, metrics=3),  # type: ignore[arg-type]
    ],
)
def test_a_wrong_answer_of_a_method_is_refused(answer: Answer) -> None:
    with pytest.raises(BadInput, match="it returned an Answer with"):
        checked(answer, "it returned")


def test_duals_of_a_wrong_shape_prove_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*given: Any, **named: Any) -> Any:
        return isolation.WorkerAnswer(None, Answer(Termination.OPTIMAL, duals={"capacity": np.ones((3, 5))}))

    monkeypatch.setattr(procedure, "call_isolated", wrong)
    run = solve.solve(Task("alltoall.master", "ring:4", "certified-pdhg"))
    assert run.proof in (Proof.NONE, Proof.BOUND_ONLY)
    assert run.objective is None


# options and numbers --------------------------------------------------------------------------------------------------

WRITING = {
    "highs": ["solution_file", "log_file", "write_model_file", "write_model_to_file", "write_solution_to_file"],
    "scip": ["visual/vbcfilename", "visual/bakfilename"],
    "gurobi": ["LogFile", "ResultFile", "SolFiles", "NodefileDir"],
    "mosek": ["MSK_SPAR_DATA_FILE_NAME", "MSK_SPAR_SOL_FILTER_READ_FILE"],
}
OURS = {
    "highs": ["threads", "time_limit"],
    "scip": ["limits/time", "parallel/maxnthreads"],
    "gurobi": ["Threads", "TimeLimit"],
    "cp-sat": ["num_workers", "max_time_in_seconds"],
    "mosek": ["MSK_IPAR_NUM_THREADS", "MSK_DPAR_OPTIMIZER_MAX_TIME"],
}
FINE = {
    "highs": ["presolve", "simplex_strategy", "mip_rel_gap", "log_to_console", "ipm_iteration_limit", "random_seed"],
    "scip": ["presolving/maxrounds", "limits/nodes", "limits/gap", "display/verblevel", "heuristics/emphasis"],
    "gurobi": ["MIPGap", "Method", "Presolve", "Crossover"],
    "cp-sat": ["log_search_progress", "symmetry_level", "linearization_level"],
}


REFUSED = [(solver, name) for group in (WRITING, OURS) for solver, names in group.items() for name in names]


@pytest.mark.parametrize(("solver", "name"), REFUSED)
def test_options_that_write_or_override_are_refused(solver: str, name: str) -> None:
    with pytest.raises(BadOption, match=name):
        adapters()[solver].refuse_options([name])
    if solver == "highs":
        with pytest.raises(BadOption, match=name):
            isolation.solve_isolated(FORM, solver, SolveRequest(options={name: "x"}))


@pytest.mark.parametrize("solver", FINE)
def test_other_options_are_passed_on(solver: str) -> None:
    adapters()[solver].refuse_options(FINE[solver])


@pytest.mark.parametrize(
    "limits",
    [{"memory_limit_gib": 1e308}, {"time_limit_s": 1e300}, {"threads": 10_000}, {"seed": 2**70}, {"seed": -1}],
)
def test_numbers_that_solvers_abort_on_are_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(BadOption, match=r"must be (at most|a whole number from)"):
        Task("alltoall.master", "ring:4", **limits)


# limits of this process -----------------------------------------------------------------------------------------------


#: The event of the running test, set at its end; a new one for each, so that no thread of an earlier test misses it.
RUNNING = [threading.Event()]


def busy() -> None:
    """Work until the end of the test that called it."""
    over = RUNNING[0]
    while not over.is_set():
        pass


def held() -> None:
    """Acquire a lock twice."""
    lock = threading.Lock()
    with lock:
        lock.acquire()


#: Steps that end after ten minutes or never.
ENDLESS = {"work": busy, "sleep": lambda: time.sleep(600), "lock": held, "queue": lambda: queue.Queue[int]().get()}


@pytest.mark.parametrize("step", ENDLESS)
@pytest.mark.parametrize("least_s", [0.0, 0.1])
def test_a_step_is_waited_for_until_its_deadline(step: str, least_s: float) -> None:
    with pytest.raises(LimitReached) as reached:
        limited(ENDLESS[step], time.monotonic() + 0.1, least_s=least_s)
    assert reached.value.termination is Termination.TIME_LIMIT


@pytest.fixture(autouse=True)
def ended() -> Iterator[None]:
    """After each test, let the steps end that no test waits for."""
    RUNNING[0] = threading.Event()
    yield
    RUNNING[0].set()


def test_a_deadline_holds_in_another_thread() -> None:
    endings = []

    def work() -> None:
        try:
            limited(busy, time.monotonic())
        except LimitReached as reached:
            endings.append(reached.termination)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert endings == [Termination.TIME_LIMIT]


def test_a_step_runs_as_if_it_were_called() -> None:
    seen = ContextVar("seen", default=0)
    seen.set(3)
    assert limited(seen.get, time.monotonic() + 60) == 3

    def raising() -> None:
        raise SystemExit(7)

    with pytest.raises(SystemExit, match="7"):
        limited(raising, time.monotonic() + 60)
    assert limited(threading.current_thread) is threading.current_thread()  # without a limit


@pytest.mark.parametrize("step", ["work", "sleep"])
def test_a_stop_ends_the_wait(step: str) -> None:
    stop = threading.Event()
    threading.Timer(0.1, stop.set).start()
    with pytest.raises(LimitReached) as reached:
        limited(ENDLESS[step], stop=stop)
    assert reached.value.termination is Termination.INTERRUPTED


_INTERRUPTED = """
import os, signal, threading, time
from opticoll.solvers.process.budget import limited

threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    limited(lambda: time.sleep(600), time.monotonic() + 600)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_ctrl_c_ends_the_wait_and_the_process_can_end() -> None:
    ended = subprocess.run([sys.executable, "-c", _INTERRUPTED], capture_output=True, text=True, timeout=60, check=True)
    assert (ended.stdout, ended.stderr) == ("interrupted\n", "")


def test_memory_of_this_process_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LimitReached) as reached:
        limited(busy, memory_limit_mb=1.0)
    assert reached.value.termination is Termination.MEMORY_LIMIT
    limits = Budget(Task("alltoall.master", "ring:4", memory_limit_gib=2.0), None)
    monkeypatch.setattr(budget, "own_memory_mb", lambda: limits.base_mb + 1.5 * 2**30 / 1e6)
    assert limits.memory_left_gib() == pytest.approx(0.5)


def slow(monkeypatch: pytest.MonkeyPatch, **changed: Any) -> None:
    """Give the master LP slow parts; with its layers loaded, models are built in this process, where it has them."""
    import cvxpy  # noqa: F401
    import pyomo.environ  # noqa: F401

    for method, function in changed.items():
        monkeypatch.setattr(formulation("alltoall.master"), method, function)


@pytest.mark.parametrize("endless_call", [busy, lambda: time.sleep(600)], ids=["work", "sleep"])
def test_building_counts_against_the_time_limit(endless_call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    slow(monkeypatch, pyomo=lambda data: endless_call())
    monkeypatch.setattr(building, "is_built_elsewhere", lambda *given, **named: False)
    run = solve.solve(Task("alltoall.master", "ring:4", "highs-simplex", form="pyomo", time_limit_s=0.5))
    assert run.termination is Termination.TIME_LIMIT
    assert "while the model was built" in str(run.record.message)
    assert run.bound is not None  # of the analytic bounds


def test_ctrl_c_ends_a_build(monkeypatch: pytest.MonkeyPatch) -> None:
    stop = threading.Event()
    slow(monkeypatch, pyomo=lambda data: (stop.set(), busy()))
    monkeypatch.setattr(building, "is_built_elsewhere", lambda *given, **named: False)
    run = solve.solve(Task("alltoall.master", "ring:4", "highs-simplex", form="pyomo"), stop=stop)
    assert run.termination is Termination.INTERRUPTED


def test_reading_counts_against_the_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solve, "READING_S", 0.05)
    monkeypatch.setattr(solve, "instance_of", lambda task: busy())
    with pytest.raises(LimitSpent, match="read and prepared") as caught:
        solve.solve(Task("alltoall.master", "ring:4", "highs-simplex", time_limit_s=0.2))
    assert caught.value.exit_status == 3


def past(step: Any, deadline: Any = None, **named: Any) -> Any:
    """As ``limited`` where the limit is over and work counts for little."""
    return limited(step, time.monotonic(), least_s=0.1)


def endless(monkeypatch: pytest.MonkeyPatch, hook: str, **changed: Any) -> Run:
    """Solve the master LP where a function of the formulation does not return, as if the limit were over by then."""
    slow(monkeypatch, **{hook: lambda *given: busy()}, **changed)
    monkeypatch.setattr(run_state, "limited", past)
    return solve.solve(Task("alltoall.master", "ring:4", "highs-simplex", form="pyomo", time_limit_s=3600.0))


@pytest.mark.parametrize("hook", ["_arrays", "_unfold", "residuals", "objective", "repair"])
def test_a_check_that_does_not_return_ends_the_solve(hook: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = {"residuals": lambda data, values: {"block": 1.0}} if hook == "repair" else {}
    run = endless(monkeypatch, hook, **wrong)
    assert (run.termination, run.exit_status) == (Termination.TIME_LIMIT, 3)
    assert not run.verified
    assert run.record.objective is None
    what = "unfold" if hook == "_unfold" else "residuals, objective or repair"
    message = f"{what} did not return within 3600 s of work, and the time limit of 3600 s has passed"
    assert f"formulation 'alltoall.master': {message}; no value is verified" in str(run.record.message)
    assert Store().save(run) is not None


@pytest.mark.parametrize("hook", ["certify", "_closed_forms", "metrics", "describe"])
def test_a_verified_value_outlasts_a_function_that_does_not_return(hook: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_state, "bounds_of", lambda formulation, ready: [])
    run = endless(monkeypatch, hook)
    assert run.exit_status == 0
    assert run.record.objective == pytest.approx(0.5)
    assert f"{hook.removeprefix('_')} did not return within 3600 s of work" in str(run.record.message)
    if hook == "metrics":
        assert run.record.metrics is not None
        assert run.record.metrics["conditional_on"] == "unknown"


def test_an_exact_step_keeps_the_run_if_its_check_does_not_return(monkeypatch: pytest.MonkeyPatch) -> None:
    task = Task("alltoall.master", "ring:4", "highs-simplex", time_limit_s=3600.0)
    run = solve.solve(task)
    monkeypatch.setattr(prove, "limited", past)
    monkeypatch.setattr(verify, "objective", lambda *given: busy())
    kept = prove.proven_exactly(run)
    assert kept.verified
    assert kept.proof is run.proof
    assert "the checks of the formulation did not return" in str(kept.record.message)


def test_only_a_time_limit_limits_the_check() -> None:
    plan = make_plan(Task("alltoall.master", "ring:4", "highs-simplex"))
    for limits in ({"memory_limit_gib": 2.0}, {"time_limit_s": 60.0}):
        task = Task("alltoall.master", "ring:4", **limits)
        during = RunState(task, plan, Budget(task, threading.Event()), None)
        here = during.asked("a check", None, threading.current_thread) is threading.current_thread()
        assert here is (task.time_limit_s is None)
    assert Budget(Task("alltoall.master", "ring:4", time_limit_s=3.0)).least_check_s() == budget.CHECK_S
    assert Budget(Task("alltoall.master", "ring:4", time_limit_s=900.0)).least_check_s() == 900.0


# incumbents -----------------------------------------------------------------------------------------------------------


def test_branching_keeps_the_incumbents_of_its_search(monkeypatch: pytest.MonkeyPatch) -> None:
    saved: list[tuple[Answer, float | None]] = []
    form = replace(FORM, integer=np.ones(2, dtype=bool), sense="min")

    def searching(form: StandardForm, name: str, request: SolveRequest, progress: Any) -> Outcome:
        progress(2.0, None, np.array([0.0, 1.0]))
        raise KeyboardInterrupt

    monkeypatch.setattr(isolation, "solve_here", searching)
    task = Task("lumorph.rounds", "lightpath:2x2")
    model = formulation("lumorph.rounds")
    monkeypatch.setattr(model, "_unfold", Formulation._unfold)
    data = model.prepare(parse("lightpath:2x2"))
    context = Context(task, data, None, {"search_s": 5.0}, None, solve.solve, lambda *both: saved.append(both))
    monkeypatch.setattr(StandardForm, "values", lambda self, x: {"x": x})
    with pytest.raises(KeyboardInterrupt):
        certified_branching._Proof(context, form).search()
    [(answer, value)] = saved
    assert answer.values is not None
    assert answer.values["x"].tolist() == [0.0, 1.0]
    assert value == 2.0


def test_placement_enumeration_keeps_its_incumbents() -> None:
    task = Task("sipml.placement", "op-graph:model=chain,splits=1x4", "placement-enumeration", settings={"k": "2"})
    plan = make_plan(task)
    saved: list[float | None] = []
    result = method_named("placement-enumeration")
    assert result is not None
    assert result.run is not None
    context = Context(
        task,
        plan.problem,
        plan.instance,
        plan.method_parameters,
        None,
        solve.solve,
        lambda answer, value: saved.append(value),
    )
    last = result.run(context)
    assert last.values is not None
    assert saved == sorted(saved, reverse=True)
    assert saved[-1] == pytest.approx(plan.problem.objective(last.values))

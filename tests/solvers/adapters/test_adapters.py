"""Contract suite: every solver adapter must give the same results on the same problems.

Each adapter solves all problems in one worker process, so that hundreds of checks start one process per solver.
Adapters whose package or licence is missing are skipped with the reason.
"""

from __future__ import annotations

import traceback
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from opticoll.errors import BadOption, MethodMismatch, OpticollError, SolverUnavailable
from opticoll.solvers.adapters import adapter, adapters
from opticoll.solvers.isolation import call_isolated, probe, solve_here, solve_isolated
from opticoll.solvers.standard_form import StandardForm
from opticoll.solvers.task import PrimalStatus, SolveRequest
from opticoll.solvers.verify import dual_bound, matrix_violations

if TYPE_CHECKING:
    from collections.abc import Iterator

INF = np.inf
NAMES = sorted(adapters())
LP_NAMES = [name for name in NAMES if adapters()[name].capabilities.lp]
MIP_NAMES = [name for name in NAMES if adapters()[name].capabilities.mip]
BAD_VALUES = {
    "highs": ("presolve", "blah"),
    "highs-simplex": ("simplex_iteration_limit", "many"),
    "highs-ipx": ("primal_feasibility_tolerance", -1.0),
    "highs-pdlp": ("threads", -3),
    "highs-hipo": ("presolve", "blah"),
    "glop": ("use_dual_simplex", "perhaps"),
    "pdlp": ("restart_strategy", "SOMETIMES"),
    "cp-sat": ("search_branching", "UPWARDS"),
    "scip": ("limits/gap", -1.0),
    "gurobi": ("Method", 99),
    "mosek": ("MSK_IPAR_NUM_THREADS", "x"),
    "clarabel": ("max_iter", "many"),
    "cupdlpx": ("iteration_limit", "many"),
    "xpress": ("timelimit", -5),
    "copt": ("LpMethod", 99),
    "cplex": ("lpmethod", 99),
}
MISSPELT = {
    "highs": ("tme_limit", "time_limit"),
    "glop": ("use_dual_simplx", "use_dual_simplex"),
    "pdlp": ("iteration_limt", "iteration_limit"),
    "cp-sat": ("max_time_in_second", "max_time_in_seconds"),
    "scip": ("limits/tim", "limits/time"),
    "gurobi": ("TimeLimt", "TimeLimit"),
    "mosek": ("MSK_IPAR_NUM_THREAD", "MSK_IPAR_NUM_THREADS"),
    "clarabel": ("max_itr", "max_iter"),
    "cupdlpx": ("iteration_limt", "iteration_limit"),
    "xpress": ("timelimt", "timelimit"),
    "copt": ("TimeLimt", "TimeLimit"),
    "cplex": ("timelimt", "timelimit"),
}


def make(
    A: Any, row_lower: Any, row_upper: Any, col_lower: Any, col_upper: Any, cost: Any, sense: Any = "min",
    offset: float = 0.0, integer: Any = None,
) -> StandardForm:  # fmt: skip
    vectors = [np.array(v, dtype=float) for v in (row_lower, row_upper, col_lower, col_upper, cost)]
    matrix = sp.csc_array(np.atleast_2d(np.array(A, dtype=float)))
    integers = None if integer is None else np.array(integer, dtype=bool)
    return StandardForm(matrix, *vectors, sense, offset, integers)


def mirrored(form: StandardForm) -> StandardForm:
    """The equivalent problem with the opposite sense, whose optimum is the negative."""
    sense: Any = "min" if form.sense == "max" else "max"
    return replace(form, cost=-form.cost, sense=sense, offset=-form.offset)


def boxed(form: StandardForm) -> StandardForm:
    """The same problem with large finite bounds, so that a reduced cost of 1e-9 does not spoil the dual bound."""
    lower, upper = np.maximum(form.col_lower, -100.0), np.minimum(form.col_upper, 100.0)
    return replace(form, col_lower=lower, col_upper=upper)


def two_rows() -> StandardForm:
    return make([[1, 2], [3, 1]], [-INF, -INF], [4, 6], [0, 0], [INF, INF], [3, 2], "max", 1.0)


def everything() -> StandardForm:
    """Equality, range, both inequalities, a free row; free, boxed and fixed columns; an offset."""
    return make(
        [[1, 1, 1, 0, 1], [1, -1, 0, 0, 0], [0, 1, 0, 1, 0], [1, 1, 1, 1, 0], [2, 0, 1, 0, 0]],
        [2, -1, -INF, -4, -INF], [2, 1, 3, INF, INF],
        [-INF, 0, 0, -5, 0.25], [INF, INF, 1.5, 5, 0.25],
        [1, 2, -3, 1, 0.5], "min", -2.5,
    )  # fmt: skip


def knapsack(size: int = 20, integer: bool = True) -> StandardForm:
    rng = np.random.default_rng(7)
    weight, value = rng.integers(5, 40, size), rng.integers(5, 40, size)
    return make(weight, [-INF], [weight.sum() // 3], [0] * size, [1] * size, value, "max", 10.0, [integer] * size)


def knapsack_optimum(size: int) -> float:
    """The optimum of :func:`knapsack` by dynamic programming."""
    form = knapsack(size)
    best = np.zeros(int(form.row_upper[0]) + 1)
    for weight, value in zip(form.A.toarray()[0].astype(int), form.cost, strict=True):
        best[weight:] = np.maximum(best[weight:], best[:-weight] + value)
    return float(best[-1] + form.offset)


def fractional_rows() -> StandardForm:
    return make(
        [[0.1, 0.2, 0.25]], [-INF], [0.5], [0, 0, -2], [3, 3, 3], [2, 3, 4], "max", 0.5, [True] * 3
    )  # fmt: skip


def fractional_optimum() -> float:
    """By enumeration, in twentieths."""
    points = [(x, y, z) for x in range(4) for y in range(4) for z in range(-2, 4) if 2 * x + 4 * y + 5 * z <= 10]
    return max(2 * x + 3 * y + 4 * z for x, y, z in points) + 0.5


def assignment() -> StandardForm:
    """3 x 3 with costs whose best assignment is 1 + 2 + 2 = 5, by hand."""
    cost = [[4, 1, 3], [2, 0, 5], [3, 2, 2]]
    rows = [[1.0 if j // 3 == i else 0.0 for j in range(9)] for i in range(3)]
    rows += [[1.0 if j % 3 == i else 0.0 for j in range(9)] for i in range(3)]
    return make(rows, [1] * 6, [1] * 6, [0] * 9, [1] * 9, np.ravel(cost), "min", 0.0, [True] * 9)


def tight_knapsack(rows: int = 30, size: int = 100) -> StandardForm:
    """A multi-dimensional knapsack too hard to prove in a second; 0 is feasible."""
    rng = np.random.default_rng(1)
    A = rng.integers(1, 1000, (rows, size))
    value = A.mean(axis=0).astype(int) + rng.integers(0, 500, size)
    return make(A, [-INF] * rows, A.sum(axis=1) // 2, [0] * size, [1] * size, value, "max", 0.0, [True] * size)


def market_split(rows: int = 6, size: int = 50) -> StandardForm:
    """Equalities too hard for branch and bound to satisfy in a second."""
    A = np.random.default_rng(3).integers(0, 100, (rows, size))
    right = A.sum(axis=1) // 2
    return make(A, right, right, [0] * size, [1] * size, np.arange(size), "min", 0.0, [True] * size)


def slow_lp(rows: int = 500, size: int = 700) -> StandardForm:
    rng = np.random.default_rng(5)
    return make(
        rng.random((rows, size)), [-INF] * rows, [1.0] * rows, [0] * size, [INF] * size, 1 + rng.random(size), "max"
    )


# name: (problem, known optimum or termination)
PROBLEMS: dict[str, tuple[StandardForm, float | set[str]]] = {
    "two-rows": (two_rows(), 8.2),
    "two-rows-mirrored": (mirrored(two_rows()), -8.2),
    "everything": (everything(), -11.625),
    "everything-mirrored": (mirrored(everything()), 11.625),
    "no-rows": (make(np.zeros((0, 2)), [], [], [-1, 0], [2, 3], [1, -1], "max", 4.0), 6.0),
    "no-cost": (make([[1, 1]], [1], [2], [0, 0], [INF, INF], [0, 0], "min", 3.0), 3.0),
    "no-columns": (make(np.zeros((1, 0)), [-1], [1], [], [], [], "min", 3.0), 3.0),
    "empty-row": (make([[0, 0], [1, 1]], [-1, 1], [1, INF], [0, 0], [INF, INF], [1, 2]), 1.0),
    "infeasible": (
        make([[1, 1], [1, 1]], [3, -INF], [INF, 1], [0, 0], [9, 9], [1, 1]),
        {"infeasible", "infeasible-or-unbounded"},
    ),
    "crossing-bounds": (make([[1]], [0], [1], [2], [1], [1]), {"infeasible"}),
    "unbounded": (
        make([[1, -1]], [-INF], [1], [0, 0], [INF, INF], [1, 1], "max"),
        {"unbounded", "infeasible-or-unbounded"},
    ),
    "knapsack": (knapsack(), knapsack_optimum(20)),
    "knapsack-mirrored": (mirrored(knapsack()), -knapsack_optimum(20)),
    "assignment": (assignment(), 5.0),
    "fractional-rows": (fractional_rows(), fractional_optimum()),
    "integer-infeasible": (
        make([[2, 2]], [3], [3], [0, 0], [5, 5], [1, 1], "min", 0.0, [True, True]),
        {"infeasible", "infeasible-or-unbounded"},
    ),
}  # fmt: skip
SOLVED = [name for name, (_, known) in PROBLEMS.items() if isinstance(known, float)]
UNSOLVED = [name for name in PROBLEMS if name not in SOLVED]


def accepts(name: str, form: StandardForm) -> bool:
    capabilities = adapters()[name].capabilities
    return capabilities.mip if form.is_mip else capabilities.lp


# In the worker -------------------------------------------------------------------------------------------------


def battery(arguments: dict[str, Any], arrays: Any, report: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Solve all problems with one adapter; runs in a worker."""
    name = arguments["adapter"]
    outcomes: dict[str, Any] = {}
    vectors: dict[str, Any] = {}

    def run(case: str, form: StandardForm, request: SolveRequest) -> None:
        reports: list[list[float | None]] = []
        try:
            outcome = solve_here(form, name, request, lambda value, bound, x=None: reports.append([value, bound]))
        except OpticollError as error:
            outcomes[case] = {"error": type(error).__name__, "text": str(error)}
            return
        outcomes[case] = {key: value for key, value in vars(outcome).items() if key not in ("x", "row_duals")}
        outcomes[case]["reports"] = reports
        vectors[f"{case} x"], vectors[f"{case} y"] = outcome.x, outcome.row_duals

    default = SolveRequest(time_limit_s=120.0, threads=1, rel_tol=1e-7)
    for case, (form, _) in PROBLEMS.items():
        if accepts(name, form):
            run(case, form, default)
    capabilities = adapters()[name].capabilities
    simple = two_rows() if capabilities.lp else knapsack()
    wrong, _ = MISSPELT.get(name, MISSPELT["highs"])
    run("misspelt", simple, SolveRequest(options={wrong: 1}))
    run("bad-value", simple, SolveRequest(options=dict([BAD_VALUES[name]])))
    if capabilities.mip:
        for trial in ("first", "second"):
            run(f"seed-{trial}", knapsack(40), SolveRequest(threads=1, seed=11, time_limit_s=120.0))
        for limit in (0.6, 3.0, 15.0, 60.0):  # on a busy machine no incumbent may exist at the first limit
            run("limit-with-incumbent", tight_knapsack(), SolveRequest(threads=1, time_limit_s=limit))
            if outcomes["limit-with-incumbent"].get("primal") == "feasible":
                break
        run("limit-without", market_split(), SolveRequest(threads=1, time_limit_s=0.6))
    if capabilities.integer_data_only:
        run("unbounded-column", make([[1]], [0], [5], [0], [INF], [1], "min", 0.0, [True]), default)
        irrational = make([[np.sqrt(2), 1]], [0], [5], [0, 0], [3, 3], [1, 1], "max", 0.0, [True, True])
        run("irrational-row", irrational, default)
    if capabilities.licensed:
        run("too-large", knapsack(12_000, integer=False), SolveRequest(threads=1))
    elif capabilities.lp:
        run("slow", slow_lp(), SolveRequest(threads=1, time_limit_s=0.05))
    if capabilities.lp:
        outcomes["disagreement"] = _disagreement(name)
    return outcomes, {key: array for key, array in vectors.items() if array is not None}


def _disagreement(name: str) -> str:
    """Compare random LPs with an independent solver; return the first difference, or an empty string."""
    from scipy.optimize import linprog

    exact = adapters()[name].capabilities.exact
    expected = {
        0: {"optimal"},
        2: {"infeasible", "infeasible-or-unbounded"},
        3: {"unbounded", "infeasible-or-unbounded"},
    }

    @settings(
        max_examples=25, deadline=None, derandomize=True, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(random_lps())
    def agrees(form: StandardForm) -> None:
        flip = -1.0 if form.sense == "max" else 1.0
        dense = form.A.toarray()
        rows = np.vstack([dense, -dense])
        right = np.concatenate([form.row_upper, -form.row_lower])
        kept = np.isfinite(right)
        bounds = list(zip(form.col_lower, form.col_upper, strict=True))
        known = linprog(flip * form.cost, rows[kept], right[kept], bounds=bounds, method="highs")
        outcome = solve_here(form, name, SolveRequest(threads=1, rel_tol=1e-8, time_limit_s=60))
        word = str(outcome.termination)
        if not exact and word in ("tolerance-not-reached", "iteration-limit", "time-limit"):
            return  # the solver reports that it did not converge
        assert word in expected.get(known.status, {word}), f"{word}, expected {expected[known.status]}: {form}"
        if known.status == 0:
            value = flip * known.fun + form.offset
            assert outcome.objective == pytest.approx(value, rel=1e-5, abs=1e-5), form
            assert outcome.x is not None
            assert max(matrix_violations(form, outcome.x).values()) < (1e-5 if exact else 1e-4)
            if outcome.row_duals is not None:
                assert dual_bound(boxed(form), outcome.row_duals) == pytest.approx(value, rel=1e-4, abs=1e-4), form

    try:
        agrees()
    except AssertionError as error:
        return f"line {traceback.extract_tb(error.__traceback__)[-1].lineno}: {error}"
    return ""


@st.composite
def random_lps(draw: st.DrawFn) -> StandardForm:
    """Small LPs with small integer data, including degenerate, infeasible and unbounded ones."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    m, n = draw(st.integers(0, 5)), draw(st.integers(1, 6))
    A = rng.integers(-3, 4, (m, n)) * (rng.random((m, n)) < 0.7)
    inside = rng.integers(-2, 3, n)
    middle = A @ inside
    kind = rng.integers(0, 5, m)
    slack = rng.integers(0, 4, m)
    lower = np.where((kind == 1) | (kind == 4), -INF, np.where(kind == 0, middle, middle - slack))
    upper = np.where((kind == 2) | (kind == 4), INF, np.where(kind == 0, middle, middle + slack))
    if draw(st.booleans()) and m:  # perhaps infeasible
        upper[0] = lower[0] = middle[0] + draw(st.integers(1, 9))
    box = rng.integers(0, 3, n)
    col_lower = np.where(box == 2, -INF, inside - rng.integers(0, 3, n))
    col_upper = np.where(box == 0, inside + rng.integers(0, 4, n), INF)
    sense = draw(st.sampled_from(["min", "max"]))
    return make(A.reshape(m, n), lower, upper, col_lower, col_upper, rng.integers(-4, 5, n), sense, 1.5)


# In the tests --------------------------------------------------------------------------------------------------


RESULTS: dict[str, Future[dict[str, dict[str, Any]]]] = {}


@pytest.fixture(scope="module", autouse=True)
def batteries(request: pytest.FixtureRequest) -> Iterator[None]:
    """Start the batteries of the selected tests, two at a time."""
    calls = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]
    names = sorted({call["name"] for call in calls if call.get("name") in NAMES})
    with ThreadPoolExecutor(2) as pool:
        RESULTS.update({name: pool.submit(results, name) for name in names})
        yield
        pool.shutdown(cancel_futures=True)


def results(name: str) -> dict[str, dict[str, Any]]:
    state = probe(name)
    if not state.usable:
        return {"skip": {"reason": f"{name}: {state.state}"}}
    answer = call_isolated(f"{__name__}:battery", {"adapter": name}, wall_limit_s=900, threads=1)
    if not answer.finished:
        return {"broken": {"reason": f"{name}: {answer.message}"}}
    found = dict(answer.values)
    for key, array in answer.arrays.items():
        case, which = key.rsplit(" ", 1)
        found[case][which] = array
    return found


def result(name: str, case: str) -> dict[str, Any]:
    found = RESULTS[name].result()
    if "skip" in found:
        pytest.skip(found["skip"]["reason"])
    if "broken" in found:
        pytest.fail(found["broken"]["reason"])
    if case not in found:
        pytest.skip(f"{name} does not take this class of problems")
    return found[case]


@pytest.mark.parametrize("case", SOLVED)
@pytest.mark.parametrize("name", NAMES)
def test_known_optimum(name: str, case: str) -> None:
    form, known = PROBLEMS[case]
    got = result(name, case)
    capabilities = adapter(name).capabilities
    assert got.get("termination") == "optimal", got
    assert got["primal"] == "feasible" if capabilities.exact else got["primal"] in ("feasible", "approximate")
    assert got["objective"] == pytest.approx(known, abs=1e-5)
    assert max(matrix_violations(form, got["x"]).values()) < 1e-5
    assert got["objective"] == pytest.approx(form.objective(got["x"]), abs=1e-9)
    if capabilities.bound:
        assert got["bound"] == pytest.approx(known, abs=1e-5)
    if form.is_mip:
        assert "y" not in got
    assert got["raw"]
    assert got["algorithm"]
    assert got["version"]
    assert got["solve_s"] is None or got["solve_s"] >= 0


@pytest.mark.parametrize("case", [case for case in SOLVED if not PROBLEMS[case][0].is_mip])
@pytest.mark.parametrize("name", [name for name in LP_NAMES if adapters()[name].capabilities.duals])
def test_duals_are_shadow_prices(name: str, case: str) -> None:
    form, known = PROBLEMS[case]
    assert isinstance(known, float)
    got = result(name, case)
    duals = got["y"]
    assert duals.shape == (form.A.shape[0],)
    flip = 1.0 if form.sense == "max" else -1.0
    slack_above = form.row_upper - form.A @ got["x"]
    slack_below = form.A @ got["x"] - form.row_lower
    for y, above, below in zip(flip * duals, slack_above, slack_below, strict=True):
        assert y <= 1e-5 or above < 1e-4  # complementary slackness, and the sign of a binding <= row
        assert y >= -1e-5 or below < 1e-4
    assert dual_bound(boxed(form), duals) == pytest.approx(known, abs=1e-4)  # strong duality, our arithmetic


@pytest.mark.parametrize("case", UNSOLVED)
@pytest.mark.parametrize("name", NAMES)
def test_problem_without_solution_returns_none(name: str, case: str) -> None:
    got = result(name, case)
    assert got["termination"] in PROBLEMS[case][1]  # type: ignore[operator]
    assert got["primal"] == "none"
    assert got["objective"] is None
    assert "x" not in got


@pytest.mark.parametrize("name", MIP_NAMES)
def test_limit_keeps_incumbent_and_bound(name: str) -> None:
    form = tight_knapsack()
    got = result(name, "limit-with-incumbent")
    assert got["termination"] == "time-limit"
    assert got["primal"] == "feasible"
    assert max(matrix_violations(form, got["x"]).values()) < 1e-6
    assert got["bound"] > got["objective"]
    values = [value for _, value in got["incumbents"]]
    assert values
    assert values == sorted(values)
    assert values[-1] == pytest.approx(got["objective"])
    assert [value for value, _ in got["reports"] if value is not None] == values


@pytest.mark.parametrize("name", MIP_NAMES)
def test_limit_without_incumbent_returns_no_solution(name: str) -> None:
    got = result(name, "limit-without")
    if got["termination"] == "infeasible":
        pytest.skip(f"{name} proved it within the limit")
    assert got["termination"] == "time-limit"
    assert got["primal"] == "none"
    assert got["objective"] is None
    assert "x" not in got
    assert got["bound"] is None or got["bound"] >= 0


@pytest.mark.parametrize("name", [name for name in LP_NAMES if not adapters()[name].capabilities.licensed])
def test_lp_at_a_limit_reports_the_status_of_its_vector(name: str) -> None:
    got = result(name, "slow")
    assert got["termination"] in ("time-limit", "optimal")
    if "x" in got:
        feasible = max(matrix_violations(slow_lp(), got["x"]).values()) <= 1e-6
        assert got["primal"] == "infeasible" or feasible or got["termination"] == "optimal"
    else:
        assert got["primal"] == "none"
    if got["termination"] == "time-limit":
        assert got["bound"] is None


@pytest.mark.parametrize("name", NAMES)
def test_misspelt_option_suggests_the_closest(name: str) -> None:
    got = result(name, "misspelt")
    wrong, right = MISSPELT.get(name, MISSPELT["highs"])
    assert got.get("error") == "BadOption", got
    assert wrong in got["text"]
    assert right in got["text"]


@pytest.mark.parametrize("name", NAMES)
def test_invalid_option_value_is_rejected(name: str) -> None:
    got = result(name, "bad-value")
    assert got.get("error") == "BadOption", got
    assert BAD_VALUES[name][0].lower() in got["text"].lower()


@pytest.mark.parametrize("name", MIP_NAMES)
def test_same_seed_same_answer(name: str) -> None:
    first, second = result(name, "seed-first"), result(name, "seed-second")
    assert first["termination"] == second["termination"] == "optimal"
    np.testing.assert_array_equal(first["x"], second["x"])
    assert first["nodes"] == second["nodes"]


@pytest.mark.parametrize("name", [name for name in NAMES if adapters()[name].capabilities.licensed])
def test_too_small_licence_is_an_error(name: str) -> None:
    got = result(name, "too-large")
    if "error" not in got:
        assert got["termination"] == "optimal"
        pytest.skip(f"{name} has a full licence here")
    assert got["error"] == "SolverUnavailable"
    assert "licence" in got["text"] or "community edition" in got["text"]
    assert "'highs'" in got["text"]


@pytest.mark.parametrize("name", LP_NAMES)
def test_random_lps_agree_with_an_independent_solver(name: str) -> None:
    assert not result(name, "disagreement")


@pytest.mark.parametrize("name", [name for name in NAMES if name not in MIP_NAMES])
def test_integer_problem_is_rejected_before_a_worker_starts(name: str) -> None:
    with pytest.raises(MethodMismatch, match="integer"):
        solve_isolated(knapsack(), name, SolveRequest())


def test_cp_sat_rejects_continuous_columns() -> None:
    with pytest.raises(MethodMismatch, match="continuous"):
        solve_isolated(two_rows(), "cp-sat", SolveRequest())


@pytest.mark.parametrize("name", [name for name in NAMES if adapters()[name].capabilities.integer_data_only])
def test_data_that_cannot_be_scaled_to_integers_are_rejected(name: str) -> None:
    for case, message in (("unbounded-column", "column 0 is in [0.0, inf]"), ("irrational-row", "row 0")):
        got = result(name, case)
        assert got.get("error") == "MethodMismatch", got
        assert message in got["text"]


def test_unknown_solver_suggests_the_closest() -> None:
    with pytest.raises(MethodMismatch, match="'highs'"):
        adapter("hihgs")


@pytest.mark.parametrize(
    "wrong",
    [{"time_limit_s": 0.0}, {"threads": 0}, {"rel_tol": -1.0}, {"seed": -1}, {"warm_start": np.zeros(3)}],
    ids=lambda wrong: next(iter(wrong)),
)
def test_invalid_requests_are_rejected(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadOption, match=next(iter(wrong))):
        solve_isolated(two_rows(), "highs", SolveRequest(**wrong))


def test_missing_package_is_reported_with_install_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter("copt"), "package", "no_such_package")
    with pytest.raises(SolverUnavailable, match=r"opticoll\[copt\]") as caught:
        solve_isolated(two_rows(), "copt", SolveRequest())
    assert caught.value.exit_status == 4


def test_every_adapter_is_described() -> None:
    for name, solver in adapters().items():
        assert solver.name == name
        assert solver.title
        assert solver.install
        assert solver.installed() == (solver.version() is not None)


def test_hipo_is_usable_only_if_the_wheel_includes_it() -> None:
    if not adapter("highs-hipo").installed():
        pytest.skip("highspy is not installed")
    state = probe("highs-hipo")
    if state.usable:
        outcome = solve_isolated(two_rows(), "highs-hipo", SolveRequest())
        assert outcome.primal == PrimalStatus.APPROXIMATE
        assert "HiPO" in (outcome.algorithm or "")
    else:
        assert "HIPO" in state.remedy
        with pytest.raises(SolverUnavailable, match="HiPO"):
            solve_isolated(two_rows(), "highs-hipo", SolveRequest())

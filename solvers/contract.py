"""Contract of solver adapters, as tests for pytest: what every adapter must do, ours and those of plug-ins.

A test file for an adapter called ``mine``::

    import opticoll as oc
    from opticoll.solvers.contract import AdapterContract

    oc.load_plugin("mine.py")

    class TestMine(AdapterContract):
        name = "mine"
        misspelt = ("presolv", "presolve")     # a wrong option, and the one that the error must suggest
        bad_value = ("presolve", "perhaps")    # an option with a value that is refused

An adapter without options omits the last two.

The adapter solves all problems in one worker process, so the many checks start only one process. Tests of features that
the adapter does not declare in its :class:`~opticoll.solvers.adapters.interface.Capabilities` are skipped.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest
import scipy.sparse as sp

from opticoll.errors import MethodMismatch, OpticollError
from opticoll.formulations.standard_form import StandardForm
from opticoll.solvers.adapters import adapter
from opticoll.solvers.process.isolation import call_isolated, probe, solve_here, solve_isolated
from opticoll.solvers.task import SolveRequest
from opticoll.solvers.verify import dual_bound, matrix_violations

if TYPE_CHECKING:
    Results = dict[str, dict[str, Any]]

INF = np.inf
#: Random LPs that are compared with an independent solver.
RANDOM_LPS = 25


def make(
    A: Any,
    row_lower: Any,
    row_upper: Any,
    col_lower: Any,
    col_upper: Any,
    cost: Any,
    sense: Any = "min",
    offset: float = 0.0,
    integer: Any = None,
) -> StandardForm:
    """A problem from lists and dense arrays."""
    below, above, low, high, costs = (
        np.array(v, dtype=float) for v in (row_lower, row_upper, col_lower, col_upper, cost)
    )
    matrix = sp.csc_array(np.atleast_2d(np.array(A, dtype=float)))
    integers = None if integer is None else np.array(integer, dtype=bool)
    return StandardForm(matrix, below, above, low, high, costs, sense, offset, integers)


def mirrored(form: StandardForm) -> StandardForm:
    """The equivalent problem with the opposite sense, whose optimum has the opposite sign."""
    sense: Any = "min" if form.sense == "max" else "max"
    return replace(form, cost=-form.cost, sense=sense, offset=-form.offset)


def boxed(form: StandardForm) -> StandardForm:
    """The same problem with large finite bounds, so a reduced cost of 1e-9 does not spoil the dual bound."""
    lower, upper = np.maximum(form.col_lower, -100.0), np.minimum(form.col_upper, 100.0)
    return replace(form, col_lower=lower, col_upper=upper)


def two_rows() -> StandardForm:
    """Two inequalities; the optimum is 8.2, by hand."""
    return make([[1, 2], [3, 1]], [-INF, -INF], [4, 6], [0, 0], [INF, INF], [3, 2], "max", 1.0)


def everything() -> StandardForm:
    """Equality, range, both inequalities, a free row; free, boxed and fixed columns; an offset."""
    return make(
        [[1, 1, 1, 0, 1], [1, -1, 0, 0, 0], [0, 1, 0, 1, 0], [1, 1, 1, 1, 0], [2, 0, 1, 0, 0]],
        [2, -1, -INF, -4, -INF],
        [2, 1, 3, INF, INF],
        [-INF, 0, 0, -5, 0.25],
        [INF, INF, 1.5, 5, 0.25],
        [1, 2, -3, 1, 0.5],
        "min",
        -2.5,
    )


def knapsack(size: int = 20, integer: bool = True) -> StandardForm:
    """A knapsack problem with random whole weights and values, or its relaxation."""
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
    """Integer variables with fractional coefficients."""
    return make([[0.1, 0.2, 0.25]], [-INF], [0.5], [0, 0, -2], [3, 3, 3], [2, 3, 4], "max", 0.5, [True] * 3)


def fractional_optimum() -> float:
    """The optimum of :func:`fractional_rows` by enumeration, in twentieths."""
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
    """A dense LP that takes longer than its limit."""
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
}
SOLVED = [name for name, (_, known) in PROBLEMS.items() if isinstance(known, float)]
UNSOLVED = [name for name in PROBLEMS if name not in SOLVED]


# In the worker -------------------------------------------------------------------------------------------------


def battery(name: str, misspelt: str, bad_value: tuple[str, Any] | None, report: Any) -> dict[str, Any]:
    """Solve all problems with one adapter; runs in a worker."""
    outcomes: dict[str, Any] = {}

    def run(case: str, form: StandardForm, request: SolveRequest) -> None:
        reports: list[list[float | None]] = []
        try:
            outcome = solve_here(form, name, request, lambda value, bound, x=None: reports.append([value, bound]))
        except OpticollError as error:
            outcomes[case] = {"error": type(error).__name__, "text": str(error)}
            return
        found = {key: value for key, value in vars(outcome).items() if key not in ("x", "row_duals")}
        vectors = {key: vector for key, vector in (("x", outcome.x), ("y", outcome.row_duals)) if vector is not None}
        outcomes[case] = {**found, **vectors, "reports": reports}

    default = SolveRequest(time_limit_s=120.0, threads=1, rel_tol=1e-7)
    capabilities = adapter(name).capabilities
    for case, (form, _) in PROBLEMS.items():
        if capabilities.mip if form.is_mip else capabilities.lp:
            run(case, form, default)
    simple = two_rows() if capabilities.lp else knapsack()
    run("misspelt", simple, SolveRequest(options={misspelt: 1}))
    if bad_value is not None:
        run("bad-value", simple, SolveRequest(options=dict([bad_value])))
    if capabilities.mip:
        for trial in ("first", "second"):
            run(f"seed-{trial}", knapsack(40), SolveRequest(threads=1, seed=11, time_limit_s=120.0))
        for limit in (0.6, 3.0, 15.0, 60.0):  # on a busy machine no incumbent may exist at the first limit
            run("limit-with-incumbent", tight_knapsack(), SolveRequest(threads=1, time_limit_s=limit))
            if outcomes["limit-with-incumbent"].get("objective") is not None:
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
        result = (_disagreement(name, random_lp(seed), seed) for seed in range(RANDOM_LPS))
        outcomes["disagreement"] = {"text": next(filter(None, result), "")}
    return outcomes


def _disagreement(name: str, form: StandardForm, seed: int) -> str:
    """Describe how the adapter differs from scipy on an LP; empty if it does not."""
    from scipy.optimize import linprog

    exact = adapter(name).capabilities.exact
    flip = -1.0 if form.sense == "max" else 1.0
    dense = form.A.toarray()
    rows, right = np.vstack([dense, -dense]), np.concatenate([form.row_upper, -form.row_lower])
    kept = np.isfinite(right)
    bounds = list(zip(form.col_lower, form.col_upper, strict=True))
    known = linprog(flip * form.cost, rows[kept], right[kept], bounds=bounds, method="highs")
    words = {
        0: {"optimal"},
        2: {"infeasible", "infeasible-or-unbounded"},
        3: {"unbounded", "infeasible-or-unbounded"},
    }
    outcome = solve_here(form, name, SolveRequest(threads=1, rel_tol=1e-8, time_limit_s=60))
    word = str(outcome.termination)
    if not exact and word in ("tolerance-not-reached", "iteration-limit", "time-limit"):
        return ""  # the solver reports that it did not converge
    if word not in words.get(known.status, {word}):
        return f"random_lp({seed}): {word}, expected {words[known.status]}"
    if known.status != 0:
        return ""
    value = flip * known.fun + form.offset
    if outcome.objective is None or outcome.x is None or not np.isclose(outcome.objective, value, rtol=1e-5, atol=1e-5):
        return f"random_lp({seed}): objective {outcome.objective}, expected {value}"
    worst = max(matrix_violations(form, outcome.x).values())
    if worst >= (1e-5 if exact else 1e-4):
        return f"random_lp({seed}): its solution violates a row or a bound by {worst}"
    if outcome.row_duals is not None:
        proven = dual_bound(boxed(form), outcome.row_duals)
        if not np.isclose(proven, value, rtol=1e-4, atol=1e-4):
            return f"random_lp({seed}): its duals prove {proven}, expected {value}"
    return ""


def random_lp(seed: int) -> StandardForm:
    """A random small LP with small integer data; some are degenerate, infeasible or unbounded."""
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(0, 6)), int(rng.integers(1, 7))
    A = rng.integers(-3, 4, (m, n)) * (rng.random((m, n)) < 0.7)
    inside = rng.integers(-2, 3, n)
    middle = A @ inside
    kind = rng.integers(0, 5, m)
    slack = rng.integers(0, 4, m)
    lower = np.where((kind == 1) | (kind == 4), -INF, np.where(kind == 0, middle, middle - slack))
    upper = np.where((kind == 2) | (kind == 4), INF, np.where(kind == 0, middle, middle + slack))
    if rng.random() < 0.5 and m:  # perhaps infeasible
        upper[0] = lower[0] = middle[0] + rng.integers(1, 10)
    box = rng.integers(0, 3, n)
    col_lower = np.where(box == 2, -INF, inside - rng.integers(0, 3, n))
    col_upper = np.where(box == 0, inside + rng.integers(0, 4, n), INF)
    sense = "min" if rng.random() < 0.5 else "max"
    return make(A.reshape(m, n), lower, upper, col_lower, col_upper, rng.integers(-4, 5, n), sense, 1.5)


# In the tests --------------------------------------------------------------------------------------------------


def results(name: str, misspelt: str, bad_value: tuple[str, Any] | None) -> Results:
    """Results of an adapter on all problems, or ``{"skip": reason}`` if it cannot be used here."""
    state = probe(name)
    if not state.usable:
        return {"skip": {"reason": f"{name}: {state.state}"}}
    arguments = {"name": name, "misspelt": misspelt, "bad_value": bad_value}
    answer = call_isolated("opticoll.solvers.contract:battery", arguments, wall_limit_s=900, threads=1)
    if not answer.finished:
        return {"broken": {"reason": f"{name}: {answer.message}"}}
    found: Results = answer.values
    return found


class AdapterContract:
    """Tests of an adapter: subclass it in a test file with the name of the adapter and two wrong options.

    By default the wrong option is one that no solver has, without a suggestion, and no invalid value is tried.
    """

    name: ClassVar[str]
    misspelt: ClassVar[tuple[str, ...]] = ("no_such_option",)
    bad_value: ClassVar[tuple[str, Any] | None] = None

    @classmethod
    @cache
    def outcomes(cls) -> Results:
        """Solve all problems, once for the class."""
        return results(cls.name, cls.misspelt[0], cls.bad_value)

    def result(self, case: str) -> dict[str, Any]:
        """The result of one problem; skips the test where there is none."""
        outcome = self.outcomes()
        if "skip" in outcome:
            pytest.skip(outcome["skip"]["reason"])
        if "broken" in outcome:
            pytest.fail(outcome["broken"]["reason"])
        if case not in outcome:
            pytest.skip(f"{self.name} does not support this class of problems")
        return outcome[case]

    def needs(self, capability: str) -> None:
        """Skip the test of a capability that the adapter does not declare."""
        if not getattr(adapter(self.name).capabilities, capability):
            pytest.skip(f"{self.name} does not declare {capability!r}")

    @pytest.mark.parametrize("case", SOLVED)
    def test_known_optimum(self, case: str) -> None:
        """Value, vector, bound and status of problems whose optimum is known."""
        form, known = PROBLEMS[case]
        got = self.result(case)
        capabilities = adapter(self.name).capabilities
        assert got.get("termination") == "optimal", got
        assert got["objective"] == pytest.approx(known, abs=1e-5), (got["objective"], known)
        assert max(matrix_violations(form, got["x"]).values()) < 1e-5, matrix_violations(form, got["x"])
        assert got["objective"] == pytest.approx(form.objective(got["x"]), abs=1e-9), "objective is not that of x"
        if capabilities.bound:
            assert got["bound"] == pytest.approx(known, abs=1e-5), (got["bound"], known)
        if form.is_mip:
            assert "y" not in got, "an integer problem has no duals"
        for name in ("raw", "algorithm", "version"):
            assert got[name], f"{name} is empty"
        assert got["solve_s"] is None or got["solve_s"] >= 0

    @pytest.mark.parametrize("case", [case for case in SOLVED if not PROBLEMS[case][0].is_mip])
    def test_duals_are_shadow_prices(self, case: str) -> None:
        """Sign, complementary slackness and strong duality, computed outside the solver."""
        self.needs("duals")
        form, known = PROBLEMS[case]
        got = self.result(case)
        assert "y" in got, "duals are declared and missing"
        duals = got["y"]
        assert duals.shape == (form.A.shape[0],), duals.shape
        flip = 1.0 if form.sense == "max" else -1.0
        above, below = form.row_upper - form.A @ got["x"], form.A @ got["x"] - form.row_lower
        assert ((flip * duals <= 1e-5) | (above < 1e-4)).all(), f"sign of the duals: {duals}"
        assert ((flip * duals >= -1e-5) | (below < 1e-4)).all(), f"sign of the duals: {duals}"
        proven = dual_bound(boxed(form), duals)
        assert proven == pytest.approx(known, abs=1e-4), f"duals {duals} prove {proven}, expected {known}"

    @pytest.mark.parametrize("case", UNSOLVED)
    def test_problem_without_solution_returns_none(self, case: str) -> None:
        """Infeasible and unbounded problems have no vector and no value."""
        got = self.result(case)
        assert got["termination"] in PROBLEMS[case][1], got  # type: ignore[operator]
        assert got["objective"] is None, got
        assert "x" not in got

    def test_limit_keeps_incumbent_and_bound(self) -> None:
        """At a time limit the incumbent is kept, and reported while the solver runs if that is declared."""
        self.needs("mip")
        got = self.result("limit-with-incumbent")
        assert got["termination"] == "time-limit", got["termination"]
        assert "x" in got, "the incumbent is missing"
        assert max(matrix_violations(tight_knapsack(), got["x"]).values()) < 1e-6
        if adapter(self.name).capabilities.bound:
            assert got["bound"] > got["objective"], (got["bound"], got["objective"])
        values = [value for _, value in got["incumbents"]]
        assert values == sorted(values), "incumbents do not improve"
        assert [value for value, _ in got["reports"] if value is not None] == values, "reports are not the incumbents"
        if adapter(self.name).capabilities.incumbents:
            assert values, "incumbents are declared and missing"
            assert values[-1] == pytest.approx(got["objective"])

    def test_limit_without_incumbent_returns_no_solution(self) -> None:
        """At a time limit without an incumbent there is no vector and no value."""
        self.needs("mip")
        got = self.result("limit-without")
        if got["termination"] == "infeasible":
            pytest.skip(f"{self.name} proved it within the limit")
        assert got["termination"] == "time-limit", got["termination"]
        assert got["objective"] is None, got
        assert "x" not in got
        assert got["bound"] is None or got["bound"] >= 0

    def test_lp_at_a_limit_has_no_bound(self) -> None:
        """The value of a vector at a limit bounds nothing; it is that vector's, whether or not it is feasible."""
        self.needs("lp")
        got = self.result("slow")
        assert got["termination"] in ("time-limit", "optimal"), got["termination"]
        assert (got["objective"] is None) == ("x" not in got), got
        if "x" in got:
            assert got["objective"] == pytest.approx(slow_lp().objective(got["x"]), abs=1e-9)
        if got["termination"] == "time-limit":
            assert got["bound"] is None, got["bound"]

    def test_misspelt_option_suggests_the_closest(self) -> None:
        """An option that does not exist is refused, and the error suggests the closest one."""
        got = self.result("misspelt")
        assert got.get("error") == "BadOption", got
        assert all(name in got["text"] for name in self.misspelt), got["text"]

    def test_invalid_option_value_is_rejected(self) -> None:
        """An invalid value is refused, and the error names the option."""
        if self.bad_value is None:
            pytest.skip(f"{self.name}: the test names no option with an invalid value")
        got = self.result("bad-value")
        assert got.get("error") == "BadOption", got
        assert self.bad_value[0].lower() in got["text"].lower(), got["text"]

    def test_same_seed_same_answer(self) -> None:
        """Two runs with one seed and one thread are the same."""
        self.needs("mip")
        first, second = self.result("seed-first"), self.result("seed-second")
        assert first["termination"] == second["termination"] == "optimal"
        np.testing.assert_array_equal(first["x"], second["x"])
        assert first["nodes"] == second["nodes"]

    def test_too_small_licence_is_an_error(self) -> None:
        """A licence that does not cover the problem is an error that names a free solver."""
        self.needs("licensed")
        got = self.result("too-large")
        if "error" not in got:
            assert got["termination"] == "optimal", got
            pytest.skip(f"{self.name} has a full licence here")
        assert got["error"] in {"SolverUnavailable", "LicenceTooSmall"}, got
        assert "licence" in got["text"] or "community edition" in got["text"], got["text"]
        assert "'highs'" in got["text"], got["text"]

    def test_random_lps_agree_with_an_independent_solver(self) -> None:
        """Status, value, vector and duals of small random LPs."""
        self.needs("lp")
        difference = self.result("disagreement")["text"]
        assert not difference, difference

    def test_integer_problem_is_rejected_before_a_worker_starts(self) -> None:
        """An LP solver refuses integer columns."""
        if adapter(self.name).capabilities.mip:
            pytest.skip(f"{self.name} supports integer problems")
        with pytest.raises(MethodMismatch, match="integer"):
            solve_isolated(knapsack(), self.name, SolveRequest())

    def test_data_that_cannot_be_scaled_to_integers_are_rejected(self) -> None:
        """An integer solver refuses data that it would have to round."""
        self.needs("integer_data_only")
        for case, message in (("unbounded-column", "column 0 is in [0.0, inf]"), ("irrational-row", "row 0")):
            got = self.result(case)
            assert got.get("error") == "MethodMismatch", got
            assert message in got["text"], got["text"]


__all__ = ["PROBLEMS", "AdapterContract", "battery", "knapsack", "make", "random_lp", "results", "two_rows"]

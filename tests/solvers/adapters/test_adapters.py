"""The public contract of adapters (:mod:`opticoll.solvers.contract`) for every adapter of the package.

Adapters whose package or licence is missing are skipped with the reason.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from opticoll.errors import BadOption, MethodMismatch, SolverUnavailable
from opticoll.solvers.adapters import adapter, package_adapters
from opticoll.solvers.adapters.interface import unknown_option
from opticoll.solvers.contract import INF, AdapterContract, knapsack, make, random_lp, results, two_rows
from opticoll.solvers.process.isolation import probe, solve_here, solve_isolated
from opticoll.solvers.task import SolveRequest, Termination
from opticoll.solvers.verify import dual_bound

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAMES = sorted(package_adapters())
#: A misspelt option, the one that is meant, and an option with a wrong value, by adapter.
HIGHS = ("tme_limit", "time_limit")
WRONG_OPTIONS: dict[str, tuple[tuple[str, str], tuple[str, Any]]] = {
    "highs": (HIGHS, ("presolve", "blah")),
    "highs-simplex": (HIGHS, ("simplex_iteration_limit", "many")),
    "highs-ipx": (HIGHS, ("primal_feasibility_tolerance", -1.0)),
    "highs-pdlp": (HIGHS, ("threads", -3)),
    "highs-hipo": (HIGHS, ("presolve", "blah")),
    "glop": (("use_dual_simplx", "use_dual_simplex"), ("use_dual_simplex", "perhaps")),
    "pdlp": (("iteration_limt", "iteration_limit"), ("restart_strategy", "SOMETIMES")),
    "cp-sat": (("max_time_in_second", "max_time_in_seconds"), ("search_branching", "UPWARDS")),
    "scip": (("limits/tim", "limits/time"), ("limits/gap", -1.0)),
    "gurobi": (("TimeLimt", "TimeLimit"), ("Method", 99)),
    "mosek": (("MSK_IPAR_NUM_THREAD", "MSK_IPAR_NUM_THREADS"), ("MSK_IPAR_NUM_THREADS", "x")),
    "clarabel": (("max_itr", "max_iter"), ("max_iter", "many")),
    "cupdlpx": (("iteration_limt", "iteration_limit"), ("iteration_limit", "many")),
    "xpress": (("timelimt", "timelimit"), ("timelimit", -5)),
    "copt": (("TimeLimt", "TimeLimit"), ("LpMethod", 99)),
    "cplex": (("timelimt", "timelimit"), ("lpmethod", 99)),
}


RESULTS: dict[str, Future[dict[str, dict[str, Any]]]] = {}


def wrong_options(name: str) -> tuple[tuple[str, ...], tuple[str, Any] | None]:
    return WRONG_OPTIONS.get(name, (AdapterContract.misspelt, AdapterContract.bad_value))


@pytest.fixture(scope="module", autouse=True)
def batteries(request: pytest.FixtureRequest) -> Iterator[None]:
    """Start the batteries of the selected tests, two at a time."""
    selected = {item.cls.name for item in request.session.items if item.cls and issubclass(item.cls, AdapterContract)}
    with ThreadPoolExecutor(2) as pool:
        for name in sorted(selected & set(NAMES)):
            (wrong, *_), bad = wrong_options(name)
            RESULTS[name] = pool.submit(results, name, wrong, bad)
        yield
        pool.shutdown(cancel_futures=True)


class Started(AdapterContract):
    """The contract, with results that were started beforehand."""

    @classmethod
    def outcomes(cls) -> dict[str, dict[str, Any]]:
        return RESULTS[cls.name].result()


def contract_of(name: str) -> type[Started]:
    misspelt, bad_value = wrong_options(name)
    attributes = {"name": name, "misspelt": misspelt, "bad_value": bad_value, "__module__": __name__}
    return type(f"Test_{name.replace('-', '_')}", (Started,), attributes)


globals().update({f"Test_{name.replace('-', '_')}": contract_of(name) for name in NAMES})


def test_every_adapter_has_wrong_options() -> None:
    without = [name for name in NAMES if name not in WRONG_OPTIONS]
    assert not without, f"state wrong options of {', '.join(without)} in WRONG_OPTIONS of {__file__}"


def test_an_adapter_without_options_needs_no_wrong_ones() -> None:
    class Plain(AdapterContract):
        name = "plain"

        @classmethod
        def outcomes(cls) -> dict[str, dict[str, Any]]:
            return {"misspelt": {"error": "BadOption", "text": str(unknown_option("plain", cls.misspelt[0], {}))}}

    Plain().test_misspelt_option_suggests_the_closest()
    with pytest.raises(pytest.skip.Exception, match="no option"):
        Plain().test_invalid_option_value_is_rejected()


def test_random_lps_are_of_every_kind() -> None:
    forms = [random_lp(seed) for seed in range(25)]
    assert {form.sense for form in forms} == {"min", "max"}
    assert {form.A.shape[0] == 0 for form in forms} == {True, False}
    assert any(np.isinf(form.col_lower).any() for form in forms)


@pytest.mark.parametrize(
    ("options", "integer", "threads"), [({}, False, 1), ({"parallel": "on"}, False, 2), ({}, True, 2)]
)
def test_highs_has_several_threads_where_it_uses_them(options: dict[str, str], integer: bool, threads: int) -> None:
    form = replace(two_rows(), integer=np.full(two_rows().A.shape[1], integer))
    outcome = solve_isolated(form, "highs", SolveRequest(threads=2, options=options))
    assert (outcome.termination, outcome.options["threads"]) == ("optimal", threads)


def test_cp_sat_rejects_continuous_columns() -> None:
    with pytest.raises(MethodMismatch, match="continuous"):
        solve_isolated(two_rows(), "cp-sat", SolveRequest())


def test_unknown_solver_suggests_the_closest() -> None:
    with pytest.raises(MethodMismatch, match="'highs'"):
        adapter("hihgs")


def test_missing_package_is_reported_with_install_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter("copt"), "package", "no_such_package")
    with pytest.raises(SolverUnavailable, match=r"pip install .\.\[copt\]") as caught:
        solve_isolated(two_rows(), "copt", SolveRequest())
    assert caught.value.exit_status == 4


def test_every_adapter_is_described() -> None:
    for name, solver in package_adapters().items():
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
        assert outcome.x is not None
        assert "HiPO" in (outcome.algorithm or "")
    else:
        assert "HIPO" in state.remedy
        with pytest.raises(SolverUnavailable, match="HiPO"):
            solve_isolated(two_rows(), "highs-hipo", SolveRequest())


@pytest.mark.parametrize(
    ("solver", "options", "words"),
    [
        ("glop", {"primal_feasibility_tolerance": -1}, "primal_feasibility_tolerance = -1: .*must be non-negative"),
        ("glop", {"refactorization_threshold": "inf"}, "refactorization_threshold = 'inf': .*not finite"),
        ("glop", {"use_dual_simplex": "maybe"}, "use_dual_simplex = 'maybe': it must be true or false; see"),
        ("cp-sat", {"search_branching": "NOPE"}, "search_branching = 'NOPE': it must be one of"),
        ("cp-sat", {"random_seed": "x"}, "random_seed = 'x': it must be an integer; see"),
        ("pdlp", {"num_threads_": 1}, "has no option"),
        ("pdlp", {"verbosity_level": -1}, "verbosity_level = -1"),
        ("gurobi", {"SolutionLimit": 1e30}, "SolutionLimit = 1"),
        ("scip", {"limits/nodes": 1e30}, "limits/nodes = 1"),
        ("clarabel", {"direct_solve_method": "foo"}, "direct_solve_method = 'foo'"),
        ("highs", {"simplex_strategy": 77}, "simplex_strategy = 77"),
        ("scip", {"limits/gap": -1}, "limits/gap = -1"),
        ("gurobi", {"Method": 99}, "Method = 99"),
    ],
)
def test_values_out_of_range_are_refused_once_and_by_name(solver, options, words):
    if not probe(solver).usable:
        pytest.skip(f"{solver} has no licence")
    form = knapsack() if solver == "cp-sat" else two_rows()
    with pytest.raises(BadOption, match=words) as refused:
        solve_isolated(form, solver, SolveRequest(options=options))
    text = str(refused.value)
    assert text.count("rejects") + text.count("has no option") == 1
    assert "\n" not in text


@pytest.mark.parametrize("solver", ["gurobi", "cplex"])
def test_files_that_the_vendor_reads_set_no_option(
    solver: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not probe(solver).usable:
        pytest.skip(f"{solver} is not installed or has no licence")
    (tmp_path / "gurobi.env").write_text("Presolve 0\nIterationLimit 0\n")
    parameters = "CPX_PARAM_PREIND 0\nCPX_PARAM_ITLIM 0\n"
    (tmp_path / "options.prm").write_text(f"CPLEX Parameter File Version 22.1.1.0\n{parameters}")
    monkeypatch.setenv("ILOG_CPLEX_PARAMETER_FILE", str(tmp_path / "options.prm"))
    monkeypatch.chdir(tmp_path)
    assert solve_isolated(two_rows(), solver, SolveRequest()).termination is Termination.OPTIMAL


@pytest.mark.parametrize("sense", ["min", "max"])
def test_duals_of_rows_of_one_column_prove_the_optimum_of_scip(sense: Any) -> None:
    """Such a row is a bound inside SCIP; one of PySCIPOpt's two functions for duals gives it 0."""
    sign = 1 if sense == "max" else -1
    form = make([[1, 1], [1, 0], [1, 3]], [-INF] * 3, [4, 3, 100], [0, 0], [INF, INF], [3 * sign, 2 * sign], sense)
    outcome = solve_here(form, "scip", SolveRequest())
    assert outcome.row_duals is not None
    assert outcome.row_duals == pytest.approx([2 * sign, sign, 0])
    assert dual_bound(form, outcome.row_duals) == pytest.approx(11 * sign)


@pytest.mark.parametrize(
    ("row", "low", "high", "upper"),
    [([2, 0], -INF, 6, INF), ([-1, 0], -3, INF, INF), ([1, 0], -INF, 5, 3), ([-2, 0], -6, 8, 3), ([1, 0], 3, 3, INF)],
)
def test_the_dual_of_a_bound_counts_once_for_rows_that_share_it_in_scip(
    row: list[int], low: float, high: float, upper: float
) -> None:
    """SCIP gives the whole dual to x <= 3 and to 2 x <= 6: their bound would be 14."""
    form = make([[1, 1], [1, 0], row], [-INF, -INF, low], [4, 3, high], [0, 0], [upper, INF], [3, 2], "max")
    outcome = solve_here(form, "scip", SolveRequest())
    assert outcome.objective == pytest.approx(11)
    assert outcome.row_duals is not None
    assert dual_bound(form, outcome.row_duals) == pytest.approx(11)

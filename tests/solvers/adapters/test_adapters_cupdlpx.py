"""The cuPDLPx adapter against a stand-in for the documented interface, and its messages without a GPU.

These tests do not run the solver. The contract suite (`test_adapters.py`) does on machines with a GPU.
"""

from __future__ import annotations

import sys
import types
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from opticoll.analysis.cli.main import main
from opticoll.errors import BadOption, SolverUnavailable
from opticoll.solvers.adapters import adapter
from opticoll.solvers.adapters import cupdlpx as module
from opticoll.solvers.contract import INF, boxed, everything, make, two_rows
from opticoll.solvers.process.isolation import probe, solve_here
from opticoll.solvers.task import SolveRequest
from opticoll.solvers.verify import dual_bound, matrix_violations

INSTALLED = adapter("cupdlpx").installed()
DEFAULTS = {
    "time_sec_limit": 3600.0,
    "iteration_limit": 2**31 - 1,
    "verbose": False,
    "eps_optimal_relative": 1e-4,
    "eps_feasible_relative": 1e-4,
    "presolve": True,
    "optimality_norm": "l2",
}


class Model:
    """The documented model: rows and columns with bounds, a minimization, ``Pi`` as shadow prices."""

    answer = "OPTIMAL"

    def __init__(
        self,
        objective_vector: Any,
        constraint_matrix: Any,
        constraint_lower_bound: Any,
        constraint_upper_bound: Any,
        variable_lower_bound: Any = None,
        variable_upper_bound: Any = None,
        objective_constant: float = 0.0,
    ) -> None:
        assert sp.issparse(constraint_matrix)
        assert constraint_matrix.format == "csr"
        self.data = (objective_vector, constraint_matrix, constraint_lower_bound, constraint_upper_bound)
        self.box = (variable_lower_bound, variable_upper_bound)
        self.Params = dict(DEFAULTS)
        self.start: Any = None
        self.X = self.Pi = self.IterCount = self.StatusName = None

    def getParam(self, name: str) -> Any:
        return self.Params[name]

    def setParam(self, name: str, value: Any) -> None:
        if name not in self.Params:
            raise KeyError(name)
        if name == "iteration_limit" and value <= 0:
            msg = f"Parameter '{name}' must be positive."
            raise ValueError(msg)
        self.Params[name] = value

    def setWarmStart(self, primal: Any = None, dual: Any = None) -> None:
        self.start = primal

    def optimize(self) -> Model:
        from scipy.optimize import linprog

        Model.last = self  # type: ignore[attr-defined]
        self.StatusName, self.IterCount = self.answer, 120  # type: ignore[assignment]
        if self.answer != "OPTIMAL":
            return self
        c, A, low, high = self.data
        dense = A.toarray()
        has_low, has_high = np.isfinite(low), np.isfinite(high)
        solution = linprog(
            c,
            np.vstack([dense[has_high], -dense[has_low]]),
            np.concatenate([high[has_high], -low[has_low]]),
            bounds=np.stack(self.box, axis=1),
            method="highs",
        )
        self.X = solution.x
        pi = np.zeros(dense.shape[0])
        pi[has_high] += solution.ineqlin.marginals[: has_high.sum()]
        pi[has_low] -= solution.ineqlin.marginals[has_high.sum() :]
        self.Pi = pi  # type: ignore[assignment]
        return self


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    package = types.ModuleType("cupdlpx")
    package.Model = Model  # type: ignore[attr-defined]
    package.PDLP = types.SimpleNamespace(_PARAM_ALIAS={"TimeLimit": "time_sec_limit"})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cupdlpx", package)
    monkeypatch.setattr(module.CuPdlpx, "installed", lambda self: True)
    monkeypatch.setattr(module, "gpus", lambda: 1)
    monkeypatch.setattr(Model, "answer", "OPTIMAL")
    return package


@pytest.mark.parametrize("problem", [two_rows, everything])
def test_optimum_and_sign_of_duals(problem: Any, stand_in: types.ModuleType) -> None:
    form = problem()
    outcome = solve_here(form, "cupdlpx", SolveRequest(time_limit_s=7.0, rel_tol=1e-6))
    reference = solve_here(form, "highs-simplex", SolveRequest())
    assert outcome.termination == "optimal"
    assert outcome.objective == pytest.approx(reference.objective)
    assert outcome.x is not None
    assert max(matrix_violations(form, outcome.x).values()) < 1e-8
    assert outcome.row_duals is not None
    assert dual_bound(boxed(form), outcome.row_duals) == pytest.approx(reference.objective)
    assert outcome.iterations == 120
    assert outcome.options["time_sec_limit"] == 7.0
    assert outcome.options["eps_optimal_relative"] == 1e-6


@pytest.mark.parametrize(
    ("status", "termination"),
    [
        ("PRIMAL_INFEASIBLE", "infeasible"),
        ("DUAL_INFEASIBLE", "infeasible-or-unbounded"),
        ("TIME_LIMIT", "time-limit"),
        ("ITERATION_LIMIT", "iteration-limit"),
        ("SOMETHING_NEW", "error"),
    ],
)
def test_termination_statuses(
    status: str, termination: str, stand_in: types.ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Model, "answer", status)
    outcome = solve_here(two_rows(), "cupdlpx", SolveRequest())
    assert (outcome.termination, outcome.raw) == (termination, status)
    assert outcome.x is None
    assert outcome.objective is None


def test_options_by_name_and_alias(stand_in: types.ModuleType) -> None:
    options = {"presolve": "off", "iteration_limit": "500"}
    outcome = solve_here(two_rows(), "cupdlpx", SolveRequest(options=options, warm_start=np.ones(2)))
    assert outcome.options["presolve"] is False
    assert Model.last.Params["iteration_limit"] == 500  # type: ignore[attr-defined]
    np.testing.assert_array_equal(Model.last.start, np.ones(2))  # type: ignore[attr-defined]
    for wrong, message in (({"iteration_limt": 1}, "iteration_limit"), ({"iteration_limit": 0}, "must be positive")):
        with pytest.raises(BadOption, match=message):
            solve_here(two_rows(), "cupdlpx", SolveRequest(options=wrong))


@pytest.mark.parametrize(
    ("form", "known"),
    [
        (make(np.zeros((0, 2)), [], [], [-1, 0], [2, 3], [1, -1], "max", 4.0), 6.0),
        (make(np.zeros((1, 2)), [-1], [0], [-5, -INF], [3, INF], [1, 0]), -5.0),
        (make(np.zeros((1, 0)), [-1], [1], [], [], [], "min", 3.0), 3.0),
        (make([[0.0]], [1], [2], [0], [1], [1]), "infeasible"),
        (make([[1.0]], [0], [1], [2], [1], [1]), "infeasible"),
        (make([[1.0]], [2], [1], [0], [1], [1]), "infeasible"),
        (make([[0.0]], [0], [1], [0], [INF], [1], "max"), "unbounded"),
    ],
)
def test_program_without_nonzeros_or_with_crossing_bounds(
    form: Any, known: float | str, stand_in: types.ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(stand_in, "Model")  # the package is not asked
    outcome = solve_here(form, "cupdlpx", SolveRequest())
    if isinstance(known, str):
        assert (outcome.termination, outcome.x) == (known, None)
        return
    assert (outcome.termination, outcome.objective) == ("optimal", known)
    assert outcome.x is not None
    assert outcome.row_duals is not None
    assert dual_bound(boxed(form), outcome.row_duals) == pytest.approx(known)


def test_integers_are_rejected(stand_in: types.ModuleType) -> None:
    form = make([[1.0]], [0], [1], [0], [1], [1], "max", 0.0, [True])
    with pytest.raises(Exception, match="integer"):
        solve_here(form, "cupdlpx", SolveRequest())


def test_missing_gpu_is_reported(stand_in: types.ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "gpus", lambda: 0)
    with pytest.raises(SolverUnavailable, match=r"no NVIDIA GPU.*highs-pdlp") as caught:
        solve_here(two_rows(), "cupdlpx", SolveRequest())
    assert caught.value.exit_status == 4
    state = adapter("cupdlpx").probe_licence()
    assert (state.usable, state.state) == (False, "no NVIDIA GPU found")


@pytest.mark.skipif(INSTALLED, reason="cupdlpx is installed")
def test_missing_package_is_status_4_with_install_instructions(capfd: Any) -> None:
    assert main(["solve", "alltoall.master", "ring:4", "--method", "cupdlpx", "--no-store"]) == 4
    (line,) = capfd.readouterr().err.strip().splitlines()
    assert "pip install '.[gpu]'" in line
    assert "CUDA" in line
    assert not probe("cupdlpx").usable


def test_counting_gpus_never_fails() -> None:
    assert module.gpus() >= 0

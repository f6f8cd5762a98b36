"""Adapter for CP-SAT (OR-Tools): integer programs with integer or rational data."""

from __future__ import annotations

import math
import time
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import BadOption, MethodMismatch
from opticoll.solvers import solver_log
from opticoll.solvers.adapters.common import ProgressLog, set_solution
from opticoll.solvers.adapters.interface import Adapter, Capabilities
from opticoll.solvers.adapters.protobuf import effective, set_options
from opticoll.solvers.task import Outcome, Termination

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from opticoll.solvers.adapters.interface import Progress
    from opticoll.solvers.standard_form import StandardForm
    from opticoll.solvers.task import SolveRequest

_MAX_DENOMINATOR = 10**6
_MAX_ACTIVITY = 2**60
_ROUND = Fraction(1, 10**9)


class CpSat(Adapter):
    """CP-SAT: bounded integer columns, rows with rational coefficients."""

    name = "cp-sat"
    title = "CP-SAT (OR-Tools)"
    package = "ortools"
    distribution = "ortools"
    algorithm = "constraint programming with clause learning"
    capabilities = Capabilities(
        lp=False, mip=True, bound=True, incumbents=True, warm_start=True, integer_data_only=True
    )
    install = "pip install ortools"
    modules = ("ortools.sat.python.cp_model", "ortools.sat.sat_parameters_pb2")

    def solve(self, form: StandardForm, request: SolveRequest, progress: Progress) -> Outcome:
        """Solve ``form``; see :meth:`Adapter.solve`.

        Raises
        ------
        MethodMismatch
            If a column is unbounded, or a coefficient is not a fraction with denominator at most 10^6.
        """
        cp_model, messages = map(self.load, self.modules)
        parameters = messages.SatParameters()
        parameters.num_workers = request.threads
        parameters.random_seed = request.seed
        if request.time_limit_s is not None:
            parameters.max_time_in_seconds = request.time_limit_s
        set_options(self.name, parameters, request.options)

        model = cp_model.CpModel()
        scale = self._build(model.proto, form, request)
        solver = cp_model.CpSolver()
        solver.parameters.parse_text_format(str(parameters))
        if solver_log.shown():
            solver.parameters.log_search_progress = True
            solver.parameters.log_to_stdout = True
        flip = -1.0 if form.sense == "max" else 1.0
        log = ProgressLog(form, progress)

        def to_bound(value: float) -> float:
            return flip * value / scale + form.offset

        class ProgressCallback(cp_model.CpSolverSolutionCallback):  # type: ignore[name-defined]
            def on_solution_callback(self) -> None:
                response = self.response_proto
                log.incumbent(np.array(list(response.solution), dtype=float), to_bound(self.best_objective_bound))

        solver.best_bound_callback = lambda value: log.bound(to_bound(value))
        start = time.perf_counter()
        status = solver.solve(model, ProgressCallback())
        wall = time.perf_counter() - start
        raw = solver.status_name(status)
        outcome = Outcome(self._termination(raw, wall, request), raw=raw, incumbents=log.incumbents)
        if raw == "MODEL_INVALID":
            msg = f"solver {self.name!r} rejects the problem: {model.validate() or 'a parameter is out of range'}"
            raise BadOption(msg)
        outcome.algorithm, outcome.options = self.algorithm, effective(parameters)
        outcome.message = solver.solution_info()
        if raw in ("OPTIMAL", "FEASIBLE"):
            set_solution(outcome, form, np.array(list(solver.response_proto.solution), dtype=float), accepted=True)
        if raw != "INFEASIBLE":
            bound = to_bound(solver.best_objective_bound) if form.cost.any() else form.offset
            outcome.bound = bound if abs(solver.best_objective_bound) < _MAX_ACTIVITY else None
        return outcome

    def _termination(self, raw: str, wall: float, request: SolveRequest) -> Termination:
        known = {"OPTIMAL": Termination.OPTIMAL, "INFEASIBLE": Termination.INFEASIBLE}
        if raw in known:
            return known[raw]
        if request.time_limit_s is not None and wall >= 0.9 * request.time_limit_s:
            return Termination.TIME_LIMIT
        return Termination.ITERATION_LIMIT if raw in ("FEASIBLE", "UNKNOWN") else Termination.ERROR

    def _build(self, proto: Any, form: StandardForm, request: SolveRequest) -> int:
        """Fill the model; returns the factor by which the objective was scaled to integers."""
        lower, upper = self._column_bounds(form)
        for low, high in zip(lower, upper, strict=True):
            proto.variables.add().domain.extend([low, high])
        reach = np.maximum(np.abs(np.array(lower, dtype=float)), np.abs(np.array(upper, dtype=float)))
        by_row = form.A.tocsr()
        integral = bool(np.all(by_row.data == np.round(by_row.data)))
        for i in range(form.A.shape[0]):
            part = slice(by_row.indptr[i], by_row.indptr[i + 1])
            columns, values = by_row.indices[part], by_row.data[part]
            factor, coefficients = (1, [int(v) for v in values]) if integral else self._scaled(values, f"row {i}")
            self._check_reach(coefficients, reach[columns], f"row {i}")
            linear = proto.constraints.add().linear
            linear.vars.extend(columns.tolist())
            linear.coeffs.extend(coefficients)
            linear.domain.extend(_row_domain(float(form.row_lower[i]), float(form.row_upper[i]), factor))
        return self._objective(proto, form, reach, request)

    def _objective(self, proto: Any, form: StandardForm, reach: NDArray[np.float64], request: SolveRequest) -> int:
        used = np.flatnonzero(form.cost)
        scale, coefficients = self._scaled(form.cost[used], "the objective")
        self._check_reach(coefficients, reach[used], "the objective")
        if used.size:
            proto.objective.vars.extend(used.tolist())
            proto.objective.coeffs.extend([-v if form.sense == "max" else v for v in coefficients])
        if request.warm_start is not None:
            proto.solution_hint.vars.extend(range(form.A.shape[1]))
            proto.solution_hint.values.extend([round(v) for v in request.warm_start.tolist()])
        return scale

    def _column_bounds(self, form: StandardForm) -> tuple[list[int], list[int]]:
        unbounded = ~(np.isfinite(form.col_lower) & np.isfinite(form.col_upper))
        if unbounded.any():
            at = int(np.argmax(unbounded))
            msg = (
                f"solver 'cp-sat' needs finite bounds on every column and column {at} is in "
                f"[{form.col_lower[at]}, {form.col_upper[at]}]: add bounds, or use 'highs' or 'scip'"
            )
            raise MethodMismatch(msg)
        lower, upper = np.ceil(form.col_lower - 1e-9), np.floor(form.col_upper + 1e-9)
        return [int(v) for v in lower], [int(v) for v in upper]

    def _scaled(self, values: NDArray[np.float64], where: str) -> tuple[int, list[int]]:
        """Return the smallest factor that makes ``values`` integers, and the scaled values."""
        exact = []
        for value in values.tolist():
            nearest = Fraction(value).limit_denominator(_MAX_DENOMINATOR)
            if float(nearest) != value:
                msg = (
                    f"solver 'cp-sat' needs rational data and {where} contains {value!r}, which is not a fraction with "
                    "denominator at most 10^6: rescale the model, or use 'highs' or 'scip'"
                )
                raise MethodMismatch(msg)
            exact.append(nearest)
        factor = math.lcm(1, *(fraction.denominator for fraction in exact))
        return factor, [int(fraction * factor) for fraction in exact]

    def _check_reach(self, coefficients: list[int], reach: NDArray[np.float64], where: str) -> None:
        total = sum(abs(a) * int(r) for a, r in zip(coefficients, reach, strict=True))
        if total > _MAX_ACTIVITY:
            msg = (
                f"solver 'cp-sat' uses 64-bit integers and {where} can reach {float(total):.1e} after scaling its "
                "coefficients to integers: tighten bounds, rescale, or use 'highs' or 'scip'"
            )
            raise MethodMismatch(msg)


def _row_domain(lower: float, upper: float, factor: int) -> list[int]:
    """Round the scaled bounds of a row inwards, allowing for round-off of 1e-9."""
    low = -_MAX_ACTIVITY if lower == -math.inf else math.ceil(Fraction(lower) * factor - _ROUND)
    high = _MAX_ACTIVITY if upper == math.inf else math.floor(Fraction(upper) * factor + _ROUND)
    return [low, high] if low <= high else []  # an empty domain: no integer between the bounds


ADAPTER = CpSat()

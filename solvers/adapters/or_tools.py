"""Adapters for the solvers of OR-Tools: CP-SAT, GLOP and PDLP, with their options in protocol buffers."""

from __future__ import annotations

import math
import time
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import BadOption, MethodMismatch, refuse
from opticoll.formulations.term_sizes import DENOMINATOR
from opticoll.solvers.adapters.interface import (
    Adapter,
    Capabilities,
    ProgressLog,
    parse_value,
    set_solution,
    unknown_option,
)
from opticoll.solvers.process import solver_log
from opticoll.solvers.task import Outcome, Termination

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opticoll.formulations.standard_form import StandardForm
    from opticoll.instances.topology import F64
    from opticoll.solvers.adapters.interface import ProgressCallback
    from opticoll.solvers.task import SolveRequest
    from opticoll.types import Json


class OrTools(Adapter):
    """A solver of OR-Tools."""

    package = "ortools"
    distribution = "ortools"
    install = "pip install ortools"

    def set_options(self, message: Any, options: Mapping[str, object], *, inside: str | None = None) -> None:
        """Set fields of ``message`` by name; a dotted name addresses a nested message.

        Fields of the nested message ``inside`` may also be given without its prefix.

        Raises
        ------
        BadOption
            If a name does not exist or a value is rejected.
        """
        names = _fields(message)
        for name, value in options.items():
            full = f"{inside}.{name}" if inside and f"{inside}.{name}" in names else name
            if full not in names:
                raise unknown_option(self.name, name, names)
            *path, last = full.split(".")
            target = message
            for part in path:
                target = getattr(target, part)
            read = self._value(name, value, target.DESCRIPTOR.fields_by_name[last])
            try:
                setattr(target, last, read)
            except (TypeError, ValueError, AttributeError) as error:
                raise self.rejected_value(name, value, str(error)) from error

    def _value(self, name: str, value: Any, field: Any) -> Any:
        if field.type == field.TYPE_ENUM:
            known = field.enum_type.values_by_name
            if str(value) in known:
                return known[str(value)].number
            if str(value).isdigit() and int(value) in field.enum_type.values_by_number:
                return int(value)
            raise self.rejected_value(name, value, f"it must be one of {', '.join(known)}")
        if field.type == field.TYPE_STRING:
            return str(value)
        kinds = {field.TYPE_BOOL: bool, field.TYPE_DOUBLE: float, field.TYPE_FLOAT: float}
        return parse_value(self.name, name, value, kinds.get(field.type, int))


def effective(message: Any) -> dict[str, Json]:
    """Return the fields that are set, by dotted name."""
    options: dict[str, Any] = {}
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE and hasattr(value, "ListFields"):
            options |= {f"{field.name}.{name}": inner for name, inner in effective(value).items()}
        elif field.type == field.TYPE_ENUM and isinstance(value, int):
            options[field.name] = field.enum_type.values_by_number[value].name
        else:
            options[field.name] = value if isinstance(value, (bool, int, float, str)) else str(value)
    return options


def _fields(message: Any) -> list[str]:
    names = []
    for field in message.DESCRIPTOR.fields:
        if field.type != field.TYPE_MESSAGE:
            names.append(field.name)
        elif hasattr(getattr(message, field.name), "DESCRIPTOR"):
            names += [f"{field.name}.{name}" for name in _fields(getattr(message, field.name))]
    return names


_MAX_DENOMINATOR = 10**6
_MAX_ACTIVITY = 2**60
#: States without a proof, and options besides the time limit that lead to them.
_UNPROVEN = ("FEASIBLE", "UNKNOWN")
_LIMITS = {
    "max_deterministic_time",
    "max_number_of_conflicts",
    "stop_after_first_solution",
    "stop_after_presolve",
    "stop_after_root_propagation",
}
_ROUND = Fraction(1, 10**9)
#: Largest relative rounding error of a coefficient that is a multiple of another.
_ROUNDED = 1e-15


class CpSat(OrTools):
    """CP-SAT: integer programs with bounded columns, and rows with integer or rational coefficients."""

    name = "cp-sat"
    title = "CP-SAT (OR-Tools)"
    algorithm = "constraint programming with clause learning"
    absolute = frozenset({"absolute_gap_limit"})
    capabilities = Capabilities(
        lp=False, mip=True, bound=True, incumbents=True, warm_start=True, integer_data_only=True
    )
    modules = ("ortools.sat.python.cp_model", "ortools.sat.sat_parameters_pb2")

    def solve(self, form: StandardForm, request: SolveRequest, progress: ProgressCallback) -> Outcome:
        """Solve ``form``; see :meth:`Adapter.solve`.

        Raises
        ------
        MethodMismatch
            If a column is unbounded, or coefficients are neither fractions with denominator at most 10^6 nor multiples
            of one of them.
        """
        cp_model, messages = map(self.load, self.modules)
        parameters = messages.SatParameters()
        parameters.num_workers = request.threads
        parameters.random_seed = request.seed
        if request.time_limit_s is not None:
            parameters.max_time_in_seconds = request.time_limit_s
        self.set_options(parameters, request.options)

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
            return flip * float(value / scale) + form.offset

        class SolutionCallback(cp_model.CpSolverSolutionCallback):  # type: ignore[name-defined]
            def on_solution_callback(self) -> None:
                response = self.response_proto
                log.incumbent(np.array(list(response.solution), dtype=float), to_bound(self.best_objective_bound))

        solver.best_bound_callback = lambda value: log.bound(to_bound(value))
        start = time.perf_counter()
        status = solver.solve(model, SolutionCallback())
        wall = time.perf_counter() - start
        raw = solver.status_name(status)
        outcome = Outcome(self._termination(raw, wall, request), raw=raw, incumbents=log.incumbents)
        if raw == "MODEL_INVALID":
            wrong = model.validate()
            if not wrong and request.options:
                raise self.rejected_options(request.options, solver.solution_info())
            refuse(f"solver {self.name!r} rejects the problem", f"{wrong or 'a parameter is out of range'}", BadOption)
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
        # A short limit may end CP-SAT a little early; where no other limit is set, it is the reason.
        late = request.time_limit_s is not None and wall >= 0.9 * request.time_limit_s
        if late or (request.time_limit_s is not None and raw in _UNPROVEN and not _LIMITS & set(request.options)):
            return Termination.TIME_LIMIT
        return Termination.ITERATION_LIMIT if raw in _UNPROVEN else Termination.ERROR

    def _build(self, proto: Any, form: StandardForm, request: SolveRequest) -> Fraction:
        """Fill the model and return the factor by which the objective was scaled to integers."""
        lower, upper = self._column_bounds(form)
        for low, high in zip(lower, upper, strict=True):
            proto.variables.add().domain.extend([low, high])
        reach = np.maximum(np.abs(np.array(lower, dtype=float)), np.abs(np.array(upper, dtype=float)))
        by_row = form.A.tocsr()
        integral = bool(np.all(by_row.data == np.round(by_row.data)))
        for i in range(form.A.shape[0]):
            part = slice(by_row.indptr[i], by_row.indptr[i + 1])
            columns, values = by_row.indices[part], by_row.data[part]
            factor, coefficients = (
                (Fraction(1), [int(v) for v in values]) if integral else self._scaled(values, f"row {i}")
            )
            self._check_reach(coefficients, reach[columns], f"row {i}")
            linear = proto.constraints.add().linear
            linear.vars.extend(columns.tolist())
            linear.coeffs.extend(coefficients)
            linear.domain.extend(_row_domain(float(form.row_lower[i]), float(form.row_upper[i]), factor))
        return self._objective(proto, form, reach, request)

    def _objective(self, proto: Any, form: StandardForm, reach: F64, request: SolveRequest) -> Fraction:
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
                f"solver 'cp-sat' needs finite bounds on every column, but column {at} is in "
                f"[{form.col_lower[at]}, {form.col_upper[at]}]: add bounds, or use 'highs' or 'scip'"
            )
            raise MethodMismatch(msg)
        lower, upper = np.ceil(form.col_lower - 1e-9), np.floor(form.col_upper + 1e-9)
        return [int(v) for v in lower], [int(v) for v in upper]

    def _scaled(self, values: F64, where: str) -> tuple[Fraction, list[int]]:
        """Return a factor that makes ``values`` integers, and the scaled values.

        It is the smallest integer if they are fractions. Otherwise they may be multiples of one of them but for
        rounding errors, as 3e-8 and 5e-8 are.
        """
        distinct = np.unique(np.abs(values))
        unit = Fraction(1)
        exact = [Fraction(one).limit_denominator(_MAX_DENOMINATOR) for one in distinct.tolist()]
        if any(float(near) != one for near, one in zip(exact, distinct.tolist(), strict=True)):
            unit = Fraction(float(distinct[0]))
            exact = [(Fraction(one) / unit).limit_denominator(DENOMINATOR) for one in distinct.tolist()]
        for near, one in zip(exact, distinct.tolist(), strict=True):
            if abs(float(near * unit) - one) > _ROUNDED * one:
                msg = (
                    f"solver 'cp-sat' needs rational data, but {where} contains {one!r}, which is neither a fraction "
                    "with denominator at most 10^6 nor a simple multiple of the smallest: rescale the model, or use "
                    "'highs' or 'scip'"
                )
                raise MethodMismatch(msg)
        below = math.lcm(1, *(near.denominator for near in exact))
        whole = dict(zip(distinct.tolist(), (int(near * below) for near in exact), strict=True))
        return below / unit, [whole[abs(value)] * (1 if value > 0 else -1) for value in values.tolist()]

    def _check_reach(self, coefficients: list[int], reach: F64, where: str) -> None:
        total = sum(abs(a) * int(r) for a, r in zip(coefficients, reach, strict=True))
        if total > _MAX_ACTIVITY:
            msg = (
                f"solver 'cp-sat' uses 64-bit integers, but {where} can reach {float(total):.1e} after scaling its "
                "coefficients to integers: tighten bounds, rescale, or use 'highs' or 'scip'"
            )
            raise MethodMismatch(msg)


def _row_domain(lower: float, upper: float, factor: Fraction) -> list[int]:
    """Round the scaled bounds of a row inwards, allowing for round-off of 1e-9."""
    low = -_MAX_ACTIVITY if lower == -math.inf else math.ceil(Fraction(lower) * factor - _ROUND)
    high = _MAX_ACTIVITY if upper == math.inf else math.floor(Fraction(upper) * factor + _ROUND)
    return [low, high] if low <= high else []  # an empty domain: no integer between the bounds


_GLOP_TERMINATION = {
    "OPTIMAL": Termination.OPTIMAL,
    "INFEASIBLE": Termination.INFEASIBLE,
    "UNBOUNDED": Termination.UNBOUNDED,
    "INFEASIBLE_OR_UNBOUNDED": Termination.INFEASIBLE_OR_UNBOUNDED,
    "IMPRECISE": Termination.TOLERANCE,
}
_LIMIT = {
    "TIME": Termination.TIME_LIMIT,
    "ITERATION": Termination.ITERATION_LIMIT,
    "MEMORY": Termination.MEMORY_LIMIT,
    "INTERRUPTED": Termination.INTERRUPTED,
}
_FEASIBLE = 2  # SOLUTION_STATUS_FEASIBLE


class Glop(OrTools):
    """GLOP: primal and dual simplex, LP only.

    It is called through the MathOpt protocol buffers, which return the vertex reached at a limit.
    """

    name = "glop"
    title = "GLOP (OR-Tools)"
    algorithm = "simplex"
    absolute = frozenset({"objective_lower_limit", "objective_upper_limit"})
    capabilities = Capabilities(duals=True, bound=True)
    modules = (
        "ortools.math_opt.core.python.solver",
        "ortools.math_opt.callback_pb2",
        "ortools.math_opt.model_pb2",
        "ortools.math_opt.model_parameters_pb2",
        "ortools.math_opt.parameters_pb2",
        "ortools.math_opt.result_pb2",
    )

    def solve(self, form: StandardForm, request: SolveRequest, progress: ProgressCallback) -> Outcome:
        """Solve ``form``; see :meth:`Adapter.solve`."""
        core, callbacks, _, models, parameters_pb2, results = map(self.load, self.modules)
        parameters = parameters_pb2.SolveParametersProto()
        glop = parameters.glop
        glop.primal_feasibility_tolerance = glop.dual_feasibility_tolerance = 1e-9
        glop.solution_feasibility_tolerance = 1e-8
        glop.random_seed = request.seed
        glop.num_omp_threads = request.threads
        if request.time_limit_s is not None:
            glop.max_time_in_seconds = request.time_limit_s
        self.set_options(glop, request.options)
        parameters.enable_output = solver_log.shown()
        start = time.perf_counter()
        try:
            result = core.solve(
                self._model(form),
                parameters_pb2.SOLVER_TYPE_GLOP,
                parameters_pb2.SolverInitializerProto(),
                parameters,
                models.ModelSolveParametersProto(),
                None,
                callbacks.CallbackRegistrationProto(),
                None,
                None,
            )
        except Exception as error:  # its own class is in no public module
            if "invalid GlopParameters" in str(error):
                raise self.rejected_options(request.options, str(error)) from error
            if not isinstance(error, ValueError | RuntimeError):
                raise
            msg = f"solver {self.name!r} rejects the problem: {error}"
            raise BadOption(msg) from error
        reason = results.TerminationReasonProto.Name(result.termination.reason).removeprefix("TERMINATION_REASON_")
        limit = results.LimitProto.Name(result.termination.limit).removeprefix("LIMIT_")
        termination = _GLOP_TERMINATION.get(reason, _LIMIT.get(limit, Termination.ERROR))
        if limit == "UNDETERMINED":  # the result does not name the limit
            late = request.time_limit_s is not None and time.perf_counter() - start >= 0.9 * request.time_limit_s
            termination = Termination.TIME_LIMIT if late else Termination.ITERATION_LIMIT
        outcome = Outcome(termination, raw=reason if limit == "UNSPECIFIED" else f"{reason} ({limit})")
        outcome.algorithm, outcome.options = self.algorithm, effective(glop)
        outcome.iterations = int(result.solve_stats.simplex_iterations)
        outcome.message = result.termination.detail
        x = duals = None
        for solution in result.solutions:
            if solution.HasField("primal_solution"):
                x = _dense(solution.primal_solution.variable_values, form.A.shape[1])
            if solution.HasField("dual_solution"):
                duals = _dense(solution.dual_solution.dual_values, form.A.shape[0])
            break
        set_solution(outcome, form, x, duals)
        return outcome

    def _model(self, form: StandardForm) -> Any:
        """Build the model message from arrays."""
        model = self.load("ortools.math_opt.model_pb2").ModelProto()
        m, n = form.A.shape
        columns, rows, matrix = model.variables, model.linear_constraints, model.linear_constraint_matrix
        columns.ids.extend(np.arange(n))
        columns.lower_bounds.extend(form.col_lower)
        columns.upper_bounds.extend(form.col_upper)
        columns.integers.extend([False] * n)
        rows.ids.extend(np.arange(m))
        rows.lower_bounds.extend(form.row_lower)
        rows.upper_bounds.extend(form.row_upper)
        model.objective.maximize = form.sense == "max"
        model.objective.offset = form.offset
        used = np.flatnonzero(form.cost)
        model.objective.linear_coefficients.ids.extend(used)
        model.objective.linear_coefficients.values.extend(form.cost[used])
        by_row = form.A.tocsr()
        by_row.sort_indices()
        matrix.row_ids.extend(np.repeat(np.arange(m), np.diff(by_row.indptr)))
        matrix.column_ids.extend(by_row.indices)
        matrix.coefficients.extend(by_row.data)
        return model


def _dense(vector: Any, size: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    full = np.zeros(size)
    full[np.fromiter(vector.ids, dtype=np.int64)] = np.fromiter(vector.values, dtype=float)
    return full


_PDLP_TERMINATION = {
    "OPTIMAL": Termination.OPTIMAL,
    "PRIMAL_INFEASIBLE": Termination.INFEASIBLE,
    "DUAL_INFEASIBLE": Termination.INFEASIBLE_OR_UNBOUNDED,
    "PRIMAL_OR_DUAL_INFEASIBLE": Termination.INFEASIBLE_OR_UNBOUNDED,
    "TIME_LIMIT": Termination.TIME_LIMIT,
    "ITERATION_LIMIT": Termination.ITERATION_LIMIT,
    "KKT_MATRIX_PASS_LIMIT": Termination.ITERATION_LIMIT,
    "INTERRUPTED_BY_USER": Termination.INTERRUPTED,
    "NUMERICAL_ERROR": Termination.TOLERANCE,
}


class Pdlp(OrTools):
    """PDLP, OR-Tools' first-order method: primal-dual hybrid gradient, LP only, to a tolerance."""

    name = "pdlp"
    title = "PDLP (OR-Tools)"
    algorithm = "first order (PDLP)"
    capabilities = Capabilities(duals=True, warm_start=True, exact=False)
    modules = ("ortools.pdlp.python.pdlp", "ortools.pdlp.solvers_pb2", "ortools.pdlp.solve_log_pb2")

    def solve(self, form: StandardForm, request: SolveRequest, progress: ProgressCallback) -> Outcome:
        """Solve ``form``; see :meth:`Adapter.solve`."""
        pdlp, messages, logs = map(self.load, self.modules)
        parameters = messages.PrimalDualHybridGradientParams()
        parameters.num_threads = request.threads
        criteria = parameters.termination_criteria
        criteria.simple_optimality_criteria.eps_optimal_relative = max(1e-9, request.rel_tol)
        criteria.simple_optimality_criteria.eps_optimal_absolute = max(1e-9, request.rel_tol)
        if request.time_limit_s is not None:
            criteria.time_sec_limit = request.time_limit_s
        self.set_options(parameters, request.options, inside="termination_criteria")

        options = effective(parameters)
        if solver_log.shown():
            parameters.verbosity_level = max(2, parameters.verbosity_level)
        flip = -1.0 if form.sense == "max" else 1.0
        problem = pdlp.QuadraticProgram()
        problem.resize_and_initialize(form.A.shape[1], form.A.shape[0])
        problem.objective_vector = np.array(flip * form.cost)
        problem.objective_offset = flip * form.offset
        problem.variable_lower_bounds = np.array(form.col_lower)
        problem.variable_upper_bounds = np.array(form.col_upper)
        problem.constraint_lower_bounds = np.array(form.row_lower)
        problem.constraint_upper_bounds = np.array(form.row_upper)
        import scipy.sparse as sp

        problem.constraint_matrix = sp.csc_matrix(form.A, copy=True)  # PDLP needs writable arrays
        start = None
        if request.warm_start is not None:
            start = pdlp.PrimalAndDualSolution()
            start.primal_solution = np.array(request.warm_start)
            start.dual_solution = np.zeros(form.A.shape[0])
        result = pdlp.primal_dual_hybrid_gradient(problem, parameters, initial_solution=start)
        log = result.solve_log
        raw = logs.TerminationReason.Name(log.termination_reason).removeprefix("TERMINATION_REASON_")
        if raw == "INVALID_PARAMETER":
            raise self.rejected_options(request.options, log.termination_string)
        if raw == "INVALID_PROBLEM":
            refuse(f"solver {self.name!r} rejects the problem", f"{log.termination_string}", BadOption)
        outcome = Outcome(_PDLP_TERMINATION.get(raw, Termination.ERROR), raw=raw, message=log.termination_string)
        outcome.algorithm, outcome.options = self.algorithm, options
        outcome.iterations = int(log.iteration_count)
        set_solution(outcome, form, result.primal_solution, flip * np.asarray(result.dual_solution), exact=False)
        return outcome


ADAPTER = (
    CpSat(),
    Glop(),
    Pdlp(),
)

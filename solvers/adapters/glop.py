"""Adapter for GLOP (OR-Tools) through the MathOpt protocol buffers, which return the vertex reached at a limit."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import BadOption
from opticoll.solvers import solver_log
from opticoll.solvers.adapters.common import rejected_value, set_solution
from opticoll.solvers.adapters.interface import Adapter, Capabilities
from opticoll.solvers.adapters.protobuf import effective, extend, set_options
from opticoll.solvers.task import Outcome, Termination

if TYPE_CHECKING:
    from opticoll.solvers.adapters.interface import Progress
    from opticoll.solvers.standard_form import StandardForm
    from opticoll.solvers.task import SolveRequest

_TERMINATION = {
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


class Glop(Adapter):
    """GLOP: primal and dual simplex, LP only."""

    name = "glop"
    title = "GLOP (OR-Tools)"
    package = "ortools"
    distribution = "ortools"
    algorithm = "simplex"
    capabilities = Capabilities(duals=True, bound=True)
    install = "pip install ortools"
    modules = (
        "ortools.math_opt.core.python.solver", "ortools.math_opt.callback_pb2", "ortools.math_opt.model_pb2",
        "ortools.math_opt.model_parameters_pb2", "ortools.math_opt.parameters_pb2", "ortools.math_opt.result_pb2",
    )  # fmt: skip

    def solve(self, form: StandardForm, request: SolveRequest, progress: Progress) -> Outcome:
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
        set_options(self.name, glop, request.options)
        parameters.enable_output = solver_log.shown()
        start = time.perf_counter()
        try:
            result = core.solve(
                self._model(form), parameters_pb2.SOLVER_TYPE_GLOP, parameters_pb2.SolverInitializerProto(),
                parameters, models.ModelSolveParametersProto(), None, callbacks.CallbackRegistrationProto(), None, None,
            )  # fmt: skip
        except (ValueError, RuntimeError) as error:
            if "GlopParameters" in str(error) or "parameter" in str(error).lower():
                raise rejected_value(self.name, ", ".join(request.options), "", str(error)) from error
            msg = f"solver {self.name!r} rejects the problem: {error}"
            raise BadOption(msg) from error
        reason = results.TerminationReasonProto.Name(result.termination.reason).removeprefix("TERMINATION_REASON_")
        limit = results.LimitProto.Name(result.termination.limit).removeprefix("LIMIT_")
        termination = _TERMINATION.get(reason, _LIMIT.get(limit, Termination.ERROR))
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
        extend(columns, "ids", np.arange(n))
        extend(columns, "lower_bounds", form.col_lower)
        extend(columns, "upper_bounds", form.col_upper)
        extend(columns, "integers", np.zeros(n, dtype=bool))
        extend(rows, "ids", np.arange(m))
        extend(rows, "lower_bounds", form.row_lower)
        extend(rows, "upper_bounds", form.row_upper)
        model.objective.maximize = form.sense == "max"
        model.objective.offset = form.offset
        used = np.flatnonzero(form.cost)
        extend(model.objective.linear_coefficients, "ids", used)
        extend(model.objective.linear_coefficients, "values", form.cost[used])
        by_row = form.A.tocsr()
        by_row.sort_indices()
        extend(matrix, "row_ids", np.repeat(np.arange(m), np.diff(by_row.indptr)))
        extend(matrix, "column_ids", by_row.indices)
        extend(matrix, "coefficients", by_row.data)
        return model


def _dense(vector: Any, size: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    full = np.zeros(size)
    full[np.fromiter(vector.ids, dtype=np.int64)] = np.fromiter(vector.values, dtype=float)
    return full


ADAPTER = Glop()

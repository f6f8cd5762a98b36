"""Adapter for PDLP, the first-order method of OR-Tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import BadOption
from opticoll.solvers import solver_log
from opticoll.solvers.adapters.common import rejected_value, set_solution
from opticoll.solvers.adapters.interface import Adapter, Capabilities
from opticoll.solvers.adapters.protobuf import effective, set_options
from opticoll.solvers.task import Outcome, Termination

if TYPE_CHECKING:
    from opticoll.solvers.adapters.interface import Progress
    from opticoll.solvers.standard_form import StandardForm
    from opticoll.solvers.task import SolveRequest

_TERMINATION = {
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


class Pdlp(Adapter):
    """PDLP: primal-dual hybrid gradient, LP only, to a tolerance."""

    name = "pdlp"
    title = "PDLP (OR-Tools)"
    package = "ortools"
    distribution = "ortools"
    algorithm = "first order (PDLP)"
    capabilities = Capabilities(duals=True, warm_start=True, exact=False)
    install = "pip install ortools"
    modules = ("ortools.pdlp.python.pdlp", "ortools.pdlp.solvers_pb2", "ortools.pdlp.solve_log_pb2")

    def solve(self, form: StandardForm, request: SolveRequest, progress: Progress) -> Outcome:
        """Solve ``form``; see :meth:`Adapter.solve`."""
        pdlp, messages, logs = map(self.load, self.modules)
        parameters = messages.PrimalDualHybridGradientParams()
        parameters.num_threads = request.threads
        criteria = parameters.termination_criteria
        criteria.simple_optimality_criteria.eps_optimal_relative = max(1e-9, request.rel_tol)
        criteria.simple_optimality_criteria.eps_optimal_absolute = max(1e-9, request.rel_tol)
        if request.time_limit_s is not None:
            criteria.time_sec_limit = request.time_limit_s
        set_options(self.name, parameters, request.options, inside="termination_criteria")

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
            names = ", ".join(request.options) or "a common option"
            raise rejected_value(self.name, names, "", log.termination_string)
        if raw == "INVALID_PROBLEM":
            msg = f"solver {self.name!r} rejects the problem: {log.termination_string}"
            raise BadOption(msg)
        outcome = Outcome(_TERMINATION.get(raw, Termination.ERROR), raw=raw, message=log.termination_string)
        outcome.algorithm, outcome.options = self.algorithm, options
        outcome.iterations = int(log.iteration_count)
        set_solution(outcome, form, result.primal_solution, flip * np.asarray(result.dual_solution), exact=False)
        return outcome


ADAPTER = Pdlp()

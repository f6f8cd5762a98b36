"""Adapter for IBM CPLEX."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.solvers.adapters.interface import Capabilities, LicensedAdapter, ProgressLog, row_kinds, set_solution
from opticoll.solvers.process import solver_log
from opticoll.solvers.task import Outcome, Termination

if TYPE_CHECKING:
    from opticoll.formulations.standard_form import StandardForm
    from opticoll.instances.topology import I64
    from opticoll.solvers.adapters.interface import ProgressCallback
    from opticoll.solvers.task import SolveRequest

_INFINITY = 1e20
_TOO_LARGE = 1016
_LICENCE = (_TOO_LARGE, *range(32000, 33000))
_LIMIT = "1000 variables and 1000 constraints"
_REMEDY = (
    "install the full edition (free for academics at ibm.com/academic) and point cplex to it, or use 'highs' or 'scip'"
)


class Cplex(LicensedAdapter):
    """Adapter for IBM CPLEX; the wheel includes the size-limited community edition."""

    name = "cplex"
    title = "IBM CPLEX"
    package = "cplex"
    distribution = "cplex"
    algorithm = "simplex / branch and cut"
    absolute = frozenset({"absmipgap", "absgap", "objdifference", "uppercutoff", "lowercutoff"}) | frozenset(
        {"upperobjstop", "lowerobjstop", "upperobj", "lowerobj"}
    )
    capabilities = Capabilities(mip=True, duals=True, bound=True, incumbents=True, warm_start=True, licensed=True)
    remedy, trial_columns = _REMEDY, 1001
    install = "pip install cplex (in a checkout: pip install '.[cplex]'), and the full edition beyond " + _LIMIT

    def solve(self, form: StandardForm, request: SolveRequest, progress: ProgressCallback) -> Outcome:
        """Solve ``form``; see :meth:`Adapter.solve`."""
        cplex = self.load()
        try:
            with _quiet(cplex) as model:
                return self._run(cplex, model, form, request, ProgressLog(form, progress))
        except cplex.exceptions.CplexError as error:
            raise self._unavailable(error, form) from error

    def _unavailable(self, error: Any, form: StandardForm) -> Exception:
        if len(error.args) > 2 and error.args[2] in _LICENCE:
            return self.too_small(form, _LIMIT)
        return RuntimeError(f"CPLEX: {error}")

    def _run(self, cplex: Any, model: Any, form: StandardForm, request: SolveRequest, log: ProgressLog) -> Outcome:
        effective = self._set_options(cplex, model, form, request)
        kept = self._build(cplex, model, form)
        if form.is_mip:
            if request.warm_start is not None:
                start = cplex.SparsePair(list(range(form.A.shape[1])), request.warm_start.tolist())
                model.MIP_starts.add(start, model.MIP_starts.effort_level.auto)
            _set_callback(cplex, model, log)
        model.solve()
        solution, status = model.solution, model.solution.status
        code = solution.get_status()
        raw = solution.get_status_string()
        outcome = Outcome(_termination(status, code), raw=raw, options=effective)
        outcome.version, outcome.incumbents = model.get_version(), log.incumbents
        x = np.array(solution.get_values()) if solution.is_primal_feasible() else None
        if form.is_mip:
            outcome.algorithm = "branch and cut"
            outcome.nodes = int(solution.progress.get_num_nodes_processed())
            outcome.iterations = int(solution.progress.get_num_iterations())
            set_solution(outcome, form, x, accepted=True)
            with suppress(cplex.exceptions.CplexError):  # no bound at this limit
                bound = solution.MIP.get_best_objective()
                self.claim_bound(outcome, bound, effective.get("simplex.tolerances.optimality", 0.0))
            return outcome
        exact, progress = solution.get_solution_type() == solution.type.basic, solution.progress
        outcome.algorithm = {1: "primal simplex", 2: "dual simplex"}.get(solution.get_method(), "simplex")
        if progress.get_num_barrier_iterations() or not exact:
            outcome.algorithm = "interior point" + (" with crossover" if exact else "")
        outcome.iterations = int(progress.get_num_iterations()) + int(progress.get_num_barrier_iterations())
        duals = None
        if x is not None and outcome.termination == Termination.OPTIMAL:
            duals = np.zeros(form.A.shape[0])
            if kept.size:
                duals[kept] = solution.get_dual_values()
        set_solution(outcome, form, x, duals, exact=exact)
        return outcome

    def _build(self, cplex: Any, model: Any, form: StandardForm) -> I64:
        """Copy the problem into ``model`` and return the indices of the rows that are not free."""
        rows = row_kinds(form)
        kept = np.flatnonzero(rows.letter != "N")
        A = form.A.tocsr()[kept].tocsc()
        # CPLEX defines a range row as [rhs, rhs + width].
        rhs = np.where(rows.letter == "R", rows.rhs - rows.width, rows.rhs)[kept]
        matcnt, matind, matval = np.diff(A.indptr).tolist(), A.indices.tolist(), A.data.tolist()
        if kept.size and not matval:  # CPLEX rejects an empty matrix
            matcnt[0], matind, matval = 1, [0], [0.0]
        sense = model.objective.sense
        model.copylp(
            numcols=A.shape[1],
            numrows=A.shape[0],
            objsense=sense.maximize if form.sense == "max" else sense.minimize,
            obj=form.cost.tolist(),
            rhs=rhs.tolist(),
            senses="".join(rows.letter[kept].tolist()),
            matbeg=A.indptr[:-1].tolist(),
            matcnt=matcnt,
            matind=matind,
            matval=matval,
            lb=np.clip(form.col_lower, -_INFINITY, _INFINITY).tolist(),
            ub=np.clip(form.col_upper, -_INFINITY, _INFINITY).tolist(),
            range_values=rows.width[kept].tolist(),
        )
        model.objective.set_offset(form.offset)
        integers = np.flatnonzero(np.asarray(form.integer)).tolist()
        if integers:
            model.variables.set_types([(j, model.variables.type.integer) for j in integers])
        return kept

    def _set_options(self, cplex: Any, model: Any, form: StandardForm, request: SolveRequest) -> dict[str, Any]:
        effective: dict[str, Any] = {"threads": request.threads, "randomseed": request.seed}
        if request.time_limit_s is not None:
            effective["timelimit"] = float(request.time_limit_s)
        if form.is_mip:
            effective |= {
                "mip.tolerances.mipgap": 0.0,
                "mip.tolerances.absmipgap": 0.0,
                "mip.tolerances.integrality": 1e-9,
                "simplex.tolerances.feasibility": 1e-9,
            }
        else:
            effective |= {"simplex.tolerances.feasibility": 1e-9, "simplex.tolerances.optimality": 1e-9}
        known = {str(handle).removeprefix("parameters."): handle for handle in _handles(model.parameters)}
        effective |= self.read_options(
            request, known, lambda name: known[name].type(), lambda name: name.removeprefix("parameters.")
        )
        errors = (cplex.exceptions.CplexError, TypeError, ValueError)
        self.apply_options(effective, lambda name, value: known[name].set(value), errors)
        return effective


def _quiet(cplex: Any) -> Any:
    """Create a model that prints only if the log is shown, without the options of ``$ILOG_CPLEX_PARAMETER_FILE``."""
    model = cplex.Cplex()
    model.parameters.reset()
    for stream in (
        model.set_log_stream,
        model.set_error_stream,
        model.set_warning_stream,
        model.set_results_stream,
    ):
        stream(sys.stdout if solver_log.shown() else None)
    return model


def _handles(group: Any) -> list[Any]:
    """Return all parameters below a group."""
    handles = []
    for name, member in vars(group).items():
        if name.startswith("_"):
            continue
        if hasattr(member, "set") and hasattr(member, "default"):
            handles.append(member)
        elif hasattr(member, "get_changed"):
            handles += _handles(member)
    return handles


def _termination(status: Any, code: int) -> Termination:
    """Translate a CPLEX status code by its name."""
    name = status[code]
    if name in ("optimal", "MIP_optimal", "optimal_tolerance", "MIP_optimal_tolerance"):
        return Termination.OPTIMAL
    for part, termination in (
        ("infeasible_or_unbounded", Termination.INFEASIBLE_OR_UNBOUNDED),
        ("time_limit", Termination.TIME_LIMIT),
        ("mem", Termination.MEMORY_LIMIT),
        ("abort_user", Termination.INTERRUPTED),
        ("abort", Termination.ITERATION_LIMIT),
        ("limit", Termination.ITERATION_LIMIT),
        ("infeasible", Termination.INFEASIBLE),
        ("unbounded", Termination.UNBOUNDED),
        ("optimal", Termination.TOLERANCE),
    ):
        if part in name:
            return termination
    return Termination.ERROR


def _set_callback(cplex: Any, model: Any, log: ProgressLog) -> None:
    """Record incumbents through the generic callback, which does not change the search."""

    class IncumbentCallback:
        def invoke(self, context: Any) -> None:
            if context.in_candidate() and context.is_candidate_point():
                log.incumbent(np.array(context.get_candidate_point()))

    contexts = cplex.callbacks.Context.id
    model.set_callback(IncumbentCallback(), contexts.candidate)


ADAPTER = Cplex()

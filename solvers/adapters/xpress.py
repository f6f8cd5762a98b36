"""Adapter for FICO Xpress."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.solvers.adapters.interface import Capabilities, LicensedAdapter, ProgressLog, row_kinds, set_solution
from opticoll.solvers.process import solver_log
from opticoll.solvers.task import Outcome, Termination

if TYPE_CHECKING:
    from opticoll.formulations.standard_form import StandardForm
    from opticoll.solvers.adapters.interface import ProgressCallback
    from opticoll.solvers.task import SolveRequest

_TERMINATION = {
    "OPTIMAL": Termination.OPTIMAL,
    "INFEASIBLE": Termination.INFEASIBLE,
    "UNBOUNDED": Termination.UNBOUNDED,
}
_STOPPED = {
    "TIMELIMIT": Termination.TIME_LIMIT,
    "CTRLC": Termination.INTERRUPTED,
    "NODELIMIT": Termination.ITERATION_LIMIT,
    "ITERLIMIT": Termination.ITERATION_LIMIT,
    "SOLLIMIT": Termination.ITERATION_LIMIT,
    "WORKLIMIT": Termination.ITERATION_LIMIT,
    "USER": Termination.INTERRUPTED,
    "MEMORYERROR": Termination.MEMORY_LIMIT,
    "NUMERICALERROR": Termination.TOLERANCE,
}
_REMEDY = "get a licence (free for academics at fico.com/xpress) and set XPAUTH_PATH, or use 'highs' or 'scip'"


class Xpress(LicensedAdapter):
    """Adapter for FICO Xpress; the wheel includes a size-limited community licence."""

    name = "xpress"
    title = "FICO Xpress"
    package = "xpress"
    distribution = "xpress"
    algorithm = "simplex / branch and cut"
    absolute = frozenset({"mipabsstop", "mipaddcutoff", "mipabscutoff"})
    capabilities = Capabilities(mip=True, duals=True, bound=True, incumbents=True, warm_start=True, licensed=True)
    remedy, trial_columns = _REMEDY, 10_001
    install = "pip install xpress (in a checkout: pip install '.[xpress]'), and a licence for larger problems"

    def load(self, module: str | None = None) -> Any:
        """Import without the warning about the community licence, which the probe reports."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return super().load(module)

    def solve(self, form: StandardForm, request: SolveRequest, progress: ProgressCallback) -> Outcome:
        """Solve ``form``; see :meth:`Adapter.solve`."""
        xpress = self.load()
        try:
            return self._run(xpress, form, request, ProgressLog(form, progress))
        except (xpress.SolverError, xpress.InterfaceError) as error:
            raise self._unavailable(error, form) from error

    def _unavailable(self, error: Exception, form: StandardForm) -> Exception:
        text = _one_line(error)
        if any(word in text.lower() for word in ("licen", "community", "too many rows and columns")):
            return self.too_small(form, text)
        return RuntimeError(f"Xpress: {text}")

    def _run(self, xpress: Any, form: StandardForm, request: SolveRequest, log: ProgressLog) -> Outcome:
        problem = xpress.problem()
        problem.setOutputEnabled(solver_log.shown())
        effective = self._set_options(xpress, problem, form, request)
        self._build(xpress, problem, form)
        if form.is_mip:
            if request.warm_start is not None:
                problem.addMipSol(request.warm_start.tolist())

            def record(inner: Any, _data: Any) -> None:
                log.incumbent(np.array(inner.getCallbackSolution()), inner.attributes.bestbound)

            problem.addIntsolCallback(record, None)
        solve_status, solution_status = problem.optimize()
        solved, solution = solve_status.name, solution_status.name
        raw = f"{solved}, {solution}"
        stop = xpress.StopType(problem.attributes.stopstatus).name
        termination = _TERMINATION.get(solution, Termination.ERROR)
        if solved != "COMPLETED":
            termination = _STOPPED.get(stop, Termination.ERROR)
            raw += f" ({stop})"
        elif solution == "NOTFOUND":
            termination = Termination.INFEASIBLE_OR_UNBOUNDED
        outcome = Outcome(termination, raw=raw, options=effective, incumbents=log.incumbents)
        outcome.iterations = int(problem.attributes.simplexiter) + int(problem.attributes.bariter)
        has_solution = solution in ("OPTIMAL", "FEASIBLE")
        x = np.array(problem.getSolution()) if has_solution else None
        if form.is_mip:
            outcome.algorithm, outcome.nodes = "branch and cut", int(problem.attributes.nodes)
            set_solution(outcome, form, x, accepted=True)
            self.claim_bound(outcome, problem.attributes.bestbound, effective["optimalitytol"])
            return outcome
        barrier = int(problem.attributes.bariter) > 0
        exact = not barrier or effective.get("crossover") != 0
        outcome.algorithm = ("interior point" + (" with crossover" if exact else "")) if barrier else "simplex"
        duals = np.array(problem.getDuals()) if has_solution and form.A.shape[0] else None
        set_solution(outcome, form, x, np.zeros(0) if form.A.shape[0] == 0 else duals, exact=exact)
        return outcome

    def _build(self, xpress: Any, problem: Any, form: StandardForm) -> None:
        """Load the problem by columns."""
        rows = row_kinds(form)
        bounds = (np.clip(one, -xpress.infinity, xpress.infinity) for one in (form.col_lower, form.col_upper))
        integers = np.flatnonzero(np.asarray(form.integer))
        problem.loadMIP(
            "opticoll",
            rows.letter.tolist(),
            rows.rhs,
            rows.width,
            np.array(form.cost),
            form.A.indptr.astype(np.int64),
            None,
            form.A.indices.astype(np.int64),
            np.array(form.A.data),
            *bounds,
            ["I"] * integers.size if integers.size else None,
            integers if integers.size else None,
        )
        problem.chgObjSense(xpress.maximize if form.sense == "max" else xpress.minimize)
        problem.chgObj([-1], [-form.offset])

    def _set_options(self, xpress: Any, problem: Any, form: StandardForm, request: SolveRequest) -> dict[str, Any]:
        effective: dict[str, Any] = {
            "threads": request.threads,
            "randomseed": request.seed,
            "feastol": 1e-9,
            "optimalitytol": 1e-9,
        }
        if request.time_limit_s is not None:
            effective["timelimit"] = float(request.time_limit_s)
        if form.is_mip:
            effective |= {"miprelstop": 0.0, "mipabsstop": 1e-9, "miptol": 1e-9}
        known = problem.getControl()
        kinds = (int, float, str)
        effective |= self.read_options(
            request, known, lambda name: next(kind for kind in kinds if isinstance(known[name], kind)), str.lower
        )
        for name, value in effective.items():
            try:
                problem.setControl(name, value)
                kept = problem.getControl(name)
            except (xpress.SolverError, xpress.ModelError, xpress.InterfaceError, SystemError, KeyError) as error:
                raise self.rejected_value(name, value, _one_line(error)) from error
            if kept != value:
                raise self.rejected_value(name, value, "the solver would replace it by another value")
        return effective


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


ADAPTER = Xpress()

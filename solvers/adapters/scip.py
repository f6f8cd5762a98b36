"""Adapter for SCIP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.solvers.adapters.interface import Adapter, Capabilities, ProgressLog, row_kinds, set_solution
from opticoll.solvers.process import solver_log
from opticoll.solvers.task import Outcome, Termination

if TYPE_CHECKING:
    from opticoll.formulations.standard_form import StandardForm
    from opticoll.instances.topology import F64
    from opticoll.solvers.adapters.interface import ProgressCallback
    from opticoll.solvers.task import SolveRequest

_TERMINATION = {
    "optimal": Termination.OPTIMAL,
    "infeasible": Termination.INFEASIBLE,
    "unbounded": Termination.UNBOUNDED,
    "inforunbd": Termination.INFEASIBLE_OR_UNBOUNDED,
    "timelimit": Termination.TIME_LIMIT,
    "memlimit": Termination.MEMORY_LIMIT,
    "userinterrupt": Termination.INTERRUPTED,
    "terminate": Termination.INTERRUPTED,
}
_DUAL_TOLERANCE = "numerics/dualfeastol"


class Scip(Adapter):
    """Adapter for SCIP; an LP is solved at the root with presolve off, so the duals belong to the given rows."""

    name = "scip"
    title = "SCIP"
    package = "pyscipopt"
    distribution = "PySCIPOpt"
    algorithm = "branch and cut"
    absolute = frozenset({"limits/absgap", "limits/primal", "limits/dual"})
    capabilities = Capabilities(mip=True, duals=True, bound=True, incumbents=True, warm_start=True)
    install = "pip install pyscipopt"

    def solve(self, form: StandardForm, request: SolveRequest, progress: ProgressCallback) -> Outcome:
        """Solve ``form``; see :meth:`Adapter.solve`."""
        scip = self.load()
        model = scip.Model()
        model.hideOutput(quiet=not solver_log.shown())
        effective = self._set_options(model, form, request)
        variables, rows = self._build(scip, model, form)
        if request.warm_start is not None:
            start = model.createSol()
            for variable, value in zip(variables, request.warm_start.tolist(), strict=True):
                model.setSolVal(start, variable, value)
            model.addSol(start)
        log = ProgressLog(form, progress)
        if form.is_mip:
            model.includeEventhdlr(_event_handler(scip, variables, log), "progress", "records incumbents and bounds")
        model.optimize()
        raw = model.getStatus()
        outcome = Outcome(_TERMINATION.get(raw, Termination.ITERATION_LIMIT), raw=raw, options=effective)
        outcome.algorithm = self.algorithm if form.is_mip else "simplex (SoPlex)"
        outcome.version = f"{model.version()} (PySCIPOpt {self.version()})"
        outcome.iterations, outcome.nodes = int(model.getNLPIterations()), int(model.getNTotalNodes())
        outcome.incumbents = log.incumbents
        x = duals = None
        if model.getNSols() > 0:
            best = model.getBestSol()
            x = np.array([best[variable] for variable in variables])
            if not form.is_mip and outcome.termination == Termination.OPTIMAL:
                duals = np.array([0.0 if row is None else model.getDualSolVal(row) for row in rows])
                _share_among_bounds(form, x, duals)
        set_solution(outcome, form, x, duals, accepted=True)
        if form.is_mip:
            self.claim_bound(outcome, model.getDualbound(), model.getParam(_DUAL_TOLERANCE))
        return outcome

    def _set_options(self, model: Any, form: StandardForm, request: SolveRequest) -> dict[str, Any]:
        effective: dict[str, Any] = {
            "randomization/randomseedshift": request.seed,
            "parallel/maxnthreads": request.threads,
            "lp/threads": min(request.threads, 64),
            "limits/gap": 0.0,
        }
        if request.time_limit_s is not None:
            effective["limits/time"] = float(request.time_limit_s)
        if form.is_mip:
            effective["numerics/feastol"] = 1e-7
        else:
            effective |= {
                "numerics/feastol": 1e-9,
                "numerics/dualfeastol": 1e-9,
                "presolving/maxrounds": 0,
                "propagating/maxroundsroot": 0,
                "separating/maxroundsroot": 0,
            }
        known = model.getParams()
        effective |= self.read_options(request, known, lambda name: type(known[name]))
        self.apply_options(effective, model.setParam, (ValueError, KeyError, TypeError))
        if not form.is_mip:  # an LP needs no heuristics, and they disturb the duals
            model.setHeuristics(self.load().SCIP_PARAMSETTING.OFF)
            effective["heuristics"] = "off"
        return effective

    def _build(self, scip: Any, model: Any, form: StandardForm) -> tuple[list[Any], list[Any]]:
        """Add columns and rows one by one, as PySCIPOpt accepts no arrays; a free row is None."""
        inner = self.load("pyscipopt.scip")
        infinity = model.infinity()
        lower = np.clip(form.col_lower, -infinity, infinity).tolist()
        upper = np.clip(form.col_upper, -infinity, infinity).tolist()
        variables = [
            model.addVar(lb=low, ub=high, obj=cost, vtype="I" if integer else "C")
            for low, high, cost, integer in zip(
                lower, upper, form.cost.tolist(), np.asarray(form.integer).tolist(), strict=True
            )
        ]
        if form.sense == "max":
            model.setMaximize()
        model.addObjoffset(form.offset)
        terms = [inner.Term(variable) for variable in variables]
        by_row = form.A.tocsr()
        kinds = row_kinds(form).letter
        rows: list[Any] = []
        for i in range(form.A.shape[0]):
            if kinds[i] == "N":
                rows.append(None)
                continue
            part = slice(by_row.indptr[i], by_row.indptr[i + 1])
            pairs = zip(by_row.indices[part].tolist(), by_row.data[part].tolist(), strict=True)
            body = inner.Expr({terms[j]: value for j, value in pairs})
            low, high = float(form.row_lower[i]), float(form.row_upper[i])
            rows.append(
                model.addCons(inner.ExprCons(body, None if low == -np.inf else low, None if high == np.inf else high))
            )
        return variables, rows


def _share_among_bounds(form: StandardForm, x: F64, duals: F64) -> None:
    """Set the duals of rows of one column, of which SCIP gives all the dual of the column's bound.

    The tightest bound on the side that the reduced cost asks for has all of it: a row, or the column's own bound.
    """
    by_row = form.A.tocsr()
    single = np.flatnonzero(np.diff(by_row.indptr) == 1)
    duals[single] = 0.0
    left = form.cost - form.A.T @ duals
    at_least = (left > 0) == (form.sense == "min")
    slack, tightest = np.where(at_least, x - form.col_lower, form.col_upper - x), {}
    for i in single.tolist():
        j, factor = int(by_row.indices[by_row.indptr[i]]), float(by_row.data[by_row.indptr[i]])
        side = form.row_lower[i] if at_least[j] == (factor > 0) else form.row_upper[i]
        if factor and abs(side / factor - x[j]) < slack[j]:
            slack[j], tightest[j] = abs(side / factor - x[j]), (i, factor)
    for j, (i, factor) in tightest.items():
        duals[i] = left[j] / factor


def _event_handler(scip: Any, variables: list[Any], log: ProgressLog) -> Any:
    """Make the event handler that records incumbents and bounds."""

    class ProgressHandler(scip.Eventhdlr):
        def eventinit(self) -> None:
            for event in (scip.SCIP_EVENTTYPE.BESTSOLFOUND, scip.SCIP_EVENTTYPE.DUALBOUNDIMPROVED):
                self.model.catchEvent(event, self)

        def eventexit(self) -> None:
            for event in (scip.SCIP_EVENTTYPE.BESTSOLFOUND, scip.SCIP_EVENTTYPE.DUALBOUNDIMPROVED):
                self.model.dropEvent(event, self)

        def eventexec(self, event: Any) -> None:
            bound = self.model.getDualbound()
            if event.getType() == scip.SCIP_EVENTTYPE.BESTSOLFOUND:
                best = self.model.getBestSol()
                log.incumbent(np.array([best[variable] for variable in variables]), bound)
            else:
                log.bound(bound)

    return ProgressHandler()


ADAPTER = Scip()

"""Adapter for COPT."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.solvers.adapters.interface import Capabilities, LicensedAdapter, ProgressLog, set_solution
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
    "INF_OR_UNB": Termination.INFEASIBLE_OR_UNBOUNDED,
    "NUMERICAL": Termination.TOLERANCE,
    "IMPRECISE": Termination.TOLERANCE,
    "NODELIMIT": Termination.ITERATION_LIMIT,
    "ITERLIMIT": Termination.ITERATION_LIMIT,
    "TIMEOUT": Termination.TIME_LIMIT,
    "INTERRUPTED": Termination.INTERRUPTED,
}
_REMEDY = "get a licence (free for academics at shanshu.ai/copt) and set COPT_LICENSE_DIR, or use 'highs' or 'scip'"


class Copt(LicensedAdapter):
    """Adapter for COPT (coptpy); the wheel includes a size-limited licence."""

    name = "copt"
    title = "COPT"
    package = "coptpy"
    distribution = "coptpy"
    algorithm = "simplex / branch and cut"
    absolute = frozenset({"absgap"})
    capabilities = Capabilities(mip=True, duals=True, bound=True, incumbents=True, warm_start=True, licensed=True)
    remedy, trial_columns = _REMEDY, 10_001
    install = "pip install coptpy (in a checkout: pip install '.[copt]'), and a licence for larger problems"

    def solve(self, form: StandardForm, request: SolveRequest, progress: ProgressCallback) -> Outcome:
        """Solve ``form``; see :meth:`Adapter.solve`."""
        copt = self.load()
        try:
            with copt.Envr() as environment:
                model = environment.createModel("opticoll")
                return self._run(copt, model, form, request, ProgressLog(form, progress))
        except copt.CoptError as error:
            raise self._unavailable(error, form) from error

    def _unavailable(self, error: Any, form: StandardForm) -> Exception:
        if any(word in str(error).lower() for word in ("licen", "size")):
            return self.too_small(form, str(error))
        return RuntimeError(f"COPT: {error}")

    def _run(self, copt: Any, model: Any, form: StandardForm, request: SolveRequest, log: ProgressLog) -> Outcome:
        model.setParam("Logging", int(solver_log.shown()))
        effective = self._set_options(copt, model, form, request)
        kinds = np.where(np.asarray(form.integer), copt.COPT.INTEGER, copt.COPT.CONTINUOUS)
        ends = (form.row_lower, form.row_upper, form.col_lower, form.col_upper)
        sides = [np.clip(one, -copt.COPT.INFINITY, copt.COPT.INFINITY) for one in ends]
        import scipy.sparse as sp

        model.loadMatrix(np.array(form.cost), sp.csc_matrix(form.A), *sides, kinds)
        model.setObjSense(copt.COPT.MAXIMIZE if form.sense == "max" else copt.COPT.MINIMIZE)
        model.setObjConst(form.offset)
        if request.warm_start is not None and form.is_mip:
            model.setMipStart(model.getVars(), request.warm_start.tolist())
            model.loadMipStart()
        callback = _callback(copt, log)  # the model keeps no reference
        if form.is_mip:
            model.setCallback(callback, copt.COPT.CBCONTEXT_MIPSOL)
        model.solve()
        status_names = {getattr(copt.COPT, name): name for name in _TERMINATION}
        raw = status_names.get(model.status, str(model.status))
        outcome = Outcome(_TERMINATION.get(raw, Termination.ERROR), raw=raw, options=effective)
        outcome.incumbents = log.incumbents
        if form.is_mip:
            outcome.algorithm, outcome.nodes = "branch and cut", int(model.nodecnt)
            set_solution(outcome, form, np.array(model.getValues()) if model.hasmipsol else None, accepted=True)
            self.claim_bound(outcome, model.bestbnd, effective["DualTol"])
            return outcome
        barrier = int(model.barrieriter)
        exact = bool(model.hasbasis)
        outcome.algorithm = ("interior point" + (" with crossover" if exact else "")) if barrier else "simplex"
        outcome.iterations = int(model.simplexiter) + barrier
        x = duals = None
        if model.haslpsol:
            x, duals = np.array(model.getValues()), np.array(model.getDuals())
        set_solution(outcome, form, x, duals, exact=exact)
        return outcome

    def _set_options(self, copt: Any, model: Any, form: StandardForm, request: SolveRequest) -> dict[str, Any]:
        effective: dict[str, Any] = {"Threads": request.threads, "FeasTol": 1e-9, "DualTol": 1e-9}
        if request.time_limit_s is not None:
            effective["TimeLimit"] = float(request.time_limit_s)
        if form.is_mip:
            effective |= {"RelGap": 0.0, "AbsGap": 0.0, "IntTol": 1e-9}
        known = {name.lower(): name for name in dir(copt.COPT.Param) if not name.startswith("_")}
        effective |= self.read_options(
            request, known.values(), lambda name: type(model.getParam(name)), lambda name: known.get(name.lower(), name)
        )
        for name, value in effective.items():
            _, _, _, low, high = model.getParamInfo(name)
            if not low <= value <= high:  # the solver would silently clip it
                raise self.rejected_value(name, value, f"it must be in [{low}, {high}]")
            model.setParam(name, value)
        return effective


def _callback(copt: Any, log: ProgressLog) -> Any:
    """Make the callback that records incumbents."""

    class IncumbentCallback(copt.CallbackBase):
        def callback(self) -> None:
            if self.where() == copt.COPT.CBCONTEXT_MIPSOL:
                log.incumbent(np.array(self.getSolution()), self.getInfo(copt.COPT.CbInfo.BestBnd))

    return IncumbentCallback()


ADAPTER = Copt()

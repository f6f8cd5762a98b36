"""Adapter for Gurobi."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import SolverUnavailable
from opticoll.solvers.adapters.interface import Capabilities, LicensedAdapter, ProgressLog, row_kinds, set_solution
from opticoll.solvers.process import solver_log
from opticoll.solvers.task import Outcome, Termination

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opticoll.formulations.standard_form import StandardForm
    from opticoll.solvers.adapters.interface import ProgressCallback
    from opticoll.solvers.task import SolveRequest

_TERMINATION = {
    2: (Termination.OPTIMAL, "OPTIMAL"),
    3: (Termination.INFEASIBLE, "INFEASIBLE"),
    4: (Termination.INFEASIBLE_OR_UNBOUNDED, "INF_OR_UNBD"),
    5: (Termination.UNBOUNDED, "UNBOUNDED"),
    6: (Termination.INTERRUPTED, "CUTOFF"),
    7: (Termination.ITERATION_LIMIT, "ITERATION_LIMIT"),
    8: (Termination.ITERATION_LIMIT, "NODE_LIMIT"),
    9: (Termination.TIME_LIMIT, "TIME_LIMIT"),
    10: (Termination.ITERATION_LIMIT, "SOLUTION_LIMIT"),
    11: (Termination.INTERRUPTED, "INTERRUPTED"),
    12: (Termination.TOLERANCE, "NUMERIC"),
    13: (Termination.TOLERANCE, "SUBOPTIMAL"),
    16: (Termination.ITERATION_LIMIT, "WORK_LIMIT"),
    17: (Termination.MEMORY_LIMIT, "MEM_LIMIT"),
}
_METHODS = {
    0: "primal simplex",
    1: "dual simplex",
    2: "interior point",
    3: "concurrent",
    6: "first order (PDHG)",
}
#: Methods whose solution is a vertex only after crossover.
_INTERIOR = (2, 6)
_TOO_LARGE = 10010
_LICENCE = range(10001, 10030)
_REMEDY = "get a licence (free for academics at gurobi.com/academia) and set GRB_LICENSE_FILE, or use 'highs' or 'scip'"
_LIMIT = "2000 variables and 2000 constraints"


class Gurobi(LicensedAdapter):
    """Adapter for Gurobi (gurobipy); the wheel includes a size-limited licence."""

    name = "gurobi"
    title = "Gurobi"
    package = "gurobipy"
    distribution = "gurobipy"
    algorithm = "simplex / branch and cut"
    absolute = frozenset({"mipgapabs", "poolgapabs", "cutoff", "bestobjstop", "bestbdstop"})
    capabilities = Capabilities(mip=True, duals=True, bound=True, incumbents=True, warm_start=True, licensed=True)
    remedy, trial_columns = _REMEDY, 2001
    install = "pip install gurobipy, and a licence for problems beyond " + _LIMIT

    def solve(self, form: StandardForm, request: SolveRequest, progress: ProgressCallback) -> Outcome:
        """Solve ``form``; see :meth:`Adapter.solve`."""
        gurobi = self.load()
        try:
            with _quiet(gurobi) as model:
                return self._run(gurobi, model, form, request, ProgressLog(form, progress))
        except gurobi.GurobiError as error:
            raise self._unavailable(error, form) from error

    def _unavailable(self, error: Any, form: StandardForm) -> Exception:
        number = getattr(error, "errno", 0)
        if number == _TOO_LARGE:
            return self.too_small(form, _LIMIT)
        if number in _LICENCE or "license" in str(error).lower():
            return SolverUnavailable(f"solver 'gurobi' has no usable licence ({error}): {_REMEDY}")
        return RuntimeError(f"Gurobi error {number}: {error}")

    def _run(self, gurobi: Any, model: Any, form: StandardForm, request: SolveRequest, log: ProgressLog) -> Outcome:
        effective = self._set_options(gurobi, model, form, request)
        x, links, kept = self._build(gurobi, model, form)
        if request.warm_start is not None and form.is_mip:
            x.Start = request.warm_start
        model.optimize(_callback(gurobi, x, log) if form.is_mip else None)
        termination, raw = _TERMINATION.get(model.Status, (Termination.ERROR, str(model.Status)))
        outcome = Outcome(termination, raw=raw, options=effective, incumbents=log.incumbents)
        outcome.version = ".".join(map(str, gurobi.gurobi.version()))
        outcome.iterations = int(model.IterCount) + int(getattr(model, "BarIterCount", 0))
        if form.is_mip:
            outcome.algorithm, outcome.nodes = "branch and cut", int(model.NodeCount)
            vector = np.asarray(x.X) if model.SolCount > 0 else None
            set_solution(outcome, form, vector, accepted=True)
            interior = effective.get("Crossover") == 0 or effective.get("NodeMethod", 0) not in (-1, 0, 1)
            self.claim_bound(outcome, model.ObjBound, np.inf if interior else effective["OptimalityTol"])
            return outcome
        exact, used = _has_basis(gurobi, x), effective.get("Method", -1)
        if used not in _METHODS:
            used = getattr(model, "ConcurrentWinMethod", -1)
        outcome.algorithm = _METHODS.get(used, "simplex")
        if used in _INTERIOR and exact:
            outcome.algorithm += " with crossover"
        vector = duals = None
        try:
            vector = np.asarray(x.X)
            duals = np.zeros(form.A.shape[0])
            if links is not None:
                duals[kept] = np.asarray(links.Pi)
        except (gurobi.GurobiError, AttributeError):  # no solution at this limit
            duals = None
        set_solution(outcome, form, vector, duals, exact=exact)
        return outcome

    def _build(self, gurobi: Any, model: Any, form: StandardForm) -> tuple[Any, Any, Any]:
        """Copy the problem into ``model``; a range row becomes an equality with a bounded slack."""
        import scipy.sparse as sp

        kinds = np.where(np.asarray(form.integer), "I", "C")
        x = model.addMVar(form.A.shape[1], lb=form.col_lower, ub=form.col_upper, obj=form.cost, vtype=kinds)
        model.ModelSense = -1 if form.sense == "max" else 1
        model.ObjCon = form.offset
        rows = row_kinds(form)
        kept = np.flatnonzero(rows.letter != "N")
        if not kept.size:
            return x, None, kept
        ranged = np.flatnonzero(rows.letter[kept] == "R")
        A, everything = form.A.tocsr()[kept], x
        if ranged.size:
            slack = model.addMVar(ranged.size, lb=0.0, ub=rows.width[kept][ranged])
            pick = sp.csr_array(
                (np.ones(ranged.size), (ranged, np.arange(ranged.size))), shape=(kept.size, ranged.size)
            )
            A, everything = sp.csr_array(sp.hstack([A, pick])), gurobi.concatenate((x, slack))
        letters = rows.letter[kept]
        sense = np.where(letters == "L", "<", np.where(letters == "G", ">", "="))
        return x, model.addMConstr(A, everything, sense, rows.rhs[kept]), kept

    def _set_options(self, gurobi: Any, model: Any, form: StandardForm, request: SolveRequest) -> dict[str, Any]:
        effective: dict[str, Any] = {"Threads": request.threads, "Seed": request.seed}
        if request.time_limit_s is not None:
            effective["TimeLimit"] = float(request.time_limit_s)
        tight = {"FeasibilityTol": 1e-9, "OptimalityTol": 1e-9}
        effective |= {"MIPGap": 0.0, "IntFeasTol": 1e-9} | tight if form.is_mip else tight
        known = {name.lower(): name for name in dir(gurobi.GRB.Param) if not name.startswith("_")}
        effective |= self.read_options(
            request,
            known.values(),
            lambda name: model.getParamInfo(name)[1],
            lambda name: known.get(name.lower(), name),
        )
        self.apply_options(effective, model.setParam, (gurobi.GurobiError, TypeError))
        return effective


def _has_basis(gurobi: Any, x: Any) -> bool:
    """Whether the solution is a vertex: without crossover there is no basis."""
    try:
        return bool(np.asarray(x.VBasis).size)
    except (gurobi.GurobiError, AttributeError):
        return False


@contextmanager
def _quiet(gurobi: Any) -> Iterator[Any]:
    """Create a model that prints only if the log is shown, without the options of a ``gurobi.env`` in the folder."""
    with gurobi.Env(empty=True) as env:
        env.setParam("OutputFlag", 0)
        env.start()
        with gurobi.Model(env=env) as model:
            model.resetParams()
            model.setParam("OutputFlag", int(solver_log.shown()))
            yield model


def _callback(gurobi: Any, x: Any, log: ProgressLog) -> Any:
    """Make the callback that records incumbents and bounds."""
    callback = gurobi.GRB.Callback

    def record(model: Any, where: int) -> None:
        if where == callback.MIPSOL:
            log.incumbent(np.asarray(model.cbGetSolution(x)), model.cbGet(callback.MIPSOL_OBJBND))
        elif where == callback.MIP:
            log.bound(model.cbGet(callback.MIP_OBJBND))

    return record


ADAPTER = Gurobi()

"""Adapter for Clarabel."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.solvers.adapters.interface import Adapter, Capabilities, set_solution
from opticoll.solvers.process import solver_log
from opticoll.solvers.task import Outcome, Termination

if TYPE_CHECKING:
    from opticoll.formulations.standard_form import StandardForm
    from opticoll.instances.topology import F64, I64
    from opticoll.solvers.adapters.interface import ProgressCallback
    from opticoll.solvers.task import SolveRequest

_TERMINATION = {
    "Solved": Termination.OPTIMAL,
    "PrimalInfeasible": Termination.INFEASIBLE,
    "DualInfeasible": Termination.INFEASIBLE_OR_UNBOUNDED,
    "MaxIterations": Termination.ITERATION_LIMIT,
    "MaxTime": Termination.TIME_LIMIT,
    "AlmostSolved": Termination.TOLERANCE,
    "AlmostPrimalInfeasible": Termination.TOLERANCE,
    "AlmostDualInfeasible": Termination.TOLERANCE,
    "NumericalError": Termination.TOLERANCE,
    "InsufficientProgress": Termination.TOLERANCE,
    "CallbackTerminated": Termination.INTERRUPTED,
}


class Clarabel(Adapter):
    """Adapter for Clarabel, a conic interior-point solver."""

    name = "clarabel"
    title = "Clarabel"
    package = "clarabel"
    distribution = "clarabel"
    algorithm = "interior point"
    capabilities = Capabilities(duals=True, exact=False)
    install = "pip install clarabel"

    def solve(self, form: StandardForm, request: SolveRequest, progress: ProgressCallback) -> Outcome:
        """Solve ``form``; see :meth:`Adapter.solve`."""
        clarabel = self.load()
        settings = clarabel.DefaultSettings()
        settings.verbose = solver_log.shown()
        effective = self._set_options(settings, request)
        A, b, equalities, owner, sign = _cones(form)
        cones = [clarabel.ZeroConeT(equalities), clarabel.NonnegativeConeT(b.size - equalities)]
        cones = [cone for cone, size in zip(cones, (equalities, b.size - equalities), strict=True) if size]
        import scipy.sparse as sp

        flip = -1.0 if form.sense == "max" else 1.0
        n = form.A.shape[1]
        try:
            solver = clarabel.DefaultSolver(sp.csc_matrix((n, n)), flip * form.cost, A, b, cones, settings)
        except Exception as error:  # its own class is in no public module
            if "settings" in str(error):
                raise self.rejected_options(request.options, str(error)) from error
            raise
        solution = solver.solve()
        raw = str(solution.status)
        outcome = Outcome(_TERMINATION.get(raw, Termination.ERROR), raw=raw, options=effective)
        outcome.algorithm, outcome.iterations = self.algorithm, int(solution.iterations)
        z = np.asarray(solution.z)
        duals = np.zeros(form.A.shape[0])
        from_row = owner >= 0
        np.add.at(duals, owner[from_row], -flip * sign[from_row] * z[from_row])
        set_solution(outcome, form, np.asarray(solution.x), duals, exact=False)
        return outcome

    def _set_options(self, settings: Any, request: SolveRequest) -> dict[str, Any]:
        tolerance = min(1e-9, max(1e-12, request.rel_tol / 10))
        names = ("tol_gap_abs", "tol_gap_rel", "tol_feas")
        effective: dict[str, Any] = dict.fromkeys(names, tolerance) | {"max_threads": request.threads}
        if request.time_limit_s is not None:
            effective["time_limit"] = float(request.time_limit_s)
        known = [name for name in dir(settings) if not name.startswith("_") and name != "default"]
        effective |= self.read_options(request, known, lambda name: type(getattr(settings, name)))
        errors = (TypeError, ValueError, OverflowError, AttributeError)
        self.apply_options(effective, partial(setattr, settings), errors)
        return effective


def _cones(form: StandardForm) -> tuple[Any, F64, int, I64, F64]:
    """Write rows and column bounds as ``A x + s = b``: first the equalities (s = 0), then the inequalities (s >= 0).

    Returns A, b, the number of equalities, the row of ``form`` behind each conic row (-1: a column bound) and its sign.
    """
    import scipy.sparse as sp

    m, n = form.A.shape
    both = sp.csr_array(sp.vstack([form.A, sp.eye_array(n)], format="csr"))
    lower = np.concatenate([form.row_lower, form.col_lower])
    upper = np.concatenate([form.row_upper, form.col_upper])
    same = lower == upper
    equal = np.flatnonzero(same)
    above = np.flatnonzero(~same & np.isfinite(upper))
    below = np.flatnonzero(~same & np.isfinite(lower))
    A = sp.csc_matrix(sp.vstack([both[equal], both[above], -both[below]]))
    b = np.concatenate([upper[equal], upper[above], -lower[below]])
    source = np.concatenate([equal, above, below])
    sign = np.concatenate([np.ones(equal.size + above.size), -np.ones(below.size)])
    return A, b, int(equal.size), np.where(source < m, source, -1), sign


ADAPTER = Clarabel()

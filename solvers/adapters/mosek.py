"""Adapter for MOSEK."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import SolverUnavailable
from opticoll.solvers.adapters.interface import Capabilities, LicensedAdapter, ProgressLog, set_solution, unknown_option
from opticoll.solvers.process import solver_log
from opticoll.solvers.task import Outcome, Termination

if TYPE_CHECKING:
    from opticoll.formulations.standard_form import StandardForm
    from opticoll.instances.topology import F64
    from opticoll.solvers.adapters.interface import ProgressCallback
    from opticoll.solvers.task import SolveRequest

_TERMINATION = {
    "optimal": Termination.OPTIMAL,
    "integer_optimal": Termination.OPTIMAL,
    "prim_infeas_cer": Termination.INFEASIBLE,
    "dual_infeas_cer": Termination.UNBOUNDED,
}
_STOPPED = {
    "trm_max_time": Termination.TIME_LIMIT,
    "trm_max_iterations": Termination.ITERATION_LIMIT,
    "trm_mio_num_relaxs": Termination.ITERATION_LIMIT,
    "trm_mio_num_branches": Termination.ITERATION_LIMIT,
    "trm_num_max_num_int_solutions": Termination.ITERATION_LIMIT,
    "trm_user_callback": Termination.INTERRUPTED,
    "trm_stall": Termination.TOLERANCE,
    "trm_numerical_problem": Termination.TOLERANCE,
}
_REMEDY = (
    "get a licence (free trial and academic ones at mosek.com) and put it at ~/mosek/mosek.lic or set "
    "MOSEKLM_LICENSE_FILE; 'opticoll export' needs none; or use 'highs' or 'clarabel'"
)
_SUFFIXES = (".mps", ".lp", ".task", ".jtask", ".opf", ".ptf", ".cbf")


class Mosek(LicensedAdapter):
    """Adapter for MOSEK; writing model files needs no licence, solving does."""

    name = "mosek"
    title = "MOSEK"
    package = "mosek"
    distribution = "Mosek"
    algorithm = "interior point / branch and cut"
    absolute = frozenset({"mio_tol_abs_gap", "upper_obj_cut", "lower_obj_cut"})
    capabilities = Capabilities(mip=True, duals=True, bound=True, incumbents=True, warm_start=True, licensed=True)
    remedy, trial_columns = _REMEDY, 1
    install = "pip install mosek, and a licence"

    def solve(self, form: StandardForm, request: SolveRequest, progress: ProgressCallback) -> Outcome:
        """Solve ``form``; see :meth:`Adapter.solve`."""
        mosek = self.load()
        log = ProgressLog(form, progress)
        with mosek.Env() as env, env.Task() as task:
            if solver_log.shown():
                task.set_Stream(mosek.streamtype.log, sys.stdout.write)
            effective = self._set_options(mosek, task, form, request)
            self._build(mosek, task, form)
            if form.is_mip:
                task.set_InfoCallback(_callback(mosek, task, log))
                if request.warm_start is not None:
                    task.putxx(mosek.soltype.itg, request.warm_start)
            try:
                stopped = task.optimize()
            except mosek.Error as error:
                raise self._unavailable(error) from error
            return self._outcome(mosek, task, form, effective, stopped, log)

    def _unavailable(self, error: Any) -> Exception:
        name = str(error.errno)
        if "lic" in name:
            return SolverUnavailable(f"solver 'mosek' has no usable licence ({error.msg.split('. ')[0]}): {_REMEDY}")
        return RuntimeError(f"MOSEK {name}: {error.msg}")

    def _outcome(
        self, mosek: Any, task: Any, form: StandardForm, effective: dict[str, Any], stopped: Any, log: ProgressLog
    ) -> Outcome:
        if form.is_mip:
            kind, algorithm = mosek.soltype.itg, "branch and cut"
        elif task.solutiondef(mosek.soltype.bas):
            kind, algorithm = mosek.soltype.bas, "interior point with basis identification"
        else:
            kind, algorithm = mosek.soltype.itr, "interior point"
        status = _word(task.getsolsta(kind) if task.solutiondef(kind) else mosek.solsta.unknown)
        reason = _word(stopped)
        termination = _TERMINATION.get(status) or _STOPPED.get(reason, Termination.ERROR)
        if status == "unknown" and task.solutiondef(kind):
            termination = {
                "prim_infeas": Termination.INFEASIBLE,
                "dual_infeas": Termination.UNBOUNDED,
                "prim_infeas_or_unbounded": Termination.INFEASIBLE_OR_UNBOUNDED,
            }.get(_word(task.getprosta(kind)), termination)
        outcome = Outcome(termination, raw=f"{status} ({reason})", algorithm=algorithm, options=effective)
        outcome.incumbents = log.incumbents
        x = duals = None
        if status in ("optimal", "integer_optimal", "prim_feas", "prim_and_dual_feas"):
            x = np.asarray(task.getxx(kind))
            if not form.is_mip and form.A.shape[0]:
                duals = np.asarray(task.gety(kind))
        set_solution(outcome, form, x, duals, exact=form.is_mip or kind == mosek.soltype.bas, accepted=True)
        if form.is_mip:
            outcome.nodes = int(task.getintinf(mosek.iinfitem.mio_num_branch))
            self.claim_bound(outcome, task.getdouinf(mosek.dinfitem.mio_obj_bound))
        else:
            outcome.iterations = int(task.getintinf(mosek.iinfitem.intpnt_iter))
            if not outcome.iterations:
                outcome.algorithm = "simplex"
        return outcome

    def _build(self, mosek: Any, task: Any, form: StandardForm) -> None:
        """Copy the problem into ``task`` by columns."""
        m, n = form.A.shape
        task.appendcons(m)
        task.appendvars(n)
        start = form.A.indptr.astype(np.int64)
        task.putacolslice(0, n, start[:-1], start[1:], form.A.indices.astype(np.int32), np.array(form.A.data))
        task.putclist(np.arange(n, dtype=np.int32), np.array(form.cost))
        task.putcfix(float(form.offset))
        task.putvarboundslice(0, n, *_bounds(mosek, form.col_lower, form.col_upper))
        task.putconboundslice(0, m, *_bounds(mosek, form.row_lower, form.row_upper))
        integers = np.flatnonzero(np.asarray(form.integer)).astype(np.int32)
        task.putvartypelist(integers, [mosek.variabletype.type_int] * integers.size)
        task.putobjsense(mosek.objsense.maximize if form.sense == "max" else mosek.objsense.minimize)

    def _set_options(self, mosek: Any, task: Any, form: StandardForm, request: SolveRequest) -> dict[str, Any]:
        effective: dict[str, Any] = {"MSK_IPAR_NUM_THREADS": request.threads}
        tolerance = min(1e-8, max(1e-12, request.rel_tol / 10))
        if request.time_limit_s is not None:
            effective["MSK_DPAR_OPTIMIZER_MAX_TIME"] = float(request.time_limit_s)
        if form.is_mip:
            effective |= {
                "MSK_IPAR_MIO_SEED": request.seed,
                "MSK_DPAR_MIO_TOL_REL_GAP": 0.0,
                "MSK_DPAR_MIO_TOL_FEAS": 1e-9,
            }
        else:
            effective |= dict.fromkeys(
                ("MSK_DPAR_INTPNT_TOL_REL_GAP", "MSK_DPAR_INTPNT_TOL_PFEAS", "MSK_DPAR_INTPNT_TOL_DFEAS"), tolerance
            ) | dict.fromkeys(("MSK_DPAR_BASIS_TOL_X", "MSK_DPAR_BASIS_TOL_S"), 1e-9)
        known = [
            f"MSK_{letter}PAR_{name.upper()}"
            for letter, group in (("I", mosek.iparam), ("D", mosek.dparam), ("S", mosek.sparam))
            for name in vars(group)
            if not name.startswith("_")
        ]
        for name, value in request.options.items():
            if name.upper() not in known:
                raise unknown_option(self.name, name, known)
            effective[name.upper()] = value
        for name, value in effective.items():
            try:
                task.putparam(name, str(value))
            except mosek.Error as error:
                raise self.rejected_value(name, value, error.msg.strip()) from error
        return effective


def _bounds(mosek: Any, lower: F64, upper: F64) -> tuple[list[Any], F64, F64]:
    """Return the bound keys, and the bounds with infinities replaced by 0."""
    key = mosek.boundkey
    by_code = np.array([key.fr, key.lo, key.up, key.ra, key.fx], dtype=object)
    code = np.isfinite(lower) + 2 * np.isfinite(upper)
    code[(code == 3) & (lower == upper)] = 4
    finite_lower, finite_upper = np.array(lower), np.array(upper)
    finite_lower[~np.isfinite(lower)] = 0.0
    finite_upper[~np.isfinite(upper)] = 0.0
    return by_code[code].tolist(), finite_lower, finite_upper


def _word(constant: Any) -> str:
    """Return the last part of the name of a MOSEK constant."""
    return str(constant).rsplit(".", 1)[-1]


def _callback(mosek: Any, task: Any, log: ProgressLog) -> Any:
    """Make the callback that records incumbents and bounds."""
    bound_at = int(mosek.dinfitem.mio_obj_bound)

    def record(code: Any, doubles: Any, _integers: Any, _longs: Any) -> int:
        bound = doubles[bound_at] if doubles is not None else None
        if code == mosek.callbackcode.new_int_mio:
            log.incumbent(np.asarray(task.getxx(mosek.soltype.itg)), bound)
        elif code == mosek.callbackcode.im_mio:
            log.bound(bound)
        return 0

    return record


ADAPTER = Mosek()

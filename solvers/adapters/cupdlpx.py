"""Adapter for cuPDLPx."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import SolverUnavailable, refuse
from opticoll.solvers.adapters.interface import Adapter, Capabilities, LicenceState, set_solution
from opticoll.solvers.process import solver_log
from opticoll.solvers.task import Outcome, Termination

if TYPE_CHECKING:
    from opticoll.formulations.standard_form import StandardForm
    from opticoll.solvers.adapters.interface import ProgressCallback
    from opticoll.solvers.task import SolveRequest

_TERMINATION = {
    "OPTIMAL": Termination.OPTIMAL,
    "PRIMAL_INFEASIBLE": Termination.INFEASIBLE,
    "DUAL_INFEASIBLE": Termination.INFEASIBLE_OR_UNBOUNDED,
    "INFEASIBLE_OR_UNBOUNDED": Termination.INFEASIBLE_OR_UNBOUNDED,
    "TIME_LIMIT": Termination.TIME_LIMIT,
    "ITERATION_LIMIT": Termination.ITERATION_LIMIT,
    "FEAS_POLISH_SUCCESS": Termination.TOLERANCE,
    "UNSPECIFIED": Termination.TOLERANCE,
}
_NO_GPU = "run it on a machine with an NVIDIA GPU and its driver (nvidia-smi lists it), or use 'highs-pdlp' or 'pdlp'"


class CuPdlpx(Adapter):
    """Adapter for cuPDLPx, a restarted Halpern PDHG method on an NVIDIA GPU (Lu, Peng & Yang 2025).

    It follows the documented Python interface of version 0.3. The package is built from source (CUDA 12.4 or newer,
    CMake, a C++ compiler). It needs a GPU, for which the adapter looks first. Programs that it does not take are solved
    column by column.

    Version 0.3.0, built without its presolver, was run on an H100 (2026-11-26): 36 linear programs of the benchmark at
    1e-6, and ``certified-pdlp`` with this solver up to GK(1000,4), whose bounds come from its duals.

    Duals. For a minimization ``Pi`` are shadow prices d(objective)/d(rhs), <= 0 for a binding ``<=`` row, which is the
    convention of this package. For maximizations the sign differs between versions, so every problem is passed as a
    minimization.
    """

    name = "cupdlpx"
    title = "cuPDLPx (GPU)"
    package = "cupdlpx"
    distribution = "cupdlpx"
    algorithm = "first order (PDLP) on a GPU"
    capabilities = Capabilities(duals=True, warm_start=True, exact=False)
    install = "pip install '.[gpu]' in a checkout; needs an NVIDIA GPU, CUDA 12.4 or newer (nvcc) and CMake"

    def probe_licence(self) -> LicenceState:
        """Check that the package loads and that there is a GPU."""
        try:
            self.load()
        except SolverUnavailable as error:
            return LicenceState(usable=False, state="cannot be loaded", remedy=str(error))
        if gpus() == 0:
            return LicenceState(usable=False, state="no NVIDIA GPU found", remedy=_NO_GPU)
        return LicenceState(usable=True, state="free")

    def solve(self, form: StandardForm, request: SolveRequest, progress: ProgressCallback) -> Outcome:
        """Solve ``form`` as a minimization; see :meth:`Adapter.solve`."""
        import scipy.sparse as sp

        cupdlpx = self.load()
        if gpus() == 0:
            refuse(f"solver {self.name!r}", f"no NVIDIA GPU found; {_NO_GPU}", SolverUnavailable)
        trivial = without_matrix(form)
        if trivial is not None:
            return trivial
        flip = -1.0 if form.sense == "max" else 1.0
        model = cupdlpx.Model(
            objective_vector=flip * form.cost,
            constraint_matrix=sp.csr_matrix(form.A),
            constraint_lower_bound=np.asarray(form.row_lower),
            constraint_upper_bound=np.asarray(form.row_upper),
            variable_lower_bound=np.asarray(form.col_lower),
            variable_upper_bound=np.asarray(form.col_upper),
            objective_constant=flip * form.offset,
        )
        effective = self._set_options(cupdlpx, model, request)
        if request.warm_start is not None:
            model.setWarmStart(primal=request.warm_start)
        model.optimize()
        raw = str(model.StatusName)
        outcome = Outcome(_TERMINATION.get(raw, Termination.ERROR), raw=raw, options=effective)
        outcome.algorithm = self.algorithm
        outcome.iterations = None if model.IterCount is None else int(model.IterCount)
        x = None if model.X is None else np.asarray(model.X, dtype=float)
        duals = None if model.Pi is None else flip * np.asarray(model.Pi, dtype=float)
        set_solution(outcome, form, x, duals, exact=False)
        return outcome

    def _set_options(self, cupdlpx: Any, model: Any, request: SolveRequest) -> dict[str, Any]:
        """Set the common options and those of the request, by name or alias; return the effective options."""
        tolerance = max(1e-9, request.rel_tol)
        effective: dict[str, Any] = {
            "verbose": solver_log.shown(),
            "eps_optimal_relative": tolerance,
            "eps_feasible_relative": tolerance,
        }
        if request.time_limit_s is not None:
            effective["time_sec_limit"] = float(request.time_limit_s)
        aliases = dict(getattr(cupdlpx.PDLP, "_PARAM_ALIAS", {}))
        known = [*model.Params.keys(), *aliases]
        effective |= self.read_options(
            request, known, lambda name: type(model.getParam(name)), lambda name: aliases.get(name, name)
        )
        self.apply_options(effective, model.setParam, (TypeError, ValueError, KeyError))
        return effective


def without_matrix(form: StandardForm) -> Outcome | None:
    """Solve a linear program whose matrix has no nonzeros; None for any other.

    Every column without a coefficient is best at the bound that its cost prefers.
    """
    if form.A.nnz:
        return None
    if (form.row_lower > 0).any() or (form.row_upper < 0).any():
        return Outcome(Termination.INFEASIBLE, raw="an empty row is not 0", options={})
    cost = -form.cost if form.sense == "max" else form.cost
    nearest_zero = np.clip(0.0, form.col_lower, form.col_upper)
    x = np.where(cost > 0, form.col_lower, np.where(cost < 0, form.col_upper, nearest_zero))
    if not np.isfinite(x).all():
        return Outcome(Termination.UNBOUNDED, raw="a column without a coefficient has no best bound", options={})
    outcome = Outcome(Termination.OPTIMAL, raw="no nonzeros", options={}, iterations=0)
    set_solution(outcome, form, x, np.zeros(form.A.shape[0]), exact=False)
    return outcome


def gpus() -> int:
    """Count the NVIDIA GPUs visible to this process; 0 without a driver."""
    import ctypes

    count = ctypes.c_int(0)
    for name in ("libcuda.so.1", "nvcuda.dll"):
        try:
            driver = ctypes.CDLL(name)
        except OSError:
            continue
        if driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0:
            return count.value
    return 0


ADAPTER = CuPdlpx()

"""Adapters for HiGHS: default, simplex, interior point (IPX, HiPO) and first order (PDLP).

HiGHS silently falls back to another algorithm if the requested one is not built in. Therefore the return code of every
option is checked, and ``Outcome.algorithm`` follows from the iteration counts.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from opticoll.errors import BadOption, SolverUnavailable, refuse
from opticoll.solvers.adapters.interface import Adapter, Capabilities, LicenceState, ProgressLog, set_solution
from opticoll.solvers.process import solver_log
from opticoll.solvers.task import Outcome, SimplexBasis, Termination

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opticoll.formulations.standard_form import StandardForm
    from opticoll.solvers.adapters.interface import ProgressCallback
    from opticoll.solvers.task import SolveRequest

_TERMINATION = {
    "kOptimal": Termination.OPTIMAL,
    "kModelEmpty": Termination.OPTIMAL,
    "kInfeasible": Termination.INFEASIBLE,
    "kUnbounded": Termination.UNBOUNDED,
    "kUnboundedOrInfeasible": Termination.INFEASIBLE_OR_UNBOUNDED,
    "kTimeLimit": Termination.TIME_LIMIT,
    "kIterationLimit": Termination.ITERATION_LIMIT,
    "kSolutionLimit": Termination.ITERATION_LIMIT,
    "kObjectiveBound": Termination.INTERRUPTED,
    "kObjectiveTarget": Termination.INTERRUPTED,
    "kInterrupt": Termination.INTERRUPTED,
    "kHighsInterrupt": Termination.INTERRUPTED,
    "kMemoryLimit": Termination.MEMORY_LIMIT,
    "kUnknown": Termination.TOLERANCE,
}
#: Options of a simplex that starts from a basis and needs few steps: weights that need no initial computation (devex),
#: and costs that are not perturbed (measured: 50 capacities of one link on genkautz:n=64,d=4 in half the time).
FROM_A_BASIS = {"simplex_dual_edge_weight_strategy": 1, "dual_simplex_cost_perturbation_multiplier": 0.0}
FROM_A_FEASIBLE_BASIS = {"simplex_strategy": 4}
#: Algorithms of linear programs that use one thread, unless one of these options is set. Another thread would wait
#: actively for work: 4 ms of processor time a solve.
_SERIAL, _PARALLEL = ("simplex", "ipx"), {"parallel", "simplex_strategy"}
_COLUMNWISE = 1
_FEASIBLE = 2
_VALID = 1
_DUAL_TOLERANCE = "dual_feasibility_tolerance"
_HIPO_MISSING = (
    "this highspy wheel was built without HiPO (it needs BLAS and METIS): "
    "build HiGHS with -DHIPO=ON, or use 'highs-ipx'"
)


@cache
def _quiet(highspy: Any) -> Any:
    """HiGHS's class, silent from the start: its own prints a banner, as it sets callbacks before any option is set."""

    class Quiet(highspy.Highs):
        def enableCallbacks(self) -> None:
            self.setOptionValue("output_flag", False)
            super().enableCallbacks()

    return Quiet


def quiet_highs(highspy: Any, **options: float | str) -> Any:
    """An object of HiGHS with these options, whose output is off unless they say otherwise."""
    highs = _quiet(highspy)()
    highs.resetGlobalScheduler(True)  # an earlier run with other threads would make this one fail
    for name, value in options.items():
        highs.setOptionValue(name, value)
    return highs


def pass_form(highspy: Any, highs: Any, form: StandardForm) -> None:
    """Pass a problem to a Highs object as arrays.

    Raises
    ------
    BadOption
        If a bound or coefficient is out of range.
    """
    A = form.stored
    sense = highspy.ObjSense.kMaximize if form.sense == "max" else highspy.ObjSense.kMinimize
    status = highs.passModel(
        A.shape[1],
        A.shape[0],
        A.nnz,
        _COLUMNWISE,
        int(sense),
        float(form.offset),
        form.cost,
        form.col_lower,
        form.col_upper,
        form.row_lower,
        form.row_upper,
        A.indptr.astype(np.int32),
        A.indices.astype(np.int32),
        A.data,
        np.asarray(form.integer).astype(np.int32),
    )
    if status == highspy.HighsStatus.kError:
        refuse("solver 'highs' rejects the problem", "a bound or coefficient is out of range (1e15)", BadOption)


def highs_basis(highspy: Any, basis: SimplexBasis) -> Any:
    """A basis as HiGHS has it."""
    result = highspy.HighsBasis()
    kinds = [highspy.HighsBasisStatus(number) for number in range(5)]
    result.col_status, result.row_status = (
        [kinds[one] for one in part.tolist()] for part in (basis.columns, basis.rows)
    )
    result.valid, result.alien = True, False
    return result


def own_basis(basis: Any) -> SimplexBasis:
    """A basis of HiGHS as ours."""
    columns, rows = (np.array(list(map(int, part)), dtype=np.int8) for part in (basis.col_status, basis.row_status))
    return SimplexBasis(columns, rows)


class Highs(Adapter):
    """HiGHS with its default algorithms: dual simplex for an LP, branch and bound for a MIP."""

    name = "highs"
    title = "HiGHS"
    package = "highspy"
    distribution = "highspy"
    algorithm = "simplex / branch and bound"
    absolute = frozenset({"mip_abs_gap", "objective_bound", "objective_target"})
    capabilities = Capabilities(mip=True, duals=True, bound=True, incumbents=True, warm_start=True)
    install = "pip install highspy"
    own_options: ClassVar[Mapping[str, str]] = {}

    def tolerances(self, request: SolveRequest, *, mip: bool) -> dict[str, float]:
        """Translate ``rel_tol``; simplex and branch and bound are exact up to rounding, so the tolerances are fixed."""
        tight = {"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9}
        return {"mip_rel_gap": 0.0, "mip_abs_gap": 1e-9, "mip_feasibility_tolerance": 1e-8} if mip else tight

    def solve(self, form: StandardForm, request: SolveRequest, progress: ProgressCallback) -> Outcome:
        """Solve ``form``; see :meth:`Adapter.solve`."""
        highspy = self.load()
        highs = quiet_highs(highspy, output_flag=solver_log.shown())
        effective = self._set_options(highspy, highs, form, request)
        pass_form(highspy, highs, form)
        if request.warm_start is not None and form.is_mip:
            index = np.arange(form.stored.shape[1], dtype=np.int32)
            highs.setSolution(index.size, index, request.warm_start)
        if request.basis is not None and request.basis.fits(form) and not form.is_mip:
            highs.setBasis(highs_basis(highspy, request.basis))
        log = ProgressLog(form, progress)
        if form.is_mip:
            highs.cbMipImprovingSolution += lambda event: log.incumbent(
                np.array(event.data_out.mip_solution, dtype=float), event.data_out.mip_dual_bound
            )
            highs.cbMipLogging += lambda event: log.bound(event.data_out.mip_dual_bound)
        highs.run()
        self._retry(highspy, highs, request, effective)
        highs.resetGlobalScheduler(True)  # its threads would wait actively for more work
        outcome = self._outcome(highspy, highs, form, effective)
        outcome.incumbents = log.incumbents
        basis = highs.getBasis() if request.want_basis and outcome.x is not None and not form.is_mip else None
        if basis is not None and basis.valid:
            outcome.basis = own_basis(basis)
        return outcome

    def _retry(self, highspy: Any, highs: Any, request: SolveRequest, effective: dict[str, Any]) -> None:
        """Run again with other options if the first run failed; the default does nothing."""

    def _set_options(self, highspy: Any, highs: Any, form: StandardForm, request: SolveRequest) -> dict[str, Any]:
        """Set the common options, those of the adapter and those of the request; return the effective options."""
        asked = {**self.own_options, **request.options}
        serial = not form.is_mip and asked.get("solver", "simplex") in _SERIAL and not asked.keys() & _PARALLEL
        effective: dict[str, Any] = {"threads": 1 if serial else request.threads, "random_seed": request.seed}
        if request.time_limit_s is not None:
            effective["time_limit"] = float(request.time_limit_s)
        effective |= {**self.tolerances(request, mip=form.is_mip), **self.own_options}
        if request.basis is not None and not form.is_mip:
            effective |= FROM_A_FEASIBLE_BASIS if request.basis.feasible else FROM_A_BASIS
        known = [option for option in dir(highs.getOptions()) if not option.startswith("_")]
        kinds = {"kBool": bool, "kInt": int, "kDouble": float, "kString": str}
        effective |= self.read_options(request, known, lambda name: kinds[highs.getOptionType(name)[1].name])
        ok = highspy.HighsStatus.kOk
        for name, value in effective.items():
            if highs.setOptionValue(name, value) != ok:
                if (name, value) == ("solver", "hipo"):
                    refuse(f"solver {self.name!r}", f"{_HIPO_MISSING}", SolverUnavailable)
                raise self.rejected_value(name, value)
        return effective

    def _outcome(self, highspy: Any, highs: Any, form: StandardForm, effective: dict[str, Any]) -> Outcome:
        status, info, solution = highs.getModelStatus(), highs.getInfo(), highs.getSolution()
        termination = _TERMINATION.get(status.name, Termination.ERROR)
        outcome = Outcome(termination, raw=status.name.removeprefix("k"), version=highs.version(), options=effective)
        outcome.algorithm = self._algorithm(info, form)
        outcome.iterations = sum(
            max(0, getattr(info, f"{kind}_iteration_count")) for kind in ("simplex", "ipm", "pdlp")
        )
        x = np.array(solution.col_value, dtype=float) if solution.value_valid else None
        duals = np.array(solution.row_dual, dtype=float) if solution.dual_valid else None
        accepted = info.primal_solution_status == _FEASIBLE
        exact = form.is_mip or info.basis_validity == _VALID
        if accepted or not form.is_mip:
            set_solution(outcome, form, x, duals, exact=exact, accepted=accepted and exact)
        if form.is_mip:
            outcome.nodes = max(0, info.mip_node_count)
            self.claim_bound(outcome, info.mip_dual_bound, effective.get(_DUAL_TOLERANCE, 0.0))
        return outcome

    def _algorithm(self, info: Any, form: StandardForm) -> str:
        """Infer the algorithm that ran from its iteration counts."""
        if form.is_mip:
            return "branch and bound"
        if info.pdlp_iteration_count > 0:
            return "first order (PDLP)"
        if info.ipm_iteration_count > 0:
            return "interior point (IPX)" + (" with crossover" if info.basis_validity == _VALID else "")
        return "simplex" if info.simplex_iteration_count > 0 else "presolve"


class HighsSimplex(Highs):
    """Simplex of HiGHS; dual unless ``simplex_strategy`` selects another."""

    name = "highs-simplex"
    title = "HiGHS simplex"
    algorithm = "simplex"
    capabilities = Capabilities(duals=True, bound=True)
    own_options: ClassVar[Mapping[str, str]] = {"solver": "simplex"}


class HighsIpx(Highs):
    """Interior point of HiGHS with iterative linear algebra, without crossover."""

    name = "highs-ipx"
    title = "HiGHS IPX"
    algorithm = "interior point (IPX)"
    capabilities = Capabilities(duals=True, exact=False)
    own_options: ClassVar[Mapping[str, str]] = {"solver": "ipx", "run_crossover": "off"}

    def tolerances(self, request: SolveRequest, *, mip: bool) -> dict[str, float]:
        """Tighten ``rel_tol`` by three digits: the last iterations are cheap, and certificates need the accuracy."""
        tolerance = min(1e-6, max(1e-10, request.rel_tol / 1000))
        names = ("primal_feasibility_tolerance", "dual_feasibility_tolerance", "ipm_optimality_tolerance")
        return dict.fromkeys(names, tolerance)

    def _retry(self, highspy: Any, highs: Any, request: SolveRequest, effective: dict[str, Any]) -> None:
        """Run crossover if IPX alone ends with status "Unknown", whose duals are useless (for example on ring:5)."""
        if "run_crossover" in request.options or highs.getModelStatus() != highspy.HighsModelStatus.kUnknown:
            return
        effective["run_crossover"] = "on"
        highs.setOptionValue("run_crossover", "on")
        highs.run()


class HighsHipo(HighsIpx):
    """Interior point of HiGHS with direct linear algebra, if the wheel includes it."""

    name = "highs-hipo"
    title = "HiGHS HiPO"
    algorithm = "interior point (HiPO)"
    own_options: ClassVar[Mapping[str, str]] = {"solver": "hipo", "run_crossover": "off"}

    def probe_licence(self) -> LicenceState:
        """Check that the wheel includes HiPO."""
        highspy = self.load()
        highs = quiet_highs(highspy)
        if highs.setOptionValue("solver", "hipo") == highspy.HighsStatus.kOk:
            return LicenceState(usable=True, state="free")
        return LicenceState(usable=False, state="not in this wheel", remedy=_HIPO_MISSING)

    def _algorithm(self, info: Any, form: StandardForm) -> str:
        return super()._algorithm(info, form).replace("IPX", "HiPO")


class HighsPdlp(Highs):
    """First-order method (PDLP) of HiGHS."""

    name = "highs-pdlp"
    title = "HiGHS PDLP"
    algorithm = "first order (PDLP)"
    capabilities = Capabilities(duals=True, exact=False)
    own_options: ClassVar[Mapping[str, str]] = {"solver": "pdlp"}

    def solve(self, form: StandardForm, request: SolveRequest, progress: ProgressCallback) -> Outcome:
        """Solve ``form`` as a minimization; for maximizations PDLP returns duals of the wrong sign or "Unknown"."""
        if form.sense == "min":
            return super().solve(form, request, progress)
        outcome = super().solve(form.minimized(), request, progress)
        if outcome.objective is not None:
            outcome.objective = -outcome.objective
        if outcome.row_duals is not None:
            outcome.row_duals = -outcome.row_duals
        return outcome

    def tolerances(self, request: SolveRequest, *, mip: bool) -> dict[str, float]:
        """Use ``rel_tol`` itself: every further digit is expensive for a first-order method."""
        tolerance = max(1e-9, request.rel_tol)
        names = ("primal_feasibility_tolerance", "dual_feasibility_tolerance", "pdlp_optimality_tolerance")
        return dict.fromkeys(names, tolerance)


ADAPTER = (Highs(), HighsSimplex(), HighsIpx(), HighsPdlp(), HighsHipo())

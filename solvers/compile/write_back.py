"""What a Pyomo or CVXPY model holds after a solve: as its layer's own solvers leave it, nothing of an earlier solve.

Everything that a layer's solver sets is set, or cleared where this solve has no such number:

- CVXPY: ``status`` and ``value`` of the problem, values of variables and duals of constraints, ``solver_stats`` and
  ``compilation_time``. Without a solution the value is infinite (infeasible, unbounded) or None.
- Pyomo: values of all variables that are not fixed and that an active row or the objective mentions, those of other
  models included, and the flag ``stale`` of all; in the import suffixes ``dual`` (derivative of the objective by the
  right-hand side), ``rc`` (by the variable) and ``slack`` (upper side minus body; lower side minus body without an
  upper one; of two sides the larger slack, that of the lower one negative). All other active import suffixes are empty,
  and so are the results that ``model.solutions`` keeps.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import OpticollError
from opticoll.formulations.model import CvxpyModel
from opticoll.formulations.standard_form import packed
from opticoll.solvers import verify
from opticoll.solvers.task import PROVEN, Termination

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from opticoll.formulations.standard_form import StandardForm
    from opticoll.instances.topology import F64
    from opticoll.solvers.compile.compilation import Compiled
    from opticoll.solvers.run import Run

    Arrays = Mapping[str, F64]

#: CVXPY's words for endings without a solution; those for all others are errors.
_WITHOUT_SOLUTION = {
    Termination.INFEASIBLE: "infeasible",
    Termination.UNBOUNDED: "unbounded",
    Termination.INFEASIBLE_OR_UNBOUNDED: "infeasible_or_unbounded",
    **dict.fromkeys(
        (
            Termination.TIME_LIMIT,
            Termination.MEMORY_LIMIT,
            Termination.ITERATION_LIMIT,
            Termination.INTERRUPTED,
        ),
        "user_limit",
    ),
}


class Loader:
    """Writes what a solve has found into the model that was compiled; ``form`` is the matrix that is solved."""

    def __init__(self, compiled: Compiled) -> None:
        self.built, self.form = compiled.built, compiled.form
        self._layer = (
            _IntoCvxpy(self.built, compiled.compile_s) if isinstance(self.built, CvxpyModel) else _IntoPyomo(compiled)
        )

    def __call__(self, run: Run) -> None:
        """Load the result of a run."""
        found = run.verified and run.values is not None
        duals = run.duals if found and not self.form.is_mip else None
        self._layer.load(run, self.form, run.values if found else None, duals)

    @contextmanager
    def clearing(self) -> Iterator[None]:
        """Forget every earlier solution if a solve breaks off; what refuses to solve leaves the model as it is."""
        try:
            yield
        except OpticollError:
            raise
        except BaseException:
            self._layer.clear()
            raise


class _IntoCvxpy:
    def __init__(self, built: CvxpyModel, compile_s: float) -> None:
        self._built, self._compile_s = built, compile_s

    def load(self, run: Run, form: StandardForm, values: Arrays | None, duals: Arrays | None) -> None:
        from cvxpy.problems.problem import SolverStats
        from cvxpy.reductions.solution import Solution

        from opticoll.solvers.compile.cvxpy_models import turned

        self.clear()
        problem: Any = self._built.problem
        status = _cvxpy_status(run, values is not None)
        times = run.record.time
        problem._compilation_time, problem._solve_time = self._compile_s, times.solve_s
        problem._solver_stats = SolverStats(run.record.solver.name or "", solve_time=times.solver_s)
        if status is None:
            return
        primal: dict[int, Any] = {one.id: None for one in problem.variables()}
        for name, named in self._built.variables.items():
            if values is not None and name in values:
                primal[named.item.id] = _own(named, values[name])
        flip = -1.0 if form.sense == "min" else 1.0
        back = set(turned(problem.constraints)) if self._built.as_stated else set()
        dual = {
            named.item.id: _own(named, -flip * array if named.item.id in back else flip * array)
            for name, named in self._built.constraints.items()
            if duals is not None and (array := duals.get(name)) is not None
        }
        infinite = np.inf if status == "infeasible" else -np.inf if status == "unbounded" else None
        if infinite is not None and problem.objective.NAME == "maximize":
            infinite = -infinite
        attributes = {"solve_time": times.solver_s}
        problem.unpack(Solution(status, infinite, primal, {key: _scalar(one) for key, one in dual.items()}, attributes))
        if values is None:
            problem._value = infinite  # CVXPY evaluates the objective, which may be a constant
        else:
            problem._solution.opt_val = problem.value

    def clear(self) -> None:
        problem: Any = self._built.problem
        problem._clear_solution()
        problem._solver_stats = problem._solve_time = problem._compilation_time = None


def _cvxpy_status(run: Run, found: bool) -> str | None:
    """CVXPY's word for the ending of a run; None for an error, which CVXPY raises."""
    if not found:
        return _WITHOUT_SOLUTION.get(run.termination)
    if run.proof in PROVEN:
        return "optimal"
    return "optimal_inaccurate" if run.termination in (Termination.OPTIMAL, Termination.TOLERANCE) else "user_limit"


def _own(named: Any, array: F64) -> Any:
    """The entries of a CVXPY variable or constraint in a named array, in the object's own shape."""
    import scipy.sparse as sp

    flat, shape = np.asarray(array, dtype=float).ravel(), named.item.shape
    own = flat if named.index is None else flat[named.index]
    own = own.reshape(shape, order="C" if named.index is None else "F")
    return sp.diags_array(np.diag(own)) if getattr(named.item, "attributes", {}).get("diag") else own


def _scalar(dual: F64) -> F64 | float:
    return dual.item() if dual.shape == () else dual


class _IntoPyomo:
    def __init__(self, compiled: Compiled) -> None:
        import pyomo.core as pyo

        from opticoll.solvers.compile.compilation import pyomo_blocks
        from opticoll.solvers.compile.pyomo_models import components

        assert not isinstance(compiled.built, CvxpyModel)
        self._model, self._columns, self._rows = compiled.built.model, compiled.columns, compiled.rows
        form = compiled.form
        mentioned = np.diff(form.A.indptr).astype(bool) | (form.cost != 0)
        used = {id(self._columns[at]) for at in np.flatnonzero(mentioned).tolist()}
        #: Place in the named array and variable, by name, of those that an active row or the objective mentions.
        self._entries: dict[str, list[tuple[int, Any]]] = {}
        own = {one.name: one for one in components(self._model, pyo.Var)}
        for name, block in compiled.form.columns.items():
            if name in own:
                items = list(own[name].values())
                places = pyomo_blocks({name: compiled.built.variables[name]}, items)[name].index.tolist()
            else:
                items, places = self._columns, block.index.tolist()
            present = ((at, items[place]) for at, place in enumerate(places) if place >= 0)
            self._entries[name] = [(at, entry) for at, entry in present if entry.fixed or id(entry) in used]

    def load(self, run: Run, form: StandardForm, values: Arrays | None, duals: Arrays | None) -> None:
        from pyomo.core.staleflag import StaleFlagManager

        self._forget()
        if values is None:
            self._set({})
            return
        self._set(values)
        StaleFlagManager.mark_all_as_stale(delayed=True)
        suffixes: dict[str, Any] = {}
        for suffix in self._import_suffixes():
            suffixes.setdefault(suffix.local_name, suffix)
        x = verify.pack(form, values) if "slack" in suffixes else None
        if x is not None:
            suffixes["slack"].update(zip(self._rows, _slacks(form, x).tolist(), strict=True))
        y = packed(form.rows, form.A.shape[0], duals or {})
        if duals is not None and suffixes.keys() & {"dual", "rc"} and not np.isnan(y).any():
            self._load_prices(suffixes, form, y)

    def _load_prices(self, suffixes: Mapping[str, Any], form: StandardForm, y: F64) -> None:
        """Duals of all active constraints, 0 for those without variables, and reduced costs of all free variables."""
        import pyomo.core as pyo

        if "dual" in suffixes:
            known = {id(one): value for one, value in zip(self._rows, y.tolist(), strict=True)}
            active = self._model.component_data_objects(pyo.Constraint, active=True)
            suffixes["dual"].update((one, known.get(id(one), 0.0)) for one in active)
        if "rc" in suffixes:
            reduced = (form.cost - form.A.T @ y).tolist()
            known = {id(one): value for one, value in zip(self._columns, reduced, strict=True)}
            entries = (entry for listed in self._entries.values() for _, entry in listed if not entry.fixed)
            suffixes["rc"].update((one, known.get(id(one), 0.0)) for one in entries)

    def clear(self) -> None:
        self._forget()
        self._set({})

    def _set(self, values: Arrays) -> None:
        """Give all variables that are not fixed their values, None without one."""
        for name, entries in self._entries.items():
            numbers = np.asarray(values[name]).ravel().tolist() if name in values else None
            for at, entry in entries:
                if not entry.fixed:
                    entry.set_value(None if numbers is None else numbers[at], skip_validation=True)
                elif numbers is not None:
                    entry.stale = False

    def _forget(self) -> None:
        """Mark all values as stale, and empty suffixes and kept results."""
        from pyomo.core.base.PyomoModel import ModelSolutions
        from pyomo.core.staleflag import StaleFlagManager

        StaleFlagManager.mark_all_as_stale()
        for suffix in self._import_suffixes():
            suffix.clear()
        kept = getattr(self._model, "solutions", None)
        if isinstance(kept, ModelSolutions) and len(kept):
            kept.clear(clear_symbol_maps=False)

    def _import_suffixes(self) -> list[Any]:
        """The suffixes that solvers fill, those of the root first."""
        import pyomo.core as pyo
        from pyomo.core.base.block import TraversalStrategy

        suffixes = self._model.component_objects(
            pyo.Suffix, active=True, descent_order=TraversalStrategy.BreadthFirstSearch
        )
        return [one for one in suffixes if one.import_enabled()]


def _slacks(form: StandardForm, x: F64) -> F64:
    """The slack of every row, as the module says."""
    activity = form.A @ x
    above, below = form.row_upper - activity, activity - form.row_lower
    return np.where(np.isinf(below) | (np.isfinite(above) & (above > below)), above, -below)

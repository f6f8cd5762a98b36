"""The model of a formulation on an instance: to read, to change by hand, and to solve again."""

from __future__ import annotations

import inspect
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.analysis.plots.style import label
from opticoll.analysis.rendering import WIDTH
from opticoll.arguments import flags_checked
from opticoll.errors import BadInput, refuse
from opticoll.formulations.matrix.stated_model import StatedModel
from opticoll.formulations.model import CvxpyModel, build_model, forms_of, is_own
from opticoll.formulations.parameters import read_parameters
from opticoll.formulations.registry import formulation as formulation_named
from opticoll.formulations.variables import index_names
from opticoll.instances import Topology
from opticoll.instances.readers.objects import as_instance
from opticoll.nearest_names import nearest
from opticoll.solvers import verify
from opticoll.solvers.auto import SIMPLEX_VARIABLES
from opticoll.solvers.compile.compilation import refuse_other_axes
from opticoll.solvers.compile.recompiled import Fingerprint, Recompiler, fingerprint
from opticoll.solvers.compile.user_models import as_found, layer_of, named_model, program_of
from opticoll.solvers.compile.write_back import Loader
from opticoll.solvers.task import Task, Termination
from opticoll.solvers.warm_start import WarmStart

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from opticoll.analysis.result.result import InstanceLike, Result, Setting, StartLike
    from opticoll.formulations import Formulation
    from opticoll.formulations.matrix.stated_model import StatedProgram
    from opticoll.formulations.model import PyomoModel
    from opticoll.formulations.standard_form import StandardForm
    from opticoll.instances import Instance
    from opticoll.instances.topology import F64
    from opticoll.solvers.compile.compilation import Compiled
    from opticoll.solvers.run import Plan
    from opticoll.solvers.task import Progress, SimplexBasis
    from opticoll.types import DataSize, Gibibytes, Seconds

#: From a basis that is far from the optimum of the changed data, simplex takes longer than interior point from nothing
#: (measured on genkautz:n=64,d=4, 4284 rows: 11 to 76 steps if one capacity moves by 0.03, 0.04 s; 1,400 to 28,000 if
#: two links are halved, 0.7 to 14 s; interior point 0.4 s). So it is given this many steps, and more by rows.
STEPS, FEWEST_STEPS, ROWS_A_STEP = "simplex_iteration_limit", 100, 20
#: Time that a solve gets in any case [s].
LEAST_S = 0.01


def _few_steps(form: StandardForm) -> dict[str, Setting]:
    """The option that limits the steps of simplex on a large program."""
    large = form.cost.size > SIMPLEX_VARIABLES
    return {STEPS: FEWEST_STEPS + form.row_lower.size // ROWS_A_STEP} if large else {}


class OtherForm(BadInput, AttributeError):
    """The attribute of the modelling layer in which a model is not stated: ``hasattr`` finds that it has none."""


class Model:
    """The stated model of a formulation on an instance, which can be changed by hand and solved.

    ``pyomo`` (or ``cvxpy``) is the model itself. Pyomo models are changed in place: constraints and variables added,
    deactivated, fixed. A CVXPY problem is replaced: ``m.cvxpy = cp.Problem(m.cvxpy.objective, m.cvxpy.constraints +
    [...])``. :meth:`solve` then solves what the model says, and its record names a model that was changed by hand as
    such.

    Attributes
    ----------
    formulation, instance, form
        The problem, its instance, and the modelling layer.
    """

    def __init__(self, plan: Plan) -> None:
        #: The links before any update and their capacities now, 0 for those that are left out.
        self._network: Topology | None = plan.instance if isinstance(plan.instance, Topology) else None
        self._capacity: F64 | None = None if self._network is None else self._network.capacity
        self._build(plan)

    def _build(self, plan: Plan) -> None:
        self._plan = plan
        self.formulation: Formulation = plan.problem
        self.instance: Instance = plan.instance
        self.form: str = plan.form
        built = build_model(plan.problem, plan.form)
        self._built: PyomoModel | CvxpyModel = named_model(built)
        self._stated: Any = self._built.problem if isinstance(self._built, CvxpyModel) else self._built.model
        self._original = fingerprint(self._stated)
        self._compile = Recompiler(self._built)
        self._loader: Loader | None = None
        self._updated = False
        self._basis: SimplexBasis | None = None
        self._far = False
        self._values: Mapping[str, F64] | None = None

    # the model

    @property
    def stated(self) -> Any:
        """The model: a ``pyomo.environ.ConcreteModel`` or a ``cvxpy.Problem``."""
        return self._stated

    @property
    def pyomo(self) -> Any:
        """The Pyomo model.

        Raises
        ------
        BadInput
            If the model is stated in CVXPY.
        """
        return self._in("pyomo")

    @pyomo.setter
    def pyomo(self, model: Any) -> None:
        refuse("model", "a Pyomo model is changed in place; solve another one by oc.solve(model)")

    @property
    def cvxpy(self) -> Any:
        """The CVXPY problem; another one may be put in its place.

        Raises
        ------
        BadInput
            If the model is stated in Pyomo.
        """
        return self._in("cvxpy")

    @cvxpy.setter
    def cvxpy(self, problem: Any) -> None:
        if layer_of(problem) != "cvxpy":
            refuse("model", f"cvxpy must be a cp.Problem, not {type(problem).__name__}")
        self._in("cvxpy")
        self._stated = problem

    def _in(self, form: str) -> Any:
        if self.form != form:
            refuse("model", f"it is stated in {self.form}; write oc.model(..., form={form!r})", OtherForm)
        return self._stated

    @property
    def matrix(self) -> StandardForm:
        """The model as it is now, compiled: sparse constraint matrix, bounds, cost, names of rows and columns."""
        return self._compile(self._stated).form

    @property
    def mathematics(self) -> str:
        """Sets, data, variables, objective and constraints as the formulation states them."""
        module = inspect.getmodule(type(self.formulation))
        path = f"opticoll.formulations.{self.formulation.name.replace('-', '_')}"
        stated = type(self.formulation) if is_own(self.formulation) else (sys.modules.get(path) or module)
        return inspect.cleandoc(stated.__doc__ or getattr(module, "__doc__", None) or "")

    @property
    def changed(self) -> bool:
        """Whether the model was changed by hand since it was built; :meth:`update` is no such change."""
        return self._differs(fingerprint(self._stated))

    def _differs(self, now: Fingerprint) -> bool:
        return now != self._original or not self._data_as_stated()

    def _data_as_stated(self) -> bool:
        data = changeable(self.formulation)
        return all(
            np.array_equal(array, _held(data[name], data[name], array.size))
            for name, array in self._parameters().items()
        )

    def _parameters(self) -> dict[str, F64]:
        """Current values of the parameters of the model that the formulation can update."""
        data = changeable(self.formulation)
        if self.form == "cvxpy":
            found = {name: self._stated.param_dict.get(name) for name in data}
            return {name: np.asarray(one.value).ravel() for name, one in found.items() if one is not None}
        from pyomo.core import Param

        # find_component would parse the name by one parser for all threads.
        found = {name: self._stated.component(name) for name in data}
        return {
            name: np.array([float(getattr(entry, "value", entry)) for entry in one.values()])
            for name, one in found.items()
            if one is not None and one.ctype is Param  # a component of that name may have taken its place
        }

    # changes

    def update(self, *, capacity: Any = None, **settings: Any) -> Model:
        """Change the data of the model; the next :meth:`solve` starts from where the last one ended.

        Parameters
        ----------
        capacity
            Capacities of links [link bandwidths]: a mapping from links (``"u->v"`` or ``(u, v)``) to numbers, an array
            with one per link, or a number. A link of capacity 0 is left out until it gets another one.
        **settings
            Other parameters of the formulation, such as ``demand``.

        Returns
        -------
        The model itself. Capacities, and demands between the same ranks, change in place and keep what was changed by
        hand. For anything else the model is built again.

        Raises
        ------
        BadInput
            For an unknown link or parameter; or if the model would have to be built again and was changed by hand.
        """
        from opticoll.instances.link_changes import changed_capacities, with_links_of

        instance, now = self.instance, self._capacity
        if capacity is not None:
            if self._network is None or now is None:
                refuse("update", f"{self.formulation.name} has no links whose capacity could change; omit capacity")
            now = changed_capacities(self._network, capacity, now)
            instance = with_links_of(self._network, now)
        given = {**{p.name: self._plan.parameters[p.name] for p in self.formulation.parameters}, **settings}
        if unknown := [name for name in settings if name not in {p.name for p in self.formulation.parameters}]:
            names = ["capacity", *(p.name for p in self.formulation.parameters)]
            refuse("update", f"no parameter {unknown[0]!r}; {nearest(unknown[0], names)}")
        plan = _planned(type(self.formulation), instance, self.form, given)
        if not self._changes_in_place(plan.problem):
            if self.changed:
                msg = (
                    "update: these data need other variables or constraints, and the model was changed by hand; "
                    "build it again with oc.model and repeat the change"
                )
                raise BadInput(msg)
            self._build(plan)
            self._capacity = now
            return self
        self._capacity = now
        self._plan, self.formulation, self.instance, self._updated = plan, plan.problem, plan.instance, True
        return self

    def _changes_in_place(self, new: Formulation) -> bool:
        """Put new data into the parameters of the model; False if they do not fit into it."""
        old, now = changeable(self.formulation), changeable(new)
        held = self._parameters()
        same = {name for name in now if name in old and np.array_equal(old[name], now[name])}
        fits = now.keys() == old.keys() and all(old[name].shape == now[name].shape for name in now)
        if not now or not fits or not (now.keys() - same) <= held.keys():
            return False
        named = self._built.variables.keys()
        if index_names(self.formulation._arrays(named)) != index_names(new._arrays(named)):
            return False
        for name in now.keys() - same:
            values = np.asarray(now[name], dtype=float)
            self._put(name, values if self.form == "cvxpy" else _held(values, old[name], held[name].size))
        return True

    def _put(self, name: str, values: F64) -> None:
        """Give a parameter of the model new values, in the order of :meth:`_parameters`."""
        if self.form == "cvxpy":
            parameter = self._stated.param_dict[name]
            parameter.value = values.reshape(parameter.shape)
            return
        parameter = self._stated.component(name)
        for key, value in zip(list(parameter.keys()), values.tolist(), strict=True):
            parameter[key] = value

    # the solve

    @flags_checked
    def solve(
        self,
        method: str = "auto",
        *,
        time_limit: Seconds | None = None,
        memory_limit: Gibibytes | None = None,
        tol: float = 1e-6,
        seed: int = 0,
        threads: int = 2,
        exact: bool = False,
        shard: DataSize | None = None,
        start: StartLike | None = None,
        log: bool = False,
        on_progress: Callable[[Progress], None] | None = None,
        stop: threading.Event | None = None,
        **options: Setting,
    ) -> Result:
        """Solve the model as it is now; its variables hold the solution afterwards.

        A model that is as it was built (or updated) is solved as its formulation. One that was changed by hand is
        solved as the program that it states (:mod:`opticoll.formulations.matrix.stated_model`): checked against that
        matrix, and proven by that matrix's own duals. Where its variables still are those of the formulation, the
        result has link loads and a plot, and says what the original checker finds.

        Parameters
        ----------
        method
            A solver, ``"auto"``, or, for a model that was not changed, a method of the formulation.
        **options
            Options of the solver, by name.
        time_limit, memory_limit, tol, seed, threads, exact, shard, start, log, on_progress, stop
            As in :func:`opticoll.solve`.
        """
        from opticoll.analysis.result.result import run_task
        from opticoll.analysis.result.units import shard_of

        if own := [name for name in options if name in {p.name for p in self.formulation.parameters}]:
            refuse("solve", f"{own[0]} is part of the model; change it by m.update({own[0]}=...)")
        asked = Task(type(self.formulation), self.instance, "highs", self.form, self._plan.parameters)
        shard = shard_of(asked, type(self.formulation), shard)
        compiled = self._compile(self._stated)
        form, loader = compiled.form, self._loader_of(compiled)
        assert self._compile.fingerprint is not None
        by_hand, linear = self._differs(self._compile.fingerprint), not form.is_mip
        if not by_hand:
            refuse_other_axes(self.formulation, form)

        def run(
            method: str, options: Mapping[str, Setting], left: Seconds | None, basis: SimplexBasis | None
        ) -> Result:
            limits = (left, memory_limit, tol, seed, threads)
            if by_hand:
                task = Task(StatedModel, self._by_hand(form), method, None, options, *limits, exact=exact)
            else:
                given = {**self._plan.parameters, **options}
                task = Task(type(self.formulation), self.instance, method, self.form, given, *limits, exact=exact)
            known = WarmStart(
                self._usual_start(form) if start is None and not linear else None,
                source="the solution before",
                basis=basis,
                form=None if by_hand else form,
                want_basis=linear,
            )
            with loader.clearing():
                return run_task(
                    task, shard=shard, start=start, known=known, log=log, on_progress=on_progress, stop=stop
                )

        began, result = time.monotonic(), None
        if linear and method == "auto" and self._basis is not None and self._basis.fits(form):
            result = run("highs", {**_few_steps(form), **options}, time_limit, self._basis)
            if result.record.termination is Termination.ITERATION_LIMIT and STEPS not in options:
                result, self._basis, self._far = None, None, True
                if isinstance(time_limit, int | float):
                    time_limit = max(time_limit - (time.monotonic() - began), LEAST_S)
        if result is None:
            if linear and method == "auto" and self._wants_basis(form, by_hand):
                # Crossover ends at a basis for the next solve, and is faster there than a simplex without one.
                method, options = "highs-ipx", {"run_crossover": "on", **options}
            result = run(method, options, time_limit, None)
        self._basis = result.basis or self._basis
        if result.verified and result.values is not None:
            self._values = result.values
        with as_found(self._stated):
            loader(result)
        return result

    def _loader_of(self, compiled: Compiled) -> Loader:
        """What writes results into the model, made again only if its variables or constraints are others."""
        if self._loader is None or self._loader.built is not compiled.built:
            self._loader = Loader(compiled)
        self._loader.form = compiled.form
        return self._loader

    def _wants_basis(self, form: StandardForm, by_hand: bool) -> bool:
        """Whether a solve without a basis shall end at one, for the next: not if that was too far from the last."""
        if form.cost.size <= SIMPLEX_VARIABLES:
            return False
        return by_hand or (self._updated and not self._far)

    def _by_hand(self, form: StandardForm) -> StatedProgram:
        """The program that the changed model states."""
        assert self._compile.fingerprint is not None
        return program_of(
            form,
            f"{self.formulation.name} on {self.instance.spec}, changed by hand",
            origin=self.formulation,
            origin_instance=self.instance,
            same_objective=self._compile.fingerprint.same_objective(self._original),
            notes=(f"the model of {self.formulation.name} was changed by hand",),
        )

    def _usual_start(self, form: StandardForm) -> Mapping[str, F64] | None:
        """The last solution, if it is one of the integer program as it is now."""
        if self._values is None:
            return None
        x = verify.pack(form, self._values)
        feasible = x is not None and max(verify.matrix_violations(form, x).values()) <= verify.FEASIBLE
        return self._values if feasible else None

    # files

    def export(self, path: str | Path) -> tuple[str, ...]:
        """Write the model as it is now to a file, ``.mps`` or ``.lp``, as :func:`opticoll.export` does.

        Raises
        ------
        BadInput
            If the name has another ending or the folder is missing.
        """
        from opticoll.instances.readers.reading import as_path
        from opticoll.solvers.export import refuse_model_file, write_program

        target = as_path(path, "export")
        refuse_model_file(target)
        return write_program(self.matrix, target, "a changed model")

    def __repr__(self) -> str:
        size = ", ".join(f"{count:,} {name}" for name, count in self.matrix.size.items())
        by_hand = ", changed by hand" if self.changed else ""
        return f"{self.formulation.name} on {label(self.instance.spec, WIDTH)} in {self.form}{by_hand}: {size}"


# helpers


def changeable(formulation: Formulation) -> dict[str, F64]:
    """The data of a formulation that can change in a model, by symbol."""
    return {name: np.asarray(values, dtype=float) for name, (values, *_) in formulation.changeable().items()}


def _held(array: F64, stated: F64, size: int) -> F64:
    """The entries of an array that a parameter of this size holds: all, or those that were not 0 when it was stated."""
    return array.ravel() if array.size == size else array.ravel()[np.flatnonzero(stated)]


def _planned(
    formulation: str | type[Formulation], instance: InstanceLike, form: str, settings: Mapping[str, Any]
) -> Plan:
    """The plan of a model; ``settings`` are parameters of the formulation alone.

    Raises
    ------
    BadInput
        For anything that a solve refuses, and for a formulation that takes its data from another one's solution.
    """
    from opticoll.solvers.plan import make_plan, refuse_arguments_of_topology
    from opticoll.solvers.process.memory import refuse_plan

    stated = formulation_named(formulation)
    if stated._needs is not None:
        refuse("model", f"{stated.name} takes its data from a solution of {stated._needs}; use solve")
    refuse_arguments_of_topology(settings, stated, None)
    own = {parameter.name for parameter in stated.parameters}
    later = [name for name in settings if name not in own and name in inspect.signature(Model.solve).parameters]
    if later:
        refuse("model", f"{later[0]} is given to the solve: m.solve({later[0]}=...)")
    read_parameters(stated.parameters, settings, stated.name)
    task = Task(formulation, as_instance(instance), method="highs", form=form, settings=settings)
    plan = make_plan(task)
    refuse_plan(task, plan, solved=False)
    return plan


def model(
    formulation: str | type[Formulation],
    instance: InstanceLike | None = None,
    *,
    form: str | None = None,
    demand: object = None,
    **settings: Setting,
) -> Model:
    """Build the stated model of a formulation on an instance, to read, to change by hand and to solve.

    Parameters
    ----------
    formulation, instance, demand, **settings
        As in :func:`solve`; ``settings`` are parameters of the formulation alone.
    form
        ``"pyomo"`` or ``"cvxpy"``; by default Pyomo, where the formulation is stated in it.

    Raises
    ------
    BadInput
        Without instance, for anything that :func:`solve` refuses, and for a formulation that takes its data from
        another one's solution.
    """
    chosen: Any = settings if demand is None else {**settings, "demand": demand}
    forms = forms_of(formulation_named(formulation))
    if instance is None:
        refuse("model", "no instance; write for example oc.model('alltoall.master', 'torus:4x4')")
    layer = form or ("pyomo" if "pyomo" in forms else forms[0])
    if layer == "matrix":
        refuse("model", "form 'matrix' cannot be changed by hand; give 'pyomo' or 'cvxpy', whose .matrix is the matrix")
    return Model(_planned(formulation, instance, layer, chosen))

"""A formulation on an instance: its data, bounds, checker and models, and its solution: ``oc.problem``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opticoll.analysis.bounds.plugin_bounds import plugin_bounds
from opticoll.analysis.problem.model import Model, model
from opticoll.analysis.rendering import Printed, number
from opticoll.analysis.result.result import Result, solve
from opticoll.arguments import array_of, check_mapping
from opticoll.errors import BadInput, refuse
from opticoll.formulations import bounds_of
from opticoll.formulations import formulation as formulation_named
from opticoll.formulations.model import build_model, forms_of, states, title_of
from opticoll.formulations.variables import check_arrays
from opticoll.instances.readers.objects import as_instance
from opticoll.solvers import verify
from opticoll.solvers.compile.compilation import compile_built, declared_arrays, declared_duals
from opticoll.solvers.methods.registry import prepared
from opticoll.solvers.plan import parameters_on
from opticoll.solvers.task import Task

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike

    from opticoll.analysis.result.result import InstanceLike, Setting
    from opticoll.formulations import Formulation
    from opticoll.formulations.model import Bound
    from opticoll.instances import Instance
    from opticoll.instances.topology import F64


#: Arguments of a solve that a task does not hold, and the fields of a task that hold the others.
_OF_RUN = ("plugins", "log", "shard", "start", "on_progress", "stop")
_OF_TASK = {name: name for name in ("method", "form", "tol", "seed", "threads", "exact")}
_OF_TASK |= {"time_limit": "time_limit_s", "memory_limit": "memory_limit_gib"}


class Problem(Printed):
    """A formulation with its data.

    ``values`` are the arrays of a solution by the names of the formulation's docstring, or a result of
    :func:`opticoll.solve`.

    Attributes
    ----------
    formulation
        The object of the formulation's class: its data are attributes, and all that the class defines can be called.
    instance, settings
        The instance, and the parameters that were given.
    """

    def __init__(
        self,
        asked: str | type[Formulation],
        formulation: Formulation,
        instance: Instance,
        settings: Mapping[str, object],
    ) -> None:
        self._asked = asked  # by its name, records do not depend on the source of a class
        self.formulation = formulation
        self.instance = instance
        self.settings: dict[str, Any] = dict(settings)

    # models

    def pyomo(self) -> Any:
        """The model as a ``pyomo.environ.ConcreteModel``."""
        return self.model("pyomo").pyomo

    def cvxpy(self) -> Any:
        """The model as a ``cvxpy.Problem``."""
        return self.model("cvxpy").cvxpy

    def model(self, form: str = "pyomo") -> Model:
        """The model to change by hand and to solve, as :func:`opticoll.model` returns it."""
        return model(self._asked, self.instance, form=form, **self.settings)

    def differences(self) -> list[str]:
        """What differs between the two builds, in CVXPY and in Pyomo, in words; nothing if they are one matrix.

        Rows and columns are matched by name; a row may be turned around, but not scaled.

        Raises
        ------
        BadInput
            If only one of them is stated.
        """
        from opticoll.solvers.compile.comparison import differences

        if not {"cvxpy", "pyomo"} <= set(forms_of(self.formulation)):
            msg = f"{self.formulation.name} is stated in one modelling layer; state cvxpy and pyomo to compare them"
            raise BadInput(msg)
        first, second = (
            compile_built(self.formulation, build_model(self.formulation, form)) for form in ("cvxpy", "pyomo")
        )
        return differences(first, second, ("CVXPY", "Pyomo"))

    def size(self) -> dict[str, int] | None:
        """``variables``, ``constraints``, ``nonzeros`` (or somewhat more) and ``integers``; nothing is built."""
        return self.formulation._estimate()

    # what is true of a solution

    def residuals(self, values: Mapping[str, ArrayLike] | Result) -> dict[str, float]:
        """The worst violation of every block of constraints, by the formulation's own checker; 0 if there is none.

        Raises
        ------
        BadInput
            For arrays that are missing, unknown, or of another shape or range.
        """
        return verify.residuals(self.formulation, self._arrays(values))

    def objective(self, values: Mapping[str, ArrayLike] | Result) -> float:
        """The objective of a solution, computed from its arrays; it may violate constraints."""
        return verify.objective(self.formulation, self._arrays(values))

    def repair(self, values: Mapping[str, ArrayLike] | Result) -> dict[str, F64] | None:
        """A feasible solution near these values, without the solver's round-off; None if the formulation finds none."""
        return self.formulation.repair(self._arrays(values))

    # bounds

    def bounds(self) -> list[Bound]:
        """Analytic bounds on the optimum, and after them those of plug-ins, which are shown and prove nothing."""
        own = bounds_of(self.formulation)
        return [*own, *plugin_bounds(self.formulation, self.instance, own)]

    def certify(self, duals: Mapping[str, ArrayLike] | Result) -> Bound | None:
        """A bound on the optimum from duals of the named constraints, valid however inexact they are.

        None where they prove nothing.

        Raises
        ------
        BadInput
            If the formulation proves no bound from duals, or they are others than it reads.
        """
        name = self.formulation.name
        if not states(self.formulation, "certify"):
            msg = (
                f"{name}: this formulation gives no bound from duals; bounds() gives analytic ones, and solve().bound "
                "is the best that is proven"
            )
            raise BadInput(msg)
        if isinstance(duals, Result) and not duals.duals:
            refuse(
                name, f"the result of {duals.record.method} has no duals; its bound is result.bound, others bounds()"
            )
        given = duals.duals if isinstance(duals, Result) else duals
        solved = (duals.values or {}).keys() if isinstance(duals, Result) else ()
        declared = declared_duals(self.formulation, solved)
        check_mapping({} if given is None else given, "duals")
        arrays = {
            one: array_of(array, f"duals.{one}", float) for one, array in (given or {}).items() if one in declared
        }
        check_arrays(declared, arrays, "duals")
        return verify.certified(self.formulation, arrays)

    # solving

    def solve(self, **options: Any) -> Result:
        """Solve it; the options are those of :func:`opticoll.solve`, such as ``method`` and ``time_limit``.

        Parameters of the problem with the name of an option, such as ``seed`` or ``start``, keep their values.
        """
        of_run = {name: options.pop(name) for name in _OF_RUN if name in options}
        of_task = {field: options.pop(name) for name, field in _OF_TASK.items() if name in options}
        return solve(Task(self._asked, self.instance, settings={**self.settings, **options}, **of_task), **of_run)

    def lines(self) -> dict[str, str]:
        """Meaning, parameters, size, and the tightest bound, by name of the line."""
        problem = self.formulation
        best = verify.tightest(bounds_of(problem), problem.sense)
        stated = {
            "instance": self.instance.spec,
            "parameters": ", ".join(f"{name}={_words(value)}" for name, value in self.settings.items()),
            "objective": f"{problem.sense} {problem.meaning}".rstrip(),
            "size": ", ".join(f"{count:,} {name}" for name, count in (self.size() or {}).items()),
            "bound": "" if best is None else f"{number(best.value, 12)}   ({best.name})",
        }
        return {name: text for name, text in stated.items() if text}

    @property
    def _title(self) -> str:
        return f"{self.formulation.name}: {title_of(self.formulation)}"

    def _arrays(self, values: Mapping[str, ArrayLike] | Result) -> dict[str, F64]:
        """The arrays of a solution, checked."""
        given = values.values if isinstance(values, Result) else values
        check_mapping({} if given is None else given, "values")
        arrays = {name: array_of(array, f"values.{name}", float) for name, array in (given or {}).items()}
        check_arrays(declared_arrays(self.formulation, arrays.keys()), arrays, "values")
        return arrays


def _words(value: object) -> str:
    """A parameter on one line."""
    return str(value) if isinstance(value, (str, int, float)) else type(value).__name__


def problem(
    formulation: str | type[Formulation], instance: InstanceLike, *, demand: object = None, **settings: Setting
) -> Problem:
    """A formulation on an instance: its bounds, checker and models without a solve.

    Parameters
    ----------
    formulation, instance, demand, **settings
        As in :func:`opticoll.solve`; ``settings`` are parameters of the formulation alone.

    Raises
    ------
    BadInput
        For anything that :func:`opticoll.solve` refuses, and for a formulation that takes its data from another one's
        solution.
    """
    stated, value = formulation_named(formulation), as_instance(instance)
    if stated._needs is not None:
        refuse("problem", f"{stated.name} takes its data from a solution of {stated._needs}; use solve")
    chosen: Any = settings if demand is None else {**settings, "demand": demand}
    return Problem(formulation, prepared(stated, value, parameters_on(value, stated, chosen)), value, chosen)

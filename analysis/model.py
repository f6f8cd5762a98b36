"""The model of a formulation on an instance, to inspect and to draw."""

from __future__ import annotations

import inspect
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opticoll.analysis.plots.style import label
from opticoll.analysis.rendering import WIDTH
from opticoll.errors import BadInput
from opticoll.formulations.model import read_parameters
from opticoll.formulations.registry import formulation as named
from opticoll.instances import Instance, as_instance
from opticoll.solvers.task import Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from opticoll.analysis.result import InstanceLike, Setting
    from opticoll.formulations import Formulation
    from opticoll.solvers.standard_form import StandardForm


@dataclass(frozen=True, repr=False, eq=False)
class Model:
    """The stated model of a formulation on an instance, built in one modelling layer and not solved.

    Parameters
    ----------
    formulation, instance, form
        The formulation, the instance, and the modelling layer.
    stated
        The model: a ``pyomo.environ.ConcreteModel`` or a ``cvxpy.Problem``.
    matrix
        The compiled model: sparse constraint matrix, bounds, cost, and the names of rows and columns.
    """

    formulation: Formulation
    instance: Instance
    form: str
    stated: Any
    matrix: StandardForm

    @property
    def mathematics(self) -> str:
        """Sets, data, variables, objective and constraints as the formulation states them."""
        module = inspect.getmodule(type(self.formulation))
        path = f"opticoll.formulations.{self.formulation.name.replace('-', '_')}"
        stated = type(self.formulation) if self.formulation.own else (sys.modules.get(path) or module)
        return inspect.cleandoc(stated.__doc__ or getattr(module, "__doc__", None) or "")

    def plot(self) -> Figure:
        """Draw the nonzeros of the matrix in the blocks of its variables and constraints."""
        from opticoll.analysis.plots import model_plots

        return model_plots.sparsity(self.matrix)

    def __repr__(self) -> str:
        size = ", ".join(f"{count:,} {name}" for name, count in self.matrix.size.items())
        return f"{self.formulation.name} on {label(self.instance.spec, WIDTH)} in {self.form}: {size}"


def model(
    formulation: str | type[Formulation],
    instance: InstanceLike,
    *,
    form: str = "pyomo",
    demand: object = None,
    **settings: Setting,
) -> Model:
    """Build the stated model of a formulation on an instance, to read, change or hand to a solver yourself.

    Parameters
    ----------
    formulation, instance, demand, **settings
        As in :func:`solve`; ``settings`` are parameters of the formulation alone.
    form
        ``"pyomo"`` or ``"cvxpy"``.

    Raises
    ------
    BadInput
        For anything that :func:`solve` refuses, and for a formulation that takes its data from another one's solution.
    """
    from opticoll.solvers.plan import make_plan
    from opticoll.solvers.standard_form import compile_model

    chosen: Any = settings if demand is None else {**settings, "demand": demand}
    wanted: Any = formulation
    stated = named(wanted)
    if stated.needs is not None:
        msg = f"model: {stated.name} takes its data from a solution of {stated.needs}; use solve"
        raise BadInput(msg)
    read_parameters(stated.parameters, chosen, stated.name)
    plan = make_plan(Task(wanted, as_instance(instance), method="highs", form=form, settings=chosen))
    built = plan.formulation.build(plan.form)
    inner = next((getattr(built, part) for part in ("model", "problem") if hasattr(built, part)), built)
    return Model(plan.formulation, plan.instance, plan.form, inner, compile_model(built))

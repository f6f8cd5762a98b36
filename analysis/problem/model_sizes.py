"""The size of a formulation's model on an instance, its bounds there, and the solvers that take it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opticoll.errors import BadInput
from opticoll.formulations.model import build_model
from opticoll.solvers.task import Fields

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opticoll.formulations import Formulation
    from opticoll.solvers.adapters.interface import Capabilities


#: Largest estimate, in entries of the matrix, of a model that is built to find its size; where there is none, the
#: maximum number of vertices.
BUILT_ENTRIES, BUILT_VERTICES = 200_000, 32


class BoundValue(Fields, frozen=True, kw_only=True):
    """An analytic bound on an instance."""

    name: str
    value: float
    reason: str
    exact: bool


class Sizes(Fields, frozen=True, kw_only=True):
    """A formulation on one instance: the size of its matrix, and its bounds; None where it is unknown."""

    instance: str
    n: int
    arcs: int | None = None
    variables: int | None = None
    constraints: int | None = None
    nonzeros: int | None = None
    integers: int | None = None
    auto: str | None = None
    bounds: list[BoundValue] | None = None


def solvers_for(model: type[Formulation]) -> tuple[str, ...]:
    """The solvers that take a formulation."""
    from opticoll.solvers.adapters import adapters

    return tuple(name for name, one in adapters().items() if takes(one.capabilities, model))


def takes(able: Capabilities, model: type[Formulation]) -> bool:
    """Whether a solver takes a formulation; one of integer programs alone, if its example has only integer columns."""
    if model.problem != "MILP":
        return able.lp
    sizes = example_sizes(model) if able.mip and not able.lp else None
    whole = sizes is None or None in (sizes.variables, sizes.integers) or sizes.variables == sizes.integers
    return able.mip and whole


def example_sizes(model: type[Formulation]) -> Sizes | None:
    """Sizes of the example; None where they are not known without a solve."""
    try:
        return None if model._needs is not None else model_sizes(model, model.example, {})
    except BadInput:  # a user's formulation, which takes other instances
        return None


def model_sizes(model: type[Formulation], spec: str, settings: Mapping[str, object]) -> Sizes:
    """Sizes and bounds: a small model is built, of a larger one the size is estimated."""
    from opticoll.formulations import bounds_of
    from opticoll.formulations.parameters import read_parameters
    from opticoll.instances import parse
    from opticoll.solvers.auto import choose, fastest_form
    from opticoll.solvers.compile.compilation import compile_built
    from opticoll.solvers.methods import prepared, taking_over
    from opticoll.solvers.process.memory import entries
    from opticoll.solvers.task import Task

    if model._needs is not None:
        msg = f"describe: {model.name} takes its data from a solution of {model._needs}; its sizes follow from a solve"
        raise BadInput(msg)
    value = parse(spec)
    parameters = read_parameters(model.parameters, settings, model.name)
    problem = prepared(model, value, parameters)
    known = problem._estimate()
    if value.n <= BUILT_VERTICES if known is None else entries(known) <= BUILT_ENTRIES:
        known = compile_built(problem, build_model(problem, fastest_form(problem, known))).size
    rows = [BoundValue(name=b.name, value=b.value, reason=b.reason, exact=b.exact) for b in bounds_of(problem)]
    task, over = Task(model.name, value, settings=dict(settings)), taking_over(model.name, parameters)
    return Sizes(
        instance=value.spec,
        n=value.n,
        arcs=getattr(value, "arcs", None),
        **{key: int(number) for key, number in (known or {}).items()},
        auto=choose(problem, task, value, over).method,
        bounds=rows,
    )

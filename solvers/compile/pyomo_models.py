"""Pyomo models that were written elsewhere: their variables by full name, and what cannot be solved, by name.

A model may have blocks, any index sets, fixed and unused variables. Its arrays have an axis for every set that indexes
the component: the members of the set in its order, or 0, 1, ... if these are the members. A component without an entry
for every combination of members, or with a set that is infinite or has members of unequal length, has one axis instead:
the indices that it has. Nothing larger than the model is ever allocated.
"""

from __future__ import annotations

import logging
import math
import threading
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from opticoll.errors import ModelError
from opticoll.formulations.model import PyomoModel

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from opticoll.formulations.model import Axis

#: Number of components that a refusal names.
_NAMED = 3
#: How to state a kind of component as variables and linear constraints, by its name in Pyomo.
_REMEDIES = {
    "SOSConstraint": "state it with binary variables",
    "Disjunct": "apply pyo.TransformationFactory('gdp.bigm') first",
    "Disjunction": "apply pyo.TransformationFactory('gdp.bigm') first",
    "BooleanVar": "apply pyo.TransformationFactory('core.logical_to_linear') first, or use binary variables",
    "LogicalConstraint": "apply pyo.TransformationFactory('core.logical_to_linear') first",
    "Arc": "apply pyo.TransformationFactory('network.expand_arcs') first",
    "Complementarity": "state it with binary variables",
    "DerivativeVar": "apply pyo.TransformationFactory('dae.finite_difference') first",
    "Integral": "apply pyo.TransformationFactory('dae.finite_difference') first",
}
#: Kinds among these that Pyomo's own check overlooks.
_UNSOLVED = ("DerivativeVar", "Integral")


def as_pyomo_model(model: Any) -> PyomoModel:
    """A Pyomo model with the axes of its variables and constraints, by their full names.

    Raises
    ------
    ModelError
        If it is not a concrete model, has several objectives or a component other than variables and constraints, or a
        variable that is fixed without a value. The message names the component.
    """
    import pyomo.core as pyo
    from pyomo.core.base.block import BlockData

    if not isinstance(model, BlockData):
        msg = f"its build returned a Pyomo {type(model).__name__}; return a pyo.ConcreteModel"
        raise ModelError(msg)
    if not model.is_constructed():
        msg = f"the Pyomo model {model.name!r} is abstract; return model.create_instance(data)"
        raise ModelError(msg)
    _refuse_unsupported(model)
    active = [one.name for one in model.component_data_objects(pyo.Objective, active=True)]
    if len(active) > 1:
        msg = f"the Pyomo model has {len(active)} active objectives, {_listed(active)}; deactivate all but one"
        raise ModelError(msg)
    refuse_fixed_without_value(model.component_data_objects(pyo.Var, active=True))
    variables = {one.name: axes(one) for one in components(model, pyo.Var)}
    constraints = {one.name: axes(one) for one in components(model, pyo.Constraint)}
    return PyomoModel(model, variables, constraints)


def with_added(built: PyomoModel) -> PyomoModel:
    """What a build has returned, with the rows that were added to its model since, by their names."""
    import pyomo.core as pyo

    added = [one for one in components(built.model, pyo.Constraint) if one.name not in built.constraints]
    return replace(built, constraints={**built.constraints, **{one.name: axes(one) for one in added}})


def components(model: Any, kind: type) -> list[Any]:
    """Components of a kind in the active blocks of a model; without references, whose data belong to others."""
    return [one for one in model.component_objects(kind, active=True) if not one.is_reference()]


def _refuse_unsupported(model: Any) -> None:
    import pyomo.core as pyo
    from pyomo.network import Port
    from pyomo.repn.util import categorize_valid_components

    _, unknown = categorize_valid_components(
        model,
        active=True,
        sort=None,
        targets=set(),
        valid={
            pyo.Block,
            pyo.Constraint,
            pyo.Expression,
            pyo.ExternalFunction,
            pyo.Objective,
            pyo.Param,
            pyo.RangeSet,
            pyo.Set,
            pyo.Suffix,
            pyo.Var,
            Port,
        },
    )
    for block in model.block_data_objects(active=True):  # these are never "active"
        for kind in block.collect_ctypes(descend_into=False):
            if kind.__name__ in _UNSOLVED:
                unknown.setdefault(kind, []).extend(block.component_objects(kind, descend_into=False))
    for kind, found in unknown.items():
        names = [one.name for one in found]
        remedy = _REMEDIES.get(kind.__name__, "state it with variables and linear constraints")
        msg = f"the Pyomo component {_listed(names)} is of type {kind.__name__}, which is not supported; {remedy}"
        raise ModelError(msg)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:_NAMED]))
    return shown if len(names) <= _NAMED else f"{shown} and {len(names) - _NAMED} more"


def axes(component: Any) -> tuple[Axis, ...]:
    """The axes of the array of a Pyomo component's entries, as in :class:`~opticoll.formulations.model.PyomoModel`."""
    import pyomo.core as pyo

    if not component.is_indexed():
        return ()
    sets = list(component.index_set().subsets(expand_all_set_operators=False))
    if all(one.isfinite() and one.dimen is not None for one in sets):
        complete = len(component) == math.prod(map(len, sets))
        if complete or (component.ctype is pyo.Constraint and component.rule is not None):  # some may be skipped
            return tuple(_axis(list(one)) for one in sets)
    return (_axis(list(component.keys())),)


def _axis(members: list[Hashable]) -> Axis:
    """Members of an index set as plain labels; their number if they are 0, 1, ..."""
    labels = [plain_label(one) for one in members]
    if all(type(one) is int for one in labels) and set(labels) == set(range(len(labels))):
        return len(labels)
    return labels


def plain_label(label: Any) -> Any:
    """An index without NumPy's types, which print differently."""
    if isinstance(label, tuple):
        return tuple(map(plain_label, label))
    return label.item() if hasattr(label, "dtype") else label


def compiled(model: Any) -> tuple[Any, list[Any]]:
    """Rows and columns of a Pyomo model, and its constraints without variables that are violated.

    Pyomo's own compiler refuses such constraints (of fixed variables, for example) instead of stating them as rows that
    no solution satisfies. They are deactivated while it runs.

    Raises
    ------
    ModelError
        If the model is not linear, or something in it has no value.
    """
    from pyomo.common.errors import InfeasibleConstraintException, InvalidExpressionError

    def compile_linear() -> Any:
        with _unlogged():
            try:
                return _compiler().write(model, mixed_form=True, set_sense=None)
            except InvalidExpressionError:  # for example a product with a fixed entry of an indexed variable
                return _with_fixed_entries(model)

    try:
        try:
            return compile_linear(), []
        except InfeasibleConstraintException:
            impossible = list(_impossible(model))
            for constraint in impossible:
                constraint.deactivate()
            try:
                return compile_linear(), impossible
            finally:
                for constraint in impossible:
                    constraint.activate()
    except MemoryError:
        raise
    except Exception as reason:  # Pyomo's compiler raises many types
        with _unlogged():
            where = _culprit(model)
        msg = f"Pyomo cannot compile {where} to a linear form: {_words(reason)}"
        raise ModelError(msg) from reason


@cache
def _compiler() -> Any:
    """Pyomo's compiler: reading its options takes as long as a small model."""
    from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler

    return LinearStandardFormCompiler()


def _with_fixed_entries(model: Any) -> Any:
    """Compile as Pyomo does, with every fixed variable as a constant.

    Pyomo 6.10 takes a fixed entry of an indexed variable for a variable once it has met another entry, and so a product
    with it for nonlinear.
    """
    from pyomo.repn.linear import LinearBeforeChildDispatcher, LinearRepnVisitor
    from pyomo.repn.plugins import standard_form

    class FixedFirst(LinearBeforeChildDispatcher):
        @staticmethod
        def record_monomial(visitor: Any, result: Any, coef: Any, var: Any) -> None:
            if var.fixed:
                result.constant += coef * var.value
            else:
                LinearBeforeChildDispatcher.record_monomial(visitor, result, coef, var)

    class Visitor(LinearRepnVisitor):
        before_child_dispatcher = FixedFirst()

    class Compiler(standard_form._LinearStandardFormCompiler_impl):
        _get_visitor = Visitor

    return Compiler(standard_form.LinearStandardFormCompiler.CONFIG({"mixed_form": True, "set_sense": None})).write(
        model
    )


def _culprit(model: Any) -> str:
    """The first objective or constraint of a model that is not linear or has no value, in words."""
    import pyomo.core as pyo
    from pyomo.repn import generate_standard_repn

    for kind, word in ((pyo.Objective, "objective"), (pyo.Constraint, "constraint")):
        for one in model.component_data_objects(kind, active=True):
            try:
                sides = [one.expr] if kind is pyo.Objective else list(one.to_bounded_expression())
                repns = [generate_standard_repn(side, compute_values=True) for side in sides if side is not None]
                good = all(
                    repn.is_linear() and all(map(math.isfinite, map(float, [repn.constant, *repn.linear_coefs])))
                    for repn in repns
                )
            except Exception:  # noqa: BLE001 - Pyomo raises many types
                good = False
            if not good:
                return f"the {word} {one.name!r}"
    return "this model"


def _impossible(model: Any) -> Iterable[Any]:
    """Active constraints without variables that are violated."""
    import pyomo.core as pyo

    for constraint in model.component_data_objects(pyo.Constraint, active=True):
        lower, body, upper = constant_row(constraint)
        if body is not None and not lower <= body <= upper:
            yield constraint


def constant_row(constraint: Any) -> tuple[float, float | None, float]:
    """Lower side, body and upper side of a Pyomo constraint; no body (None) if it has variables that are not fixed."""
    import pyomo.core as pyo
    from pyomo.repn import generate_standard_repn

    lower, body, upper = constraint.to_bounded_expression()
    linear = generate_standard_repn(body, compute_values=True)
    return (
        -math.inf if lower is None else float(pyo.value(lower)),
        float(linear.constant) if linear.is_constant() else None,
        math.inf if upper is None else float(pyo.value(upper)),
    )


def integrality(variables: Iterable[Any]) -> list[bool]:
    """Whether each variable must be a whole number; a fixed one need not.

    Raises
    ------
    ModelError
        For a domain that is neither an interval of numbers nor the whole numbers in one; the message names the first
        variable and its domain.
    """
    whole: dict[int, bool] = {}  # of every domain that was met
    result: list[bool] = []
    for one in variables:
        kind = id(one.domain)
        if one.fixed or kind in whole:
            result.append(not one.fixed and whole[kind])
            continue
        whole[kind] = one.is_integer()
        result.append(whole[kind])
        if not (whole[kind] or one.is_continuous()):
            msg = (
                f"the Pyomo variable {one.name!r} has the domain {one.domain}, which is neither an interval nor the "
                "whole numbers of one; choose such a domain, and state the rest with binary variables and constraints"
            )
            raise ModelError(msg)
    return result


def refuse_fixed_without_value(variables: Iterable[Any]) -> None:
    """Refuse variables that are fixed and have no value.

    Raises
    ------
    ModelError
        The message names the first one.
    """
    for one in variables:
        if one.fixed and one.value is None:
            msg = f"the Pyomo variable {one.name!r} is fixed without a value; write for example .fix(0)"
            raise ModelError(msg)


def unused(model: PyomoModel, columns: Sequence[Any]) -> list[Any]:
    """Variables of a model that its compiled rows do not mention, but whose value is not 0.

    They are fixed, or 0 is not within their bounds. All others are 0 in a solution.

    Raises
    ------
    ModelError
        If a variable is fixed without a value.
    """
    import pyomo.core as pyo

    used = {id(one) for one in columns}
    rest = [
        one
        for component in components(model.model, pyo.Var)
        if component.name in model.variables
        for one in component.values()
        if id(one) not in used
    ]
    refuse_fixed_without_value(rest)
    integrality(rest)  # refuses other domains
    return [
        one
        for one, (low, high) in zip(rest, bounds(rest), strict=True)
        if (low is not None and low > 0) or (high is not None and high < 0)
    ]


def bounds(variables: Sequence[Any]) -> list[tuple[float | None, float | None]]:
    """Lower and upper bound of every Pyomo variable, None if infinite; a fixed one has its value as both.

    Raises
    ------
    ModelError
        If a bound depends on something without a value. The message names the variable.
    """
    result: list[tuple[float | None, float | None]] = []
    with _unlogged():
        for one in variables:
            try:
                result.append((one.value, one.value) if one.fixed else one.bounds)
            except Exception as reason:  # Pyomo raises many types
                msg = f"the bounds of the Pyomo variable {one.name!r} cannot be evaluated: {_words(reason)}"
                raise ModelError(msg) from reason
    return result


@contextmanager
def _unlogged() -> Iterator[None]:
    """Keep Pyomo from also logging the errors that it raises in this thread.

    Other records pass: Pyomo's ``LoggingIntercept`` replaces the handlers of all threads, and fails if two do so at the
    same time.
    """
    here = threading.get_ident()

    def passes(record: logging.LogRecord) -> bool:
        return record.thread != here or not record.name.startswith("pyomo")

    above = (logging.getLogger("pyomo"), logging.root)  # the records of Pyomo's loggers go up to these
    handlers = [*(handler for logger in above for handler in logger.handlers), logging.lastResort]
    present = [handler for handler in handlers if handler is not None]
    for handler in present:
        handler.addFilter(passes)
    try:
        yield
    finally:
        for handler in present:
            handler.removeFilter(passes)


def _words(reason: Exception) -> str:
    return " ".join(str(reason).split()) or type(reason).__name__


def elsewhere(model: PyomoModel, columns: Sequence[Any]) -> dict[str, tuple[Axis, ...]]:
    """Axes of variables in rows of the model that none of its active blocks declares, by full name.

    Only the entries that a row mentions belong to the model.

    Raises
    ------
    ModelError
        If such a variable has the name of another.
    """
    import pyomo.core as pyo

    own = {id(one) for one in components(model.model, pyo.Var)}
    found: dict[int, list[Any]] = {}
    for one in columns:
        if id(one.parent_component()) not in own:
            found.setdefault(id(one.parent_component()), []).append(one)
    result: dict[str, tuple[Axis, ...]] = {}
    for entries in found.values():
        component = entries[0].parent_component()
        if component.name in model.variables or component.name in result:
            msg = f"two Pyomo variables have the name {component.name!r}; one of them belongs to another model"
            raise ModelError(msg)
        result[component.name] = (_axis([one.index() for one in entries]),) if component.is_indexed() else ()
    return result

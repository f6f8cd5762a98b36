"""Values of a bound on many instances: bounds of a formulation or a plug-in by name, and functions of a user."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Rational
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opticoll.arguments import refused
from opticoll.errors import BadInput
from opticoll.formulations.model import Bound, is_own
from opticoll.formulations.parameters import read_parameters
from opticoll.nearest_names import nearest
from opticoll.plugin_faults import FAULTS
from opticoll.plugins import load_plugin

if TYPE_CHECKING:
    from opticoll.formulations import Formulation
    from opticoll.instances import Instance
    from opticoll.types import Settings


#: A bound: a function of the instance, or of the instance and the formulation's data. None where it does not apply.
BoundFunction = Callable[..., "float | Fraction | None"]


@dataclass(frozen=True)
class ComparedBound:
    """A bound on one instance: its float, and its exact value.

    ``fraction`` is the number that was returned, also if that is a float; ``rounded`` says that it is one.
    """

    value: float
    fraction: Fraction
    rounded: bool

    def inverse(self) -> ComparedBound | None:
        """The bound that follows on 1 / optimum; None for a bound of 0."""
        if not self.fraction:
            return None
        fraction = 1 / self.fraction
        return ComparedBound(float(fraction) if not self.rounded else 1 / self.value, fraction, self.rounded)


#: The bound on an instance: None where it does not apply, or the error that its function raised.
Found = ComparedBound | Exception | None


def bound_function(bound: str | BoundFunction) -> tuple[BoundFunction | None, str]:
    """A function, if the bound is one, and the name of the bound.

    Raises
    ------
    BadInput
        If ``FILE.py:FUNCTION`` cannot be read, or names no function.
    """
    if callable(bound):
        return bound, getattr(bound, "__name__", "bound")
    if not isinstance(bound, str):
        raise refused(bound, "bound", "the name of a bound or a function")
    file, colon, name = bound.rpartition(":")
    if not colon:
        return None, bound
    try:
        module = load_plugin(file, contributes=False)
    except BadInput as error:
        raise BadInput(error, option="bound", value=bound) from error
    function = getattr(module, name, None)
    if not callable(function):
        known = [key for key, item in vars(module).items() if inspect.isfunction(item)]
        msg = f"{file} has no function {name!r}; {nearest(name, known) if known else 'it defines none'}"
        raise BadInput(msg, option="bound", value=bound)
    return function, name


def takes_data(function: BoundFunction) -> bool:
    """Whether a function takes the formulation's data as its second argument."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in kinds for p in inspect.signature(function).parameters.values()) > 1


def parameters_of(model: type[Formulation], settings: Mapping[str, object]) -> Settings:
    """The formulation's own parameters among the settings, and the defaults of the others."""
    own = {p.name for p in model.parameters}
    return read_parameters(model.parameters, {k: v for k, v in settings.items() if k in own}, model.name)


def data_of(model: type[Formulation], instance: Instance, parameters: Settings, taken: bool) -> Any:
    """The formulation's data on an instance, if a bound takes them; else None.

    Raises
    ------
    BadInput
        If they are taken from a solution of another formulation.
    """
    from opticoll.solvers.methods.registry import prepared

    if not taken:
        return None
    if model._needs is not None:
        msg = f"{model.name} takes its data from a solution of {model._needs}; give a bound of the instance alone"
        raise BadInput(msg)
    return prepared(model, instance, parameters)


def evaluated(
    model: type[Formulation],
    bound: BoundFunction | str,
    instances: Sequence[Instance],
    settings: Mapping[str, object],
    *,
    inverse: bool,
) -> list[Found]:
    """The bound of every instance.

    Parameters
    ----------
    bound
        A function, or the name of a bound on the objective.
    inverse
        Whether to turn a named bound into one on 1 / objective.

    Raises
    ------
    BadInput
        If no instance has a bound of the name, or the function fails on every instance.
    """
    parameters = parameters_of(model, settings)
    taken = isinstance(bound, str) or takes_data(bound)
    values: list[Found] = []
    names: set[str] = set()
    for instance in instances:
        data = data_of(model, instance, parameters, taken)
        if isinstance(bound, str):
            value = _named(model, bound, instance, data, names)
            values.append(value.inverse() if inverse and isinstance(value, ComparedBound) else value)
        else:
            values.append(called(bound, instance, data))
    if isinstance(bound, str) and bound not in names:
        msg = f"{model.name} has no bound of this name here; {nearest(bound, sorted(names))}; or give FILE.py:FUNCTION"
        raise BadInput(msg, option="bound", value=bound)
    errors = [value for value in values if isinstance(value, Exception)]
    if len(errors) == len(values):
        msg = f"the function fails on every case, first on {instances[0].spec}: {errors[0]}"
        raise BadInput(msg, option="bound")
    return values


def _named(model: type[Formulation], bound: str, instance: Instance, data: Formulation, names: set[str]) -> Found:
    """The bound called ``bound`` of the formulation or of a plug-in; adds the names that exist to ``names``."""
    from opticoll.analysis.bounds.plugin_bounds import plugin_bounds
    from opticoll.formulations import bounds_of

    part = None if is_own(data) else data._bound_parts().get(bound)
    single = None if part is None else part()
    own = bounds_of(data) if single is None else [single]
    result = {one.name: one for one in own}
    error: Exception | None = None
    if bound not in result:
        try:
            result |= {one.name: one for one in plugin_bounds(data, instance, own)}
        except FAULTS as raised:  # the user's own code
            error = ValueError(_one_line(raised))
            names.add(bound)
    names.update(result)
    found = result.get(bound)
    if found is None:
        return error
    if not math.isfinite(found.value):
        return None
    rational = found.rational
    return ComparedBound(float(found.value), Fraction(found.value) if rational is None else rational, rational is None)


def called(function: BoundFunction, instance: Instance, data: Any) -> Found:
    """The value of a user's function on an instance; its errors are returned."""
    try:
        value: Any = function(instance) if data is None else function(instance, data)
    except FAULTS as error:  # the user's own code
        return ValueError(_one_line(error))
    if value is None:
        return None
    if isinstance(value, Bound):
        value = value.value if value.rational is None else value.rational
    exact = isinstance(value, Rational)
    try:
        if isinstance(value, (str, bytes, bool)) or type(value).__name__ in {"bool_", "bool"}:
            raise TypeError  # float() would read them
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        text = repr(value)
        shown = text if len(text) <= 60 else f"{text[:50]}..."
        return ValueError(f"returned {shown}; return a number, or None where the bound does not apply")
    if not math.isfinite(number):
        return ValueError(f"returned {number}; return a finite number, or None where the bound does not apply")
    fraction = Fraction(int(value.numerator), int(value.denominator)) if exact else Fraction(number)
    return ComparedBound(number, fraction, not exact)


def _one_line(error: BaseException) -> str:
    """An error of the user's code with its location."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    at = "" if trace is None else f" ({Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno})"
    return f"{type(error).__name__}: {' '.join(str(error).split())}".removesuffix(": ") + at

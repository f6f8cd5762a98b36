"""Parameters of formulations and methods: what ``--set`` may change, read from words or values."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from opticoll.arguments import check_mapping, read_text
from opticoll.docstrings import about_parameters
from opticoll.errors import BadInput, NotApplicable, refuse
from opticoll.nearest_names import nearest

if TYPE_CHECKING:
    from opticoll.types import Setting, Settings

#: Name of the kind of a parameter's value in messages.
_KINDS: Mapping[type, str] = {int: "a whole number", float: "a number", bool: "true or false", str: "a string"}


@dataclass(frozen=True)
class Parameter:
    """One ``--set`` parameter of a formulation or a method.

    With ``constructs``, its value names the method that makes data which the instance lacks: ``Formulation.prepare``
    takes the ``construct`` of that method instead of the name. ``only_with`` names the parameters without which it has
    no effect, and their values with which it has one; none for any value but the default. ``least`` is the smallest
    value of a number, which must be finite.
    """

    name: str
    kind: type
    default: Setting
    help: str
    choices: tuple[str, ...] = ()
    constructs: bool = False
    only_with: Mapping[str, tuple[Setting, ...]] = field(default_factory=dict)
    least: float | None = None

    def __post_init__(self) -> None:
        where = f"parameter {self.name!r}"
        if not isinstance(self.name, str) or not re.fullmatch(r"[A-Za-z_][\w.-]*", self.name):
            refuse(where, "the name must consist of letters, digits, '_', '.' and '-', and begin with a letter")
        if not callable(self.kind):
            refuse(where, f"kind must be a type such as int, float, bool or str, not {self.kind!r}")
        if not isinstance(self.help, str) or not self.help.strip():
            refuse(where, f"help must be a string, not {self.help!r}")
        if not isinstance(self.choices, tuple) or not all(isinstance(one, str) for one in self.choices):
            refuse(where, f"choices must be a tuple of strings, not {self.choices!r}")
        if self.kind in _KINDS and self.default is not None:
            self.read(self.default, "the default")

    def read(self, text: object, where: str) -> Setting:
        """Convert ``text`` to the parameter's type.

        Raises
        ------
        BadInput
            If it has the wrong type, such as a fraction for a whole number, or is not one of the choices.
        NotApplicable
            If it is below ``least``, or not finite.
        """
        try:
            if isinstance(text, str) or self.kind is bool:
                value = read_text(text if isinstance(text, str) else str(text), self.kind)
            else:
                value = self.kind(text)
                if self.kind in (int, float) and (value != text or str(text) in {"True", "False"}):
                    raise ValueError(text)  # int() truncates 2.5
        except BadInput:
            raise
        except (TypeError, ValueError, OverflowError):
            wanted = _KINDS.get(self.kind) or getattr(self.kind, "described", self.kind.__name__)
            msg = f"{where}: parameter {self.name!r} must be {wanted}, not {_short(text)}"
            raise BadInput(msg) from None
        if self.choices and value not in self.choices:
            refuse(where, f"parameter {self.name!r} must be one of {', '.join(self.choices)}, not {text!r}")
        if self.least is not None and not self.least <= value < math.inf:
            kind = "a finite number of at least" if self.kind is float else "at least"
            refuse(where, f"{self.name}={value}; give {kind} {self.least:g}", NotApplicable)
        return value


def _short(value: object) -> str:
    """A value in a message: its representation, or its type if that is long."""
    text = repr(value)
    return text if len(text) <= 80 and "\n" not in text else f"an object of type {type(value).__name__}"


def read_parameters(parameters: tuple[Parameter, ...], given: Mapping[str, object], where: str) -> dict[str, Setting]:
    """Return the value of every parameter: as given, converted to its type, or its default.

    Raises
    ------
    BadInput
        For an unknown name (the message suggests the closest known one), a bad value, or one that has no effect.
    """
    known = {p.name: p for p in parameters}
    check_mapping(given, f"{where}: the parameters")
    for name in given:
        if name not in known:
            raise unknown_parameter(name, known, where)
    values = {name: p.read(given[name], where) if name in given else p.default for name, p in known.items()}
    for p in (one for one in parameters if one.only_with and values[one.name] != one.default):
        for other, useful in p.only_with.items():
            value = values[other]
            if value not in (useful or {value} - {known[other].default}):
                words = f"with {other}={value}; it is for {other}={' or '.join(map(str, useful))}"
                words = words if useful else f"without {other}; set {other}="
                refuse(where, f"{p.name}={values[p.name]} has no effect {words}", NotApplicable)
    return values


def changed_from_defaults(parameters: Iterable[Parameter], given: Settings) -> list[str]:
    """Names of the parameters whose value is not the default."""
    return [one.name for one in parameters if given.get(one.name, one.default) != one.default]


def unknown_parameter(name: str, known: Mapping[str, object], where: str) -> BadInput:
    """The error for a name that is no parameter; it suggests the closest one."""
    hint = nearest(name, known) if known else "it has no parameters"
    return BadInput(f"{where}: no parameter {name!r}; {hint}")


def parameters_of(cls: type[Any]) -> tuple[Parameter, ...]:
    """Parameters from the arguments of ``__init__``: kind, default, and the help from the docstrings."""
    import inspect

    where, stated = f"formulation {cls.name!r}", []
    about = {**about_parameters(inspect.getdoc(cls.__init__)), **about_parameters(inspect.cleandoc(cls.__doc__ or ""))}
    for name, one in list(inspect.signature(cls.__init__).parameters.items())[2:]:
        if one.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            continue
        if one.default is inspect.Parameter.empty:
            if one.kind is inspect.Parameter.KEYWORD_ONLY:
                refuse(where, f"parameter {name!r} of __init__ needs a default")
            continue  # the solution or the method that the data take
        annotation = getattr(one.annotation, "__name__", str(one.annotation)).partition("|")[0].strip()
        kind = next((kind for kind in _KINDS if kind.__name__ == annotation), type(one.default))
        if name == "demand":
            from opticoll.instances import demands

            about_it = f"amounts sent: {demands.FORMS}"
            stated.append(Parameter(name, demands.DemandSpec, demands.DemandSpec(one.default), about_it))
            continue
        if kind not in _KINDS:
            refuse(where, f"parameter {name!r} of __init__ must be annotated as one of int, float, bool, str")
        stated.append(Parameter(name, kind, one.default, about.get(name, "").rstrip(".") or name.replace("_", " ")))
    return tuple(stated)


def check_listed(parameters: object, where: str) -> None:
    """Refuse what is no tuple of parameters with different names.

    Raises
    ------
    BadInput
        If it is something else; the message begins with ``where``.
    """
    if not isinstance(parameters, tuple) or not all(isinstance(one, Parameter) for one in parameters):
        refuse(where, "parameters must be a tuple of Parameter objects; end a one-element tuple with a comma")
    names = [one.name for one in parameters]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        refuse(where, f"the parameter {twice!r} is stated {names.count(twice)} times; give each a name of its own")

"""Formulations found by name, and their bounds."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import cache
from importlib.util import find_spec
from numbers import Rational, Real
from typing import TYPE_CHECKING

from opticoll import plugins
from opticoll.errors import BadInput, refuse
from opticoll.formulations import rounding
from opticoll.formulations.model import Bound, Formulation, is_own
from opticoll.instances.spec import contributed, is_spec, modules_of
from opticoll.instances.topology import Instance
from opticoll.nearest_names import nearest
from opticoll.plugin_faults import place_of

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Titles of the papers; each has a sub-package of formulations.
PAPERS = {
    "alltoall": "Efficient all-to-all collective communication schedules for direct-connect topologies",
    "lumorph": "LuMorph: programmable optical interconnects for server-scale multi-GPU systems",
    "optree": "OpTree: an efficient algorithm for all-gather operation in optical interconnect systems",
    "sipml": "SiP-ML: high-bandwidth optical network interconnects for machine learning training",
    "topoopt": "TopoOpt: co-optimizing network topology and parallelization strategy for distributed training jobs",
}
#: Sub-packages whose modules are formulations, named ``room.module``; the others are shared mathematics.
ROOMS = (*PAPERS, "matrix", "topology")


def _modules() -> list[str]:
    return [module for room in ROOMS for module in modules_of(f"opticoll.formulations.{room}")]


@cache
def _ours() -> dict[str, type[Formulation]]:
    return {model.name: model for model in contributed(_modules(), "FORMULATION")}


@cache
def package_names() -> frozenset[str]:
    """Names that formulations of the package have or may have, without importing them: those of their modules."""
    return frozenset(module.removeprefix("opticoll.formulations.").replace("_", "-") for module in _modules())


def formulations() -> dict[str, type[Formulation]]:
    """All formulations by name.

    They are defined as ``FORMULATION`` by the modules of the papers' sub-packages, and by plug-ins
    (:mod:`opticoll.plugins`).
    """
    return {**_ours(), **{model.name: model for model in plugins.contributed("FORMULATION")}}


def formulation(name: str | type[Formulation]) -> type[Formulation]:
    """Return the formulation called ``name``; a formulation itself is returned unchanged.

    Raises
    ------
    BadInput
        If there is no such formulation; the message suggests the closest name. Also if a user-defined formulation
        has no name, or that of another one.
    """
    if isinstance(name, type) and issubclass(name, Formulation):
        if not name.name:
            msg = f"the class {name.__name__} has no name; state one, such as name = 'own.model'"
            raise BadInput(msg)
        known = _lookup(name.name)
        if known is not None and known is not name:
            refuse(f"formulation {name.name!r}", "opticoll or a plug-in already uses this name; choose another name")
        return name
    if not isinstance(name, str):
        of = f"; pass its class {type(name).__name__}" if isinstance(name, Formulation) else ""
        of = "; the formulation comes first, then the instance" if isinstance(name, Instance) else of
        if type(name).__module__.partition(".")[0] in ("pyomo", "cvxpy"):
            of = "; r = oc.solve(model) solves a model of your own, and r.instance is an instance of 'matrix.program'"
        msg = f"a formulation must be a name or a subclass of Formulation, not an object of {type(name).__name__}{of}"
        raise BadInput(msg)
    result = _lookup(name)
    if result is None:
        plugins.load_installed()
        known_names = formulations()
        if name not in known_names and is_spec(name):
            msg = f"{name[:60]!r} is an instance, not a formulation; the formulation comes first, then the instance"
            raise BadInput(msg)
        if name not in known_names:
            hint = nearest(name, known_names)
            own = "; load your own file with oc.load_plugin (--plugin FILE.py)" if hint.startswith("known") else ""
            msg = f"unknown formulation {name!r}; {hint}{own}"
            raise BadInput(msg)
        return known_names[name]
    return result


def _lookup(name: str) -> type[Formulation] | None:
    """Look up a formulation; None if there is none."""
    ours = _our_formulation(name)
    if ours is not None:
        return ours
    return next((model for model in plugins.contributed("FORMULATION") if model.name == name), None)


@cache
def _our_formulation(name: str) -> type[Formulation] | None:
    """Look up a formulation of the package, importing only its module; None if there is none."""
    room, _, module = name.replace("-", "_").partition(".")
    path = f"opticoll.formulations.{room}.{module}"
    if room in ROOMS and module.isidentifier() and find_spec(path) is not None:
        for model in contributed((path,), "FORMULATION"):  # only this module, without importing all others
            found: type[Formulation] = model
            if found.name == name:
                return found
    return None


def paper_of(model: Formulation | type[Formulation]) -> str:
    """The title of the paper of a formulation, or its room if it is of none.

    For one from outside the package, the ``paper`` that its class states, or "own".
    """
    room = str(getattr(model, "paper", "own")) if is_own(model) else model.name.partition(".")[0]
    return PAPERS.get(room, room)


def is_registered(model: type[Formulation]) -> bool:
    """Whether a formulation can be looked up by name, including in another process."""
    return _lookup(model.name) is model


def bounds_of(model: Formulation, ready: dict[str, Bound | None] | None = None) -> list[Bound]:
    """Compute the analytic bounds of a formulation; ``ready`` gets those that need no other, each when it is known.

    Raises
    ------
    BadInput
        If a user-defined formulation's function returns anything but a list of bounds whose values are numbers.
    """
    if not is_own(model):
        known = {} if ready is None else ready
        for name, part in model._bound_parts().items():
            known[name] = part()
        return numbers(known.values() if known else model.bounds())
    result = model.bounds()
    listed = isinstance(result, list) and all(isinstance(bound, Bound) for bound in result)
    wrong = next((bound for bound in result if not is_number(bound.value)), None) if listed else None
    if not listed or wrong is not None:
        where = f"{place_of(model.bounds)}formulation {model.name!r}"
        returned = str(result)[:60] if wrong is None else f"{str(wrong.value)[:60]} for {wrong.name!r}"
        refuse(where, f"bounds returned {returned}; return a list of Bound objects whose values are numbers")
    return [in_floats(one, model.sense) for one in result]


def numbers(bounds: Iterable[Bound | None]) -> list[Bound]:
    """Those that there are: one of ours is NaN only where rounding overflows, which bounds nothing."""
    return [bound for bound in bounds if bound is not None and not math.isnan(bound.value)]


def in_floats(bound: Bound, sense: str) -> Bound:
    """A bound of a user, whose value may be any number, also of numpy, with the float on its safe side."""
    if isinstance(bound.value, bool) or not isinstance(bound.value, Rational):
        return replace(bound, value=float(bound.value))
    fraction = Fraction(int(bound.value.numerator), int(bound.value.denominator))
    nearest = rounding.fraction_up(fraction) if sense == "max" else rounding.fraction_down(fraction)
    return replace(bound, value=nearest, fraction=fraction)


def is_number(value: object) -> bool:
    """Whether a bound may have this value: an infinite one is valid, and proves nothing."""
    return isinstance(value, Real) and bool(value == value)

"""WHAT IS TRUE of a solution: one module a model, found by name; no solver is ever called from here."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from formulations.base import Formulation
from instances.errors import BadInput
from instances.spec import nearest


@cache
def formulations() -> dict[str, Formulation]:
    """All formulations by name; a module of a paper's sub-package with ``FORMULATION`` is one."""
    found: dict[str, Formulation] = {}
    for paper in iter_modules(__path__):
        if not paper.ispkg:
            continue
        package = import_module(f"{__name__}.{paper.name}")
        for module in iter_modules(package.__path__):
            loaded = import_module(f"{package.__name__}.{module.name}")
            formulation = getattr(loaded, "FORMULATION", None)
            if formulation is not None:
                found[formulation.name] = formulation
    return found


def formulation(name: str) -> Formulation:
    """The formulation called ``name``.

    Raises
    ------
    BadInput
        If there is none; the message names the nearest.
    """
    known = formulations()
    if name not in known:
        msg = f"no formulation {name!r}; {nearest(name, known)}"
        raise BadInput(msg)
    return known[name]


__all__ = ["Formulation", "formulation", "formulations"]

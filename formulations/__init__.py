"""WHAT IS TRUE of a solution: one module a model, found by name; no solver is ever called from here."""

from __future__ import annotations

from functools import cache

from opticoll.errors import BadInput
from opticoll.formulations.model import Formulation
from opticoll.instances.registry import contributed, held
from opticoll.instances.spec import nearest


@cache
def formulations() -> dict[str, Formulation]:
    """All formulations by name; a module of a paper's sub-package with ``FORMULATION`` is one."""
    return {one.name: one for one in contributed(__name__, "FORMULATION", deep=True)}


def formulation(name: str) -> Formulation:
    """The formulation called ``name``.

    Raises
    ------
    BadInput
        If there is none; the message names the nearest.
    """
    found = _named(name)
    if found is not None:
        return found
    known = formulations()
    if name not in known:
        msg = f"no formulation {name!r}; {nearest(name, known)}"
        raise BadInput(msg)
    return known[name]


@cache
def _named(name: str) -> Formulation | None:
    """The formulation of the module that the name says, without importing all the others."""
    paper, _, module = name.replace("-", "_").partition(".")
    found = held(f"{__name__}.{paper}.{module}", "FORMULATION") if paper.isidentifier() else None
    return found if isinstance(found, Formulation) and found.name == name else None


__all__ = ["Formulation", "formulation", "formulations"]

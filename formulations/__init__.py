"""Formulations: models with their checkers and bounds, found by name. No solver is called from here."""

from __future__ import annotations

if __name__ != "opticoll.formulations":
    msg = "formulations is part of opticoll now: import opticoll.formulations"
    raise ImportError(msg)

from functools import cache
from importlib.util import find_spec

from opticoll.errors import BadInput
from opticoll.formulations.model import Formulation
from opticoll.instances.registry import contributed, modules_of
from opticoll.instances.spec import nearest

#: Sub-packages with the formulations of one paper each; the other sub-packages are shared.
PAPERS = ("alltoall", "lumorph", "optree", "sipml", "topoopt")


@cache
def formulations() -> dict[str, Formulation]:
    """All formulations by name: the modules of the papers' sub-packages that define ``FORMULATION``."""
    modules = (module for paper in PAPERS for module in modules_of(f"{__name__}.{paper}"))
    return {model.name: model for model in contributed(modules, "FORMULATION")}


def formulation(name: str) -> Formulation:
    """The formulation called ``name``.

    Raises
    ------
    BadInput
        If there is no such formulation; the message suggests the closest name.
    """
    paper, _, module = name.replace("-", "_").partition(".")
    path = f"{__name__}.{paper}.{module}"
    if paper in PAPERS and module.isidentifier() and find_spec(path) is not None:
        for model in contributed((path,), "FORMULATION"):  # this module alone, without importing all the others
            if isinstance(model, Formulation) and model.name == name:
                return model
    known = formulations()
    if name not in known:
        msg = f"unknown formulation {name!r}; {nearest(name, known)}"
        raise BadInput(msg)
    return known[name]


__all__ = ["Formulation", "formulation", "formulations"]

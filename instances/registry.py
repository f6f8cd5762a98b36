"""Registries by module: what the modules of a package contribute under an agreed name."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import Any


def contributed(package: str, name: str, *, deep: bool = False) -> Iterator[Any]:
    """What the modules of ``package`` hold under ``name``, in the order of the modules' names.

    A tuple or list contributes each of its items; a module without the name contributes nothing. With ``deep`` the
    modules of the package's sub-packages are asked instead.
    """
    for module in iter_modules(import_module(package).__path__):
        path = f"{package}.{module.name}"
        if deep:
            if module.ispkg:
                yield from contributed(path, name)
            continue
        found = getattr(import_module(path), name, None)
        if isinstance(found, (tuple, list)):
            yield from found
        elif found is not None:
            yield found


def held(module: str, name: str) -> Any:
    """What ``module`` of one of our packages holds under ``name``, None if there is no such module or name.

    Imports that one alone: for looking up what a module is named after without asking all the others.
    """
    package, _, last = module.rpartition(".")
    try:
        if not (package and last.isidentifier()) or find_spec(package) is None or find_spec(module) is None:
            return None
    except ModuleNotFoundError:
        return None  # its package is no package
    return getattr(import_module(module), name, None)

"""Registries: what modules contribute under an agreed name, imported only when it is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import Any


def modules_of(package: str) -> list[str]:
    """Dotted names of the modules directly inside ``package``, sorted; nothing but the package is imported."""
    return [f"{package}.{module.name}" for module in iter_modules(import_module(package).__path__) if not module.ispkg]


def contributed(modules: Iterable[str], name: str) -> Iterator[Any]:
    """What ``modules`` hold under ``name``, in order.

    A tuple or list contributes each of its items; a module without the name contributes nothing.
    """
    for module in modules:
        found = getattr(import_module(module), name, None)
        if isinstance(found, (tuple, list)):
            yield from found
        elif found is not None:
            yield found

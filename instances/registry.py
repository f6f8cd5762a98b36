"""Registries: objects that modules define under an agreed name, imported on demand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import Any


def modules_of(package: str) -> list[str]:
    """Dotted names of the modules directly inside ``package``, sorted; only the package itself is imported."""
    return [f"{package}.{module.name}" for module in iter_modules(import_module(package).__path__) if not module.ispkg]


def contributed(modules: Iterable[str], name: str) -> Iterator[Any]:
    """Objects that ``modules`` define under ``name``, in order.

    A tuple or list contributes its items; a module without the name contributes nothing.
    """
    for module in modules:
        value = getattr(import_module(module), name, None)
        if isinstance(value, (tuple, list)):
            yield from value
        elif value is not None:
            yield value

"""Registry of solver adapters: every module of this package that defines ``ADAPTER`` is registered."""

from __future__ import annotations

from functools import cache

from opticoll.errors import MethodMismatch
from opticoll.instances.registry import contributed, modules_of
from opticoll.instances.spec import nearest
from opticoll.solvers.adapters.interface import Adapter


@cache
def adapters() -> dict[str, Adapter]:
    """Return all adapters by name, installed or not, without importing any solver."""
    return {adapter.name: adapter for adapter in contributed(modules_of(__name__), "ADAPTER")}


def adapter(name: str) -> Adapter:
    """Return the adapter called ``name``.

    Raises
    ------
    MethodMismatch
        If there is none; the message suggests the closest name.
    """
    known = adapters()
    if name not in known:
        msg = f"no solver {name!r}; {nearest(name, known)}"
        raise MethodMismatch(msg)
    return known[name]


__all__ = ["Adapter", "adapter", "adapters"]

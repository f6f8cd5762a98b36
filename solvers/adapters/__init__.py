"""Every solver adapter, found by module: dropping a file into this package registers its solver."""

from __future__ import annotations

from functools import cache

from opticoll.errors import MethodMismatch
from opticoll.instances.registry import contributed, modules_of
from opticoll.instances.spec import nearest
from opticoll.solvers.adapters.interface import Adapter


@cache
def adapters() -> dict[str, Adapter]:
    """All adapters by name, installed or not; imports no solver."""
    return {one.name: one for one in contributed(modules_of(__name__), "ADAPTER")}


def adapter(name: str) -> Adapter:
    """Look up the adapter called ``name``.

    Raises
    ------
    MethodMismatch
        If there is none; the message names the nearest.
    """
    known = adapters()
    if name not in known:
        msg = f"no solver {name!r}; {nearest(name, known)}"
        raise MethodMismatch(msg)
    return known[name]


__all__ = ["Adapter", "adapter", "adapters"]

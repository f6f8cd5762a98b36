"""Registry of solver adapters: the ``ADAPTER`` of every module of this package and of every plug-in."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from opticoll import plugins
from opticoll.errors import MethodMismatch
from opticoll.instances.spec import contributed, modules_of
from opticoll.nearest_names import nearest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opticoll.solvers.adapters.interface import Adapter


@cache
def package_adapters() -> Mapping[str, Adapter]:
    """Return this package's own adapters by name, without those of configuration files and plug-ins."""
    return {name: one for module in modules_of(__package__) for name, one in _defined_in(module).items()}


@cache
def _defined_in(module: str) -> dict[str, Adapter]:
    return {adapter.name: adapter for adapter in contributed([module], "ADAPTER")}


@cache
def _own(name: str) -> Adapter | None:
    """The package's adapter of a name; of its modules, that of HiGHS is imported first, and often alone."""
    modules = sorted(modules_of(__package__), key=lambda module: not module.endswith(".highs"))
    return next((found[name] for module in modules if name in (found := _defined_in(module))), None)


def adapters() -> dict[str, Adapter]:
    """Return all adapters by name, installed or not, without importing any solver.

    Raises
    ------
    BadFile
        If a solver configuration file (:mod:`opticoll.solvers.adapters.command_line`) is invalid.
    """
    from opticoll.solvers.adapters.command_line import configured

    contributions = {adapter.name: adapter for adapter in plugins.contributed("ADAPTER")}
    return {**package_adapters(), **configured(package_adapters()), **contributions}


def adapter(name: str) -> Adapter:
    """Return the adapter called ``name``.

    Raises
    ------
    MethodMismatch
        If there is none; the message suggests the closest name.
    """
    if (own := _own(name)) is not None:
        return own
    known = adapters()
    if name not in known:
        plugins.load_installed()
        known = adapters()
    if name not in known:
        hint = nearest(name, known)
        if hint.startswith("known"):
            hint += "; one that runs as a command is read from a file that OPTICOLL_SOLVERS names"
        msg = f"no solver {name!r}; {hint}"
        raise MethodMismatch(msg)
    return known[name]

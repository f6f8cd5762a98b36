"""Optimization models of optical and direct-connect interconnects, solved by any solver and certified.

``import opticoll as oc`` is the public interface; each name is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opticoll.analysis.instance_bounds import bounds
    from opticoll.instances import Topology, parse
    from opticoll.solvers.runner import export, solve
    from opticoll.solvers.solution import check
    from opticoll.solvers.task import Run as Result
    from opticoll.solvers.task import Task

#: Public name -> defining module, and the name there.
_HOMES = {
    "Result": ("opticoll.solvers.task", "Run"),
    "Task": ("opticoll.solvers.task", "Task"),
    "Topology": ("opticoll.instances", "Topology"),
    "bounds": ("opticoll.analysis.instance_bounds", "bounds"),
    "check": ("opticoll.solvers.solution", "check"),
    "export": ("opticoll.solvers.runner", "export"),
    "parse": ("opticoll.instances", "parse"),
    "solve": ("opticoll.solvers.runner", "solve"),
}

__all__ = ["Result", "Task", "Topology", "bounds", "check", "export", "parse", "solve"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        msg = f"module 'opticoll' has no attribute {name!r}; it offers {', '.join(__all__)}"
        raise AttributeError(msg)
    module, attribute = _HOMES[name]
    value = getattr(import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])

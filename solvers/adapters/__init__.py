"""Registry of solver adapters: the ``ADAPTER`` of every module of this package and of every plug-in."""

from __future__ import annotations

from opticoll.solvers.adapters.interface import Adapter
from opticoll.solvers.adapters.registry import adapter, adapters, package_adapters

__all__ = ["Adapter", "adapter", "adapters", "package_adapters"]

"""Methods: decompositions, reformulations, heuristics and certifications, found by name."""

from __future__ import annotations

from opticoll.solvers.methods.method import Beyond, Method
from opticoll.solvers.methods.registry import (
    method_named,
    methods,
    methods_for,
    package_names,
    prepared,
    taking_over,
)

__all__ = ["Beyond", "Method", "method_named", "methods", "methods_for", "package_names", "prepared", "taking_over"]

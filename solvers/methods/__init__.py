"""Methods: decompositions, reformulations, heuristics and certifications, found by name."""

from __future__ import annotations

from opticoll.solvers.methods.method import Method
from opticoll.solvers.methods.registry import method_named, methods, methods_for, own_names, prepared

__all__ = ["Method", "method_named", "methods", "methods_for", "own_names", "prepared"]

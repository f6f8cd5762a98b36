"""Formulations: models with their checkers and bounds, found by name. No solver is called here."""

from __future__ import annotations

from opticoll.formulations.model import Formulation
from opticoll.formulations.registry import bounds_of, formulation, formulations, is_registered, package_names

__all__ = [
    "Formulation",
    "bounds_of",
    "formulation",
    "formulations",
    "is_registered",
    "package_names",
]

"""Errors of the solving layer, with the exit status the command line gives each."""

from __future__ import annotations

from instances.errors import BadInput, OpticollError


class SolverUnavailable(OpticollError):
    """A solver cannot be used here: package missing, licence missing, or the licence is too small."""

    exit_status = 4


class BadOption(BadInput):
    """A solver option or a limit that does not exist or has an impossible value."""


class MethodMismatch(BadInput):
    """A method or solver that cannot take this formulation or problem class."""


class NoSolution(OpticollError):
    """The solve ended without a solution that survives verification."""

    exit_status = 3


class ModelError(OpticollError):
    """A model that cannot be compiled to a :class:`~solvers.standard_form.StandardForm`."""

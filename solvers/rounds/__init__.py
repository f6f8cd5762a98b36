"""Rounds and wavelengths for circuits: first fit, ejection search, constructions that meet the bounds."""

from solvers.rounds.assignment import Assignment, assign_rounds

__all__ = ["Assignment", "assign_rounds"]

"""Closed forms of exact optima over a family of instances, and what is proven of them."""

from opticoll.analysis.conjectures.conjecture import Conjecture, conjecture

__all__ = ["Conjecture", "conjecture"]

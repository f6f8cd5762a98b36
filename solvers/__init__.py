"""Solving: the standard form, an adapter for each solver, methods, limits, isolation and the runner."""

if __name__ != "opticoll.solvers":
    msg = "solvers is part of opticoll now: import opticoll.solvers"
    raise ImportError(msg)

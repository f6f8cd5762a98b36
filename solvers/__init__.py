"""HOW it is solved: the standard form, one adapter per solver, methods, limits, isolation, the runner."""

if __name__ != "opticoll.solvers":
    msg = "solvers is part of opticoll now: import opticoll.solvers"
    raise ImportError(msg)

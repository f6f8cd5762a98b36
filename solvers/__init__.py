"""HOW it is solved: the StandardForm waist, one adapter a solver, methods, limits, isolation, the runner."""

if __name__ != "opticoll.solvers":
    msg = "solvers is part of opticoll now: import opticoll.solvers"
    raise ImportError(msg)

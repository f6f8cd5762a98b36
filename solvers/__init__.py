"""HOW it is solved: the StandardForm waist, one adapter a solver, methods, limits, isolation, the runner."""

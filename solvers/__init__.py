"""Solving: the standard form, an adapter for each solver, methods, limits, isolation and the runner."""

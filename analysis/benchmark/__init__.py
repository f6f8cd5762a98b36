"""Benchmarks: tables of timings, the set of benchmark problems, and metrics that compare solvers."""

"""Small problems of ``matrix.program``."""

from __future__ import annotations

from problems import DATA, Problems

PROBLEMS = Problems(cases=[(f"mps:{DATA / 'program.lp'}", {})])

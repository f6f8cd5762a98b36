"""Problems of matrix.program for the tests of all formulations: see :mod:`problems`."""

from __future__ import annotations

from pathlib import Path

PROGRAM = f"mps:{Path(__file__).resolve().parents[2] / 'data' / 'program.lp'}"
CORRUPTED = [
    (PROGRAM, {}, ()),
]

"""LuMorph's routes of least overlap: from command to proof, and the printed MILP beside it."""

from __future__ import annotations

import json
import subprocess
import time

from analysis.benchmarks.base import Row, Table, timed_command

#: Instance, circuits and method; HiGHS gets the printed arc form with a limit [s].
_CASES = (
    ("lightpath:8x16", "recursive-doubling:6", "auto"), ("lightpath:16x16", "recursive-quadrupling:3", "auto"),
    ("lightpath:8x16", "permutation", "auto"), ("lightpath:16x16", "permutation", "auto"),
    ("lightpath:8x32", "permutation", "auto"), ("lightpath:4x64", "permutation", "auto"),
    ("lightpath:8x16+fail=23,seed=1", "permutation", "auto"), ("lightpath:16x16+fail=48,seed=2", "permutation", "auto"),
    ("lightpath:4x8", "permutation", "highs"), ("lightpath:8x8", "permutation", "highs"),
    ("lightpath:8x16", "permutation", "highs"),
)  # fmt: skip
_LIMIT_S = 60


def least_overlap() -> list[Row]:
    """``opticoll solve`` from start to verified finish."""
    rows = []
    for instance, circuits, method in _CASES:
        seconds, out = _command(instance, circuits, method)
        record = json.loads(out)
        rows.append(
            {
                "instance": instance,
                "circuits": circuits,
                "method": record["method"],
                "overlap": record["objective"],
                "bound": record["bound"],
                "proof": record["proof"],
                "solver's own bound": record["solver_claims"]["bound"],
                "variables": record["size"]["variables"],
                "solve [s]": record["time"]["solve_s"],
                "whole command [s]": seconds,
            }
        )
    return rows


def _command(instance: str, circuits: str, method: str) -> tuple[float, str]:
    """Wall seconds and record; a limit reached without routes (exit status 3) is a row too."""
    start = time.perf_counter()
    try:
        return timed_command(
            "solve", "lumorph.min-overlap", instance, "--set", f"circuits={circuits}", "--method", method,
            "--time-limit", str(_LIMIT_S), "--json", "--no-store",
        )  # fmt: skip
    except subprocess.CalledProcessError as error:
        if error.returncode != 3:
            raise
        return time.perf_counter() - start, str(error.stdout)


TABLES = (Table("least-overlap", "LuMorph, Algorithm 2: routes of least overlap (single runs)", least_overlap),)

"""Benchmark tables: rounds of circuits, and routes of least overlap."""

from __future__ import annotations

import json
import subprocess
import time
from typing import Any

from timed_commands import Row, Table, timed_row, timed_solve

from opticoll.solvers.task import PROVEN

MESHES = ("4x8", "8x8", "8x16", "16x16")
LASERS = (1, 4, 8, 16)
GUIDES = (1, 2, 4, 16, 32)
#: Where no closed form helps: specs, collectives and settings.
IRREGULAR = (
    ("lightpath:8x8,lasers=4,waveguides=3", "all-to-all", ()),
    ("lightpath:16x16,lasers=16,waveguides=3", "all-to-all", ()),
    ("lightpath:4x64,lasers=4,waveguides=4", "all-to-all", ()),
    ("lightpath:4x64,lasers=4,waveguides=4", "all-gather", ()),
    ("lightpath:6x10,lasers=4,waveguides=2", "all-to-all", ()),
    ("lightpath:8x8,lasers=4,waveguides=2+fail=8,seed=1", "all-to-all", ()),
    ("lightpath:8x16,lasers=8,waveguides=2+fail=30,seed=1", "all-gather", ()),
    ("lightpath:8x16,lasers=8,waveguides=2+fail=30,seed=1", "all-reduce", ()),
    ("lightpath:4x8,lasers=8,waveguides=2", "all-to-all", ("wavelengths=fixed",)),
    ("lightpath:4x8,lasers=8,waveguides=2", "all-gather", ("wavelengths=fixed",)),
)


#: How the smallest cases are solved: mesh, method, settings.
PROGRAMS = (
    ("2x4", "highs", ("bounds=false",)),
    ("2x4", "certified-rounds", ()),
)


def _given(collective: str, settings: tuple[str, ...] = (), method: str = "certified-rounds") -> list[str]:
    chosen = [word for setting in (f"collective={collective}", *settings) for word in ("--set", setting)]
    return ["--method", method, *chosen]


def grid() -> list[Row]:
    """Every size and collective over the grid: cases, proven and open ones, and the slowest command."""
    rows: list[Row] = []
    for size in MESHES:
        for collective in ("all-to-all", "all-gather"):
            proven, worst, most_gap = 0, 0.0, 0.0
            open_cases = []
            for lasers in LASERS:
                for waveguides in GUIDES:
                    instance = f"lightpath:{size},lasers={lasers},waveguides={waveguides}"
                    seconds, record = timed_solve("lumorph.rounds", instance, *_given(collective))
                    if record["proof"] in PROVEN:
                        proven, worst = proven + 1, max(worst, seconds)
                    else:
                        open_cases.append(f"L={lasers} W={waveguides}: {record['bound']}..{record['objective']}")
                        most_gap = max(most_gap, record["objective"] - record["bound"])
            rows.append(
                {
                    "mesh": size,
                    "collective": collective,
                    "cases": len(LASERS) * len(GUIDES),
                    "proven": proven,
                    "not proven": ", ".join(open_cases) or "none",
                    "largest gap [rounds]": most_gap,
                    "slowest proof, whole command [s]": worst,
                }
            )
    return rows


def program() -> list[Row]:
    """Algorithm 1's program: alone (no analytic bound, proof by its relaxation), and against constructions."""
    rows: list[Row] = []
    for size, method, settings in PROGRAMS:
        for collective in ("all-to-all", "all-gather"):
            seconds, solving, proofs = [], [], 0
            given = _given(collective, settings, method)
            for lasers in (1, 2, 4, 8):
                for waveguides in (1, 2):
                    instance = f"lightpath:{size},lasers={lasers},waveguides={waveguides}"
                    wall, record = timed_solve("lumorph.rounds", instance, *given)
                    seconds.append(wall)
                    solving.append(record["time"]["solve_s"])
                    proofs += record["proof"] in PROVEN
            rows.append(
                {
                    "mesh": size,
                    "method": " ".join((method, *settings)),
                    "collective": collective,
                    "cases": 8,
                    "proven": proofs,
                    "slowest solve [s]": max(solving),
                    "slowest whole command [s]": max(seconds),
                }
            )
    return rows


def irregular() -> list[Row]:
    """Failed links, odd shapes, three waveguides, fixed wavelengths: rounds, bound and how they were found."""
    columns = {"rounds": "objective", "bound": "bound", "proof": "proof", "found by": "metrics.found_by"}
    return [
        {"instance": instance, "collective": " ".join((collective, *settings))}
        | timed_row(columns, "lumorph.rounds", instance, *_given(collective, settings))
        for instance, collective, settings in IRREGULAR
    ]


#: Instance, circuits and method; HiGHS gets the printed arc form with a limit [s].
_CASES = (
    ("lightpath:8x16", "recursive-doubling:6", "auto"),
    ("lightpath:16x16", "recursive-quadrupling:3", "auto"),
    ("lightpath:8x16", "permutation", "auto"),
    ("lightpath:16x16", "permutation", "auto"),
    ("lightpath:8x32", "permutation", "auto"),
    ("lightpath:4x64", "permutation", "auto"),
    ("lightpath:8x16+fail=23,seed=1", "permutation", "auto"),
    ("lightpath:16x16+fail=48,seed=2", "permutation", "auto"),
    ("lightpath:4x8", "permutation", "highs"),
    ("lightpath:8x8", "permutation", "highs"),
    ("lightpath:8x16", "permutation", "highs"),
)
_LIMIT_S = 60


def least_overlap() -> list[Row]:
    """``opticoll solve`` from start to verified finish."""
    rows = []
    for instance, circuits, method in _CASES:
        seconds, record = _command(instance, circuits, method)
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


def _command(instance: str, circuits: str, method: str) -> tuple[float, dict[str, Any]]:
    """Wall seconds and record; a limit reached without routes (exit status 3) is a row too."""
    start = time.perf_counter()
    try:
        return timed_solve(
            "lumorph.min-overlap",
            instance,
            "--set",
            f"circuits={circuits}",
            "--method",
            method,
            "--time-limit",
            str(_LIMIT_S),
        )
    except subprocess.CalledProcessError as error:
        if error.returncode != 3:
            raise
        return time.perf_counter() - start, json.loads(error.stdout)


TABLES = (
    Table("rounds-program", "Rounds of circuits at 8 GPUs: lasers {1,2,4,8} x waveguides {1,2}", program),
    Table("rounds", "Rounds of circuits: lasers {1,4,8,16} x waveguides {1,2,4,16,32}, whole commands", grid),
    Table("rounds-irregular", "Rounds of circuits where no closed form helps (single runs)", irregular),
    Table("least-overlap", "LuMorph, Algorithm 2: routes of least overlap (single runs)", least_overlap),
)

"""Certified gaps by first-order methods: our matrix-free one, off-the-shelf PDLP with the same ends, interior point."""

from __future__ import annotations

from typing import Any

from analysis.benchmarks.base import Row, Table

LIMIT_S = 120.0


def matched() -> list[Row]:
    """Seconds to a certified gap of 1e-4 and 1e-6 on ``alltoall.master``, GK(N,4)."""
    from solvers.runner import solve
    from solvers.task import Task

    methods: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("certified-pdhg", "certified-pdhg", {}),
        ("certified-pdlp, HiGHS", "certified-pdlp", {"solver": "highs-pdlp"}),
        ("certified-pdlp, OR-Tools", "certified-pdlp", {"solver": "pdlp"}),
        ("time-form, HiGHS IPX", "time-form", {}),
    )
    solve(Task("alltoall.master", "ring:5", "certified-pdhg"))  # compiles its kernels
    rows: list[Row] = []
    late: set[tuple[str, float]] = set()
    for n in (64, 100, 200, 500, 1000):
        for tol in (1e-4, 1e-6):
            row: Row = {"instance": f"genkautz:n={n},d=4", "gap asked": tol}
            for title, method, settings in methods:
                row[title] = None
                if (title, tol) in late:
                    continue  # it was late for a smaller instance
                task = Task(
                    "alltoall.master", row["instance"], method, "matrix", settings=settings, tol=tol,
                    time_limit_s=LIMIT_S,
                )  # fmt: skip
                run = solve(task)
                gap = run.record["gap"]
                if gap is not None and gap <= tol and run.verified:
                    row[title] = _seconds(run.record["time"])
                else:
                    late.add((title, tol))
                    row[title] = f"{gap:.1e} at {LIMIT_S:.0f} s" if gap is not None else f"nothing at {LIMIT_S:.0f} s"
            rows.append(row)
    return rows


def _seconds(times: dict[str, float | None]) -> float:
    """Build, compile, solve and verify together."""
    return sum(times[part] or 0.0 for part in ("build_s", "compile_s", "solve_s", "verify_s"))


TABLES = (Table("pdlp", "Seconds to a certified gap, `alltoall.master` (build to proof; – late before)", matched),)

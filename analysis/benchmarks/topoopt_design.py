"""Timings of TopoOpt's exact models: circuits and routes, strategies."""

from __future__ import annotations

import json

from analysis.benchmarks.base import Row, Table, timed_command


def designs() -> list[Row]:
    """``opticoll solve topoopt.topology`` from start to verified finish; small ones also as an integer program."""
    cases = [(f"servers:n={n},degree=2,traffic=random,seed=1", "design-search") for n in (5, 6, 7, 8)]
    cases += [("servers:n=7,degree=2,traffic=alltoall", "design-search")]
    cases += [("servers:n=10,degree=2,traffic=random,seed=1", "design-search")]
    cases += [("servers:n=4,degree=2,traffic=random,seed=1", method) for method in ("certified-branching", "highs")]
    rows = []
    for spec, method in cases:
        seconds, out = timed_command(
            "solve", "topoopt.topology", spec, "--method", method, "--time-limit", "150", "--json", "--no-store"
        )
        record = json.loads(out)
        rows.append({
            "instance": spec, "method": method, "proof": record["proof"], "gap": record["gap"],
            "nodes": record["metrics"].get("nodes"), "solve [s]": record["time"]["solve_s"],
            "whole command [s]": seconds,
        })  # fmt: skip
    return rows


def strategies() -> list[Row]:
    """``opticoll solve topoopt.strategy``: the front and the alternating optimisation, for every model."""
    from instances.training_jobs import JOBS

    rows = []
    for model in JOBS:
        spec = f"servers:n=16,degree=4,traffic={model},section={JOBS[model][1][0]}"
        for method in ("strategy-front", "alternating"):
            seconds, out = timed_command("solve", "topoopt.strategy", spec, "--method", method, "--json", "--no-store")
            record = json.loads(out)
            rows.append({
                "instance": spec, "method": method, "proof": record["proof"], "Eq. (1) [s]": record["objective"],
                "over circuits found [s]": record["metrics"].get("iteration_time"),
                "solve [s]": record["time"]["solve_s"], "whole command [s]": seconds,
            })  # fmt: skip
    return rows


TABLES: tuple[Table, ...] = (
    Table("topoopt-circuits", "Best circuits and routes of small pools (single runs)", designs),
    Table("topoopt-strategies", "Strategies of the six models (single runs)", strategies),
)

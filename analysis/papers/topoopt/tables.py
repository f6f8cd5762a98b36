"""Benchmark tables: constructions, routing, best circuits and strategies."""

from __future__ import annotations

import time

from opticoll.analysis.benchmark.measured_tables import Row, Table, timed_solve
from opticoll.instances import parse


def constructions() -> list[Row]:
    """TopologyFinder and OCS-reconfig with their check, best of three with empty caches, in this process."""
    from opticoll.formulations.topoopt.circuit_design import lower_bounds, residuals
    from opticoll.solvers.methods.topoopt.ocs_reconfig import ocs_reconfig
    from opticoll.solvers.methods.topoopt.topology_finder import clear_caches, topology_finder

    rows = []
    for n, degree, job in (
        (128, 4, "dlrm,section=5.3"),
        (128, 8, "dlrm,section=5.3"),
        (128, 4, "dlrm,section=5.4,batch=2048"),
        (128, 8, "dlrm,section=5.4,batch=2048"),
        (128, 4, "candle"),
        (128, 4, "bert"),
        (128, 4, "ncf"),
        (128, 4, "resnet50"),
        (128, 4, "vgg,parallel=hybrid"),
        (512, 8, "dlrm,section=5.4"),
    ):
        pool = parse(f"servers:n={n},degree={degree},traffic={job}")
        for name, build in (("topology-finder", topology_finder), ("ocs-reconfig", ocs_reconfig)):
            if n > 128 and build is ocs_reconfig:
                continue  # its parallel circuits leave routes of hundreds of hops
            seconds, checked = [], []
            for _ in range(3):
                clear_caches()
                start = time.perf_counter()
                result = build(pool)
                middle = time.perf_counter()
                worst = max(residuals(pool, result.values()).values())
                checked.append(time.perf_counter() - middle)
                seconds.append(middle - start)
            rows.append(
                {
                    "n": n,
                    "d": degree,
                    "job": job,
                    "method": name,
                    "max load / bound": result.max_load / lower_bounds(pool)["max-load"].value,
                    "bandwidth tax": result.bandwidth_tax,
                    "worst violation": worst,
                    "construct [s]": min(seconds),
                    "check [s]": min(checked),
                }
            )
    return rows


def routing() -> list[Row]:
    """``topoopt.routing`` of the all-to-all DLRM, from start to verified finish."""
    rows = []
    for n, degree, batch in ((32, 4, 128), (64, 4, 128), (128, 4, 128), (128, 4, 2048)):
        instance = f"servers:n={n},degree={degree},traffic=dlrm,section=5.4,batch={batch}"
        seconds, record = timed_solve(
            "topoopt.routing", instance, "--set", "traffic=point-to-point", "--method", "time-form"
        )
        rows.append(
            {
                "instance": instance,
                "variables": record["size"]["variables"],
                "heuristic / optimum": record["metrics"]["heuristic_over_optimum"],
                "gap": record["gap"],
                "proof": record["proof"],
                "solve [s]": record["time"]["solve_s"],
                "whole command [s]": seconds,
            }
        )
    return rows


def designs() -> list[Row]:
    """``opticoll solve topoopt.topology`` from start to verified finish; small ones also as an integer program."""
    cases = [(f"servers:n={n},degree=2,traffic=random,seed=1", "design-search") for n in (5, 6, 7, 8)]
    cases += [("servers:n=7,degree=2,traffic=alltoall", "design-search")]
    cases += [("servers:n=10,degree=2,traffic=random,seed=1", "design-search")]
    cases += [("servers:n=4,degree=2,traffic=random,seed=1", method) for method in ("certified-branching", "highs")]
    rows = []
    for spec, method in cases:
        seconds, record = timed_solve("topoopt.topology", spec, "--method", method, "--time-limit", "150")
        rows.append(
            {
                "instance": spec,
                "method": method,
                "proof": record["proof"],
                "gap": record["gap"],
                "nodes": record["metrics"].get("nodes"),
                "solve [s]": record["time"]["solve_s"],
                "whole command [s]": seconds,
            }
        )
    return rows


def strategies() -> list[Row]:
    """``opticoll solve topoopt.strategy``: the front and the alternating optimisation, for every model."""
    from opticoll.instances.training_jobs import JOBS

    rows = []
    for model in JOBS:
        spec = f"servers:n=16,degree=4,traffic={model},section={JOBS[model][1][0]}"
        for method in ("strategy-front", "alternating"):
            seconds, record = timed_solve("topoopt.strategy", spec, "--method", method)
            rows.append(
                {
                    "instance": spec,
                    "method": method,
                    "proof": record["proof"],
                    "Eq. (1) [s]": record["objective"],
                    "over circuits found [s]": record["metrics"].get("iteration_time"),
                    "solve [s]": record["time"]["solve_s"],
                    "whole command [s]": seconds,
                }
            )
    return rows


TABLES = (
    Table("topoopt-designs", "TopologyFinder and OCS-reconfig at the paper's sizes (best of 3)", constructions),
    Table("topoopt-routing", "Smallest maximum load over TopologyFinder's circuits, whole commands", routing),
    Table("topoopt-circuits", "Best circuits and routes of small pools (single runs)", designs),
    Table("topoopt-strategies", "Strategies of the six models (single runs)", strategies),
)

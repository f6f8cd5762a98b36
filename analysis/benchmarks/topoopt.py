"""TopoOpt: constructions at the paper's sizes, and the least maximum load over their circuits."""

from __future__ import annotations

import json
import time

from analysis.benchmarks.base import Row, Table, timed_command


def constructions() -> list[Row]:
    """TopologyFinder and OCS-reconfig with their check, best of three, in this process."""
    from formulations.topoopt.design import lower_bounds, residuals
    from formulations.topoopt.topology_finder import ocs_reconfig, topology_finder
    from instances import parse

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
                start = time.perf_counter()
                found = build(pool)
                middle = time.perf_counter()
                worst = max(residuals(pool, found.values()).values())
                checked.append(time.perf_counter() - middle)
                seconds.append(middle - start)
            rows.append(
                {
                    "n": n,
                    "d": degree,
                    "job": job,
                    "method": name,
                    "max load / bound": found.max_load / lower_bounds(pool)["max-load"].value,
                    "bandwidth tax": found.bandwidth_tax,
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
        seconds, out = timed_command(
            "solve", "topoopt.routing", instance, "--set", "traffic=point-to-point", "--method", "time-form", "--json",
            "--no-store",
        )  # fmt: skip
        record = json.loads(out)
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


TABLES = (
    Table("topoopt-designs", "TopologyFinder and OCS-reconfig at the paper's sizes (best of 3)", constructions),
    Table("topoopt-routing", "Least maximum load over TopologyFinder's circuits, whole commands", routing),
)

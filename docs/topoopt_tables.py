"""Benchmark tables: constructions, routing, best circuits and strategies."""

from __future__ import annotations

import time

from timed_commands import Row, Table, timed_row

from opticoll.instances import parse


def constructions() -> list[Row]:
    """TopologyFinder and OCS-reconfig with their check, best of three with empty caches, in this process."""
    from opticoll.formulations.topoopt.circuit_design_bounds import lower_bounds
    from opticoll.formulations.topoopt.circuit_design_solution import residuals
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
    columns = {
        "variables": "size.variables",
        "heuristic / optimum": "metrics.heuristic_over_optimum",
        "gap": "gap",
        "proof": "proof",
        "solve [s]": "time.solve_s",
    }
    given = ("--set", "traffic=point-to-point", "--method", "time-form")
    return [
        timed_row(
            columns,
            "topoopt.routing",
            f"servers:n={n},degree={degree},traffic=dlrm,section=5.4,batch={batch}",
            *given,
        )
        for n, degree, batch in ((32, 4, 128), (64, 4, 128), (128, 4, 128), (128, 4, 2048))
    ]


def designs() -> list[Row]:
    """``opticoll solve topoopt.topology`` from start to verified finish; small ones also as an integer program."""
    cases = [(f"servers:n={n},degree=2,traffic=random,seed=1", "design-search") for n in (5, 6, 7, 8)]
    cases += [("servers:n=7,degree=2,traffic=alltoall", "design-search")]
    cases += [("servers:n=10,degree=2,traffic=random,seed=1", "design-search")]
    cases += [("servers:n=4,degree=2,traffic=random,seed=1", method) for method in ("certified-branching", "highs")]
    columns = {
        "method": "method",
        "proof": "proof",
        "gap": "gap",
        "nodes": "metrics.nodes",
        "solve [s]": "time.solve_s",
    }
    return [
        timed_row(columns, "topoopt.topology", spec, "--method", method, "--time-limit", "150")
        for spec, method in cases
    ]


def strategies() -> list[Row]:
    """``opticoll solve topoopt.strategy``: the front and the alternating optimisation, for every model."""
    from opticoll.instances.training.training_jobs import JOBS

    columns = {
        "method": "method",
        "proof": "proof",
        "Eq. (1) [s]": "objective",
        "over circuits found [s]": "metrics.iteration_time",
        "solve [s]": "time.solve_s",
    }
    return [
        timed_row(
            columns,
            "topoopt.strategy",
            f"servers:n=16,degree=4,traffic={model},section={JOBS[model][1][0]}",
            "--method",
            method,
        )
        for model in JOBS
        for method in ("strategy-front", "alternating")
    ]


def task_graphs() -> list[Row]:
    """Circuits for the sum of an iteration's traffic and for its task graph, both replayed alike, and the bound."""
    from opticoll.formulations import formulation
    from opticoll.solvers.methods.topoopt.topology_finder import topology_finder
    from opticoll.solvers.solve import solve
    from opticoll.solvers.task import Task

    rows = []
    for spec in (
        "tasks:bert,n=8,degree=4",
        "tasks:dlrm,n=8,degree=4",
        "tasks:dlrm,n=12,degree=4",
        "tasks:moe,n=8,degree=2",
        "tasks:moe,n=8,degree=3",
        "tasks:moe,n=8,degree=4",
        "tasks:moe,n=8,degree=4,seed=1",
        "tasks:moe,n=8,degree=4,layers=2,seed=1",
    ):
        pool = parse(spec)
        steps = [(ring.order[1] - ring.order[0]) % pool.n for ring in topology_finder(pool).rings]
        given = {"intervals": 0 if "moe" in spec else 200, "rings": "+".join(map(str, steps or [1]))}
        finder, search = (
            solve(Task("topoopt.circuits", pool, method, settings=given, time_limit_s=40))
            for method in ("replayed-finder", "circuit-search")
        )
        assert finder.objective
        assert search.objective
        assert search.bound
        data = formulation("topoopt.circuits").prepare(pool, given | {"intervals": 200})
        least = max(bound.value for bound in data.bounds())
        rows.append(
            {
                "instance": spec,
                "rings": given["rings"],
                "topology-finder [ms]": finder.objective,
                "circuit-search [ms]": search.objective,
                "bound [ms]": search.bound,
                "gap [%]": round(100 * (search.objective / search.bound - 1), 6),
                "any intervals [ms]": least,
                "loss [%]": round(100 * (finder.objective / search.objective - 1), 6),
                "loss at most [%]": round(100 * (finder.objective / least - 1), 6),
                "solve [s]": search.record.time.solve_s,
            }
        )
    return rows


TABLES = (
    Table("topoopt-tasks", "Circuits for the sum of all traffic, and for the task graph (single runs)", task_graphs),
    Table("topoopt-designs", "TopologyFinder and OCS-reconfig at the paper's sizes (best of 3)", constructions),
    Table("topoopt-routing", "Smallest maximum load over TopologyFinder's circuits, whole commands", routing),
    Table("topoopt-circuits", "Best circuits and routes of small pools (single runs)", designs),
    Table("topoopt-strategies", "Strategies of the six models (single runs)", strategies),
)

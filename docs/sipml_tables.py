"""Benchmark tables: circuits over switches, wavelengths on rings and placement, each at real sizes."""

from __future__ import annotations

import time

import numpy as np
from timed_commands import Row, Table


def circuits() -> list[Row]:
    """Bisection and edge colouring on sums of random permutations, three quarters of the ports in use."""
    from opticoll.formulations.sipml import ocs_circuits
    from opticoll.instances.servers import ServerPool
    from opticoll.solvers.methods.sipml.koenig_bisection import bisect, matchings_of

    rows = []
    for n, degree in ((64, 8), (1024, 8), (1024, 64), (4096, 16)):
        random, matrix = np.random.default_rng(0), np.zeros((n, n))
        for _ in range(3 * degree // 4):
            matrix[np.arange(n), random.permutation(n)] += random.integers(1, 1000, n)
        np.fill_diagonal(matrix, 0)
        data = ocs_circuits.OcsCircuits.prepare(ServerPool(n, degree, matrix))
        start = time.perf_counter()
        least, _ = bisect(data)
        bisected = time.perf_counter()
        match = matchings_of(data, data.transfers.needs(least))
        coloured = time.perf_counter()
        worst = max(data.residuals({"match": match.astype(float)}).values())
        rows.append(
            {
                "servers": n,
                "degree": degree,
                "pairs": data.transfers.pairs,
                "bisection [s]": bisected - start,
                "colouring [s]": coloured - bisected,
                "violation": worst,
            }
        )
    return rows


def placements() -> list[Row]:
    """Algorithm 1 with the unrolled repair, and its bounds."""
    from opticoll.formulations.sipml import placement, placement_solution
    from opticoll.instances import parse
    from opticoll.solvers.methods.sipml.degree_aware import Unrolled

    rows = []
    for spec, k, degree in (
        ("op-graph:model=transformer,layers=24,parts=16", 16, 4),
        ("op-graph:model=transformer,layers=128,parts=32", 32, 5),
        ("op-graph:model=resnet,layers=12,parts=16", 16, 4),
        ("op-graph:model=dlrm,layers=12,parts=16", 16, 4),
        ("op-graph:model=random,layers=2000,parts=16", 16, 4),
    ):
        data = placement.Placement.prepare(parse(spec), {"k": k, "degree": degree})
        start = time.perf_counter()
        state = Unrolled(data, 0)
        state.place()
        seconds = time.perf_counter() - start
        device = np.array(state.device)
        begun = placement_solution.starts(data, device, np.arange(data.n))
        assert begun is not None
        makespan = float((begun + data.graph.duration).max())
        rows.append(
            {
                "instance": spec,
                "GPUs": k,
                "degree": degree,
                "sub-ops": data.n,
                "seconds": seconds,
                "makespan / bound": makespan / max(bound.value for bound in data.bounds()),
            }
        )
    return rows


def rings() -> list[Row]:
    """Methods on rings with random traffic, as a user runs them (including the start of a worker)."""
    from opticoll.solvers.solve import solve
    from opticoll.solvers.task import Task

    rows = []
    for n, wavelengths, method, model in (
        (8, 32, "highs", "arcs"),
        (8, 32, "highs", "sets"),
        (8, 32, "ring-sets", "sets"),
        (8, 512, "ring-sets", "sets"),
        (8, 512, "ring-first-fit", "sets"),
        (16, 256, "ring-sets", "sets"),
    ):
        spec = f"wdm-ring:n={n},wavelengths={wavelengths}"
        named = {"traffic": "random", "seed": "1", "model": model}
        run = solve(Task("sipml.ring-wavelengths", spec, method=method, settings=named, time_limit_s=120.0))
        rows.append(
            {
                "instance": spec,
                "method": method,
                "model": model,
                "seconds": run.record["time"]["solve_s"],
                "objective": run.objective,
                "gap": run.record["gap"],
                "proof": str(run.proof),
            }
        )
    return rows


TABLES = (
    Table("sipml-circuits", "Circuits over optical switches: bisection and edge colouring", circuits),
    Table("sipml-ring", "Wavelengths on a ring", rings),
    Table("sipml-placement", "Degree-aware placement", placements),
)

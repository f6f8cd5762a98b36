"""Benchmark tables: OpTree's models and schedules."""

from __future__ import annotations

import time

from timed_commands import Row, Table, timed_row


def trees() -> list[Row]:
    """``opticoll solve optree.tree`` from start to verified finish: dynamic program and the MILP by HiGHS."""
    columns = {
        "method": "method",
        "variables": "size.variables",
        "steps": "objective",
        "proof": "proof",
        "solve [s]": "time.solve_s",
    }
    return [
        timed_row(columns, "optree.tree", f"wdm-ring:n={n},wavelengths=64", "--method", method)
        for n in (256, 1024, 4096)
        for method in ("tree-search", "highs")
    ]


def schedules() -> list[Row]:
    """All-gather schedules of proven trees: built circuit by circuit, and checked."""
    from opticoll.formulations.optree.radix_trees import Fabric
    from opticoll.formulations.optree.tree_schedules import tree_schedule, violations
    from opticoll.instances import parse
    from opticoll.solvers.methods.optree.best_trees import best_tree

    rows = []
    for n in (128, 512, 1024):
        ring = parse(f"wdm-ring:n={n},wavelengths=64")
        tree = best_tree(Fabric(n, 64, count="exact"))
        start = time.perf_counter()
        schedule = tree_schedule(ring, tree.radices)
        built = time.perf_counter()
        faults = sum(violations(ring, schedule).values())
        rows.append(
            {
                "instance": ring.spec,
                "radices": " ".join(map(str, tree.radices)),
                "rounds": schedule.rounds,
                "circuits": schedule.circuits,
                "path arcs": int(schedule.circuit_arcs.size),
                "faults": int(faults),
                "build [s]": built - start,
                "check [s]": time.perf_counter() - built,
            }
        )
    return rows


TABLES: tuple[Table, ...] = (
    Table("optree-trees", "Best trees of integer radices on optical rings (single runs)", trees),
    Table("optree-schedules", "OpTree schedules, built and checked circuit by circuit (single runs)", schedules),
)

"""Timings of OpTree's models and schedules."""

from __future__ import annotations

import json
import time

from opticoll.analysis.benchmark import Row, Table, timed_command


def trees() -> list[Row]:
    """``opticoll solve optree.tree`` from start to verified finish: dynamic program and the MILP by HiGHS."""
    rows = []
    for n in (256, 1024, 4096):
        for method in ("tree-search", "highs"):
            spec = f"wdm-ring:n={n},wavelengths=64"
            seconds, out = timed_command("solve", "optree.tree", spec, "--method", method, "--json", "--no-store")
            record = json.loads(out)
            rows.append({
                "instance": spec, "method": method, "variables": record["size"]["variables"],
                "steps": record["objective"], "proof": record["proof"], "solve [s]": record["time"]["solve_s"],
                "whole command [s]": seconds,
            })  # fmt: skip
    return rows


def schedules() -> list[Row]:
    """All-gather schedules of proven trees: built circuit by circuit, and checked."""
    from opticoll.formulations.optree.tree_schedules import tree_schedule, violations
    from opticoll.formulations.optree.tree_theory import Fabric, best_tree
    from opticoll.instances import parse
    from opticoll.instances.photonic import WdmRing

    rows = []
    for n in (128, 512, 1024):
        ring = parse(f"wdm-ring:n={n},wavelengths=64")
        assert isinstance(ring, WdmRing)
        tree = best_tree(Fabric(n, 64, count="exact"))
        start = time.perf_counter()
        schedule = tree_schedule(ring, tree.radices)
        built = time.perf_counter()
        faults = sum(violations(ring, schedule).values())
        rows.append({
            "instance": ring.spec, "radices": " ".join(map(str, tree.radices)), "rounds": schedule.rounds,
            "circuits": schedule.circuits, "path arcs": int(schedule.circuit_arcs.size), "faults": int(faults),
            "build [s]": built - start, "check [s]": time.perf_counter() - built,
        })  # fmt: skip
    return rows


TABLES: tuple[Table, ...] = (
    Table("optree-trees", "Best trees of whole radices on optical rings (single runs)", trees),
    Table("optree-schedules", "OpTree schedules, built and checked circuit by circuit (single runs)", schedules),
)

"""Large all-to-alls: from command to certified gap, by family, tolerance and size."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from analysis.benchmarks.base import Row, Table, timed_command

#: Families at a thousand ranks or so, and one modifier of each kind.
FAMILIES = (
    "genkautz:n=1000,d=4",
    "genkautz:n=1000,d=4+fail=20,seed=0",
    "random-regular:n=1000,d=4,seed=1",
    "xpander:n=1000,d=4,seed=1",
    "mesh:32x32",
    "dragonfly:a=8,h=4",
    "slimfly:q=17",
    "circulant:n=1024,offsets=1x32",
    "genkautz:n=500,d=4+host=2.0",
)
#: Demands that are no all-to-all, as many shards in total.
UNEQUAL, DEMANDS = "genkautz:n=500,d=4", ("gravity:0", "longest-matching")
#: What symmetry leaves is solved exactly.
EXACT = ("torus:16x16x16", "hypercube:11", "torus:10x12x14", "circulant:n=4096,offsets=1x64", "bipartite:64x64")
TIGHT = (
    ("genkautz:n=1000,d=4", "1e-7"),
    ("genkautz:n=200,d=4+fail=10,seed=1", "1e-8"),
    ("random-regular:n=200,d=4,seed=1", "1e-8"),
    ("genkautz:n=4096,d=4", "1e-3"),
)


def _solved(instance: str, tol: str, *more: str) -> Row:
    seconds, out = timed_command("solve", "alltoall.master", instance, "--tol", tol, "--json", "--no-store", *more)
    record = json.loads(out)
    return {
        "instance": instance,
        "tol": tol,
        "method": record["method"],
        "source orbits": record["metrics"].get("source_orbits"),
        "T": record["metrics"]["T"],
        "gap": record["gap"],
        "peak MB": record["peak_memory_mb"],
        "whole command [s]": seconds,
    }


def families() -> list[Row]:
    """Gap 1e-3 over families; then capacities of their own, from a file, and demands other than the all-to-all."""
    rows = [_solved(instance, "1e-3") for instance in FAMILIES]
    with tempfile.TemporaryDirectory() as folder:
        rows.append({**_solved(f"file:{uneven(Path(folder))}", "1e-3"), "instance": "genkautz 500, uneven capacities"})
    for demand in DEMANDS:
        row = _solved(UNEQUAL, "1e-3", "--set", f"demand={demand}")
        rows.append({**row, "instance": f"{UNEQUAL}, demand={demand}"})
    return rows


def uneven(folder: Path) -> Path:
    """GK(500,4) with capacities between 1/2 and 2, as an edge list."""
    import numpy as np

    from instances import parse

    topology = parse("genkautz:n=500,d=4")
    capacity = 2.0 ** np.random.default_rng(0).uniform(-1.0, 1.0, topology.arcs)
    file = folder / "uneven.txt"
    ends = zip(topology.tail, topology.head, capacity, strict=True)
    file.write_text("".join(f"{u} {v} {c:.6f}\n" for u, v, c in ends), encoding="utf-8")
    return file


def exact() -> list[Row]:
    """Vertex-transitive networks on the orbits of verified automorphisms."""
    return [_solved(instance, "1e-9") for instance in EXACT]


def tight() -> list[Row]:
    """Small gaps, and the largest digraph."""
    return [_solved(instance, tol) for instance, tol in TIGHT]


def weighted_paths() -> list[Row]:
    """Weighted paths for every commodity of GK(1000,4), solved, split, written and read back."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "paths.npz"
        seconds, out = timed_command(
            "solve", "alltoall.master", "genkautz:n=1000,d=4", "--tol", "1e-4", "--json", "--no-store",
            "--paths", str(file),
        )  # fmt: skip
        paths = json.loads(out)["paths"]
        return [
            {
                "instance": "genkautz:n=1000,d=4",
                "paths": paths["paths"],
                "paths a commodity": paths["paths_per_commodity"],
                "longest": paths["longest_path"],
                "file [MB]": file.stat().st_size / 1e6,
                "whole command [s]": seconds,
            }
        ]


TABLES = (
    Table("scale", "`alltoall.master` to a certified gap of 1e-3 (single runs, two threads)", families),
    Table("orbits", "Vertex-transitive networks, exact on orbits of verified automorphisms", exact),
    Table("tight", "Small certified gaps at scale", tight),
    Table("paths", "Weighted paths for every commodity", weighted_paths),
)

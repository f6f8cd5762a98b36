"""Benchmark tables: time to proof, modelling layers, decompositions, certified gaps at scale, schedules."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from timed_commands import Columns, Row, Table, measured_solve, timed_row, timed_solve

from opticoll.formulations.model import build_model


def proven() -> list[Row]:
    """``opticoll solve`` from start to verified finish, by the default method."""
    columns: Columns = {
        "variables": "size.variables",
        "method": "method",
        "T": "metrics.T",
        "gap": "gap",
        "proof": "proof",
        "build + compile / solve": lambda record: _share(record["time"]),
        "peak MB": "peak_memory_mb",
    }
    rows = []
    for formulation, instance, method, tol in (
        ("alltoall.link-mcf", "torus:3x3x3", "auto", "1e-6"),
        ("alltoall.link-mcf", "genkautz:n=27,d=4", "auto", "1e-6"),
        ("alltoall.master", "torus:4x4x4", "auto", "1e-6"),
        ("alltoall.master", "genkautz:n=64,d=4", "auto", "1e-6"),
        ("alltoall.master", "genkautz:n=100,d=4", "auto", "1e-6"),
        ("alltoall.master", "genkautz:n=200,d=4", "time-form", "1e-6"),
        ("alltoall.master", "genkautz:n=200,d=4", "auto", "1e-6"),
        ("alltoall.master", "genkautz:n=1000,d=4", "auto", "1e-3"),
        ("alltoall.master", "genkautz:n=1000,d=4", "auto", "1e-4"),
        ("alltoall.min-congestion", "torus:3x3x3", "auto", "1e-6"),
        ("alltoall.min-congestion", "torus:4x4x4", "auto", "1e-6"),
    ):
        more = ["--set", "paths=all"] if formulation == "alltoall.min-congestion" else []
        row = timed_row(columns, formulation, instance, "--method", method, "--tol", tol, *more)
        rows.append({"formulation": formulation, **row})
    return rows


def _share(seconds: dict[str, float | None]) -> float | None:
    """Building and compiling over solving; None where no matrix was built."""
    built, compiled, solved = (seconds[part] for part in ("build_s", "compile_s", "solve_s"))
    return None if built is None or compiled is None or not solved else (built + compiled) / solved


def layers() -> list[Row]:
    """Building and compiling ``alltoall.master`` by modelling layer, best of three, with the ratio to the matrix."""
    from opticoll.formulations import formulation
    from opticoll.formulations.modelling_layers import import_layer
    from opticoll.instances import parse
    from opticoll.solvers.compile.compilation import compile_model

    model = formulation("alltoall.master")
    rows = []
    for n in (27, 64, 100):
        data = model.prepare(parse(f"genkautz:n={n},d=4"))
        seconds = {}
        for form in ("matrix", "cvxpy", "pyomo"):
            import_layer(form)
            times = []
            for _ in range(3):
                start = time.perf_counter()
                compile_model(build_model(data, form))
                times.append(time.perf_counter() - start)
            seconds[form] = min(times)
        rows.append(
            {
                "N": n,
                "matrix [s]": seconds["matrix"],
                "CVXPY [s]": seconds["cvxpy"],
                "Pyomo [s]": seconds["pyomo"],
                "CVXPY / matrix": seconds["cvxpy"] / seconds["matrix"],
                "Pyomo / matrix": seconds["pyomo"] / seconds["matrix"],
            }
        )
    return rows


def decomposition() -> list[Row]:
    """Per-commodity flows by four methods, single runs in turn: the LP of the link MCF and three alternatives."""
    rows = []
    for n in (12, 27, 40, 64):
        row: Row = {"N": n}
        for method in ("time-form", "master-child", "flow-decomposition", "column-generation"):
            row[f"{method} [s]"], record = timed_solve("alltoall.link-mcf", f"genkautz:n={n},d=4", "--method", method)
            row.setdefault("T", record["metrics"]["T"])
            row[f"{method} solve [s]"] = record["time"]["solve_s"]
        row["link MCF / column generation, solve"] = row["time-form solve [s]"] / row["column-generation solve [s]"]
        rows.append(row)
    return rows


LIMIT_S = 120.0


def matched() -> list[Row]:
    """Seconds to a certified gap of 1e-4 and 1e-6 on ``alltoall.master``, GK(N,4)."""
    from opticoll.solvers.solve import solve
    from opticoll.solvers.task import Task

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
                    continue  # was too slow on a smaller instance
                task = Task(
                    "alltoall.master",
                    row["instance"],
                    method,
                    "matrix",
                    settings=settings,
                    tol=tol,
                    time_limit_s=LIMIT_S,
                )
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


#: Families with about a thousand ranks, and one modifier of each kind.
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
#: Demands other than the all-to-all, with the same total number of shards.
UNEQUAL, DEMANDS = "genkautz:n=500,d=4", ("gravity:0", "longest-matching")
#: Networks solved exactly after symmetry reduction.
EXACT = (
    "torus:16x16x16",
    "torus:32x32x32",
    "hypercube:11",
    "hypercube:14",
    "torus:10x12x14",
    "circulant:n=4096,offsets=1x64",
    "circulant:n=16384,offsets=1x128",
    "bipartite:64x64",
)
TIGHT = (
    ("genkautz:n=1000,d=4", "1e-9"),
    ("genkautz:n=200,d=4+fail=10,seed=1", "1e-8"),
    ("random-regular:n=200,d=4,seed=1", "1e-8"),
    ("genkautz:n=4096,d=4", "1e-3"),
)


def _solved(instance: str, tol: str, *more: str, cpu: bool = False) -> Row:
    columns = {
        "method": "method",
        "source orbits": "metrics.source_orbits",
        "T": "metrics.T",
        "gap": "gap",
        "peak MB": "peak_memory_mb",
    }
    given = ("--tol", tol, *more)
    return {"instance": instance, "tol": tol} | timed_row(columns, "alltoall.master", instance, *given, cpu=cpu)


def families() -> list[Row]:
    """Gap 1e-3 for several families, for individual capacities from a file, and for other demands."""
    rows = [_solved(instance, "1e-3") for instance in FAMILIES]
    with tempfile.TemporaryDirectory() as folder:
        rows.append({**_solved(f"file:{uneven(Path(folder))}", "1e-3"), "instance": "genkautz 500, uneven capacities"})
    for demand in DEMANDS:
        row = _solved(UNEQUAL, "1e-3", "--set", f"demand={demand}")
        rows.append({**row, "instance": f"{UNEQUAL}, demand={demand}"})
    return rows


def uneven(folder: Path) -> Path:
    """GK(500,4) with capacities between 1/2 and 2, as an edge list."""
    from opticoll.instances import parse

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
    """Small gaps, and a large digraph."""
    return [_solved(instance, tol, cpu=True) for instance, tol in TIGHT]


def split_flows() -> list[Row]:
    """Figure 6 end to end: the master LP and the split of its flow into weighted paths of all commodities, checked."""
    rows = []
    for n in (100, 400, 700, 1000):
        given = ("--method", "flow-decomposition", "--set", "paths=all", "--tol", "1e-3")
        record, cpu, seconds = measured_solve("alltoall.path-mcf", f"genkautz:n={n},d=4", *given)
        result = record["metrics"]
        rows.append(
            {
                "N": n,
                "T": result["T"],
                "gap": record["gap"],
                "paths": result["paths"],
                "master [s]": result["master_s"],
                "split [s]": result["decompose_s"],
                "peak MB": record["peak_memory_mb"],
                "CPU [s]": cpu,
                "whole command [s]": seconds,
            }
        )
    return rows


def chunks() -> list[Row]:
    """SCCL's program, solved by several solvers and by integer flows of sources."""
    rows: list[Row] = []
    for n, steps in ((8, 2), (16, 2), (16, 3), (20, 3)):
        row: Row = {"N": n, "steps": steps}
        for method in ("cp-sat", "highs", "source-flows"):
            given = ("--set", f"steps={steps}", "--method", method, "--time-limit", f"{LIMIT_S:g}")
            record, cpu, _ = measured_solve("alltoall.sccl", f"genkautz:n={n},d=4", *given)
            row |= {"rounds": record["objective"], f"{method} ended": record["termination"], f"{method} CPU [s]": cpu}
        rows.append(row)
    return rows


#: Instances of the table of schedules, and those that are written as routes only.
SCHEDULED = (
    "torus:4x4",
    "torus:4x4x4",
    "genkautz:n=64,d=4",
    "genkautz:n=128,d=4",
    "torus:4x8x8",
    "torus:8x8x8",
    "genkautz:n=512,d=4",
    "torus:8x8x16",
    "genkautz:n=1024,d=4",
)
ROUTES_ONLY = ("torus:8x8x16", "genkautz:n=1024,d=4")


def schedules() -> list[Row]:
    """From the command to a schedule that was executed in the simulator, by kind."""
    with tempfile.TemporaryDirectory() as folder:
        return [
            _scheduled(instance, kind, Path(folder))
            for instance in SCHEDULED
            for kind in (("routes.json",) if instance in ROUTES_ONLY else ("routes.json", "json", "xml"))
        ]


def _scheduled(instance: str, kind: str, folder: Path) -> Row:
    columns: Columns = {
        "ranks": "n",
        "file": lambda _: f".{kind}",
        "chunks": "schedule.chunks",
        "steps": "schedule.steps",
        "T": "schedule.time",
        "loss [%]": lambda record: 100 * record["schedule"]["loss"],
        "executed": lambda record: "delivers" if record["schedule"]["delivers"] else "FAILS",
    }
    file = str(folder / f"schedule.{kind}")
    return timed_row(columns, "alltoall.master", instance, "--schedule", file, cpu=True)


def few_routes() -> list[Row]:
    """T over at most so many routes of a pair, the fullest of a fluid optimum, over that optimum."""
    from opticoll.solvers.solve import solve
    from opticoll.solvers.task import Task

    rows = []
    for instance, settings in (
        ("dgx1", {"paths": "k", "k": 8}),
        ("torus:3x3x3", {"paths": "shortest"}),
        ("torus:4x4+fail=2,seed=1", {"paths": "k", "k": 12}),
        ("fat-tree:k=4", {"paths": "shortest"}),
        ("genkautz:n=16,d=3", {"paths": "k", "k": 8}),
        ("random-regular:n=16,d=3,seed=1", {"paths": "k", "k": 8}),
    ):
        fluid = solve(Task("alltoall.path-mcf", instance, "highs-simplex", settings=settings))
        assert fluid.objective
        row: Row = {
            "instance": instance,
            "paths": str((fluid.record.metrics or {})["path_set"]),
            "T": 1 / fluid.objective,
        }
        for routes in (1, 2, 4, 8):
            given = {**settings, "routes_per_pair": routes}
            run = solve(Task("alltoall.few-paths", instance, "fullest-paths", settings=given))
            assert run.objective
            row[f"loss with {routes} [%]"] = max(round(100 * (fluid.objective / run.objective - 1), 6), 0.0)
        rows.append(row | {"most routes of a pair": (run.record.metrics or {})["most_routes"]})
    return rows


TABLES = (
    Table("few-routes", "Loss, at most, by a limit on the routes of a pair, against the fluid optimum", few_routes),
    Table("proven", "From command to proof (single runs)", proven),
    Table("layers", "Build + compile of `alltoall.master` on GK(N,4) by modelling layer (best of 3)", layers),
    Table("decomposition", "Per-commodity flows of the link MCF on GK(N,4), whole commands", decomposition),
    Table(
        "pdlp",
        "Seconds to a certified gap, `alltoall.master` (build to proof; –: not run, too slow on a smaller instance)",
        matched,
    ),
    Table("scale", "`alltoall.master` to a certified gap of 1e-3 (single runs, two threads)", families),
    Table("orbits", "Vertex-transitive networks, exact on orbits of verified automorphisms", exact),
    Table("tight", "Small certified gaps at scale (single runs on a busy machine: CPU seconds)", tight),
    Table(
        "split-flows", "Figure 6 end to end: master LP and weighted paths of all commodities on GK(N,4)", split_flows
    ),
    Table("chunks", "SCCL's program on GK(N,4), whole commands", chunks),
    Table("schedules", "Executed schedules of `alltoall.master` (single runs)", schedules),
)

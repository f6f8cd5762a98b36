"""All-to-all: from command to proof, layers, decompositions."""

from __future__ import annotations

import json
import time

from analysis.benchmarks.base import Row, Table, timed_command


def proven() -> list[Row]:
    """``opticoll solve`` from start to verified finish, by the default method."""
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
        arguments = ["--method", method, "--tol", tol, "--json", "--no-store"]
        if formulation == "alltoall.min-congestion":
            arguments += ["--set", "paths=all"]
        seconds, out = timed_command("solve", formulation, instance, *arguments)
        record = json.loads(out)
        rows.append(
            {
                "formulation": formulation,
                "instance": instance,
                "variables": record["size"]["variables"],
                "method": record["method"],
                "T": record["metrics"]["T"],
                "gap": record["gap"],
                "proof": record["proof"],
                "build + compile / solve": _share(record["time"]),
                "peak MB": record["peak_memory_mb"],
                "whole command [s]": seconds,
            }
        )
    return rows


def _share(seconds: dict[str, float | None]) -> float | None:
    """Building and compiling over solving; None where no matrix was built."""
    built, compiled, solved = (seconds[part] for part in ("build_s", "compile_s", "solve_s"))
    return None if built is None or compiled is None or not solved else (built + compiled) / solved


def layers() -> list[Row]:
    """Building and compiling ``alltoall.master`` by modelling layer, best of three, with the ratio to the matrix."""
    from formulations import formulation
    from instances import parse
    from solvers.compile import compile_model, import_layer

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
                compile_model(model.build[form](data))
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
    """Per-commodity flows four ways, single runs in turn: the link MCF's own LP, and what avoids it."""
    rows = []
    for n in (12, 27, 40, 64):
        row: Row = {"N": n}
        for method in ("time-form", "master-child", "flow-decomposition", "column-generation"):
            seconds, out = timed_command(
                "solve", "alltoall.link-mcf", f"genkautz:n={n},d=4", "--method", method, "--json", "--no-store"
            )
            row[f"{method} [s]"] = seconds
            record = json.loads(out)
            row.setdefault("T", record["metrics"]["T"])
            row[f"{method} solve [s]"] = record["time"]["solve_s"]
        row["link MCF / column generation, solve"] = row["time-form solve [s]"] / row["column-generation solve [s]"]
        rows.append(row)
    return rows


TABLES = (
    Table("proven", "From command to proof (single runs)", proven),
    Table("layers", "Build + compile of `alltoall.master` on GK(N,4) by modelling layer (best of 3)", layers),
    Table("decomposition", "Per-commodity flows of the link MCF on GK(N,4), whole commands", decomposition),
)

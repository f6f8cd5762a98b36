"""Timings behind the README's tables: whole commands and layers, measured again by ``make bench``.

``python -m analysis.bench`` runs every measurement (or those named), prints Markdown tables, writes them to
``results/bench.json`` and puts them between the ``bench`` markers of ``README.md`` in the working directory.
Timings are medians or single runs as each table says; ratios are within one run of this program.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Row = dict[str, Any]
BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"


def _command(*arguments: str) -> tuple[float, str]:
    """Wall seconds and standard output of one ``opticoll`` command, started as a user starts it."""
    program = Path(sys.executable).with_name("opticoll")
    start = time.perf_counter()
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=True)
    return time.perf_counter() - start, done.stdout


def startup() -> list[Row]:
    """``opticoll --help`` against an empty Python, medians of seven."""
    help_s = statistics.median(_command("--help")[0] for _ in range(7))
    empty = []
    for _ in range(7):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", ""], check=True)
        empty.append(time.perf_counter() - start)
    return [{"command": "opticoll --help", "seconds": help_s, "empty Python": statistics.median(empty)}]


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
        seconds, out = _command("solve", formulation, instance, *arguments)
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
            seconds, out = _command(
                "solve", "alltoall.link-mcf", f"genkautz:n={n},d=4", "--method", method, "--json", "--no-store"
            )
            row[f"{method} [s]"] = seconds
            record = json.loads(out)
            row.setdefault("T", record["metrics"]["T"])
            row[f"{method} solve [s]"] = record["time"]["solve_s"]
        row["link MCF / column generation, solve"] = row["time-form solve [s]"] / row["column-generation solve [s]"]
        rows.append(row)
    return rows


def generators() -> list[Row]:
    """Large topologies from spec to frozen arrays."""
    from instances import parse

    parse("ring:4")
    rows = []
    for spec in ("genkautz:n=4096,d=4", "torus:16x16x16", "genkautz:n=100000,d=4", "slimfly:q=17"):
        start = time.perf_counter()
        topology = parse(spec)
        rows.append({"instance": spec, "arcs": topology.arcs, "seconds": time.perf_counter() - start})
    return rows


MEASUREMENTS: dict[str, tuple[str, Callable[[], list[Row]]]] = {
    "startup": ("Start-up (median of 7)", startup),
    "proven": ("From command to proof (single runs)", proven),
    "layers": ("Build + compile of `alltoall.master` on GK(N,4) by modelling layer (best of 3)", layers),
    "decomposition": ("Per-commodity flows of the link MCF on GK(N,4), whole commands (single runs)", decomposition),
    "generators": ("Generators", generators),
}


def table(rows: list[Row]) -> str:
    """A Markdown table of rows that share their keys."""
    names = list(rows[0])
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    lines += ["| " + " | ".join(_text(row[name]) for name in names) + " |" for row in rows]
    return "\n".join(lines)


def _text(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.1e}" if 0 < abs(value) < 1e-3 else f"{value:.4g}"
    return f"`{value}`" if isinstance(value, str) and ":" in value else str(value)


def main(names: list[str]) -> int:
    """Run the named measurements (all by default) and publish their tables."""
    from instances.spec import nearest

    for name in names:
        if name not in MEASUREMENTS:
            print(f"analysis.bench: no measurement {name!r}; {nearest(name, MEASUREMENTS)}", file=sys.stderr)
            return 2
    store = Path("results") / "bench.json"
    kept: dict[str, list[Row]] = json.loads(store.read_text()) if store.exists() else {}
    for name in names or list(MEASUREMENTS):
        title, measure = MEASUREMENTS[name]
        kept[name] = measure()
        print(f"\n{title}\n\n{table(kept[name])}", flush=True)
    store.parent.mkdir(exist_ok=True)
    store.write_text(json.dumps(kept, indent=1))
    _publish(Path("README.md"), kept)
    return 0


def _publish(readme: Path, kept: dict[str, list[Row]]) -> None:
    if not readme.exists():
        return
    before, begin, rest = readme.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        return
    tables = "\n\n".join(f"**{MEASUREMENTS[k][0]}**\n\n{table(v)}" for k, v in kept.items() if k in MEASUREMENTS)
    readme.write_text(f"{before}{BEGIN}\n{tables}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

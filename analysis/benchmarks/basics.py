"""Start-up and generators."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from analysis.benchmarks.base import Row, Table, timed_command


def startup() -> list[Row]:
    """``opticoll --help`` against an empty Python, medians of seven."""
    help_s = statistics.median(timed_command("--help")[0] for _ in range(7))
    empty = []
    for _ in range(7):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", ""], check=True)
        empty.append(time.perf_counter() - start)
    return [{"command": "opticoll --help", "seconds": help_s, "empty Python": statistics.median(empty)}]


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


TABLES = (
    Table("startup", "Start-up (median of 7)", startup),
    Table("generators", "Generators", generators),
)

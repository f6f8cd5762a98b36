"""Rows of the benchmark tables: a command, timed from start to verified finish."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: A row of a table, or the JSON object that a command prints.
Row = dict[str, Any]
#: Fields of a record by heading, or functions of the record.
Columns = Mapping[str, str | Callable[[Row], Any]]


@dataclass(frozen=True)
class Table:
    """A benchmark table: its heading, and the function that measures its rows, which all have the same keys."""

    name: str
    title: str
    measure: Callable[[], list[Row]]


def timed_command(*arguments: str) -> tuple[float, str]:
    """Wall-clock seconds and standard output of one ``opticoll`` command, run as a subprocess."""
    program = Path(sys.executable).with_name("opticoll")
    start = time.perf_counter()
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=True)
    return time.perf_counter() - start, done.stdout


def timed_solve(formulation: str, instance: str, *more: str) -> tuple[float, Row]:
    """Wall-clock seconds of ``opticoll solve`` as a command, and its record."""
    seconds, out = timed_command("solve", formulation, instance, *more, "--json", "--no-store")
    return seconds, json.loads(out)


def timed_row(columns: Columns, formulation: str, instance: str, *more: str, cpu: bool = False) -> Row:
    """Run ``opticoll solve``; the row has the instance, the columns, and the seconds of the whole command.

    Parameters
    ----------
    columns
        The field of the record by heading, or a function of the record; fields within fields are separated by dots:
        ``time.solve_s``.
    formulation, instance, more
        Arguments of the command.
    cpu
        Whether the row has the CPU seconds as well: a busy machine changes them less.
    """
    record, cpu_s, seconds = measured_solve(formulation, instance, *more)
    fields = {heading: of(record) if callable(of) else _field(record, of) for heading, of in columns.items()}
    return {"instance": instance, **fields, **({"CPU [s]": cpu_s} if cpu else {}), "whole command [s]": seconds}


def measured_solve(formulation: str, instance: str, *more: str) -> tuple[Row, float, float]:
    """A solve: its record, the CPU seconds of all its processes, and the seconds of the command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds, record = timed_solve(formulation, instance, *more)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return record, cpu, seconds


def _field(record: Any, path: str) -> Any:
    """A field of a record; None for a metric that it lacks."""
    for name in path.split("."):
        record = record.get(name)
    return record

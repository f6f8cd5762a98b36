"""Output of the command line: tables for people, one JSON value for programs."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pandas as pd
    from rich.console import Console

    from opticoll.analysis.instance_bounds import BoundRow
    from opticoll.analysis.study import Summary
    from opticoll.solvers.task import Record

#: Columns of the store that hold JSON text.
_JSON_COLUMNS = {
    "solver_options", "violations", "metrics", "settings", "solver_claims", "requested_settings", "needed",
    "repaired", "extra",
}  # fmt: skip

#: Columns of ``opticoll list KIND``; ``--json`` prints all of them.
LISTED = {
    "instances": ["kind", "name", "example", "summary", "source"],
    "formulations": ["name", "class", "title", "where", "forms", "methods", "parameters"],
    "methods": ["name", "title", "formulations", "parameters"],
    "solvers": ["name", "algorithm", "version", "usable", "licence", "capabilities", "remedy"],
    "studies": ["name", "title"],
}

#: The query of ``opticoll results`` without an argument.
OVERVIEW = (
    "SELECT formulation, instance, method, form, termination, proof, objective, bound, gap, F, T, "
    "time_solve_s, peak_memory_mb, finished FROM latest ORDER BY formulation, instance, method, finished"
)


@contextlib.contextmanager
def diverted_stdout() -> Iterator[None]:
    """Redirect stdout to stderr, also for compiled code: stdout is reserved for the result."""
    sys.stdout.flush()
    try:
        real = os.dup(1)
    except OSError:  # no such descriptor
        with contextlib.redirect_stdout(sys.stderr):
            yield
        return
    try:
        os.dup2(2, 1)
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(real, 1)
        os.close(real)


def emit_json(value: Any) -> None:
    """Print exactly one JSON value; NaN and infinity become null."""
    from opticoll.analysis.store.schema import plain

    click.echo(json.dumps(plain(value), allow_nan=False, ensure_ascii=False))


def console() -> Console:
    """A rich console on stdout: wide outside a terminal, and raising BrokenPipeError on a closed pipe."""
    import rich.console

    class Screen(rich.console.Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return Screen(width=None if sys.stdout.isatty() else 200, highlight=False)


def number(value: Any, digits: int = 8) -> str:
    """A number as text; a dash if it is unknown."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.{digits}g}"
    return str(value)


def show_table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], title: str | None = None) -> None:
    """Print rows as a table."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column.replace("_", " "), overflow="fold")
    for row in rows:
        table.add_row(*(Text(_cell(row.get(column))) for column in columns))
    console().print(table)


def gathered(rows: Iterable[Mapping[str, Any]], what: str) -> list[Mapping[str, Any]]:
    """All rows of a slow source, counted on the terminal as they arrive."""
    found: list[Mapping[str, Any]] = []
    with console().status(what) as status:
        for row in rows:
            found.append(row)
            status.update(f"{what}: {len(found)}, last {row.get('id', '')}")
    return found


def _cell(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(v["name"] if isinstance(v, dict) and "name" in v else str(v) for v in value) or "–"
    if isinstance(value, dict):
        return ", ".join(k if v is True else f"{k}={v}" for k, v in value.items() if v is not False) or "–"
    return number(value)


def show_run(record: Record, bounds: Sequence[BoundRow] = ()) -> None:
    """Print the result of a solve: value, bound, gap, proof, solver and times."""
    from rich.table import Table
    from rich.text import Text

    solver = record.solver
    metrics = {k: v for k, v in (record.metrics or {}).items() if isinstance(v, (int, float, str))}
    worst = max((abs(v) for v in (record.violations or {}).values() if v is not None), default=None)
    memory = record.peak_memory_mb
    lines = {
        "instance": f"{record.instance}   ({record.n} vertices, {number(record.arcs)} arcs)",
        "value": f"{number(record.objective, 12)}   ({record.sense})",
        "bound": number(record.bound, 12) + (f"   ({record.bound_source})" if record.bound_source else ""),
        "gap": number(record.gap, 3),
        "proof": f"{record.proof}   (ended: {record.termination})",
        "verified": number(record.verified) + ("" if worst is None else f"   (worst violation {worst:.2g})"),
        "method": f"{record.method}" + (f", {record.form}" if record.form else ""),
        "solver": " ".join(part for part in (solver.name, solver.version, solver.algorithm) if part) or "–",
        "size": ", ".join(f"{v} {k}" for k, v in record.size.items() if v is not None) or "–",
        "time": ", ".join(f"{k.removesuffix('_s')} {v:.3g} s" for k, v in record.time.items() if v is not None),
        "peak memory": "–" if memory is None else f"{memory:.0f} MB",
    }
    lines |= {name: number(value, 12) for name, value in metrics.items()}
    if record.message:
        lines["message"] = record.message
    table = Table(title=record.formulation, title_justify="left", show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, text in lines.items():
        table.add_row(name, Text(text))
    console().print(table)
    if bounds:
        show_bounds(bounds)


def show_bounds(rows: Sequence[BoundRow]) -> None:
    """Print analytic bounds, tightest first."""
    served = any(row["F"] is not None for row in rows)
    several = len({row["formulation"] for row in rows}) > 1
    columns = [*(["formulation"] if several else []), "name", "quantity", "sense", "value"]
    show_table(rows, [*columns, *(["T"] if served else []), "exact", "reason", "paper"], "analytic bounds")


def show_summary(summary: Summary) -> None:
    """Print the summary of a study, one line per formulation and method."""
    groups: dict[tuple[str, str], list[Any]] = {}
    for cell in summary.study.cells:
        found = summary.results.get(cell.key)
        groups.setdefault((cell.task.formulation, cell.task.method), []).append(found)
    rows = []
    for (formulation, method), results in groups.items():
        there = [r for r in results if r is not None]
        times = sorted(r.solve_s for r in there if r.solve_s is not None)
        rows.append(
            {
                "formulation": formulation,
                "method": method,
                "cells": len(results),
                **{s: sum(r.status == s for r in there) for s in ("done", "skipped", "failed", "unavailable")},
                "median_solve_s": round(times[len(times) // 2], 4) if times else None,
            }
        )
    columns = [
        "formulation", "method", "cells", "done", "skipped", "failed", "unavailable", "median_solve_s",
    ]  # fmt: skip
    show_table(rows, columns, f"study {summary.study.name}")
    for cell in summary.study.cells:
        result = summary.results.get(cell.key)
        if result is not None and result.status in {"failed", "unavailable"}:
            click.echo(f"{result.status}: {cell.label}: {' '.join(result.message.split())}", err=True)


def frame_rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """A frame as JSON-able rows: NULL as None, JSON columns unpacked, times in ISO form."""
    return [
        {name: _plain(name, value) for name, value in zip(frame.columns, row, strict=True)}
        for row in frame.itertuples(index=False, name=None)
    ]


def _plain(name: str, value: Any) -> Any:
    import pandas as pd

    if hasattr(value, "tolist") and getattr(value, "ndim", 0) > 0:
        return value.tolist()
    if not isinstance(value, (list, dict)) and pd.isna(value):
        return None
    if isinstance(value, pd.Timestamp):
        return value.isoformat() + ("Z" if value.tzinfo is None else "")
    if name in _JSON_COLUMNS and isinstance(value, str):
        with contextlib.suppress(ValueError):
            return json.loads(value)
    return value

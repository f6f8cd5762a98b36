"""The report in a terminal: a table per formulation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opticoll.analysis.report.findings import SUPERSEDED_COMMAND, distinguishing_columns, ratio
from opticoll.analysis.report.page_tables import Kind, missing, written

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console
    from rich.table import Table

    from opticoll.analysis.report.findings import Findings

#: Maximum number of rows shown per formulation; the CSV files have all rows.
MOST_ROWS = 60
#: Width [characters] of output that does not go to a terminal.
_FILE_WIDTH = 160

_COLOURS = {"exact": "green", "optimal": "green", "certified-gap": "yellow", "feasible": "yellow"}
_VALUES: tuple[tuple[str, str, Kind], ...] = (
    ("ranks", "ranks", "count"),
    ("T", "T", "number"),
    ("objective", "F", "number"),
    ("proof", "proof", "proof"),
    ("gap", "gap", "gap"),
    ("seconds", "s", "seconds"),
)


def show(findings: Findings, console: Console | None = None) -> None:
    """Print a table per formulation: instance, ranks, time and value, proof, gap, seconds, optimum over bounds.

    In a narrow terminal, a second table has the bounds.

    Parameters
    ----------
    findings
        Result of :func:`~opticoll.analysis.report.findings.collect`.
    console
        Where to print; standard output if None.
    """
    from rich.console import Console

    screen = console or Console()
    if console is None and not screen.is_terminal:
        screen = Console(width=max(screen.width, _FILE_WIDTH))
    if findings.results.empty:
        screen.print("The store is empty. Fill it with: opticoll study demo", markup=False)
        return
    for name, group in findings.results[findings.results["ok"]].groupby("formulation"):
        bounds = findings.bounds[findings.bounds["formulation"] == name]
        whole = _table(str(name), group, bounds)
        if screen.measure(whole).minimum <= screen.width and _width(screen, whole) <= screen.width:
            screen.print(whole)
        else:
            screen.print(_table(str(name), group, bounds.head(0)))
            screen.print(_table(f"{name}: optimum ÷ bound", group, bounds, values=False))
    if findings.omitted is not None:
        screen.print(f"{findings.omitted}: {SUPERSEDED_COMMAND}", markup=False, highlight=False)
    if findings.other_code is not None:
        screen.print(findings.other_code, markup=False, highlight=False)
    refuted = findings.infeasible
    if len(refuted):
        screen.print(f"{len(refuted)} cell{'s' * (len(refuted) != 1)} proven infeasible:", markup=False)
    for row in refuted.head(MOST_ROWS).to_dict("records"):
        line = f"  {row['problem']}  {row['formulation']}  {row['method']}: {row['infeasible_by']}"
        screen.print(line, markup=False, highlight=False)
    failed = findings.failures
    if len(failed):
        screen.print(f"{len(failed)} cell{'s' * (len(failed) != 1)} without a verified value:", markup=False)
    for row in failed.head(MOST_ROWS).to_dict("records"):
        line = f"  {row['instance']}  {row['formulation']}  {row['method']}: {written(row['termination'], 'text')}"
        why = "" if missing(row["message"]) or not row["message"] else f" ({row['message']})"
        screen.print(line + why, markup=False, highlight=False)


def _width(screen: Console, table: Table) -> int:
    """Width of a table in which nothing is cut."""
    return screen.measure(table, options=screen.options.update(width=10_000)).maximum


def _table(name: str, results: pd.DataFrame, bounds: pd.DataFrame, *, values: bool = True) -> Table:
    """Table of one formulation: its values unless ``values`` is false, and their ratio to every bound."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    names = list(dict.fromkeys(bounds["bound"]))
    value = {(row["instance"], row["bound"]): row["value"] for row in bounds.to_dict("records")}
    timed = bool(results["T"].notna().any())
    several = bool(results["problem"].duplicated().any())
    apart = distinguishing_columns(results)
    cut = f" (first {MOST_ROWS} of {len(results)})" if len(results) > MOST_ROWS else ""
    caption = f"{', '.join(names)}: optimum ÷ bound, 1 where the bound is met; the tightest is bold" if names else None
    table = Table(
        title=Text(name + cut, style="bold"),
        caption=caption,
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
    shown = [column for column in _VALUES if values and (timed or column[0] != "T")]
    table.add_column("instance", overflow="fold", min_width=16)
    if several:
        table.add_column("method", no_wrap=True)
    for heading in apart.values():
        table.add_column(heading, overflow="fold")
    for field, heading, kind in shown:
        title = "objective" if field == "objective" and not timed else heading
        table.add_column(title, justify="left" if kind == "proof" else "right", no_wrap=True)
    for bound in names:
        table.add_column(Text(bound.replace("-", "\n", 1)), justify="right", no_wrap=True)
    for row in results.head(MOST_ROWS).to_dict("records"):
        cells = [Text(str(row["problem"]))]
        cells += [Text(str(row["method"]))] if several else []
        cells += [Text(written(row[field], "text")) for field in apart]
        cells += [_value(row[field], kind) for field, _, kind in shown]
        cells += _ratios(row, [value.get((row["problem"], bound)) for bound in names])
        table.add_row(*cells)
    return table


def _value(value: Any, kind: Kind) -> Any:
    from rich.text import Text

    return Text(written(value, kind), style=_COLOURS.get(str(value), "red") if kind == "proof" else "")


def _ratios(row: dict[Any, Any], bounds: list[Any]) -> list[Any]:
    """Ratio of a run's value to every bound; the tightest is bold."""
    from rich.text import Text

    ratios = [None if missing(b) else ratio(float(row["objective"]), float(b), str(row["sense"])) for b in bounds]
    best = max((r for r in ratios if r is not None), default=0.0)
    return [Text(written(r, "ratio"), style="bold" if r is not None and r >= best - 1e-6 else "") for r in ratios]

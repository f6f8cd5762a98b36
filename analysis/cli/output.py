"""Output of the command line: tables for people, one JSON value for programs."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import sys
from typing import TYPE_CHECKING, Any

import click

from opticoll.solvers.task import NOTE, Fields, Record, Run

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pandas as pd
    from rich.console import Console

    from opticoll.analysis.benchmark.study_comparison import StudyComparison
    from opticoll.analysis.describe import BoundRow, Description
    from opticoll.analysis.design import TopologyDesign
    from opticoll.analysis.iteration import IterationTime
    from opticoll.analysis.ledger.claim import ClaimRow
    from opticoll.analysis.study.running import Summary
    from opticoll.analysis.sweep import SweepResult
    from opticoll.instances.types import Json


#: Columns of the store that hold JSON text.
_JSON_COLUMNS = {
    "solver_options",
    "violations",
    "metrics",
    "settings",
    "solver_claims",
    "requested_settings",
    "needed",
    "repaired",
    "extra",
    "plugins",
}

#: Columns of ``opticoll list KIND``; ``--json`` prints all of them.
LISTED = {
    "instances": ["kind", "name", "example", "summary", "source"],
    "formulations": ["name", "class", "title", "where", "forms", "methods", "parameters"],
    "methods": ["name", "title", "formulations", "parameters"],
    "solvers": ["name", "algorithm", "version", "usable", "licence", "capabilities", "remedy"],
    "studies": ["name", "title"],
    "claims": ["name", "paper", "where", "claim"],
}

#: Loss of a schedule above which a remedy is suggested.
LOSSY = 0.01
#: Relative distance of a time from its bound that counts as rounding and is printed as 0.
ROUND_OFF = 1e-9

#: Maximum number of cases in the table of a sweep.
MOST_CASES = 40

#: Maximum number of runs in the table of ``opticoll results`` without an argument.
MOST_RUNS = 200

#: The query of ``opticoll results`` without an argument.
OVERVIEW = (
    "SELECT formulation, instance, method, form, settings, requested_time_limit_s AS time_limit_s, "
    "requested_tol AS tol, requested_seed AS seed, requested_repetition AS repetition, plugins, solver_version, "
    "opticoll, superseded, termination, proof, objective, bound, gap, F, T, time_solve_s, peak_memory_mb, "
    "strftime(finished, '%Y-%m-%d %H:%M') AS finished "
    "FROM latest ORDER BY latest.finished, formulation, instance, method"
)
#: Columns that identify a run, and columns shown only if runs that agree in the former differ in them.
_IDENTIFYING = ["formulation", "instance", "method", "form"]
_DISTINGUISHING = ["settings", "time_limit_s", "tol", "seed", "repetition", "plugins", "solver_version", "opticoll"]


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
    """A number as text, or a dash if it is unknown."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.{digits}g}"
    return str(value)


def show_table(rows: Sequence[Mapping[str, object] | Fields], columns: Sequence[str], title: str | None = None) -> None:
    """Print rows as a table."""
    from rich.table import Table
    from rich.text import Text

    from opticoll.solvers.task import one_line

    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column.replace("_", " "), overflow="fold")
    for row in rows:
        table.add_row(*(Text(one_line(_cell(row.get(column)))) for column in columns))
    console().print(table)


def show_claims(rows: Sequence[ClaimRow]) -> None:
    """Print claims as a table; one whose measurement failed has the verdict "failed"."""
    shown = [{**dict(row.items()), "verdict": row.outcome} for row in rows]
    show_table(shown, ["id", "paper", "where", "claim", "expected", "measured", "verdict", "reason"])


def gathered(rows: Iterable[ClaimRow], what: str) -> list[ClaimRow]:
    """Collect the rows of a slow source, counting them on the terminal as they arrive."""
    results: list[ClaimRow] = []
    with console().status(what) as status:
        for row in rows:
            results.append(row)
            status.update(f"{what}: {len(results)}, last {row.get('id', '')}")
    return results


def _cell(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(v["name"] if isinstance(v, dict) and "name" in v else str(v) for v in value) or "–"
    if isinstance(value, dict):
        return ", ".join(k if v is True else f"{k}={v}" for k, v in value.items() if v is not False) or "–"
    return number(value)


def meaning(run: Run) -> str:
    """What the value of a run is, with its unit; empty if the run has no data."""
    if run.plan is None:
        return ""
    return run.plan.formulation.meaning


def show_run(run: Run, bounds: Sequence[BoundRow] = ()) -> None:
    """Print the result of a solve: value and its meaning, bound, gap, proof, solver and times."""
    record, solver = run.record, run.record.solver
    metrics = {k: v for k, v in (record.metrics or {}).items() if isinstance(v, (int, float, str))}
    proof, condition = str(record.proof), metrics.pop("conditional_on", None)
    if condition and record.objective is not None:
        proof += f" {condition}"
        if (free := metrics.get("unrestricted_bound")) is not None:
            proof += f"; without this restriction, at {'least' if record.sense == 'min' else 'most'} {free:g}"
    source = record.bound_source
    alike = [row["value"] for row in bounds if row["name"] == source]
    if alike and record.bound is not None and not any(math.isclose(one, record.bound) for one in alike):
        source = f"{source} of the duals"  # not the analytic bound of the same name
    worst = max((v for v in (record.violations or {}).values() if v is not None), default=None)
    memory = record.peak_memory_mb
    lines = {
        "instance": str(record.instance) + _extent(record),
        "value": f"{number(record.objective, 12)}   ({record.sense})",
        **({"meaning": stated} if (stated := meaning(run)) else {}),
        **({} if record.objective_exact is None else {"exact": record.objective_exact}),
        "bound": number(record.bound, 12) + (f"   ({source})" if source else ""),
        "gap": number(record.gap, 3),
        "proof": f"{proof}   (ended: {record.termination})",
        "verified": number(record.verified) + ("" if worst is None else f"   (worst violation {worst:.2g})"),
        **repair_line(record),
        "model": _model(record),
        "method": str(record.method),
        "solver": " ".join(part for part in (solver.name, solver.version, solver.algorithm) if part) or "–",
        "size": ", ".join(f"{v} {k}" for k, v in record.size.items() if v is not None) or "–",
        "time": ", ".join(f"{k.removesuffix('_s')} {v:.3g} s" for k, v in record.time.items() if v is not None),
        "peak memory": "–" if memory is None else f"{memory:.0f} MB",
    }
    for name, value in metrics.items():
        lines[f"{name} (metric)" if name in lines else name.replace(" ", "_")] = number(value, 12)
    if record.message:
        lines["message"] = record.message
    show_fields(lines, record.formulation)
    if bounds:
        show_bounds(bounds)


def repair_line(record: Record) -> dict[str, str]:
    """What was reported before a repair made it feasible, as a line; none if the repair removed only round-off."""
    from opticoll.solvers.verify import FEASIBLE

    old = record.repaired
    if old is None or old.violation is None:
        return {}
    change = abs((old.claimed or 0.0) - (record.objective or 0.0))
    if old.violation <= FEASIBLE and change <= FEASIBLE * abs(record.objective or 0.0):
        return {}
    return {"repaired": f"from {number(old.claimed, 12)}   (worst violation before the repair {old.violation:.2g})"}


def unsolved(record: Record) -> str:
    """Why a run has no verified solution, on one line."""
    reason = "" if (record.message or "").startswith(NOTE) else record.message
    if not reason and record.infeasible_by:
        reason = f"there is none: proven by {record.infeasible_by}"
    elif not reason and record.objective is None:
        solver = record.solver.name or record.method
        limitless = record.termination == "unbounded"
        reason = f"{solver} reports that the objective is unbounded" if limitless else None
        reason = reason or f"{solver} returned no solution"
    return f"no solution: ended with {record.termination}: {reason or 'no solution passed verification'}"


def show_written(kind: str, written: Mapping[str, object]) -> None:
    """Print the contents of a schedule file or a file of paths, and their loss."""
    facts: dict[str, Any] = dict(written)
    if kind != "schedule" or "rounds" in facts:
        show_fields({name: number(value, 12) for name, value in facts.items()}, kind)
        return
    several = facts["time_by_chunks"] if len(facts["time_by_chunks"]) > 1 else {}
    lines = {
        "file": facts["file"],
        "chunks": f"{facts['chunks']} per shard",
        "steps": number(facts.get("steps")),
        "T": f"{number(facts['time'], 8)}   (of the flow: {number(facts['fluid_time'], 8)})",
        "loss": f"{100 * facts['loss']:.3g} %",
        "simulated": f"{number(facts['simulated_time'], 8)}   (every shard arrives)",
        "T by chunks": ", ".join(f"{D}: {time:.7g}" for D, time in several.items()),
    }
    loss = facts["loss"]
    if not facts["delivers"]:
        lines["simulated"] = f"FAILS: {facts['violation']}"
    elif "target" in facts and facts["simulated_time"] and facts["fluid_time"]:  # a program has no synchronous steps
        loss = max(facts["simulated_time"] / facts["fluid_time"] - 1, 0.0)
        lines["T"] = f"{number(facts['fluid_time'], 8)} of the flow, {number(facts['time'], 8)} in synchronous steps"
        lines["loss"] = f"{100 * loss:.3g} %   (simulated time above the flow's)"
    if loss > LOSSY:
        lines["loss"] += "   (other numbers of chunks may lose less: --chunks N,N,...)"
    if "target" in facts:
        lines["target"] = f"{facts['target']}, {facts['channels']} channels"
        lines["elements"] = f"the number per peer must be a multiple of {facts['multiple_of']}"
        lines |= _runtime_fits(facts)
        if facts["target"] in facts.get("exceeds", {}):
            lines["instead"] = "fewer --chunks or --instances, another --target, or a schedule in .json, without limits"
    show_fields({name: text for name, text in lines.items() if text not in {"", "–"}}, "schedule")


def _runtime_fits(facts: Mapping[str, Any]) -> dict[str, str]:
    """The runtimes that accept a program, and for what the others refuse it."""
    fits = ", ".join(facts.get("fits_runtime", ())) or "no runtime"
    return {"fits": fits, **{f"not for {name}": excess for name, excess in facts.get("exceeds", {}).items()}}


def show_executed(result: Mapping[str, object]) -> None:
    """Print what a checked schedule moves, how far it lies above the bound, and which runtimes accept it."""
    metrics: dict[str, Any] = dict(result)
    lines = {name: number(metrics.get(name)) for name in ("ranks", "chunks", "steps", "transfers")}
    if metrics.get("redundant"):
        lines["redundant"] = f"{number(metrics['redundant'])}   (transfers of chunks that the receiver already has)"
    if metrics.get("over_bound"):
        over = metrics["over_bound"] - 1
        above = 0.0 if abs(over) <= ROUND_OFF else 100 * over
        lines["T bound"] = f"{number(metrics['T_bound'], 8)}   (for any schedule; this one is {above:.3g} % above)"
    if "fits_runtime" in metrics:
        lines |= _runtime_fits(metrics)
    show_fields({name: text for name, text in lines.items() if text not in {"", "–"}}, "schedule")


def show_fields(lines: Mapping[str, str], title: str | None) -> None:
    """Print names and values in two columns."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, text in lines.items():
        table.add_row(name, Text(text))
    console().print(table)


def _model(record: Record) -> str:
    """Whether the stated model was built, in which form and size, and what solved it."""
    model, rows = record.model, record.size.constraints
    known = "" if model.variables is None else f"{model.variables:,} variables"
    if not model.built:
        return "not built" + (f" ({known})" if known else "") + f": {model.reason}"
    parts = [part for part in (known, "" if rows is None else f"{rows:,} rows", model.reason) if part]
    return f"stated in {model.form}: {', '.join(parts)}"


def _extent(record: Record) -> str:
    """Vertices, and arcs if there are any; empty where the instance is a matrix, whose size is listed anyway."""
    arcs = "" if record.arcs is None else f", {record.arcs} arcs"
    return "" if record.paper == "matrix" else f"   ({record.n} vertices{arcs})"


def show_bounds(rows: Sequence[BoundRow]) -> None:
    """Print analytic bounds, tightest first."""
    timed = any(row["T"] is not None for row in rows)
    several = len({row["formulation"] for row in rows}) > 1
    columns = [*(["instance"] if any("instance" in row for row in rows) else [])]
    columns += [*(["formulation"] if several else []), "name", "quantity", "sense", "value"]
    show_table(rows, [*columns, *(["T"] if timed else []), "exact", "reason", "paper"], "analytic bounds")


def show_summary(summary: Summary) -> None:
    """Print the summary of a study, one line per formulation and method."""
    groups: dict[tuple[str, str], list[Any]] = {}
    for cell in summary.study.cells:
        outcome = summary.results.get(cell.key)
        groups.setdefault((str(cell.task.formulation), cell.task.method), []).append(outcome)
    rows = []
    for (formulation, method), results in groups.items():
        known = [r for r in results if r is not None]
        times = sorted(r.solve_s for r in known if r.solve_s is not None)
        rows.append(
            {
                "formulation": formulation,
                "method": method,
                "cells": len(results),
                **{s: sum(r.status == s for r in known) for s in ("done", "skipped", "failed", "unavailable")},
                "median_solve_s": round(times[len(times) // 2], 4) if times else None,
            }
        )
    columns = [
        "formulation",
        "method",
        "cells",
        "done",
        "skipped",
        "failed",
        "unavailable",
        "median_solve_s",
    ]
    from opticoll.solvers.task import one_line

    show_table(rows, columns, f"study {summary.study.name}")
    for cell in summary.study.cells:
        result = summary.results.get(cell.key)
        if result is not None and result.status in {"failed", "unavailable"}:
            click.echo(f"{result.status}: {cell.label}: {one_line(result.message)}", err=True)


def show_sweep(result: SweepResult) -> None:
    """Print a sweep: its summary, and the cases in which the bound is violated or undecided, or fails."""
    show_fields(result.summary, f"sweep of {result.bound} over {result.formulation}")
    noted = [dict(case.items()) for case in result.cases if case.status not in {"holds", "inapplicable"}]
    if noted:
        columns = ["case", "n", "copies", "status", "bound", "optimum", "lower", "upper", "ratio", "message"]
        show_table(noted[:MOST_CASES], columns, "cases in which the bound is violated, undecided or fails")
        if len(noted) > MOST_CASES:
            click.echo(f"... {len(noted) - MOST_CASES} more; --json and --out give all")


#: Markup of a docstring: a role with its text.
_ROLE = re.compile(r":[a-z]+:`~?([^`]*)`")


def _without_markup(text: str) -> str:
    return _ROLE.sub(r"`\1`", text).replace("``", "`")


def show_description(one: Description) -> None:
    """Print the description of a name: title, source, text, parameters, related names, sizes and bounds."""
    click.echo(f"{one.name}: {one.title}\n")
    if one.text:
        click.echo(f"{_without_markup(one.text)}\n")
    if one.parameters:
        rows = [
            {**row, "default": "required" if row.required else row.default, "help": _without_markup(row.help)}
            for row in one.parameters
        ]
        columns = ["name", "type", "default", *(c for c in ("choices", "help") if any(row[c] for row in rows))]
        show_table(rows, columns, "parameters")
        click.echo()
    lists = {name: ", ".join(one[name]) for name in ("forms", "methods", "solvers", "formulations") if one[name]}
    facts = {name: _cell(value) for name, value in one.facts.items() if value is not None}
    lines = {"kind": one.kind, **({"source": one.source} if one.source else {}), **facts, **lists}
    lines |= {"size": one.size} if one.size else {}
    if one.sizes is not None:
        words = ("variables", "constraints", "nonzeros", "integers")
        numbers = ", ".join(f"{number(one.sizes[word])} {word}" for word in words if one.sizes[word] is not None)
        lines[f"on {one.sizes.instance}"] = numbers or "size unknown"
        lines["auto chooses"] = number(one.sizes.auto)
    lines |= {"example": one.example} if one.example else {}
    show_fields(lines, None)
    if one.sizes is not None and one.sizes.bounds:
        click.echo()
        rows = [dict(bound) for bound in one.sizes.bounds]
        show_table(rows, ["name", "value", "exact", "reason"], f"bounds on the objective on {one.sizes.instance}")
    click.echo()


def show_iteration(result: IterationTime) -> None:
    """Print the simulated time of an iteration, and the bounds on it."""
    fields = {
        "model": f"{result.model}, {result.servers} servers",
        "network": f"{result.network}, {result.link}, routing {result.routing}",
        "time": f"{1e3 * result.seconds:.6g} ms",
        "computing": f"{1e3 * result.computing_s:.6g} ms on the busiest server",
        "bound": f"{1e3 * result.bound_s:.6g} ms   ({result.bound})",
        "traffic": f"{result.all_reduce_bytes:.4g} bytes all-reduced, {result.transfer_bytes:.4g} bytes transferred",
        "simulated": f"{result.tasks} tasks, {result.events} events, {result.changes} circuit changes",
    }
    if result.violation is not None:
        fields["check"] = f"worst violation {result.violation:.2g}"
    show_fields(fields, "iteration")


def _racks(design: TopologyDesign) -> str:
    limits = [f"of {design.rack} nodes"]
    if design.cables:
        limits.append(f"at most {design.cables} cables from one to another")
    if design.uplinks:
        limits.append(f"at most {design.uplinks} from one to all others")
    return ", ".join(limits)


def show_design(design: TopologyDesign) -> None:
    """Print a topology, its time, and the bound on all topologies of its degree."""
    fields = {
        "nodes": f"{design.n}, degree {design.degree}, links {'one way' if design.directed else 'both ways'}",
        **({"racks": _racks(design)} if design.rack else {}),
        "topology": f"{design.topology}   (from the {design.source})",
        "T": f"{number(design.T)}   ({design.proof} for this topology)",
        "T bound": f"{number(design.bound)}   for any topology: {design.reason}",
        "gap": "none: best possible" if design.best_possible else f"{100 * design.gap:.2f} %",
    }
    if design.T_failed is not None and design.failed_link is not None:
        tail, head = design.failed_link
        grown = f"+{100 * (design.T_failed / design.T - 1):.2f} %, without {tail} to {head}"
        fields["T, one failed"] = f"{number(design.T_failed)}   ({grown})"
    show_fields(fields, "design")
    if design.others:
        rows = [{"topology": other.topology, "T": other.T, "proof": other.proof} for other in design.others]
        show_table(rows, ["topology", "T", "proof"], "for comparison")


def show_overview(frame: pd.DataFrame) -> None:
    """Print what :data:`OVERVIEW` selects, without the columns that distinguish no two runs."""
    runs = frame.groupby(_IDENTIFYING, dropna=False)
    alike = [name for name in _DISTINGUISHING if runs[name].nunique(dropna=False).max() <= 1]
    rows = frame_rows(frame.drop(columns=alike if frame["superseded"].any() else [*alike, "superseded"]))
    for row in rows:
        if "superseded" in row:
            row["superseded"] = "superseded" if row["superseded"] else ""
        if isinstance(used := row.get("plugins"), dict):
            row["plugins"] = {name: str(digest)[:8] for name, digest in used.items()}
        row |= {name: number(row[name], 3) for name in ("gap", "time_solve_s", "peak_memory_mb")}
    show_table(rows, list(rows[0]))


def show_comparison(made: StudyComparison) -> None:
    """Print the comparison of a study: one line per contestant, by class of problems, then wrong answers."""
    from opticoll.analysis.benchmark import solver_metrics
    from opticoll.analysis.benchmark.study_comparison import CLOCKS, SHOWN

    for name, frame in made.summaries.items():
        rows = frame_rows(frame)
        shown = [column for column in SHOWN if any(row[column] not in (None, 0) for row in rows)]
        show_table(rows, shown, f"study {made.study.name}: {name} programs")
    click.echo(f"{CLOCKS[made.clock]} Means are shifted geometric means [s].")
    each = made.comparison.each
    for contestant, runs in each[each["verdict"] == "unavailable"].groupby("solver")["runs"].sum().items():
        click.echo(f"{contestant}: {int(runs)} run{'s' * (int(runs) != 1)} had no usable solver", err=True)
    wrong = solver_metrics.wrong_answers(made.comparison.runs).rename(columns={"solver": "contestant"})
    if len(wrong):
        show_table(frame_rows(wrong), list(wrong.columns), "wrong answers")
    if made.missing:
        click.echo(f"{made.missing} of {len(made.study.cells)} cells have no record in the store", err=True)


def frame_rows(frame: pd.DataFrame) -> list[dict[str, Json]]:
    """A frame as JSON-able rows: NULL as None, JSON columns unpacked, times in ISO form."""
    return [
        {name: _plain(name, value) for name, value in zip(frame.columns, row, strict=True)}
        for row in frame.itertuples(index=False, name=None)
    ]


def _plain(name: str, value: Any) -> Json:
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

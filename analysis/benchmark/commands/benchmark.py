"""The command ``benchmark``: problems as files, runs of solvers, their comparison, and better solutions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opticoll.analysis.cli import output
from opticoll.analysis.cli.group import Commands
from opticoll.analysis.cli.options import JSON, SOLVERS, FloatRange
from opticoll.analysis.plots.style import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opticoll.analysis.benchmark.benchmark_set import BenchmarkProblem

#: Folder of runs if none is named.
RUNS = Path("benchmark-runs")
POSITIVE = FloatRange(0, min_open=True)
_NAMES = click.argument("names", nargs=-1, metavar="[NAME]...")
_GRADE = click.option(
    "--grade", "grades", multiple=True, type=click.Choice(["easy", "medium", "hard"]), help="Problems of this grade."
)


_FOLDER = click.Path(path_type=Path, file_okay=False)


@click.group(invoke_without_command=True, cls=Commands)
@click.pass_context
def benchmark(context: click.Context) -> None:
    """Benchmark of LP and MIP solvers."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def _chosen(names: Sequence[str], grades: Sequence[str]) -> list[BenchmarkProblem]:
    from opticoll.analysis.benchmark.benchmark_set import problems_named

    return problems_named(names, grades)


@benchmark.command("list")
@_NAMES
@_GRADE
@click.option(
    "--open", "only_open", is_flag=True, help="Only problems whose value and bound differ by more than 1e-4 (relative)."
)
@JSON
def list_problems(names: tuple[str, ...], grades: tuple[str, ...], only_open: bool, as_json: bool) -> int:
    """Print problems with grade, size, best known value and bound."""
    from opticoll.analysis.benchmark.benchmark_set import COLUMNS, problem_rows

    rows = problem_rows(names, grades, only_open=only_open)
    if as_json:
        output.emit_json(rows)
    else:
        output.show_table(rows, [*COLUMNS, *(["tried"] if only_open else [])], counted(len(rows), "problem"))
    return 0


@benchmark.command()
@click.argument("target", type=_FOLDER, metavar="FOLDER")
@_NAMES
@_GRADE
def export(target: Path, names: tuple[str, ...], grades: tuple[str, ...]) -> int:
    """Write problems as .mps.gz, with index, best known values (.solu), solutions and checksums.

    All files are minimizations; a comment says where the objective of a maximization is negated.
    """
    from opticoll.analysis.benchmark.exported_set import export_set

    rows = export_set(target, _chosen(names, grades), output.notify)
    click.echo(f"wrote {counted(len(rows), 'problem')} and the index to {target}", err=True)
    return 0


@benchmark.command()
@_NAMES
@_GRADE
@click.option("--solver", "solvers", multiple=True, metavar="S", help="Solver; repeatable (default: all free ones).")
@click.option("--cpu-limit", "cpu_limit_s", type=POSITIVE, default=60.0, show_default=True, metavar="S")
@click.option("--memory-limit", "memory_limit_gib", type=POSITIVE, default=6.0, show_default=True, metavar="GIB")
@click.option("--threads", type=click.IntRange(1, 1024), default=1, show_default=True)
@click.option("--seed", "seeds", multiple=True, type=click.IntRange(0), default=(0,), help="Repeatable.")
@click.option("--order", "orders", multiple=True, type=click.IntRange(0), default=(0,), help="Permutation; repeatable.")
@click.option("--tol", "tols", multiple=True, type=float, metavar="X", help="Of solvers that take one; repeatable.")
@click.option("--repetitions", type=click.IntRange(1, 100), default=1, show_default=True, help="Cold starts.")
@click.option("--out", type=_FOLDER, default=RUNS, show_default=True, metavar="FOLDER")
@SOLVERS
def run(
    names: tuple[str, ...],
    grades: tuple[str, ...],
    solvers: tuple[str, ...],
    tols: tuple[float, ...],
    out: Path,
    **conditions: Any,
) -> int:
    """Run solvers on problems, small ones first; the same command resumes.

    Runs are alone, one after the other, and stop after --cpu-limit processor seconds of the solver, or after 25 times
    that and a minute on the clock. Runs in --out are not repeated, unless they were stopped at a smaller limit.
    --order K permutes rows and columns with seed K > 0. Exit status: 4 if no solver can be used.
    """
    from opticoll.analysis.benchmark import runs

    under = runs.Conditions(tols=tols or None, **conditions)
    left = runs.missing(_chosen(names, grades), runs.installed(solvers) or runs.usable_solvers(), out, under)
    total, place, ran = sum(map(len, left.values())), 0, False
    if total:
        output.notify(
            f"runs end after {under.cpu_limit_s:g} s of processor time, or {under.wall_limit_s:g} s on the clock"
        )
    try:
        for row, _ in runs.run_cells(left, out, under):
            place += 1
            ran = ran or row.termination != "unavailable"
            spent = "" if row.cpu_s is None else f" {row.cpu_s:.3g} s"
            why = f": {row.message}" if row.message else ""
            variant: dict[str, float] = {"seed": row.seed, "order": row.order, "repetition": row.repetition}
            variant |= {"tol": row.tol} if tols else {}
            which = "".join(f" {name}={value:g}" for name, value in variant.items() if value)
            output.notify(f"{place} of {total}: {row.problem}, {row.solver}{which}: {row.termination}{spent}{why}")
    except KeyboardInterrupt:
        output.notify(f"run: interrupted; {place} of {total} runs are in {out}; the same command resumes")
        return output.INTERRUPTED
    done = f"wrote {counted(place, 'run')} to {out}" if total else f"all of these runs are in {out}"
    click.echo(f"{done}; compare them with `opticoll benchmark compare {out}`", err=True)
    return 0 if ran or not total else 4


@benchmark.command()
@click.argument(
    "folders", nargs=-1, type=click.Path(path_type=Path, exists=True, file_okay=False), metavar="[FOLDER]..."
)
@_GRADE
@click.option("--problem", "names", multiple=True, metavar="NAME", help="Only this problem; repeatable.")
@click.option("--alone", is_flag=True, help="Without the published runs.")
@click.option("--cpu-limit", type=POSITIVE, metavar="S", help="Compare under this limit.")
@click.option(
    "--accuracy",
    type=FloatRange(0, 1, min_open=True, max_open=True),
    default=1e-6,
    show_default=True,
    metavar="X",
    help="Largest residual of a solved linear program.",
)
@click.option("--out", type=_FOLDER, metavar="FOLDER", help="Write figures and tables.")
@click.option("--latex", is_flag=True, help="Print the tables for LaTeX.")
def compare(
    folders: tuple[Path, ...],
    grades: tuple[str, ...],
    names: tuple[str, ...],
    alone: bool,
    cpu_limit: float | None,
    accuracy: float,
    out: Path | None,
    latex: bool,
) -> int:
    """Compare runs in FOLDERs with the published ones on the same problems; without a folder, the published ones."""
    from opticoll.analysis.benchmark import run_comparison

    chosen = [one.name for one in _chosen(names, grades)] if names or grades else None
    made = run_comparison.compare(folders, names=chosen, published=not alone, accuracy=accuracy, limit_s=cpu_limit)
    if latex:
        click.echo(made.to_latex(), nl=False)
    else:
        output.show(made, as_json=False)
    if out is not None:
        click.echo(f"wrote {run_comparison.write(made, out)}", err=True)
    return 0


@benchmark.command()
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False), metavar="FILE..."
)
@click.option("--problem", metavar="NAME", help="Problem of the file (default: its name without the ending).")
@click.option("--check", "only_check", is_flag=True, help="Compare with the records; change nothing.")
@JSON
def submit(files: tuple[Path, ...], problem: str | None, only_check: bool, as_json: bool) -> int:
    """Check solutions or certificates, and keep those better than the best known.

    NAME.sol is a solution of the exported NAME.mps.gz; NAME.json one of `solve --solution`; NAME.vipr.gz is a
    certificate. Exit status: 0, or 3 if one is refused.
    """
    from opticoll.analysis.benchmark import best_known as records

    submissions = []
    for file in files:
        of = records.problem_of(file, problem)
        submissions.append(records.examined(of, file) if only_check else records.submit(of, file))
    rows = [one.row() for one in submissions]
    if as_json:
        output.emit_json(rows)
    else:
        output.show_table(rows, [name for name in rows[0] if any(row[name] is not None for row in rows)], "submitted")
    return 3 if any(row["verdict"] == "refused" for row in rows) else 0

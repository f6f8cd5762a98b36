"""The command ``benchmark``: problems, best known values, certificates and published results; measured documents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from opticoll.analysis.cli.options import STORE, notify, store_at, writable_store

if TYPE_CHECKING:
    import pandas as pd

_NAMES = click.argument("names", nargs=-1, metavar="[NAME]...")
_GRADE = click.option(
    "--grade", "grades", multiple=True, type=click.Choice(["easy", "medium", "hard"]), help="Problems of this grade."
)
_ACCURACY = click.option(
    "--accuracy",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=1e-6,
    show_default=True,
    metavar="X",
    help="Largest residual of a solved linear program.",
)
_OUT = click.option("--out", type=click.Path(path_type=Path), metavar="FOLDER", help="Write page, figures and tables.")
_LIMIT = click.option(
    "--time-limit", type=float, default=300.0, show_default=True, metavar="S", help="Limit of each solve [s]."
)


@click.group(invoke_without_command=True)
@click.pass_context
def benchmark(context: click.Context) -> None:
    """The solver benchmark, and the measurements of the documents."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


# problems and best known values ---------------------------------------------------------------------------------------


@benchmark.command("list")
@click.option("--open", "only_open", is_flag=True, help="Only problems whose value and bound do not meet.")
def list_problems(only_open: bool) -> int:
    """Print every problem with its grade, best known value, bound and proof."""
    from opticoll.analysis.benchmark.benchmark_set import best_known, problems

    known = best_known()
    for one in problems():
        best = known.get(one.name)
        if (best is not None and best.open == only_open) or not only_open:
            text = "not run yet" if best is None else f"{best.grade:8} {best.value!s:22} {best.bound!s:22} {best.proof}"
            click.echo(f"{one.name:70} {text}{' open' if best is not None and best.open else ''}")
    return 0


@benchmark.command()
@click.argument("folder", type=click.Path(path_type=Path))
@_NAMES
def export(folder: Path, names: tuple[str, ...]) -> int:
    """Write every problem (or those named) as .mps.gz into FOLDER, with index.json and index.csv."""
    from opticoll.analysis.benchmark.benchmark_set import export_set, problems_named

    rows = export_set(folder, problems_named(names))
    click.echo(f"wrote {len(rows)} problems and their index to {folder}", err=True)
    return 0


@benchmark.command()
@_NAMES
@click.option("--time-limit", type=float, default=60.0, show_default=True, metavar="S", help="Limit of each run [s].")
@click.option("--open", "only_open", is_flag=True, help="Only problems without a proven value of their instance.")
@click.option("--method", "methods", multiple=True, metavar="M", help="Method after HiGHS (default: all); repeatable.")
def prove(names: tuple[str, ...], time_limit: float, only_open: bool, methods: tuple[str, ...]) -> int:
    """Recompute best known values and grades and write them to the data file."""
    from opticoll.analysis.benchmark.benchmark_set import problems_named, prove_all

    for name, best in prove_all(problems_named(names), time_limit, methods, only_open=only_open):
        click.echo(f"{name}: {best}")
    return 0


@benchmark.command()
@_NAMES
@STORE
def known(names: tuple[str, ...], store_dir: str | None) -> int:
    """Take values and bounds from a store's runs if they are better than the best known ones."""
    from opticoll.analysis.benchmark.benchmark_set import improve_all, problems_named

    for name, best in improve_all(problems_named(names), store_at(store_dir)):
        click.echo(f"{name}: {best}")
    return 0


# certificates ---------------------------------------------------------------------------------------------------------


@benchmark.command()
@_NAMES
@_LIMIT
@click.option("--again", is_flag=True, help="Also retry problems whose last exact solve ended without a proof.")
@click.option("--combinatorial", is_flag=True, help="Try only combinatorial certificates, without an exact solve.")
def certify(names: tuple[str, ...], time_limit: float, again: bool, combinatorial: bool) -> int:
    """Solve exactly what has no certificate yet."""
    from opticoll.analysis.benchmark.benchmark_set import problems_named
    from opticoll.analysis.benchmark.certificates import fill

    for problem, result in fill(problems_named(names), time_limit, again=again, exact=not combinatorial):
        stated = result.value or f"nothing is proven: {result.reason}"
        click.echo(f"{problem.name}: {stated} ({result.bytes} bytes{'' if result.file else ', not shipped'})")
    return 0


@benchmark.command()
@_NAMES
def check(names: tuple[str, ...]) -> int:
    """Verify the certificates that are shipped; exit status 3 if one fails."""
    from opticoll.analysis.benchmark.benchmark_set import problems_named
    from opticoll.analysis.benchmark.certificates import certified, verify

    known, failed = certified(), 0
    for problem in problems_named(names):
        entry = known.get(problem.name)
        if entry is not None and entry.file is not None:
            reason = verify(problem, entry)
            failed += reason is not None
            click.echo(f"{problem.name}: {reason or f'proven, {entry.value}'}")
    return 3 if failed else 0


@benchmark.command()
def certificates() -> int:
    """Print fractions, sizes and times of the certificates as a table in Markdown."""
    from opticoll.analysis.benchmark.certificates import markdown_table

    click.echo(markdown_table())
    return 0


@benchmark.command()
@click.argument("specs", nargs=-1, metavar="[INSTANCE]...")
@_LIMIT
def families(specs: tuple[str, ...], time_limit: float) -> int:
    """Print the exact T of the all-to-all on INSTANCE..., by default an example of every family, as Markdown."""
    from opticoll.analysis.benchmark.certificates import exact_times

    click.echo("| instance | ranks | T | decimal |")
    click.echo("|---|---:|---:|---:|")
    for line in exact_times(specs, time_limit):
        click.echo(line)
    return 0


@benchmark.command()
@click.argument("nodes", nargs=-1, type=click.IntRange(min=2), required=True, metavar="N...")
@click.option(
    "--ports", multiple=True, type=click.IntRange(min=1), default=(1, 2, 4, 8), metavar="D", help="Ports; repeatable."
)
@click.option("--seconds", type=float, default=10.0, show_default=True, metavar="S", help="Limit of each search [s].")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the searches.")
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("sequence_records.csv"), show_default=True, metavar="FILE"
)
def sequences(nodes: tuple[int, ...], ports: tuple[int, ...], seconds: float, seed: int, out: Path) -> int:
    """Search for sequences of configurations of N... nodes that are faster than the known ones.

    Begins with FILE, or with the table of opticoll, and writes FILE after every improvement; a search that was
    interrupted goes on when it is started again.
    """
    from opticoll.analysis.reconfiguration import sequence_records

    known = sequence_records.known_at(out)
    cells = sequence_records.cells(nodes, ports)
    for place, record in enumerate(sequence_records.improved(known, cells, seconds=seconds, seed=seed), 1):
        sequence_records.add(known, record)
        sequence_records.write_records(out, known)
        size = f"n={record.n}, degree={record.degree}, {'one-way' if record.directed else 'two-way'}"
        click.echo(f"{place}. {size}, K={record.configurations}: T = {record.time:g}, gap {100 * record.gap:.2f} %")
    return 0


# published results ----------------------------------------------------------------------------------------------------


@benchmark.command()
@_NAMES
@_GRADE
@_ACCURACY
@_OUT
def show(names: tuple[str, ...], grades: tuple[str, ...], accuracy: float, out: Path | None) -> int:
    """Compare the published solvers."""
    from opticoll.analysis.benchmark import published_results
    from opticoll.analysis.benchmark.benchmark_set import problems_named

    chosen = [one.name for one in problems_named(names, grades)]
    _show(published_results.published(names=chosen), accuracy, out, "Published results")
    return 0


@benchmark.command()
@_NAMES
@_GRADE
@click.option("--solver", "solvers", multiple=True, required=True, metavar="S", help="Solver to run; repeatable.")
@click.option("--tol", "tols", multiple=True, type=float, metavar="X", help="Tolerance (default: the problem's).")
@click.option("--jobs", type=click.IntRange(1, 1024), default=1, show_default=True, help="Concurrent runs.")
@click.option(
    "--repetitions", type=click.IntRange(1, 100), default=1, show_default=True, help="Cold starts of each run."
)
@click.option("--alone", is_flag=True, help="Omit the published runs.")
@STORE
@_ACCURACY
@_OUT
def run(
    names: tuple[str, ...],
    grades: tuple[str, ...],
    solvers: tuple[str, ...],
    tols: tuple[float, ...],
    jobs: int,
    repetitions: int,
    alone: bool,
    store_dir: str | None,
    accuracy: float,
    out: Path | None,
) -> int:
    """Run solvers on problems, and compare them with the published ones.

    Runs in the store are not repeated: after Ctrl-C, the same command resumes.
    """
    from opticoll.analysis.benchmark import published_results
    from opticoll.analysis.benchmark.benchmark_set import problems_named

    chosen, store = problems_named(names, grades), writable_store(store_dir)
    made = published_results.run_problems(chosen, solvers, store, jobs=jobs, repetitions=repetitions, tols=tols)
    if made.interrupted:
        done = f"{len(made.runs)} of {made.cells} runs are in {store.root}"
        notify(f"run: interrupted; {done}; the same command resumes")
        return 130
    rows = published_results.beside_published(made.runs, [] if alone else [one.name for one in chosen])
    _show(rows, accuracy, out, "Runs on this machine" if alone else "Published results and runs on this machine")
    return 0


@benchmark.command()
@STORE
def publish(store_dir: str | None) -> int:
    """Write a store's benchmark runs in which a solver ran into the published tables."""
    from opticoll.analysis.benchmark import benchmark_set, published_results
    from opticoll.analysis.report import findings

    runs = benchmark_set.select(findings.best_runs(store_at(store_dir)))
    for path in published_results.write_tables(runs[runs["solver_version"].notna()]):
        click.echo(f"wrote {path}", err=True)
    return 0


def _show(rows: pd.DataFrame, accuracy: float, out: Path | None, title: str) -> None:
    """Print a comparison of runs, and write its page."""
    from opticoll.analysis.benchmark import published_results, solver_metrics
    from opticoll.analysis.benchmark.study_comparison import SHOWN
    from opticoll.analysis.cli import output
    from opticoll.analysis.rendering import frame_rows

    made = published_results.compared(rows, accuracy)
    for name, frame in made.summaries.items():
        table = frame_rows(frame)
        shown = ["solver", *(c for c in SHOWN if c in frame and any(row[c] not in (None, 0) for row in table))]
        output.show_table(table, shown, f"{name} programs")
    click.echo("Times are processor seconds, means shifted geometric means [s].")
    wrong = solver_metrics.wrong_answers(made.runs)
    if len(wrong):
        output.show_table(frame_rows(wrong), list(wrong.columns), "wrong answers")
    if out is not None:
        click.echo(f"wrote {published_results.write_page(made, out, title)}", err=True)


# measured documents ---------------------------------------------------------------------------------------------------


@benchmark.command()
@click.argument("parts", nargs=-1, metavar="[PART]...")
@click.option("--from-store", is_flag=True, help="Write stored results; measure nothing.")
@click.option("--jobs", type=click.IntRange(min=1), help="Concurrent cells of a study (default: 1, for exact times).")
@STORE
@click.option(
    "--root",
    type=click.Path(path_type=Path),
    default=Path(),
    metavar="DIR",
    help="Folder of README.md (default: the current one).",
)
def measure(parts: tuple[str, ...], from_store: bool, jobs: int | None, store_dir: str | None, root: Path) -> int:
    """Measure tables and plots of the documents, by default all, and write them into README and docs.

    PART is a study behind a plot, `claims` or a table of times. Results are stored; stored cells and claims are not
    repeated. Exit status: 0; 1 if a block lacks data, which is named with the command that computes it.
    """
    from opticoll.analysis.benchmark import documents

    chosen = documents.chosen_parts(parts)
    store = store_at(store_dir) if from_store else writable_store(store_dir)
    for part in () if from_store else chosen:
        notify(f"benchmark measure: {part} ...")
        documents.measure_part(part, store, jobs)
        documents.publish(store, root, [part])
    missing = documents.publish(store, root, chosen)
    for block, reason in missing.items():
        notify(f"benchmark measure: {block} not updated: {reason}")
    return 1 if missing else 0

"""The benchmark set: the problems of the study ``solver-bench`` with their best known values, as files for anybody.

    python -m opticoll.analysis.benchmark.benchmark_set list               problems, grade, best known value and its
    proof
    python -m opticoll.analysis.benchmark.benchmark_set export FOLDER      every problem as MPS, and an index
    (index.json, index.csv)
    python -m opticoll.analysis.benchmark.benchmark_set prove [NAME]...    best known values and grades, measured anew
    (--open: only
                                                        of problems without a proven value)

Problems are those of ``analysis/studies/solver-bench.toml``. Best known values are measured, never typed: ``prove``
solves each problem by HiGHS and then by every method of its formulation until value and bound meet, and writes what
came out to ``analysis/studies/solver-bench-best.json``. A value there passed the formulation's own check; a bound was
recomputed from duals, a certificate or a closed form, so that no solver's word is in it.

The grade says how hard a problem is for HiGHS, on one core, on the machine that ran ``prove``, which should do nothing
else: ``instant`` below 1 s, ``easy`` below 10 s, ``medium`` within the limit, ``hard`` not within it.

The points of every curve of the comparison are the files ``tables/solvers-*.csv`` that ``opticoll report`` writes, see
:func:`opticoll.analysis.report.solvers_section.tables`.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
import secrets
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opticoll.analysis.study.study_file import STUDIES, tasks
from opticoll.errors import BadFile, BadInput, OpticollError
from opticoll.instances.spec import nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pandas as pd

    from opticoll.solvers.task import Run

STUDY = "solver-bench"
BEST = STUDIES / f"{STUDY}-best.json"
GRADES = ("instant", "easy", "medium", "hard")
#: Relative gap at which a best known value counts as proven.
PROVEN = 1e-6
#: Seconds below which HiGHS makes a problem instant, easy.
INSTANT_S, EASY_S = 1.0, 10.0
_INDEX = (
    "name", "file", "sha256", "formulation", "instance", "settings", "class", "sense", "variables", "constraints",
    "nonzeros", "integers", "grade", "best_value", "best_bound", "proof", "method", "bound_source",
)  # fmt: skip


@dataclass(frozen=True)
class Problem:
    """One problem of the set: a formulation on an instance, with the formulation's own parameters.

    ``name`` is fit for a file; ``limit_s``, ``tols`` and ``threads`` are those that the study asks for.
    """

    name: str
    formulation: str
    instance: str
    settings: tuple[tuple[str, str], ...]
    limit_s: float | None
    tols: tuple[float, ...]
    threads: int

    @property
    def key(self) -> tuple[str, str, tuple[tuple[str, str], ...]]:
        """What tells it from the others."""
        return self.formulation, self.instance, self.settings


@dataclass(frozen=True)
class Best:
    """The best value known of a problem and what is proven of it.

    ``bound`` is the best bound of our own, ``proof`` what both together prove; ``method`` found the value,
    ``bound_source`` names the bound. ``instance_hash`` is that of the instance it was measured on, ``highs_s`` the
    seconds HiGHS took (None: not within its limit ``limit_s``), ``opticoll`` the version.
    """

    value: float | None
    bound: float | None
    proof: str
    sense: str
    method: str | None
    bound_source: str | None
    instance_hash: str
    grade: str
    highs_s: float | None
    limit_s: float
    size: Mapping[str, int]
    opticoll: str


@cache
def problems(path: Path = STUDIES / f"{STUDY}.toml") -> tuple[Problem, ...]:
    """The problems of a benchmark study, each once, in the order of the file."""
    from opticoll.instances import parse

    found: dict[tuple[Any, ...], Problem] = {}
    for task in tasks(path):
        spec = parse(str(task.instance)).spec
        settings = tuple(sorted((name, _word(value)) for name, value in task.settings.items()))
        words = " ".join([task.formulation.partition(".")[2], spec, *(f"{k} {v}" for k, v in settings)])
        one = Problem(
            re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-"),
            task.formulation, spec, settings, task.time_limit_s, (task.tol,), task.threads,
        )  # fmt: skip
        known = found.setdefault(one.key, one)
        found[one.key] = replace(known, tols=tuple(sorted({*known.tols, task.tol})))
    names = [one.name for one in found.values()]
    if len(set(names)) < len(names):
        msg = f"study {path}: two problems have the name {max(names, key=names.count)!r}"
        raise BadFile(msg)
    return tuple(found.values())


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def best_known(path: Path = BEST) -> dict[str, Best]:
    """Best known values by the problem's name; none if there is no such file.

    Raises
    ------
    BadFile
        If the file is not what :func:`prove` writes.
    """
    if not path.exists():
        return {}
    try:
        return {name: Best(**entry) for name, entry in json.loads(path.read_text(encoding="utf-8")).items()}
    except (ValueError, TypeError, AttributeError) as error:
        command = "python -m opticoll.analysis.benchmark.benchmark_set prove"
        msg = f"{path} is not a file of best known values ({error}); recompute them with `{command}`"
        raise BadFile(msg) from error


def select(results: pd.DataFrame, path: Path = STUDIES / f"{STUDY}.toml") -> pd.DataFrame:
    """The runs of solvers on problems of the set under the study's limits, with columns ``problem_name``, ``linear``.

    Parameters
    ----------
    results
        Rows of the view ``latest``; what made them does not matter, only what they are.
    """
    import numpy as np

    from opticoll.formulations import formulations
    from opticoll.solvers.adapters import adapters

    here = results[results["method"].isin(list(adapters()))].copy()
    known = {one.key: one for one in problems(path)}
    found = [known.get(_key(row)) for row in here.to_dict("records")]
    same = [
        one is not None
        and row["requested_tol"] in one.tols
        and (row["requested_time_limit_s"], row["requested_threads"]) == (one.limit_s, one.threads)
        for one, row in zip(found, here.to_dict("records"), strict=True)
    ]
    here["problem_name"] = [None if one is None else one.name for one in found]
    models = formulations()
    here["linear"] = [name in models and models[name].problem == "LP" for name in here["formulation"]]
    return here[np.array(same, dtype=bool)]


def _key(row: Mapping[Any, Any]) -> tuple[Any, ...]:
    text = row["requested_settings"]
    asked = json.loads(text) if isinstance(text, str) else {}
    return row["formulation"], row["instance"], tuple(sorted((name, _word_of(value)) for name, value in asked.items()))


def _word_of(value: Any) -> str:
    """A setting out of a record, where a truth value is written as Python writes it."""
    return {"True": "true", "False": "false"}.get(str(value), str(value))


# proving ------------------------------------------------------------------------------------------------------------


def prove(problem: Problem, limit_s: float) -> Best:
    """Solve a problem by HiGHS, then by every method of its formulation, until value and bound meet.

    Parameters
    ----------
    problem
        What to solve.
    limit_s
        Wall-clock limit of each run [s].
    """
    from opticoll.analysis.store.schema import opticoll_version
    from opticoll.formulations import formulation
    from opticoll.instances import parse
    from opticoll.solvers.methods import methods_for
    from opticoll.solvers.verify import prove as proof_of

    model = formulation(problem.formulation)
    value: float | None = None
    bound: float | None = None
    method = source = None
    highs_s, size = None, {}
    proof = "none"
    for name in ("highs", "auto", *sorted(methods_for(model))):
        run = _run(problem, name, limit_s)
        if run is None:
            continue
        if name == "highs":
            size = dict(run.record["size"])
            highs_s = run.record["time"]["solver_s"] if run.termination == "optimal" and run.verified else None
        better = max if model.sense == "max" else min
        if run.verified and run.objective is not None and (value is None or better(value, run.objective) != value):
            value, method = run.objective, str(run.record["method"])
        if run.bound is not None and (bound is None or better(bound, run.bound) == bound != run.bound):
            bound, source = run.bound, run.record["bound_source"]
        proof = str(
            proof_of(verified=value is not None, objective=value, bound=bound, sense=model.sense, tol=PROVEN)[0]
        )
        if proof == "optimal":
            break
    return Best(
        value, bound, proof, model.sense, method, source, parse(problem.instance).hash, _grade(highs_s, limit_s),
        highs_s, limit_s, size, opticoll_version() or "unknown",
    )  # fmt: skip


def _run(problem: Problem, method: str, limit_s: float) -> Run | None:
    """One run; None where the method cannot take the problem."""
    from opticoll.solvers import runner
    from opticoll.solvers.task import Task

    try:
        return runner.solve(
            Task(
                problem.formulation, problem.instance, method, settings=dict(problem.settings), time_limit_s=limit_s,
                tol=PROVEN, threads=problem.threads,
            )
        )  # fmt: skip
    except OpticollError as error:
        click.echo(f"  {method}: {error}", err=True)
        return None


def _grade(seconds: float | None, limit_s: float) -> str:
    if seconds is None or seconds > limit_s:
        return "hard"
    return "instant" if seconds < INSTANT_S else "easy" if seconds < EASY_S else "medium"


# export -------------------------------------------------------------------------------------------------------------


def export_set(folder: Path, chosen: Iterable[Problem] | None = None) -> list[dict[str, Any]]:
    """Write problems as MPS files with an index of their best known values.

    Parameters
    ----------
    folder
        Where to; made if missing. ``NAME.mps`` for every problem, ``index.json`` and ``index.csv``.
    chosen
        Which problems; all by default.

    Returns
    -------
    list
        The index: names, sizes, sha256 of the file, grade, best known value and bound, proof, and what made them.
        Values are of the objective as the file states it, its constant and its sense (``OBJSENSE``) included.

    Raises
    ------
    BadInput
        If the folder cannot be written.
    BadFile
        If a best known value belongs to another instance than the specification describes now.
    """
    from opticoll.formulations import formulation
    from opticoll.instances import parse
    from opticoll.solvers import runner

    known = best_known()
    rows: list[dict[str, Any]] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for problem in problems() if chosen is None else chosen:
            best = known.get(problem.name)
            if best is not None and best.instance_hash != parse(problem.instance).hash:
                msg = f"{problem.name}: its best known value is of another instance; run `prove` for it again"
                raise BadFile(msg)
            file = folder / f"{problem.name}.mps"
            runner.export(problem.formulation, problem.instance, file, settings=dict(problem.settings))
            told = {} if best is None else asdict(best)
            rows.append(
                {
                    "name": problem.name,
                    "file": file.name,
                    "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
                    "formulation": problem.formulation,
                    "instance": problem.instance,
                    "settings": dict(problem.settings),
                    "class": formulation(problem.formulation).problem,
                    "sense": formulation(problem.formulation).sense,
                    **{part: (told.get("size") or {}).get(part) for part in _INDEX[8:12]},
                    "grade": told.get("grade"),
                    "best_value": told.get("value"),
                    "best_bound": told.get("bound"),
                    "proof": told.get("proof", "none"),
                    "method": told.get("method"),
                    "bound_source": told.get("bound_source"),
                }
            )
        _whole(folder / "index.json", json.dumps(rows, indent=1) + "\n")
        with (folder / "index.csv").open("w", newline="", encoding="utf-8") as file_:
            table = csv.DictWriter(file_, _INDEX)
            table.writeheader()
            table.writerows(
                [{**row, "settings": " ".join(f"{k}={v}" for k, v in row["settings"].items())} for row in rows]
            )
    except OSError as error:
        msg = f"export: cannot write {error.filename or folder}: {error.strerror or error}; choose another folder"
        raise BadInput(msg) from error
    return rows


def _whole(path: Path, text: str) -> None:
    temporary = path.parent / f".tmp-{os.getpid()}-{secrets.token_hex(6)}"
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


# the command --------------------------------------------------------------------------------------------------------


def _named(names: Sequence[str]) -> list[Problem]:
    known = {one.name: one for one in problems()}
    for name in names:
        if name not in known:
            msg = f"no problem {name!r}; {nearest(name, known)}"
            raise BadInput(msg)
    return [known[name] for name in names] if names else list(known.values())


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """The solver benchmark's problems and their best known values."""


@cli.command("list")
def list_command() -> None:
    """Print every problem with its grade, best known value and proof."""
    known = best_known()
    for one in problems():
        best = known.get(one.name)
        told = "not proven yet" if best is None else f"{best.grade:8} {best.value!s:22} {best.proof}"
        click.echo(f"{one.name:70} {told}")


@cli.command("export")
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("names", nargs=-1, metavar="[NAME]...")
def export_command(folder: Path, names: tuple[str, ...]) -> None:
    """Write every problem (or those named) as MPS into FOLDER, with index.json and index.csv."""
    rows = export_set(folder, _named(names))
    click.echo(f"wrote {len(rows)} problems and their index to {folder}", err=True)


@cli.command("prove")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--time-limit", type=float, default=60.0, show_default=True, metavar="S", help="Limit of each run [s].")
@click.option("--open", "only_open", is_flag=True, help="Only problems without a proven value of their instance.")
def prove_command(names: tuple[str, ...], time_limit: float, only_open: bool) -> None:
    """Measure best known values and grades anew and write them to the data file."""
    from opticoll.instances import parse

    for one in _named(names):
        last = best_known().get(one.name)
        if only_open and last and last.proof == "optimal" and last.instance_hash == parse(one.instance).hash:
            continue
        found = prove(one, time_limit)
        listed = {problem.name for problem in problems()}
        known = best_known() | {one.name: found}  # as it is by now: another run may have written meanwhile
        entries = {name: asdict(entry) for name, entry in sorted(known.items()) if name in listed}
        _whole(BEST, json.dumps(entries, indent=1) + "\n")
        click.echo(f"{one.name}: {found.value} {found.proof} ({found.grade}, {found.method}, {found.bound_source})")


def main() -> int:
    """Run the command; errors are one line."""
    try:
        cli.main(prog_name="python -m opticoll.analysis.benchmark.benchmark_set", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except OpticollError as error:
        click.echo(f"benchmark_set: {error}", err=True)
        return 2
    except (click.Abort, KeyboardInterrupt):
        return 130
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

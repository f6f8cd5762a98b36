"""Benchmark problems for solvers, their best known values, and export as MPS files: ``opticoll benchmark``.

The problems are those of ``analysis/studies/solver-bench.toml``. Best known values are always computed: :func:`prove`
solves each problem with HiGHS and then with every method of its formulation until value and bound meet, and writes the
result to ``analysis/studies/solver-bench-best.json``. A value passed the formulation's own check; a bound was
recomputed from duals, a certificate or a closed form, so that neither relies on a solver's report.

The grade is the difficulty for HiGHS on one thread: ``easy`` if it solves the problem in less than a second of
processor time, ``medium`` if it solves it within the time limit, ``hard`` otherwise. A problem whose best known value
and bound differ by more than 1e-4 is *open*.

``opticoll report`` writes the data of every figure to ``tables/solvers-*.csv``, see
:func:`opticoll.analysis.benchmark.solver_comparison.tables`.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import logging
import re
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opticoll.analysis.study.study_file import STUDIES, tasks
from opticoll.errors import BadFile, BadInput, OpticollError
from opticoll.instances.spec import nearest
from opticoll.solvers.shared_files import rewrite
from opticoll.solvers.task import PROVEN as PROVEN_PROOFS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pandas as pd

    from opticoll.analysis.store import Store
    from opticoll.instances.types import Json
    from opticoll.solvers.task import Run

_log = logging.getLogger("opticoll")
STUDY = "solver-bench"
BEST = STUDIES / f"{STUDY}-best.json"
GRADES = ("easy", "medium", "hard")
#: Relative gap at which a best known value counts as proven.
PROVEN = 1e-6
#: Relative gap beyond which a problem counts as open.
OPEN = 1e-4
#: Optima of programs of up to this many nonzeros are also solved exactly.
EXACT_NONZEROS = 100_000
#: Processor time of HiGHS [s] below which a problem is easy.
EASY_S = 1.0
_INDEX = (
    "name",
    "file",
    "sha256",
    "formulation",
    "instance",
    "settings",
    "class",
    "sense",
    "variables",
    "constraints",
    "nonzeros",
    "integers",
    "grade",
    "best_value",
    "best_value_exact",
    "best_bound",
    "proof",
    "method",
    "bound_source",
    "generator",
)


@dataclass(frozen=True)
class Problem:
    """One problem of the set: a formulation on an instance, with the formulation's own parameters.

    ``name`` is a valid file name; ``limit_s`` [s], ``tols``, ``threads`` and ``memory_gib`` are those of the study.
    """

    name: str
    formulation: str
    instance: str
    settings: tuple[tuple[str, str], ...]
    limit_s: float | None
    tols: tuple[float, ...]
    threads: int
    memory_gib: float | None = None

    @property
    def key(self) -> tuple[str, str, tuple[tuple[str, str], ...]]:
        """Formulation, instance and settings, which identify the problem."""
        return self.formulation, self.instance, self.settings

    @property
    def generator(self) -> str:
        """The command that writes the problem as an MPS file."""
        settings = "".join(f" --set {name}={value}" for name, value in self.settings)
        return f"opticoll export {self.formulation} {self.instance}{settings} --to {self.name}.mps"


@dataclass(frozen=True)
class BestKnown:
    """The best known value of a problem and its proof.

    ``bound`` is our best bound, ``proof`` the proof status from value and bound; ``method`` computed the value,
    ``bound_source`` names the bound. ``instance_hash`` identifies the instance, ``highs_s`` is the processor time of
    HiGHS [s] (None if it did not solve the problem within ``limit_s`` of wall-clock time), ``opticoll`` the version.
    ``value_exact`` is the optimum as a fraction, proven in rational arithmetic, for programs of at most
    :data:`EXACT_NONZEROS` whose data allow it.
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
    value_exact: str | None = None

    @property
    def open(self) -> bool:
        """Whether the best known value and bound differ by more than :data:`OPEN`."""
        if self.value is None or self.bound is None:
            return True
        return abs(self.value - self.bound) > OPEN * max(abs(self.value), abs(self.bound))

    def __str__(self) -> str:
        return f"{self.value} {self.proof} ({self.grade}, {self.method}, {self.bound_source})"


@cache
def problems(path: Path = STUDIES / f"{STUDY}.toml") -> tuple[Problem, ...]:
    """The distinct problems of a benchmark study, in the order of the file."""
    from opticoll.instances import parse

    result: dict[tuple[Any, ...], Problem] = {}
    for task in tasks(path):
        spec = parse(str(task.instance)).spec
        settings = tuple(sorted((name, word(value)) for name, value in task.settings.items()))
        words = " ".join([str(task.formulation).partition(".")[2], spec, *(f"{k} {v}" for k, v in settings)])
        one = Problem(
            re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-"),
            str(task.formulation),
            spec,
            settings,
            task.time_limit_s,
            (task.tol,),
            task.threads,
            task.memory_limit_gib,
        )
        known = result.setdefault(one.key, one)
        result[one.key] = replace(known, tols=tuple(sorted({*known.tols, task.tol})))
    names = [one.name for one in result.values()]
    if len(set(names)) < len(names):
        msg = f"study {path}: two problems have the name {max(names, key=names.count)!r}"
        raise BadFile(msg)
    return tuple(result.values())


def word(value: Any) -> str:
    """A setting as a study file writes it: Python's booleans in lower case."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def best_known(path: Path = BEST) -> dict[str, BestKnown]:
    """Best known values by the problem's name; empty if the file does not exist.

    Raises
    ------
    BadFile
        If the file does not have the format that :func:`prove` writes.
    """
    if not path.exists():
        return {}
    try:
        return {name: BestKnown(**entry) for name, entry in json.loads(path.read_text(encoding="utf-8")).items()}
    except (ValueError, TypeError, AttributeError) as error:
        command = "opticoll benchmark prove"
        msg = f"{path} is not a file of best known values ({error}); recompute them with `{command}`"
        raise BadFile(msg) from error


def select(
    results: pd.DataFrame, path: Path = STUDIES / f"{STUDY}.toml", *, tols: tuple[float, ...] = ()
) -> pd.DataFrame:
    """Runs of solvers on problems of the set under the study's limits, with columns ``problem_name``, ``linear``.

    Parameters
    ----------
    results
        Rows of the view ``latest``, from any study or single solve.
    tols
        Tolerances to include in addition to those of the study.
    """
    import numpy as np

    from opticoll.formulations import formulations
    from opticoll.solvers.adapters import adapters

    known = {one.key: one for one in problems(path)}
    fitting = results["method"].isin(list(adapters()))
    for place, name in enumerate(("formulation", "instance")):  # few rows remain
        fitting &= results[name].isin({key[place] for key in known})
    asked = [
        "formulation",
        "instance",
        "requested_settings",
        "requested_tol",
        "requested_time_limit_s",
        "requested_threads",
    ]
    selected = results[fitting]
    kinds = (
        selected.groupby(asked, dropna=False, sort=False).ngroup().to_numpy()
    )  # many runs, few distinct combinations
    _, firsts = np.unique(kinds, return_index=True)
    names: list[str | None] = []
    for row in selected[asked].iloc[firsts].to_dict("records"):
        one = known.get(_key(row))
        same = (
            one is not None
            and row["requested_tol"] in {*one.tols, *tols}
            and (row["requested_time_limit_s"], row["requested_threads"]) == (one.limit_s, one.threads)
        )
        names.append(one.name if one is not None and same else None)
    matched = np.array([*names, None], dtype=object)[kinds]
    selected = selected[matched != None].copy()  # noqa: E711  elementwise
    selected["problem_name"] = matched[matched != None]  # noqa: E711
    models = formulations()
    selected["linear"] = [name in models and models[name].problem == "LP" for name in selected["formulation"]]
    return selected


def _key(row: Mapping[Any, Any]) -> tuple[Any, ...]:
    text = row["requested_settings"]
    asked = json.loads(text) if isinstance(text, str) else {}
    return row["formulation"], row["instance"], tuple(sorted((name, _word_of(value)) for name, value in asked.items()))


def _word_of(value: Any) -> str:
    """A setting of a record as the study file writes it: Python's booleans in lower case."""
    return {"True": "true", "False": "false"}.get(str(value), str(value))


# proving ------------------------------------------------------------------------------------------------------------


def prove(problem: Problem, limit_s: float, methods: Sequence[str] = ()) -> BestKnown:
    """Solve a problem with HiGHS, then with every method of its formulation, until value and bound meet.

    Parameters
    ----------
    problem
        The problem.
    limit_s
        Wall-clock limit of each run [s].
    methods
        Methods tried after HiGHS, in this order; by default all of the formulation.
    """
    from opticoll.analysis import opticoll_version
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
    bounded = _with_bounds(problem)
    tried = [(problem, name) for name in ("highs", *(methods or ("auto", *sorted(methods_for(model)))))]
    tried += [] if bounded is None else [(bounded, "auto")]
    for one, name in tried:
        run = _run(one, name, limit_s)
        if run is None:
            continue
        if name == "highs":
            size = dict(run.record["size"])
            highs_s = run.record["time"]["solver_cpu_s"] if run.termination == "optimal" and run.verified else None
        better = max if model.sense == "max" else min
        if run.verified and run.objective is not None and (value is None or better(value, run.objective) != value):
            value, method = run.objective, str(run.record["method"])
        if run.bound is not None and (bound is None or better(bound, run.bound) == bound != run.bound):
            bound, source = run.bound, run.record["bound_source"]
        proof = str(
            proof_of(verified=value is not None, objective=value, bound=bound, sense=model.sense, tol=PROVEN)[0]
        )
        if proof in PROVEN_PROOFS:
            break
    exact = None
    if proof in PROVEN_PROOFS and 0 < size.get("nonzeros", 0) <= EXACT_NONZEROS:
        run = _run(problem, "auto", limit_s, exact=True)
        exact = None if run is None else run.record.objective_exact
    return BestKnown(
        value,
        bound,
        proof,
        model.sense,
        method,
        source,
        parse(problem.instance).hash,
        _grade(highs_s),
        highs_s,
        limit_s,
        size,
        opticoll_version() or "unknown",
        exact,
    )


def known_from(problem: Problem, runs: pd.DataFrame) -> BestKnown | None:
    """Best known value and bound of a problem from the runs of a store, by any method; None without a run of HiGHS.

    Parameters
    ----------
    problem
        The problem.
    runs
        Rows of the view ``latest``.
    """
    from opticoll.analysis import opticoll_version
    from opticoll.formulations import formulation
    from opticoll.instances import parse
    from opticoll.solvers.verify import prove as proof_of

    bounded = _with_bounds(problem)
    keys = [problem.key] if bounded is None else [problem.key, bounded.key]
    known = runs.astype(object).where(runs.notna(), None)
    ours = [row for row in known.to_dict("records") if _key(row) in keys]
    solves = [row for row in ours if row["method"] == "highs" and _key(row) == problem.key and row["size_variables"]]
    if not solves:
        return None
    sense = formulation(problem.formulation).sense
    flip = 1.0 if sense == "min" else -1.0
    valued = [row for row in ours if row["verified"] is True and row["objective"] is not None]
    bounding = [row for row in ours if row["bound"] is not None]
    first = min(valued, key=lambda row: flip * row["objective"], default=None)
    last = max(bounding, key=lambda row: flip * row["bound"], default=None)
    value = None if first is None else float(first["objective"])
    bound = None if last is None else float(last["bound"])
    proof = proof_of(verified=value is not None, objective=value, bound=bound, sense=sense, tol=PROVEN)[0]
    ended = [row for row in solves if row["termination"] == "optimal" and row["verified"] is True]
    highs_s = min((float(row["time_solver_cpu_s"]) for row in ended), default=None)
    size = {part: int(max(row[f"size_{part}"] for row in solves)) for part in _INDEX[8:12]}
    return BestKnown(
        value,
        bound,
        str(proof),
        sense,
        None if first is None else str(first["method"]),
        None if last is None else str(last["bound_source"]),
        parse(problem.instance).hash,
        _grade(highs_s),
        highs_s,
        float(problem.limit_s or 0.0),
        size,
        opticoll_version() or "unknown",
    )


def improved(last: BestKnown | None, result: BestKnown) -> BestKnown | None:
    """The better value and the better bound of two entries of one problem; None if ``result`` improves neither.

    An entry for a different instance is ignored. Grade, times and an exact value are those of ``last``.
    """
    from opticoll.solvers.verify import prove as proof_of

    if last is None or last.instance_hash != result.instance_hash:
        return result
    flip = 1.0 if last.sense == "min" else -1.0

    def ahead(new: float | None, old: float | None, way: float) -> bool:
        return new is not None and (old is None or flip * way * (new - old) > PROVEN * abs(old))

    value, bound = ahead(result.value, last.value, -1.0), ahead(result.bound, last.bound, 1.0)
    if not value and not bound:
        return None
    kept = replace(last, value=result.value, method=result.method, value_exact=None) if value else last
    kept = replace(kept, bound=result.bound, bound_source=result.bound_source) if bound else kept
    proof = proof_of(
        verified=kept.value is not None, objective=kept.value, bound=kept.bound, sense=kept.sense, tol=PROVEN
    )[0]
    return replace(kept, proof=str(proof))


def _with_bounds(problem: Problem) -> Problem | None:
    """The problem without ``bounds=false``: the same optimum, but analytic bounds may prove it."""
    settings = tuple(pair for pair in problem.settings if pair != ("bounds", "false"))
    return None if settings == problem.settings else replace(problem, settings=settings)


def _run(problem: Problem, method: str, limit_s: float, *, exact: bool = False) -> Run | None:
    """One run; None if the method does not support the problem."""
    from opticoll.solvers import solve
    from opticoll.solvers.task import Task

    try:
        return solve.solve(
            Task(
                problem.formulation,
                problem.instance,
                method,
                settings=dict(problem.settings),
                time_limit_s=limit_s,
                tol=PROVEN,
                threads=problem.threads,
                exact=exact,
            )
        )
    except OpticollError as error:
        _log.warning("%s: %s", method, error)
        return None


def _grade(seconds: float | None) -> str:
    return "hard" if seconds is None else "easy" if seconds < EASY_S else "medium"


# export -------------------------------------------------------------------------------------------------------------


def export_set(folder: Path, chosen: Iterable[Problem] | None = None) -> list[dict[str, Json]]:
    """Write problems as compressed MPS files with an index of their best known values.

    Parameters
    ----------
    folder
        Output folder, created if missing: ``NAME.mps.gz`` for every problem, ``index.json`` and ``index.csv``.
    chosen
        Problems to export; all by default.

    Returns
    -------
    list
        The index: names, sizes, sha256 of the file, grade, best known value and bound, proof, method, bound source and
        the command that generates the file.
        Values are those of the objective in the file, with its constant and its sense (``OBJSENSE``).

    Raises
    ------
    BadInput
        If the folder cannot be written.
    BadFile
        If a best known value belongs to a different instance than the one that the spec now describes.
    """
    from opticoll.formulations import formulation
    from opticoll.instances import parse
    from opticoll.solvers import solve

    known = best_known()
    rows: list[dict[str, Any]] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for problem in problems() if chosen is None else chosen:
            best = known.get(problem.name)
            if best is not None and best.instance_hash != parse(problem.instance).hash:
                msg = f"{problem.name}: its best known value belongs to a different instance; run `prove` for it again"
                raise BadFile(msg)
            plain, file = folder / f"{problem.name}.mps", folder / f"{problem.name}.mps.gz"
            solve.export(problem.formulation, problem.instance, plain, settings=dict(problem.settings))
            file.write_bytes(gzip.compress(plain.read_bytes(), mtime=0))
            plain.unlink()
            entry = {} if best is None else asdict(best)
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
                    **{part: (entry.get("size") or {}).get(part) for part in _INDEX[8:12]},
                    "grade": entry.get("grade"),
                    "best_value": entry.get("value"),
                    "best_value_exact": entry.get("value_exact"),
                    "best_bound": entry.get("bound"),
                    "proof": entry.get("proof", "none"),
                    "method": entry.get("method"),
                    "bound_source": entry.get("bound_source"),
                    "generator": problem.generator,
                }
            )
        rewrite(folder / "index.json", json.dumps(rows, indent=1) + "\n")
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


def problems_named(names: Sequence[str], grades: Sequence[str] = ()) -> list[Problem]:
    """The problems with these names, or all; on request, only those of some grades.

    Raises
    ------
    BadInput
        For an unknown name.
    """
    listed = {one.name: one for one in problems()}
    for name in names:
        if name not in listed:
            msg = f"unknown problem {name!r}; {nearest(name, listed)}"
            raise BadInput(msg)
    chosen = [listed[name] for name in names] if names else list(listed.values())
    known = best_known() if grades else {}
    return [one for one in chosen if not grades or (one.name in known and known[one.name].grade in grades)]


# the file of best known values --------------------------------------------------------------------------------------


def prove_all(
    chosen: Iterable[Problem], limit_s: float, methods: Sequence[str], *, only_open: bool
) -> Iterator[tuple[str, BestKnown]]:
    """Prove problems one by one, and write each result to the file of best known values."""
    from opticoll.instances import parse

    for one in chosen:
        last = best_known().get(one.name)
        if only_open and last and last.proof in PROVEN_PROOFS and last.instance_hash == parse(one.instance).hash:
            continue
        best = prove(one, limit_s, methods)
        listed = {problem.name for problem in problems()}
        known = best_known() | {one.name: best}  # read again: another process may have written it meanwhile
        _write_known({name: entry for name, entry in known.items() if name in listed})
        yield one.name, best


def improve_all(chosen: Iterable[Problem], store: Store) -> Iterator[tuple[str, BestKnown]]:
    """Take values and bounds that are better than the best known ones from a store, and write the file."""
    from opticoll.analysis.report import findings

    runs, known = findings.best_runs(store), best_known()
    for one in chosen:
        result = known_from(one, runs)
        better = None if result is None else improved(known.get(one.name), result)
        if better is not None:
            known[one.name] = better
            yield one.name, better
    _write_known(known)


def _write_known(known: Mapping[str, BestKnown]) -> None:
    rewrite(BEST, json.dumps({name: asdict(entry) for name, entry in sorted(known.items())}, indent=1) + "\n")

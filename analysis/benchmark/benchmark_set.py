"""Benchmark problems for solvers, and their best known values.

The problems are those of ``analysis/studies/solver-bench.toml``; their best known values are in
``analysis/studies/solver-bench-best.json``, solutions with these values in ``solver-bench-solutions``
(:mod:`opticoll.analysis.benchmark.best_known`). A value passed the formulation's own check; a bound was recomputed from
duals, a certificate or a closed form, so that neither relies on a solver's report.

The grade is the difficulty for HiGHS on one thread: ``easy`` if it solves the problem in less than a second of
processor time, ``medium`` if it solves it within the limit of processor time, ``hard`` otherwise. A problem whose best
known value and bound differ by more than 1e-4 is *open*.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opticoll.analysis.study.study_file import STUDIES, tasks
from opticoll.errors import BadFile, BadInput, refuse
from opticoll.nearest_names import nearest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opticoll.types import Json

STUDY = "solver-bench"
BEST = STUDIES / f"{STUDY}-best.json"
#: Best known solutions, in the format of MIPLIB for the exported files, that are small enough to ship.
SOLUTIONS = STUDIES / f"{STUDY}-solutions"
GRADES = ("easy", "medium", "hard")
SIZES = ("variables", "constraints", "nonzeros", "integers")
#: Columns of the list of problems.
COLUMNS = ("problem", "grade", *SIZES, "sense", "value", "bound", "proof")
#: Relative gap at which a best known value counts as proven.
PROVEN = 1e-6
#: Relative gap beyond which a problem counts as open.
OPEN = 1e-4


@dataclass(frozen=True)
class BenchmarkProblem:
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

    ``bound`` is our best bound, rounded outwards, ``proof`` the proof status from value and bound; ``method`` computed
    the value, ``bound_source`` names the bound. ``instance_hash`` identifies the instance, ``highs_s`` is the processor
    time of HiGHS [s] (None if it did not solve the problem within ``limit_s`` of processor time), ``opticoll`` the
    version. ``value_exact`` is the optimum as a fraction, proven in rational arithmetic, for programs of at most
    100,000 nonzeros whose data allow it. ``tried`` is what was tried on an open problem.
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
    tried: str = ""

    @property
    def open(self) -> bool:
        """Whether the best known value and bound differ by more than :data:`OPEN`."""
        if self.value is None or self.bound is None:
            return True
        return abs(self.value - self.bound) > OPEN * max(abs(self.value), abs(self.bound))

    def __str__(self) -> str:
        return f"{self.value} {self.proof} ({self.grade}, {self.method}, {self.bound_source})"


@cache
def problems(path: Path = STUDIES / f"{STUDY}.toml") -> tuple[BenchmarkProblem, ...]:
    """The distinct problems of a benchmark study, in the order of the file."""
    from opticoll.instances import parse

    result: dict[tuple[Any, ...], BenchmarkProblem] = {}
    listed = tasks(path, grouped=True)
    specs = {text: parse(text).spec for text in dict.fromkeys(str(task.instance) for task in listed)}
    for task in listed:
        spec = specs[str(task.instance)]
        settings = tuple(sorted((name, word(value)) for name, value in task.settings.items()))
        words = " ".join([str(task.formulation).partition(".")[2], spec, *(f"{k} {v}" for k, v in settings)])
        one = BenchmarkProblem(
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
        refuse(f"study {path}", f"two problems have the name {max(names, key=names.count)!r}", BadFile)
    return tuple(result.values())


def word(value: Any) -> str:
    """A setting as a study file writes it: Python's booleans in lower case."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def best_known(path: Path = BEST) -> dict[str, BestKnown]:
    """Best known values by the problem's name; empty if the file does not exist.

    Raises
    ------
    BadFile
        If the file has another format.
    """
    if not path.exists():
        return {}
    try:
        return {name: BestKnown(**entry) for name, entry in json.loads(path.read_text(encoding="utf-8")).items()}
    except (ValueError, TypeError, AttributeError) as error:
        msg = f"{path} is not a file of best known values ({error}); install opticoll again"
        raise BadFile(msg) from error


def problem_rows(names: Sequence[str], grades: Sequence[str] = (), *, only_open: bool = False) -> list[dict[str, Json]]:
    """Problems with grade, size, best known value and bound, as ``opticoll benchmark list --json`` prints them."""
    known = best_known()
    rows: list[dict[str, Json]] = []
    for problem in problems_named(names, grades):
        best = known.get(problem.name)
        if best is None or (only_open and not best.open):
            continue
        rows.append(
            {
                "problem": problem.name,
                "grade": best.grade,
                **{part: best.size.get(part) for part in SIZES},
                "sense": best.sense,
                "value": best.value,
                "bound": best.bound,
                "proof": "open" if best.open else best.proof,
                **({"tried": best.tried} if only_open else {}),
            }
        )
    return rows


def problems_named(names: Sequence[str], grades: Sequence[str] = ()) -> list[BenchmarkProblem]:
    """The problems with these names, or all; on request, only those of some grades.

    Raises
    ------
    BadInput
        For an unknown name, or if no problem has one of the grades.
    """
    listed = {one.name: one for one in problems()}
    for name in names:
        if name not in listed:
            near = nearest(name, list(listed))
            hint = near if near.startswith("did") else "`opticoll benchmark list` shows all"
            msg = f"unknown problem {name!r}; {hint}"
            raise BadInput(msg)
    chosen = [listed[name] for name in names] if names else list(listed.values())
    if not grades:
        return chosen
    known = best_known()
    chosen = [one for one in chosen if one.name in known and known[one.name].grade in grades]
    if not chosen:
        msg = f"none of the problems is graded {' or '.join(grades)}; `opticoll benchmark list NAME` shows the grades"
        raise BadInput(msg)
    return chosen

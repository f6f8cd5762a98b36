"""Best known values of the benchmark: what a submitted file is worth, and how it improves the records."""

from __future__ import annotations

import json
import math
import re
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from importlib.metadata import version as distribution_version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from opticoll.analysis.benchmark.benchmark_set import (
    BEST,
    PROVEN,
    SOLUTIONS,
    BestKnown,
    best_known,
    problems,
    problems_named,
)
from opticoll.errors import BadInput, refuse
from opticoll.formulations import formulation
from opticoll.instances import parse
from opticoll.shared_files import rewrite
from opticoll.solvers import solution_json, verify
from opticoll.solvers.process.isolation import solve_isolated
from opticoll.solvers.task import PROVEN as PROVEN_PROOFS
from opticoll.solvers.task import Proof, SolveRequest, Termination

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opticoll.analysis.benchmark.benchmark_set import BenchmarkProblem
    from opticoll.instances.topology import F64
    from opticoll.types import Json

#: Limit of the run that grades a new problem, and the most for an easy one [s of processor time].
GRADED_S, EASY_S = 10.0, 1.0
#: Largest solution that is shipped [bytes].
MOST_BYTES = 100_000
_SUFFIXES = re.compile(r"(\.sol|\.json|\.vipr)(\.gz)?$")


# one record -----------------------------------------------------------------------------------------------------------


def outward(bound: float | None, value: float | None, sense: str) -> float | None:
    """A bound that is not past the value: where rounding alone moved it there, it becomes the value."""
    if bound is None or value is None or not math.isclose(bound, value, rel_tol=PROVEN):
        return bound
    return min(bound, value) if sense == "min" else max(bound, value)


def improved(last: BestKnown, value: float | None, method: str, bound: float | None, source: str) -> BestKnown | None:
    """A record with the better value and the better bound; None if neither is better by more than rounding."""
    flip = 1.0 if last.sense == "min" else -1.0

    def ahead(new: float | None, old: float | None, way: float) -> bool:
        return new is not None and (old is None or flip * way * (new - old) > PROVEN * abs(old))

    better, tighter = ahead(value, last.value, -1.0), ahead(bound, last.bound, 1.0)
    if not better and not tighter:
        return None
    kept = replace(last, value=value, method=method, value_exact=None) if better else last
    kept = replace(kept, bound=bound, bound_source=source) if tighter else kept
    return sealed(kept)


def sealed(known: BestKnown) -> BestKnown:
    """A record with the value of its fraction, its bound rounded outwards, and the proof that follows from both."""
    if known.value_exact is not None:
        known = replace(known, value=float(Fraction(known.value_exact)))
    proof, _ = verify.prove(
        verified=known.value is not None, objective=known.value, bound=known.bound, sense=known.sense, tol=PROVEN
    )
    bound = outward(known.bound, known.value, known.sense)
    return replace(known, bound=bound, proof=str(proof))


def write_known(known: Mapping[str, BestKnown], path: Path = BEST) -> None:
    """Write the file of best known values."""
    listed = {problem.name for problem in problems()}
    entries = {name: asdict(entry) for name, entry in sorted(known.items()) if name in listed}
    rewrite(path, json.dumps(entries, indent=1) + "\n")


def begun(problem: BenchmarkProblem) -> BestKnown:
    """The record of a problem that has none: its analytic bound, and the grade by a run of HiGHS on one thread."""
    from opticoll.analysis.benchmark.runs import ProblemMatrix

    stated = ProblemMatrix.of(problem)
    outcome = solve_isolated(stated.form, "highs", SolveRequest(threads=1, cpu_limit_s=GRADED_S))
    seconds = outcome.cpu_s if outcome.termination is Termination.OPTIMAL else None
    sense = formulation(problem.formulation).sense
    tightest = (min if sense == "max" else max)(stated.data.bounds(), key=lambda bound: bound.value, default=None)
    return BestKnown(
        value=None,
        bound=None if tightest is None else tightest.value,
        proof=str(Proof.NONE),
        sense=sense,
        method=None,
        bound_source=None if tightest is None else tightest.name,
        instance_hash=parse(problem.instance).hash,
        grade="hard" if seconds is None else "easy" if seconds < EASY_S else "medium",
        highs_s=seconds,
        limit_s=GRADED_S,
        size=stated.form.size,
        opticoll=distribution_version("opticoll"),
    )


# submitted files ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Submission:
    """What a submitted file is worth.

    ``value`` and ``bound`` are recomputed; ``verdict`` compares them with the best known ``record``: ``better``,
    ``tighter bound``, ``equal``, ``worse``, or ``refused`` for the ``reason``.
    """

    problem: str
    value: float | None
    bound: float | None
    record: BestKnown | None
    verdict: str
    reason: str = ""

    def row(self) -> dict[str, Json]:
        """The submission and the record, as ``opticoll benchmark submit --json`` prints them."""
        return {
            "problem": self.problem,
            "verdict": self.verdict,
            "value": self.value,
            "bound": self.bound,
            "best known": None if self.record is None else self.record.value,
            "best bound": None if self.record is None else self.record.bound,
            "reason": self.reason or None,
        }


def problem_of(path: Path, name: str | None = None) -> BenchmarkProblem:
    """The problem that a file is named after, or the one with the given name.

    Raises
    ------
    BadInput
        If there is none.
    """
    stem = _SUFFIXES.sub("", path.name) if name is None else name
    try:
        return problems_named([stem])[0]
    except BadInput as error:
        hint = "" if name else f"; name the file {path} after its problem, or use --problem"
        msg = f"{error}{hint}"
        raise BadInput(msg) from None


def examined(problem: BenchmarkProblem, path: Path) -> Submission:
    """Check a solution or a certificate, and compare it with the record.

    Raises
    ------
    OpticollError
        If the file cannot be read, or is of another problem.
    """
    known = best_known().get(problem.name)
    checked = solution_json.check(problem.formulation, problem.instance, path, dict(problem.settings))
    if not checked["verified"]:
        return Submission(problem.name, checked["objective"], None, known, "refused", str(checked["reason"]))
    value, bound = checked["objective"], checked["bound"]
    return Submission(problem.name, value, bound, known, _compared(known, value, bound))


def _compared(known: BestKnown | None, value: float | None, bound: float | None) -> str:
    if known is None:
        return "better"
    better = improved(known, value, "", bound, "")
    if better is None:
        near = known.value is not None and value is not None and math.isclose(value, known.value, rel_tol=PROVEN)
        return "equal" if near else "worse"
    return "better" if better.value != known.value else "tighter bound"


def submit(problem: BenchmarkProblem, path: Path) -> Submission:
    """Examine a file, and add it to the records of this installation if it is better than the record, or the first.

    Raises
    ------
    BadInput
        If the record is proven optimal, so that a better value contradicts the proof.
    OpticollError
        As :func:`examined`.
    """
    result = examined(problem, path)
    if result.verdict not in ("better", "tighter bound"):
        return result
    known = best_known().get(problem.name) or begun(problem)
    better = improved(known, result.value, f"submitted ({path.name})", result.bound, f"submitted ({path.name})")
    assert better is not None
    if known.proof in PROVEN_PROOFS and better.value != known.value:
        refuse(path, f"its value {result.value!r} passes the proven optimum {known.value!r}; please report this")
    write_known(best_known() | {problem.name: better})
    if better.value != known.value:
        model, instance = formulation(problem.formulation), parse(problem.instance)
        _ship(problem, solution_json.read_start(model, instance, path, dict(problem.settings)))
    return result


def _ship(problem: BenchmarkProblem, values: Mapping[str, F64]) -> None:
    """Keep a solution with the records, in place of the last record's, if it is small and has the program's columns."""
    from opticoll.analysis.benchmark.runs import ProblemMatrix, packed_solution

    stated = ProblemMatrix.of(problem)
    x = verify.pack(stated.form, stated.data._unfold(values))
    target = SOLUTIONS / f"{problem.name}.sol.gz"
    target.unlink(missing_ok=True)
    content = b"" if x is None else packed_solution(stated, np.asarray(x))
    if content and len(content) <= MOST_BYTES:
        SOLUTIONS.mkdir(exist_ok=True)
        rewrite(target, content)

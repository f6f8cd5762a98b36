r"""Verify certificates in VIPR format, and compare their problem with a formulation's.

The proof is that of the stand-alone checker, :mod:`~opticoll.solvers.exact.vipr_check`, which shares no code with the
writer.

A file states a formulation's problem on an instance if it has the same variables, integers and objective, and its
constraints describe the same half-spaces as the bounds and rows of the matrix. Variables are matched by name if the
file has the formulation's names, in any order, and otherwise by position. Constraints may have any order, names and
positive multiples; an equation is two half-spaces.
"""

from __future__ import annotations

import dataclasses
import hashlib
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain
from typing import TYPE_CHECKING, NoReturn

from opticoll.errors import BadFile
from opticoll.file_contents import check_file
from opticoll.formulations.model import forms_of, states
from opticoll.solvers.exact import vipr_check
from opticoll.solvers.exact.exact_form import ExactForm
from opticoll.solvers.exact.vipr_file import MOST_BYTES, REMEDY, safe_names
from opticoll.solvers.task import check_record

if TYPE_CHECKING:
    from pathlib import Path

    from opticoll.formulations import Formulation
    from opticoll.instances import Instance
    from opticoll.solvers.task import CheckRecord
    from opticoll.types import Settings


@dataclass(frozen=True)
class CertificateVerdict:
    """The statement that a certificate proves.

    Parameters
    ----------
    infeasible
        Whether there is provably no solution.
    low, high
        Otherwise the ends of the interval that contains the optimal value; None where infinite.
    constraints, derivations, nonzeros, solutions
        Sizes of the file. ``nonzeros`` are those of the constraints.
    """

    infeasible: bool
    low: Fraction | None
    high: Fraction | None
    constraints: int
    derivations: int
    nonzeros: int
    solutions: int

    @property
    def finding(self) -> str:
        """What is proven, in words."""
        if self.infeasible:
            return "there is no solution"
        if self.low is not None and self.low == self.high:
            return f"the optimal value is {self.low}"
        low, high = ("infinity" if end is None else end for end in (self.low, self.high))
        return f"the optimal value is between {low} and {high}"


class Unproven(BadFile):
    """A certificate whose problem is another or whose proof does not hold, for ``reason``."""

    def __init__(self, path: Path, reason: str) -> None:
        self.reason = reason
        super().__init__(f"certificate {path}, {reason}")


class OtherProblem(Unproven):
    """A certificate of another problem."""


def verify(path: Path, form: ExactForm | None = None) -> CertificateVerdict:
    """Verify a certificate.

    Parameters
    ----------
    form
        The problem that the file must state; its offset is added to the values of the verdict. If None, any problem.

    Raises
    ------
    BadFile
        If the file is not a certificate.
    Unproven
        If it states another problem or a derivation fails; the message names the first wrong place.
    """
    return _verdict(_proven(path), path, form)


def _proven(path: Path) -> vipr_check.Checker:
    """The contents of a certificate whose proof holds; errors as :func:`verify`."""
    where = f"certificate {path}"
    check_file(path, MOST_BYTES, REMEDY, where)
    try:
        return vipr_check.checked(str(path))
    except vipr_check.Malformed as error:
        msg = f"{where}, {error}"
        raise BadFile(msg) from None
    except vipr_check.Refused as error:
        raise Unproven(path, str(error)) from None
    except OSError as error:
        msg = f"{where} cannot be read ({error}); {REMEDY}"
        raise BadFile(msg) from None


def _verdict(proof: vipr_check.Checker, path: Path, form: ExactForm | None) -> CertificateVerdict:
    """What a proof proves of a problem, of any if None."""
    if form is not None:
        _refuse_other_problem(form, proof, path)
    offset = Fraction(0) if form is None else form.offset
    return CertificateVerdict(
        proof.infeasible,
        None if proof.low is None else proof.low + offset,
        None if proof.high is None else proof.high + offset,
        proof.first,
        proof.derivations,
        sum(len(proof.known[i].row) for i in range(proof.first)),
        proof.solutions,
    )


def check_certificate(model: type[Formulation], instance: Instance, path: Path, parameters: Settings) -> CheckRecord:
    """Verify a certificate in VIPR format: its problem is the formulation's matrix, and its proof holds.

    The matrix is built again, as for the exact solve and then in every modelling layer, until one agrees.

    Returns
    -------
    A record as returned by :func:`opticoll.solvers.solution_json.check`, with ``objective_exact``, a fraction as a
    string, None unless the interval is a point, and ``certificate``, None if it fails: ``infeasible``, ``low``,
    ``high`` (fractions as strings), ``constraints``, ``derivations``, ``nonzeros``, ``solutions``.

    Raises
    ------
    BadFile
        If the file is not a certificate; also for a formulation whose data are a solution: the file does not hold it.
    """
    from opticoll.solvers.exact.prove import exact_problem
    from opticoll.solvers.methods import prepared

    if model._needs is not None:
        msg = f"{path}: no certificate is one of {model.name}: its data are a solution of {model._needs}; check that"
        raise BadFile(msg)
    problem = prepared(model, instance, parameters)
    verdict, reason = None, ""
    try:
        proof = _proven(path)
        for form in (None, *forms_of(model)):  # perhaps written from another layer
            try:
                verdict = _of_either_sense(proof, path, exact_problem(problem, form))
                break
            except OtherProblem as error:
                reason = reason or error.reason
    except Unproven as error:
        reason = error.reason
    record = check_record(model, instance, parameters, "" if verdict is not None else reason)
    record |= {"verified": verdict is not None, "objective_exact": None, "certificate": None}
    if verdict is None:
        return record
    ends = (verdict.low, verdict.high) if problem.sense == "max" else (verdict.high, verdict.low)
    point = verdict.low is not None and verdict.low == verdict.high
    record["objective"], record["bound"] = (None if end is None else float(end) for end in ends)
    record["bound_source"] = None if ends[1] is None else "certificate"
    record["objective_exact"] = str(verdict.low) if point else None
    record["notes"].append(f"the certificate proves that {verdict.finding}")
    if states(model, "metrics") and record["objective"] is not None:
        record["metrics"] = dict(problem.metrics(record["objective"]))
    sizes = dataclasses.asdict(verdict)
    ends_stated = {name: None if sizes[name] is None else str(sizes[name]) for name in ("low", "high")}
    record["certificate"] = sizes | ends_stated
    return record


def _of_either_sense(proof: vipr_check.Checker, path: Path, form: ExactForm) -> CertificateVerdict:
    """What a proof proves of a form, or of the minimization as which a maximization is exported."""
    try:
        return _verdict(proof, path, form)
    except OtherProblem:
        if form.sense == "min":
            raise
        with suppress(OtherProblem):
            cost = tuple(-value for value in form.cost)
            verdict = _verdict(proof, path, replace(form, cost=cost, offset=-form.offset, sense="min"))
            low, high = (None if end is None else -end for end in (verdict.high, verdict.low))
            return replace(verdict, low=low, high=high)
        raise


def _refuse_other_problem(form: ExactForm, proof: vipr_check.Checker, path: Path) -> None:
    """Refuse a file that has a half-space which the form lacks, or omits one, or other variables or another goal."""

    def differs(what: str) -> NoReturn:
        raise OtherProblem(path, f"the file states another problem: {what}")

    columns = len(form.cost)
    if proof.size != columns:
        differs(f"{proof.size} variables instead of {columns}")
    names = safe_names(form.column_names())
    place = {name: j for j, name in enumerate(names)}
    known = len(place) == columns and set(proof.names) == set(names)
    column = [place[name] for name in proof.names] if known else list(range(columns))
    if {column[j] for j in proof.integers} != {j for j, whole in enumerate(form.integer.tolist()) if whole}:
        differs("different integer variables")
    sense = "min" if proof.sign > 0 else "max"
    if sense != form.sense:
        differs(f"{sense} instead of {form.sense}")
    if {column[j]: value for j, value in proof.objective.items()} != {j: c for j, c in enumerate(form.cost) if c}:
        differs("a different objective")
    missing: dict[bytes, int] = {}  # rows by their sides, and columns j by their bounds, numbered -1 - j
    bounds, sides = (form.col_lower, form.col_upper), (form.row_lower, form.row_upper)
    of_columns = ((-1 - j, [(j, Fraction(1))], *ends) for j, ends in enumerate(zip(*bounds, strict=True)))
    of_rows = ((i, list(form.row(i)), *ends) for i, ends in enumerate(zip(*sides, strict=True)))
    for row, entries, low, high in chain(of_columns, of_rows):
        for side, end in ((1, low), (-1, high)):
            if end is not None and (entries or side * end > 0):  # 0 >= 0 excludes nothing
                missing[_half_space(side, entries, end)] = row
    seen: set[bytes] = set()
    for i in range(proof.first):
        stated = proof.known[i]
        entries = sorted((column[j], value) for j, value in stated.row.items())
        for side in (1, -1):
            if stated.sense in (0, side) and (entries or side * stated.rhs > 0):
                key = _half_space(side, entries, stated.rhs)
                if missing.pop(key, None) is not None:
                    seen.add(key)
                elif key not in seen:
                    differs(f"the formulation has no constraint like number {i} of the file")
    if missing:
        row = min(missing.values())
        what = f"the bounds of variable {names[-1 - row]}" if row < 0 else f"row {safe_names(form.row_names())[row]}"
        differs(f"it omits {what}")


def _half_space(side: int, entries: list[tuple[int, Fraction]], end: Fraction) -> bytes:
    """Digest of the half-space ``side * entries x >= side * end``; equal half-spaces have the same digest."""
    scale = Fraction(side) if not entries else side / abs(entries[0][1])
    scaled = (value if scale == 1 else scale * value for value in (end, *(value for _, value in entries)))
    # Hexadecimal: Python refuses to print more than 4300 decimal digits.
    words = [f"{value.numerator:x}/{value.denominator:x}" for value in scaled]
    return hashlib.blake2b(f"{[j for j, _ in entries]} {words}".encode(), digest_size=20).digest()

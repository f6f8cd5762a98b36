r"""Verify certificates in VIPR format in exact arithmetic, and compare their problem with a formulation's.

Every derivation is checked by the rules of the format while the file is read; a derived constraint is dropped after
its stated last use. The arithmetic is that of python-flint. The stand-alone checker
:mod:`~opticoll.solvers.exact.vipr_check` does the same without any of this code.

A file states a formulation's problem on an instance if it has the same variables, integers and objective, and its
constraints describe the same half-spaces as the bounds and rows of the matrix. Variables are matched by name if the
file has the formulation's names, in any order, and otherwise by position. Constraints may have any order, names and
positive multiples; an equation is two half-spaces.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from opticoll.errors import BadFile, NoSolution
from opticoll.formulations.model import forms_of, states
from opticoll.solvers.exact.exact_form import ExactForm, Leaf
from opticoll.solvers.exact.vipr_file import Derivation, LinearRow, Reader, safe_names
from opticoll.solvers.task import check_record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from flint import fmpq

    from opticoll.formulations import Formulation
    from opticoll.instances import Instance
    from opticoll.solvers.exact.prove import Arrays
    from opticoll.solvers.task import CheckRecord
    from opticoll.types import Settings

#: Largest number in a sum [bits].
MOST_BITS = 4_000_000
#: Largest program (nonzeros, columns) that is solved to find multipliers that a file omits.
MOST_COMPLETED = 200_000
_NO_ASSUMPTIONS: frozenset[int] = frozenset()


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
    reader = Reader(path)
    return _Proof(reader).verdict(None if form is None else _Problem(form, reader))


class Unproven(BadFile):
    """A valid certificate file whose problem is another or whose proof does not hold, for ``reason``."""

    def __init__(self, reader: Reader, reason: str) -> None:
        self.reason = f"{reader.where}: {reason}"
        super().__init__(f"certificate {reader.path}, {self.reason}")


class OtherProblem(Unproven):
    """A certificate of another problem."""


def check_certificate(
    model: type[Formulation], instance: Instance, path: Path, parameters: Settings, needed: Arrays | None = None
) -> CheckRecord:
    """Verify a certificate in VIPR format: its problem is the formulation's matrix, and its proof holds.

    The matrix is built again, as for the exact solve and then in every modelling layer, until one agrees. ``needed`` is
    the solution from which the data are taken, if any (:func:`opticoll.solvers.exact.prove.read_needed`).

    Returns
    -------
    A record as returned by :func:`opticoll.solvers.solution_json.check`, with ``objective_exact``, a fraction as a
    string, None unless the interval is a point, and ``certificate``, None if it fails: ``infeasible``, ``low``,
    ``high`` (fractions as strings), ``constraints``, ``derivations``, ``nonzeros``, ``solutions``.

    Raises
    ------
    BadFile
        If the file is not a certificate.
    """
    from opticoll.solvers.exact.prove import exact_problem, in_floats
    from opticoll.solvers.methods import prepared

    problem = prepared(model, instance, parameters, None if needed is None else in_floats(needed))
    verdict, reason = None, ""
    for form in (None, *forms_of(model)):
        try:
            verdict = _verified(path, exact_problem(problem, form, needed))
        except OtherProblem as error:  # perhaps written from another layer
            reason = reason or error.reason
            continue
        except Unproven as error:
            reason = error.reason
        break
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
    record["certificate"] = {
        "infeasible": verdict.infeasible,
        "low": None if verdict.low is None else str(verdict.low),
        "high": None if verdict.high is None else str(verdict.high),
        "constraints": verdict.constraints,
        "derivations": verdict.derivations,
        "nonzeros": verdict.nonzeros,
        "solutions": verdict.solutions,
    }
    return record


def _verified(path: Path, form: ExactForm) -> CertificateVerdict:
    """Verify a certificate of a form, or of the minimization as which a maximization is exported."""
    try:
        return verify(path, form)
    except OtherProblem:
        if form.sense == "min":
            raise
        with suppress(OtherProblem):
            cost = tuple(-value for value in form.cost)
            verdict = verify(path, replace(form, cost=cost, offset=-form.offset, sense="min"))
            low, high = (None if end is None else -end for end in (verdict.high, verdict.low))
            return replace(verdict, low=low, high=high)
        raise


class _Problem:
    """The half-spaces of a form that a file must contain."""

    def __init__(self, form: ExactForm, reader: Reader) -> None:
        self.form, self.reader = form, reader
        columns = len(form.cost)
        if len(reader.variables) != columns:
            self.differs(f"{len(reader.variables)} variables instead of {columns}")
        names = safe_names(form.column_names())
        place = {name: j for j, name in enumerate(names)}
        known = len(place) == columns and set(reader.variables) == set(names)
        self.column = [place[name] for name in reader.variables] if known else list(range(columns))
        if {self.column[j] for j in reader.integer} != {j for j, whole in enumerate(form.integer.tolist()) if whole}:
            self.differs("different integer variables")
        if reader.sense != form.sense:
            self.differs(f"{reader.sense} instead of {form.sense}")
        objective = {self.column[j]: str(value) for j, value in reader.objective.items()}
        if objective != {j: str(c) for j, c in enumerate(form.cost) if c}:
            self.differs("a different objective")
        self.missing: dict[bytes, int] = {}
        for j, (low, high) in enumerate(zip(form.col_lower, form.col_upper, strict=True)):
            self.add(-1 - j, [(j, Fraction(1))], low, high)
        for i, (low, high) in enumerate(zip(form.row_lower, form.row_upper, strict=True)):
            self.add(i, list(form.row(i)), low, high)
        self.seen: set[bytes] = set()

    def differs(self, what: str) -> NoReturn:
        """Refuse a file that states another problem."""
        reason = f"the file states another problem: {what}"
        raise OtherProblem(self.reader, reason)

    def add(self, row: int, entries: list[tuple[int, Fraction]], low: Fraction | None, high: Fraction | None) -> None:
        """Require both sides of a row, or of a column's bounds, numbered ``-1 - column``."""
        for side, end in ((1, low), (-1, high)):
            if end is not None and (entries or side * end > 0):  # 0 >= 0 excludes nothing
                self.missing[_half_space(side, entries, end)] = row

    def match(self, row: LinearRow) -> None:
        """Mark the half-spaces of a constraint of the file as found."""
        entries = sorted((self.column[j], value) for j, value in zip(row.columns, row.coefficients, strict=True))
        for side in (1, -1):
            if row.sense in (0, side) and (entries or side * row.rhs > 0):
                key = _half_space(side, entries, row.rhs)
                if self.missing.pop(key, None) is not None:
                    self.seen.add(key)
                elif key not in self.seen:
                    self.differs(f"the formulation has no constraint like {row.name[:40]!r}")

    def complete(self) -> None:
        """Refuse a file that omits a half-space."""
        if self.missing:
            row = min(self.missing.values())
            column = f"the bounds of variable {safe_names(self.form.column_names())[-1 - row]}" if row < 0 else ""
            name = column or f"row {safe_names(self.form.row_names())[row]}"
            self.differs(f"it omits {name}")


def _half_space(side: int, entries: Sequence[tuple[int, Any]], end: Any) -> bytes:
    """Digest of the half-space ``side * entries x >= side * end``; equal half-spaces have the same digest."""
    scale = side if not entries else side / abs(entries[0][1])
    words = (f"{j} {scale * value}" for j, value in entries)
    return hashlib.blake2b(f"{' '.join(words)} >= {scale * end}".encode(), digest_size=20).digest()


class _Proof:
    """The constraints of a certificate that may still be used, each with the assumptions on which it depends."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.sign = 1 if reader.sense == "min" else -1
        self.rows: dict[int, LinearRow] = {}
        self.assumed: dict[int, frozenset[int]] = {}  # of derived constraints
        self.cutoffs: dict[int, fmpq] = {}  # by assumption: smallest value, as if minimized, of all other points
        self.best: fmpq | None = None  # as if minimized
        self.global_bounds: dict[tuple[int, int], tuple[fmpq, frozenset[int]]] = {}

    def refuse(self, reason: str) -> NoReturn:
        raise Unproven(self.reader, reason)

    def verdict(self, problem: _Problem | None) -> CertificateVerdict:
        """Verify the whole file."""
        reader, solutions = self.reader, 0
        self.read_constraints(problem)
        nonzeros = sum(len(row.columns) for row in self.rows.values())
        claim = reader.claim()
        low, high = claim or (None, None)
        if low is not None and high is not None and low > high:
            self.refuse("the interval of the claim is empty")
        if claim is not None and low is None and high is None:
            self.refuse("the claim, from -infinity to infinity, says nothing about the optimal value")
        for name, x in reader.solutions():
            self.check_solution(name, x)
            solutions += 1
        primal, dual = (high, low) if self.sign > 0 else (low, high)
        if primal is not None and (self.best is None or self.best > self.sign * primal):
            self.refuse(f"no solution has the objective value {_short(primal)} or a better one")
        last, assumed, derivations = self.derive()
        if claim is None or dual is not None:
            self.conclude(last, assumed, dual)
        offset = Fraction(0) if problem is None else problem.form.offset
        return CertificateVerdict(
            claim is None,
            None if low is None else _fraction(low) + offset,
            None if high is None else _fraction(high) + offset,
            reader.count,
            derivations,
            nonzeros,
            solutions,
        )

    def read_constraints(self, problem: _Problem | None) -> None:
        """Read the constraints that the file states, which must be those of the problem."""
        for i, row in enumerate(self.reader.constraints()):
            if problem is not None:
                problem.match(row)
            self.rows[i] = row
            for side, j, value in _bounds(row):
                old = self.global_bounds.get((side, j), (value, _NO_ASSUMPTIONS))[0]
                self.global_bounds[side, j] = (max if side > 0 else min)(old, value), _NO_ASSUMPTIONS
        if problem is not None:
            problem.complete()

    def derive(self) -> tuple[LinearRow, frozenset[int], int]:
        """Verify all derivations; the last derived constraint, its assumptions, and the number of derivations."""
        from flint import fmpq

        expiring: dict[int, list[int]] = {}
        last, assumed, count = LinearRow("", 0, fmpq(0), (), ()), _NO_ASSUMPTIONS, 0
        for count, derivation in enumerate(self.reader.derivations(), start=1):
            position = self.reader.count + count - 1
            last = self.rows[position] = derivation.stated
            assumed = self.assumed[position] = self.assumptions(derivation, position)
            if derivation.last_use >= 0:
                expiring.setdefault(max(derivation.last_use, position), []).append(position)
            for i in expiring.pop(position, ()):
                del self.rows[i], self.assumed[i]
        return last, assumed, count

    def check_solution(self, name: str, x: Mapping[int, fmpq]) -> None:
        """Refuse a solution that is fractional or violates a constraint."""
        if any(x[j].q != 1 for j in x.keys() & self.reader.integer):
            self.refuse(f"solution {name[:40]!r} has a fractional value of an integer variable")
        for i, row in self.rows.items():
            excess = self.product(zip(row.columns, row.coefficients, strict=True), x) - row.rhs
            if (row.sense <= 0 and excess > 0) or (row.sense >= 0 and excess < 0):
                self.refuse(f"solution {name[:40]!r} violates constraint {i}, {row.name[:40]!r}")
        value = self.sign * self.product(self.reader.objective.items(), x)
        self.best = value if self.best is None else min(self.best, value)

    def product(self, row: Iterable[tuple[int, fmpq]], x: Mapping[int, fmpq]) -> fmpq:
        """Scalar product of sparse vectors."""
        from flint import fmpq

        total = fmpq(0)
        for j, value in row:
            if j in x:
                total = self.bounded(total + value * x[j])
        return total

    def bounded(self, value: fmpq) -> fmpq:
        """Return the number, or refuse one too large to be verified in reasonable time."""
        if value.height_bits() > MOST_BITS:
            self.refuse(f"a sum has more than {MOST_BITS} bits")
        return value

    def conclude(self, last: LinearRow, assumed: frozenset[int], dual: fmpq | None) -> None:
        """Refuse a last constraint that does not imply the claim, or implies it only under assumptions."""
        objective = self.reader.objective
        if dual is None:
            implied = _absurd(last)
        else:
            implied = _dominates(last, LinearRow("", self.sign, dual, tuple(objective), tuple(objective.values())))
        if not implied:
            self.refuse("the last derived constraint does not imply the claim")
        for i in assumed:
            if dual is None or i not in self.cutoffs or self.cutoffs[i] < self.sign * dual:
                self.refuse(f"the last derived constraint depends on the assumption {i}")

    def assumptions(self, derivation: Derivation, position: int) -> frozenset[int]:
        """Verify a derivation and return the assumptions on which it depends."""
        used = [self.known(i) for i in derivation.used]
        if derivation.kind == "asm":
            return frozenset((position,))
        if derivation.kind == "sol":
            self.cutoffs[position] = self.cutoff(derivation.stated)
            return frozenset((position,))
        if derivation.kind == "incomplete":
            return self.combination(*self.with_multipliers(derivation, used))
        if derivation.kind == "uns":
            return self.unsplit(derivation, used)
        return self.combination(derivation, used)

    def known(self, i: int) -> LinearRow:
        row = self.rows.get(i)
        if row is None:
            self.refuse(f"it uses constraint {i} after its last use")
        return row

    def whole(self, row: LinearRow) -> bool:
        """Whether a row has integer values at all points with integer values of the integer variables."""
        return all(a.q == 1 for a in row.coefficients) and self.reader.integer.issuperset(row.columns)

    def cutoff(self, stated: LinearRow) -> fmpq:
        """Smallest value, as if minimized, of the points that a cutoff excludes."""
        from flint import fmpq

        objective = self.reader.objective
        if dict(zip(stated.columns, stated.coefficients, strict=True)) != objective or stated.sense != -self.sign:
            self.refuse("a cutoff bounds the objective from the wrong side")
        whole, rhs = self.whole(stated), self.sign * stated.rhs
        if self.best is None or self.best > rhs + int(whole):
            self.refuse("no solution reaches the cutoff")
        return fmpq(rhs.floor() + 1) if whole else rhs

    def unsplit(self, derivation: Derivation, used: list[LinearRow]) -> frozenset[int]:
        """Verify that the constraint holds in two cases that cover all integer points."""
        one, case, other, opposite = used
        i, half, k, second = derivation.used
        for index, row in ((i, one), (k, other)):
            if not _dominates(row, derivation.stated):
                self.refuse(f"constraint {index} does not imply the constraint")
        below, above = (case, opposite) if case.sense < 0 else (opposite, case)
        if not (
            below.sense < 0 < above.sense
            and (below.columns, below.coefficients) == (above.columns, above.coefficients)
            and above.rhs - below.rhs == 1
            and below.rhs.q == 1
            and self.whole(below)
        ):
            self.refuse("the two cases do not cover all integer points")
        return (self.under(i) - {half}) | (self.under(k) - {second})

    def under(self, i: int) -> frozenset[int]:
        return self.assumed.get(i, _NO_ASSUMPTIONS)

    def combination(self, derivation: Derivation, used: list[LinearRow]) -> frozenset[int]:
        """Verify a linear combination, completed from bounds if it is weak, or rounded."""
        from flint import fmpq

        sense, rhs, total, assumed = self.added(derivation, used)
        if derivation.kind == "weak":
            sense = sense or derivation.stated.sense
            rhs, total, assumed = self.completed(derivation, sense, rhs, total, assumed)
        entries = sorted((j, value) for j, value in total.items() if value)
        row = LinearRow("", sense, rhs, tuple(j for j, _ in entries), tuple(value for _, value in entries))
        if derivation.kind == "rnd":
            if sense == 0 or not self.whole(row):
                self.refuse("the combination cannot be rounded")
            row = LinearRow("", sense, fmpq(rhs.ceil() if sense > 0 else rhs.floor()), row.columns, row.coefficients)
        if not _dominates(row, derivation.stated):
            self.refuse("the combination does not imply the constraint")
        return assumed

    def added(self, derivation: Derivation, used: list[LinearRow]) -> tuple[int, fmpq, dict[int, fmpq], frozenset[int]]:
        """Sense, right-hand side, coefficients and assumptions of the sum of the rows used, times their factors."""
        from flint import fmpq

        total: dict[int, fmpq] = {}
        rhs, signs, assumed = fmpq(0), set(), _NO_ASSUMPTIONS
        for i, row, factor in zip(derivation.used, used, derivation.factors, strict=True):
            if row.sense and factor:
                signs.add(row.sense if factor > 0 else -row.sense)
            rhs = self.bounded(rhs + factor * row.rhs)
            for j, value in zip(row.columns, row.coefficients, strict=True):
                old = total.get(j)
                total[j] = factor * value if old is None else self.bounded(old + factor * value)
            if i in self.assumed and not assumed >= self.assumed[i]:
                assumed |= self.assumed[i]
        if len(signs) > 1:
            self.refuse("it adds <= to >=")
        return signs.pop() if signs else 0, rhs, total, assumed

    def with_multipliers(self, derivation: Derivation, used: list[LinearRow]) -> tuple[Derivation, list[LinearRow]]:
        """Find the multipliers that a derivation omits: of the problem's constraints and of those it lists."""
        from flint import fmpq

        from opticoll.solvers.exact.prove import solve_apart

        stated, columns = derivation.stated, len(self.reader.variables)
        rows = {i: self.rows[i] for i in range(self.reader.count)} | dict(zip(derivation.used, used, strict=True))
        size = max(columns, sum(len(row.columns) for row in rows.values()))
        if stated.sense == 0 or size > MOST_COMPLETED:
            self.refuse("it omits the multipliers of an equation or of a large program; complete the file")
        try:
            answer = solve_apart(_extreme(stated, list(rows.values()), columns))
        except NoSolution as error:
            self.refuse(f"its multipliers were not found: {error}")
        if answer.status == "unbounded":
            self.refuse("the constraints that it lists do not imply the constraint")
        [leaf] = answer.nodes
        assert isinstance(leaf, Leaf)
        numbers, flip = list(rows), 1 if leaf.farkas else stated.sense
        factors = {numbers[k]: fmpq(flip * y.numerator, y.denominator) for k, y in leaf.y.items()}
        result = replace(derivation, kind="lin", used=tuple(factors), factors=tuple(factors.values()))
        return result, [rows[i] for i in factors]

    def completed(
        self, derivation: Derivation, sense: int, rhs: fmpq, total: dict[int, fmpq], assumed: frozenset[int]
    ) -> tuple[fmpq, dict[int, fmpq], frozenset[int]]:
        """Add multiples of bounds until the coefficients are the stated ones."""
        from flint import fmpq

        listed: dict[tuple[int, int], tuple[fmpq, frozenset[int]]] = {}
        for side, j, i, value in derivation.bounds:
            if (side, j, value) not in _bounds(self.known(i)):
                self.refuse(f"constraint {i} does not bound variable {j} by {_short(value)}")
            listed[side, j] = value, self.under(i)
        stated = dict(zip(derivation.stated.columns, derivation.stated.coefficients, strict=True))
        for j in total.keys() | stated.keys():
            gap = stated.get(j, fmpq(0)) - total.get(j, fmpq(0))
            if gap:
                side = sense if gap > 0 else -sense
                bound = listed.get((side, j)) or self.global_bounds.get((side, j))
                if side == 0 or bound is None:
                    self.refuse(f"a bound of variable {j} is missing")
                rhs = self.bounded(rhs + gap * bound[0])
                assumed |= bound[1]
        return rhs, stated, assumed


def _extreme(stated: LinearRow, rows: Sequence[LinearRow], columns: int) -> ExactForm:
    """The program for the extreme left-hand side of ``stated`` under rows, whose duals are the multipliers sought."""
    cost = [Fraction(0)] * columns
    for j, value in zip(stated.columns, stated.coefficients, strict=True):
        cost[j] = stated.sense * _fraction(value)
    return ExactForm(
        np.cumsum([0, *(len(row.columns) for row in rows)]),
        np.array([j for row in rows for j in row.columns], dtype=np.int64),
        tuple(_fraction(value) for row in rows for value in row.coefficients),
        tuple(None if row.sense < 0 else _fraction(row.rhs) for row in rows),
        tuple(None if row.sense > 0 else _fraction(row.rhs) for row in rows),
        (None,) * columns,
        (None,) * columns,
        tuple(cost),
        "min",
        np.zeros(columns, dtype=bool),
    )


def _absurd(row: LinearRow) -> bool:
    """Whether a row excludes every point, like 0 >= 1."""
    return not row.columns and ((row.sense >= 0 and row.rhs > 0) or (row.sense <= 0 and row.rhs < 0))


def _dominates(row: LinearRow, other: LinearRow) -> bool:
    """Whether a row is absurd, or has the other's coefficients and is at least as strong."""
    if _absurd(row):
        return True
    if row.columns != other.columns or row.coefficients != other.coefficients:
        return False
    if other.sense == 0:
        return row.sense == 0 and row.rhs == other.rhs
    return row.sense in (0, other.sense) and (row.rhs >= other.rhs if other.sense > 0 else row.rhs <= other.rhs)


def _bounds(row: LinearRow) -> list[tuple[int, int, fmpq]]:
    """The bounds (side 1: lower, -1: upper; column; value) that a row on one column states."""
    if len(row.columns) != 1:
        return []
    [j], [a] = row.columns, row.coefficients
    senses = (1, -1) if row.sense == 0 else (row.sense if a > 0 else -row.sense,)
    return [(side, j, row.rhs / a) for side in senses]


def _fraction(value: fmpq) -> Fraction:
    return Fraction(int(value.p), int(value.q))


def _short(value: fmpq) -> str:
    text = str(value)
    return text if len(text) <= 40 else f"{text[:37]}..."

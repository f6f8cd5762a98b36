r"""Closed forms through exact points: by residues of the parameters, never with more freedom than points.

A shape with c free coefficients is determined by c + 1 points, one more than it needs, in rational arithmetic: the
linear system :math:`y \sum_k b_k m_k(x) = \sum_k a_k m_k(x)` must have one solution up to scaling. It then must hold on
as many further points, all of them larger, which the fit did not use. So a class of m points admits at most
m/2 - 1 free coefficients. Smaller points where the form fails are its exceptions; they must be fewer than the points
where it holds.

Points are split by the residues of their variables modulo a period p: a quasi-polynomial is a polynomial on each class.
Of several periods the one with the most points explained per free coefficient wins, and of equal ones the smallest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from flint import fmpq, fmpq_mat

from opticoll.analysis.conjectures.closed_forms import ClosedForm, Point, Term, term_value

#: Largest period that is tried, by the number of variables.
PERIODS = {1: 12, 2: 4}
#: Degrees of numerator and denominator that are tried for one variable, and of polynomials in several.
DEGREES = ((0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (3, 0), (2, 1), (1, 2), (4, 0), (3, 1), (2, 2))
SEVERAL_DEGREES = (0, 1, 2, 3)
#: Terms in a parameter D and a power b^D that are tried, as exponents of the two.
POWERS: tuple[tuple[Term, ...], ...] = (
    ((0, 1),),
    ((1, 1),),
    ((0, 1), (0, 0)),
    ((1, 1), (0, 1)),
    ((1, 1), (0, 1), (0, 0)),
    ((1, 1), (0, 1), (1, 0), (0, 0)),
)


@dataclass(frozen=True)
class Shape:
    """Terms of numerator and denominator, and the base of the power in them."""

    above: tuple[Term, ...]
    below: tuple[Term, ...]
    base: int | None = None

    @property
    def coefficients(self) -> int:
        """Number of free coefficients."""
        return len(self.above) + len(self.below) - 1


@dataclass(frozen=True)
class Fit:
    """A closed form on a class of points.

    Parameters
    ----------
    form, coefficients
        The form, and the number of coefficients that were free.
    fitted
        The points that determine it.
    held_back
        The further points where it holds.
    exceptions
        The points where it fails, smaller than all fitted ones.
    """

    form: ClosedForm
    coefficients: int
    fitted: tuple[Point, ...]
    held_back: tuple[Point, ...]
    exceptions: tuple[Point, ...]


@dataclass(frozen=True)
class ResidueClass:
    """The points with the same residues modulo a period, and the form that holds on them, if one was found."""

    residues: Point
    points: tuple[Point, ...]
    fit: Fit | None


def shapes(variables: int, base: int | None) -> list[Shape]:
    """Shapes to try, those with fewest free coefficients first."""
    found: list[Shape] = []
    if variables == 1:
        for above, below in DEGREES:
            found.append(Shape(tuple((k,) for k in range(above + 1)), tuple((k,) for k in range(below + 1))))
        if base is not None:
            found += [Shape(terms, ((0, 0),), base) for terms in POWERS]
    else:
        for degree in SEVERAL_DEGREES:
            terms = tuple(term for term in product(range(degree + 1), repeat=variables) if sum(term) <= degree)
            found.append(Shape(terms, ((0,) * variables,)))
    return sorted(found, key=lambda shape: shape.coefficients)


def solved(shape: Shape, points: Mapping[Point, Fraction], variables: tuple[str, ...]) -> ClosedForm | None:
    """The only form of a shape through some points; None if there is none or several."""
    rows = []
    for point, value in points.items():
        rows += [term_value(term, point, shape.base) for term in shape.above]
        rows += [-value * term_value(term, point, shape.base) for term in shape.below]
    width = shape.coefficients + 1
    matrix = fmpq_mat(len(points), width, [fmpq(one.numerator, one.denominator) for one in rows])
    reduced, rank = matrix.rref()
    if rank != width - 1:
        return None
    pivots = [next(j for j in range(width) if reduced[i, j] != 0) for i in range(rank)]
    free = next(j for j in range(width) if j not in pivots)
    solution = [Fraction(0)] * width
    solution[free] = Fraction(1)
    for i, j in enumerate(pivots):
        entry = reduced[i, free]
        solution[j] = -Fraction(int(entry.p), int(entry.q))
    above = dict(zip(shape.above, solution, strict=False))
    below = dict(zip(shape.below, solution[len(shape.above) :], strict=True))
    if not any(below.values()):
        return None
    return ClosedForm(variables, above, below, shape.base)


def fitted(
    values: Mapping[Point, Fraction], variables: tuple[str, ...], base: int | None = None, *, most: int | None = None
) -> Fit | None:
    """The simplest form that holds on all large points of a class; None if there is none.

    Parameters
    ----------
    values
        Exact values by point.
    base
        Base of a power of the first variable.
    most
        Largest number of free coefficients; by default as many as the points admit.
    """
    order = sorted(values, key=lambda point: (sum(point), point))
    for shape in shapes(len(variables), base):
        need = shape.coefficients + 1
        if len(order) < 2 * need or (most is not None and shape.coefficients > most):
            continue
        tail = order[-2 * need :] if len(variables) == 1 else order[len(order) // 3 :]
        own = _independent(shape, tail, need)
        form = None if own is None else solved(shape, {point: values[point] for point in own}, variables)
        if form is None or own is None:
            continue
        wrong = [point for point in order if form.at(point) != values[point]]
        good = [point for point in order if point not in wrong and point not in own]
        first = order.index(own[0])
        if all(order.index(point) < first for point in wrong) and len(wrong) < len(good) and len(good) >= need:
            return Fit(form, shape.coefficients, tuple(own), tuple(good), tuple(wrong))
    return None


def _independent(shape: Shape, order: Sequence[Point], need: int) -> list[Point] | None:
    """The first points that determine a polynomial in several variables, and one more; the first ones for others."""
    if len(order[0]) == 1:
        return list(order[:need])
    chosen: list[Point] = []
    rank = 0
    for point in order:
        rows = [term_value(term, one, shape.base) for one in [*chosen, point] for term in shape.above]
        matrix = fmpq_mat(len(chosen) + 1, len(shape.above), [fmpq(row.numerator, row.denominator) for row in rows])
        if matrix.rank() > rank or (rank == need - 1 and len(chosen) < need):
            chosen.append(point)
            rank = matrix.rank()
        if rank == need - 1 and len(chosen) == need:
            return chosen
    return None


def explained(classes: Sequence[ResidueClass]) -> int:
    """Number of points that the forms explain, less their free coefficients."""
    fits = [one.fit for one in classes if one.fit is not None]
    return sum(len(fit.fitted) + len(fit.held_back) - fit.coefficients for fit in fits)


def by_residues(
    values: Mapping[Point, Fraction], variables: tuple[str, ...], base: int | None = None, period: int | None = None
) -> tuple[int, list[ResidueClass]]:
    """The best period, or the given one, and the classes of points modulo it with the forms found on them."""
    best: tuple[tuple[int, int], int, list[ResidueClass]] | None = None
    periods = [period] if period else range(1, PERIODS.get(len(variables), 2) + 1)
    for p in periods:
        classes = list(_classes(values, variables, base, p))
        score = explained(classes), -p
        if best is None or score > best[0]:
            best = score, p, classes
    assert best is not None
    return best[1], best[2]


def _classes(
    values: Mapping[Point, Fraction], variables: tuple[str, ...], base: int | None, period: int
) -> Iterator[ResidueClass]:
    grouped: dict[Point, dict[Point, Fraction]] = {}
    for point, value in values.items():
        grouped.setdefault(tuple(x % period for x in point), {})[point] = value
    for residues, own in sorted(grouped.items()):
        yield ResidueClass(residues, tuple(sorted(own)), fitted(own, variables, base))

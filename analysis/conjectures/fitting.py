r"""Closed forms through exact points: by residues of the parameter, never with more freedom than points.

A shape with c free coefficients is determined by c + 1 points, one more than it needs, in rational arithmetic: the
linear system :math:`y \sum_k b_k m_k(x) = \sum_k a_k m_k(x)` must have one solution up to scaling. It then must hold on
as many further points, all of them larger, which the fit did not use. So a class of m points admits at most
m/2 - 1 free coefficients. Smaller points where the form fails are its exceptions; they must be fewer than the points
where it holds.

Points are split by their residues modulo a period p: a quasi-polynomial is a polynomial on each class.
Of several periods the one with the most points explained per free coefficient wins, and of equal ones the smallest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from flint import fmpq, fmpq_mat

from opticoll.analysis.conjectures.closed_forms import ClosedForm, Term, term_value

#: Largest period that is tried.
MOST_PERIOD = 12
#: Degrees of numerator and denominator that are tried.
DEGREES = ((0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (3, 0), (2, 1), (1, 2), (4, 0), (3, 1), (2, 2))
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
    fitted: tuple[int, ...]
    held_back: tuple[int, ...]
    exceptions: tuple[int, ...]


@dataclass(frozen=True)
class ResidueClass:
    """The points with the same residue modulo a period, and the form that holds on them, if one was found."""

    residue: int
    points: tuple[int, ...]
    fit: Fit | None


def shapes(base: int | None) -> list[Shape]:
    """Shapes to try, those with fewest free coefficients first."""
    found = [Shape(_powers(above), _powers(below)) for above, below in DEGREES]
    if base is not None:
        found += [Shape(terms, ((0, 0),), base) for terms in POWERS]
    return sorted(found, key=lambda shape: shape.coefficients)


def _powers(degree: int) -> tuple[Term, ...]:
    return tuple((k, 0) for k in range(degree + 1))


def solved(shape: Shape, points: Mapping[int, Fraction], variable: str) -> ClosedForm | None:
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
    return ClosedForm(variable, above, below, shape.base)


def fitted(values: Mapping[int, Fraction], variable: str, base: int | None = None) -> Fit | None:
    """The simplest form that holds on all large points of a class; None if there is none.

    Parameters
    ----------
    values
        Exact values by point.
    base
        Base of a power of the variable.
    """
    order = sorted(values)
    for shape in shapes(base):
        need = shape.coefficients + 1
        if len(order) < 2 * need:
            continue
        first = len(order) - 2 * need
        own = order[first : first + need]
        form = solved(shape, {x: values[x] for x in own}, variable)
        if form is None:
            continue
        wrong = [x for x in order if form.at(x) != values[x]]
        good = [x for x in order if x not in wrong and x not in own]
        if all(x < own[0] for x in wrong) and len(wrong) < len(good) and len(good) >= need:
            return Fit(form, shape.coefficients, tuple(own), tuple(good), tuple(wrong))
    return None


def explained(classes: Sequence[ResidueClass]) -> int:
    """Number of points that the forms explain, less their free coefficients."""
    fits = [one.fit for one in classes if one.fit is not None]
    return sum(len(fit.fitted) + len(fit.held_back) - fit.coefficients for fit in fits)


def by_residues(
    values: Mapping[int, Fraction], variable: str, base: int | None = None, period: int | None = None
) -> tuple[int, list[ResidueClass]]:
    """The best period, or the given one, and the classes of points modulo it with the forms found on them."""
    found = {p: _classes(values, variable, base, p) for p in ([period] if period else range(1, MOST_PERIOD + 1))}
    best = max(found, key=lambda p: (explained(found[p]), -p))
    return best, found[best]


def _classes(values: Mapping[int, Fraction], variable: str, base: int | None, period: int) -> list[ResidueClass]:
    grouped: dict[int, dict[int, Fraction]] = {}
    for x, value in sorted(values.items()):
        grouped.setdefault(x % period, {})[x] = value
    return [ResidueClass(residue, tuple(own), fitted(own, variable, base)) for residue, own in sorted(grouped.items())]

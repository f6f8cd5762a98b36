r"""Closed forms: quotients of polynomials in the parameters of a family, and in a power such as :math:`d^D`.

A term is a product of powers, written as the tuple of its exponents: one for every variable, and a last one for the
power :math:`b^x` of the first variable x, if the form has a base b.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import gcd, lcm, prod
from typing import TypeAlias

from flint import fmpz_poly

#: Exponents of a term: of every variable, then of the base's power.
Term: TypeAlias = tuple[int, ...]
#: Values of the variables at an instance.
Point: TypeAlias = tuple[int, ...]


def term_value(term: Term, point: Point, base: int | None) -> Fraction:
    """Value of a term at a point."""
    value = Fraction(prod(x**e for x, e in zip(point, term, strict=False)))
    return value if base is None else value * Fraction(base) ** (point[0] * term[-1])


@dataclass(frozen=True)
class ClosedForm:
    """A quotient of two sums of terms with rational coefficients.

    Parameters
    ----------
    variables
        Names of the variables.
    above, below
        Coefficients by term; ``below`` is not zero.
    base
        The base b of the power :math:`b^x` of the first variable, or None.
    """

    variables: tuple[str, ...]
    above: Mapping[Term, Fraction]
    below: Mapping[Term, Fraction]
    base: int | None = None

    def at(self, point: Point) -> Fraction | None:
        """The value at a point; None at a pole."""
        above, below = (
            sum((c * term_value(term, point, self.base) for term, c in part.items()), Fraction(0))
            for part in (self.above, self.below)
        )
        return above / below if below else None

    @cached_property
    def _whole(self) -> tuple[int, dict[Term, int], int, dict[Term, int]]:
        """Content and primitive part of numerator and denominator, in whole numbers; contents without common factor."""
        (c, above), (d, below) = (_primitive(part) for part in (self.above, self.below))
        ratio = c / d
        return ratio.numerator, above, ratio.denominator, below

    @property
    def text(self) -> str:
        """The form as text, such as ``n^2/8`` or ``n (n - 1)/2``."""
        c, above, d, below = self._whole
        numerator, denominator = (_plain(self._product(k, part)) for k, part in ((c, above), (d, below)))
        if denominator == "1":
            return numerator
        alone = len(above) == 1 or c != 1 or _is_product(above, self._factors(above))
        plain = (d == 1 and len(below) == 1) or not _terms(below)
        return f"{numerator if alone else f'({numerator})'}/{denominator if plain else f'({denominator})'}"

    @property
    def latex(self) -> str:
        r"""The form in LaTeX, such as ``\frac{n^{2}}{8}``."""
        c, above, d, below = self._whole
        numerator, denominator = self._product(abs(c), above), self._product(d, below)
        sign = "-" if c < 0 else ""
        return f"{sign}{numerator}" if denominator == "1" else rf"{sign}\frac{{{numerator}}}{{{denominator}}}"

    def _product(self, content: int, part: Mapping[Term, int]) -> str:
        """Content times a primitive sum, in LaTeX: by its factors if all are linear, else as a sum."""
        if not _terms(part):
            return str(content)
        factors = self._factors(part)
        if _is_product(part, factors):
            words = [self._sum(one) if len(one) == 1 else f"({self._sum(one)})" for one, _ in factors]
            body = " ".join(text if e == 1 else f"{text}^{{{e}}}" for text, (_, e) in zip(words, factors, strict=True))
        elif len(part) == 1 or content == 1:
            body = self._sum(part)
        else:
            body = f"({self._sum(part)})"
        return body if content == 1 else f"-{body}" if content == -1 else f"{content} {body}"

    def _factors(self, part: Mapping[Term, int]) -> list[tuple[dict[Term, int], int]]:
        """Irreducible factors of a sum in one variable, those of fewest terms first; the sum itself otherwise."""
        if len(self.variables) > 1 or self.base is not None:
            return [(dict(part), 1)]
        degree = max(term[0] for term in part)
        _, factors = fmpz_poly([part.get((k,), 0) for k in range(degree + 1)]).factor()
        found: list[tuple[dict[Term, int], int]] = [
            ({(k,): int(c) for k, c in enumerate(one.coeffs()) if c}, int(e)) for one, e in factors
        ]
        return sorted(found, key=lambda factor: (len(factor[0]), sorted(factor[0].items())))

    def _sum(self, part: Mapping[Term, int]) -> str:
        pieces = []
        for term, c in sorted(part.items(), key=lambda item: (sum(item[0]), item[0]), reverse=True):
            name = self._term(term)
            size = name if abs(c) == 1 and name else f"{abs(c)} {name}".strip()
            pieces.append(("- " if c < 0 else "+ ") + size)
        text = " ".join(pieces)
        return text.removeprefix("+ ") if not text.startswith("- ") else "-" + text[2:]

    def _term(self, term: Term) -> str:
        words = [name if e == 1 else f"{name}^{{{e}}}" for name, e in zip(self.variables, term, strict=False) if e]
        if self.base is not None and term[-1]:
            words.append(f"{self.base}^{{{'' if term[-1] == 1 else term[-1]}{self.variables[0]}}}")
        return " ".join(words)


def _plain(latex: str) -> str:
    """A product in LaTeX as text: exponents without braces."""
    return latex.replace("{", "").replace("}", "")


def _primitive(part: Mapping[Term, Fraction]) -> tuple[Fraction, dict[Term, int]]:
    """Content, and coefficients as whole numbers without a common factor, the leading one positive."""
    nonzero = {term: c for term, c in part.items() if c}
    if not nonzero:
        return Fraction(0), {}
    below = lcm(*(c.denominator for c in nonzero.values()))
    whole = {term: int(c * below) for term, c in nonzero.items()}
    lead = max(whole, key=lambda term: (sum(term), term))
    content = gcd(*whole.values()) * (1 if whole[lead] > 0 else -1)
    return Fraction(content, below), {term: c // content for term, c in whole.items()}


def _terms(part: Mapping[Term, int]) -> list[Term]:
    """Terms that are not constant."""
    return [term for term in part if any(term)]


def _is_product(part: Mapping[Term, int], factors: Sequence[tuple[Mapping[Term, int], int]]) -> bool:
    """Whether a sum is shown by its factors: they are linear, and more than one."""
    several = sum(exponent for _, exponent in factors) > 1
    return len(part) > 1 and several and all(max(sum(term) for term in one) == 1 for one, _ in factors)

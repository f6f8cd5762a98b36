r"""Closed forms: quotients of polynomials in a parameter of a family, and in a power such as :math:`d^D`.

A term is written as two exponents: of the variable x, and of the power :math:`b^x`, 0 if the form has no base b.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import gcd, lcm
from typing import TypeAlias

from flint import fmpz_poly

#: Exponents of a term: of the variable, then of the base's power.
Term: TypeAlias = tuple[int, int]


def term_value(term: Term, x: int, base: int | None) -> Fraction:
    """Value of a term at x."""
    value = Fraction(x ** term[0])
    return value if base is None else value * Fraction(base) ** (x * term[1])


@dataclass(frozen=True)
class ClosedForm:
    """A quotient of two sums of terms with rational coefficients.

    Parameters
    ----------
    variable
        Name of the variable.
    above, below
        Coefficients by term; ``below`` is not zero.
    base
        The base b of the power :math:`b^x`, or None.
    """

    variable: str
    above: Mapping[Term, Fraction]
    below: Mapping[Term, Fraction]
    base: int | None = None

    def at(self, x: int) -> Fraction | None:
        """The value at x; None at a pole."""
        above, below = (
            sum((c * term_value(term, x, self.base) for term, c in part.items()), Fraction(0))
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
        """Irreducible factors of a polynomial, those of fewest terms first; of other sums the sum itself."""
        if self.base is not None:
            return [(dict(part), 1)]
        degree = max(term[0] for term in part)
        _, factors = fmpz_poly([part.get((k, 0), 0) for k in range(degree + 1)]).factor()
        found: list[tuple[dict[Term, int], int]] = [
            ({(k, 0): int(c) for k, c in enumerate(one.coeffs()) if c}, int(e)) for one, e in factors
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
        degree, power = term
        words = [self.variable if degree == 1 else f"{self.variable}^{{{degree}}}"] if degree else []
        if power:
            words.append(f"{self.base}^{{{'' if power == 1 else power}{self.variable}}}")
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

"""Closed forms are found where there is one, and nowhere else."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import pytest
from case_families import each
from hypothesis import given
from hypothesis import strategies as st

from opticoll.analysis.conjectures.closed_forms import ClosedForm
from opticoll.analysis.conjectures.fitting import DEGREES, by_residues, fitted


def points(function, numbers):
    return {n: Fraction(function(n)) for n in numbers}


def evaluated(text: str, **values: int) -> Fraction:
    """The value of a form as printed."""
    spaced = re.sub(r"(?<=[\w)]) (?=[\w(])", " * ", text.replace("^", "**"))
    return Fraction(eval(re.sub(r"(?<![\w*])(\d+)", r"Fraction(\1)", spaced), {"Fraction": Fraction, **values}))  # noqa: S307


@pytest.mark.parametrize(
    ("function", "period", "texts"),
    [
        (lambda n: Fraction(n * n // 4, 2), 2, ["n^2/8", "(n - 1) (n + 1)/8"]),
        (lambda n: Fraction(n * (n - 1), 2), 1, ["n (n - 1)/2"]),
        (lambda n: Fraction(4 * n * n - 3, 2 * n - 1), 1, ["(4 n^2 - 3)/(2 n - 1)"]),
        (lambda n: 1, 1, ["1"]),
        (lambda n: Fraction(2 * n + 3, 3 * n * n), 1, ["(2 n + 3)/(3 n^2)"]),
        (lambda n: Fraction(3 * n - n * n - 1, 4), 1, ["-(n^2 - 3 n + 1)/4"]),
        (lambda n: Fraction(-5, n), 1, ["-5/n"]),
        (lambda n: n + [0, 7, 2][n % 3], 3, ["n", "n + 7", "n + 2"]),
    ],
)
def test_known_forms_are_found(function, period, texts):
    values = points(function, range(3, 33))
    found, classes = by_residues(values, "n")
    assert (found, [one.fit.form.text for one in classes]) == (period, texts)
    for one in classes:
        for n in one.points:
            assert evaluated(one.fit.form.text, n=n) == values[n] == one.fit.form.at(n)


def test_powers_are_found():
    values = points(lambda D: D * 2**D - 3 * 2**D + 5, range(1, 11))
    fit = fitted(values, "D", 2)
    assert fit.form.text == "D 2^D - 3 2^D + 5"
    assert fit.form.latex == "D 2^{D} - 3 2^{D} + 5"
    assert fitted(values, "D") is None


@pytest.mark.parametrize("seed", range(5))
def test_noise_has_no_form(seed):
    draws = np.random.default_rng(seed).integers(1, 1000, size=60).tolist()
    _, classes = by_residues(points(lambda n: Fraction(draws[n], 7), range(60)), "n")
    assert all(one.fit is None for one in classes)


@given(st.lists(st.fractions(min_value=-9, max_value=9, max_denominator=9), min_size=1, max_size=4), st.data())
def test_one_wrong_point_among_the_large_ones_is_never_fitted(coefficients, data):
    numbers = range(5, 5 + 2 * (len(coefficients) + 1))
    values = points(lambda n: sum(c * n**k for k, c in enumerate(coefficients)), numbers)
    wrong = data.draw(st.sampled_from(sorted(values)))
    values[wrong] += 1
    fit = fitted(values, "n")
    assert fit is None or wrong in fit.exceptions


@each(("above", "below"), DEGREES)
def test_fewer_than_twice_the_points_that_determine_a_form_are_not_enough(above, below):
    rng = np.random.default_rng(3)
    need = above + below + 2
    top, bottom = rng.integers(1, 9, above + 1).tolist(), rng.integers(1, 9, below + 1).tolist()

    def value(n):
        return Fraction(sum(c * n**k for k, c in enumerate(top)), sum(c * n**k for k, c in enumerate(bottom)))

    short = fitted(points(value, range(11, 11 + 2 * need - 1)), "n")
    assert short is None or short.coefficients < need - 1
    fit = fitted(points(value, range(11, 11 + 2 * need)), "n")
    assert fit is not None
    assert fit.coefficients < len(fit.fitted) <= len(fit.held_back)


def test_exceptions_are_the_small_ones():
    fit = fitted(points(lambda n: n + 1 if n > 6 else 3, range(3, 24)), "n")
    assert fit.exceptions == (3, 4, 5, 6)
    assert len(fit.fitted) + len(fit.held_back) == 17
    assert fitted(points(lambda n: n + 1 if n > 15 else n % 2, range(3, 24)), "n") is None, "most points differ"


def test_a_pole_is_an_exception():
    values = {n: Fraction(1, n - 3) if n != 3 else Fraction(0) for n in range(3, 20)}
    assert fitted(values, "n").exceptions == (3,)
    assert ClosedForm("n", {(0, 0): Fraction(1)}, {(1, 0): Fraction(1), (0, 0): Fraction(-3)}).at(3) is None


def test_latex():
    form = ClosedForm("n", {(2, 0): Fraction(1), (0, 0): Fraction(-1)}, {(0, 0): Fraction(8)})
    assert form.latex == r"\frac{(n - 1) (n + 1)}{8}"
    assert ClosedForm("n", {(2, 0): Fraction(-1, 8)}, {(0, 0): Fraction(1)}).latex == r"-\frac{n^{2}}{8}"

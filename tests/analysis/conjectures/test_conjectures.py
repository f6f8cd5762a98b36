"""Conjectures from exact optima: known theorems are found."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

import opticoll as oc
from opticoll.analysis.cli.main import main
from opticoll.analysis.conjectures.closed_forms import ClosedForm
from opticoll.errors import BadInput


@pytest.fixture(autouse=True)
def private_store(module_store):
    """Tests of one module compare bounds with the same optima."""
    return module_store


@pytest.mark.slow
def test_rings_of_both_parities(tmp_path):
    """T = floor(n^2/4)/2, a theorem: n^2/8 for even n and (n^2-1)/8 for odd n."""
    result = oc.conjecture("alltoall.master", "ring:{3..18}", store=tmp_path)
    assert (result.quantity, result.period, result.variable) == ("T", 2, "n")
    even, odd = result.formulas
    assert (even.formula, odd.formula) == ("n^2/8", "(n - 1) (n + 1)/8")
    assert (even.coefficients, even.fitted, even.held_back, even.exceptions) == (3, 4, 4, [])
    assert result.frame["T"].tolist() == [Fraction(n * n // 4, 2) for n in range(3, 19)]
    assert even.latex == r"\frac{n^{2}}{8}"
    assert "n^2/8  (3 coefficients, 4 fitted, 4 held back)" in repr(result)


def test_too_few_instances_give_no_form(tmp_path):
    result = oc.conjecture("alltoall.master", "ring:{3..8}", store=tmp_path)
    assert [one.formula for one in result.formulas] == [None] * len(result.formulas)
    assert "no closed form found" in repr(result)


def test_a_power_of_the_parameter_is_linear_in_the_number_of_nodes(tmp_path):
    result = oc.conjecture("alltoall.master", "hypercube:{1..4}", store=tmp_path)
    assert (result.variable, result.formulas[0].formula) == ("dimension", "2^dimension/2")
    by_n = oc.conjecture("alltoall.master", "hypercube:{1..6}", store=tmp_path, variable="n")
    assert by_n.formulas[0].formula == "n/2"


@pytest.mark.slow
def test_kautz_and_de_bruijn_digraphs_of_diameter_2(tmp_path):
    kautz = oc.conjecture("alltoall.master", "kautz:d={2..11},D=2", store=tmp_path)
    (form,) = kautz.formulas
    assert form.formula == "(4 d^2 - 3)/(2 d - 1)"
    debruijn = oc.conjecture("alltoall.master", "debruijn:d={2..11},D=2", store=tmp_path)
    assert debruijn.formulas[0].formula == "(4 d^2 - 2 d - 3)/(2 d - 1)"


def test_ranges_of_instances_may_overlap(tmp_path):
    result = oc.conjecture("alltoall.master", ["ring:{4..14..2}", "ring:{10..18..2}"], store=tmp_path)
    assert [one.at for one in result.values] == list(range(4, 19, 2))
    (form,) = result.formulas
    assert (form.formula, form.fitted, form.held_back) == ("n^2/8", 4, 4)


def test_other_objectives_are_fitted(tmp_path):
    result = oc.conjecture("alltoall.all-gather", "ring:{3..8}", store=tmp_path)
    assert (result.quantity, result.formulas[0].formula) == ("objective", "(n - 1)/2")


def test_the_command_prints_words_and_json(capsys):
    command = ["conjecture", "alltoall.master", "--over", "complete:{3..7}"]
    assert main(command) == 0
    out = capsys.readouterr().out
    assert "1  (1 coefficients, 2 fitted, 3 held back)" in out
    assert main([*command, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["values"][0] == {"case": "complete:3", "at": 3, "value": "1"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--over", "random-regular:n=8,d=3,seed={1..2}", "--in", "n"], "have the same n; vary one parameter alone"),
        (["--over", "bipartite:{2..3}x{2..3}"], "have the same n; vary one parameter alone, and name it by --in"),
        (["--over", "ring:{4..5}", "--on", "T", "--set", "x=1"], "'x'"),
        (["--over", "ring:{4..5}", "--over", "complete:{6..7}"], "has instances of 2 families (ring, complete)"),
    ],
)
def test_wrong_input_is_refused_in_one_line(options, message, capsys):
    assert main(["conjecture", "alltoall.master", *options]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert len(err.splitlines()) == 1


def test_a_quantity_that_the_formulation_lacks_is_refused():
    with pytest.raises(BadInput, match="has no time T = 1/F; use on='objective'"):
        oc.conjecture("optree.tree", "wdm-ring:n={3..4},wavelengths=1", on="T")
    with pytest.raises(BadInput, match="no such metric; did you mean 'objective'"):
        oc.conjecture("alltoall.master", "ring:{4..5}", on="objektive")


def test_constant_forms_are_evaluated():
    form = ClosedForm("n", {(0, 0): Fraction(1, 2)}, {(0, 0): Fraction(1)})
    assert (form.text, form.at(9)) == ("1/2", Fraction(1, 2))


def test_a_period_of_nothing_is_refused():
    with pytest.raises(BadInput, match="period: must be a whole number of at least 1, not 0"):
        oc.conjecture("alltoall.master", "complete:{3..8}", period=0)

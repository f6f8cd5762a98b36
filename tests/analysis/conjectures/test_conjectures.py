"""Conjectures from exact optima: known theorems are found, and proofs beyond the solved instances are valid."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

import opticoll as oc
from opticoll.analysis.cli.main import main
from opticoll.analysis.conjectures.arc_lengths import arc_orbits, candidates, optimal_lengths
from opticoll.analysis.conjectures.closed_forms import ClosedForm
from opticoll.analysis.conjectures.conjecture import _Beyond, _choices, _judge
from opticoll.errors import BadInput
from opticoll.instances import parse
from opticoll.instances.spec import expand

ONE = (Fraction(1),)


@pytest.fixture(autouse=True)
def private_store(module_store):
    """Tests of one module compare bounds with the same optima."""
    return module_store


@pytest.mark.slow
def test_rings_of_both_parities(tmp_path):
    """T = floor(n^2/4)/2, a theorem: n^2/8 for even n and (n^2-1)/8 for odd n."""
    result = oc.conjecture("alltoall.master", "ring:{3..18}", store=tmp_path, reach=40)
    assert (result.quantity, result.period, result.variable) == ("T", 2, "n")
    even, odd = result.formulas
    assert (even.formula, odd.formula) == ("n^2/8", "(n - 1) (n + 1)/8")
    assert (even.coefficients, even.fitted, even.held_back, even.exceptions) == (3, 4, 4, [])
    assert even.lengths == ["1"]
    assert even.proven == [f"ring:{n}" for n in range(20, 41, 2)]
    assert odd.proven == [f"ring:{n}" for n in range(19, 40, 2)]
    assert result.frame["T"].tolist() == [Fraction(n * n // 4, 2) for n in range(3, 19)]
    assert even.latex == r"\frac{n^{2}}{8}"
    assert "n^2/8  (3 coefficients, 4 fitted, 4 held back); proven for 11 more, to ring:40" in repr(result)


def test_too_few_instances_give_no_form(tmp_path):
    result = oc.conjecture("alltoall.master", "ring:{3..8}", store=tmp_path)
    assert [one.formula for one in result.formulas] == [None] * len(result.formulas)
    assert "no closed form found" in repr(result)


def test_a_power_of_the_parameter_is_linear_in_the_number_of_nodes(tmp_path):
    result = oc.conjecture("alltoall.master", "hypercube:{1..4}", store=tmp_path, reach=32)
    assert (result.variable, result.formulas[0].formula) == ("dimension", "2^dimension/2")
    assert result.formulas[0].proven == ["hypercube:5"]
    by_n = oc.conjecture("alltoall.master", "hypercube:{1..6}", store=tmp_path, variable="n")
    assert by_n.formulas[0].formula == "n/2"
    assert by_n.formulas[0].proven == [], "n alone does not give the next member"


@pytest.mark.slow
def test_kautz_and_de_bruijn_digraphs_of_diameter_2(tmp_path):
    kautz = oc.conjecture("alltoall.master", "kautz:d={2..11},D=2", store=tmp_path, reach=160)
    (form,) = kautz.formulas
    assert form.formula == "(4 d^2 - 3)/(2 d - 1)"
    assert form.lengths == ["1", "1/2"]
    assert form.proven == ["kautz:d=12,D=2"]
    debruijn = oc.conjecture("alltoall.master", "debruijn:d={2..11},D=2", store=tmp_path)
    assert debruijn.formulas[0].formula == "(4 d^2 - 2 d - 3)/(2 d - 1)"


@pytest.mark.slow
def test_lengths_are_fitted_where_no_constant_ones_prove_the_form(tmp_path):
    result = oc.conjecture("alltoall.master", "circulant:n={6..25},offsets=1x2", store=tmp_path, reach=40)
    assert [one.formula for one in result.formulas] == ["n^2/24", "(n - 1) (n + 1)/24"]
    assert all(one.lengths == ["1/2", "1"] and one.proven and not one.refuted for one in result.formulas)


@pytest.mark.parametrize("spec", ["ring:7", "torus:3x4", "circulant:n=9,offsets=1x2", "kautz:d=2,D=2", "path:4"])
def test_both_halves_enclose_the_exact_optimum(spec):
    topology = parse(spec)
    time = 1 / oc.solve("alltoall.master", topology, exact=True).objective_exact
    orbits = arc_orbits(topology)
    for lengths in candidates(orbits.number):
        least, most = orbits.at_least(lengths), orbits.at_most(lengths)
        assert least is None or least <= time
        assert most is None or most >= time
    optimal = optimal_lengths(topology, orbits)
    assert optimal is not None
    assert orbits.at_least(optimal) == time, "the mean of an optimal dual over the group is optimal"
    assert orbits.at_most(optimal) >= time


def test_capacities_count():
    doubled = parse("ring:6").scaled(2.5)
    orbits = arc_orbits(doubled)
    assert orbits.at_least(ONE) == orbits.at_most(ONE) == Fraction(9, 2) / Fraction(5, 2)


def test_a_wrong_form_is_refuted_beyond_the_solved_instances():
    result = _Beyond([], [], [], None)
    orbits = arc_orbits(parse("ring:12"))
    _judge(orbits, ONE, Fraction(17), result)
    assert result.refuted == ["ring:12"], "T is 18"
    _judge(orbits, ONE, Fraction(19), result)
    assert result.refuted == ["ring:12"] * 2
    _judge(orbits, ONE, Fraction(18), result)
    assert (result.at_least, result.proven) == (["ring:12"], ["ring:12"])


@pytest.mark.parametrize(
    ("over", "variable", "step", "ends"),
    [
        ([f"torus:{2 * b}x{b}" for b in (3, 5, 7)], "b", None, "torus:10x5 differs from torus:6x3 in more than b"),
        ([f"genkautz:n={3 * d},d={d}" for d in (2, 3, 4)], "d", None, "genkautz:n=9,d=3 differs from"),
        (["ring:6", "ring:7,directed", "ring:8"], "n", None, "ring:7,directed differs from ring:6"),
        ([f"random-regular:n={n},d=3,seed={n}" for n in (8, 10, 12)], "n", None, "in more than n"),
        (["ring:8", "ring:10+fail=1,seed=1", "ring:12"], "n", None, "ring:10+fail=1,seed=1 differs from ring:8"),
        (["ring:4", "ring:8", "ring:16"], "n", None, "ring:12 is left out"),
        (["hypercube:{1..4}"], "n", None, "n alone does not give an instance"),
        (["ring:{4..32..2}"], "n", 2, ""),
        (["torus:5x{4..16..3}"], "b", 3, ""),
        (["ring:{10..20..5}+host=2.0", "ring:{20..30..5}+host=2.0"], "n", 5, ""),
        ([f"slimfly:q={q}" for q in (5, 7, 8, 9, 11)], "q", 1, ""),
    ],
)
def test_a_family_goes_on_only_where_its_generator_gives_every_instance(over, variable, step, ends):
    """It does not where a member is left out, which a formula for the others need not cover."""
    instances = [parse(spec) for item in over for spec in expand(item)]
    (family,) = _choices(instances, variable)
    assert family.step == step
    assert ends in family.ends
    assert bool(family.ends) == (step is None)


def test_forms_are_tested_at_the_step_of_the_instances_and_ranges_may_overlap(tmp_path):
    result = oc.conjecture("alltoall.master", ["ring:{4..14..2}", "ring:{10..18..2}"], store=tmp_path, reach=24)
    assert [one.at for one in result.values] == list(range(4, 19, 2))
    (form,) = result.formulas
    assert (form.formula, form.proven, form.refuted, result.untested) == (
        "n^2/8",
        ["ring:20", "ring:22", "ring:24"],
        [],
        "",
    )


def test_other_objectives_are_fitted_but_not_proven(tmp_path):
    result = oc.conjecture("alltoall.all-gather", "ring:{3..8}", store=tmp_path)
    assert (result.quantity, result.formulas[0].formula) == ("objective", "(n - 1)/2")
    assert result.formulas[0].proven == []
    assert "beyond        not tested: only the time T of alltoall.master" in repr(result)


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


def test_forms_of_lengths_are_evaluated():
    form = ClosedForm("n", {(0, 0): Fraction(1, 2)}, {(0, 0): Fraction(1)})
    assert (form.text, form.at(9)) == ("1/2", Fraction(1, 2))


def test_a_period_of_nothing_is_refused():
    with pytest.raises(BadInput, match="period: must be a whole number of at least 1, not 0"):
        oc.conjecture("alltoall.master", "complete:{3..8}", period=0)

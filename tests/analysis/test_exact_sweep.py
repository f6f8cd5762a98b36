"""Sweeps compare fractions, know what a function bounds, and notice a bound on another quantity."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

import opticoll as oc
from opticoll.analysis.bounds.bound_comparison import Case, Quantity, Status, compared
from opticoll.analysis.bounds.bound_values import ComparedBound
from opticoll.analysis.cli.main import main
from opticoll.errors import BadInput
from opticoll.instances import Topology, parse
from opticoll.solvers.task import Proof, Record

OVER = "ring:{4..6}"
#: T of these rings.
TIMES = [Fraction(2), Fraction(3), Fraction(9, 2)]


@pytest.fixture(autouse=True)
def private_store(module_store):
    """Tests of one module compare bounds with the same optima."""
    return module_store


def ring_time(topology: Topology) -> Fraction:
    return Fraction(topology.n**2 // 4, 2)


@oc.bound_on("T")
def declared(topology: Topology) -> Fraction:
    return ring_time(topology)


def test_a_fraction_equal_to_the_optimum_is_attained():
    result = oc.sweep("alltoall.master", declared, OVER, exact=True, tol=0)
    assert (result.quantity, result.sense, result.exact) == ("T", "lower", True)
    assert [case.optimum_exact for case in result.cases] == [str(time) for time in TIMES]
    assert [case.bound_exact for case in result.cases] == [str(time) for time in TIMES]
    assert all(case.attained and case.excess == 0 for case in result.cases)
    assert (result.violations, result.tightness.exact) == (0, 3)


@pytest.mark.parametrize("more", [Fraction(1, 10**8), Fraction(1, 10**12), Fraction(1, 10**40)])
@pytest.mark.parametrize("tol", [0, 1e-6])
def test_the_slightest_excess_is_a_violation(more, tol):
    result = oc.sweep("alltoall.master", lambda g: ring_time(g) * (1 + more), OVER, on="T", exact=True, tol=tol)
    assert (result.violations, result.tightness.exact) == (3, 0)
    assert all(case.excess == pytest.approx(float(more)) for case in result.cases)
    assert f"ring:4: bound {2 * (1 + more)} > optimum 2" in result.lines()["smallest counterexample"]
    below = oc.sweep("alltoall.master", lambda g: ring_time(g) * (1 - more), OVER, on="T", exact=True, tol=tol)
    assert (below.violations, below.tightness.exact) == (0, 0)


def test_a_float_stands_for_its_exact_value():
    result = oc.sweep("alltoall.master", lambda g: float(ring_time(g)) * (1 + 1e-8), OVER, on="T", exact=True)
    assert result.violations == 3
    assert result.cases[0].bound_exact == str(Fraction(2 * (1 + 1e-8)))
    third = oc.sweep("alltoall.master", lambda _: 1 / (1 / 3), "complete:{3..4}", on="T", exact=True, sense="upper")
    assert third.violations == 0
    above = oc.sweep("alltoall.master", lambda _: 1 + 2**-52, "complete:3", on="T", exact=True)
    assert above.violations == 1
    assert "differs from the optimum by rounding; return a Fraction" in above.cases[0].message


def test_without_exact_a_tolerance_is_needed():
    with pytest.raises(BadInput, match="to compare fractions, add exact=True"):
        oc.sweep("alltoall.master", declared, OVER, tol=0)
    assert oc.sweep("alltoall.master", lambda g: ring_time(g) * (1 + Fraction(1, 10**8)), OVER, on="T").violations == 0


def test_where_no_exact_optimum_is_known_only_a_certain_violation_counts():
    quantity = Quantity("objective", "lower")
    record = Record(verified=True, sense="min", objective=10.0, bound=10.0, proof=Proof.OPTIMAL)

    def status(value: Fraction) -> Case:
        return compared(
            parse("ring:4"), 1, ComparedBound(float(value), value, False), record, quantity, tol=1e-6, exact=True
        )

    assert status(Fraction(10)).status is Status.UNDECIDED
    assert (status(Fraction(10)).attained, status(Fraction(10)).bound_exact) == (None, "10")
    assert status(Fraction(10) + Fraction(1, 10**7)).status is Status.UNDECIDED
    assert "no exact optimum is proven" in str(status(Fraction(10)).message)
    assert status(Fraction(11)).status is Status.VIOLATED


def test_counts_are_compared_as_whole_numbers():
    result = oc.sweep("lumorph.rounds", lambda _: 1, "lightpath:2x2", on="rounds", sense="lower", exact=True)
    assert result.cases[0].optimum_exact == str(int(result.cases[0].optimum))
    assert (result.cases[0].status, result.cases[0].attained) == (Status.HOLDS, True)


@pytest.mark.parametrize("name", ["distance", "any-lengths"])
def test_named_bounds_are_compared_as_fractions(name):
    """Also where a bound is only known in floating point: it is rounded outward, hence never above the optimum."""
    result = oc.sweep("alltoall.master", name, OVER, on="T", exact=True)
    assert result.violations == 0
    if name == "distance":
        assert result.tightness.exact == 3


def test_what_a_function_declares_cannot_be_contradicted():
    with pytest.raises(BadInput, match="declares that it bounds 'T'; omit it,"):
        oc.sweep("alltoall.master", declared, OVER, on="objective")
    opposite = oc.sweep("alltoall.master", declared, OVER, sense="upper")  # the claim that it is attained
    assert (opposite.sense, opposite.violations) == ("upper", 0)
    with pytest.raises(BadInput, match="bound_on: sense='over' must be 'lower' or 'upper'"):
        oc.bound_on("T", "over")(ring_time)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "over", "words"),
    [
        (
            "topology.design",
            "servers:n=4,degree=2",
            r"of declared: .* needs a sense; declare it by @oc.bound_on\('T', 'lower'\)",
        ),
        (
            "topoopt.utility",
            "servers:n=4,degree=2",
            "of declared: topoopt.utility has no T; its quantities are objective",
        ),
    ],
)
def test_a_declared_quantity_that_is_no_time_of_a_flow_is_refused_by_its_declaration(name, over, words):
    with pytest.raises(BadInput, match=words) as refused:
        oc.sweep(name, declared, over)
    assert "on=" not in str(refused.value)


def test_bounds_past_the_optimum_within_the_tolerance_are_counted():
    past = oc.sweep("alltoall.master", lambda g: ring_time(g) * (1 + Fraction(1, 10**7)), OVER, on="T")
    assert (past.violations, past.lines()["within the tolerance"][:32]) == (0, "3 bounds pass the optimum, by up")
    assert "within the tolerance" not in oc.sweep("alltoall.master", ring_time, OVER, on="T").lines()


def test_the_command_shows_fractions_and_fails_on_request(tmp_path: Path, capsys):
    file = tmp_path / "own.py"
    file.write_text(
        "from fractions import Fraction\nimport opticoll as oc\n"
        "@oc.bound_on('T')\ndef over(g):\n    return Fraction(g.n**2 // 4, 2) + Fraction(1, 10**12)\n",
        encoding="utf-8",
    )
    command = ["sweep", "alltoall.master", "--bound", f"{file}:over", "--over", OVER, "--exact", "--tol", "0"]
    assert main(command) == 0
    assert "ring:4: bound 2000000000001/1000000000000 > optimum 2" in capsys.readouterr().out
    assert main([*command, "--fail-on-violation", "--json"]) == 1
    shown = json.loads(capsys.readouterr().out)
    assert shown["exact"] is True
    assert [case["optimum_exact"] for case in shown["cases"]] == ["2", "3", "9/2"]
    assert main([*command, "--sense", "upper", "--fail-on-violation"]) == 0


def test_demands_reach_a_sweep(capsys):
    command = ["sweep", "alltoall.master", "--bound", "node-cut", "--on", "T", "--demand", "permutation:1", "--exact"]
    assert main([*command, "--over", "ring:{4..5}", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["settings"] == {"demand": "permutation:1"}
    assert [case["status"] for case in shown["cases"]] == ["holds", "holds"]
    assert all(Fraction(case["bound_exact"]) <= Fraction(case["optimum_exact"]) for case in shown["cases"])

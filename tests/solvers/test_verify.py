"""What checked values and recomputed bounds prove, on programs of a few numbers that are worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import opticoll as oc
from opticoll.formulations.model import Bound
from opticoll.formulations.standard_form import Block, StandardForm
from opticoll.solvers import verify
from opticoll.solvers.plan import make_plan
from opticoll.solvers.task import Proof, Task
from opticoll.solvers.verify import WeakDuality, kkt, matrix_violations

INF = np.inf


def program(A, rows, columns, cost, sense="min", integer=None, offset=0.0):
    arrays = [np.array(side, dtype=float) for side in (*rows, *columns, cost)]
    whole = None if integer is None else np.array(integer, dtype=bool)
    return StandardForm(sp.csc_array(np.array(A, dtype=float)), *arrays, sense, offset, whole)


# Violations ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "rows", "columns"),
    [
        ([0, 2], 0.0, 0.0),
        ([3, 1], 1 / 4, 0.0),  # the first row by 1 over its side 4
        ([2, 3], 4 / 6, 0.0),  # by 4 over its largest term 6
        ([0, -3], 3e-6 / 1e-3, 3.0),  # the second row over the least size 1e-3, a column over 1
        ([5, -1], 1e-6 / 1e-3, 1.0),  # a column by 1 over its bound 4, the other by 1 over 1
        ([5, -0.1], 0.8 / 5, 1 / 4),
    ],
)
def test_violations_are_relative_to_the_sizes_of_rows_and_columns(x, rows, columns):
    form = program([[1, 2], [0, 1e-6]], ([-INF, 0], [4, INF]), ([0, 0], [4, INF]), [1, 1])
    found = matrix_violations(form, np.array(x, dtype=float))
    assert list(found.values()) == pytest.approx([rows, columns, 0.0])


@pytest.mark.parametrize("unit", [1.0, 1e-9])
def test_rows_of_integer_programs_in_a_tiny_unit_are_violated_as_in_any_other(unit):
    form = program([[unit, unit]], ([-INF], [3 * unit]), ([0, 0], [9, 9]), [1, 1], integer=[1, 1])
    assert matrix_violations(form, np.array([2.0, 2.0]))["matrix.rows"] == pytest.approx(1 / 3)


def test_vectors_that_are_none_and_rows_without_terms_are_violated_infinitely():
    form = program([[1, 1], [0, 0]], ([-INF, 1], [4, INF]), ([0, 0], [4, 4]), [1, 1], integer=[1, 0])
    for bad in ([np.nan, 0.0], [INF, 0.0], [0.0]):
        assert set(matrix_violations(form, np.array(bad)).values()) == {INF}
    assert list(matrix_violations(form, np.array([1.25, 1.0])).values()) == [1.0, 0.0, 0.25]


def test_columns_are_rounded_unless_that_violates_more():
    form = program([[1, 1, 1]], ([-INF], [1]), ([-9] * 3, [9] * 3), [1, 1, 1], integer=[1, 1, 0])
    near = verify.whole(form, np.array([1 + 1e-7, 2 - 1e-7, -2.5]))
    assert near.tolist() == [1.0, 2.0, -2.5]
    for kept in ([0.6, 0.6, 0.0], [np.nan, 1.6, 0.0], [1.6], [1.0, 2.0, -2.5]):
        x = np.array(kept)
        assert verify.whole(form, x) is x


def test_the_worst_block_is_named():
    assert verify.violated({"a": 0.0, "b": verify.FEASIBLE}) is None
    assert verify.violated({"a": 2e-6, "b": 0.5, "c": 0.1}).startswith("b is violated by 0.5 (relative; 1e-06 allowed)")
    assert verify.violated({"a": 0.5, "b": np.nan}) == "residuals returned nan for 'b'"


def test_arrays_become_the_vector_of_a_form_or_none():
    blocks = {"x": Block("x", (2, 2), np.array([0, -1, 3, 1])), "T": Block("T", (), np.array([2]))}
    form = replace(program(np.zeros((1, 4)), ([0], [0]), ([0] * 4, [9] * 4), [1] * 4), columns=blocks)
    values = {"x": np.array([[1.0, 2.0], [3.0, 4.0]]), "T": np.array(5.0)}
    assert verify.pack(form, values).tolist() == [1.0, 4.0, 5.0, 3.0]
    assert verify.pack(form, {"x": values["x"]}) is None
    assert verify.pack(form, values | {"T": np.array([5.0, 6.0])}) is None
    assert verify.pack(form, values | {"T": np.array(np.nan)}) is None


# Bounds that rows and duals imply -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("A", "rows", "columns", "lower", "upper"),
    [
        ([[1, 1]], ([1], [4]), ([0, 0], [INF, INF]), [0, 0], [4, 4]),
        ([[1, 1]], ([1], [4]), ([-INF, -INF], [3, 2]), [-1, -2], [3, 2]),
        ([[2, -3]], ([-INF], [6]), ([1, -INF], [INF, 5]), [1, -4 / 3], [10.5, 5]),
        ([[1, 1, 1]], ([-INF], [4]), ([0, -INF, -INF], [INF] * 3), [0, -INF, -INF], [INF] * 3),
        ([[1, -1, 0], [0, 1, -1]], ([-INF] * 2, [0, 0]), ([0] * 3, [INF, INF, 7]), [0] * 3, [7, 7, 7]),
        ([[1, 1], [1, 0]], ([INF, -INF], [INF, 4]), ([0, 0], [INF, INF]), [0, 0], [4, INF]),
    ],
)
def test_rows_imply_bounds_of_columns_rounded_outward(A, rows, columns, lower, upper):
    form = program(A, rows, columns, np.ones(len(A[0])))
    low, high = WeakDuality.of(form)._implied
    assert low == pytest.approx(np.array(lower, dtype=float), rel=1e-12)
    assert high == pytest.approx(np.array(upper, dtype=float), rel=1e-12)
    assert (low <= lower).all()
    assert (high >= upper).all()


def test_implied_bounds_hold_in_exact_arithmetic():
    """The least sum of a row's other terms, which cancel, is rounded many times; x <= limit - sum all the same."""
    random = np.random.default_rng(0)
    tight = 0
    for _ in range(100):
        ends = random.choice([-1.0, 1.0], 60) * 10.0 ** random.uniform(-3, 3, 60)
        ends[30:] = -ends[:30] * (1 + 1e-13 * random.normal(size=30))
        random.shuffle(ends)
        form = program([[1.0] + [1.0] * 60], ([-INF], [1.0]), ([0.0, *ends], [INF, *ends]), np.ones(61))
        exact = Fraction(1) - sum(map(Fraction, ends.tolist()))
        found = WeakDuality.of(form)._implied[1][0]
        assert Fraction(float(found)) >= exact
        tight += found <= float(exact) + 1e-9
    assert tight == 100


def test_tighter_bounds_of_rows_and_columns_give_tighter_bounds():
    """min -x with x <= 5 by the row, or by what is given instead, and 1 more by the offset."""
    problem = WeakDuality.of(program([[1.0]], ([-INF], [5.0]), ([0.0], [8.0]), [-1.0]))
    pays, nothing = np.array([-1.0]), np.array([0.0])
    for bound, expected in (
        (problem.bound(pays, offset=1.0), -4.0),
        (problem.bound(pays, row_upper=np.array([2.0])), -2.0),
        (problem.bound(nothing), -8.0),
        (problem.bound(nothing, upper=np.array([3.0])), -3.0),
        (problem.bound(-pays), -8.0),  # a dual whose sign the open side forbids counts as 0
    ):
        assert expected * (1 + 1e-13) <= bound <= expected


def test_reduced_costs_of_free_columns_are_fractions_unless_they_are_many(monkeypatch):
    """min 0.3 x - 0.3 y: the dual 0.1 of 3 x - 3 y >= 6 pays all but a rounding, 0.3 of x - y >= 2 pays all."""
    free, cost = ([-INF] * 2, [INF] * 2), [0.3, -0.3]
    assert verify.dual_bound(program([[3.0, -3.0]], ([6.0], [INF]), free, cost), np.array([0.1])) == -INF
    form = program([[1.0, -1.0]], ([2.0], [INF]), free, cost)
    assert verify.dual_bound(form, np.array([0.3])) == pytest.approx(0.6)
    monkeypatch.setattr(verify, "EXACT_NONZEROS", 1)
    assert verify.dual_bound(form, np.array([0.3])) == -INF


# Optimality conditions ----------------------------------------------------------------------------------------------


def corner(sense="max", scale=1.0, units=1.0):
    """max 3 x0 + 2 x1, x0 + x1 <= 4, x0 + 3 x1 <= 6, x0 <= 3: x = (3, 1), y = (2, 0), 11; x0's bound costs 1."""
    flip = 1.0 if sense == "max" else -1.0
    A = sp.csc_array(np.array([[1.0, 1.0], [1.0, 3.0]])) * scale
    form = StandardForm(
        A,
        np.full(2, -np.inf),
        np.array([4.0, 6.0]) * scale * units,
        np.zeros(2),
        np.array([3.0, np.inf]) * units,
        flip * np.array([3.0, 2.0]),
        sense,
    )
    return form, np.array([3.0, 1.0]) * units, flip * np.array([2.0, 0.0]) / scale


@pytest.mark.parametrize("sense", ["max", "min"])
def test_an_exact_vertex_has_no_residuals(sense):
    form, x, y = corner(sense)
    assert kkt(form, x, y) == {"primal": 0.0, "dual": 0.0, "gap": 0.0}


def test_residuals_are_what_was_put_in():
    form, x, y = corner()
    assert kkt(form, x + np.array([0.0, 0.06]), y)["primal"] == pytest.approx(0.18 / 6)  # second row, over its bound
    assert kkt(form, x - np.array([0.0, 0.11]), y) == {"primal": 0.0, "dual": 0.0, "gap": pytest.approx(0.22 / 11)}
    assert kkt(form, x, y * 0.9)["dual"] == pytest.approx(0.2 / 3)  # 2 - 1.8 for free, over the largest cost
    assert kkt(form, x, np.array([2.2, -0.05]))["dual"] == pytest.approx(0.05 / 2.2)  # a sign the open side forbids
    assert kkt(form, x, -y)["dual"] == pytest.approx(4 / 3)  # x1 costs 2 + 2
    assert kkt(form, np.array([-0.3, 1.0]), y)["primal"] == pytest.approx(0.3)  # a column, over the largest
    assert kkt(form, x, None) == {"primal": 0.0, "dual": None, "gap": None}


@pytest.mark.parametrize("bad", [np.array([1.0, np.nan]), np.array([1.0])])
def test_no_vector_is_infinitely_wrong(bad):
    form, x, y = corner()
    assert kkt(form, bad, y) == {"primal": np.inf, "dual": np.inf, "gap": np.inf}
    assert kkt(form, x, bad)["dual"] == np.inf


@given(st.floats(1e-6, 1e6), st.floats(1e-6, 1e6), st.floats(-0.2, 0.2), st.floats(-0.2, 0.2))
def test_units_change_no_residual(scale, units, dx, dy):
    def moved(*how):
        form, x, y = corner("max", *how)
        return kkt(form, x * (1 + dx), y * (1 + dy))

    assert moved(scale, units) == pytest.approx(moved(), rel=1e-9, abs=1e-12)


def test_sizes_of_terms():
    form = program([[1, 1]], ([0], [1]), ([0, 0], [1, 1]), [2, -3], offset=-1.0)
    assert verify.size_of_terms(form, np.array([1.0, 2.0])) == 9.0


# What is proven -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("objective", "bound", "sense", "gap"),
    [
        (1.0, 1.1, "max", 0.1),
        (-2.0, -2.5, "min", 0.25),
        (1.0, 0.9, "max", -0.1),
        (0.0, 0.0, "max", 0.0),
        (0.0, 1e-308, "max", INF),
        (0.0, -1e-12, "max", -INF),
        (1e-300, 1.5e-300, "max", 0.5),
        (1.0 + 5e-10, 1.0, "max", 0.0),  # past its bound by a part of its size
        (1e-20, 1e-20 * (1 - 1e-6), "max", -1e-6),
        (None, 1.0, "max", None),
        (1.0, None, "max", None),
        (1.0, INF, "max", None),
    ],
)
def test_gaps_are_relative_to_the_value_and_signed(objective, bound, sense, gap):
    assert verify.relative_gap(objective, bound, sense) == (gap if gap is None else pytest.approx(gap, abs=0, rel=1e-9))
    proven = verify.closes(None if bound is None else Bound("b", bound, ""), objective, sense, 0.1 + 1e-9)
    assert proven == (gap in {0.0, 0.1})


@pytest.mark.parametrize(
    ("verified", "objective", "bound", "proof", "gap"),
    [
        (True, 1.0, 0.9, Proof.FEASIBLE, -0.1),
        (True, 1.0, 1.0 + 5e-7, Proof.OPTIMAL, 5e-7),
        (True, 1.0, 1.1, Proof.CERTIFIED_GAP, 0.1),
        (True, 1.0, None, Proof.FEASIBLE, None),
        (True, 1.0, INF, Proof.FEASIBLE, None),
        (True, 0.0, 1e-12, Proof.FEASIBLE, None),
        (True, 0.0, -1e-12, Proof.FEASIBLE, None),
        (False, 1.0, 1.1, Proof.BOUND_ONLY, None),
        (False, 1.0, INF, Proof.NONE, None),
        (False, None, None, Proof.NONE, None),
    ],
)
def test_value_and_bound_prove(verified, objective, bound, proof, gap):
    for sign, sense in ((1, "max"), (-1, "min")):
        value, end = (None if one is None else sign * one for one in (objective, bound))
        found = verify.prove(verified=verified, objective=value, bound=end, sense=sense, tol=1e-6)
        assert found == (proof, gap if gap is None else pytest.approx(gap))


@pytest.mark.parametrize(
    ("own", "data", "both"),
    [
        (("optimal", 0.0), ("optimal", 1e-7), ("optimal", 0.0)),
        (("optimal", 0.0), ("certified-gap", 2.0), ("certified-gap", 2.0)),
        (("certified-gap", 0.1), ("certified-gap", 2.0), ("certified-gap", 2.0)),
        (("certified-gap", 3.0), ("certified-gap", 2.0), ("certified-gap", 3.0)),
        (("optimal", 0.0), ("feasible", None), ("feasible", None)),
        (("feasible", None), ("certified-gap", 0.1), ("feasible", None)),
        (("bound-only", None), ("feasible", None), ("bound-only", None)),
    ],
)
def test_the_weaker_proof_and_the_wider_gap_count(own, data, both):
    assert verify.capped(Proof(own[0]), own[1], Proof(data[0]), data[1]) == both


@pytest.mark.parametrize("sign", [1, -1])
def test_the_tightest_bound_counts_and_none_may_be_tighter_than_an_exact_one(sign):
    sense = "max" if sign > 0 else "min"
    loose, tight = Bound("loose", 5.0 * sign, ""), Bound("tight", 4.0 * sign, "")
    same, none = Bound("same", 4.0 * sign, "", exact=True), Bound("none", INF * sign, "")
    assert verify.tightest([none], sense) is None
    assert verify.tightest([none, loose, tight], sense) is tight
    assert verify.tightest([tight, same], sense) is verify.tightest([same, tight], sense) is same
    assert verify.differing_from([none, loose, tight], 4.0 * sign, sense) == [loose]
    assert verify.contradiction([none], 9.0 * sign, sense) is None
    assert verify.contradiction([loose, tight, same], 4.0 * sign, sense) is None
    beyond = Bound("beyond", 3.0 * sign, "")
    assert f"beyond gives {3 * sign}, but according to same" in verify.contradiction([same, beyond], None, sense)
    assert f"the value {4 * sign} satisfies" in verify.contradiction([loose, beyond], 4.0 * sign, sense)
    assert verify.contradiction([same], 4.0 * sign * (1 + 1e-10), sense) is None, "within the rounding of a solver"


# Functions of formulations ------------------------------------------------------------------------------------------


class Packing(oc.Formulation):
    """max x + y with x + y <= 1, whose functions return what a test sets."""

    name, sense = "own.packing", "max"
    returned = 0.0

    def cvxpy(self):
        raise NotImplementedError

    def residuals(self, values):
        return self.returned

    def objective(self, values):
        return self.returned

    def metrics(self, value):
        return {"inverse": 1 / value}


def own(returned):
    problem = Packing(oc.parse("ring:4"))
    problem.returned = returned
    return problem


@pytest.mark.parametrize("number", [2, 2.0, np.float32(2), np.array(2), np.True_])
def test_numbers_of_any_kind_are_values(number):
    assert verify.objective(own(number), {}) == float(number)
    assert verify.residuals(own({"sum": number}), {}) == {"sum": float(number)}


@pytest.mark.parametrize("other", ["2", None, np.array([2.0]), np.array("2"), 2j])
def test_anything_else_is_refused(other):
    with pytest.raises(oc.BadInput, match=r"objective returned .*; return a number"):
        verify.objective(own(other), {})
    for result in ({"sum": other}, {}, 3.0):
        with pytest.raises(oc.BadInput, match=r"residuals returned .*; return the worst violation of every block"):
            verify.residuals(own(result), {})


def test_slack_is_no_violation():
    result = verify.residuals(own({"apart": -1.0, "whole": np.nan, "sum": 0.5}), {})
    assert (result["apart"], result["sum"]) == (0.0, 0.5)
    assert np.isnan(result["whole"])


def test_metrics_of_a_formulation_from_outside_get_a_verified_value_only():
    assert verify.properties(own(0.0), "metrics", 2.0) == {"inverse": 0.5}
    assert verify.properties(own(0.0), "metrics", None) == {}
    ours = make_plan(Task("alltoall.master", "ring:4")).problem
    assert verify.properties(ours, "metrics", None)["ranks"] == 4


def test_a_build_that_differs_from_the_objective_is_described():
    form = program([[1, 1]], ([0], [1]), ([0, 0], [1, 1]), [1, 1], "max", offset=2.0)
    form = replace(form, columns={"x": Block("x", (2,), np.array([0, 1]))})
    values, problem = {"x": np.array([0.25, 0.75])}, own(0.0)
    assert verify.misstated(problem, form, values, 3.0) is None
    wrong = verify.misstated(problem, form, values, 3.5)
    assert "that of the build is 3 at this solution, but objective() returns 3.5" in wrong
    ours = make_plan(Task("alltoall.master", "ring:4")).problem
    for missing in ((problem, None, values), (problem, form, {}), (ours, form, values)):
        assert verify.misstated(*missing, 3.5) is None

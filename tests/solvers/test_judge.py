"""What values and bounds of several methods prove together, and which values are repaired before they are judged."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from opticoll.formulations.model import Bound
from opticoll.solvers import judge as judging
from opticoll.solvers import solve
from opticoll.solvers.evidence import Checked, Evidence, check_values
from opticoll.solvers.judge import best_of, compared, judge
from opticoll.solvers.run import Solved
from opticoll.solvers.task import Outcome, Proof, Task, Termination


def evidence(value, *bounds, sign=1, infeasible_by=None, closed_forms=()):
    """Of a maximization with sign 1, of a minimization of the opposite with -1; without a value nothing is verified."""
    problem = SimpleNamespace(sense="max" if sign > 0 else "min")
    state = SimpleNamespace(plan=SimpleNamespace(problem=problem), task=SimpleNamespace(tol=1e-6))
    checked = Checked(objective=None if value is None else sign * value, verified=value is not None)
    solved = Solved(Outcome(Termination.OPTIMAL), infeasible_by=infeasible_by)
    own, closed = ([Bound(f"b{bound}", sign * bound, "") for bound in ends] for ends in (bounds, closed_forms))
    return Evidence(state, solved, checked, own, [replace(one, exact=True) for one in closed], None)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    ("values", "bounds", "lead"),
    [
        ((1.0, 1.2), (), 1),
        ((1.2, 1.0), (), 0),
        ((None, 1.0), (), 1),
        ((1.0, None), (), 0),
        ((None, None), (), 1),
        ((1.0, 1.0), (), 0),
        ((1.0, 1.0), (1.0,), 1),  # the bound proves the later one
        ((1.0, 1.0 - 5e-10), (1.0,), 1),
        ((1.0, 1.0 - 1e-7), (1.0,), 0),
        ((1.0, 1.0, 1.1), (1.2,), 2),
    ],
)
def test_the_best_verified_value_leads(values, bounds, lead, sign):
    found = [evidence(value, *bounds, sign=sign) for value in values]
    best, bound = best_of(found)
    assert [one is best for one in found].index(True) == lead
    assert (bound is None) == (not bounds)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_tightest_bound_of_all_is_that_of_the_best_value(sign):
    judged = judge([evidence(1.0, 3.0, sign=sign), evidence(1.5, 2.0, 1.8, sign=sign)])
    assert (judged.lead.checked.objective, judged.bound.value) == (1.5 * sign, 1.8 * sign)
    assert (judged.proof, judged.gap, judged.verified) == (Proof.CERTIFIED_GAP, pytest.approx(0.2), True)
    assert judge([evidence(2.0, 2.0, sign=sign)]).proof is Proof.OPTIMAL
    assert judge([evidence(None, 2.0, sign=sign)]).proof is Proof.BOUND_ONLY


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    ("found", "words"),
    [
        ([(2.0, {}), (None, {"bounds": (1.0,)})], "value and bound contradict each other"),
        ([(1.0, {"bounds": (1.5,), "closed_forms": (2.0,)})], "according to b2.0"),
        ([(2.0, {"closed_forms": (1.0,)})], "value and bound contradict each other"),
        ([(1.0, {}), (None, {"infeasible_by": "a bound"})], "but a bound excludes all solutions"),
    ],
)
def test_results_that_contradict_each_other_prove_nothing(found, words, sign):
    judged = judge([evidence(value, *more.pop("bounds", ()), sign=sign, **more) for value, more in map(copied, found)])
    assert (judged.proof, judged.gap, judged.bound, judged.verified) == (Proof.NONE, None, None, False)
    (note,) = judged.notes
    assert words in note
    assert note.endswith("; nothing is proven")


def copied(pair):
    return pair[0], dict(pair[1])


def test_a_closed_form_that_agrees_is_no_bound():
    judged = judge([evidence(1.0, closed_forms=(1.0,))])
    assert (judged.proof, judged.bound, judged.notes) == (Proof.FEASIBLE, None, ())


@pytest.mark.parametrize(
    ("data", "proof", "gap", "noted"),
    [
        (Proof.OPTIMAL, Proof.OPTIMAL, 0.0, ""),
        (Proof.CERTIFIED_GAP, Proof.CERTIFIED_GAP, 2.0, "optimal for its data, a solution of alltoall.master that is"),
        (Proof.FEASIBLE, Proof.FEASIBLE, 2.0, "that is only feasible: nothing stronger is proven"),
    ],
)
def test_data_of_another_run_limit_what_is_proven(data, proof, gap, noted):
    needed = SimpleNamespace(
        proof=data, record=SimpleNamespace(gap=2.0), task=SimpleNamespace(formulation="alltoall.master")
    )
    judged = judge([evidence(2.0, 2.0)], needed)
    assert (judged.proof, judged.gap) == (proof, gap)
    assert noted in "".join(judged.notes)
    assert bool(noted) == bool(judged.notes)
    none = judge([evidence(None, infeasible_by="a bound")], needed)
    assert none.infeasible_by == (None if noted else "a bound")
    assert bool(noted) == any(note.startswith("infeasible for its data") for note in none.notes)


@pytest.mark.parametrize("limit_s", [None, 60.0])
def test_bounds_that_are_shown_beside_a_value_have_a_limit_where_the_run_has_one(limit_s, monkeypatch):
    run = replace(solve.solve(Task("alltoall.master", "ring:4", "highs", time_limit_s=limit_s)), bounds=None)
    asked = []

    def limited(step, deadline, **_):
        asked.append(deadline)
        raise MemoryError

    monkeypatch.setattr(judging, "limited", limited)
    assert compared(run) is run
    assert [deadline is None for deadline in asked] == [limit_s is None]


def test_values_that_are_inexact_are_repaired_and_no_others(monkeypatch):
    run = solve.solve(Task("alltoall.master", "ring:4", "highs"))
    state = SimpleNamespace(plan=run.plan, notes=[])
    above = {"g": run.values["g"], "F": run.values["F"] * 1.01}
    checked = check_values(state, Solved(Outcome(Termination.OPTIMAL), values=above))
    assert checked.verified
    assert checked.objective == pytest.approx(0.5)
    assert checked.repaired.claimed == pytest.approx(0.505)
    monkeypatch.setattr(type(run.plan.problem), "repair", lambda *_: pytest.fail("nothing is to be repaired"))
    assert check_values(state, Solved(Outcome(Termination.OPTIMAL), values=run.values)).repaired is None
    wrong = check_values(state, Solved(Outcome(Termination.OPTIMAL), values={"g": np.zeros(3), "F": np.array(1.0)}))
    assert (wrong.verified, wrong.objective) == (False, None)
    assert state.notes[-1].startswith("refused: ")

"""Copies of ``oc.model`` are the same model, apart from the original."""

from __future__ import annotations

import copy

import cvxpy as cp
import pyomo.environ as pyo
import pytest

import opticoll as oc

FORMS = ("pyomo", "cvxpy")


def limited(model):
    """Limit the rate by hand, with a rule that has no name."""
    if model.form == "pyomo":
        model.pyomo.limit = pyo.Constraint([0], rule=lambda m, _: m.F <= 0.1)
    else:
        F = model.cvxpy.var_dict["F"]
        model.cvxpy = cp.Problem(model.cvxpy.objective, [*model.cvxpy.constraints, F <= 0.1])
    return model


@pytest.mark.parametrize("form", FORMS)
def test_a_copy_is_the_same_model(form):
    model = oc.model("alltoall.link-mcf", "ring:4", form=form)
    for step in range(3):  # as it was built, solved, and updated
        if step:
            model.update(capacity=float(step)).solve()
        copied = copy.deepcopy(model)
        assert (copied.changed, copied.solve().T) == (False, pytest.approx(2.0 / (step or 1)))
        updated = copied.update(capacity=4.0).solve()
        assert updated.value == pytest.approx(2.0)
        assert (model.changed, model.solve().T) == (False, pytest.approx(2.0 / (step or 1)))


@pytest.mark.parametrize("form", FORMS)
def test_a_copy_keeps_what_was_changed_by_hand(form):
    model = limited(oc.model("alltoall.link-mcf", "ring:4", form=form))
    copied = copy.deepcopy(model)
    assert copied.changed
    result, same = copied.solve(), model.solve()
    assert result.T == same.T == pytest.approx(10.0)  # the objective is known to be that of the formulation
    assert result.record.instance == same.record.instance
    twice = copy.deepcopy(copied).solve()
    assert twice.value == pytest.approx(0.1)

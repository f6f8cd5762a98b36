"""Every formulation, as it is stated in Pyomo and in CVXPY, has the optimum that is known in another way."""

from __future__ import annotations

import pytest
from cases import PROBLEMS

import opticoll as oc

OPTIMA = {name: one.optimum for name, one in PROBLEMS.items() if one.optimum}
STATED = (("highs", "pyomo"), ("scip", "cvxpy"))


@pytest.mark.parametrize("name", OPTIMA)
def test_the_stated_models_have_the_optimum_that_is_known(name):
    known = OPTIMA[name]
    runs = [
        oc.solve(oc.Task(name, known.instance, method, form=form, settings=known.settings)) for method, form in STATED
    ]
    assert [run.verified for run in runs] == [True, True]
    assert [run.termination for run in runs] == ["optimal", "optimal"]
    assert [run.objective for run in runs] == pytest.approx([value_of(name, known)] * 2, rel=1e-5)


def value_of(name, known):
    """The optimum, by a method of another kind, by another model, or as published."""
    if isinstance(known.by, (int, float)):
        return known.by
    method, settings = ("highs", known.by) if isinstance(known.by, dict) else (known.by, known.settings)
    run = oc.solve(oc.Task(name, known.instance, method, settings=settings))
    assert run.verified
    assert run.proof in {"optimal", "exact"}
    return run.objective

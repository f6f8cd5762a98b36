"""Every formulation, as it is stated in Pyomo and in CVXPY, has the value that its certified method proves."""

from __future__ import annotations

import pytest
from problems import PROBLEMS

import opticoll as oc

CERTIFIED = {name: problems.certified for name, problems in PROBLEMS.items() if problems.certified is not None}
STATED = (("highs", "pyomo"), ("scip", "cvxpy"))


@pytest.mark.parametrize("name", CERTIFIED)
def test_stated_is_certified(name):
    spec, settings, other = CERTIFIED[name]
    runs = [oc.solve(oc.Task(name, spec, method, form=form, settings=settings)) for method, form in STATED]
    if isinstance(other, dict):
        runs.append(oc.solve(oc.Task(name, spec, "highs", settings=other)))
    else:
        runs.append(oc.solve(oc.Task(name, spec, other, settings=settings)))
    assert [run.verified for run in runs] == [True] * 3
    assert [run.termination for run in runs[:2]] == ["optimal", "optimal"]
    assert runs[-1].proof in {"optimal", "exact"}
    assert [run.objective for run in runs] == pytest.approx([runs[-1].objective] * 3, rel=1e-5)

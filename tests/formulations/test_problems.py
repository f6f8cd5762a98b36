"""Every formulation has the small problems that the tests of all formulations need."""

from __future__ import annotations

from dataclasses import replace

from cases import PROBLEMS, STATED, missing
from problems import Problems

from opticoll.formulations import formulations


def test_every_formulation_has_its_problems():
    assert missing(formulations(), STATED) == []


def test_what_is_missing_is_said_with_its_file():
    model, child = formulations()["alltoall.min-congestion"], formulations()["alltoall.child"]
    models, right = {model.name: model, child.name: child}, {name: PROBLEMS[name] for name in (model.name, child.name)}
    assert missing(models, right) == []
    (nothing,) = missing(models, right | {model.name: Problems()})
    assert nothing.startswith("tests/problems/alltoall/min_congestion.py: PROBLEMS = Problems(...) needs cases (")
    assert all(f", {part} (" in nothing for part in ("optimum", "draws"))
    assert missing(models, {child.name: right[child.name]}) == [nothing]
    (without,) = missing(models, right | {child.name: replace(right[child.name], needed=None)})
    assert "tests/problems/alltoall/child.py" in without
    assert "needs needed (a function that makes a solution of alltoall.master)" in without
    assert missing({child.name: child}, right) == [
        "tests/problems/alltoall/min_congestion.py: there is no formulation alltoall.min-congestion"
    ]

"""Copies and pickles of ``oc.model`` are the same model, apart from the original."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import cvxpy as cp
import pyomo.environ as pyo
import pytest

import opticoll as oc

FORMS = ("pyomo", "cvxpy")
COPIES = {
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),  # noqa: S301
}


def limited(model):
    """Limit the rate by hand, with a rule that has no name."""
    if model.form == "pyomo":
        model.pyomo.limit = pyo.Constraint([0], rule=lambda m, _: m.F <= 0.1)
    else:
        F = model.cvxpy.var_dict["F"]
        model.cvxpy = cp.Problem(model.cvxpy.objective, [*model.cvxpy.constraints, F <= 0.1])
    return model


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("way", COPIES)
def test_a_copy_is_the_same_model(way, form):
    model = oc.model("alltoall.link-mcf", "ring:4", form=form)
    for step in range(3):  # as it was built, solved, and updated
        if step:
            model.update(capacity=float(step)).solve()
        copied = COPIES[way](model)
        assert (copied.changed, copied.solve().T) == (False, pytest.approx(2.0 / (step or 1)))
        updated = copied.update(capacity=4.0).solve()
        assert updated.value == pytest.approx(2.0)
        assert (model.changed, model.solve().T) == (False, pytest.approx(2.0 / (step or 1)))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("way", COPIES)
def test_a_copy_keeps_what_was_changed_by_hand(way, form):
    model = limited(oc.model("alltoall.link-mcf", "ring:4", form=form))
    copied = COPIES[way](model)
    assert copied.changed
    result, same = copied.solve(), model.solve()
    assert result.T == same.T == pytest.approx(10.0)  # the objective is known to be that of the formulation
    assert result.record.instance == same.record.instance
    twice = COPIES[way](copied).solve()
    assert twice.value == pytest.approx(0.1)


@pytest.mark.parametrize("form", [pytest.param("pyomo", marks=pytest.mark.slow), "cvxpy"])
def test_another_process_reads_a_pickle(form, tmp_path):
    path = tmp_path / "model.pickle"
    path.write_bytes(pickle.dumps(limited(oc.model("alltoall.link-mcf", "ring:4", form=form))))
    code = f"import pickle; m = pickle.load(open({str(path)!r}, 'rb')); print(m.changed, round(m.solve().T, 6))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.split() == ["True", "10.0"]

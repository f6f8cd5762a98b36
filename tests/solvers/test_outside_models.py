"""Models that other people write: the same optimum as by the layer's own solver, with the values of all variables.

Or one line that names what is not supported. The values are put into a second copy of the model, by their names and
labels, and every constraint, bound and domain is evaluated there.
"""

from __future__ import annotations

import json
import subprocess
import sys
import warnings

import numpy as np
import outside_models
import pytest
from outside_models import CVXPY, INFEASIBLE, PYOMO, REFUSED

import opticoll as oc
from opticoll.errors import ModelError
from opticoll.solvers.standard_form import compile_model, import_layer
from opticoll.solvers.task import Termination

TOLERANCE = 1e-6


@pytest.fixture(scope="module")
def optima():
    """Optima of all cases by the layers' own solvers."""
    done = subprocess.run(
        [sys.executable, outside_models.__file__], capture_output=True, text=True, check=True, timeout=300
    )
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(autouse=True)
def quiet():
    """The layers may warn about what people write."""
    for form in ("pyomo", "cvxpy"):
        import_layer(form)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def formulation(form, build, **changes):
    """A plug-in's formulation around a model; its value is that of the model, its checker is the test."""
    matrix = compile_model(build()) if changes.pop("compile", True) else None

    def objective(data, values):
        if form == "cvxpy":
            problem = build()
            for variable in problem.variables():
                variable.value = values[variable.name()]
            return float(problem.objective.value)
        x = np.zeros(matrix.A.shape[1])
        for name, block in matrix.columns.items():
            x[block.index[block.index >= 0]] = values[name].ravel()[block.index >= 0]
        return matrix.objective(x)

    return oc.Formulation(**{
        "name": "own.outside", "title": "Outside", "sense": "min" if matrix is None else matrix.sense,
        "problem": "MILP", "build": {form: lambda data: build()}, "residuals": lambda data, values: {"none": 0.0},
        "objective": objective,
    } | changes)  # fmt: skip


def solved(form, build):
    result = oc.solve(formulation(form, build), "path:2")
    assert result.record.verified, result.record.message
    return result


def keys(block):
    """Pyomo's index of every entry of a named array, in C order; None for a scalar."""
    for place in np.ndindex(block.shape):
        key = []
        for i, labels in zip(place, block.labels or (None,) * len(place), strict=True):
            label = i if labels is None else labels[i]
            key += label if isinstance(label, tuple) else [label]
        yield tuple(key) if len(key) > 1 else key[0] if key else None


def put(model, build, values):
    """Set every variable that ``values`` has by name and index; return the names of those that are set."""
    columns = compile_model(build()).columns
    done = set()
    for name, array in values.items():
        component = model.find_component(name)
        for key, value in zip(keys(columns[name]), np.ravel(array).tolist(), strict=True):
            entry = component[key]
            assert not entry.fixed or value == entry.value, entry.name
            entry.set_value(value, skip_validation=True)
            done.add(entry.name)
    return done


@pytest.mark.parametrize("name", PYOMO)
def test_a_pyomo_model_has_the_optimum_and_values_of_its_own_solver(name, optima):
    import pyomo.environ as pyo

    case, right = PYOMO[name], optima["pyomo"][name]
    result = solved("pyomo", case.build)
    assert result.objective == pytest.approx(right["objective"], abs=TOLERANCE)
    assert str(result.proof) == "optimal" or (result.objective == 0), result.record.message
    model = case.build()
    done = put(model, case.build, result.values)
    assert {v.name for v in model.component_data_objects(pyo.Var, active=True)} <= done
    for entry in model.component_data_objects(pyo.Var, active=True):
        if not entry.fixed:
            low, high = (np.inf if one is None else one for one in (entry.lb, entry.ub))
            assert entry.lb is None or entry.value >= low - TOLERANCE, entry.name
            assert entry.ub is None or entry.value <= high + TOLERANCE, entry.name
            assert not entry.is_integer() or entry.value == pytest.approx(round(entry.value), abs=TOLERANCE)
    for row in model.component_data_objects(pyo.Constraint, active=True):
        assert row.body is None or min(row.lslack(), row.uslack()) >= -TOLERANCE, row.name
    if case.unique:
        ours = {v.name: v.value for v in model.component_data_objects(pyo.Var, active=None) if v.name in done}
        theirs = {key: value for key, value in right["values"].items() if value is not None and key in ours}
        assert {key: ours[key] for key in theirs} == pytest.approx(theirs, abs=TOLERANCE)
        assert {key for key, value in right["values"].items() if value is not None} <= done


@pytest.mark.parametrize("name", CVXPY)
def test_a_cvxpy_problem_has_the_optimum_and_values_of_its_own_solver(name, optima):
    case, right = CVXPY[name], optima["cvxpy"][name]
    result = solved("cvxpy", case.build)
    assert result.objective == pytest.approx(right["objective"], abs=TOLERANCE)
    problem = case.build()
    assert {v.name(): v.shape for v in problem.variables()} == {k: v.shape for k, v in result.values.items()}
    for variable in problem.variables():
        value = result.values[variable.name()]
        assert np.abs(np.asarray(variable.project(value) - value)).max(initial=0.0) <= TOLERANCE
        variable.value = value
    assert float(problem.objective.value) == pytest.approx(right["objective"], abs=TOLERANCE)
    for constraint in problem.constraints:
        assert np.max(constraint.violation(), initial=0.0) <= TOLERANCE
    if case.unique:
        for key, value in right["values"].items():
            np.testing.assert_allclose(result.values[key], np.reshape(value, result.values[key].shape), atol=TOLERANCE)


@pytest.mark.parametrize("name", INFEASIBLE)
def test_a_model_without_solutions_is_proven_infeasible(name):
    build = INFEASIBLE[name]
    form = type(build()).__module__.partition(".")[0]
    result = oc.solve(formulation(form, build), "path:2")
    assert result.termination is Termination.INFEASIBLE
    assert result.record.infeasible_by, result.record.message


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_supported_is_named_in_one_line(name, capfd):
    build, pattern = REFUSED[name]
    form = type(build()).__module__.partition(".")[0]
    capfd.readouterr()
    with pytest.raises(ModelError, match=pattern) as refusal:
        compile_model(build())
    assert capfd.readouterr().err == ""
    assert "\n" not in str(refusal.value)
    with pytest.raises(ModelError, match=f"formulation 'own.outside': .*({pattern})"):
        oc.solve(formulation(form, build, compile=False), "path:2")

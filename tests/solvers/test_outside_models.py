"""Models that other people write: the same optimum as by the layer's own solver, with the values of all variables.

Or one line that names what is not supported. The values are put into a second copy of the model, by their names and
labels, and every constraint, bound and domain is evaluated there.
"""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import outside_models
import pyomo.environ as pyo
import pytest
from outside_models import CVXPY, INFEASIBLE, PYOMO, REFUSED, UNBOUNDED

import opticoll as oc
from opticoll.analysis.cli.main import main
from opticoll.errors import ModelError
from opticoll.formulations.model import PyomoModel
from opticoll.formulations.modelling_layers import import_layer
from opticoll.solvers.compile.compilation import compile_model
from opticoll.solvers.run_state import RunState
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
    """CVXPY warns about dense values of sparse variables, which the tests set; solving gives no warning."""
    for form in ("pyomo", "cvxpy"):
        import_layer(form)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".* sparse CVXPY expression", category=RuntimeWarning)
        yield


def test_compiling_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for case in CVXPY.values():
            compile_model(case.build())


def formulation(form, build, **changes):
    """A plug-in's formulation around a model; its value is that of the model, its checker is the test."""
    matrix = compile_model(build()) if changes.pop("compile", True) else None

    def objective(self, values):
        if form == "cvxpy":
            problem = build()
            for variable in problem.variables():
                variable.value = values[variable.name()]
            return float(problem.objective.value)
        x = np.zeros(matrix.A.shape[1])
        for name, block in matrix.columns.items():
            x[block.index[block.index >= 0]] = values[name].ravel()[block.index >= 0]
        return matrix.objective(x)

    return type(
        "Outside",
        (oc.Formulation,),
        {
            "name": "own.outside",
            "sense": "min" if matrix is None else matrix.sense,
            "problem": "MILP",
            form: lambda self: build(),
            "residuals": lambda self, values: {"none": 0.0},
            "objective": objective,
            "__module__": __name__,
        }
        | changes,
    )


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
    """Set every variable that ``values`` has by name and index.

    Returns the names of those that are set, and those of the columns.
    """
    form = compile_model(build())
    columns = form.columns
    done = set()
    for name, array in values.items():
        component = model.find_component(name)
        for key, value in zip(keys(columns[name]), np.ravel(array).tolist(), strict=True):
            entry = component[key]
            assert not entry.fixed or value == entry.value, entry.name
            entry.set_value(value, skip_validation=True)
            done.add(entry.name)
    return done, form.column_names()


@pytest.mark.parametrize("name", PYOMO)
def test_a_pyomo_model_has_the_optimum_and_values_of_its_own_solver(name, optima):
    import pyomo.environ as pyo

    case, right = PYOMO[name], optima["pyomo"][name]
    result = solved("pyomo", case.build)
    assert result.objective == pytest.approx(right["objective"], abs=TOLERANCE)
    assert str(result.proof) == "optimal" or (result.objective == 0), result.record.message
    model = case.build()
    done, columns = put(model, case.build, result.values)
    if name != "numpy_indices":  # which Pyomo prints as numpy does
        assert set(columns) <= {v.name for v in model.component_data_objects(pyo.Var, active=None)}
    assert len(columns) == len(set(columns))
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


@pytest.mark.parametrize("name", [*INFEASIBLE, *UNBOUNDED])
def test_a_model_without_an_optimum_is_proven_to_have_none(name, optima):
    build = {**INFEASIBLE, **UNBOUNDED}[name]
    result = oc.solve(formulation(type(build()).__module__.partition(".")[0], build), "path:2")
    if name in INFEASIBLE:
        assert result.termination is Termination.INFEASIBLE
        assert result.record.infeasible_by, result.record.message
    else:
        assert optima["unbounded"][name]
        assert result.termination is Termination.UNBOUNDED
        assert "proven by a solution and a ray" in result.record.message


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_supported_is_named(name, capfd):
    build, pattern = REFUSED[name]
    form = type(build()).__module__.partition(".")[0]
    capfd.readouterr()
    with pytest.raises(ModelError, match=pattern):
        compile_model(build())
    assert capfd.readouterr().err == ""
    with pytest.raises(ModelError, match=f"formulation 'own.outside': .*({pattern})"):
        oc.solve(formulation(form, build, compile=False), "path:2")


def test_column_and_row_names_are_those_of_the_model():
    form = compile_model(PYOMO["nested_blocks"].build())
    assert "node[1].part[left].f[x]" in form.column_names()
    assert "node[2].part[right].least[y]" in form.row_names()
    form = compile_model(PYOMO["mixed_indices"].build())
    assert form.column_names() == ["x[1]", "x['1']", "x[2,b]", "x[c,3,1.5]", "x[None]"]
    assert compile_model(PYOMO["one_based_and_reversed"].build()).columns["y"].labels == ()


def test_tables_and_solution_files_name_the_indices(tmp_path):
    model = formulation("pyomo", PYOMO["arcs_and_commodities"].build)
    result = oc.solve(model, "path:2")
    frame = result.frame("f", zeros=True)
    assert list(frame.columns) == ["index_0", "index_1", "index_2", "f"]
    assert frame.to_numpy().tolist()[:3] == [["a", "b", "k", 0.5], ["a", "b", 7, 0.0], ["b", "c", "k", 0.0]]
    result.save(tmp_path / "solution.json")
    document = json.loads((tmp_path / "solution.json").read_text())
    assert document["indices"] == {"f": [[list(arc) for arc in outside_models.ARCS], ["k", 7]]}
    assert oc.check(model, "path:2", tmp_path / "solution.json")["verified"]
    frame = solved("pyomo", PYOMO["mixed_indices"].build).frame("x")
    assert frame["index_0"].tolist() == [1, "1", (2, "b"), ("c", 3, 1.5), None]


def test_an_index_set_with_large_numbers_allocates_nothing():
    form = compile_model(PYOMO["huge_indices"].build())
    assert {name: block.shape for name, block in form.columns.items()} == {"x": (2,), "pair": (2,)}
    assert sum(block.index.size for block in (*form.columns.values(), *form.rows.values())) == 6


def test_violated_constraints_are_active_again_after_compiling():
    import pyomo.environ as pyo

    model = INFEASIBLE["violated_by_parameters"]()
    form = compile_model(model)
    names = ["c[never]", "c[fine]", "d"]
    assert [c.name for c in model.component_data_objects(pyo.Constraint, active=True)] == names
    assert form.row_names() == ["c[fine]", "c[never]", "d"]
    assert (form.row_lower.tolist(), form.row_upper[1]) == ([1, -np.inf, 0.5], -1)
    assert np.diff(form.A.tocsr().indptr).tolist() == [1, 0, 0]


def test_values_of_a_model_with_stated_axes_include_those_that_no_row_mentions():
    model = PYOMO["unused_variables"].build()
    model.away[1].fix(3.5)
    axes = {"x": (), "away": (2,), "below": (), "unused": (["s"],)}
    form = compile_model(PyomoModel(model, axes, {}))
    values = form.values(form.col_lower)
    found = {name: array.tolist() for name, array in values.items()}
    assert found == {"x": 1, "away": [3, 3.5], "below": -np.inf, "unused": [0]}
    assert (form.cost.tolist(), form.A.nnz) == ([1, 0, 0, 0], 1)


def test_one_name_for_two_variables_is_refused():
    import pyomo.environ as pyo

    model, other = pyo.ConcreteModel(), pyo.ConcreteModel()
    model.x, other.x = pyo.Var(bounds=(0, 1)), pyo.Var(bounds=(0, 1))
    model.cost = pyo.Objective(expr=model.x + other.x)
    with pytest.raises(ModelError, match="two Pyomo variables have the name 'x'"):
        compile_model(model)


PLUGIN = """
import sys
sys.path.insert(0, {folder!r})
import outside_models
import pyomo.environ as pyo
import opticoll as oc
from opticoll.solvers.run_state import RunState

class FORMULATION(oc.Formulation):
    name, sense, problem = "own.outside", "min", "MILP"
    def {form}(self): return outside_models.{build}()
    def residuals(self, values): return {{"none": 0.0}}
    def objective(self, values): return {objective}
"""


@pytest.mark.usefixtures("forgotten_plugins")
@pytest.mark.parametrize(
    ("form", "build", "objective", "status", "message"),
    [
        ("pyomo", "PYOMO['blocks'].build", "float(values['b[0].f'] + values['b[1].f'])", 0, None),
        ("cvxpy", "CVXPY['diagonal'].build", "float(values['x'].sum() + values['y'].sum())", 0, None),
        ("pyomo", "INFEASIBLE['violated_by_fixed_variables']", "0.0", 3, "there is none: proven by rows violated"),
        (
            "pyomo",
            "INFEASIBLE['bounds_of_an_unused_variable']",
            "0.0",
            3,
            "proven by the bounds of column x: at least 3.0 and at most 2.0",
        ),
        ("pyomo", "REFUSED['special_ordered_set'][0]", "0.0", 2, "'b.sos' is of type SOSConstraint"),
        ("pyomo", "REFUSED['parameter_without_a_value'][0]", "0.0", 2, "the constraint 'c[b]'"),
        ("cvxpy", "REFUSED['constraint_that_is_not_dcp'][0]", "0.0", 2, "its constraint x @ y <= 1.0 is not DCP"),
    ],
)
def test_the_command_line_prints_the_value_or_one_line(form, build, objective, status, message, tmp_path, capfd):
    path = tmp_path / "mine.py"
    folder = str(Path(outside_models.__file__).parent)
    path.write_text(PLUGIN.format(folder=folder, form=form, build=build, objective=objective), encoding="utf-8")
    asked = ["solve", "own.outside", "path:2", "--plugin", str(path), "--store", str(tmp_path / "store"), "--json"]
    assert main(asked) == status
    out, err = capfd.readouterr()
    if status == 0:
        assert json.loads(out)["proof"] == "optimal"
    else:
        (line,) = err.strip().splitlines()
        assert message in line
    if status == 2:
        assert out == ""
        assert not list(tmp_path.glob("store/records/*"))


def test_a_relaxation_bounds_a_run_whose_limit_has_passed(monkeypatch):
    monkeypatch.setattr(RunState, "left_s", lambda state: -1.0)
    model = pyo.ConcreteModel("cover")
    model.x = pyo.Var(range(6), domain=pyo.Binary)
    model.edges = pyo.Constraint(range(6), rule=lambda m, i: m.x[i] + m.x[(i + 1) % 6] >= 1)
    model.size = pyo.Objective(expr=pyo.quicksum(model.x.values()))
    result = oc.solve(model, method="highs", time_limit=100)
    assert (result.value, result.bound, result.record.bound_source) == (3, 3, "relaxation")

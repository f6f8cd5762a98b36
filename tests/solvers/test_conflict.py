"""Irreducible infeasible subsets, checked by solving them and all their parts with another solver."""

import cvxpy as cp
import numpy as np
import pyomo.environ as pyo
import pytest
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

import opticoll as oc
from opticoll.solvers.compile.compilation import compile_model
from opticoll.solvers.exact.conflict import find_conflict


def random_program(seed, *, whole):
    """A program that several rows and bounds make infeasible."""
    rng = np.random.default_rng(seed)
    n, m = 5, 12
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(n), bounds=(0, 4), domain=pyo.Integers if whole else pyo.Reals)
    model.o = pyo.Objective(expr=model.x[0])
    A = rng.integers(-2, 3, (m, n))
    sides = rng.integers(-6, 3, m)
    model.row = pyo.ConstraintList()
    for a, b in zip(A.tolist(), sides.tolist(), strict=True):
        if any(a):
            model.row.add(sum(v * model.x[j] for j, v in enumerate(a)) <= b)
    return compile_model(model)


def feasible(form, rows, lower, upper, *, whole):
    low, high = np.full(form.cost.size, -np.inf), np.full(form.cost.size, np.inf)
    low[lower], high[upper] = form.col_lower[lower], form.col_upper[upper]
    A = form.A.toarray()[rows]
    if whole:
        limits = LinearConstraint(A, form.row_lower[rows], form.row_upper[rows]) if rows else None
        answer = milp(np.zeros(form.cost.size), integrality=1, bounds=Bounds(low, high), constraints=limits)
        return answer.status == 0
    answer = linprog(np.zeros(form.cost.size), A, form.row_upper[rows], bounds=list(zip(low, high, strict=True)))
    return answer.status == 0


@pytest.mark.parametrize("whole", [False, True])
def test_every_part_is_needed(whole):
    tried = 0
    for seed in range(60):
        form = random_program(seed, whole=whole)
        every = list(range(form.A.shape[0]))
        columns = list(range(form.cost.size))
        if feasible(form, every, columns, columns, whole=whole):
            continue
        found = find_conflict(form)
        assert found.irreducible
        assert not feasible(form, found.rows, found.lower, found.upper, whole=found.integer)
        for one in found.rows:
            rest = [row for row in found.rows if row != one]
            assert feasible(form, rest, found.lower, found.upper, whole=found.integer), (seed, one)
        for one in found.lower:
            rest = [j for j in found.lower if j != one]
            assert feasible(form, found.rows, rest, found.upper, whole=found.integer), (seed, one)
        for one in found.upper:
            rest = [j for j in found.upper if j != one]
            assert feasible(form, found.rows, found.lower, rest, whole=found.integer), (seed, one)
        tried += 1
        if tried == 8:
            return
    assert tried >= 5


@pytest.mark.parametrize("capacity", [1e-6, 1.0, 1e6])
def test_the_unit_of_capacities_does_not_matter(capacity):
    """The one link out of a vertex and a flow of 1 % more than it carries, however small both are."""
    net = oc.topology({("a", "b"): capacity, ("b", "a"): 4 * capacity})
    model = oc.model("alltoall.master", net)
    model.pyomo.wish = pyo.Constraint(expr=1.01 * capacity <= model.pyomo.F)
    table = model.solve().conflict()
    assert {"wish", "capacity[a->b]"} <= set(table["name"])
    assert "capacity[b->a]" not in set(table["name"])


def test_a_result_names_its_conflict():
    model = oc.model("alltoall.master", "ring:4")
    model.pyomo.wish = pyo.Constraint(expr=model.pyomo.F >= 0.6)
    result = model.solve()
    assert result.termination == "infeasible"
    table = result.conflict()
    assert table.attrs["irreducible"]
    assert "recomputed duals" in table.attrs["proof"]
    assert "wish" in table["name"].tolist()
    assert "F >= 0.6" in table["statement"].tolist()
    with pytest.raises(oc.NoSolution, match="it has a solution"):
        oc.solve("alltoall.master", "ring:4").conflict()


def test_whole_numbers_take_part():
    x = cp.Variable(2, name="x", integer=True)
    result = oc.solve(cp.Problem(cp.Minimize(x[0]), [2 * x[0] + 2 * x[1] == 3, x[0] <= 9, x >= 0, x <= 50]))
    table = result.conflict()
    assert table["kind"].tolist() == ["row", "integrality"]
    assert table.attrs["proof"] is None


def test_larger_programs_are_refused():
    x = cp.Variable(10_001, name="x")
    with pytest.raises(oc.BadInput, match=r"has 10,001 rows; at most 10,000 are searched"):
        find_conflict(compile_model(cp.Problem(cp.Minimize(x[0]), [x + x[0] <= 1])))


def test_labels_of_cvxpy_constraints_name_their_rows_in_the_stated_sense():
    x = cp.Variable(2, name="x")
    need, limit = cp.sum(x) >= 5, x <= 1
    if not hasattr(need, "set_label"):
        pytest.skip("CVXPY has labels from 1.7")
    table = oc.solve(cp.Problem(cp.Minimize(x[0]), [need.set_label("need"), limit.set_label("limit")])).conflict()
    assert table["name"].tolist() == ["need", "limit[0]", "limit[1]"]
    assert table["statement"].tolist() == ["x[0] + x[1] >= 5", "x[0] <= 1", "x[1] <= 1"]


def test_labelled_rows_have_duals_and_equal_labels_are_numbered():
    x = cp.Variable(name="x")
    rows = [x >= 2, x >= 1, x <= 9]
    if not hasattr(rows[0], "set_label"):
        pytest.skip("CVXPY has labels from 1.7")
    result = oc.solve(cp.Problem(cp.Minimize(3 * x), [row.set_label("bound") for row in rows]))
    assert result.value == pytest.approx(6)
    assert {name: abs(float(dual)) for name, dual in result.duals.items()} == pytest.approx(
        {"bound": 3, "bound_2": 0, "bound_3": 0}
    )
    model = oc.model("alltoall.master", "ring:4", form="cvxpy")
    slow = (model.cvxpy.var_dict["F"] <= 0.25).set_label("slow")
    model.cvxpy = cp.Problem(model.cvxpy.objective, [*model.cvxpy.constraints, slow])
    assert "slow" in model.solve().duals

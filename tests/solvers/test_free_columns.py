"""Every linear program that is solved has a bound: free columns, optima of 0, degenerate duals, solvers without duals.

The random programs are made from a solution, duals and reduced costs that satisfy the optimality conditions, so their
optima are known as fractions without solving them.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from slow_cases import marked

from opticoll.analysis.cli.main import main
from opticoll.formulations.standard_form import StandardForm
from opticoll.instances import MatrixProgram
from opticoll.solvers import solve
from opticoll.solvers.exact import lp_bound
from opticoll.solvers.exact.exact_form import ExactForm, fault
from opticoll.solvers.exact.linear import solve_linear
from opticoll.solvers.exact.prove import solve_exactly
from opticoll.solvers.methods.branching.branching_tree import BranchingTree, Unbounded
from opticoll.solvers.methods.branching.whole_sides import with_whole_sides
from opticoll.solvers.task import Proof, Task, Termination

NAME = "matrix.program"

INF = np.inf
SOLVERS = ["highs", "highs-simplex", "highs-ipx", "highs-pdlp", "scip", "clarabel", "glop", "pdlp"]


def random_program(seed):
    """A program with free columns and equations, and its optimum."""
    random = np.random.default_rng(seed)
    rows, columns = (int(size) for size in random.integers(1, 9, 2))
    unit = random.choice([1.0, 0.25, 64.0])  # all data are binary fractions
    A = random.integers(-5, 6, (rows, columns)) * unit * (random.random((rows, columns)) < 0.7)
    x = random.integers(-4, 5, columns) * 0.5
    kind = np.where(random.random(columns) < 0.6, 3, random.integers(0, 3, columns))
    below, above, between, free = (kind == k for k in range(4))
    lower = np.where(below, x, np.where(between, x - 3.0, -INF))
    upper = np.where(above, x, np.where(between, x + 3.0, INF))
    side = random.integers(0, 4, rows)
    equation, at_least, at_most, loose = (side == k for k in range(4))
    activity = A @ x
    row_lower = np.where(at_most, -INF, np.where(loose, activity - 2.0, activity))
    row_upper = np.where(at_least | loose, INF, activity)
    y = random.integers(-3, 4, rows) / random.choice([1.0, 4.0])
    y = np.where(at_least, np.abs(y), np.where(at_most, -np.abs(y), np.where(loose, 0.0, y)))
    y *= random.random() < 0.9  # sometimes all costs are 0
    z = random.integers(0, 3, columns).astype(float)
    cost = A.T @ y + np.where(below, z, np.where(above, -z, 0.0))
    offset = float(random.integers(-2, 3))
    form = StandardForm(sp.csc_array(A), row_lower, row_upper, lower, upper, cost, "min", offset)
    optimum = Fraction(offset) + sum((Fraction(c) * Fraction(v) for c, v in zip(cost, x, strict=True)), Fraction(0))
    assert equation.any() or free.any() or columns
    if random.random() < 0.5:
        return replace(form, cost=-cost, offset=-offset, sense="max"), -optimum
    return form, optimum


def instance_of(form):
    A = sp.csc_array(form.A)
    A.sort_indices()
    rows, columns = A.shape
    return MatrixProgram(
        indptr=A.indptr.astype(np.int64),
        indices=A.indices.astype(np.int64),
        data=A.data,
        row_lower=form.row_lower,
        row_upper=form.row_upper,
        col_lower=form.col_lower,
        col_upper=form.col_upper,
        cost=form.cost,
        offset=form.offset,
        integer=np.asarray(form.integer),
        sense=form.sense,
        column_names=tuple(f"x{j}" for j in range(columns)),
        row_names=tuple(f"r{i}" for i in range(rows)),
    )


def solved(form, method):
    return solve.solve(Task(NAME, instance_of(form), method=method)).record


def proven(seeds, method):
    """The seeds whose value is not proven optimal, and those whose bound or value is wrong."""
    unproven, wrong = [], []
    for seed in seeds:
        form, optimum = random_program(seed)
        record = solved(form, method)
        if record.proof is not Proof.OPTIMAL:
            unproven.append((seed, record.message))
            continue
        bound = Fraction(record.bound)
        if (bound < optimum if form.sense == "max" else bound > optimum) or (
            abs(Fraction(record.objective) - optimum) > Fraction(1, 10**6) * max(abs(optimum), 1)
        ):
            wrong.append(seed)
    return unproven, wrong


@pytest.mark.parametrize("count", [12, marked(1000, slow=True)])
@pytest.mark.parametrize("method", ["highs", "scip"])
def test_random_programs_with_free_columns_are_proven_optimal(method, count):
    assert proven(range(count), method) == ([], [])


def program(A, rows, columns, cost, sense="min", integer=None):
    arrays = [np.array(side, dtype=float) for side in (*rows, *columns, cost)]
    whole = None if integer is None else np.array(integer, dtype=bool)
    return StandardForm(sp.csc_array(np.array(A, dtype=float)), *arrays, sense, 0.0, whole)


#: min x - y with x - y >= -3; min t with |x + y - z - 1| <= t, |w| <= t and x + y + z + w = 3, whose optimum is 0; and
#: a maximum of 0 at which the terms of the objective do not add up to 0 in floating point.
EXAMPLES = {
    "difference": (program([[1, -1]], ([-3], [INF]), ([-INF] * 2, [INF] * 2), [1, -1]), -3.0),
    "epigraph": (
        program(
            [[1, -1, -1, 1, 0], [1, 1, 1, -1, 0], [1, 0, 0, 0, -1], [1, 0, 0, 0, 1], [0, 1, 1, 1, 1]],
            ([-1, 1, 0, 0, 3], [INF, INF, INF, INF, 3]),
            ([-INF] * 5, [INF] * 5),
            [1, 0, 0, 0, 0],
        ),
        0.0,
    ),
    "cancelling": (
        program(
            [[0.1, 0.2, -0.3], [1, 1, 1], [1, 0, 0]],
            ([-INF, 7, 1], [0, 7, INF]),
            ([-INF] * 3, [INF] * 3),
            [0.1, 0.2, -0.3],
            "max",
        ),
        0.0,
    ),
    "nothing to gain": (program([[1, -1, 2]], ([-INF], [4]), ([-INF] * 3, [INF] * 3), [0, 0, 0]), 0.0),
}


@pytest.mark.parametrize("method", SOLVERS)
@pytest.mark.parametrize("name", EXAMPLES)
def test_every_solver_proves_the_examples(name, method):
    form, optimum = EXAMPLES[name]
    record = solved(form, method)
    if method == "highs-pdlp" and record.proof != Proof.OPTIMAL:  # HiGHS 1.16 ends it with less accurate solutions
        assert record.message
        too_good = (record.bound - optimum) * (1 if form.sense == "min" else -1)
        assert too_good <= 1e-9 * max(1.0, abs(optimum))
        return
    assert (record.proof, record.gap) == (Proof.OPTIMAL, pytest.approx(0, abs=1e-6)), record.message
    assert record.objective == pytest.approx(optimum, rel=1e-6)
    assert record.bound_source in {"lp-dual", "relaxation", lp_bound.NAME}


@pytest.mark.usefixtures("forgotten_plugins")
def test_the_bound_of_a_user_defined_model_is_proven_by_any_solver(tmp_path):
    file = tmp_path / "spread.py"
    file.write_text(
        "import numpy as np\nimport opticoll as oc\n\n"
        "def build_pyomo(topology):\n"
        "    import pyomo.environ as pyo\n"
        "    m = pyo.ConcreteModel()\n"
        "    m.p = pyo.Var(range(topology.n))\n"
        "    m.t = pyo.Var()\n"
        "    m.start = pyo.Constraint(expr=m.p[0] == 0.3)\n"
        "    m.up = pyo.Constraint(range(1, topology.n), rule=lambda m, v: m.p[v] - m.p[v - 1] >= 0.1 * v)\n"
        "    m.top = pyo.Constraint(range(topology.n), rule=lambda m, v: m.t >= m.p[v])\n"
        "    m.cost = pyo.Objective(expr=m.t - m.p[0])\n"
        "    return m\n\n"
        "def residuals(topology, values):\n"
        "    p, t = values['p'], float(values['t'])\n"
        "    steps = 0.1 * np.arange(1, topology.n) - np.diff(p)\n"
        "    return {'start': abs(p[0] - 0.3), 'up': float(steps.max()), 'top': float(p.max()) - t}\n\n"
        "class FORMULATION(oc.Formulation):\n"
        "    name, sense = 'own.spread', 'min'\n"
        "    def pyomo(self): return build_pyomo(self.instance)\n"
        "    def residuals(self, values): return residuals(self.instance, values)\n"
        "    def objective(self, values): return float(values['t'] - values['p'][0])\n"
    )
    import opticoll as oc

    formulation = oc.load_plugin(file).FORMULATION
    for method in ("highs", "scip", "highs-ipx"):
        result = oc.solve(formulation, "ring:5", method=method)
        assert (result.proof, result.objective) == ("optimal", pytest.approx(1.0)), (method, result.record.message)


def test_what_closes_in_floating_point_takes_no_exact_step():
    form = program([[1, 2], [3, 1]], ([-INF, -INF], [4, 6]), ([0, 0], [INF, INF]), [1, 1], "max")
    record = solved(form, "highs")
    assert (record.bound_source, record.time.exact_s) == ("lp-dual", None)


def test_large_programs_are_left_alone(monkeypatch):
    form, _ = EXAMPLES["epigraph"]
    monkeypatch.setattr(lp_bound, "MOST_NONZEROS", 10)
    record = solved(form, "highs")
    assert record.proof is Proof.FEASIBLE
    assert "its relaxation is solved exactly up to 10" in record.message


def test_costs_that_rows_pay_only_nearly_have_no_bound_and_say_so():
    """x and y are free: the ray (1, -1), which the row does not see, improves the objective by 1e-13."""
    form = program([[1, 1]], ([0], [0]), ([-INF] * 2, [INF] * 2), [1, 1 + 1e-13])
    record = solved(form, "highs")
    assert (record.proof, record.bound) == (Proof.FEASIBLE, None)
    assert "in rational arithmetic the relaxation is unbounded: no bound" in record.message


def test_equations_that_contradict_each_other_by_rounding_have_a_bound():
    """0.1 x + 0.2 y = 0.3 and its triple, whose floats contradict each other; so do the decimals with 1e-16 more."""
    for noise in (0.0, 1e-16):
        rows = [0.3, 0.9 + noise]
        form = program([[0.1, 0.2], [0.3, 0.6]], (rows, rows), ([-INF, 0], [INF, INF]), [0.1, 0.5])
        record = solved(form, "highs")
        assert record.proof is Proof.OPTIMAL, record.message
        assert record.objective == pytest.approx(0.3)
        assert record.bound <= 0.3 + 1e-15


@pytest.mark.parametrize("seed", range(12))
def test_the_exact_optimum_is_that_of_the_construction(seed):
    form, optimum = random_program(1000 + seed)
    assert solve_linear(ExactForm.of(form, Fraction)).objective == optimum
    bound = lp_bound.exact_relaxation_here(form, lambda: None).bound
    assert bound is not None
    assert abs(Fraction(bound.value) - optimum) <= abs(optimum) * Fraction(1, 2**52)


@pytest.mark.parametrize("seed", range(30))
def test_vertices_that_differ_by_a_rounding_are_refined(seed):
    """Rows meet in one point but for the rounding of their bounds: many bases are optimal within any tolerance."""
    random = np.random.default_rng(seed)
    A = np.round(random.normal(size=(9, 4)), 3)
    activity = A @ np.round(random.normal(size=4), 3)
    y = random.integers(0, 4, 9).astype(float)
    form = program(A, (activity, [INF] * 9), ([-INF] * 4, [INF] * 4), np.round(A.T @ y, 6))
    answer = solve_linear(ExactForm.of(form))
    assert fault(ExactForm.of(form), answer) is None
    assert answer.objective is None or float(answer.objective) == pytest.approx(float(y @ activity))


# Integer programs ---------------------------------------------------------------------------------------------------


def integer_program(seed):
    form, _ = random_program(seed)
    flip = -1.0 if form.sense == "max" else 1.0
    integer = np.random.default_rng(seed).random(form.cost.size) < 0.4
    lower, upper = np.where(integer, -5.0, form.col_lower), np.where(integer, 5.0, form.col_upper)
    return replace(form, cost=flip * form.cost, sense="min", integer=integer, col_lower=lower, col_upper=upper)


@pytest.mark.parametrize("seed", range(25))
def test_leaves_with_free_columns_are_closed(seed):
    form = integer_program(seed)
    tree = BranchingTree(form)
    try:
        tree.run()
    except Unbounded:
        assert solve_linear(ExactForm.of(form, Fraction)).status == "unbounded"
        return
    answer = solve_exactly(ExactForm.of(form, Fraction))
    if answer.objective is None:
        assert (answer.status, tree.bound, tree.unproven) == ("infeasible", INF, 0)
        return
    assert tree.incumbent == pytest.approx(float(answer.objective), rel=1e-6, abs=1e-9)
    assert tree.bound == pytest.approx(float(answer.objective), rel=1e-6, abs=1e-9)
    assert Fraction(tree.bound) <= answer.objective + abs(answer.objective) * Fraction(1, 10**9)


def test_an_integer_program_with_free_columns_has_a_bound():
    """min x - y with x - y >= k / 2 and k in {1, ..., 4}: the relaxation's bound is the optimum, 0.5."""
    form = program([[1, -1, -0.5]], ([0], [INF]), ([-INF, -INF, 1], [INF, INF, 4]), [1, -1, 0], integer=[0, 0, 1])
    record = solved(form, "highs")
    assert (record.proof, record.objective) == (Proof.OPTIMAL, pytest.approx(0.5))


UNBOUNDED = program(
    [[1, -1, 1], [1, 2, 1]], ([-INF, 1], [3, INF]), ([0] * 3, [INF] * 3), [-1, -1, 1], integer=[1, 1, 0]
)


@pytest.mark.parametrize("method", ["certified-branching", "auto", "highs", "scip"])
def test_an_unbounded_integer_program_ends_as_such(method):
    record = solved(UNBOUNDED, method)
    assert (record.termination, record.proof, record.objective) == (Termination.UNBOUNDED, Proof.NONE, None)
    assert "proven by a solution and a ray in rational arithmetic" in record.message
    assert record.model.reason.removeprefix(record.method) == " ended with unbounded"  # what is proven is not continued


def test_the_exact_step_does_not_deny_that_an_integer_program_is_proven_unbounded():
    record = solve.solve(Task(NAME, instance_of(UNBOUNDED), exact=True)).record
    assert record.termination is Termination.UNBOUNDED
    assert "proven by a solution and a ray in rational arithmetic" in record.message
    assert "nothing is proven" not in record.message


def test_the_sides_of_a_row_over_integers_are_rounded_not_beyond_a_tolerance():
    form = program([[2, 4], [3, 0]], ([1, -INF], [9.5, 6 - 1e-12]), ([0, 0], [INF, INF]), [1, 1], integer=[1, 1])
    whole = with_whole_sides(form)
    assert (whole.row_lower.tolist(), whole.row_upper.tolist()) == ([2, -INF], [8, 6 - 1e-12])


def test_a_tree_that_may_never_end_says_so():
    """3 x - 6 y + z = 0 and z in {1, 2} have no solution modulo 3."""
    form = program([[3, -6, 1]], ([0], [0]), ([-INF, -INF, 1], [INF, INF, 2]), [0, 0, 1], integer=[1, 1, 1])
    for limit in (0.5, 4.0, 32.0, 256.0):  # a busy machine begins late
        run = solve.solve(Task(NAME, instance_of(form), method="certified-branching", time_limit_s=limit))
        if run.record.metrics.get("nodes"):
            break
    assert "and 1 more has an infinite bound" in run.record.message


def test_an_unbounded_relaxation_without_an_integer_point_is_no_unbounded_program():
    """2 x = 1 has no integer solution, although y improves the relaxation without limit."""
    form = program([[2, 0]], ([1], [1]), ([0, 0], [3, INF]), [0, -1], integer=[1, 0])
    record = solved(form, "certified-branching")
    assert record.termination is Termination.INFEASIBLE
    assert record.infeasible_by.startswith("branch and bound")


# No solution --------------------------------------------------------------------------------------------------------


INFEASIBLE = {
    "rows": (program([[1, -1], [1, -1]], ([3, -INF], [INF, 2]), ([-INF] * 2, [INF] * 2), [1, 1]), "by"),
    "rows by less than a tolerance": (
        program([[1, -1], [1, -1]], ([1 + 1e-8, -INF], [INF, 1]), ([-INF] * 2, [INF] * 2), [1, 1]),
        "multipliers of the rows in rational arithmetic",
    ),
    "row bounds": (program([[1, 1]], ([2], [1]), ([0] * 2, [INF] * 2), [1, 1]), "row r[0]"),
    "column bounds": (program([[1, 1]], ([0], [1]), ([0, 2], [INF, 1]), [1, 1]), "column x[1]"),
    "no integer": (program([[1, 1]], ([0], [1]), ([0, 0.2], [INF, 0.8]), [1, 1], integer=[0, 1]), "column x[1]"),
}


@pytest.mark.parametrize("method", ["highs", "scip"])
@pytest.mark.parametrize("name", INFEASIBLE)
def test_what_proves_infeasibility_is_named(name, method):
    form, word = INFEASIBLE[name]
    record = solved(form, method)
    assert record.termination is Termination.INFEASIBLE
    assert record.infeasible_by is not None
    assert word.replace("r[0]", "").replace("x[1]", "") in record.infeasible_by
    assert "only the solver claims" not in (record.message or "")


CROSSED = """Minimize
 obj: x + y
Subject To
 c: x + y >= 3
Bounds
 2 <= x <= 1
End
"""
PARITY = """Minimize
 obj: x + y
Subject To
 c: 2 x + 2 y = 3
Bounds
 x <= 4
 y <= 4
General
 x
 y
End
"""


@pytest.mark.parametrize(
    ("text", "options", "word"),
    [
        (CROSSED, [], "infeasible by a bound: column x: its lower bound 2 is above its upper bound 1"),
        (PARITY, ["--exact"], "branch and bound in rational arithmetic"),
    ],
)
def test_the_command_line_names_what_proves_that_there_is_no_solution(text, options, word, tmp_path, capfd):
    file = tmp_path / "none.lp"
    file.write_text(text)
    assert main(["solve", NAME, f"mps:{file}", "--no-store", *options]) == 3
    shown = "".join(capfd.readouterr())
    assert "only the solver claims" not in shown
    assert word in " ".join(shown.split())

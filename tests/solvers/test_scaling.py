"""Scaling: every adapter gets a matrix in good units, and what it returns is in the units of the problem as stated."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import opticoll as oc
from opticoll.errors import BadOption
from opticoll.formulations.standard_form import StandardForm
from opticoll.solvers import verify
from opticoll.solvers.adapters.registry import adapters
from opticoll.solvers.compile import scaling
from opticoll.solvers.task import SolveRequest, Termination

TUTORIAL = Path(__file__).resolve().parents[2] / "docs" / "extend" / "solver.md"


@pytest.fixture
def linprog(tmp_path, forgotten_plugins):
    """The adapter of the tutorial, with SciPy's default tolerances."""
    file = tmp_path / "linprog.py"
    file.write_text(TUTORIAL.read_text(encoding="utf-8").split("```python\n")[1].split("```")[0], encoding="utf-8")
    oc.load_plugin(str(file))
    return "linprog"


def traffic(n, unit):
    amounts = np.random.default_rng(0).uniform(1, 10, (n, n)) * unit
    np.fill_diagonal(amounts, 0)
    return amounts


@pytest.mark.parametrize(
    ("formulation", "unit", "method"),
    [
        ("alltoall.master", 1e8, None),
        ("alltoall.path-mcf", 1e8, None),
        ("alltoall.master", 1e-6, None),
        *(("alltoall.link-mcf", 1e8, method) for method in ("scip", "clarabel", "glop", "time-form")),
    ],
)
def test_adapters_of_ours_and_a_plain_one_of_a_third_party_solve_demands_in_any_unit(
    linprog, formulation, unit, method
):
    """F = 0 passed for optimal at 1e8: its dual is 1e-9, below SciPy's dual tolerance of 1e-7."""
    base = oc.solve(formulation, "ring:4", demand=traffic(4, 1.0), method="highs").objective
    result = oc.solve(formulation, "ring:4", demand=traffic(4, unit), method=method or linprog)
    assert result.proof == "optimal"
    assert result.objective == pytest.approx(base / unit, rel=1e-6)


@pytest.mark.parametrize("method", ["highs", "scip"])
def test_single_paths_for_demands_in_bytes(method):
    """HiGHS called a value of 1.6 times the optimum optimal."""
    settings = {"paths": "shortest"}
    small, large = (
        oc.solve("alltoall.min-congestion", "ring:4", demand=traffic(4, unit), method=method, **settings)
        for unit in (1.0, 1e8)
    )
    assert large.objective == pytest.approx(small.objective * 1e8, rel=1e-6)
    assert large.bound == pytest.approx(small.bound * 1e8, rel=1e-6)


def test_steps_for_demands_in_bytes():
    small, large = (
        oc.solve("alltoall.timestep-mcf", "ring:4", demand=traffic(4, unit), method="scip", steps=3)
        for unit in (1.0, 1e8)
    )
    assert large.proof == "optimal"
    assert large.objective == pytest.approx(small.objective * 1e8, rel=1e-6)


def badly_scaled(seed):
    """An LP with an optimum, in units from 1e-9 to 1e9: max c x + 7 s.t. A x <= b, 0 <= x <= u."""
    random = np.random.default_rng(seed)
    rows, columns = 6, 9
    unit = 10.0 ** random.choice([-9, -6, 0, 5, 9], columns)
    A = random.uniform(0.5, 2.0, (rows, columns)) * (random.random((rows, columns)) < 0.7) * unit
    upper = np.where(random.random(columns) < 0.3, 3.0, 50.0) / unit
    return StandardForm(
        sp.csc_array(A),
        np.full(rows, -np.inf),
        random.uniform(1, 5, rows),
        np.zeros(columns),
        upper,
        random.uniform(0.5, 2.0, columns) * unit,
        "max",
        7.0,
    )


@pytest.mark.parametrize("seed", range(5))
def test_vectors_come_back_in_the_units_of_the_problem(seed):
    form = badly_scaled(seed)
    before = form.A.copy()
    steps = scaling.scaling_steps(form)
    sizes = np.abs(steps[-1].form.A.data)
    assert sizes.min() > 1e-5 / 4
    assert sizes.max() < 4 * scaling.LARGE
    outcome = scaling.solve_scaled(form, "highs", SolveRequest(), in_process=True)
    assert outcome.termination is Termination.OPTIMAL
    assert max(verify.matrix_violations(form, outcome.x).values()) <= verify.FEASIBLE
    assert form.objective(outcome.x) == pytest.approx(outcome.objective, rel=1e-9)
    assert verify.dual_bound(form, outcome.row_duals) == pytest.approx(outcome.objective, rel=1e-6)
    assert (before != form.A).nnz == 0


def test_rows_of_large_integer_columns_are_divided_where_no_other_row_suffers():
    def program(switch):
        """min t s.t. 1e8 z - t <= 0, z = 1; with ``switch`` also s - 1e8 z <= 0 and s >= 2."""
        A = [[1e8, -1.0, 0.0], [1.0, 0.0, 0.0], [-1e8, 0.0, 1.0], [0.0, 0.0, 1.0]][: 4 if switch else 2]
        high = [0.0, 1.0, 0.0, np.inf][: len(A)]
        return StandardForm(
            sp.csc_array(np.array(A)),
            np.array([-np.inf, 1.0, -np.inf, 2.0][: len(A)]),
            np.array(high),
            np.zeros(3),
            np.array([1.0, np.inf, np.inf]),
            np.array([0.0, 1.0, 0.0]),
            "min",
            0.0,
            np.array([True, False, False]),
        )

    for switch in (False, True):
        form = program(switch)
        scaled = scaling.scaling_steps(form)[-1].form.A.toarray()
        assert np.abs(scaled[0]).max() <= 2, "the row of t, which occurs nowhere else"
        if switch:
            assert np.array_equal(scaled[2:, [0, 2]], form.A.toarray()[2:, [0, 2]]), "s occurs in another row too"
        outcome = scaling.solve_scaled(form, "highs", SolveRequest(), in_process=True)
        assert outcome.objective == pytest.approx(1e8)
        assert outcome.bound == pytest.approx(1e8)
        assert form.objective(outcome.x) == pytest.approx(1e8)


def test_incumbents_on_the_way_are_in_the_units_of_the_problem():
    """A knapsack whose costs are 1e9: what is reported while it runs, and what is recorded, agree with the end."""
    random = np.random.default_rng(1)
    form = StandardForm(
        sp.csc_array(random.integers(10, 99, (3, 30)).astype(float)),
        np.full(3, -np.inf),
        np.full(3, 500.0),
        np.zeros(30),
        np.ones(30),
        1e9 * random.integers(10, 99, 30),
        "max",
        5e9,
        np.ones(30, dtype=bool),
    )
    seen = []
    outcome = scaling.solve_scaled(
        form, "highs", SolveRequest(rel_tol=1e-9), on_progress=lambda value, _: seen.append(value)
    )
    best = form.objective(outcome.x)
    assert outcome.objective == pytest.approx(best)
    values = [value for value in [*seen, *(value for _, value in outcome.incumbents)] if value is not None]
    assert values
    assert max(values) == pytest.approx(best, rel=1e-6)
    assert min(values) >= 5e9


@pytest.mark.parametrize(
    ("solver", "option"),
    [
        ("highs", "mip_abs_gap"),
        ("scip", "limits/absgap"),
        ("gurobi", "MIPGapAbs"),
        ("cplex", "mip.tolerances.absmipgap"),
        ("mosek", "MSK_DPAR_MIO_TOL_ABS_GAP"),
        ("xpress", "mipabscutoff"),
        ("copt", "AbsGap"),
        ("cp-sat", "absolute_gap_limit"),
        ("glop", "objective_upper_limit"),
    ],
)
def test_options_in_units_of_the_objective_are_refused(solver, option):
    with pytest.raises(BadOption, match=f"{option}.*scaled"):
        adapters()[solver].refuse_options([option])


def uneven():
    """Capacities of 1e-6, 1 and 1e6; two arcs of 1e-6 enter vertex 0, so T = 4 / 2e-6 = 2e6."""
    arcs = [(1, 0, 1e-6), (0, 3, 1), (3, 2, 1e-6), (2, 4, 1e6), (4, 1, 1e6), (1, 3, 1), (0, 1, 1e-6), (0, 2, 1)]
    arcs += [(1, 0, 1e-6), (3, 2, 1e6), (1, 2, 1e-6), (3, 1, 1e-6), (2, 3, 1e-6), (2, 4, 1), (4, 2, 1e-6)]
    return oc.topology(arcs, directed=True)


def test_capacities_of_very_different_sizes_are_solved_exactly_or_said_to_be_inaccurate():
    simplex = oc.solve("alltoall.master", uneven(), method="highs-simplex")
    assert simplex.verified
    if simplex.proof != "optimal":
        assert "calls an inaccurate solution optimal" in simplex.record.message
    for options in ({"exact": True}, {"method": "column-generation"}):
        assert pytest.approx(2e6, rel=1e-6) == oc.solve("alltoall.master", uneven(), **options).T

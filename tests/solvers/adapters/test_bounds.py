"""``Outcome.bound`` comes only from an algorithm that proves one, whatever the options turn off."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from slow_cases import marked

from opticoll.formulations.standard_form import StandardForm
from opticoll.solvers.adapters.registry import adapters
from opticoll.solvers.process.isolation import probe, solve_isolated
from opticoll.solvers.task import SolveRequest

OPTIONS = {
    "gurobi": [
        {"Method": 6, "Crossover": 0},
        {"Method": 2, "Crossover": 0, "BarConvTol": 0.01},
        {"Method": 3, "Crossover": 0, "BarConvTol": 0.1},
        {"OptimalityTol": 0.01, "Presolve": 0},
        {"FeasibilityTol": 0.01},
        {"MIPGap": 0.5},
        {"IntFeasTol": 0.1},
    ],
    "highs": [
        {"solver": "ipm", "run_crossover": "off", "ipm_optimality_tolerance": 0.01},
        {"solver": "pdlp"},
        {"dual_feasibility_tolerance": 0.01},
        {"primal_feasibility_tolerance": 0.01},
        {"mip_rel_gap": 0.5},
        {"mip_max_nodes": 1},
    ],
    "highs-simplex": [{"solver": "ipm", "run_crossover": "off"}],
    "scip": [{"limits/gap": 0.5}, {"limits/solutions": 1}, {"lp/initalgorithm": "b"}, {"numerics/dualfeastol": 1e-3}],
    "glop": [{"dual_feasibility_tolerance": 0.1}, {"primal_feasibility_tolerance": 0.1}],
    "xpress": [{"lpflags": 4, "crossover": 0, "bargapstop": 0.01}, {"optimalitytol": 0.01}, {"miprelstop": 0.5}],
    "copt": [{"LpMethod": 2, "Crossover": 0}, {"LpMethod": 6, "Crossover": 0}, {"DualTol": 1e-4}],
    "cplex": [{"lpmethod": 4, "solutiontype": 2, "barrier.convergetol": 0.01}, {"mip.tolerances.mipgap": 0.5}],
    "clarabel": [{"tol_gap_rel": 0.01, "tol_gap_abs": 0.01}],
    "highs-ipx": [{}],
    "highs-pdlp": [{}],
    "pdlp": [{}],
}
#: Options with which no algorithm of the package proves a bound, and the algorithm's name.
UNPROVEN = [
    ("gurobi", {"Method": 6, "Crossover": 0}, "first order (PDHG)"),
    ("gurobi", {"Method": 2, "Crossover": 0}, "interior point"),
    ("highs", {"solver": "ipm", "run_crossover": "off"}, "interior point (IPX)"),
    ("highs", {"solver": "pdlp"}, "first order (PDLP)"),
    ("xpress", {"lpflags": 4, "crossover": 0}, "interior point"),
    ("copt", {"LpMethod": 2, "Crossover": 0}, "interior point"),
    ("cplex", {"lpmethod": 4, "solutiontype": 2}, "interior point"),
]


def program(sense, *, integer):
    """A covering or a packing program of 12 rows and 15 columns."""
    random = np.random.default_rng(0)
    A = sp.csc_array(random.uniform(0.1, 1.0, (12, 15)) * (random.random((12, 15)) < 0.6))
    side, free = random.uniform(5.0, 9.0, 12), np.full(12, np.inf)
    rows = (-free, side) if sense == "max" else (side, free)
    ends = np.zeros(15), np.full(15, 8.0)
    return StandardForm(A, *rows, *ends, random.uniform(1.0, 2.0, 15), sense, 3.0, np.full(15, integer))


def needs(solver):
    if not (adapters()[solver].installed() and probe(solver).usable):
        pytest.skip(f"{solver} is not installed, or has no licence")


@pytest.mark.parametrize(
    ("integer", "sense"),
    [marked(integer, sense, slow=integer == (sense == "max")) for integer in (False, True) for sense in ("min", "max")],
)
@pytest.mark.parametrize("solver", OPTIONS)
def test_no_options_make_a_bound_cut_off_the_optimum(solver, integer, sense):
    needs(solver)
    if integer and not adapters()[solver].capabilities.mip:
        pytest.skip(f"{solver} solves no integer programs")
    form = program(sense, integer=integer)
    best = solve_isolated(form, "highs", SolveRequest()).objective
    for options in OPTIONS[solver]:
        bound = solve_isolated(form, solver, SolveRequest(time_limit_s=60, options=options)).bound
        if bound is not None:
            beyond = bound - best if sense == "min" else best - bound
            assert beyond <= 1e-7 * abs(best), options


@pytest.mark.parametrize(("solver", "options", "algorithm"), UNPROVEN)
def test_an_algorithm_without_a_vertex_proves_nothing_and_is_named(solver, options, algorithm):
    needs(solver)
    form = program("min", integer=False)
    outcome = solve_isolated(form, solver, SolveRequest(options=options))
    assert outcome.bound is None
    assert outcome.algorithm == algorithm
    crossed = {name: value for name, value in options.items() if "ross" not in name and name != "solutiontype"}
    if "pdlp" not in options.values():
        again = solve_isolated(form, solver, SolveRequest(options=crossed))
        assert again.algorithm == f"{algorithm} with crossover"
        assert again.bound == pytest.approx(outcome.objective, rel=1e-3)

#!/usr/bin/env bash
# ortools 9.15.6755, model_builder: best_objective_bound, dual_value and reduced_cost of a linear program.
# Belief: after status OPTIMAL a value that the solver does not give is absent, as NaN, or refused.
# Behaviour: it is 0.0. GLOP and PDLP prove a maximum of 10.5 "with the bound 0"; with SCIP and SAT, the duals of a binding
#   row are 0, and so are the reduced costs. pywraplp gives minus infinity as GLOP's upper bound.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check ortools==9.15.6755
venv/bin/python - <<'PYTHON'
from ortools.linear_solver import pywraplp
from ortools.linear_solver.python import model_builder

found = {}
for name in ("glop", "pdlp", "scip", "sat"):
    model = model_builder.Model()
    x, y = model.new_num_var(0, 1000, "x"), model.new_num_var(0, 1000, "y")
    row = model.add(2 * x + 2 * y <= 7)
    model.maximize(3 * x + 2 * y)
    solver = model_builder.Solver(name)
    assert solver.solve(model) == model_builder.SolveStatus.OPTIMAL
    values = solver.objective_value, solver.best_objective_bound, solver.dual_value(row), solver.reduced_cost(y)
    found[name] = tuple(round(value, 3) for value in values)
print("optimum, bound, dual of the row, reduced cost of y:", found)
assert found["glop"] == found["pdlp"] == (10.5, 0, 1.5, -1)
assert found["scip"] == found["sat"] == (10.5, 10.5, 0, 0)

solver = pywraplp.Solver.CreateSolver("GLOP")
x = solver.NumVar(0, 3.5, "x")
solver.Maximize(3 * x)
assert solver.Solve() == pywraplp.Solver.OPTIMAL and solver.Objective().Value() == 10.5
print("pywraplp's upper bound:", solver.Objective().BestBound())
assert solver.Objective().BestBound() == -float("inf")
PYTHON

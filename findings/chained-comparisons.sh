#!/usr/bin/env bash
# pulp 3.3.2, ortools 9.15.6755 (pywraplp) and linopy 0.10.1: 2 <= x <= 5.
# Belief: a chain is a constraint with both sides, as in highspy, or refused, as in gurobipy and pyscipopt.
# Behaviour: it is x <= 5 alone, without a message: the "optimum" is that of another problem. Python asks for the truth of
#   2 <= x, and a constraint is true.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check \
    pulp==3.3.2 ortools==9.15.6755 linopy==0.10.1 highspy==1.16.0
venv/bin/python - <<'PYTHON'
import highspy
import linopy
import pulp
from ortools.linear_solver import pywraplp

found = {}
problem = pulp.LpProblem("chain", pulp.LpMinimize)
x = pulp.LpVariable("x", 0, 10)
problem += x
problem += 2 <= x <= 5
problem.solve(pulp.HiGHS(msg=False))
found["PuLP"] = x.value()

solver = pywraplp.Solver.CreateSolver("GLOP")
x = solver.NumVar(0, 10, "x")
solver.Add(2 <= x <= 5)
solver.Minimize(x)
assert solver.Solve() == pywraplp.Solver.OPTIMAL
found["pywraplp"] = x.solution_value()

model = linopy.Model()
x = model.add_variables(lower=0, upper=10, name="x")
model.add_constraints(2 <= x <= 5)
model.add_objective(1 * x)
model.solve("highs", output_flag=False)
found["linopy"] = float(x.solution)

highs = highspy.Highs()
highs.silent()
x = highs.addVariable(0, 10)
highs.addConstr(2 <= x <= 5)
highs.minimize(x)
found["highspy"] = highs.val(x)
print("least x with 2 <= x <= 5:", found)
assert found == {"PuLP": 0, "pywraplp": 0, "linopy": 0, "highspy": 2}
PYTHON

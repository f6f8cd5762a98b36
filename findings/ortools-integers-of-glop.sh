#!/usr/bin/env bash
# ortools 9.15.6755, pywraplp with GLOP and PDLP.
# Belief: a solver of linear programs refuses integer variables, or says in its status that it relaxed them.
# Behaviour: IntVar is relaxed without a message: the status is OPTIMAL and the "integer" is 3.5, while integer() of the
#   variable is still true.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check ortools==9.15.6755
venv/bin/python - <<'PYTHON'
from ortools.linear_solver import pywraplp

found = {}
for name in ("GLOP", "PDLP", "SCIP"):
    solver = pywraplp.Solver.CreateSolver(name)
    x = solver.IntVar(0, 10, "x")
    solver.Add(2 * x >= 7)
    solver.Minimize(x)
    status = solver.Solve()
    found[name] = status == pywraplp.Solver.OPTIMAL, round(x.solution_value(), 6), x.integer()
print("optimal, value, integer:", found)
assert found == {"GLOP": (True, 3.5, True), "PDLP": (True, 3.5, True), "SCIP": (True, 4.0, True)}
PYTHON

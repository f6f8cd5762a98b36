#!/usr/bin/env bash
# cvxpy 1.9.3 with highspy 1.16.0, dual_value of constraints.
# Belief: after problem.solve(), dual_value belongs to this solve, and is None where it has no duals, as for integer
#   programs.
# Behaviour: constraints that an LP and an integer program share keep the LP's duals after the integer program is
#   solved.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check cvxpy==1.9.3 highspy==1.16.0
venv/bin/python - <<'PYTHON'
import cvxpy as cp

x, y, n = cp.Variable(), cp.Variable(), cp.Variable(integer=True)
shared = [x + y >= 1.5, y <= 1]
cp.Problem(cp.Minimize(2 * x + y), shared).solve(solver="HIGHS")
integer = cp.Problem(cp.Minimize(2 * x + y + n), [*shared, n >= 0.5])
integer.solve(solver="HIGHS")
values = [constraint.dual_value for constraint in integer.constraints]
print("duals of the integer program:", integer.solution.dual_vars, "but dual_value:", values)
assert integer.status == "optimal" and integer.solution.dual_vars == {}
assert values == [2.0, 1.0, None]
PYTHON

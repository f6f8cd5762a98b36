#!/usr/bin/env bash
# pulp 3.3.2 with gurobipy 13.0.3 and coptpy 8.0.7: one solver object GUROBI or COPT for several calls of solve.
# Belief: as with the object HiGHS, a call solves the problem it is given, as it is then.
# Behaviour: the object keeps its solver's model. A second problem is added to the first, and its variables are given the
#   values of the first one's: "Optimal", and violating its bounds. A bound changed between two calls has no effect.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check \
    pulp==3.3.2 gurobipy==13.0.3 coptpy==8.0.7 highspy==1.16.0
venv/bin/python - <<'PYTHON'
import pulp

found = {}
for kind in (pulp.GUROBI, pulp.COPT, pulp.HiGHS):
    solver = kind(msg=False)
    values = []
    for least in (1, 3):
        problem = pulp.LpProblem(f"least_{least}", pulp.LpMinimize)
        x = pulp.LpVariable(f"x_{least}", least, 10)
        problem += x
        problem += x <= 9
        assert pulp.LpStatus[problem.solve(solver)] == "Optimal"
        values.append(x.value())
    solver = kind(msg=False)
    problem = pulp.LpProblem("bound_changed", pulp.LpMaximize)
    x = pulp.LpVariable("x", 0, 5)
    problem += x
    problem += x <= 9
    for bound in (5, 2):
        x.upBound = bound
        assert pulp.LpStatus[problem.solve(solver)] == "Optimal"
        values.append(x.value())
    found[kind.name] = values
print("least x >= 1, least x >= 3; greatest x <= 5, greatest x <= 2:", found)
assert found == {"GUROBI": [1, 1, 5, 5], "COPT": [1, 1, 5, 5], "HiGHS": [1, 3, 5, 2]}
PYTHON

#!/usr/bin/env bash
# pulp 3.3.2 with its CBC and highspy 1.16.0, attribute "slack" of constraints.
# Belief: the slack of a satisfied row is not negative, whichever solver is called.
# Behaviour: of a row ">=" it is body minus side with HiGHS and side minus body with CBC; of "<=" both have side minus
#   body.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check pulp==3.3.2 highspy==1.16.0
venv/bin/python - <<'PYTHON'
import pulp

x = pulp.LpVariable("x", 0, 10)
problem = pulp.LpProblem("p", pulp.LpMinimize)
problem += x
problem += x >= 2, "at_least"
problem += x <= 7, "at_most"
problem += 2 * x >= 6, "tight"
found = {}
for solver in (pulp.HiGHS(msg=False), pulp.PULP_CBC_CMD(msg=False)):
    problem.solve(solver)
    found[solver.name] = {name: row.slack + 0.0 for name, row in problem.constraints.items()}
print("x = 3:", found)
assert list(found.values()) == [
    {"at_least": 1.0, "at_most": 4.0, "tight": 0.0},
    {"at_least": -1.0, "at_most": 4.0, "tight": 0.0},
]
PYTHON

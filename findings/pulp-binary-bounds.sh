#!/usr/bin/env bash
# pulp 3.3.2, LpVariable with category Binary and bounds.
# Belief: a binary variable with the upper bound 0, as of a link that does not exist, is 0.
# Behaviour: the bounds given are replaced by [0, 1] without a message, and the solution uses the link. The same with
#   LpVariable.dicts; an integer variable keeps its bounds.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check pulp==3.3.2 highspy==1.16.0
venv/bin/python - <<'PYTHON'
import pulp

found = {}
for category in ("Binary", "Integer"):
    problem = pulp.LpProblem("circuits", pulp.LpMaximize)
    present = pulp.LpVariable("present", 0, 1, category)
    absent = pulp.LpVariable("absent", 0, 0, category)
    problem += present + 2 * absent
    problem += present + absent <= 1
    problem.solve(pulp.HiGHS(msg=False))
    assert pulp.LpStatus[problem.status] == "Optimal"
    found[category] = absent.upBound, present.value(), absent.value(), pulp.value(problem.objective)
print("upper bound of the absent link, present, absent, objective:", found)
assert found == {"Binary": (1, 0, 1, 2), "Integer": (0, 1, 0, 1)}
PYTHON

#!/usr/bin/env bash
# cvxpy 1.9.3 with highspy 1.16.0, clarabel 0.11.1 and scs 3.3.1.
# Belief: a problem that can be pickled and copied, to pass it to another process, still can be after it was solved.
# Behaviour: it depends on the solver, whose own objects stay inside the problem: after HIGHS and CLARABEL both
#   raise TypeError.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check cvxpy==1.9.3 highspy==1.16.0 clarabel==0.11.1 scs==3.3.1
venv/bin/python - <<'PYTHON'
import copy
import pickle

import cvxpy as cp

raised = {}
for solver in (None, "HIGHS", "CLARABEL", "SCS"):
    x = cp.Variable(2)
    problem = cp.Problem(cp.Minimize(cp.sum(x)), [x >= 1])
    if solver:
        problem.solve(solver=solver)
    raised[solver] = 0
    for action in (pickle.dumps, copy.deepcopy):
        try:
            action(problem)
        except TypeError as error:
            raised[solver] += 1
            print(f"solved with {solver}, {action.__name__}: {error}")
print("errors:", raised)
assert raised == {None: 0, "HIGHS": 2, "CLARABEL": 2, "SCS": 0}
PYTHON

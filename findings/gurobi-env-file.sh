#!/usr/bin/env bash
# gurobipy 13.0.2, alone and through PuLP 3.3.2, in a folder with a file gurobi.env.
# Belief: parameters are those that a program sets, else Gurobi's defaults, so that "optimal" means a gap of 1e-4.
# Behaviour: the file of the working folder, made for another program perhaps, sets parameters of every model. With a
#   gap of 90 % there, the least largest load is 26 and "Optimal" where it is 10; one printed line tells, no status.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check gurobipy==13.0.2 pulp==3.3.2 numpy==2.2.6
cat >loads.py <<'PYTHON'
import sys

import gurobipy
import numpy as np
import pulp

JOBS, MACHINES = 14, 5
job, machine = np.indices((JOBS, MACHINES))
time = ((job * 7 + machine * 11 + job * machine) % 13 + 1).tolist()


def by_gurobipy():
    model = gurobipy.Model()
    model.Params.OutputFlag = 0
    x, most = model.addVars(JOBS, MACHINES, vtype="B"), model.addVar()
    model.addConstrs(x.sum(i, "*") == 1 for i in range(JOBS))
    model.addConstrs(sum(time[i][m] * x[i, m] for i in range(JOBS)) <= most for m in range(MACHINES))
    model.setObjective(most)
    model.optimize()
    return model.Status == gurobipy.GRB.OPTIMAL, round(model.ObjVal)


def by_pulp():
    model = pulp.LpProblem()
    x = pulp.LpVariable.dicts("x", (range(JOBS), range(MACHINES)), cat="Binary")
    most = pulp.LpVariable("most")
    model += most
    for i in range(JOBS):
        model += pulp.lpSum(x[i].values()) == 1
    for m in range(MACHINES):
        model += pulp.lpSum(time[i][m] * x[i][m] for i in range(JOBS)) <= most
    model.solve(pulp.GUROBI(msg=False))
    return pulp.LpStatus[model.status] == "Optimal", round(pulp.value(model.objective))


answers = [by_gurobipy(), by_pulp()]
print(answers)
assert all(optimal for optimal, _ in answers)
assert all((value == 10) == (sys.argv[1] == "without") for _, value in answers)
PYTHON
echo "without gurobi.env: optimal, and the value, by gurobipy and by PuLP"
venv/bin/python loads.py without
echo "MIPGap 0.9" >gurobi.env
echo "with MIPGap 0.9 in gurobi.env"
venv/bin/python loads.py with

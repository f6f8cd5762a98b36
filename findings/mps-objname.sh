#!/usr/bin/env bash
# gurobipy 13.0.3 and highspy 1.16.0, MPS readers, and the same file in cplex 22.2.0.1 and pyscipopt 6.3.0.
# Belief: the section OBJNAME selects the objective among the rows of type N, or the file is refused.
# Behaviour: Gurobi and HiGHS read the section and take the first row of type N all the same; CPLEX and SCIP take
#   the named one.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check gurobipy==13.0.3 highspy==1.16.0 cplex==22.2.0.1 pyscipopt==6.3.0
venv/bin/python - <<'PYTHON'
import pathlib

import cplex
import gurobipy
import highspy
import pyscipopt

pathlib.Path("model.mps").write_text(
    "NAME t\nOBJNAME\n    second\nROWS\n N first\n N second\n G c\nCOLUMNS\n"
    " x first 1 second 8\n x c 1\nRHS\n RHS c 1\nENDATA\n"
)
cost = {}
with gurobipy.Env(params={"OutputFlag": 0}) as env, gurobipy.read("model.mps", env) as model:
    cost["Gurobi"] = model.getVars()[0].Obj
h = highspy.Highs()
h.setOptionValue("output_flag", False)
assert h.readModel("model.mps") == highspy.HighsStatus.kOk
cost["HiGHS"] = h.getLp().col_cost_[0]
other = cplex.Cplex("model.mps")
cost["CPLEX"] = other.objective.get_linear()[0]
model = pyscipopt.Model()
model.hideOutput()
model.readProblem("model.mps")
cost["SCIP"] = model.getVars()[0].getObj()
print("cost of x, 1 in the first row of type N and 8 in the named one:", {k: float(v) for k, v in cost.items()})
assert cost == {"Gurobi": 1, "HiGHS": 1, "CPLEX": 8, "SCIP": 8}
PYTHON

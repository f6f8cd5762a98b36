#!/usr/bin/env bash
# gurobipy 13.0.3, pyscipopt 6.3.0 and pulp 3.3.2, writing models in which two columns have one name.
# Belief: the columns are told apart in the file, or the writer refuses.
# Behaviour: the written file has one column less, and another optimum, without an error: Gurobi in LP files (its MPS files
#   rename all columns), SCIP in LP and MPS. PuLP makes one name of "f_a-b" and "f_a_b", solves that with HiGHS, and merges
#   them in MPS, while its LP writer refuses.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check gurobipy==13.0.3 pyscipopt==6.3.0 pulp==3.3.2 highspy==1.16.0
venv/bin/python - <<'PYTHON'
import gurobipy
import pulp
import pyscipopt

quiet = gurobipy.Env(params={"OutputFlag": 0})
model = gurobipy.Model(env=quiet)
parts = [model.addVar(ub=limit, obj=1, name="f") for limit in (10, 3)]
model.ModelSense = gurobipy.GRB.MAXIMIZE
model.addConstr(sum(parts) <= 20)
model.optimize()
found = {"Gurobi": [model.ObjVal]}
for name in ("g.lp", "g.mps"):
    model.write(name)
    again = gurobipy.read(name, quiet)
    again.optimize()
    found["Gurobi"].append(again.ObjVal)

model = pyscipopt.Model()
model.hideOutput()
parts = [model.addVar("f", ub=limit) for limit in (10, 3)]
model.addCons(parts[0] + parts[1] <= 20)
model.setObjective(parts[0] + parts[1], "maximize")
for name in ("s.lp", "s.mps"):
    model.writeProblem(name, verbose=False)
columns = []
for name in ("s.lp", "s.mps"):
    again = pyscipopt.Model()
    again.hideOutput()
    again.readProblem(name)
    columns.append(again.getNVars())
found["SCIP, columns"] = [model.getNVars(), *columns]

problem = pulp.LpProblem("p", pulp.LpMaximize)
parts = [pulp.LpVariable("f_a-b", 0, 10), pulp.LpVariable("f_a_b", 0, 3)]
problem += parts[0] + parts[1]
problem += parts[0] + parts[1] <= 20
problem.solve(pulp.HiGHS(msg=False))
problem.writeMPS("p.mps")
found["PuLP"] = [pulp.value(problem.objective), len(pulp.LpProblem.fromMPS("p.mps")[0])]
try:
    problem.writeLP("p.lp")
except pulp.PulpError as error:
    print("PuLP, LP:", error)
else:
    raise SystemExit("PuLP writes the LP file")
print(found)
assert found["Gurobi"] == [13.0, 6.0, 13.0]
assert found["SCIP, columns"] == [2, 1, 1]
assert found["PuLP"] == [13.0, 1]
PYTHON

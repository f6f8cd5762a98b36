#!/usr/bin/env bash
# gurobipy 13.0.3 and coptpy 8.0.7, and the same file in highspy 1.16.0 and pyscipopt 6.3.0.
# Belief: "3x" in an LP file is 3 times x, as for most readers, or is refused.
# Behaviour: Gurobi and COPT read a new column named "3x" with the coefficient 1, without a warning.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check gurobipy==13.0.3 coptpy==8.0.7 highspy==1.16.0 pyscipopt==6.3.0
venv/bin/python - <<'PYTHON' | grep -v "Cardinal\|license\|^$"
import pathlib

import coptpy
import gurobipy
import highspy
import pyscipopt

pathlib.Path("model.lp").write_text("minimize\n obj: y - x\nsubject to\n cap: 3x + y <= 9\nend\n")
names = {}
with gurobipy.Env(params={"OutputFlag": 0}) as env, gurobipy.read("model.lp", env) as model:
    names["Gurobi"] = [v.VarName for v in model.getVars()]
model = coptpy.Envr().createModel()
model.setParam("Logging", 0)
model.readLp("model.lp")
names["COPT"] = [v.name for v in model.getVars().getAll()]
h = highspy.Highs()
h.setOptionValue("output_flag", False)
h.readModel("model.lp")
names["HiGHS"] = list(h.getLp().col_names_)
model = pyscipopt.Model()
model.hideOutput()
model.readProblem("model.lp")
names["SCIP"] = [v.name for v in model.getVars()]
print("columns of 3x + y:", names)
assert all("3x" in names[tool] and len(names[tool]) == 3 for tool in ("Gurobi", "COPT"))
assert all(sorted(names[tool]) == ["x", "y"] for tool in ("HiGHS", "SCIP"))
PYTHON

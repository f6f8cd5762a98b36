#!/usr/bin/env bash
# mosek 11.2.7, LP reader, and the same file in highspy 1.16.0 and pyscipopt 6.3.0.
# Belief: a column that only "bounds" names has the bounds stated there.
# Behaviour: MOSEK fixes it at 0 without a message, whatever the bounds are; HiGHS and SCIP read y in [2, 4]. (CPLEX
#   leaves the column out, with a warning.)
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check mosek==11.2.7 highspy==1.16.0 pyscipopt==6.3.0
venv/bin/python - <<'PYTHON'
import pathlib

import highspy
import mosek
import pyscipopt

pathlib.Path("model.lp").write_text("minimize\n obj: x\nsubject to\n c1: x >= 1\nbounds\n 2 <= y <= 4\nend\n")
with mosek.Env() as env, mosek.Task(env) as task:
    task.readdata("model.lp")
    found = {"MOSEK": task.getvarbound(task.getvarnameindex("y")[1])}
h = highspy.Highs()
h.setOptionValue("output_flag", False)
h.readModel("model.lp")
lp = h.getLp()
y = list(lp.col_names_).index("y")
found["HiGHS"] = (lp.col_lower_[y], lp.col_upper_[y])
model = pyscipopt.Model()
model.hideOutput()
model.readProblem("model.lp")
found["SCIP"] = next((v.getLbOriginal(), v.getUbOriginal()) for v in model.getVars() if v.name == "y")
print("bounds of y:", found)
assert found["MOSEK"][0] == mosek.boundkey.fx and found["MOSEK"][1:] == (0, 0)
assert found["HiGHS"] == found["SCIP"] == (2, 4)
PYTHON

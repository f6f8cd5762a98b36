#!/usr/bin/env bash
# pyscipopt 6.3.0 (SCIP 10), LP reader, and the same file in cplex 22.2.0.1 and highspy 1.16.0.
# Belief: white space between a coefficient and a name is optional: "2x", "2.5x" and "2.x" are a number times x.
# Behaviour: SCIP reads "2.x" as 2 times another column, named ".x", without a message; CPLEX and HiGHS read 2 times
#   x.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check pyscipopt==6.3.0 cplex==22.2.0.1 highspy==1.16.0
venv/bin/python - <<'PYTHON'
import pathlib

import cplex
import highspy
import pyscipopt

pathlib.Path("model.lp").write_text("minimize\n obj: 2.x + 3.5y\nsubject to\n c1: x + y >= 1\nend\n")
model = pyscipopt.Model()
model.hideOutput()
model.readProblem("model.lp")
scip = {v.name: v.getObj() for v in model.getVars()}
other = cplex.Cplex("model.lp")
h = highspy.Highs()
h.setOptionValue("output_flag", False)
h.readModel("model.lp")
found = {
    "CPLEX": dict(zip(other.variables.get_names(), other.objective.get_linear())),
    "HiGHS": dict(zip(h.getLp().col_names_, map(float, h.getLp().col_cost_))),
}
print("costs: SCIP", scip, found)
assert scip == {".x": 2, "y": 3.5, "x": 0}
assert found["CPLEX"] == found["HiGHS"] == {"x": 2, "y": 3.5}
PYTHON

#!/usr/bin/env bash
# mip 2.0.0 (CBC 2.935), and the same file in highspy 1.16.0 and pyscipopt 6.3.0.
# Belief: "x - -3 y" in an LP file is x + 3 y, or is refused (as CPLEX and GLPK do).
# Behaviour: CBC reads x + y minus a column of its own, and loses all names; "x + -3 y" it reads as x - 3 y.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check mip==2.0.0 highspy==1.16.0 pyscipopt==6.3.0
venv/bin/python - <<'PYTHON'
import pathlib

import highspy
import mip
import pyscipopt

text = "minimize\n obj: -2 x - y\nsubject to\n cap: x - -3 y <= 9\nbounds\n x <= 7\n y <= 4\nend\n"
pathlib.Path("model.lp").write_text(text)
h = highspy.Highs()
h.setOptionValue("output_flag", False)
h.readModel("model.lp")
h.run()
found = {"HiGHS": h.getInfo().objective_function_value}
scip = pyscipopt.Model()
scip.hideOutput()
scip.readProblem("model.lp")
scip.optimize()
found["SCIP"] = scip.getObjVal()
cbc = mip.Model(solver_name="CBC")
cbc.verbose = 0
cbc.read("model.lp")
cbc.optimize()
found["CBC"] = cbc.objective_value
names = [v.name for v in cbc.vars]
print("optimum of the file:", {k: round(v, 4) for k, v in found.items()}, "columns for CBC:", names)
assert round(found["HiGHS"], 4) == round(found["SCIP"], 4) == -14.6667 and round(found["CBC"], 4) == -18
assert names == ["x0", "x1", "x2"]
PYTHON

#!/usr/bin/env bash
# pyscipopt 6.3.0 (SCIP 10), MPS reader, and the same file in highspy 1.16.0.
# Belief: the name of the set is optional in BOUNDS, so "LO x 5.5e0" is a lower bound of x, as "LO x 5.5" is.
# Behaviour: without a set name SCIP reads a bound that is written with an exponent as a new column of that name, and x
#   keeps its lower bound 0, without a message; HiGHS reads 5.5.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check pyscipopt==6.3.0 highspy==1.16.0
venv/bin/python - <<'PYTHON'
import pathlib

import highspy
import pyscipopt

TEXT = "NAME t\nROWS\n N cost\n G row\nCOLUMNS\n x cost 1 row 1\nRHS\n RHS row 2\nBOUNDS\n LO x {}\nENDATA\n"
found = {}
for bound in ("5.5", "5.5e0"):
    pathlib.Path("model.mps").write_text(TEXT.format(bound))
    model = pyscipopt.Model()
    model.hideOutput()
    model.readProblem("model.mps")
    h = highspy.Highs()
    h.setOptionValue("output_flag", False)
    h.readModel("model.mps")
    scip = {v.name: v.getLbOriginal() for v in model.getVars()}
    found[bound] = scip, dict(zip(h.getLp().col_names_, map(float, h.getLp().col_lower_)))
    print("LO x", bound, "SCIP", scip, "HiGHS", found[bound][1])
assert found["5.5"][0] == {"x": 5.5}
assert found["5.5e0"][0]["x"] == 0 and len(found["5.5e0"][0]) == 2
assert all(highs == {"x": 5.5} for _, highs in found.values())
PYTHON

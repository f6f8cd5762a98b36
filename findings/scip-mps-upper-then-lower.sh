#!/usr/bin/env bash
# pyscipopt 6.3.0 (SCIP 10), MPS reader, and the same files in highspy 1.16.0.
# Belief: the order of two bounds of one column does not matter: after "UP 1" and "LO -3" the column has [-3, 1].
# Behaviour: for a column between integer markers SCIP forgets an upper bound of at most 1 when a lower bound follows, and
#   keeps one of 2; HiGHS keeps both. No message.
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

TEXT = (
    "NAME t\nROWS\n N cost\n G row\nCOLUMNS\n M1 'MARKER' 'INTORG'\n x cost 1 row 1\n M2 'MARKER' 'INTEND'\n"
    "RHS\n RHS row -2\nBOUNDS\n UP B x {}\n LO B x -3\nENDATA\n"
)
found = {}
for upper in (1, 2):
    pathlib.Path("model.mps").write_text(TEXT.format(upper))
    model = pyscipopt.Model()
    model.hideOutput()
    model.readProblem("model.mps")
    (x,) = model.getVars()
    h = highspy.Highs()
    h.setOptionValue("output_flag", False)
    h.readModel("model.mps")
    found[upper] = (x.getLbOriginal(), x.getUbOriginal()), (h.getLp().col_lower_[0], h.getLp().col_upper_[0])
    print("UP", upper, "then LO -3: SCIP", found[upper][0], "HiGHS", found[upper][1])
assert found[1][0][1] > 1e15 and found[1][1] == (-3, 1)
assert found[2] == ((-3, 2), (-3, 2))
PYTHON

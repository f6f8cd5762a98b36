#!/usr/bin/env bash
# pyscipopt 6.3.0, getDualsolLinear and getDualSolVal of the rows of a linear program, presolve and propagation off.
# Belief: both return the dual of the row, with one sign.
# Behaviour: getDualsolLinear is 0 for a row of one column, although it binds (its dual is in the reduced cost), and keeps
#   the sign of a minimization when the objective is maximized; getDualSolVal does neither. The reduced cost takes the
#   sense of the objective, so that it does not fit the first.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check pyscipopt==6.3.0
venv/bin/python - <<'PYTHON'
from pyscipopt import SCIP_PARAMSETTING, Model

found = {}
for sense, sign in (("minimize", -1), ("maximize", 1)):
    model = Model()
    model.hideOutput()
    model.setPresolve(SCIP_PARAMSETTING.OFF)
    model.setHeuristics(SCIP_PARAMSETTING.OFF)
    model.disablePropagation()
    x, y = model.addVar("x"), model.addVar("y")
    rows = [model.addCons(x + y <= 4), model.addCons(x <= 3)]
    model.setObjective(sign * (3 * x + 2 * y), sense)
    model.optimize()
    assert model.getStatus() == "optimal" and abs(model.getObjVal() - 11 * sign) < 1e-9
    found[sense] = [
        [round(model.getDualsolLinear(row)) for row in rows],
        [round(model.getDualSolVal(row)) for row in rows],
        round(model.getVarRedcost(x)),
    ]
print("getDualsolLinear, getDualSolVal, reduced cost of x:", found)
assert found == {"minimize": [[-2, 0], [-2, -1], -1], "maximize": [[-2, 0], [2, 1], 1]}
PYTHON

#!/usr/bin/env bash
# pyscipopt 6.3.0, getDualsolLinear and getDualSolVal of the rows of a linear program, presolve and propagation off.
# Belief: both return the dual of the row, with one sign, and the duals times the sides sum to the optimum.
# Behaviour: getDualsolLinear is 0 for every row of one column, although it binds (its dual is in the reduced cost), and
#   keeps the sign of a minimization when the objective is maximized. getDualSolVal has the sign of the objective, and
#   gives the whole reduced cost to each of several such rows: of x <= 3 and 2 x <= 6, to both.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check pyscipopt==6.3.0
venv/bin/python - <<'PYTHON'
from pyscipopt import SCIP_PARAMSETTING, Model

duals, sums = {}, {}
for sense, sign in (("minimize", -1), ("maximize", 1)):
    model = Model()
    model.hideOutput()
    model.setPresolve(SCIP_PARAMSETTING.OFF)
    model.setHeuristics(SCIP_PARAMSETTING.OFF)
    model.disablePropagation()
    x, y = model.addVar("x"), model.addVar("y")
    rows = {model.addCons(x + y <= 4): 4, model.addCons(x <= 3): 3, model.addCons(2 * x <= 6): 6}
    model.setObjective(sign * (3 * x + 2 * y), sense)
    model.optimize()
    assert model.getStatus() == "optimal" and abs(model.getObjVal() - 11 * sign) < 1e-9
    for name in ("getDualsolLinear", "getDualSolVal"):
        duals[name, sense] = [round(getattr(model, name)(row), 6) for row in rows]
        sums[name, sense] = sum(dual * side for dual, side in zip(duals[name, sense], rows.values()))
print("duals:", duals, "sums:", sums, "optima: -11, 11")
assert duals["getDualsolLinear", "minimize"] == duals["getDualsolLinear", "maximize"] == [-2, 0, 0]
assert duals["getDualSolVal", "minimize"] == [-2, -1, -0.5] and duals["getDualSolVal", "maximize"] == [2, 1, 0.5]
assert list(sums.values()) == [-8, -14, -8, 14]
PYTHON

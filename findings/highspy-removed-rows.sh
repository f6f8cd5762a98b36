#!/usr/bin/env bash
# highspy 1.16.0, removeConstr and deleteVariable.
# Belief: the objects of the other constraints and variables still stand for these afterwards.
# Behaviour: they keep their positions, and so stand for the next ones: the value of y is that of z, and removing "the
#   third constraint" removes the fourth. The objects to be corrected must be given as further arguments.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check highspy==1.16.0
venv/bin/python - <<'PYTHON'
import highspy

model = highspy.Highs()
model.setOptionValue("output_flag", False)
x, y, z = (model.addVariable(lb=0, ub=limit, name=name) for name, limit in (("x", 1), ("y", 2), ("z", 3)))
rows = [model.addConstr(x + y + z <= limit, name=f"row{limit}") for limit in (10, 20, 30, 40)]
model.removeConstr(rows[0])
model.removeConstr(rows[2])
left = [model.getRowName(i)[1] for i in range(model.getNumRow())]
model.maximize(x + y + z)
right = model.val(y)
model.deleteVariable(x)
model.maximize()
wrong = model.val(y)
print("rows after removing the first and the third:", left, "y in [0, 2]:", right, "without x:", wrong)
assert left == ["row20", "row30"]
assert (right, wrong) == (2.0, 3.0)
PYTHON

#!/usr/bin/env bash
# mip 2.0.0, writing a solution to a .sol file.
# Belief: Model.write("a.sol") after a solve writes the solution and its objective.
# Behaviour: the objective in the file is always 0.0, values below 1e-8 are left out; and if the model has a start, the
#   start is written instead of the solution.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check mip==2.0.0
venv/bin/python - <<'PYTHON'
import pathlib

import mip

model = mip.Model(sense=mip.MAXIMIZE, solver_name="CBC")
model.verbose = 0
x = model.add_var("x", ub=3, var_type=mip.INTEGER)
y = model.add_var("y", ub=4)
tiny = model.add_var("tiny", lb=1e-9, ub=1e-9)
model.objective = x + y
model += x + y <= 6
model.optimize()
model.write("solved.sol")
solved = pathlib.Path("solved.sol").read_text()
model.start = [(x, 1), (y, 0)]
model.optimize()
model.write("started.sol")
started = pathlib.Path("started.sol").read_text()
print(f"optimum {model.objective_value}, x {x.x}, y {y.x}", solved, started, sep="\n")
assert model.objective_value == 6
assert solved.startswith("Feasible solution - objective 0.0\n") and "tiny" not in solved
assert " x 2.0 " in solved and " x 1 " in started
PYTHON

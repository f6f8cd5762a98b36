#!/usr/bin/env bash
# linopy 0.10.1 with pyscipopt 6.3.0, duals of a linear program.
# Belief: after status "optimal" the duals are those of the rows, as with HiGHS, or absent, as after an integer program.
# Behaviour: with SCIP they are 0 for every row that its presolve removed, here all, although the rows bind.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check linopy==0.10.1 pyscipopt==6.3.0 highspy==1.16.0
venv/bin/python - <<'PYTHON' | tail -n 1
import linopy

found = {}
for solver in ("highs", "scip"):
    model = linopy.Model()
    x, y = model.add_variables(lower=0, name="x"), model.add_variables(lower=0, name="y")
    model.add_constraints(x + y <= 4, name="both")
    model.add_constraints(x <= 3, name="first")
    model.add_objective(-3 * x - 2 * y)
    assert model.solve(solver) == ("ok", "optimal") and abs(model.objective.value + 11) < 1e-6
    found[solver] = [float(model.dual[name]) for name in ("both", "first")]
assert found == {"highs": [-2, -1], "scip": [0, 0]}, found
print("duals:", found)
PYTHON

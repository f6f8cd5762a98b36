#!/usr/bin/env bash
# pyomo 6.10.1 with highspy 1.16.0, attribute "stale" of variables.
# Belief: x.stale says whether the last solve of x's own model gave x a value.
# Behaviour: one counter of the process decides. A solve of model b makes all variables of model a
#   stale.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check pyomo==6.10.1 highspy==1.16.0
venv/bin/python - <<'PYTHON'
import pyomo.environ as pe


def model():
    m = pe.ConcreteModel()
    m.x = pe.Var(bounds=(0, 1))
    m.cost = pe.Objective(expr=m.x)
    return m


a, b = model(), model()
pe.SolverFactory("appsi_highs").solve(a)
before = a.x.stale
pe.SolverFactory("appsi_highs").solve(b)
print("a.x.stale after solving a:", before, "and after solving b:", a.x.stale)
assert (before, a.x.stale) == (False, True)
PYTHON

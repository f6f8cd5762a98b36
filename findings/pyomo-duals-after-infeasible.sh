#!/usr/bin/env bash
# pyomo 6.10.1 with highspy 1.16.0 and gurobipy 13.0.3, import suffix "dual".
# Belief: after a solve that finds the model infeasible, the suffix is empty: there are no duals.
# Behaviour: appsi_highs and highs leave the duals of the solve before in it; gurobi_direct empties it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check pyomo==6.10.1 highspy==1.16.0 gurobipy==13.0.3
venv/bin/python - <<'PYTHON'
import logging

import pyomo.environ as pe
from pyomo.common.errors import PyomoException

logging.getLogger("pyomo").setLevel(logging.ERROR)
left = {}
for name in ("appsi_highs", "highs", "gurobi_direct"):
    m = pe.ConcreteModel()
    m.x = pe.Var(bounds=(0, 10))
    m.c = pe.Constraint(expr=m.x <= 4)
    m.value = pe.Objective(expr=m.x, sense=pe.maximize)
    m.dual = pe.Suffix(direction=pe.Suffix.IMPORT)
    solver = pe.SolverFactory(name)
    solver.solve(m)
    m.contradiction = pe.Constraint(expr=m.x >= 6)
    try:
        solver.solve(m)
    except (RuntimeError, PyomoException) as error:
        print(name, "raises", type(error).__name__)
    left[name] = {c.name: value for c, value in m.dual.items()}
    print(name, "duals after the infeasible solve:", left[name])
assert left == {"appsi_highs": {"c": 1.0}, "highs": {"c": 1.0}, "gurobi_direct": {}}
PYTHON

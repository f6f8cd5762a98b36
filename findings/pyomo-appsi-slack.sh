#!/usr/bin/env bash
# pyomo 6.10.1 with highspy 1.16.0, solver appsi_highs, import suffix "slack".
# Belief: m.slack[c] is the distance of a constraint from its limit, 0 where it binds.
# Behaviour: it is the value of the constraint's body. Here x <= 4 binds at x = 4: its slack is 4, that of x <= 100
#   also 4.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check pyomo==6.10.1 highspy==1.16.0
venv/bin/python - <<'PYTHON'
import pyomo.environ as pe

m = pe.ConcreteModel()
m.x = pe.Var(bounds=(0, 10))
m.binding = pe.Constraint(expr=m.x <= 4)
m.loose = pe.Constraint(expr=m.x <= 100)
m.value = pe.Objective(expr=m.x, sense=pe.maximize)
m.slack = pe.Suffix(direction=pe.Suffix.IMPORT)
pe.SolverFactory("appsi_highs").solve(m)
for c in (m.binding, m.loose):
    print(f"{c.name}: suffix {m.slack[c]}, uslack() {c.uslack()}, body {pe.value(c.body)}")
assert (m.slack[m.binding], m.slack[m.loose]) == (4, 4)
assert (m.binding.uslack(), m.loose.uslack()) == (0, 96)
PYTHON

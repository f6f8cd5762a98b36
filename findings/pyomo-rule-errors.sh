#!/usr/bin/env bash
# pyomo 6.10.1, an exception that a rule raises and the caller handles.
# Belief: it reaches the caller as from any other function; a program that handles it keeps its output to itself.
# Behaviour: Pyomo logs it first, at level ERROR and twice, and raises it then. Its log goes to standard output, where a
#   program may write JSON. Rows that are made before, and only handed over by the rule, log nothing.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check pyomo==6.10.1
venv/bin/python - > said <<'PYTHON'
import pyomo.environ as pyo


def built(before):
    model = pyo.ConcreteModel()
    model.x = pyo.Var(["a", "b"])
    cost = {"a": 1.0}
    if before:
        rows = {i: cost[i] * model.x[i] <= 1 for i in ["a", "b"]}
        model.cap = pyo.Constraint(["a", "b"], rule=lambda _, i: rows[i])
    else:
        model.cap = pyo.Constraint(["a", "b"], rule=lambda m, i: cost[i] * m.x[i] <= 1)


for before in (True, False):
    try:
        built(before)
    except KeyError as error:
        print(f"rows made {'before' if before else 'by the rule'}: handled KeyError {error}", flush=True)
PYTHON
cat said
test "$(grep -c '^ERROR' said)" = 2 && head -n 1 said | grep -q "^rows made before: handled"

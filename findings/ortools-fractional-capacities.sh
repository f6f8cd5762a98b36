#!/usr/bin/env bash
# ortools 9.15.6755, SimpleMaxFlow and SimpleMinCostFlow with arrays.
# Belief: fractional capacities are refused, as add_arc_with_capacity(0, 1, 0.9) is.
# Behaviour: the methods for arrays cut the fractions off without a message: capacity 0.9 is 0, supply 2.9 is 2, unit cost
#   1.5 is 1.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check ortools==9.15.6755
venv/bin/python - <<'PYTHON'
import numpy as np
from ortools.graph.python import max_flow, min_cost_flow

flow = max_flow.SimpleMaxFlow()
try:
    flow.add_arc_with_capacity(0, 1, 0.9)
except TypeError:
    print("one arc: refused")
else:
    raise SystemExit("one arc with a fractional capacity is accepted")
flow.add_arcs_with_capacity(np.array([0, 1]), np.array([1, 2]), np.array([0.9, 2.7]))
flow.solve(0, 2)
cheap = min_cost_flow.SimpleMinCostFlow()
cheap.add_arcs_with_capacity_and_unit_cost(np.array([0]), np.array([1]), np.array([5]), np.array([1.5]))
cheap.set_nodes_supplies(np.array([0, 1]), np.array([2.9, -2.9]))
status = cheap.solve()
print("arrays:", [flow.capacity(a) for a in range(2)], "maximum flow", flow.optimal_flow())
print("flow of least cost:", cheap.flow(0), "cost", cheap.optimal_cost())
assert [flow.capacity(a) for a in range(2)] == [0, 2] and flow.optimal_flow() == 0
assert status == cheap.OPTIMAL and (cheap.flow(0), cheap.optimal_cost()) == (2, 2)
PYTHON

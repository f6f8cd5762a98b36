#!/usr/bin/env bash
# ortools 9.15.6755, CP-SAT: add_no_overlap and add_cumulative with an interval of length 0.
# Belief: on one resource of capacity 1 the two mean the same, and an interval without length takes no room.
# Behaviour: add_no_overlap forbids it inside another interval, add_cumulative with capacity and demands 1 allows it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check ortools==9.15.6755
venv/bin/python - <<'PYTHON'
from ortools.sat.python import cp_model


def status(cumulative, moment):
    """Whether an empty transfer can stand at a moment of a transfer from 0 to 4."""
    model = cp_model.CpModel()
    both = [model.new_interval_var(0, 4, 4, "transfer"), model.new_interval_var(moment, 0, moment, "empty")]
    if cumulative:
        model.add_cumulative(both, [1, 1], 1)
    else:
        model.add_no_overlap(both)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    return solver.status_name(solver.solve(model))


found = {moment: (status(False, moment), status(True, moment)) for moment in (0, 2, 4)}
print("moment: no_overlap, cumulative:", found)
assert found == {0: ("OPTIMAL",) * 2, 2: ("INFEASIBLE", "OPTIMAL"), 4: ("OPTIMAL",) * 2}
PYTHON

#!/usr/bin/env bash
# highspy 1.16.0, setBasis with a basis that is primal feasible, and the default of the option simplex_strategy.
# Belief: the simplex method goes on from there: a run that is stopped early has a feasible point, at least as good.
# Behaviour: the default is the dual simplex method, not the choice by the start, which is strategy 0. Stopped after five
#   steps it has an infeasible point, though it was given the basis of a feasible one; strategy 0 takes the primal method.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check highspy==1.16.0
venv/bin/python - <<'PYTHON'
import highspy
import numpy as np

size = 40
rows, columns = np.indices((size, size))
weight = ((rows * rows * 7 + columns * columns * 5 + rows * columns) % 11 < 3).astype(float).T.ravel()  # by column
infinite = np.full(size, np.inf)
status = highspy.HighsBasisStatus


def stopped_after(steps, strategy):
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("simplex_iteration_limit", steps)
    if strategy is not None:
        highs.setOptionValue("simplex_strategy", strategy)
    start, entries = np.arange(0, size * size, size, dtype=np.int32), np.tile(np.arange(size, dtype=np.int32), size)
    zero, cost = np.zeros(size), 5.0 + np.arange(size) % 3
    highs.passModel(
        size, size, size * size, 1, int(highspy.ObjSense.kMaximize), 0.0, cost, zero, infinite,
        -infinite, np.full(size, 1.0), np.append(start, size * size).astype(np.int32), entries, weight,
        np.zeros(size, dtype=np.int32),
    )
    basis = highspy.HighsBasis()
    basis.col_status, basis.row_status, basis.valid = [status.kLower] * size, [status.kBasic] * size, True
    highs.setBasis(basis)  # x = 0, which is feasible: all slacks are 1
    highs.run()
    info = highs.getInfo()
    return info.sum_primal_infeasibilities, info.objective_function_value


default, chosen = stopped_after(5, None), stopped_after(5, 0)
optimum = stopped_after(10**6, None)
print("after five steps, by default: infeasibility and objective", default)
print("... with simplex_strategy 0", chosen, "; the optimum", optimum)
assert default[0] > 1.0 and default[1] > optimum[1] + 1.0
assert chosen[0] <= 1e-9 and 0.0 < chosen[1] <= optimum[1] + 1e-6
PYTHON

#!/usr/bin/env bash
# highspy 1.16.0 (also 1.15.1), option objective_bound.
# Belief: it stops the dual simplex method of an LP; an integer program ignores it, or ends with the status
#   kObjectiveBound.
# Behaviour: the LPs inside branch and bound stop by it. HiGHS then reports kOptimal with a value worse than the
#   optimum and an equal dual bound, or kInfeasible for a feasible program.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check highspy==1.16.0
venv/bin/python - <<'PYTHON'
import highspy


def solve(rows, sides, costs, **options):
    """Minimize costs x subject to rows x >= sides, x integer in [0, 8]."""
    h = highspy.Highs()
    h.setOptionValue("output_flag", False)
    for name, value in options.items():
        assert h.setOptionValue(name, value) == highspy.HighsStatus.kOk
    x = [h.addIntegral(lb=0, ub=8) for _ in costs]
    for row, side in zip(rows, sides):
        h.addConstr(sum(a * v for a, v in zip(row, x)) >= side)
    h.minimize(sum(c * v for c, v in zip(costs, x)))
    return h.getModelStatus().name, h.getInfo().objective_function_value, h.getInfo().mip_dual_bound


first = [[9, 8, 7, 8], [2, 2, 7, 2], [5, 4, 3, 7], [5, 7, 1, 9]], [51, 22, 47, 39], [6, 6, 6, 8]
second = [[2, 3, 5], [3, 1, 1]], [7, 4], [3, 4, 6]
plain, bounded = solve(*first), solve(*first, objective_bound=29.0)
print("status, value, dual bound:", plain, "with objective_bound 29:", bounded)
assert plain[:2] == ("kOptimal", 58.0)
assert bounded[0] == "kOptimal" and bounded[1] == bounded[2] > 58.5
plain, bounded = solve(*second), solve(*second, objective_bound=1.0)
print("a second program:", plain, "with objective_bound 1:", bounded)
assert plain[:2] == ("kOptimal", 9.0) and bounded[0] == "kInfeasible"
PYTHON

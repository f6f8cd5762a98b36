#!/usr/bin/env bash
# pulp 3.3.2, LpProblem.fromMPS, and the same files in highspy 1.16.0.
# Belief: a bound of type PL or MI makes one end of a column's range infinite and leaves the other end as it is.
# Behaviour: after LO 3, PL makes the range [0, inf) instead of [3, inf); MI alone makes it (-inf, 0] instead of
#   (-inf, inf).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check pulp==3.3.2 highspy==1.16.0
venv/bin/python - <<'PYTHON'
import pathlib

import highspy
import pulp

found = {}
for bounds in (" LO BND x 3\n PL BND x\n", " MI BND x\n"):
    pathlib.Path("model.mps").write_text(
        "NAME t\nROWS\n N obj\n G c\nCOLUMNS\n x obj 1\n x c 1\nRHS\n RHS c 1\nBOUNDS\n" + bounds + "ENDATA\n"
    )
    columns, _ = pulp.LpProblem.fromMPS("model.mps")
    h = highspy.Highs()
    h.setOptionValue("output_flag", False)
    h.readModel("model.mps")
    lp = h.getLp()
    pair = (columns["x"].lowBound, columns["x"].upBound), (float(lp.col_lower_[0]), float(lp.col_upper_[0]))
    print(f"{bounds.split()}: PuLP {pair[0]}, HiGHS {pair[1]}")
    found[bounds.split()[0]] = pair
inf = float("inf")
assert found == {"LO": ((0, None), (3, inf)), "MI": ((None, 0), (-inf, inf))}
PYTHON

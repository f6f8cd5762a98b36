#!/usr/bin/env bash
# cvxpy 1.9.3, compiling a constraint that compares arrays of different shapes.
# Belief: `z >= y` with z of shape (2,) and y of shape (3, 2) is compiled as its six rows written out would be.
# Behaviour: the broadcast has no form in the default C++ backend: it raises if that backend is asked for, and otherwise
#   the whole problem is compiled by the SciPy backend, with a warning. An outer product with ones states the same rows
#   and stays with the default backend.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check cvxpy==1.9.3 numpy==2.3.5
venv/bin/python - <<'PYTHON'
import warnings

import cvxpy as cp
import numpy as np

y, z = cp.Variable((3, 2)), cp.Variable(2)


def compiled(rows, backend):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            data = cp.Problem(cp.Minimize(cp.sum(z)), [rows]).get_problem_data(cp.SCIPY, canon_backend=backend)[0]
        except ValueError as error:
            return f"refused: {error}"
    words = [str(one.message) for one in said if "backend" in str(one.message)]
    return f"{data['G'].shape[0]} rows{', warned: ' + words[0] if words else ''}"


broadcast, outer = z >= y, cp.outer(np.ones(3), z) >= y
for name, rows in (("broadcast", broadcast), ("outer", outer)):
    print(f"{name}: default {compiled(rows, None)}; CPP {compiled(rows, 'CPP')}")
assert "SCIPY backend" in compiled(broadcast, None) and compiled(broadcast, "CPP").startswith("refused")
assert compiled(outer, None) == compiled(outer, "CPP") == "6 rows"
PYTHON

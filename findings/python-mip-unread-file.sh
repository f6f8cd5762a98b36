#!/usr/bin/env bash
# mip (python-mip) 2.0.0 with its CBC, Model.read.
# Belief: a file that CBC cannot read raises an exception, as a file that does not exist does.
# Behaviour: read() returns, and the model has no rows and columns. The file here is valid CPLEX LP ("=<" means
#   "<=").
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check mip==2.0.0
venv/bin/python - <<'PYTHON'
import pathlib

import mip

pathlib.Path("model.lp").write_text("maximize\n obj: x\nsubject to\n c1: x =< 3\nend\n")
model = mip.Model(solver_name="CBC")
model.verbose = 0
model.read("model.lp")
print("columns:", model.num_cols, "rows:", model.num_rows)
assert (model.num_cols, model.num_rows) == (0, 0)
PYTHON

#!/usr/bin/env bash
# mosek 11.2.7, LP reader, and the same file in gurobipy 13.0.3 and highspy 1.16.0.
# Belief: a column listed under "integer" is integer within the bounds that the file states.
# Behaviour: MOSEK replaces the bounds 0 <= x <= 4 by [0, 1] without a message; under "general" it keeps them.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check mosek==11.2.7 gurobipy==13.0.3 highspy==1.16.0
venv/bin/python - <<'PYTHON'
import pathlib

import gurobipy
import highspy
import mosek

upper = {}
with gurobipy.Env(params={"OutputFlag": 0}) as quiet:
    for section in ("integer", "general"):
        file = f"{section}.lp"
        text = f"minimize\n obj: x\nsubject to\n c1: x >= 1\nbounds\n x <= 4\n{section}\n x\nend\n"
        pathlib.Path(file).write_text(text)
        with mosek.Env() as env, mosek.Task(env) as task:
            task.readdata(file)
            assert task.getvartype(0) == mosek.variabletype.type_int
            upper["MOSEK", section] = task.getvarbound(0)[2]
        with gurobipy.read(file, quiet) as model:
            upper["Gurobi", section] = model.getVars()[0].UB
        h = highspy.Highs()
        h.setOptionValue("output_flag", False)
        h.readModel(file)
        upper["HiGHS", section] = h.getLp().col_upper_[0]
print("upper bounds of x:", upper)
assert upper.pop(("MOSEK", "integer")) == 1
assert set(upper.values()) == {4} and len(upper) == 5
PYTHON

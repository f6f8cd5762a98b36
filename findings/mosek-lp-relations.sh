#!/usr/bin/env bash
# mosek 11.2.7, LP reader, and the same file in cplex 22.2.0.1 and pyscipopt 6.3.0.
# Belief: "=>" and "=<", which the LP format has besides ">=" and "<=", mean the same as these.
# Behaviour: MOSEK exchanges them without a message: x => 2 is read as x <= 2 and y =< 3 as y >= 3.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check mosek==11.2.7 cplex==22.2.0.1 pyscipopt==6.3.0
venv/bin/python - <<'PYTHON'
import pathlib

import cplex
import mosek
import pyscipopt

pathlib.Path("model.lp").write_text("minimize\n obj: x + y\nsubject to\n c1: x => 2\n c2: y =< 3\nend\n")
with mosek.Env() as env, mosek.Task(env) as task:
    task.readdata("model.lp")
    rows = [task.getconbound(i) for i in range(2)]
other = cplex.Cplex("model.lp")
model = pyscipopt.Model()
model.hideOutput()
model.readProblem("model.lp")
scip = [(model.getLhs(row), model.getRhs(row)) for row in model.getConss()]
print("MOSEK:", rows, "CPLEX:", other.linear_constraints.get_senses(), "SCIP:", scip)
assert [row[0] for row in rows] == [mosek.boundkey.up, mosek.boundkey.lo] and rows[0][2] == 2 and rows[1][1] == 3
assert other.linear_constraints.get_senses() == ["G", "L"]
assert scip == [(2, model.infinity()), (-model.infinity(), 3)]
PYTHON

#!/usr/bin/env bash
# mip 2.0.0 (CBC 2.935), cplex 22.2.0.1, xpress 9.9.1 and highspy 1.16.0, and the same program in coptpy 8.0.7.
# Belief: a linear program whose costs are of the order of 1e-7 (seconds per byte) is solved, or refused.
# Behaviour: costs below a tolerance of 1e-6 count as zero for programs whose zero solution is feasible: CBC, CPLEX and
#   Xpress call it optimal, with the objective 0; HiGHS ends "optimal" at -7.5e-7. The optimum is -8e-7, as COPT says.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check mip==2.0.0 cplex==22.2.0.1 xpress==9.9.1 coptpy==8.0.7 highspy==1.16.0
venv/bin/python - <<'PYTHON' 2> /dev/null
import pathlib

import coptpy
import cplex
import highspy
import mip
import xpress

pathlib.Path("model.lp").write_text(
    "minimize\n obj: -3e-7 x - 2e-7 y - 2.5e-7 z\nsubject to\n a: x + 2 y + z <= 4\n b: 2 x + y + 2 z <= 5\nend\n"
)
found = {}
model = cplex.Cplex()
for channel in (model.set_log_stream, model.set_results_stream, model.set_warning_stream):
    channel(None)
model.read("model.lp")
model.solve()
found["CPLEX"] = model.solution.get_status_string(), model.solution.get_objective_value()
model = xpress.problem()
model.setControl("outputlog", 0)
model.readProb("model.lp")
model.optimize()
found["Xpress"] = model.attributes.solstatus.name, model.attributes.objval
model = mip.Model(solver_name="CBC")
model.verbose = 0
model.read("model.lp")
found["CBC"] = model.optimize().name, model.objective_value
model = coptpy.Envr().createModel()
model.setParam("Logging", 0)
model.readLp("model.lp")
model.solve()
found["COPT"] = model.status, model.lpobjval
model = highspy.Highs()
model.setOptionValue("output_flag", False)
model.readModel("model.lp")
model.run()
found["HiGHS"] = model.modelStatusToString(model.getModelStatus()), model.getInfo().objective_function_value
for tool, answer in found.items():
    print(tool, *answer)
assert all(abs(found[tool][1]) < 1e-12 for tool in ("CPLEX", "Xpress", "CBC"))
assert round(found["HiGHS"][1], 12) == -7.5e-7
assert round(found["COPT"][1], 12) == -8e-7
PYTHON

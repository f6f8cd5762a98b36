#!/usr/bin/env bash
# highspy 1.16.0, MPS reader.
# Belief: a column may have any name, as in the other readers of free MPS.
# Behaviour: from a column named NAME or OBJSENSE on, columns are absent, without a warning; the model is "optimal".
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check highspy==1.16.0
venv/bin/python - <<'PYTHON'
import pathlib

import highspy


def solved(name):
    pathlib.Path("model.mps").write_text(
        f"NAME t\nROWS\n N cost\n G r\nCOLUMNS\n    a r 1 cost 3\n    {name} r 1 cost 1\n    z r 1 cost 2\nRHS\n"
        "    RHS r 2\nENDATA\n"
    )
    h = highspy.Highs()
    h.setOptionValue("output_flag", False)
    assert h.readModel("model.mps") == highspy.HighsStatus.kOk
    h.run()
    return h.getNumCol(), h.getModelStatus(), h.getInfo().objective_function_value


for name in ("b", "OBJSENSE", "NAME"):
    print("the second of three columns is", name, solved(name))
assert solved("b") == (3, highspy.HighsModelStatus.kOptimal, 2)
assert solved("OBJSENSE") == (1, highspy.HighsModelStatus.kOptimal, 6)
assert solved("NAME")[1:] == (highspy.HighsModelStatus.kOptimal, 6)
PYTHON

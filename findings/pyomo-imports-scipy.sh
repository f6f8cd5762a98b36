#!/usr/bin/env bash
# pyomo 6.10.1 with scipy 1.17.1, deferred imports.
# Belief: `import pyomo.environ` leaves optional packages alone until they are used, and `import scipy` after it
#   loads scipy only.
# Behaviour: the next `import scipy` of anybody in the process also loads scipy.stats, scipy.integrate and
#   scipy.spatial.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check pyomo==6.10.1 scipy==1.17.1
venv/bin/python - <<'PYTHON'
import subprocess
import sys

PARTS = ["scipy.stats", "scipy.integrate", "scipy.spatial"]


def loaded(code):
    """Parts of SciPy that are loaded after the code, in a new process."""
    code = f"import sys\n{code}\nprint(*[part for part in {PARTS} if part in sys.modules])"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()


for code, expected in (
    ("import scipy", []),
    ("import pyomo.environ", []),
    ("import pyomo.environ, scipy", PARTS),
):
    print(f"{code}: {loaded(code)}")
    assert loaded(code) == expected
PYTHON

#!/usr/bin/env bash
# scipy 1.17.1, csgraph.maximum_flow.
# Belief: capacities of 64 bits (bit/s, bytes) are used as they are, or refused if they are too large, as fractions are.
# Behaviour: they are reduced modulo 2**32: a link of 400e9 carries 568041472; one of 4294967296 carries nothing.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check scipy==1.17.1
venv/bin/python - <<'PYTHON'
import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow


def through(capacity):
    return int(maximum_flow(csr_array(np.array([[0, capacity], [0, 0]])), 0, 1).flow_value)


found = {capacity: through(capacity) for capacity in (400, 400_000_000_000, 2**32)}
print("capacity and maximum flow:", found)
assert found == {400: 400, 400_000_000_000: 400_000_000_000 % 2**32, 2**32: 0}
PYTHON

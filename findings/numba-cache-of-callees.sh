#!/usr/bin/env bash
# numba 0.68.1 with numpy 2.3.5.
# Belief: a function compiled with cache=True is compiled anew when the code that it runs has changed.
# Behaviour: the cache is keyed by the file of the function alone: after a compiled function that it calls, or a constant,
#   has changed in another file, a new process still gives the old answer, without a warning.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check numba==0.68.1 numpy==2.3.5
export NUMBA_CACHE_DIR="$folder/cache" PYTHONDONTWRITEBYTECODE=1
cat > caller.py <<'PYTHON'
from numba import njit

import callee


@njit(cache=True)
def total(x):
    return callee.weight(x) + x


print(total(1.0))
PYTHON
write() { printf 'from numba import njit\n\n\n@njit(cache=True)\ndef weight(x):\n    return %s * x\n' "$1" > callee.py; }
write 1.0
first=$(venv/bin/python caller.py)
write 5.0
second=$(venv/bin/python caller.py)
rm -r "$folder/cache"
third=$(venv/bin/python caller.py)
echo "weight 1: $first; weight 5 with the cache: $second; weight 5 without: $third"
[ "$first" = 2.0 ] && [ "$second" = 2.0 ] && [ "$third" = 6.0 ]

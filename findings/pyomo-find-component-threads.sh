#!/usr/bin/env bash
# pyomo 6.10.1, find_component of a name in several threads, each with a model of its own.
# Belief: threads that share no model do not affect each other: only reading is asked for.
# Behaviour: names are read by one lexer of the class, so that a few calls in 100,000 raise an error or do not find it.
#   component(name) has no such state.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check pyomo==6.10.1
venv/bin/python - <<'PYTHON'
import sys
import threading
from collections import Counter

import pyomo.environ as pyo

sys.setswitchinterval(1e-6)


def look(name, how, found):
    model = pyo.ConcreteModel()
    parameter = pyo.Param(initialize=1, mutable=True)
    model.add_component(name, parameter)
    for _ in range(20000):
        try:
            found["right" if getattr(model, how)(name) is parameter else "another or none"] += 1
        except Exception as error:
            found[type(error).__name__] += 1


results = {}
for how in ("find_component", "component"):
    parts = [Counter() for _ in range(4)]
    threads = [threading.Thread(target=look, args=(f"capacity_{k}", how, part)) for k, part in enumerate(parts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    results[how] = sum(parts, Counter())
print(*(f"{how}: {dict(counts)}" for how, counts in results.items()), sep="\n")
assert results["component"] == {"right": 80000} and results["find_component"]["right"] < 80000
PYTHON

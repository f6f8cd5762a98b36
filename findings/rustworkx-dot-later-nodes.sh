#!/usr/bin/env bash
# rustworkx 0.18.1, from_dot.
# Belief: a node of DOT is the one with its name, wherever its attributes stand.
# Behaviour: a node statement behind an edge of that node makes a second node of the same name, without links: what has
#   the attributes is disconnected from the network.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check rustworkx==0.18.1
venv/bin/python - <<'PYTHON'
import rustworkx as rx

nodes = "gpu0 [kind=gpu]; leaf0 [kind=switch];"
before, behind = (rx.from_dot(text) for text in (f"graph {{ {nodes} gpu0 -- leaf0 }}", f"graph {{ gpu0 -- leaf0; {nodes} }}"))
print("nodes stated before the link:", list(before.nodes()), "behind it:", list(behind.nodes()), list(behind.edge_list()))
assert list(before.nodes()) == ["gpu0", "leaf0"]
assert list(behind.nodes()) == ["gpu0", "leaf0"] * 2 and list(behind.edge_list()) == [(0, 1)]
PYTHON

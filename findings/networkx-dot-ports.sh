#!/usr/bin/env bash
# networkx 3.6.1 and pydot 4.0.1, nx_pydot.read_dot.
# Belief: a port of DOT, leaf01:swp51, belongs to its node, and a subgraph only groups what it contains.
# Behaviour: every port is a node of its own, so that a fabric falls into its cables, and links inside a subgraph
#   are lost.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check networkx==3.6.1 pydot==4.0.1
venv/bin/python -W ignore - <<'PYTHON'
from pathlib import Path

import networkx as nx

Path("ring.dot").write_text(
    'graph { "a":"p1" -- "b":"p2"; "b":"p1" -- "c":"p2"; "c":"p1" -- "a":"p2" }'
)
ring = nx.Graph(nx.nx_pydot.read_dot("ring.dot"))
print("ring of 3 nodes with ports:", len(ring), "nodes,", nx.number_connected_components(ring), "components")
Path("rack.dot").write_text("graph { a -- b; subgraph cluster_rack { b -- c; c -- d } }")
rack = nx.nx_pydot.read_dot("rack.dot")
print("links of a -- b and, in a subgraph, b -- c and c -- d:", list(rack.edges()))
assert len(ring) == 6 and nx.number_connected_components(ring) == 3
assert list(rack.edges()) == [("a", "b")]
PYTHON

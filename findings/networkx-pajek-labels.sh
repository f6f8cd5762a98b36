#!/usr/bin/env bash
# networkx 3.6.1, read_pajek; igraph 1.0.0 for comparison.
# Belief: the vertices of a Pajek file are its numbers 1, 2, ...; labels are for people.
# Behaviour: networkx takes labels for names, so that vertices of one label are one node, and switches of one model or
#   adapters of one host merge without a word. igraph keeps them apart.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check networkx==3.6.1 igraph==1.0.0
venv/bin/python - <<'PYTHON'
from pathlib import Path

import igraph
import networkx as nx

Path("star.net").write_text('*Vertices 3\n1 "gpu"\n2 "gpu"\n3 "switch"\n*Edges\n1 3 1\n2 3 1\n')
merged = nx.read_pajek("star.net")
kept = igraph.Graph.Read_Pajek("star.net")
print("two GPUs at a switch, networkx:", list(merged.nodes), list(merged.edges()))
print("igraph:", kept.vcount(), "vertices,", kept.get_edgelist())
assert list(merged.nodes) == ["gpu", "switch"] and merged.number_of_edges() == 2
assert kept.vcount() == 3 and kept.get_edgelist() == [(0, 2), (1, 2)]
PYTHON

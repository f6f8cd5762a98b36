#!/usr/bin/env bash
# networkx 3.6.1 and igraph 1.0.0, capacities in bit/s in GML.
# Belief: an integer written to GML comes back as a number.
# Behaviour: networkx writes integers from 2**31 on as text, and reads them as text: of two links with 400 and 1 Gbit/s
#   one has a number. igraph reads such a file with text at every link.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check networkx==3.6.1 igraph==1.0.0
venv/bin/python - <<'PYTHON'
import igraph
import networkx as nx

network = nx.Graph()
network.add_edge("a", "b", capacity=400_000_000_000)
network.add_edge("b", "c", capacity=1_000_000_000)
nx.write_gml(network, "network.gml")
read = [c for *_, c in nx.read_gml("network.gml").edges(data="capacity")]
other = igraph.Graph.Read_GML("network.gml").es["capacity"]
print("networkx:", read, "igraph:", other)
assert read == ["400000000000", 1_000_000_000]
assert other == ["400000000000", "1000000000"]
PYTHON

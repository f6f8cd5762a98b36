#!/usr/bin/env bash
# networkx 3.6.1, edge_connectivity and edge_disjoint_paths of a MultiGraph; igraph 1.0.0 for comparison.
# Belief: they count parallel links, or refuse multigraphs, as maximum_flow does.
# Behaviour: parallel links count once, except in a network of two nodes. A path with two links between neighbours has
#   connectivity 1, although bridges() finds none.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check networkx==3.6.1 igraph==1.0.0
venv/bin/python - <<'PYTHON'
import igraph
import networkx as nx

links = [(0, 1), (0, 1), (1, 2), (1, 2)]
path, pair = nx.MultiGraph(links), nx.MultiGraph(links[:2])
value, bridges = nx.edge_connectivity(path), list(nx.bridges(path))
ways = list(nx.edge_disjoint_paths(path, 0, 2))
print("edge connectivity:", value, "minimum cut:", nx.minimum_edge_cut(path), "bridges:", bridges)
print("disjoint paths from 0 to 2:", ways, "edge connectivity of the first two nodes:", nx.edge_connectivity(pair))
print("igraph:", igraph.Graph(links).edge_connectivity())
assert value == 1 and not bridges and len(ways) == 1
assert nx.edge_connectivity(pair) == 2 == igraph.Graph(links).edge_connectivity()
PYTHON

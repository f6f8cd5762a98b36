#!/usr/bin/env bash
# networkx 3.6.1, MultiGraph(digraph), Graph(digraph) and to_undirected.
# Belief: a MultiGraph keeps both arcs between two nodes as parallel links, and all conversions that must choose choose
#   alike.
# Behaviour: one link remains in each. MultiGraph(digraph) has the capacity of the first arc, the others that of the
#   second.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check networkx==3.6.1
venv/bin/python - <<'PYTHON'
import networkx as nx

arcs = nx.DiGraph()
arcs.add_edge("a", "b", capacity=3)
arcs.add_edge("b", "a", capacity=5)
kept = {
    "MultiGraph(arcs)": nx.MultiGraph(arcs),
    "Graph(arcs)": nx.Graph(arcs),
    "arcs.to_undirected()": arcs.to_undirected(),
    "MultiDiGraph(arcs).to_undirected()": nx.MultiDiGraph(arcs).to_undirected(),
}
found = {name: [c for *_, c in graph.edges(data="capacity")] for name, graph in kept.items()}
print(found)
assert list(found.values()) == [[3], [5], [5], [5]]
PYTHON

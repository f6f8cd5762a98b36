#!/usr/bin/env bash
# networkx 3.6.1 writing GraphML, igraph 1.0.0 reading it.
# Belief: capacities 1 and 2.5 make one attribute of the file, which every reader of GraphML reads.
# Behaviour: networkx declares two attributes of the same name, one for whole numbers and one for fractions. networkx reads
#   them, igraph refuses the file.
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
network.add_edge("a", "b", capacity=1)
network.add_edge("b", "c", capacity=2.5)
nx.write_graphml(network, "network.graphml")
keys = [line.strip() for line in open("network.graphml") if "<key" in line]
print(*keys, sep="\n")
assert len(keys) == 2 and all('attr.name="capacity"' in key for key in keys)
assert [c for *_, c in nx.read_graphml("network.graphml").edges(data="capacity")] == [1, 2.5]
try:
    igraph.Graph.Read_GraphML("network.graphml")
except igraph.InternalError as error:
    print("igraph:", error)
    assert "Duplicate attribute" in str(error)
else:
    raise SystemExit("igraph reads the file")
PYTHON

#!/usr/bin/env bash
# networkit 11.3, writers of GraphML and GML; networkx 3.6.1.
# Belief: NetworKit's GraphML is read by networkx, and its GML has the weights of a weighted graph.
# Behaviour: the root element has "xmlnsi" instead of "xmlns", so that networkx refuses the file. GML is written and
#   read without weights; METIS files get fractional weights, which that format does not have.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check networkit==11.3 networkx==3.6.1
venv/bin/python - <<'PYTHON'
import networkit as nk
import networkx as nx

network = nk.Graph(3, weighted=True)
network.addEdge(0, 1, 2.5)
network.addEdge(1, 2, 0.5)
for name, kind in (("n.graphml", nk.Format.GraphML), ("n.gml", nk.Format.GML), ("n.metis", nk.Format.METIS)):
    nk.writeGraph(network, name, kind)
try:
    nx.read_graphml("n.graphml")
except nx.NetworkXError as error:
    print("networkx:", error)
else:
    raise SystemExit("networkx reads the GraphML file")
weights = [w for _, _, w in nk.readGraph("n.gml", nk.Format.GML).iterEdgesWeights()]
metis = open("n.metis").read().split()
print("weights from GML:", weights, "METIS:", metis)
assert 'xmlnsi="http://graphml' in open("n.graphml").read()
assert weights == [1.0, 1.0] and "weight" not in open("n.gml").read()
assert metis[:3] == ["3", "2", "1"] and "2.5" in metis
PYTHON

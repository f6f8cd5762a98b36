#!/usr/bin/env bash
# igraph 1.0.0, write_gml.
# Belief: a GML file has the attributes of the graph under their names, or the writer refuses the name; ends of a link keep
#   their order.
# Behaviour: underscores are left out, so that link_capacity is linkcapacity, and two names may become one; the ends of an
#   undirected link are exchanged.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check igraph==1.0.0
venv/bin/python - <<'PYTHON'
import igraph

network = igraph.Graph([(0, 1)])
network.es["link_capacity"] = [400]
network.es["linkcapacity"] = [7]
network.write_gml("network.gml")
text = open("network.gml").read().split()
back = igraph.Graph.Read_GML("network.gml")
print(*text[text.index("edge") :])
print("read again:", back.es.attributes(), back.es[0].attributes())
assert text.count("linkcapacity") == 2 and "link_capacity" not in text
assert text[text.index("source") : text.index("source") + 4] == ["source", "1", "target", "0"]
assert back.es.attributes() == ["linkcapacity"]
PYTHON

#!/usr/bin/env bash
# networkx 3.6.1 writing GraphML, rustworkx 0.18.0 reading it.
# Belief: an attribute that is True or False, such as whether a node is a host, is written as a boolean of GraphML.
# Behaviour: the file declares a boolean and has the values True and False of Python, where XML has true and false.
#   rustworkx refuses the whole file.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check networkx==3.6.1 rustworkx==0.18.0
venv/bin/python - <<'PYTHON'
import networkx as nx
import rustworkx as rx

network = nx.Graph()
network.add_node("gpu", host=True)
network.add_node("switch", host=False)
network.add_edge("gpu", "switch")
nx.write_graphml(network, "network.graphml")
text = open("network.graphml").read()
assert 'attr.type="boolean"' in text and ">True<" in text and ">False<" in text
try:
    rx.read_graphml("network.graphml")
except Exception as error:
    print("rustworkx:", error)
    assert "bool" in str(error)
else:
    raise SystemExit("rustworkx reads the file")
open("small.graphml", "w").write(text.replace(">True<", ">true<").replace(">False<", ">false<"))
hosts = [node["host"] for node in rx.read_graphml("small.graphml")[0].nodes()]
print("with true and false:", hosts)
assert hosts == [True, False]
PYTHON

#!/usr/bin/env bash
# networkx 3.6.1, circulant_graph with create_using.
# Belief: each offset gives one link per node, so that with MultiGraph the degree is twice the number of offsets, and
#   DiGraph makes the directed circulant.
# Behaviour: every link is added from both ends. In a MultiGraph all links are double, at offset n/2 fourfold; a DiGraph
#   has the arcs of both directions.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check networkx==3.6.1
venv/bin/python - <<'PYTHON'
import networkx as nx

simple = nx.circulant_graph(6, [1, 2])
double = nx.circulant_graph(6, [1, 2], create_using=nx.MultiGraph)
opposite = nx.circulant_graph(6, [3], create_using=nx.MultiGraph)
directed = nx.circulant_graph(5, [1], create_using=nx.DiGraph)
print("links, offsets 1 and 2:", simple.size(), "as MultiGraph:", double.size())
print("parallel links between 0 and 3, offset 3 of 6 nodes:", opposite.number_of_edges(0, 3))
print("arcs out of 0, DiGraph, offset 1 of 5 nodes:", list(directed.successors(0)))
assert (simple.size(), double.size()) == (12, 24)
assert opposite.number_of_edges(0, 3) == 4
assert sorted(directed.successors(0)) == [1, 4]
PYTHON

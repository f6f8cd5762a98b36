#!/usr/bin/env bash
# rustworkx 0.18.1, to_dot, read by pydot 4.0.1.
# Belief: what to_dot writes is DOT, whatever the texts of attributes are.
# Behaviour: numbers such as 1e-07, which are no numbers of DOT, are not quoted, so that pydot and Graphviz refuse the
#   file; its own reader takes it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check rustworkx==0.18.1 pydot==4.0.1
venv/bin/python - <<'PYTHON'
import pydot
import rustworkx


def read_again(capacity):
    graph = rustworkx.PyGraph()
    graph.add_edge(graph.add_node("a"), graph.add_node("b"), capacity)
    text = graph.to_dot(edge_attr=lambda number: {"capacity": repr(number)})
    assert rustworkx.from_dot(text).num_edges() == 1
    graphs = pydot.graph_from_dot_data(text)
    return len(graphs[0].get_edges()) if graphs else "refused"


read = [read_again(2.5), read_again(1e-7)]
print("edges read by pydot:", read)
assert read == [1, "refused"]
PYTHON

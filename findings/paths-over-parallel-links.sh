#!/usr/bin/env bash
# networkx 3.6.1, igraph 1.0.0 and rustworkx 0.18.0: paths over two parallel links.
# Belief: a library either lists a path once for each parallel link, or once.
# Behaviour: networkx lists shortest paths once and simple paths twice, igraph shortest paths twice and simple paths once,
#   rustworkx both twice. Loads of equal split (edge betweenness) differ accordingly.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check networkx==3.6.1 igraph==1.0.0 rustworkx==0.18.0
venv/bin/python - <<'PYTHON'
import igraph
import networkx as nx
import rustworkx as rx

links = [(0, 1), (0, 1), (0, 2), (2, 3), (1, 3)]
first, second, third = nx.MultiGraph(links), igraph.Graph(links), rx.PyGraph()
third.add_nodes_from(range(4))
third.add_edges_from_no_data(links)
counts = {
    "networkx": (len(list(nx.all_shortest_paths(first, 0, 1))), len(list(nx.all_simple_paths(first, 0, 1, cutoff=1)))),
    "igraph": (len(second.get_all_shortest_paths(0, 1)), len(second.get_all_simple_paths(0, 1, maxlen=1))),
    "rustworkx": (len(list(rx.all_shortest_paths(third, 0, 1))), len(rx.all_simple_paths(third, 0, 1, cutoff=1))),
}
loads = nx.edge_betweenness_centrality(first, normalized=False)[2, 3, 0], second.edge_betweenness()[3]
print("shortest and simple paths:", counts, "betweenness of 2-3, networkx and igraph:", loads)
assert counts == {"networkx": (1, 2), "igraph": (2, 1), "rustworkx": (2, 2)}
assert loads[0] == 2 and abs(loads[1] - 5 / 3) < 1e-9
PYTHON

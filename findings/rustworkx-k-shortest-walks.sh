#!/usr/bin/env bash
# rustworkx 0.18.0, k_shortest_path_lengths.
# Belief: it gives the length of the k-th shortest path, as k-shortest-path routing needs it; where there is one path,
#   there is no second one.
# Behaviour: nodes may be visited again. Over a single link the second "path" has length 3, and the third 5.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check rustworkx==0.18.0
venv/bin/python - <<'PYTHON'
import rustworkx as rx

link = rx.PyGraph()
link.add_nodes_from(["a", "b"])
link.add_edge(0, 1, 1.0)
lengths = [rx.k_shortest_path_lengths(link, 0, k, float, goal=1)[1] for k in (1, 2, 3)]
print("shortest, second and third over one link:", lengths, "simple paths:", rx.all_simple_paths(link, 0, 1))
assert lengths == [1.0, 3.0, 5.0]
assert len(rx.all_simple_paths(link, 0, 1)) == 1
PYTHON

#!/usr/bin/env bash
# rustworkx 0.18.0, PyGraph.from_adjacency_matrix.
# Belief: every nonzero of the matrix is a link, or a matrix that is not symmetric is refused.
# Behaviour: the entries below the diagonal are ignored: a lower triangle has no links, and of different capacities of the
#   two directions the upper one is taken.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check rustworkx==0.18.0
venv/bin/python - <<'PYTHON'
import numpy as np
import rustworkx as rx

lower = np.array([[0.0, 0.0, 0.0], [4.0, 0.0, 0.0], [0.0, 2.0, 0.0]])
uneven = np.array([[0.0, 3.0], [5.0, 0.0]])
none = rx.PyGraph.from_adjacency_matrix(lower).num_edges()
upper = list(rx.PyGraph.from_adjacency_matrix(lower.T.copy()).weighted_edge_list())
one = list(rx.PyGraph.from_adjacency_matrix(uneven).weighted_edge_list())
arcs = rx.PyDiGraph.from_adjacency_matrix(lower).num_edges()
print("lower triangle:", none, "links, its transpose:", upper, "uneven:", one, "as PyDiGraph:", arcs, "arcs")
assert none == 0 and len(upper) == 2 and one == [(0, 1, 3.0)] and arcs == 2
PYTHON

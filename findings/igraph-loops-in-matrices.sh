#!/usr/bin/env bash
# igraph 1.0.0, adjacency matrices of an undirected graph with a loop.
# Belief: get_adjacency and get_adjacency_sparse are one matrix in two forms, whose rows add up to the degrees.
# Behaviour: a loop is 2 on the diagonal of the first, and 1 in the second.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check igraph==1.0.0 scipy==1.17.1
venv/bin/python - <<'PYTHON'
import igraph

network = igraph.Graph([(0, 0), (0, 1)])
dense, sparse = network.get_adjacency().data, network.get_adjacency_sparse().toarray().tolist()
print("dense:", dense, "sparse:", sparse, "degrees:", network.degree())
assert dense == [[2, 1], [1, 0]] and sparse == [[1, 1], [1, 0]] and network.degree() == [3, 1]
PYTHON

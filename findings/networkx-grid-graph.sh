#!/usr/bin/env bash
# networkx 3.6.1, grid_graph (tori).
# Belief: node (i, j, k) of grid_graph((2, 3, 4)) has i < 2, j < 3, k < 4, as in grid_2d_graph; a periodic dimension of
#   size 1 adds nothing.
# Behaviour: the coordinates stand in reverse order, while "periodic" follows "dim"; a periodic dimension of size 1 gives
#   every node a loop, which grid_2d_graph does not.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check networkx==3.6.1
venv/bin/python - <<'PYTHON'
import networkx as nx

last = max(nx.grid_graph((2, 3, 4)))
plane = max(nx.grid_2d_graph(2, 3))
around = nx.grid_graph((3, 4), periodic=(True, False))
loops = nx.number_of_selfloops(nx.grid_graph((1, 3), periodic=True))
print("last node of grid_graph((2, 3, 4)):", last, "of grid_2d_graph(2, 3):", plane)
print("grid_graph((3, 4)), first dimension periodic: (0, 0) has neighbours", sorted(around[0, 0]))
print("loops of the 1 x 3 torus:", loops, "and by grid_2d_graph:",
      nx.number_of_selfloops(nx.grid_2d_graph(1, 3, periodic=True)))
assert last == (3, 2, 1) and plane == (1, 2)
assert sorted(around[0, 0]) == [(0, 1), (0, 2), (1, 0)]
assert loops == 3 and nx.number_of_selfloops(nx.grid_2d_graph(1, 3, periodic=True)) == 0
PYTHON

#!/usr/bin/env bash
# rustworkx 0.18.0, networkit 11.3, scikit-network 0.33.5: hop distances in a network with two parts.
# Belief: the distance of two nodes without a path is infinite.
# Behaviour: rustworkx's distance_matrix has 0 there (its floyd_warshall_numpy has inf), scikit-network -1 and NetworKit
#   1.8e308, which is not inf; NetworKit's exact diameter ignores such pairs.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check rustworkx==0.18.0 networkit==11.3 scikit-network==0.33.5
venv/bin/python - <<'PYTHON'
import networkit as nk
import numpy as np
import rustworkx as rx
from scipy.sparse import csr_matrix
from sknetwork.path import get_distances

links = [(0, 1), (2, 3)]
graph = rx.PyGraph()
graph.add_nodes_from(range(4))
graph.add_edges_from_no_data(links)
zero, infinite = rx.distance_matrix(graph)[0, 2], rx.floyd_warshall_numpy(graph)[0, 2]
mean = rx.unweighted_average_shortest_path_length(graph)
kit = nk.Graph(4)
for u, v in links:
    kit.addEdge(u, v)
far = nk.distance.BFS(kit, 0).run().getDistances()[2]
diameter = nk.distance.Diameter(kit, algo=nk.distance.DiameterAlgo.EXACT).run().getDiameter()
both = np.array(links + [(v, u) for u, v in links]).T
minus = get_distances(csr_matrix((np.ones(4), both), shape=(4, 4)).astype(bool), source=0)[2]
print("rustworkx:", zero, infinite, "mean", mean, "NetworKit:", far, "diameter", diameter, "scikit-network:", minus)
assert (zero, infinite, mean) == (0.0, np.inf, np.inf)
assert far == np.finfo(float).max and not np.isinf(far) and diameter == (1, 0)
assert minus == -1
PYTHON

#!/usr/bin/env bash
# networkit 11.3, Eccentricity and the algorithms of Diameter in a weighted network.
# Belief: they all measure the distances of APSP, or all count hops; with the error 0 the range of ESTIMATED_RANGE is the
#   diameter.
# Behaviour: in a ring of four with weights 1, 1, 1 and 10, whose diameter is 3, EXACT gives 3, ESTIMATED_RANGE the
#   range 2 to 2, ESTIMATED_PEDANTIC 4; the eccentricity counts hops. EXACT cuts fractions off: with 0.5 for 1 it is 1.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check networkit==11.3
venv/bin/python - <<'PYTHON'
import networkit as nk


def ring(weight):
    graph = nk.Graph(4, weighted=True)
    for tail, head in ((0, 1), (1, 2), (2, 3)):
        graph.addEdge(tail, head, weight)
    graph.addEdge(0, 3, 10)
    return graph


def diameter(graph, name):
    algorithm = nk.distance.Diameter(graph, algo=getattr(nk.distance.DiameterAlgo, name), error=0)
    algorithm.run()
    return algorithm.getDiameter()


def longest(graph):
    distances = nk.distance.APSP(graph)
    distances.run()
    return max(max(row) for row in distances.getDistances())


graph = ring(1)
found = {name: diameter(graph, name) for name in ("EXACT", "ESTIMATED_RANGE", "ESTIMATED_PEDANTIC")}
found["APSP"] = longest(graph)
found["Eccentricity"] = max(nk.distance.Eccentricity.getValue(graph, node)[1] for node in range(4))
print("diameter of the ring:", found)
assert found["APSP"] == 3 and found["EXACT"][0] == 3
assert found["ESTIMATED_RANGE"] == (2, 2) and found["ESTIMATED_PEDANTIC"][0] == 4 and found["Eccentricity"] == 2
print("with weights 0.5, APSP and EXACT:", longest(ring(0.5)), diameter(ring(0.5), "EXACT"))
assert longest(ring(0.5)) == 1.5 and diameter(ring(0.5), "EXACT")[0] == 1
PYTHON

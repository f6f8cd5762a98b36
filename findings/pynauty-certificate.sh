#!/usr/bin/env bash
# pynauty-prebuilt 2.8.8.1, certificate and isomorphic.
# Belief: graphs have the same certificate exactly if isomorphic() says that they are isomorphic; parallel links count, or
#   are refused.
# Behaviour: the sizes of the colour classes are not part of the certificate: a ring of four hosts has that of a ring of
#   three hosts and a switch. Parallel links are dropped, so that a double link is isomorphic to a single one.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check pynauty-prebuilt==2.8.8.1
venv/bin/python - <<'PYTHON'
import pynauty

ring = {0: [1, 3], 1: [2], 2: [3]}
hosts = pynauty.Graph(4, adjacency_dict=ring)
mixed = pynauty.Graph(4, adjacency_dict=ring, vertex_coloring=[{0}, {1, 2, 3}])
same = pynauty.certificate(hosts) == pynauty.certificate(mixed)
single = pynauty.Graph(3, adjacency_dict={0: [1], 1: [2]})
double = pynauty.Graph(3, adjacency_dict={0: [1, 1], 1: [2]})
print("hosts, and hosts with a switch: same certificate", same, "isomorphic", pynauty.isomorphic(hosts, mixed))
print("single and double link: isomorphic", pynauty.isomorphic(single, double), "automorphisms",
      pynauty.autgrp(double)[1])
assert same and not pynauty.isomorphic(hosts, mixed)
assert pynauty.isomorphic(single, double) and pynauty.autgrp(double)[1] == 2
PYTHON

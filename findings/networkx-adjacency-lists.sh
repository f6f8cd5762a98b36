#!/usr/bin/env bash
# networkx 3.6.1, write_adjlist and write_multiline_adjlist.
# Belief: the comment lines at the head of a file tell the two formats apart, or the reader of one refuses the
#   other.
# Behaviour: both writers begin with the same three comment lines, and read_adjlist reads the other format as
#   another network.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check networkx==3.6.1
venv/bin/python - <<'PYTHON'
import networkx as nx

network = nx.path_graph(3)
nx.write_adjlist(network, "a")
nx.write_multiline_adjlist(network, "m")
heads = [[line for line in open(name) if line.startswith("#")] for name in "am"]
print("comment lines:", *heads)
wrong = sorted(map(sorted, nx.read_adjlist("m").edges))
print("links written:", list(network.edges), "and read by the other reader:", wrong)
assert len(heads[0]) == len(heads[1]) == 3
assert heads[0][::2] == heads[1][::2] and all("GMT" in head[1] for head in heads)  # the second line is the time
assert wrong == [["0", "1"], ["0", "2"], ["1", "1"], ["1", "{}"], ["2", "{}"]]
PYTHON

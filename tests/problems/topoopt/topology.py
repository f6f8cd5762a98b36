"""Problems of topoopt.topology for the tests of all formulations: see :mod:`problems`."""

from __future__ import annotations

from problems.random_instances import Drawn, Random, pool

CASES = [
    ("servers:n=3,degree=2,traffic=vgg", {}),
    ("servers:n=4,degree=2,traffic=dlrm", {"flows": "pair"}),
    ("servers:n=4,degree=2,traffic=alltoall", {"objective": "bandwidth-tax"}),
    ("servers:n=4,degree=3,traffic=dlrm", {"rings": "default"}),
    ("servers:n=4,degree=3,traffic=vgg", {"objective": "bandwidth-tax", "flows": "pair"}),
    ("servers:n=3,degree=2,traffic=dlrm", {"all_reduce": "trees"}),
    ("servers:n=4,degree=2,traffic=dlrm", {"all_reduce": "trees", "flows": "pair"}),
]
CORRUPTED = [
    ("servers:n=4,degree=3,traffic=vgg", {}, ("y",)),
    ("servers:n=4,degree=3,traffic=vgg", {"all_reduce": "trees"}, ("ring_trees",)),
]
CERTIFIED = ("servers:n=3,degree=2,traffic=dlrm", {}, "design-search")
DRAWN = 20
SAMPLE = (11,)


def draw(random: Random) -> Drawn:
    settings = {"objective": str(random.choice(["max-load", "bandwidth-tax"]))}
    return pool(random, 3, 8, (1, 2, 3)), settings

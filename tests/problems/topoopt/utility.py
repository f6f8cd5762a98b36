"""Problems of topoopt.utility for the tests of all formulations: see :mod:`problems`."""

from __future__ import annotations

from problems.random_instances import Drawn, Random, pool

CASES = [
    ("servers:n=3,degree=2,traffic=random,seed=1", {}),
    ("servers:n=4,degree=3,traffic=alltoall", {"discount": "factorial"}),
    ("servers:n=5,degree=2,traffic=dlrm", {"discount": "every"}),
    ("servers:n=4,degree=2,traffic=dlrm", {"discount": "first", "traffic": "direct"}),
]
CORRUPTED = [
    ("servers:n=4,degree=2,traffic=dlrm", {}, ()),
]
CERTIFIED = ("servers:n=5,degree=3,traffic=random,seed=1", {}, "transportation")
DRAWN = 12


def draw(random: Random) -> Drawn:
    return pool(random, 3, 8, (1, 2, 3, 8)), {"discount": str(random.choice(["halves", "factorial", "every", "first"]))}

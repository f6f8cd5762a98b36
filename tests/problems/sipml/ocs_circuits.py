"""Problems of sipml.ocs-circuits for the tests of all formulations: see :mod:`problems`."""

from __future__ import annotations

from problems.random_instances import Drawn, Random, pool

CASES = [
    ("servers:n=3,degree=4,traffic=random,seed=1", {}),
    ("servers:n=3,degree=3,traffic=random,seed=2", {"model": "switches"}),
    ("servers:n=4,degree=7,traffic=alltoall", {"bandwidth": "1e9"}),
    ("servers:n=4,degree=3,traffic=alltoall", {}),
]
CORRUPTED = [
    ("servers:n=4,degree=3,traffic=alltoall", {}, ("match", "x")),
]
CERTIFIED = ("servers:n=4,degree=5,traffic=random,seed=1", {"model": "switches"}, "koenig-bisection")
DRAWN = 20


def draw(random: Random) -> Drawn:
    return pool(random, 3, 8, (4, 6, 8, 12, 16)), {"model": str(random.choice(["counts", "switches"]))}

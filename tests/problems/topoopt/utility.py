"""Small problems of ``topoopt.utility``."""

from __future__ import annotations

from problems import Draws, Optimum, Problems
from random_instances import Drawn, Random, pool


def draw(random: Random) -> Drawn:
    return pool(random, 3, 8, (1, 2, 3, 8)), {"discount": str(random.choice(["halves", "factorial", "every", "first"]))}


PROBLEMS = Problems(
    cases=[
        ("servers:n=3,degree=2,traffic=random,seed=1", {}),
        ("servers:n=4,degree=3,traffic=alltoall", {"discount": "factorial"}),
        ("servers:n=5,degree=2,traffic=dlrm", {"discount": "every"}),
        ("servers:n=4,degree=2,traffic=dlrm", {"discount": "first", "traffic": "direct"}),
    ],
    optimum=Optimum("servers:n=5,degree=3,traffic=random,seed=1", by="transportation"),
    draws=Draws(12, draw),
)

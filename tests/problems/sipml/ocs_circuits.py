"""Small problems of ``sipml.ocs-circuits``."""

from __future__ import annotations

from problems import Draws, Optimum, Problems
from random_instances import Drawn, Random, pool


def draw(random: Random) -> Drawn:
    return pool(random, 3, 8, (4, 6, 8, 12, 16)), {"model": str(random.choice(["counts", "switches"]))}


PROBLEMS = Problems(
    cases=[
        ("servers:n=3,degree=4,traffic=random,seed=1", {}),
        ("servers:n=3,degree=3,traffic=random,seed=2", {"model": "switches"}),
        ("servers:n=4,degree=7,traffic=alltoall", {"bandwidth": "1e9"}),
        ("servers:n=4,degree=3,traffic=alltoall", {}),
    ],
    optimum=Optimum("servers:n=4,degree=5,traffic=random,seed=1", {"model": "switches"}, by="koenig-bisection"),
    draws=Draws(20, draw),
    kinds=[("servers:n=4,degree=3,traffic=alltoall", {}, ("match", "x"))],
)

"""Small problems of ``topoopt.topology``."""

from __future__ import annotations

from problems import Draws, Optimum, Problems
from random_instances import Drawn, Random, pool


def draw(random: Random) -> Drawn:
    settings = {"objective": str(random.choice(["max-load", "bandwidth-tax"]))}
    return pool(random, 3, 8, (1, 2, 3)), settings


PROBLEMS = Problems(
    cases=[
        ("servers:n=3,degree=2,traffic=vgg", {}),
        ("servers:n=4,degree=2,traffic=dlrm", {}),
        ("servers:n=4,degree=2,traffic=alltoall", {"objective": "bandwidth-tax"}),
        ("servers:n=4,degree=3,traffic=dlrm", {"rings": "default"}),
        ("servers:n=4,degree=3,traffic=vgg", {"objective": "bandwidth-tax"}),
        ("servers:n=3,degree=2,traffic=dlrm", {"all_reduce": "trees"}),
        ("servers:n=4,degree=2,traffic=dlrm", {"all_reduce": "trees"}),
    ],
    optimum=Optimum("servers:n=3,degree=2,traffic=dlrm", by="design-search"),
    draws=Draws(20, draw, sample=(11,)),
    kinds=[
        ("servers:n=4,degree=3,traffic=vgg", {}, ("y",)),
        ("servers:n=4,degree=3,traffic=vgg", {"all_reduce": "trees"}, ("ring_trees",)),
    ],
)

"""Small problems of ``alltoall.few-paths``."""

from __future__ import annotations

from problems import Draws, Optimum, Problems
from random_instances import Drawn, Random

from opticoll.instances import parse


def draw(random: Random) -> Drawn:
    spec = str(random.choice(["ring:4", "ring:5", "path:4", "genkautz:n=5,d=2", "complete:4", "star:4"]))
    settings = {"paths": str(random.choice(["shortest", "all"])), "routes_per_pair": int(random.integers(1, 3))}
    return parse(spec), settings


PROBLEMS = Problems(
    cases=[
        ("ring:4", {"paths": "shortest", "routes_per_pair": "1"}),
        ("ring:4", {"routes_per_pair": "1"}),
        ("complete:4", {"routes_per_pair": "2", "lmax": "2"}),
        ("ring:3", {}),
        ("hypercube:2+host=1.5", {"routes_per_pair": "1"}),
        ("ring:5+scale=2.5", {"routes_per_pair": "1", "paths": "k", "k": "2"}),
    ],
    # every pair has one shortest path, and three of them cross an arc
    optimum=Optimum("ring:5", {"routes_per_pair": 1}, by=1 / 3),
    draws=Draws(12, draw),
)

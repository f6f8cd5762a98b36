"""Small problems of ``alltoall.channels``."""

from __future__ import annotations

from typing import Any

from problems import Draws, Optimum, Problems
from random_instances import Drawn, Random, digraph


def draw(random: Random) -> Drawn:
    settings: dict[str, Any] = {"layers": int(random.integers(1, 4))}
    if random.random() < 0.7:
        settings |= {"paths": "k", "k": int(random.integers(1, 4))}
    if random.random() < 0.5:
        settings["objective"] = "channels"
    return digraph(random, most=5), settings


PROBLEMS = Problems(
    cases=[
        ("ring:4", {"layers": "1"}),
        ("ring:3", {"objective": "channels", "load": "1"}),
        ("path:3", {"objective": "channels", "layers": "1", "paths": "all"}),
        ("complete:3", {"paths": "all"}),
        ("ring:4+scale=2.5", {"demand": "random:2", "paths": "disjoint"}),
        ("path:2", {}),
    ],
    optimum=Optimum("ring:4", {"layers": 1}, by="arc-orders"),
    draws=Draws(12, draw),
)

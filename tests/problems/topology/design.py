"""Small problems of ``topology.design``."""

from __future__ import annotations

from typing import Any

from problems import Draws, Optimum, Problems
from random_instances import Drawn, Random

from opticoll.instances import parse


def draw(random: Random) -> Drawn:
    n = int(random.integers(3, 9))
    settings: dict[str, Any] = {"directed": bool(random.integers(2))}
    if n % 2 == 0 and random.random() < 0.3:
        settings |= {"rack": 2, "cables": int(random.integers(1, 3))}
    return parse(f"servers:n={n},degree={int(random.integers(2, 4))},traffic=alltoall"), settings


PROBLEMS = Problems(
    cases=[
        ("servers:n=3,degree=2", {}),
        ("servers:n=4,degree=2", {"directed": "true"}),
        ("servers:n=5,degree=3", {}),
        ("servers:n=5,degree=3", {"rack": "2", "cables": "1", "uplinks": "2"}),
        ("servers:n=4,degree=2", {"rack": "2", "uplinks": "1", "directed": "true"}),
    ],
    optimum=Optimum("servers:n=4,degree=2", by="symmetric-search"),
    draws=Draws(16, draw),
    kinds=[("servers:n=4,degree=2", {}, ()), ("servers:n=4,degree=2", {"rack": 2, "uplinks": 2}, ())],
)

"""Problems of topology.design for the tests of all formulations: see :mod:`problems`."""

from __future__ import annotations

from typing import Any

from problems.random_instances import Drawn, Random

from opticoll.instances import parse

CASES = [
    ("servers:n=3,degree=2", {}),
    ("servers:n=4,degree=2", {"directed": "true"}),
    ("servers:n=5,degree=3", {}),
    ("servers:n=5,degree=3", {"rack": "2", "cables": "1", "uplinks": "2"}),
    ("servers:n=4,degree=2", {"rack": "2", "uplinks": "1", "directed": "true"}),
]
CORRUPTED = [
    ("servers:n=4,degree=2", {}, ()),
    ("servers:n=4,degree=2", {"rack": 2, "uplinks": 2}, ()),
]
CERTIFIED = ("servers:n=4,degree=2", {}, "symmetric-search")
DRAWN = 16


def draw(random: Random) -> Drawn:
    n = int(random.integers(3, 9))
    settings: dict[str, Any] = {"directed": bool(random.integers(2))}
    if n % 2 == 0 and random.random() < 0.3:
        settings |= {"rack": 2, "cables": int(random.integers(1, 3))}
    return parse(f"servers:n={n},degree={int(random.integers(2, 4))},traffic=alltoall"), settings

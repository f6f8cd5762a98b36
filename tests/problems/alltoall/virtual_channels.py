"""Problems of alltoall.virtual-channels for the tests of all formulations: see :mod:`problems`."""

from __future__ import annotations

from problems.random_instances import Drawn, Random, digraph

CASES = [
    ("ring:4", {"layers": "2"}),
    ("complete:3", {}),
    ("ring:4", {"layers": "1"}),
    ("ring:5", {"layers": "3"}),
]
CERTIFIED = ("ring:3,directed", {"layers": 2}, "layer-assignment")
DRAWN = 16


def draw(random: Random) -> Drawn:
    return digraph(random, most=6), {"layers": int(random.integers(2, 5))}

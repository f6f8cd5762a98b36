"""Small problems of ``topology.pod``."""

from __future__ import annotations

from problems import Draws, Optimum, Problems
from random_instances import Drawn, Random

from opticoll.instances import parse


def draw(random: Random) -> Drawn:
    settings = {"places": str(random.choice(["same", "free"])), "survive": int(random.random() < 0.3)}
    if random.random() < 0.5:
        settings["demand"] = f"permutation:{int(random.integers(100))}"
    side, cubes = (1, int(random.integers(2, 7))) if random.random() < 0.8 else (2, 1)
    return parse(f"pod:cubes={cubes},side={side}"), settings


PROBLEMS = Problems(
    cases=[
        ("pod:cubes=3,side=1", {}),
        ("pod:cubes=4,side=1", {"survive": "1"}),
        ("pod:cubes=2,side=2", {"places": "free"}),
        ("pod:cubes=1,side=2", {"places": "free", "survive": "1"}),
        ("pod:cubes=3,side=1", {"demand": "permutation:1"}),
    ],
    optimum=Optimum("pod:cubes=3,side=1", {"survive": "1"}, by="pod-enumeration"),
    draws=Draws(12, draw),
    kinds=[("pod:cubes=3,side=1", {}, ()), ("pod:cubes=1,side=2", {"survive": "1"}, ())],
)

"""Small problems of ``topology.matchings``."""

from __future__ import annotations

from typing import Any

from problems import Draws, Optimum, Problems
from random_instances import Drawn, Random

from opticoll.instances import parse


def draw(random: Random) -> Drawn:
    n = int(random.integers(3, 6))
    settings: dict[str, Any] = {"delay": float(random.choice([0.5, 1.0, 4.0]))}
    demand = str(random.choice(["uniform", "random", "gravity", "permutation"]))
    settings["demand"] = demand if demand == "uniform" else f"{demand}:{int(random.integers(100))}"
    settings["first"] = bool(random.integers(2))
    return parse(f"servers:n={n},degree={int(random.integers(1, 4))},traffic=alltoall"), settings


PROBLEMS = Problems(
    cases=[
        ("servers:n=3,degree=2", {"configurations": "2", "delay": "0.5"}),
        ("servers:n=3,degree=1", {"first": "false", "delay": "0.25", "demand": "gravity:1"}),
        ("servers:n=4,degree=3", {"demand": "permutation:2", "delay": "2"}),
        ("servers:n=4,degree=2", {"switches": "1", "configurations": "1", "first": "false", "demand": "permutation:0"}),
        ("servers:n=3,degree=1", {"switches": "2", "delay": "0"}),
    ],
    optimum=Optimum("servers:n=4,degree=3", {"demand": "permutation:2"}, by="matching-search"),
    draws=Draws(12, draw, sample=(2, 4)),
    kinds=[
        ("servers:n=3,degree=2", {}, ("x", "t")),
        ("servers:n=3,degree=2", {"configurations": "3", "first": "false"}, ()),
    ],
)

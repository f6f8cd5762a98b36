"""Small problems of ``topology.sequence``."""

from __future__ import annotations

from typing import Any

from problems import Draws, Optimum, Problems
from random_instances import Drawn, Random

from opticoll.instances import parse


def draw(random: Random) -> Drawn:
    n = int(random.integers(3, 5))
    settings: dict[str, Any] = {"configurations": int(random.integers(1, 3)), "directed": bool(random.integers(2))}
    if random.random() < 0.5:
        settings |= {"delay": float(random.choice([0.25, 1.0])), "overlap": bool(random.integers(2))}
    settings["relays"] = str(random.choice(["pass", "step"]))
    return parse(f"servers:n={n},degree={int(random.integers(1, 3))},traffic=alltoall"), settings


PROBLEMS = Problems(
    cases=[
        ("servers:n=3,degree=2", {"delay": "0.5", "configurations": "4", "charge": "changed", "overlap": "true"}),
        ("servers:n=3,degree=1", {"directed": "true"}),
        ("servers:n=4,degree=2", {"directed": "true", "relays": "step", "parallel": "1", "delay": "1"}),
        ("servers:n=4,degree=2", {"start": "ring:4", "delay": "0.25", "overlap": "true", "charge": "changed"}),
        ("servers:n=3,degree=3", {"demand": "permutation:1", "configurations": "0", "delay": "0.25"}),
        ("servers:n=4,degree=1", {"configurations": "3", "relays": "step", "delay": "0.125", "overlap": "true"}),
        ("servers:n=4,degree=1", {"configurations": "1", "directed": "true", "demand": "gravity:2"}),
        ("servers:n=3,degree=1", {"startup": "2ms", "delay": "1us", "shard": "1MB", "bandwidth": "8Gb/s"}),
        ("servers:n=5,degree=2", {"startup": "0.5"}),
    ],
    optimum=Optimum("servers:n=3,degree=1", {"configurations": 2, "directed": True}, by="sequence-search"),
    draws=Draws(12, draw, sample=(1, 10)),
    kinds=[
        ("servers:n=3,degree=1", {"directed": "true"}, ("x", "t", "g")),
        ("servers:n=3,degree=1", {"delay": "1", "charge": "changed", "overlap": "true"}, ()),
        ("servers:n=3,degree=1", {"startup": "1"}, ("x", "t", "g", "y")),
    ],
)

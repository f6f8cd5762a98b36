"""Small problems of ``sipml.placement``."""

from __future__ import annotations

from problems import Draws, Optimum, Problems
from random_instances import Drawn, Random

from opticoll.instances import parse


def draw(random: Random) -> Drawn:
    layers, parts, seed = int(random.integers(2, 5)), int(random.integers(1, 4)), int(random.integers(1000))
    settings = {
        "k": int(random.integers(2, 4)),
        "degree": int(random.integers(2, 4)),
        "replicas": int(random.integers(1, 3)),
        "bandwidth": float(random.choice([0.0, 1e9, 1e11])),
        "rule": str(random.choice(["distance", "degree"])),
    }
    return parse(f"op-graph:model=random,layers={layers},parts={parts},training=false,seed={seed}"), settings


PROBLEMS = Problems(
    cases=[
        ("op-graph:model=chain,splits=1x3", {"k": "3", "degree": "2", "rule": "degree", "bandwidth": "1e9"}),
        ("op-graph:model=chain,splits=1x3", {"k": "3", "degree": "2"}),
        ("op-graph:model=chain,splits=1x2x2", {"k": "2"}),
        ("op-graph:model=chain,splits=1x2x2", {"k": "4", "degree": "3", "bandwidth": "1e9"}),
        ("op-graph:model=chain,splits=1x1", {"k": "1"}),
        (
            "op-graph:model=chain,splits=1x2x2",
            {"k": "3", "degree": "3", "bandwidth": "1e6", "memory": "2.7939677238464355e-09"},
        ),
    ],
    optimum=Optimum("op-graph:model=chain,splits=1x2x2", {"k": 2}, by="placement-enumeration"),
    draws=Draws(16, draw),
    kinds=[
        ("op-graph:model=chain,splits=1x4", {"k": "2"}, ("device", "y")),
        ("op-graph:model=chain,splits=1x4", {"k": "2"}, ()),
    ],
)

"""Small problems of ``lumorph.co-scheduling``."""

from __future__ import annotations

from problems import Draws, Optimum, Problems
from random_instances import Drawn, Random

from opticoll.instances import parse


def draw(random: Random) -> Drawn:
    gpus, calls, seed = int(random.integers(4, 9)), int(random.integers(3, 25)), int(random.integers(1000))
    settings = {"algorithm": str(random.choice(["lumorph-4", "lumorph-2", "ring"]))}
    return parse(f"training:random,gpus={gpus},calls={calls},seed={seed}"), settings


PROBLEMS = Problems(
    cases=[
        ("training:random,gpus=8,calls=6,seed=3", {}),
        ("training:random,gpus=6,calls=4,seed=1", {"algorithm": "ring"}),
    ],
    optimum=Optimum("training:ncf,gpus=4", by="independent-sets"),
    draws=Draws(16, draw),
)

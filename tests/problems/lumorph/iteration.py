"""Small problems of ``lumorph.iteration``."""

from __future__ import annotations

from problems import Draws, Optimum, Problems
from random_instances import Drawn, Random

from opticoll.instances import parse


def draw(random: Random) -> Drawn:
    gpus, calls, seed = int(random.integers(4, 9)), int(random.integers(3, 13)), int(random.integers(1000))
    settings = {
        "algorithm": str(random.choice(["lumorph-4", "lumorph-2", "ring"])),
        "overlap": bool(random.integers(4)),
        "first": str(random.choice(["transfers", "calls"])),
        "boundaries": str(random.choice(["transfers", "stages"])),
    }
    if not settings["overlap"]:
        settings["first"] = "transfers"
    stages = int(random.integers(1, 5))
    return parse(f"training:random,gpus={gpus},calls={calls},seed={seed},stages={stages}"), settings


PROBLEMS = Problems(
    cases=[
        ("training:random,gpus=4,calls=3,seed=1,stages=1", {}),
        ("training:random,gpus=6,calls=4,seed=2,stages=3", {"variant": "printed"}),
        ("training:random,gpus=6,calls=4,seed=2,stages=3", {"first": "calls", "algorithm": "ring"}),
        ("training:random,gpus=8,calls=4,seed=5,stages=3", {"overlap": "false"}),
        ("training:random,gpus=6,calls=3,seed=4,stages=4", {"batches": "false"}),
        ("training:random,gpus=4,calls=3,seed=6,stages=2", {"boundaries": "stages"}),
        ("training:random,gpus=4,calls=3,seed=6,stages=6", {"boundaries": "stages"}),
        ("training:random,gpus=4,calls=3,seed=6,stages=6", {"boundaries": "stages", "first": "calls"}),
    ],
    optimum=Optimum("training:random,gpus=8,calls=6,seed=3,stages=3", by="boundary-batches"),
    draws=Draws(12, draw),
)

"""Problems of lumorph.co-scheduling for the tests of all formulations: see :mod:`problems`."""

from __future__ import annotations

from problems.random_instances import Drawn, Random

from opticoll.instances import parse

CASES = [
    ("training:random,gpus=8,calls=6,seed=3", {}),
    ("training:random,gpus=6,calls=4,seed=1", {"algorithm": "ring"}),
]
CORRUPTED = [
    ("training:random,gpus=8,calls=6,seed=3", {}, ()),
]
CERTIFIED = ("training:ncf,gpus=4", {}, "independent-sets")
DRAWN = 16


def draw(random: Random) -> Drawn:
    gpus, calls, seed = int(random.integers(4, 9)), int(random.integers(3, 25)), int(random.integers(1000))
    settings = {"algorithm": str(random.choice(["lumorph-4", "lumorph-2", "ring"]))}
    return parse(f"training:random,gpus={gpus},calls={calls},seed={seed}"), settings

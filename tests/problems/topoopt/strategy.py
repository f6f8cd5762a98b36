"""Small problems of ``topoopt.strategy``."""

from __future__ import annotations

from problems import Draws, Optimum, Problems
from random_instances import Drawn, Random

from opticoll.instances import parse


def draw(random: Random) -> Drawn:
    model, n = random.choice(["dlrm", "candle", "bert", "ncf", "resnet50", "vgg"]), int(random.integers(2, 9))
    settings = {} if random.random() < 0.3 else {"memory": float(random.choice([0.5, 4.0, 16.0, 32.0, 64.0]))}
    return parse(f"servers:n={n},degree={int(random.integers(1, 5))},traffic={model}"), settings


PROBLEMS = Problems(
    cases=[
        ("servers:n=4,degree=2,traffic=bert", {"memory": "20"}),
        ("servers:n=4,degree=2,traffic=bert", {}),
        ("servers:n=6,degree=3,traffic=dlrm", {"alpha": "1.5", "computing": "0.1"}),
        ("servers:n=16,degree=4,traffic=dlrm,section=5.6", {"operators": "measured"}),
    ],
    optimum=Optimum("servers:n=4,degree=2,traffic=bert", {"memory": 0.5}, by="strategy-front"),
    draws=Draws(12, draw),
)

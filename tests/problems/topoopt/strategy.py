"""Problems of topoopt.strategy for the tests of all formulations: see :mod:`problems`."""

from __future__ import annotations

from problems.random_instances import Drawn, Random

from opticoll.instances import parse

CASES = [
    ("servers:n=4,degree=2,traffic=bert", {"memory": "20"}),
    ("servers:n=4,degree=2,traffic=bert", {}),
    ("servers:n=6,degree=3,traffic=dlrm", {"alpha": "1.5", "computing": "0.1"}),
    ("servers:n=16,degree=4,traffic=dlrm,section=5.6", {"operators": "measured"}),
]
CORRUPTED = [
    ("servers:n=4,degree=2,traffic=bert", {}, ()),
]
CERTIFIED = ("servers:n=4,degree=2,traffic=bert", {"memory": 0.5}, "strategy-front")
DRAWN = 12


def draw(random: Random) -> Drawn:
    model, n = random.choice(["dlrm", "candle", "bert", "ncf", "resnet50", "vgg"]), int(random.integers(2, 9))
    settings = {} if random.random() < 0.3 else {"memory": float(random.choice([0.5, 4.0, 16.0, 32.0, 64.0]))}
    return parse(f"servers:n={n},degree={int(random.integers(1, 5))},traffic={model}"), settings

"""Small problems of ``topology.steps``."""

from __future__ import annotations

from typing import Any

from problems import Draws, Optimum, Problems
from random_instances import Drawn, Random

from opticoll.instances import parse


def draw(random: Random) -> Drawn:
    n = int(random.integers(3, 9))
    settings: dict[str, Any] = {
        "algorithm": str(
            random.choice(["ring", "recursive:2", "recursive:3", "shifts", "bruck:2", "bruck:3", "retri"])
        ),
        "delay": float(random.choice([0.125, 0.5, 2.0])),
        "reuse": bool(random.integers(2)),
        "ports": int(random.integers(3)),
    }
    spec = str(random.choice([f"ring:{n}", f"genkautz:n={n},d=2", f"path:{n}"]))
    return parse(spec), settings


PROBLEMS = Problems(
    cases=[
        ("ring:3", {"algorithm": "ring", "delay": "0.5", "startup": "0.25"}),
        ("ring:4", {}),
        ("genkautz:n=5,d=2", {"algorithm": "shifts", "delay": "0.75", "reuse": "false"}),
        ("ring:6", {"algorithm": "retri", "between": "genkautz:n=6,d=2;complete:6", "ports": "1"}),
        ("ring:4,directed", {"algorithm": "bruck:2", "delay": "0"}),
    ],
    optimum=Optimum("ring:8", {"algorithm": "shifts", "delay": 0.5}, by="step-choice"),
    draws=Draws(12, draw, sample=(1,)),
    kinds=[("ring:4", {}, ("topology",)), ("ring:4", {}, ())],
)

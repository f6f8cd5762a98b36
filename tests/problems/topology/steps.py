"""Problems of topology.steps for the tests of all formulations: see :mod:`problems`."""

from __future__ import annotations

from typing import Any

from problems.random_instances import Drawn, Random

from opticoll.instances import parse

CASES = [
    ("ring:3", {"algorithm": "ring", "delay": "0.5", "startup": "0.25"}),
    ("ring:4", {}),
    ("genkautz:n=5,d=2", {"algorithm": "shifts", "delay": "0.75", "reuse": "false"}),
    ("ring:6", {"algorithm": "retri", "between": "genkautz:n=6,d=2;complete:6", "ports": "1"}),
    ("ring:4,directed", {"algorithm": "bruck:2", "delay": "0"}),
]
CORRUPTED = [
    ("ring:4", {}, ("topology",)),
    ("ring:4", {}, ()),
]
CERTIFIED = ("ring:8", {"algorithm": "shifts", "delay": 0.5}, "step-choice")
DRAWN = 12
SAMPLE = (1,)


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

"""Small problems of ``lumorph.sum-rounds``."""

from __future__ import annotations

from problems import DATA, Draws, Optimum, Problems
from random_instances import Drawn, Random, mesh


def draw(random: Random) -> Drawn:
    settings = {
        "collective": str(random.choice(["reduce", "reduce-scatter", "all-reduce"])),
        "bounds": bool(random.integers(2)),
    }
    return mesh(random, ("1x2", "1x3", "1x4", "2x2")), settings


PROBLEMS = Problems(
    cases=[
        ("lightpath:1x2,lasers=1", {"rmax": "2"}),
        # A sum that is required by a vertex that contributes nothing.
        ("lightpath:1x3,lasers=2", {"collective": f"file:{DATA / 'partial-sum.json'}", "rmax": "2", "bounds": "false"}),
        ("lightpath:1x3,lasers=1", {"collective": "reduce-scatter", "rmax": "3"}),
        ("lightpath:2x1,lasers=1,waveguides=2,wafers=2,fibres=1", {"rmax": "2"}),
    ],
    optimum=Optimum("lightpath:1x3,lasers=2", by="combined-rounds"),
    draws=Draws(16, draw),
    kinds=[("lightpath:2x2", {}, ()), ("lightpath:2x2", {"rmax": "2"}, ("C", "F"))],
)

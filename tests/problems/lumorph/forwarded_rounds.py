"""Small problems of ``lumorph.forwarded-rounds``."""

from __future__ import annotations

from problems import Draws, Optimum, Problems
from random_instances import Drawn, Random, mesh


def draw(random: Random) -> Drawn:
    settings = {
        "collective": str(random.choice(["broadcast", "scatter", "gather", "all-gather", "all-to-all"])),
        "bounds": bool(random.integers(2)),
    }
    return mesh(random, ("1x2", "1x3", "1x4", "2x2", "2x3", "2x4")), settings


PROBLEMS = Problems(
    cases=[
        ("lightpath:1x2,lasers=1", {}),
        ("lightpath:1x3,lasers=1", {"bounds": "false"}),
        ("lightpath:2x2,lasers=2", {"collective": "scatter", "root": "1", "rmax": "2"}),
        ("lightpath:2x1,lasers=1,waveguides=1,wafers=2,fibres=2", {"rmax": "2"}),
        ("wdm-ring:n=3,wavelengths=2", {"rmax": "2", "collective": "all-gather"}),
    ],
    optimum=Optimum("lightpath:2x2,lasers=2", by="index-algorithm"),
    draws=Draws(12, draw),
    kinds=[("lightpath:2x2", {}, ()), ("lightpath:2x2", {"rmax": "2"}, ("D", "X"))],
)

"""Small problems of ``lumorph.rounds``."""

from __future__ import annotations

from problems import Draws, Optimum, Problems
from random_instances import Drawn, Random, mesh


def draw(random: Random) -> Drawn:
    settings = {
        "collective": str(random.choice(["broadcast", "scatter", "all-gather", "all-to-all", "reduce-scatter"])),
        "bounds": bool(random.integers(2)),
        "wavelengths": str(random.choice(["free", "fixed"])),
    }
    return mesh(random, ("1x2", "1x3", "1x4", "2x2", "2x3", "2x4")), settings


PROBLEMS = Problems(
    cases=[
        ("lightpath:2x2,lasers=2", {}),
        ("lightpath:1x3,lasers=1", {"collective": "all-to-all"}),
        ("lightpath:1x3,lasers=2", {"collective": "all-reduce", "rmax": "3"}),
        ("lightpath:2x2,lasers=2", {"collective": "scatter", "routes": "algorithm-2"}),
        ("lightpath:2x2,lasers=2", {"collective": "broadcast", "root": "2", "wavelengths": "fixed"}),
        ("lightpath:1x3,lasers=2", {"rmax": "3", "symmetry": "false"}),
        ("lightpath:2x2,lasers=3", {"wavelengths": "fixed", "rmax": "2"}),
        ("lightpath:1x2,lasers=1,waveguides=2,wafers=2,fibres=1", {"collective": "all-to-all", "rmax": "2"}),
        ("lightpath:2x1,lasers=1,waveguides=1,wafers=2,fibres=2", {"collective": "all-reduce", "rmax": "2"}),
        ("wdm-ring:n=3,wavelengths=2", {"rmax": "2"}),
        ("wdm-line:n=3,wavelengths=1,fibres=2", {"collective": "all-to-all"}),
        ("wdm-line:n=2,wavelengths=1", {"collective": "all-to-all"}),
        ("lightpath:1x3,lasers=2", {"program": "coded", "rmax": "4", "rmin": "2"}),
        ("lightpath:2x2,lasers=1", {"program": "coded", "collective": "broadcast", "root": "2", "rmax": "3"}),
        ("lightpath:1x3,lasers=1", {"program": "printed", "rmax": "4", "rmin": "2"}),
        ("lightpath:1x3,lasers=1", {"program": "printed", "collective": "scatter", "rmax": "4", "rmin": "2"}),
    ],
    optimum=Optimum("lightpath:2x2", by="certified-rounds"),
    draws=Draws(16, draw),
    kinds=[
        ("lightpath:2x2", {}, ()),
        ("wdm-ring:n=4,wavelengths=1", {}, ()),
        ("lightpath:2x2", {}, ("C",)),
        ("lightpath:2x2", {"program": "coded"}, ()),
        ("lightpath:2x2", {"program": "printed", "rmax": "2"}, ()),
    ],
)

"""Problems of lumorph.sum-rounds for the tests of all formulations: see :mod:`problems`."""

from __future__ import annotations

from pathlib import Path

from problems.random_instances import Drawn, Random, mesh

#: A sum that is required by a vertex that contributes nothing.
PARTIAL = Path(__file__).resolve().parents[2] / "data" / "partial-sum.json"
CASES = [
    ("lightpath:1x2,lasers=1", {"rmax": "2"}),
    ("lightpath:1x3,lasers=2", {"collective": f"file:{PARTIAL}", "rmax": "2", "bounds": "false"}),
    ("lightpath:1x3,lasers=1", {"collective": "reduce-scatter", "rmax": "3"}),
    ("lightpath:2x1,lasers=1,waveguides=2,wafers=2,fibres=1", {"rmax": "2"}),
]
CORRUPTED = [
    ("lightpath:2x2", {}, ()),
    ("lightpath:2x2", {"rmax": "2"}, ("C", "F")),
]
CERTIFIED = ("lightpath:1x3,lasers=2", {}, "combined-rounds")
DRAWN = 16


def draw(random: Random) -> Drawn:
    settings = {
        "collective": str(random.choice(["reduce", "reduce-scatter", "all-reduce"])),
        "bounds": bool(random.integers(2)),
    }
    return mesh(random, ("1x2", "1x3", "1x4", "2x2")), settings

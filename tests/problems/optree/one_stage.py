"""Problems of optree.one-stage for the tests of all formulations: see :mod:`problems`."""

from __future__ import annotations

from problems.random_instances import Drawn, Random, fibres

CASES = [
    ("wdm-ring:n=3,wavelengths=2", {"colours": "2"}),
    ("wdm-line:n=4,wavelengths=1", {}),
    ("wdm-ring:n=4,wavelengths=1", {}),
    ("wdm-line:n=3,wavelengths=1", {"colours": "1"}),
]
CORRUPTED = [
    ("wdm-ring:n=4,wavelengths=2", {}, ("route_colour",)),
    ("wdm-ring:n=4,wavelengths=2", {}, ()),
]
CERTIFIED = ("wdm-line:n=4,wavelengths=1", {}, "cycle-cover")
DRAWN = 12


def draw(random: Random) -> Drawn:
    return fibres(random), {}

"""Problems of optree.tree for the tests of all formulations: see :mod:`problems`."""

from __future__ import annotations

from problems.random_instances import Drawn, Random, fibres

CASES = [
    ("wdm-ring:n=4,wavelengths=2", {"depth": "2"}),
    ("wdm-ring:n=7,wavelengths=2", {}),
    ("wdm-line:n=6,wavelengths=1", {"depth": "1"}),
    ("wdm-ring:n=9,wavelengths=3", {"count": "printed"}),
]
CORRUPTED = [
    ("wdm-ring:n=4,wavelengths=2", {}, ("radices",)),
    ("wdm-ring:n=4,wavelengths=2", {}, ()),
]
CERTIFIED = ("wdm-ring:n=12,wavelengths=2", {}, "tree-search")
DRAWN = 12


def draw(random: Random) -> Drawn:
    return fibres(random), {"count": str(random.choice(["lemma", "exact", "printed"]))}

"""Small problems of ``optree.tree``."""

from __future__ import annotations

from problems import Draws, Optimum, Problems
from random_instances import Drawn, Random, fibres


def draw(random: Random) -> Drawn:
    return fibres(random), {"count": str(random.choice(["lemma", "exact", "printed"]))}


PROBLEMS = Problems(
    cases=[
        ("wdm-ring:n=4,wavelengths=2", {"depth": "2"}),
        ("wdm-ring:n=7,wavelengths=2", {}),
        ("wdm-line:n=6,wavelengths=1", {"depth": "1"}),
        ("wdm-ring:n=9,wavelengths=3", {"count": "printed"}),
    ],
    optimum=Optimum("wdm-ring:n=12,wavelengths=2", by="tree-search"),
    draws=Draws(12, draw),
    kinds=[("wdm-ring:n=4,wavelengths=2", {}, ("radices",)), ("wdm-ring:n=4,wavelengths=2", {}, ())],
)

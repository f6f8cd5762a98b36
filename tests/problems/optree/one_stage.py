"""Small problems of ``optree.one-stage``."""

from __future__ import annotations

from problems import Draws, Optimum, Problems
from random_instances import Drawn, Random, fibres


def draw(random: Random) -> Drawn:
    return fibres(random), {}


PROBLEMS = Problems(
    cases=[
        ("wdm-ring:n=3,wavelengths=2", {"colours": "2"}),
        ("wdm-line:n=4,wavelengths=1", {}),
        ("wdm-ring:n=4,wavelengths=1", {}),
        ("wdm-line:n=3,wavelengths=1", {"colours": "1"}),
    ],
    optimum=Optimum("wdm-line:n=4,wavelengths=1", by="cycle-cover"),
    draws=Draws(12, draw),
    kinds=[("wdm-ring:n=4,wavelengths=2", {}, ("route_colour",)), ("wdm-ring:n=4,wavelengths=2", {}, ())],
)

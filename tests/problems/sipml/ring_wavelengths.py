"""Small problems of ``sipml.ring-wavelengths``."""

from __future__ import annotations

from typing import Any

from problems import Draws, Optimum, Problems
from random_instances import Drawn, Random

from opticoll.instances import parse


def draw(random: Random) -> Drawn:
    n, seed = int(random.integers(3, 9)), int(random.integers(1000))
    settings: dict[str, Any] = {"model": str(random.choice(["sets", "arcs"]))}
    if random.random() < 0.5:
        settings |= {"traffic": "random", "seed": seed}
    least = (n * n - 1) // 8 + n
    return parse(f"wdm-ring:n={n},wavelengths={int(random.integers(least, least + 17))}"), settings


PROBLEMS = Problems(
    cases=[
        ("wdm-ring:n=3,wavelengths=3", {"traffic": "random"}),
        ("wdm-ring:n=3,wavelengths=2", {"model": "arcs"}),
        ("servers:n=6,degree=4,traffic=random,seed=1", {}),
        ("wdm-ring:n=5,wavelengths=4", {}),
        ("wdm-ring:n=4,wavelengths=3", {"model": "arcs", "traffic": "random", "seed": "3"}),
    ],
    optimum=Optimum("servers:n=5,degree=4,traffic=random,seed=1", by="ring-sets"),
    draws=Draws(16, draw),
    kinds=[("wdm-ring:n=4,wavelengths=2", {}, ("circuits",)), ("wdm-ring:n=4,wavelengths=2", {}, ())],
)

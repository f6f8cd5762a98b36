"""Small problems of ``alltoall.min-congestion``."""

from __future__ import annotations

from typing import Any

import numpy as np
from problems import Draws, Optimum, Problems
from random_instances import Drawn, Random, digraph

from opticoll.errors import BadInput
from opticoll.solvers.plan import make_plan
from opticoll.solvers.task import Task


def draw(random: Random) -> Drawn:
    paths, kappa = str(random.choice(["all", "all", "k", "shortest", "disjoint"])), int(random.integers(1, 4))
    settings: dict[str, Any] = {"paths": paths, "kappa": kappa}
    if paths == "k":
        settings["k"] = int(random.integers(kappa, 6))
    if random.random() < 0.3:
        settings["demand"] = f"random:{int(random.integers(100))}"
    for _ in range(1000):  # few graphs have kappa paths between all pairs
        topology = digraph(random, extra=1.5 * kappa)
        degrees = np.bincount([*topology.tail, *(topology.n + topology.head)], minlength=2 * topology.n)
        if kappa > 1 and degrees.min() < 2:
            continue  # the arc alone is the only path to or from its neighbour
        try:
            make_plan(Task("alltoall.min-congestion", topology, settings=settings))
        except BadInput:
            continue
        return topology, settings
    return draw(random)


PROBLEMS = Problems(
    cases=[
        ("ring:3", {}),
        ("ring:4", {"paths": "all"}),
        ("dgx1", {"paths": "shortest"}),
        ("ring:3+scale=0.5", {}),
        ("ring:4", {"paths": "all", "kappa": "2"}),
        ("hypercube:3", {"kappa": "3"}),
        ("hypercube:2+host=1.5", {"paths": "disjoint"}),
        ("ring:4", {"paths": "k", "k": "2", "demand": "permutation:1"}),
    ],
    optimum=Optimum("ring:4", by="exact-routing"),
    draws=Draws(80, draw, sample=(0, 3, 5, 8, 9, 10)),
    kinds=[("ring:4", {}, ()), ("ring:4", {"paths": "all"}, ("path_arcs",))],
)

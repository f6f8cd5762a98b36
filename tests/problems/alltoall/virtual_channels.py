"""Small problems of ``alltoall.virtual-channels``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from problems import Draws, Optimum, Problems
from random_instances import Drawn, Random, digraph

from opticoll.formulations import formulation
from opticoll.instances import Topology


def first_paths(instance: Topology, _: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The first path of every pair."""
    paths = formulation("alltoall.min-congestion").prepare(instance, {"paths": "all"}).routing.paths
    x = np.zeros(paths.paths)
    x[paths.first[:-1]] = 1.0
    return {"x": x, "Lambda": np.ones(())}


def draw(random: Random) -> Drawn:
    return digraph(random, most=6), {"layers": int(random.integers(2, 5))}


PROBLEMS = Problems(
    cases=[
        ("ring:4", {"layers": "2"}),
        ("complete:3", {}),
        ("ring:4", {"layers": "1"}),
        ("ring:5", {"layers": "3"}),
    ],
    optimum=Optimum("ring:3,directed", {"layers": 2}, by="layer-assignment"),
    draws=Draws(16, draw),
    needed=first_paths,
)

"""Small problems of ``alltoall.sccl``."""

from __future__ import annotations

from problems import Draws, Optimum, Problems
from random_instances import Drawn, Random, digraph


def draw(random: Random) -> Drawn:
    topology = digraph(random, most=6)
    settings = {"chunks": int(random.integers(1, 3)), "model": str(random.choice(["chunks", "sources"]))}
    if random.random() < 0.3:
        settings["steps"] = int(topology.diameter) + 1
    return topology, settings


PROBLEMS = Problems(
    cases=[
        ("path:3", {}),
        ("ring:4,directed+scale=1.5", {"chunks": "2", "steps": "4"}),
        ("genkautz:n=5,d=2", {}),
        ("path:3", {"model": "sources", "chunks": "2"}),
        ("complete:3+scale=0.4", {"steps": "2"}),
    ],
    optimum=Optimum("ring:3", {"chunks": 2}, by="source-flows"),
    draws=Draws(16, draw, sample=(0, 11)),
)

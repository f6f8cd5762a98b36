"""Small problems of ``alltoall.timestep-mcf``."""

from __future__ import annotations

from problems import Optimum, Problems

PROBLEMS = Problems(
    cases=[
        ("path:3", {}),
        ("path:3", {"steps": "4", "aggregate": "source"}),
        ("ring:4,directed+scale=0.5", {}),
        ("hypercube:2+host=1.5", {"aggregate": "source"}),
        ("star:4", {"steps": "3"}),
        ("complete:3", {}),
        ("path:3+host=2", {"relays": "step"}),
        ("path:3+host=0.7,relay=nic", {"steps": "2"}),
        ("hypercube:2+host=1.5,relay=nic", {"aggregate": "source", "relays": "step"}),
        ("ring:4,directed", {"demand": "random:2"}),
        ("ring:4", {"aggregate": "source", "demand": "gravity:2"}),
    ],
    optimum=Optimum("mesh:2x2", by={"aggregate": "source"}),
)

"""Small problems of ``alltoall.broadcast``."""

from __future__ import annotations

from problems import Optimum, Problems

PROBLEMS = Problems(
    cases=[
        ("path:3", {}),
        ("star:4", {"root": "2"}),
        ("hypercube:2+host=1.5", {"root": "1"}),
        ("ring:4+scale=3", {}),
    ],
    optimum=Optimum("mesh:2x3", {"root": 1}, by="tree-packing"),
)

"""Small problems of ``alltoall.link-mcf``."""

from __future__ import annotations

from problems import Optimum, Problems

PROBLEMS = Problems(
    cases=[
        ("path:3", {}),
        ("path:3", {"printed": "true"}),
        ("kautz:d=2,D=2", {}),
        ("star:4", {"printed": "true"}),
        ("ring:4+scale=0.3", {}),
        ("hypercube:2+host=1.5", {"printed": "true"}),
        ("genkautz:n=5,d=2", {"demand": "random:4"}),
        ("ring:3", {"printed": "true", "demand": "gravity:1"}),
    ],
    optimum=Optimum("path:4+scale=2.5", by="master-child"),
)

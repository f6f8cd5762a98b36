"""Small problems of ``alltoall.master``."""

from __future__ import annotations

from problems import Optimum, Problems

PROBLEMS = Problems(
    cases=[
        ("path:3", {}),
        ("mesh:2x2", {}),
        ("hypercube:2+host=1.5", {}),
        ("dgx1", {}),
        ("ring:4", {"demand": "permutation:1"}),
        ("genkautz:n=5,d=2+scale=2.5", {"demand": "random:4"}),
    ],
    optimum=Optimum("genkautz:n=7,d=2", by="orbit-lp"),
)

"""Small problems of ``alltoall.path-mcf``."""

from __future__ import annotations

from problems import Optimum, Problems

PROBLEMS = Problems(
    cases=[
        ("ring:3", {}),
        ("ring:4", {"paths": "all"}),
        ("dgx1", {}),
        ("star:4", {"paths": "shortest"}),
        ("hypercube:3", {"paths": "k", "k": "3"}),
        ("ring:5+scale=2.5", {"paths": "all", "lmax": "3"}),
        ("hypercube:2+host=1.5", {"paths": "disjoint"}),
        ("ring:4", {"paths": "all", "demand": "random:4"}),
    ],
    optimum=Optimum("ring:5", {"paths": "all"}, by="column-generation"),
    kinds=[("ring:4", {}, ()), ("ring:4", {"paths": "all"}, ("path_arcs",))],
)

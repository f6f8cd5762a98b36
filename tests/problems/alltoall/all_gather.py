"""Small problems of ``alltoall.all-gather``."""

from __future__ import annotations

from problems import Optimum, Problems

PROBLEMS = Problems(
    cases=[("path:3", {}), ("star:4", {}), ("hypercube:2+host=1.5", {}), ("ring:4+scale=3", {})],
    optimum=Optimum("mesh:2x3", by="tree-packing"),
)

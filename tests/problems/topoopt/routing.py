"""Small problems of ``topoopt.routing``."""

from __future__ import annotations

from problems import Optimum, Problems

PROBLEMS = Problems(
    cases=[("servers:n=3,degree=2,traffic=vgg", {}), ("servers:n=5,degree=2,traffic=dlrm", {})],
    optimum=Optimum("servers:n=5,degree=2,traffic=dlrm", by="certified-pdlp"),
)

"""Small problems of ``alltoall.child``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from problems import Optimum, Problems

from opticoll.instances import Topology


def fluid(instance: Topology, _: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Any flow that a child LP can split: half of every arc's capacity for every source."""
    return {"g": np.repeat(instance.capacity[:, None] / 2, instance.num_ranks, axis=1), "F": np.ones(())}


PROBLEMS = Problems(
    cases=[("path:3", {}), ("ring:4", {"source": "2"}), ("hypercube:2+host=1.5", {})],
    optimum=Optimum("ring:4", by="certified-pdlp"),
    needed=fluid,
)

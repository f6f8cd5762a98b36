"""Small problems of ``alltoall.timestep-child``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from problems import Optimum, Problems

from opticoll.formulations import formulation
from opticoll.instances import Topology


def fluid_in_steps(instance: Topology, parameters: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Any flow in steps that a child LP can split: half of every arc's capacity in every step for every source."""
    data = formulation("alltoall.timestep-mcf").prepare(instance, parameters)
    return {"f": np.broadcast_to(instance.capacity[:, None, None] / 2, data.shape), "U": np.ones(data.steps)}


PROBLEMS = Problems(
    cases=[
        ("path:3", {}),
        ("ring:4,directed+scale=0.5", {"source": "2", "steps": "4"}),
        ("hypercube:2+host=1.5", {}),
        ("path:3+host=2", {"relays": "step"}),
    ],
    optimum=Optimum("path:3", {"steps": 3}, by="certified-pdlp"),
    needed=fluid_in_steps,
)

"""Bounds, size and figures of :mod:`opticoll.formulations.alltoall.sccl`, which ``problem`` is."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.model import Bound
from opticoll.formulations.variables import Links

if TYPE_CHECKING:
    from opticoll.formulations.alltoall.sccl import ChunkSteps
    from opticoll.formulations.model import Values
    from opticoll.types import Json


def metrics(problem: ChunkSteps, value: float | None) -> dict[str, Json]:
    """Chunks, steps, rounds, and the resulting time."""
    steps, chunks = problem.flow.steps, problem.chunks
    return {
        "chunks": chunks,
        "steps": steps,
        "rounds": value,
        "T": None if value is None else value / chunks,
        "ranks": problem.flow.topology.num_ranks,
        "conditional_on": f"in {steps} step{'s' * (steps > 1)}, {chunks} chunk{'s' * (chunks > 1)}",
    }


def links(problem: ChunkSteps, values: Values) -> Links:
    """Chunks over every arc in all steps, within the rounds of all steps."""
    topology = problem.flow.topology
    load = np.asarray(values["f"], dtype=float).sum(axis=(1, 2))
    return Links(topology, load, topology.capacity, problem.objective(values), "chunks", "chunks per round")


def bounds(problem: ChunkSteps) -> list[Bound]:
    """Bounds on the fluid time, times the chunks per shard and rounded up; and the diameter."""
    diameter = int(problem.flow.topology.diameter)
    result = [Bound("steps", float(diameter), "each of as many steps as the diameter has a round")]
    for bound in problem.flow.bounds():
        value = float(math.ceil(bound.value))
        result.append(Bound(bound.name, value, f"rounds are whole: {bound.reason}", bound.paper))
    return result


def estimate(problem: ChunkSteps) -> dict[str, int] | None:
    """About the size of the model: that of the flow in steps."""
    return problem.flow._estimate()

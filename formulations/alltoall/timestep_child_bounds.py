"""Data, bounds, arrays and figures of :mod:`opticoll.formulations.alltoall.timestep_child`, which ``problem`` is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.alltoall import time_expansion
from opticoll.formulations.alltoall.timestep_mcf import StepFlow
from opticoll.formulations.flows.concurrent_flow import numbered_source
from opticoll.formulations.model import Bound
from opticoll.formulations.variables import BANDWIDTHS, SHARDS, Array, Links, arc_axis, vertex_axis

if TYPE_CHECKING:
    from collections.abc import Collection

    from opticoll.formulations.alltoall.timestep_child import StepChild
    from opticoll.formulations.model import Values
    from opticoll.instances.topology import F64
    from opticoll.types import Json, Settings


def under_master(cls: type[StepChild], instance: object, given: Settings, needed: Values | None = None) -> StepChild:
    """The problem under ``needed``, the values of a solution of ``alltoall.timestep-mcf`` by source."""
    both = {name: value for name, value in given.items() if name != "source"}
    master = StepFlow.prepare(instance, both | dict(cls._needs.settings))
    senders = np.searchsorted(master.topology.terminals, master.groups.sources)
    column = int(np.searchsorted(senders, numbered_source(int(given["source"]), master.topology, senders, cls.name)))
    g, time = (None, 1.0) if needed is None else (needed["f"][:, column], float(np.sum(needed["U"])))
    return cls(*time_expansion.flow_of_source(master, column, g), time)


def metrics(problem: StepChild, value: float | None) -> dict[str, Json]:
    """F_s, the steps and the number of ranks."""
    return {"F_s": value, "steps": problem.commodities.steps, "ranks": problem.commodities.topology.num_ranks}


def links(problem: StepChild, values: Values) -> Links:
    """Shards of the source over every arc in all steps, within the time of all steps."""
    load = problem.by_step(values).sum(axis=(1, 2))
    topology = problem.commodities.topology
    return Links(topology, load, topology.capacity, problem.time, SHARDS, BANDWIDTHS)


def bounds(problem: StepChild) -> list[Bound]:
    """Bounds of hop distances under g, and of what leaves the source."""
    topology, unrolled = problem.commodities.topology, problem.commodities.unrolled
    moved, leaving = np.zeros((2, problem.topology.arcs))
    moved[unrolled.moving] = 1.0
    leaving[unrolled.moving[topology.tail == problem.flow.sources[0]]] = 1.0
    return [
        Bound("distance", problem.flow.length_bound(moved), "Theorem 1 under the capacities g", "alltoall"),
        Bound("source", problem.flow.length_bound(leaving), "what leaves the source in all steps", "alltoall"),
    ]


def arrays(problem: StepChild, names: Collection[str]) -> dict[str, Array]:
    """Shapes of the arrays, with arcs between vertices after steps, ``u@t``."""
    topology, arc = problem.commodities.topology, arc_axis(problem.topology)
    targets = vertex_axis("destination", topology, problem.commodities.groups.targets)
    return {"f": Array((arc, targets), unit=SHARDS), "F": Array(), "capacity": Array((arc,), dual=True)}


def by_step(problem: StepChild, values: Values) -> F64:
    """F / F over the arcs of the topology, ``(m, |R|, L)``: the source's commodities in the schedule."""
    flow = np.asarray(values["f"], dtype=float) / float(np.asarray(values["F"]))
    return flow[problem.commodities.unrolled.moving].transpose(0, 2, 1)

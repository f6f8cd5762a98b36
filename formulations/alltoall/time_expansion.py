"""Time-expanded networks: holding arcs, steps, distances in steps, and flows in steps as flows in the network."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import NotApplicable, refuse
from opticoll.formulations.flows.concurrent_flow import ConcurrentFlow
from opticoll.formulations.flows.single_source import unit_flow
from opticoll.instances.topology import Topology

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opticoll.formulations.alltoall.timestep_mcf import StepFlow
    from opticoll.instances.topology import F64, I64, Mask


@dataclass(frozen=True, eq=False)
class TimeExpanded:
    """A topology unrolled over time steps, and the positions of the arcs of every step in it.

    Vertex (u, t), numbered ``t n + u``, is u after t = 0 .. L steps. Arc a of the topology in step t = 1 .. L runs from
    (tail_a, t-1), or (tail_a, t) if the tail is a relay, to (head_a, t); a waiting arc from (u, t-1) to (u, t), u in H.
    The label of (u, t) is ``u@t``.
    The graph has no cycles except those of relays within a step.

    Parameters
    ----------
    graph
        n (L + 1) vertices, L (m + |H|) arcs.
    moving
        Arc of ``graph`` for arc a in step t (0-based), shape ``(m, L)``.
    waiting
        Arc of ``graph`` for waiting at every u in H in step t, shape ``(|H|, L)``.
    arc, step
        Arc of the topology (-1 for waiting) and step (0-based) of every arc of ``graph``.
    """

    graph: Topology
    moving: I64
    waiting: I64
    arc: I64
    step: I64


def holding(topology: Topology, relays: str) -> Mask:
    """Vertices that hold data between steps, ``(n,)``: the ranks, or all for ``relays=step``."""
    holds = np.full(topology.n, relays == "step")
    holds[topology.terminals] = True
    return holds


def step_hops(topology: Topology, holds: Mask) -> tuple[F64, I64]:
    """Minimum number of steps between vertices, ``(n, n)``; and 1 for arcs that begin a step, else 0, ``(m,)``."""
    begins = holds[topology.tail].astype(np.int64)
    return topology.distances(begins.astype(float)), begins


def enough_steps(name: str, steps: int, topology: Topology, traffic: F64 | None = None, relays: str = "pass") -> int:
    """The number of steps L, by default the least possible: the largest distance between ranks with demand.

    Raises
    ------
    NotApplicable
        If there are fewer.
    """
    ends = topology.terminals
    between = step_hops(topology, holding(topology, relays))[0][np.ix_(ends, ends)]
    least = int((between if traffic is None else between[traffic > 0]).max())
    if steps and steps < least:
        far = f"the largest distance of a demand is {least}, and a shard moves one hop per step"
        refuse(name, f"steps={steps} is too small for {topology.spec}: {far}; set steps={least} or more", NotApplicable)
    return steps or least


def unroll(topology: Topology, steps: int, holds: Mask | None = None) -> TimeExpanded:
    """Unroll ``topology`` over ``steps`` steps; by default, every vertex holds data."""
    n, m = topology.n, topology.arcs
    stays = np.arange(n) if holds is None else np.flatnonzero(holds)
    passed = np.zeros(m, dtype=np.int64) if holds is None else n * ~holds[topology.tail]
    at = np.arange(steps) * n
    tail = np.concatenate([(topology.tail + passed)[:, None] + at, stays[:, None] + at]).ravel()
    head = np.concatenate([topology.head[:, None] + at + n, stays[:, None] + at + n]).ravel()
    capacity = np.repeat(np.concatenate([topology.capacity, np.ones(stays.size)]), steps)
    order = np.lexsort((capacity, head, tail))  # the order in which Topology sorts its arcs
    place = np.empty(order.size, dtype=np.int64)
    place[order] = np.arange(order.size)
    positions = place.reshape(m + stays.size, steps)
    arc = np.repeat(np.concatenate([np.arange(m), np.full(stays.size, -1)]), steps)[order]
    step = np.tile(np.arange(steps), m + stays.size)[order]
    graph = Topology(
        n * (steps + 1),
        tail,
        head,
        capacity,
        spec=f"{topology.spec} over {steps} steps",
        labels=tuple(f"{label}@{t}" for t in range(steps + 1) for label in topology.labels),
    )
    return TimeExpanded(graph, positions[:m], positions[m:], arc, step)


def step_distances(topology: Topology, sources: I64, cost: F64, holds: Mask | None = None) -> F64:
    """Minimum cost from every source to every vertex within L steps; waiting, where data can be held, is free.

    Parameters
    ----------
    topology, sources
        The graph; shape ``(K,)``.
    cost
        Cost >= 0 of using arc a in step t, shape ``(m, L)``.
    holds
        Vertices that hold data between steps, ``(n,)``; by default all.

    Returns
    -------
    Costs, ``(K, n)``; ``inf`` where the steps do not suffice, and at relays.
    """
    holds = np.ones(topology.n, dtype=bool) if holds is None else holds
    begins, passing = np.flatnonzero(holds[topology.tail]), np.flatnonzero(~holds[topology.tail])
    reach = np.full((sources.size, topology.n), np.inf)
    reach[np.arange(sources.size), sources] = 0.0
    for t in range(cost.shape[1]):
        after = reach.copy()
        np.minimum.at(after.T, topology.head[begins], (reach[:, topology.tail[begins]] + cost[begins, t]).T)
        for _ in range(int(np.count_nonzero(~holds))):  # relays in a row within the step
            before = after.copy()
            np.minimum.at(after.T, topology.head[passing], (after[:, topology.tail[passing]] + cost[passing, t]).T)
            if np.array_equal(before, after):
                break
        reach = np.where(holds, after, np.inf)
    return reach


def waiting(problem: StepFlow, f: F64) -> F64:
    """Amount that every vertex holds but does not send in each step, shape ``(n, |K|, L)``."""
    topology, (_, groups, steps) = problem.topology, problem.shape
    held = np.zeros((topology.n, groups))
    held[problem.groups.sources, np.arange(groups)] = problem.groups.demand.sum(axis=0)
    result = np.empty((topology.n, groups, steps))
    for t in range(steps):
        np.subtract.at(held, topology.tail, f[:, :, t])
        result[:, :, t] = held
        np.add.at(held, topology.head, f[:, :, t])
    return result


def over_time(problem: StepFlow, f: F64) -> F64:
    """What moves and what waits in every step as a flow in the time-expanded graph, ``(arcs, |K|)``."""
    unrolled = problem.unrolled
    flow = np.zeros((unrolled.graph.arcs, problem.shape[1]))
    flow[unrolled.moving] = f.transpose(0, 2, 1)
    flow[unrolled.waiting] = np.maximum(waiting(problem, f)[problem.holds], 0.0).transpose(0, 2, 1)
    return flow


def repair(problem: StepFlow, values: Mapping[str, F64]) -> dict[str, F64] | None:
    """Repair an approximate flow to an exactly feasible one, as a flow in the time-expanded graph."""
    f = np.asarray(values["f"], dtype=float)
    (_, groups, steps), n = problem.shape, problem.topology.n
    f = np.where(problem.upper > 0, np.maximum(f, 0.0), 0.0)
    graph = problem.unrolled.graph
    demand = np.zeros((graph.n, groups))
    demand[n * steps :] = problem.groups.demand
    exact = unit_flow(graph, problem.groups.sources, demand, over_time(problem, f))
    if exact is None:
        return None
    moved = exact[problem.unrolled.moving].transpose(0, 2, 1)
    U = (moved.sum(axis=1) / problem.topology.capacity[:, None]).max(axis=0)
    return {"f": np.where(problem.upper > 0, moved, 0.0), "U": U}


def flow_of_source(master: StepFlow, column: int, flow: F64 | None) -> tuple[ConcurrentFlow, StepFlow]:
    """The flow of group ``column``, divided by destination: on the unrolled graph, and as commodities in steps.

    Its capacities are its flow ``(m, L)`` in the model by source; without, as for sizes and refusals, those of the
    topology.
    """
    topology, groups, steps = master.topology, master.groups, master.steps
    used = np.repeat(topology.capacity[:, None], steps, axis=1) if flow is None else np.maximum(flow, 0.0)
    source, wanted = int(groups.sources[column]), groups.demand[:, column]
    targets = np.flatnonzero(wanted)
    amount, sources = wanted[targets], np.full(targets.size, source)
    divided = ConcurrentFlow.by_commodity(topology, sources, targets, amount)
    commodities = replace(master, groups=divided, aggregate="commodity")
    unrolled, graph = commodities.unrolled, commodities.unrolled.graph
    leaves = float(used[topology.tail == source].sum())
    # Twice what leaves the source, as a power of two: the capacity of waiting arcs, which nothing can fill.
    capacity = np.full(graph.arcs, 2.0 ** np.ceil(np.log2(2.0 * leaves)) if leaves > 0 else 0.0)
    capacity[unrolled.moving] = used
    blocked = np.zeros((graph.arcs, targets.size), dtype=bool)
    blocked[unrolled.moving] = (commodities.upper == 0).transpose(0, 2, 1)
    flows = ConcurrentFlow.by_commodity(graph, sources, targets + topology.n * steps, amount, capacity=capacity)
    return replace(flows, barred=flows.blocked | blocked), commodities

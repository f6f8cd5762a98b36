"""Exact repair of single-source flows, and their decomposition into weighted paths.

Repair cancels cycles and reroutes demands in proportion to each vertex's incoming flow.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from opticoll.compiled import kernels
from opticoll.errors import BadInput
from opticoll.formulations.flows.path_sets import KERNELS
from opticoll.formulations.rounds.segments import positions

if TYPE_CHECKING:
    from opticoll.instances.topology import F64, I64, Mask, Topology


#: Arcs with less than this share of the inflow of a vertex are treated as solver noise.
NOISE = 1e-7


def unit_flow(topology: Topology, sources: I64, demand: F64, flow: F64) -> F64 | None:
    r"""Compute flows that deliver exactly ``demand``, in the proportions of approximate flows.

    For every group: with phi_a the share of arc a in the inflow of its head, the throughflow y solves

        y_u = D_u + sum_{a out of u} phi_a y_head(a)        (u != s),

    and the flow is phi_a y_head(a). On an acyclic support this system is triangular up to ordering, so it
    always has a non-negative solution, found by one substitution. A vertex without inflow that is needed is connected
    by its shortest path.

    Parameters
    ----------
    topology
        The graph, n vertices and m arcs.
    sources
        Shape ``(K,)``.
    demand
        Shape ``(n, K)``, >= 0, 0 at the source.
    flow
        Approximate flows, shape ``(m, K)``.

    Returns
    -------
    Flows of shape ``(m, K)``, or None if some demand cannot be reached.
    """
    groups = sources.size
    result = np.maximum(flow, 0.0)
    result[result < NOISE * topology.inflow(result)[topology.head]] = 0.0
    result[topology.head[:, None] == sources] = 0.0  # flow back into the source is not part of an acyclic flow
    levels = _rooted_levels(topology, sources, demand, result)
    if levels is None:
        return None
    entering = np.argsort(topology.head, kind="stable")
    first_in = np.searchsorted(topology.head[entering], np.arange(topology.n + 1))
    through, amounts = demand.astype(float).ravel(), result.ravel()
    for at in reversed(levels):  # y_v is split as v receives
        v, k = np.divmod(at, groups)
        row, place = positions(first_in, v)
        arc, group = entering[place], k[row]
        used = amounts[arc * groups + group] > 0
        row, arc, group = row[used], arc[used], group[used]
        amount = amounts[arc * groups + group]
        total = np.bincount(row, amount, at.size)
        with np.errstate(over="ignore"):
            amount *= np.divide(through[at], total, out=np.zeros(at.size), where=total > 0)[row]
        amounts[arc * groups + group] = amount
        np.add.at(through, topology.tail[arc] * groups + group, amount)
    return amounts.reshape(flow.shape) if np.isfinite(amounts).all() else None


def _rooted_levels(topology: Topology, sources: I64, demand: F64, flow: F64) -> list[I64] | None:
    """Make flows acyclic and rooted, in place; None if a demand is cut off.

    Returns the pairs of vertex u and group k, as ``u |K| + k``, in levels: flow runs from earlier to later ones.
    """
    while True:
        levels, received, cyclic = _forward(topology, sources, flow)
        for k in cyclic.tolist():
            cancel_cycles(topology, flow[:, k])
        if cyclic.size:
            continue
        missing = ~received & (demand > 0)
        if not missing.any():
            return levels
        for k in np.flatnonzero(missing.any(axis=0)).tolist():
            if not _attach(topology, int(sources[k]), flow[:, k], received[:, k], np.flatnonzero(missing[:, k])):
                return None


def _forward(topology: Topology, sources: I64, flow: F64) -> tuple[list[I64], Mask, I64]:
    """Follow all flows from their sources at once, and drop, in place, what a vertex sends that receives nothing.

    Returns the levels of :func:`_rooted_levels`, which vertices receive, ``(n, |K|)``, and the groups whose flow has a
    cycle: their levels are incomplete.
    """
    (n, groups), amounts = (topology.n, sources.size), flow.reshape(-1)
    first_out = np.searchsorted(topology.tail, np.arange(n + 1))
    left = topology.inflow((flow > 0).astype(float)).astype(np.int64).ravel()
    received, seen = np.zeros(n * groups, dtype=bool), np.zeros(n * groups, dtype=np.int64)
    received[sources * groups + np.arange(groups)] = True
    levels, at = [], np.flatnonzero(left == 0)
    while at.size:
        levels.append(at)
        u, k = np.divmod(at, groups)
        row, arc = positions(first_out, u)
        place = arc * groups + k[row]
        used = amounts[place] > 0
        place, there, reached = place[used], topology.head[arc[used]] * groups + k[row[used]], received[at][row[used]]
        amounts[place[~reached]] = 0.0
        received[there[reached]] = True
        np.subtract.at(left, there, 1)
        at = there[left[there] == 0]
        seen[at] = np.arange(at.size)
        at = at[seen[at] == np.arange(at.size)]  # each once
    return levels, received.reshape(n, groups), np.flatnonzero(left.reshape(n, groups).any(axis=0))


def _attach(topology: Topology, source: int, flow: F64, received: Mask, missing: I64) -> bool:
    """Attach vertices without inflow to their parents in a shortest-path tree, as far up as needed, in place.

    A parent chain is followed until it meets a vertex that already receives; since only vertices without any
    inflow get a new arc, and each exactly one, the support stays acyclic.
    """
    from scipy.sparse.csgraph import dijkstra

    graph = topology.length_matrix(np.ones(topology.arcs))
    _, parent = dijkstra(graph, indices=source, unweighted=True, return_predecessors=True)
    for start in missing.tolist():
        v = start
        while not received[v]:
            u = int(parent[v])
            if u < 0:
                return False
            flow[np.flatnonzero((topology.tail == u) & (topology.head == v))[0]] = 1.0
            received[v] = True
            v = u
    return True


def cancel_cycles(topology: Topology, flow: F64) -> None:
    """Subtract circulations from a non-negative flow, in place, until its support has no cycle.

    Net inflow of every vertex, and thus the amount delivered, does not change.
    """
    left, first_out = np.ascontiguousarray(flow), np.searchsorted(topology.tail, np.arange(topology.n + 1))
    found = kernels(KERNELS, 2 * int(np.count_nonzero(left > 0)) + topology.n)
    found.cancel_cycles(left, topology.head, topology.tail, first_out)
    flow[:] = left


@dataclass(frozen=True)
class WeightedPath:
    """A path (arc numbers, from the source on) and the flow it carries."""

    arcs: list[int]
    amount: float


def strip_paths(
    topology: Topology, source: int, flow: F64, targets: I64, amount: float | F64
) -> list[list[WeightedPath]]:
    """Split a flow that delivers ``amount`` (one value, or one per target) to every target into paths.

    Walks back from each target along the incoming arc with most remaining flow; every walk empties an arc or a demand,
    so there are at most ``m + len(targets)`` paths.

    Parameters
    ----------
    topology, source
        The graph, and the vertex from which all flow comes.
    flow
        Shape ``(m,)``; net inflow of every target must be at least ``amount``.
    targets
        Distinct vertices other than the source.
    amount
        Positive amount for every target, or one per target, shape of ``targets``.

    Returns
    -------
    For each target, its paths; their amounts add up to ``amount``.

    Raises
    ------
    BadInput
        If the flow delivers too little to some target (by more than round-off).
    """
    left = np.maximum(flow, 0.0)
    cancel_cycles(topology, left)
    used = np.flatnonzero(left > 0)  # few of the arcs, above all of copies in time
    residual = dict(zip(used.tolist(), left[used].tolist(), strict=True))
    tails = dict(zip(used.tolist(), topology.tail[used].tolist(), strict=True))
    into = defaultdict[int, list[int]](list)
    for a, v in zip(used.tolist(), topology.head[used].tolist(), strict=True):
        into[v].append(a)
    result = []
    for target, wanted in zip(targets.tolist(), np.broadcast_to(amount, targets.shape).tolist(), strict=True):
        paths: list[WeightedPath] = []
        need = wanted
        while need > wanted * 1e-9:
            walk: list[int] = []
            u, width = target, need
            while u != source:
                best = max(into[u], key=residual.__getitem__, default=-1)
                if best < 0 or residual[best] <= 0.0:
                    width = 0.0
                    break
                walk.append(best)
                width = min(width, residual[best])
                u = tails[best]
            if width <= 0.0:
                msg = (
                    f"flow decomposition: the flow of source {source} delivers {wanted - need:g} of {wanted:g} "
                    f"to {target}; give a flow that serves every target"
                )
                raise BadInput(msg)
            for a in walk:
                residual[a] -= width
            need -= width
            paths.append(WeightedPath(walk[::-1], width))
        carried = sum(path.amount for path in paths)
        result.append([WeightedPath(path.arcs, path.amount * wanted / carried) for path in paths])
    return result

"""Exact repair of single-source flows, and their decomposition into weighted paths.

Repair cancels cycles and reroutes demands in proportion to each vertex's incoming flow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import BadInput

if TYPE_CHECKING:
    from opticoll.instances.topology import F64, I64, Topology


#: Arcs with less than this share of the inflow of a vertex are treated as solver noise.
NOISE = 1e-7
#: Number of flow variables from which on the compiled code is used.
COMPILED_ENTRIES = 300_000


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
    if flow.size >= COMPILED_ENTRIES:
        return _compiled_unit_flow(topology, sources, demand, flow)
    result = np.maximum(flow, 0.0)
    result[result < NOISE * topology.inflow(result)[topology.head]] = 0.0
    for k in range(sources.size):
        order = _rooted_acyclic(topology, int(sources[k]), result[:, k], demand[:, k])
        if order is None:
            return None
        _pass_back(topology, order, result[:, k], demand[:, k])
    return result if np.isfinite(result).all() else None


def _compiled_unit_flow(topology: Topology, sources: I64, demand: F64, flow: F64) -> F64 | None:
    """:func:`unit_flow` by :mod:`opticoll.formulations.flows.flow_kernels`, several groups at a time."""
    from opticoll.formulations.flows.flow_kernels import Adjacency

    graph, result = Adjacency.of(topology), np.empty(flow.shape)
    for first in range(0, sources.size, 64):
        batch = slice(first, first + 64)
        part = np.ascontiguousarray(flow[:, batch].T, dtype=float)
        wanted = np.ascontiguousarray(demand[:, batch].T, dtype=float)
        if not graph.make_exact(part, wanted, np.array(sources[batch]), NOISE):
            return None
        result[:, batch] = part.T
    return result


def _pass_back(topology: Topology, order: list[int], flow: F64, demand: F64) -> None:
    """Make an acyclic flow deliver the demand, in place: from the last vertex on, y_v is split as v receives."""
    through, tail, amounts = demand.tolist(), topology.tail.tolist(), flow.tolist()
    into: list[list[int]] = [[] for _ in order]
    for a in np.flatnonzero(flow).tolist():
        into[topology.head[a]].append(a)
    for v in reversed(order):
        if into[v]:
            share = through[v] / sum(amounts[a] for a in into[v])
            for a in into[v]:
                amounts[a] *= share
                through[tail[a]] += amounts[a]
    flow[:] = amounts


def _rooted_acyclic(topology: Topology, source: int, flow: F64, demand: F64) -> list[int] | None:
    """Make one group's flow acyclic and rooted, in place: the vertices in its order; None if a demand is cut off."""
    cancel_cycles(topology, flow)
    flow[topology.head == source] = 0.0  # flow back into the source is not part of an acyclic flow
    order = _topological(topology, flow)
    # Forward from the source: a vertex that receives nothing sends nothing.
    received = np.zeros(topology.n)
    received[source] = 1.0
    for u in order:
        outgoing = _arcs_out(topology, u)
        if received[u] > 0:
            np.add.at(received, topology.head[outgoing], flow[outgoing])
        else:
            flow[outgoing] = 0.0
    missing = np.flatnonzero((received <= 0) & (demand > 0))
    if missing.size:
        return _topological(topology, flow) if _attach(topology, source, flow, received, missing) else None
    return order


def _arcs_out(topology: Topology, u: int) -> slice:
    first, last = np.searchsorted(topology.tail, [u, u + 1])
    return slice(int(first), int(last))


def _topological(topology: Topology, flow: F64) -> list[int]:
    """Sort the vertices so that the (acyclic) support of the flow runs forward."""
    active = np.flatnonzero(flow > 0)
    waiting = np.bincount(topology.head[active], minlength=topology.n).tolist()
    heads = topology.head.tolist()
    positive = (flow > 0).tolist()
    starts = np.searchsorted(topology.tail, np.arange(topology.n + 1)).tolist()
    order = [u for u in range(topology.n) if waiting[u] == 0]
    for u in order:
        for a in range(starts[u], starts[u + 1]):
            if positive[a]:
                v = heads[a]
                waiting[v] -= 1
                if waiting[v] == 0:
                    order.append(v)
    return order


def _attach(topology: Topology, source: int, flow: F64, received: F64, missing: I64) -> bool:
    """Attach vertices without inflow to their parents in a shortest-path tree, as far up as needed, in place.

    A parent chain is followed until it meets a vertex that already receives; since only vertices without any
    inflow get a new arc, and each exactly one, the support stays acyclic.
    """
    from scipy.sparse.csgraph import dijkstra

    graph = topology.length_matrix(np.ones(topology.arcs))
    _, parent = dijkstra(graph, indices=source, unweighted=True, return_predecessors=True)
    for start in missing.tolist():
        v = start
        while received[v] <= 0:
            u = int(parent[v])
            if u < 0:
                return False
            outgoing = _arcs_out(topology, u)
            arc = outgoing.start + int(np.argmax(topology.head[outgoing] == v))
            flow[arc] = 1.0
            received[v] = 1.0
            v = u
    return True


def cancel_cycles(topology: Topology, flow: F64) -> None:
    """Subtract circulations from a non-negative flow, in place, until its support has no cycle.

    Depth-first search; each cycle found loses its smallest arc, so at most m cycles are cancelled. Net
    inflow of every vertex, and thus the amount delivered, does not change.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    n = topology.n
    active = np.flatnonzero(flow > 0)
    support = csr_array((np.ones(active.size), (topology.tail[active], topology.head[active])), shape=(n, n))
    count, component = connected_components(support, directed=True, connection="strong")
    if count == n:
        return
    # Only arcs within a strongly connected component lie on cycles.
    inner = active[component[topology.tail[active]] == component[topology.head[active]]]
    out: list[list[int]] = [[] for _ in range(n)]
    heads = topology.head.tolist()
    for a, u in zip(inner.tolist(), topology.tail[inner].tolist(), strict=True):
        out[u].append(a)
    left = flow.tolist()
    state = [0] * n  # 0 new, 1 on the current path, 2 done
    for root in range(n):
        if state[root] or not out[root]:
            continue
        path: list[int] = []  # arcs from the root to the current vertex
        u = root
        state[u] = 1
        while True:
            while out[u] and left[out[u][-1]] <= 0:
                out[u].pop()
            if not out[u]:
                state[u] = 2
                if not path:
                    break
                arc = path.pop()
                u = int(topology.tail[arc])
                out[u].pop()  # its head is done: no cycle through this arc
                continue
            arc = out[u][-1]
            v = heads[arc]
            if state[v] == 2:
                out[u].pop()
            elif state[v] == 0:
                path.append(arc)
                state[v] = 1
                u = v
            else:  # the path from v to u and this arc close a cycle
                first = next(i for i in range(len(path) - 1, -1, -1) if topology.tail[path[i]] == v)
                _cancel([*path[first:], arc], left)
                dry = next((i for i in range(first, len(path)) if left[path[i]] <= 0), len(path))
                if dry < len(path):  # resume at the tail of the first arc that is used up
                    for a in path[dry:]:
                        state[heads[a]] = 0
                    u = int(topology.tail[path[dry]])
                    del path[dry:]
    flow[:] = left


def _cancel(cycle: list[int], flow: list[float]) -> None:
    """Subtract the largest circulation along a cycle."""
    least = min(flow[a] for a in cycle)
    for a in cycle:
        flow[a] -= least


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
    residual = left.tolist()
    tails = topology.tail.tolist()
    into: list[list[int]] = [[] for _ in range(topology.n)]
    for a in np.flatnonzero(left > 0).tolist():
        into[topology.head[a]].append(a)
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

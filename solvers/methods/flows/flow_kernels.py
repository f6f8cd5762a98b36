"""Compiled kernels: repair of single-source flows, for methods that repair them again and again.

One group at a time, in one thread or in several; :mod:`opticoll.formulations.flows.single_source` states what they do.
Importing this module compiles or loads the kernels. Results are checked by independent code, such as
:func:`opticoll.formulations.flows.flow_checks.flow_residuals`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from opticoll.compiled import compiled

if TYPE_CHECKING:
    from opticoll.instances.topology import F64, I64, Topology


@dataclass(frozen=True)
class Adjacency:
    """Arcs out of u: ``first_out[u] .. first_out[u+1]`` (sorted by tail); arcs into v: those of ``entering``."""

    tail: I64
    head: I64
    first_out: I64
    first_in: I64
    entering: I64

    @classmethod
    def of(cls, topology: Topology) -> Adjacency:
        """Build the adjacency of a topology, in new arrays."""
        bins = np.arange(topology.n + 1)
        entering = np.argsort(topology.head, kind="stable")
        return cls(
            topology.tail.copy(),
            topology.head.copy(),
            np.searchsorted(topology.tail, bins),
            np.searchsorted(topology.head[entering], bins),
            entering,
        )

    def workspace(self) -> tuple[I64, F64]:
        """Return scratch arrays for one thread."""
        return np.empty((5, self.first_out.size), dtype=np.int64), np.empty((2, self.first_out.size))


@compiled(nogil=True, error_model="numpy")
def cancel_cycles(flow: F64, head: I64, tail: I64, first_out: I64, state: I64, cursor: I64, path: I64) -> None:
    """Subtract circulations, in place, until its support has no cycle, by depth-first search."""
    n = first_out.size - 1
    for u in range(n):
        state[u] = 0  # 0 new, 1 on the current path, 2 done
        cursor[u] = first_out[u]
    for root in range(n):
        if state[root] != 0:
            continue
        depth = 0
        u = root
        state[u] = 1
        while True:
            while cursor[u] < first_out[u + 1] and flow[cursor[u]] <= 0.0:
                cursor[u] += 1
            if cursor[u] == first_out[u + 1]:
                state[u] = 2
                if depth == 0:
                    break
                depth -= 1
                u = tail[path[depth]]
                cursor[u] += 1  # its head is done: no cycle through this arc
                continue
            arc = cursor[u]
            v = head[arc]
            if state[v] == 2:
                cursor[u] += 1
            elif state[v] == 0:
                path[depth] = arc
                depth += 1
                state[v] = 1
                u = v
            else:  # the path from v to u and this arc close a cycle
                at = depth
                least = flow[arc]
                w = u
                while w != v:
                    at -= 1
                    least = min(least, flow[path[at]])
                    w = tail[path[at]]
                flow[arc] -= least
                dry = depth
                for position in range(depth - 1, at - 1, -1):
                    flow[path[position]] -= least
                    if flow[path[position]] <= 0.0:
                        dry = position
                # Resume at the tail of the first arc along the path whose flow is now 0.
                for position in range(dry, depth):
                    state[head[path[position]]] = 0
                if dry < depth:
                    u = tail[path[dry]]
                    depth = dry


@compiled(nogil=True, error_model="numpy")
def _topological(flow: F64, head: I64, first_out: I64, waiting: I64, order: I64) -> int:
    """Sort the vertices so that the support runs forward; return their number (all vertices if it is acyclic)."""
    n = first_out.size - 1
    waiting[:n] = 0
    for a in range(head.size):
        if flow[a] > 0.0:
            waiting[head[a]] += 1
    end = 0
    for u in range(n):
        if waiting[u] == 0:
            order[end] = u
            end += 1
    position = 0
    while position < end:
        u = order[position]
        position += 1
        for a in range(first_out[u], first_out[u + 1]):
            if flow[a] > 0.0:
                waiting[head[a]] -= 1
                if waiting[head[a]] == 0:
                    order[end] = head[a]
                    end += 1
    return end


@compiled(nogil=True, error_model="numpy")
def _attach(
    flow: F64, demand: F64, source: int, head: I64, tail: I64, first_out: I64, received: F64, queue: I64, parent: I64
) -> int:
    """Attach every vertex with demand but no inflow to its breadth-first parent, as far up as needed.

    Returns the number of arcs added, -1 if some demand cannot be reached. Only vertices without inflow get an arc,
    each exactly one, so the support stays acyclic.
    """
    n = first_out.size - 1
    missing = False
    for v in range(n):
        missing |= demand[v] > 0.0 and received[v] <= 0.0
    if not missing:
        return 0
    parent[:n] = -1
    queue[0] = source
    end = 1
    position = 0
    while position < end:
        u = queue[position]
        position += 1
        for a in range(first_out[u], first_out[u + 1]):
            v = head[a]
            if parent[v] < 0 and v != source:
                parent[v] = a
                queue[end] = v
                end += 1
    added = 0
    for target in range(n):
        v = target
        if demand[v] <= 0.0:
            continue
        while received[v] <= 0.0:
            if parent[v] < 0:
                return -1
            flow[parent[v]] = 1.0
            received[v] = 1.0
            added += 1
            v = tail[parent[v]]
    return added


@compiled(nogil=True, error_model="numpy")
def unit_flow(
    flow: F64,
    demand: F64,
    source: int,
    noise: float,
    tail: I64,
    head: I64,
    first_out: I64,
    first_in: I64,
    entering: I64,
    whole: I64,
    real: F64,
) -> bool:
    r"""Make one group's flow ``(m,)`` deliver exactly ``demand`` ``(n,)`` in the given proportions, in place.

    Noise, cycles, flow back into the source and flow without an origin are removed, and unserved demand gets its
    breadth-first path. Then, from the last vertex of a topological order to the first, vertex v passes
    :math:`y_v = D_v + \sum_{a\,out} x_a` to its incoming arcs in the shares in which it receives over them.
    """
    n = first_out.size - 1
    received, through = real[0], real[1]
    order, state = whole[0], whole[1]
    for v in range(n):
        total = 0.0
        for j in range(first_in[v], first_in[v + 1]):
            a = entering[j]
            flow[a] = max(flow[a], 0.0)
            total += flow[a]
        for j in range(first_in[v], first_in[v + 1]):
            a = entering[j]
            if v == source or flow[a] < noise * total:
                flow[a] = 0.0
    cancel_cycles(flow, head, tail, first_out, state, whole[2], whole[3])
    if _topological(flow, head, first_out, state, order) < n:
        return False
    received[:n] = 0.0
    received[source] = 1.0
    for position in range(n):
        u = order[position]
        for a in range(first_out[u], first_out[u + 1]):
            if received[u] > 0.0:
                received[head[a]] += flow[a]
            else:
                flow[a] = 0.0
    added = _attach(flow, demand, source, head, tail, first_out, received, state, whole[4])
    if added < 0 or (added > 0 and _topological(flow, head, first_out, state, order) < n):
        return False
    for v in range(n):
        through[v] = demand[v]
    for position in range(n - 1, -1, -1):
        v = order[position]
        total = 0.0
        for j in range(first_in[v], first_in[v + 1]):
            total += flow[entering[j]]
        if total <= 0.0:
            continue
        share = through[v] / total
        for j in range(first_in[v], first_in[v + 1]):
            a = entering[j]
            flow[a] *= share
            through[tail[a]] += flow[a]
    return True


@compiled(nogil=True, error_model="numpy")
def unit_flows(
    flow: F64,
    demand: F64,
    sources: I64,
    noise: float,
    tail: I64,
    head: I64,
    first_out: I64,
    first_in: I64,
    entering: I64,
    whole: I64,
    real: F64,
) -> bool:
    """:func:`unit_flow` for every group: ``flow`` ``(K, m)`` in place, ``demand`` ``(K, n)``."""
    for k in range(sources.size):
        if not unit_flow(flow[k], demand[k], sources[k], noise, tail, head, first_out, first_in, entering, whole, real):
            return False
    return True

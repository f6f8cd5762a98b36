"""Method ``fptas``: approximation scheme (Karakostas)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.compiled import compiled
from opticoll.errors import MethodMismatch
from opticoll.formulations.flows.flow_bounds import distance_bound
from opticoll.formulations.parameters import Parameter
from opticoll.solvers.methods.flows.flow_kernels import Adjacency
from opticoll.solvers.methods.method import Answer, Method
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from opticoll.formulations.flows.concurrent_flow import ConcurrentFlow
    from opticoll.instances.topology import F64, I64, Mask
    from opticoll.solvers.methods.method import Context

#: Lengths are scaled down before the largest exceeds this.
MOST_LENGTH = 1e100
#: A demand that fits up to this share of a capacity is routed without a further tree.
ROUND_OFF = 1e-9
#: Sources whose trees are computed together.
LANES = 8
#: Phases between two saved states.
SAVE_EVERY = 100


@compiled(nogil=True, error_model="numpy")
def trees(
    roots: I64, length: F64, head: I64, first_out: I64, distance: F64, parent: I64, queue: I64, waiting: Mask
) -> None:
    """Shortest-path trees from ``LANES`` roots at once, in place, by label correction in first-in first-out order.

    Where there is no path, distances, ``(n, LANES)``, are infinite and parents, the arcs into the vertices, are -1. A
    label changes only if it gets smaller, so the arcs form trees even where a length is lost to rounding.
    """
    n = first_out.size - 1
    distance[:] = np.inf
    parent[:] = -1
    waiting[:] = False
    first = last = count = 0
    for lane in range(LANES):
        u = roots[lane]
        distance[u, lane] = 0.0
        if not waiting[u]:
            waiting[u] = True
            queue[last] = u
            last += 1
            count += 1
    last %= n
    while count > 0:
        u = queue[first]
        first = first + 1 if first + 1 < n else 0
        count -= 1
        waiting[u] = False
        selected = distance[u]
        for a in range(first_out[u], first_out[u + 1]):
            v, one = head[a], length[a]
            there, arcs = distance[v], parent[v]
            changed = 0
            for lane in range(LANES):
                old, farther = there[lane], selected[lane] + one
                nearer = farther < old
                there[lane] = farther if nearer else old
                arcs[lane] = a if nearer else arcs[lane]
                changed += nearer
            if changed > 0 and not waiting[v]:
                waiting[v] = True
                queue[last] = v
                last = last + 1 if last + 1 < n else 0
                count += 1


@compiled(nogil=True, error_model="numpy")
def gather(lane: int, parent: I64, tail: I64, through: F64, children: I64) -> None:
    """Add to the demand of each vertex, ``through``, that of its descendants in the lane's tree, in place."""
    n = through.size
    children[:] = 0
    for v in range(n):
        if parent[v, lane] >= 0:
            children[tail[parent[v, lane]]] += 1
    for v in range(n):
        w = v
        while children[w] == 0:
            children[w] = -1
            if parent[w, lane] < 0:
                break
            u = tail[parent[w, lane]]
            through[u] += through[w]
            children[u] -= 1
            w = u


@compiled(nogil=True, error_model="numpy")
def phase(
    sources: I64,
    demand: F64,
    capacity: F64,
    step: float,
    length: F64,
    flow: F64,
    load: F64,
    tail: I64,
    head: I64,
    first_out: I64,
) -> tuple[float, int]:
    """Route every source's demand once, in place, ``LANES`` sources at a time.

    Parameters
    ----------
    sources, demand
        Vertices, ``(|S|,)``, and the demand of each vertex from them, ``(|S|, n)``.
    capacity, length, load
        Of every arc, ``(m,)``; length and load are updated.
    flow
        Flow of every source so far, ``(|S|, m)``, updated.

    Returns
    -------
    ``sum_k D_k dist(k)`` under the lengths when each source is routed, and the number of trees.
    """
    n, m = first_out.size - 1, head.size
    distance, parent = np.empty((n, LANES)), np.empty((n, LANES), dtype=np.int64)
    queue, waiting, children = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.bool_), np.empty(n, dtype=np.int64)
    roots, through, carried = np.empty(LANES, dtype=np.int64), np.empty((LANES, n)), np.empty(m)
    cost, grown = 0.0, 0
    for start in range(0, sources.size, LANES):
        together = min(LANES, sources.size - start)
        for lane in range(LANES):
            roots[lane] = sources[start + min(lane, together - 1)]
        left, first = 1.0, True
        while left > 0.0:
            trees(roots, length, head, first_out, distance, parent, queue, waiting)
            grown += together
            carried[:] = 0.0
            for lane in range(together):
                s = start + lane
                if first:
                    for v in range(n):
                        if demand[s, v] > 0.0:
                            cost += demand[s, v] * distance[v, lane]
                through[lane] = demand[s]
                gather(lane, parent, tail, through[lane], children)
                for v in range(n):
                    if parent[v, lane] >= 0:
                        carried[parent[v, lane]] += through[lane, v]
            first = False
            most = 0.0
            for a in range(m):
                most = max(most, carried[a] / capacity[a])
            part = left if most * left <= 1.0 + ROUND_OFF else 1.0 / most
            for lane in range(together):
                for v in range(n):
                    if parent[v, lane] >= 0:
                        flow[start + lane, parent[v, lane]] += through[lane, v] * part
            for a in range(m):
                sent = carried[a] * part
                load[a] += sent
                length[a] *= 1.0 + step * sent / capacity[a]
            left = 0.0 if part == left else left - part
    return cost, grown


def run(context: Context) -> Answer:
    """The approximation scheme that the all-to-all paper compares its master LP with, for flows grouped by source.

    Source  Karakostas, ACM Transactions on Algorithms 4, 2008; Fleischer, SIAM J. Discrete Mathematics 13, 2000

    Arcs have lengths, l_a = 1/c_a at first. A phase routes the demand of every source once: the remaining demand is
    sent along a shortest-path tree, scaled down if it would exceed the capacity of an arc, until none is left. The
    length of an arc that carries x grows by the factor 1 + step x/c_a before the next tree. The mean flow of all phases
    is feasible for T = max_a load_a/c_a; the lengths prove T >= sum_k D_k dist_l(k) / sum_a c_a l_a.

    Two changes are ours. Sources are routed ``LANES`` at a time, as one commodity: their trees use the same lengths and
    are scaled down together. The proof needs only shortest paths and arcs within their capacity. And as the first
    phases use poor lengths, the mean of the phases after the last of 1, 2, 4, ... is also formed; it is feasible, and
    the better of the two means is the answer.

    With step = epsilon/3 and enough phases, T is within a factor of 1 + O(epsilon) of the optimum, after a number of
    phases that grows with log(m)/epsilon^2. The phases end earlier if flow and lengths show a gap of at most
    ``epsilon``. The distances of a phase are those at the time a source is routed; as lengths only grow, they are no
    larger than those under the final lengths, which are kept. As for any method, the runner recomputes the bound and
    checks the flow.

    Demands are scaled so that a phase routes about as much as the arcs carry in unit time.

    Raises
    ------
    MethodMismatch
        If epsilon is not between 0 and 1, or capacities differ by too much.
    """
    data: ConcurrentFlow = context.data.flow
    epsilon = float(context.parameters["epsilon"])
    if not 0.0 < epsilon < 1.0:
        msg = f"fptas: epsilon={epsilon:g} is not a relative gap to stop at; give a number above 0 and below 1"
        raise MethodMismatch(msg)
    graph, largest = Adjacency.of(data.topology), float(data.capacity.max())
    capacity = data.capacity / largest
    # F is at most the distance bound, so a phase loads some arc by 1 at least.
    unit = distance_bound(data).value / largest
    demand = np.ascontiguousarray(data.demand.T, dtype=float) * unit
    shape = data.groups, data.topology.arcs
    flow, load, length = np.zeros(shape), np.zeros(data.topology.arcs), 1.0 / capacity
    before, load_before, since = np.zeros(shape), load.copy(), 0
    kept, bound, time, gap = length.copy(), 0.0, np.inf, np.inf
    phases = grown = 0
    whole = True
    ending = Termination.TOLERANCE
    while gap > epsilon:
        if phases >= 2 * since and phases > 0:
            before += flow
            load_before += load
            flow[:], load[:], since = 0.0, 0.0, phases
        cost, more = phase(
            data.sources, demand, capacity, epsilon / 3.0, length, flow, load, graph.tail, graph.head, graph.first_out
        )
        phases, grown = phases + 1, grown + more
        if not np.isfinite(length).all():
            msg = "fptas: capacities differ by so much that lengths of arcs overflow within a phase; use another method"
            raise MethodMismatch(msg)
        proven = cost / float(capacity @ length)
        if proven > bound:
            bound, kept = proven, length.copy()
        of_all = float(((load_before + load) / capacity).max()) / phases
        of_late = float((load / capacity).max()) / (phases - since)
        whole, time = of_all <= of_late, min(of_all, of_late)
        gap = time / bound - 1.0
        if length.max() > MOST_LENGTH:
            length /= length.max()
        if phases % SAVE_EVERY == 0:
            context.save(Answer(Termination.TIME_LIMIT, duals={"capacity": kept}))
        try:
            context.remaining()
        except TimeoutError:
            ending = Termination.TIME_LIMIT
            break
    if whole:
        flow += before
        since = 0
    return Answer(
        ending,
        values={
            "g": np.ascontiguousarray(flow.T) * (largest / ((phases - since) * time)),
            "F": np.asarray(unit * largest / time),
        },
        duals={"capacity": kept},
        solver={"algorithm": "Karakostas, by source", "options": {"epsilon": epsilon}},
        metrics={"phases": phases, "averaged": phases - since, "trees": grown, "epsilon": epsilon, "own_gap": gap},
        message="an approximation scheme: it stops at the first gap of at most epsilon",
    )


METHOD = Method(
    name="fptas",
    title="Approximation scheme (Karakostas)",
    summary="shortest-path trees and exponential lengths by source, to a relative gap of epsilon",
    serves=("alltoall.master",),
    parameters=(Parameter("epsilon", float, default=0.1, help="relative gap at which it stops, in (0, 1)"),),
    run=run,
)

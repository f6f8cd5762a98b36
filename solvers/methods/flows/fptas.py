"""The approximation scheme that the all-to-all paper compares its master LP with, for flows grouped by source.

Source  Karakostas, ACM Transactions on Algorithms 4, 2008; Fleischer, SIAM J. Discrete Mathematics 13, 2000

Arcs have lengths, l_a = 1/c_a at first. A phase routes the demand of every source once: all that is left of it over a
shortest-path tree, scaled down where an arc would get more than its capacity, until nothing is left. An arc that gets x
grows by the factor 1 + step x/c_a at once, before the next tree. The mean flow of all phases is feasible for
T = max_a load_a/c_a; the lengths prove T >= sum_k D_k dist_l(k) / sum_a c_a l_a.

With step = epsilon/3 and enough phases, T is within a factor of 1 + O(epsilon) of the optimum, after a number of phases
that grows with log(m)/epsilon^2. The phases end sooner, when flow and lengths of this run show a gap of at most
``epsilon``. The distances of a phase are those when a source's turn comes; as lengths only grow, they are no larger
than those at its end, which the lengths kept belong to. The runner recomputes that bound, and checks the flow, like any
other.

Demands are scaled so that a phase routes about as much as the arcs carry in unit time.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from opticoll.errors import MethodMismatch
from opticoll.formulations.flows.flow_bounds import distance_bound
from opticoll.formulations.flows.flow_kernels import Adjacency
from opticoll.formulations.model import Parameter
from opticoll.solvers.methods.method import Answer, Method
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from opticoll.formulations.flows.concurrent_flow import ConcurrentFlow
    from opticoll.solvers.methods.method import Context

    F64 = NDArray[np.float64]
    I64 = NDArray[np.int64]

#: Lengths are scaled down before the largest exceeds this.
MOST_LENGTH = 1e100
#: The rest of a demand that fits but for this share of a capacity needs no further tree.
ROUND_OFF = 1e-9
#: Phases between two saved states.
SAVE_EVERY = 100


@njit(cache=True, nogil=True)
def tree(source: int, length: F64, head: I64, first_out: I64, distance: F64, parent: I64, order: I64) -> int:
    """Shortest-path tree from ``source``: distances, arcs into the vertices, vertices by distance; their number."""
    distance[:] = np.inf
    parent[:] = -1
    distance[source] = 0.0
    waiting = [(0.0, source)]
    count = 0
    while len(waiting) > 0:
        reached, u = heapq.heappop(waiting)
        if reached > distance[u]:
            continue
        order[count] = u
        count += 1
        for a in range(first_out[u], first_out[u + 1]):
            farther = reached + length[a]
            if farther < distance[head[a]]:
                distance[head[a]] = farther
                parent[head[a]] = a
                heapq.heappush(waiting, (farther, head[a]))
    return count


@njit(cache=True, nogil=True)
def phase(
    sources: I64, demand: F64, capacity: F64, step: float, length: F64, flow: F64, load: F64, tail: I64, head: I64,
    first_out: I64,
) -> tuple[float, int]:  # fmt: skip
    """Route every source's demand once, in place.

    Parameters
    ----------
    sources, demand
        Vertices, ``(|S|,)``, and what each vertex wants of them, ``(|S|, n)``.
    capacity, length, load
        Of every arc, ``(m,)``; length and load are updated.
    flow
        Flow of every source so far, ``(|S|, m)``, updated.

    Returns
    -------
    ``sum_k D_k dist(k)`` under the lengths of each source's turn, and the trees.
    """
    n, m = first_out.size - 1, head.size
    distance, parent, order = np.empty(n), np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    carried, through = np.empty(m), np.empty(n)
    cost, trees = 0.0, 0
    for s in range(sources.size):
        left, first = 1.0, True
        while left > 0.0:
            count = tree(sources[s], length, head, first_out, distance, parent, order)
            trees += 1
            if first:
                for v in range(n):
                    if demand[s, v] > 0.0:
                        cost += demand[s, v] * distance[v]
                first = False
            carried[:] = 0.0
            through[:] = demand[s]
            most = 0.0
            for i in range(count - 1, 0, -1):
                v = order[i]
                if through[v] > 0.0:
                    a = parent[v]
                    carried[a] = through[v]
                    through[tail[a]] += through[v]
                    most = max(most, through[v] / capacity[a])
            part = left if most * left <= 1.0 + ROUND_OFF else 1.0 / most
            for i in range(1, count):
                a = parent[order[i]]
                sent = carried[a] * part
                if sent > 0.0:
                    flow[s, a] += sent
                    load[a] += sent
                    length[a] *= 1.0 + step * sent / capacity[a]
            left = 0.0 if part == left else left - part
    return cost, trees


def run(context: Context) -> Answer:
    """Phases until flow and lengths agree to within epsilon, or to the limit.

    Raises
    ------
    MethodMismatch
        If epsilon is not between 0 and 1.
    """
    data: ConcurrentFlow = context.data
    epsilon = float(context.parameters["epsilon"])
    if not 0.0 < epsilon < 1.0:
        msg = f"fptas: epsilon={epsilon:g} is no relative gap to stop at; give a number above 0 and below 1"
        raise MethodMismatch(msg)
    graph, largest = Adjacency.of(data.topology), float(data.capacity.max())
    capacity = data.capacity / largest
    # F is at most the distance bound, so that a phase loads some arc by 1 at least.
    unit = distance_bound(data).value / largest
    demand = np.ascontiguousarray(data.demand.T, dtype=float) * unit
    flow, load, length = np.zeros((data.groups, data.topology.arcs)), np.zeros(data.topology.arcs), 1.0 / capacity
    kept, bound, time, gap = length.copy(), 0.0, np.inf, np.inf
    phases = trees = 0
    ending = Termination.TOLERANCE
    while gap > epsilon:
        cost, grown = phase(
            data.sources, demand, capacity, epsilon / 3.0, length, flow, load, graph.tail, graph.head, graph.first_out
        )
        phases, trees = phases + 1, trees + grown
        proven = cost / float(capacity @ length)
        if proven > bound:
            bound, kept = proven, length.copy()
        time = float((load / capacity).max()) / phases
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
    return Answer(
        ending,
        values={
            data.flow: np.ascontiguousarray(flow.T) * (largest / (phases * time)),
            "F": np.asarray(unit * largest / time),
        },
        duals={"capacity": kept},
        solver={
            "name": "fptas",
            "version": None,
            "algorithm": "Karakostas, by source",
            "options": {"epsilon": epsilon},
        },
        metrics={"phases": phases, "trees": trees, "epsilon": epsilon, "own_gap": gap},
        message="an approximation scheme: it stops at the first gap of at most epsilon",
    )


METHODS = (
    Method(
        name="fptas",
        title="Approximation scheme (Karakostas)",
        summary="shortest-path trees and exponential lengths by source, to a relative gap of epsilon",
        applies=lambda formulation: formulation.name == "alltoall.master",
        parameters=(Parameter("epsilon", float, default=0.1, help="relative gap at which it stops, in (0, 1)"),),
        run=run,
    ),
)

"""All-gather of least time: every rank receives the shard of every other, and copies are free.

Source  beyond the all-to-all paper; network coding: Ahlswede, Cai, Li & Yeung, IEEE Trans. Inf. Theory 46(4), 2000;
        tree packing: Edmonds 1973, Bang-Jensen, Frank & Jackson, SIAM J. Discrete Math. 8(2), 1995
Sets    u in V vertices (n); a in A arcs (m); v in R receiving ranks (N)
Data    c_a > 0 capacity [link bandwidths], (m,); every rank has one shard
Vars    0 <= h_av <= N-1  flow towards v over arc a [shards], (m, N); 0 <= T <= (N-1) / min_a c_a  time
        [shards / link bandwidth]

min T  s.t.
    balance[u,v]    outflow_u(h_v) - inflow_u(h_v) = 1   (0 where u is not a rank)     u != v
    capacity[a,v]   h_av <= c_a T

Flows towards different receivers do *not* add up on an arc: a shard that several receivers get over the same arc is
sent over it once. Arcs out of v are fixed at 0. The upper bound of T excludes no optimum: a spanning tree attains it.

Certificate. For any lengths l_av >= 0 and any v: T >= sum_{s != v} dist_l(s, v) / sum_a c_a l_av.

Worst cut. What the ranks in S hold must leave S at least once if S leaves out some rank:

    T >= |S & R| / c(S -> V - S),        T* = max over such S.

For one receiver v, the maximum over S without v is the least T at which a super-source, joined to every other rank by
an arc of capacity 1, can send N-1 units to v under capacities c T (max-flow min-cut). Newton's method starts at some T;
any v with a smaller max-flow gives a cut of larger ratio, which is the next T; if there is none, T = T*. The arithmetic
is on integers (capacities are binary fractions), so that comparisons are exact and the last cut is a proof without a
tolerance.

T* is always attained by coding in the network (Ahlswede et al. 2000), and by store-and-forward if every vertex is a
rank, or if the capacities into and out of every vertex are equal (Edmonds' arborescence packing; Bang-Jensen et al.
1995). Closed forms: complete 1; d-cube (N-1)/d; n-ring (n-1)/2, directed n-1: (N-1)/d wherever the worst cut is around
one rank of in-degree d.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import BadInput
from opticoll.formulations import outward
from opticoll.formulations.alltoall import PAPER
from opticoll.formulations.arrays import (
    BANDWIDTHS,
    SHARDS,
    TIME,
    Array,
    Links,
    Names,
    arc_labels,
    arc_names,
    vertex_labels,
    vertex_names,
)
from opticoll.formulations.flows.concurrent_flow import all_to_all_topology
from opticoll.formulations.model import Bound, CvxpyModel, Formulation, Named, PyomoModel

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    import scipy.sparse as sp
    from numpy.typing import NDArray

    from opticoll.instances.digraph import Topology
    from opticoll.instances.readers.untrusted import Json, Settings


_SUPER = "sources"


@dataclass(frozen=True)
class WorstCut:
    """The worst cut of an all-gather: ``ranks`` ranks in ``inside``, ``capacity`` out of it, and a rank outside."""

    time: float
    ranks: int
    capacity: float
    inside: tuple[int, ...]
    receiver: int
    rounds: int


def worst_cut(topology: Topology) -> WorstCut:
    """T* and a cut that attains it.

    Raises
    ------
    BadInput
        If some rank cannot be reached from another.
    """
    return _newton(topology)[0]


def optimal_flows(topology: Topology) -> tuple[WorstCut, NDArray[np.float64]]:
    """T*, and for every rank a flow that brings it one unit of each other rank within c T*; shape ``(m, N)``."""
    import networkx as nx

    cut, capacity, ratio = _newton(topology)
    flows = np.zeros((topology.arcs, topology.ranks))
    for j, v in enumerate(topology.terminals.tolist()):
        graph, scale = _graph(topology, capacity, ratio, v)
        _, sent = nx.maximum_flow(graph, _SUPER, v)
        joint: dict[tuple[int, int], int] = {}
        for a, pair in enumerate(zip(topology.tail.tolist(), topology.head.tolist(), strict=True)):
            joint[pair] = joint.get(pair, 0) + capacity[a]
        for a, (u, w) in enumerate(zip(topology.tail.tolist(), topology.head.tolist(), strict=True)):
            if u != v and u != w:  # parallel arcs in proportion; what v would send on it keeps
                flows[a, j] = float(Fraction(sent[u].get(w, 0) * capacity[a], joint[u, w] * scale))
    return cut, flows


def _newton(topology: Topology) -> tuple[WorstCut, list[int], Fraction]:
    from opticoll.formulations.flows.worst_cuts import sink_side

    capacity = _whole_capacities(topology)
    unit = Fraction(float(topology.capacity[0])) / capacity[0]
    ends = topology.terminals.tolist()
    arcs = list(zip(capacity, topology.tail.tolist(), topology.head.tolist(), strict=True))
    best: tuple[Fraction, set[int], int, int] | None = None
    for v in ends:  # everything but v
        entering = sum(c for c, u, w in arcs if w == v != u)
        if entering == 0:
            msg = f"all-gather: no arc enters {topology.labels[v]} of {topology.spec}; use a connected topology"
            raise BadInput(msg)
        ratio = Fraction(len(ends) - 1, entering)
        if best is None or ratio > best[0]:
            best = (ratio, set(range(topology.n)) - {v}, v, entering)
    assert best is not None
    rounds, settled = 0, 0
    order = list(ends)
    while settled < len(order):
        v = order[0]
        p, q = best[0].numerator, best[0].denominator
        scaled = [(u, w, c * p) for c, u, w in arcs if u != w]
        outside = sink_side(topology.n, scaled, [(s, q) for s in ends if s != v], v, q * (len(ends) - 1))
        rounds += 1
        if outside is None:
            settled += 1
            order = order[1:] + order[:1]
            continue
        inside = set(range(topology.n)) - outside
        leaving = sum(c for c, u, w in arcs if u in inside and w not in inside)
        held = len(inside & set(ends))
        if leaving == 0:
            msg = f"all-gather: {topology.labels[v]} of {topology.spec} cannot be reached; use a connected topology"
            raise BadInput(msg)
        best, settled = (Fraction(held, leaving), inside, v, leaving), 0
    ratio, inside, v, leaving = best
    held = len(inside & set(ends))
    time = outward.fraction_down(ratio / unit)
    return (
        WorstCut(time, held, outward.fraction_up(leaving * unit), tuple(sorted(int(u) for u in inside)), v, rounds),
        capacity,
        ratio,
    )


def _whole_capacities(topology: Topology) -> list[int]:
    """Capacities as whole numbers in proportion."""
    fractions = [Fraction(float(c)) for c in topology.capacity]
    common = int(np.lcm.reduce([f.denominator for f in set(fractions)], dtype=object))
    whole = [int(f * common) for f in fractions]
    shared = int(np.gcd.reduce(sorted(set(whole)), dtype=object))
    return [w // shared for w in whole]


def _graph(topology: Topology, capacity: list[int], ratio: Fraction, receiver: int) -> tuple[Any, int]:
    """Capacities c T and the super-source's unit arcs to all but the receiver, all times the returned whole number."""
    import networkx as nx

    graph: Any = nx.DiGraph()
    graph.add_nodes_from(range(topology.n))
    for c, u, w in zip(capacity, topology.tail.tolist(), topology.head.tolist(), strict=True):
        if u != w:
            before = graph[u][w]["capacity"] if graph.has_edge(u, w) else 0
            graph.add_edge(u, w, capacity=before + c * ratio.numerator)
    for s in np.setdiff1d(topology.terminals, [receiver]).tolist():
        graph.add_edge(_SUPER, s, capacity=ratio.denominator)
    return graph, ratio.denominator


NAME = "alltoall.all-gather"


@dataclass(frozen=True, eq=False)
class Gathering:
    """The data of the model above; supply is what every vertex sends towards a receiver, ``(n,)``."""

    topology: Topology
    supply: NDArray[np.float64]

    @property
    def receivers(self) -> NDArray[np.int64]:
        """The ranks, ``(N,)``."""
        return self.topology.terminals

    @property
    def longest(self) -> float:
        """An upper bound on T that no optimum exceeds."""
        return float((self.topology.ranks - 1) / self.topology.capacity.min())

    @property
    def upper(self) -> NDArray[np.float64]:
        """Upper bounds of h, shape ``(m, N)``."""
        blocked = self.topology.tail[:, None] == self.receivers[None, :]
        return np.where(blocked, 0.0, float(self.topology.ranks - 1))

    @property
    def rows(self) -> NDArray[np.bool_]:
        """Where there is a balance row: everywhere but at the receiver, ``(n, N)``."""
        mask = np.ones((self.topology.n, self.topology.ranks), dtype=bool)
        mask[self.receivers, np.arange(self.topology.ranks)] = False
        return mask


def prepare(instance: object, parameters: Settings | None = None) -> Gathering:
    """The data of the model.

    Raises
    ------
    NotApplicable
        If the instance is not a connected topology of at least two ranks.
    """
    topology = all_to_all_topology(instance, NAME)
    supply = np.zeros(topology.n)
    supply[topology.terminals] = 1.0
    return Gathering(topology, supply)


def build_pyomo(data: Gathering) -> PyomoModel:
    """The model in Pyomo: ``h[a,v]``, ``T``, ``balance[u,v]``, ``capacity[a,v]``."""
    import pyomo.environ as pyo

    topology = data.topology
    V, A = vertex_names(topology), arc_names(topology)
    R = [V[v] for v in topology.terminals.tolist()]
    tail = {a: V[u] for a, u in zip(A, topology.tail.tolist(), strict=True)}
    c = dict(zip(A, topology.capacity.tolist(), strict=True))
    into: dict[int | str, list[str]] = {u: [] for u in V}
    out_of: dict[int | str, list[str]] = {u: [] for u in V}
    for a, u in zip(A, topology.head.tolist(), strict=True):
        into[V[u]].append(a)
        out_of[tail[a]].append(a)
    most = len(R) - 1
    model = pyo.ConcreteModel(name="all-gather at optimal throughput")
    model.h = pyo.Var(A, R, bounds=lambda _, a, v: (0, 0 if tail[a] == v else most))
    model.T = pyo.Var(bounds=(0, most / min(c.values())))
    model.time = pyo.Objective(expr=model.T, sense=pyo.minimize)
    model.balance = pyo.Constraint(
        [(u, v) for u in V for v in R if u != v],
        rule=lambda m, u, v: (
            pyo.quicksum(m.h[a, v] for a in out_of[u]) - pyo.quicksum(m.h[a, v] for a in into[u])
            == (1 if u in R else 0)
        ),
    )
    model.capacity = pyo.Constraint(A, R, rule=lambda m, a, v: m.h[a, v] - c[a] * m.T <= 0)
    return PyomoModel(model, {"h": (A, R), "T": ()}, {"balance": (V, R), "capacity": (A, R)})


def build_cvxpy(data: Gathering) -> CvxpyModel:
    """The model in matrix form: ``-M H = supply`` without the receivers' rows, ``H <= c T``."""
    import cvxpy as cp
    import scipy.sparse as sp

    topology, m, N = data.topology, data.topology.arcs, data.topology.ranks
    h = cp.Variable(m * N, name="h", bounds=[0, data.upper.ravel()])
    T = cp.Variable(name="T", bounds=[0, data.longest])
    rows = np.flatnonzero(data.rows.ravel())
    net = sp.csr_array(sp.kron(-topology.incidence(), sp.eye_array(N), format="csr")[rows])
    balance = net @ h == np.repeat(data.supply, N)[rows]
    capacity = h - np.repeat(topology.capacity, N) * T <= 0
    return CvxpyModel(
        cp.Problem(cp.Minimize(T), [balance, capacity]),
        variables={"h": Named(h, (m, N), np.arange(m * N)), "T": Named(T, ())},
        constraints={
            "balance": Named(balance, (topology.n, N), rows),
            "capacity": Named(capacity, (m, N), np.arange(m * N)),
        },
    )


def estimate(data: Gathering) -> dict[str, int]:
    """Size of the model before it is built."""
    m, N, n = data.topology.arcs, data.topology.ranks, data.topology.n
    return {"variables": m * N + 1, "constraints": (n - 1) * N + m * N, "nonzeros": 4 * m * N, "integers": 0}


def arrays(data: Gathering, _names: Collection[str]) -> dict[str, Array]:
    """The flows h and the time T."""
    shape = (data.topology.arcs, data.topology.ranks)
    return {"h": Array(shape, axes=("arc", "receiver"), unit=SHARDS), "T": Array(unit=TIME)}


def index_sets(data: Gathering, _values: object = None) -> dict[str, Names]:
    """Names of arcs and receivers."""
    return {"arc": arc_labels(data.topology), "receiver": vertex_labels(data.topology, data.receivers)}


def links(data: Gathering, values: Mapping[str, NDArray[np.float64]]) -> Links:
    """Shards over every arc: the largest flow towards any receiver, because copies are free."""
    load = np.asarray(values["h"], dtype=float).max(axis=1, initial=0.0)
    return Links(data.topology, load, data.topology.capacity, float(np.asarray(values["T"])), SHARDS, BANDWIDTHS)


def dual_arrays(data: Gathering) -> dict[str, Array]:
    """The duals of ``capacity``."""
    return {"capacity": Array((data.topology.arcs, data.topology.ranks))}


def stated_time(_data: object, values: Mapping[str, NDArray[np.float64]]) -> float:
    """The stated T."""
    return float(np.asarray(values["T"]))


def outflow(topology: Topology, flow: NDArray[np.float64]) -> NDArray[np.float64]:
    """Outflow less inflow of every vertex, for flows with arcs along the first axis."""
    net = np.zeros((topology.n, *flow.shape[1:]))
    np.add.at(net, topology.tail, flow)
    np.subtract.at(net, topology.head, flow)
    return net


def flow_residuals(
    topology: Topology, values: Mapping[str, NDArray[np.float64]], ranks: NDArray[np.int64],
    supply: NDArray[np.float64], *, away: bool = False,
) -> dict[str, float]:  # fmt: skip
    """Worst violation of every block, from numpy alone; flows are relative to one shard, capacities to T.

    Column k of h is a flow towards ``ranks[k]``, or ``away`` from it. ``supply`` is that of every vertex, with ``away``
    its demand, ``(n,)``.
    """
    h, T = np.asarray(values["h"], dtype=float), float(np.asarray(values["T"]))
    if h.shape != (topology.arcs, ranks.size) or not np.isfinite(h).all() or not np.isfinite(T):
        return dict.fromkeys(("shape", "nonnegative", "blocked", "balance", "capacity"), np.inf)
    net = (-1.0 if away else 1.0) * outflow(topology, h) - supply[:, None]
    net[ranks, np.arange(ranks.size)] = 0.0
    ends = topology.head if away else topology.tail
    over = (h / topology.capacity[:, None] - T).max(initial=0.0)
    return {
        "shape": 0.0,
        "nonnegative": float(max(0.0, -h.min(initial=0.0), -T)),
        "blocked": float(np.abs(h[ends[:, None] == ranks[None, :]]).max(initial=0.0)),
        "balance": float(np.abs(net).max(initial=0.0)),
        "capacity": float(max(over, 0.0)) / max(abs(T), np.finfo(float).tiny),
    }


def residuals(data: Gathering, values: Mapping[str, NDArray[np.float64]]) -> dict[str, float]:
    """Worst violation of every block, see :func:`flow_residuals`."""
    return flow_residuals(data.topology, values, data.receivers, data.supply)


def length_bound(data: Gathering, lengths: NDArray[np.float64]) -> float:
    """The lower bound on T that lengths prove, shape ``(m, N)``, rounded down: the best over the receivers.

    Lengths are read as by :func:`opticoll.formulations.flows.concurrent_flow.length_bound`.
    """
    from scipy.sparse.csgraph import dijkstra

    sends = data.supply > 0

    def paid(j: int, matrix: sp.csr_array) -> float:
        reach = dijkstra(matrix.T, indices=data.receivers[j])
        return outward.dot_down(data.supply[sends], reach[sends])

    return best_length_bound(data.topology, lengths, paid)


def best_length_bound(
    topology: Topology, lengths: NDArray[np.float64], paid: Callable[[int, sp.csr_array], float]
) -> float:
    """The largest of the bounds distances / (capacity times lengths) over the columns of ``lengths``, rounded down.

    ``paid(j, matrix)`` is the sum of the distances that the flow of column j covers, at the lengths of the matrix.
    """
    best, scale = 0.0, outward.exponent(topology.capacity)
    capacity = outward.scaled_up(topology.capacity, -scale)
    for j in range(lengths.shape[1]):
        mine = outward.usable_lengths(topology.capacity, lengths[:, j])
        if mine.size:
            distances = float(outward.down(paid(j, topology.length_matrix(mine)), topology.n))
            best = max(best, outward.quotient_down(distances, outward.dot_up(capacity, mine)))
    return max(float(outward.scaled_down(best, -scale)), 0.0)


def certify(data: Gathering, duals: Mapping[str, NDArray[np.float64]]) -> Bound | None:
    """The bound that the duals of ``capacity`` prove, read as lengths towards every receiver."""
    found = np.asarray(duals.get("capacity", np.zeros(0)), dtype=float)
    if found.shape != (data.topology.arcs, data.topology.ranks):
        return None
    return Bound("receiver-lengths", length_bound(data, -found), "lengths from the duals, shortest paths recomputed")


def bounds(data: Gathering) -> list[Bound]:
    """The worst cut, which is the optimum, and what enters one rank."""
    topology = data.topology
    entering = np.bincount(topology.head, topology.capacity, topology.n)[topology.terminals]
    cut = worst_cut(topology)
    room = float(outward.up(entering.min(), int(topology.in_degree.max())))
    others_over = max(outward.quotient_down(topology.ranks - 1, room), 0.0)
    reason = f"{cut.ranks} ranks behind a capacity of {cut.capacity:g}, found by {cut.rounds} max-flows"
    return [
        Bound("node-cut", others_over, "what enters the rank that gets least", "beyond"),
        Bound("worst-cut", cut.time, reason, "beyond", exact=True, detail={"inside": list(cut.inside)}),
    ]


def metrics(data: Gathering, value: float | None) -> dict[str, Json]:
    """T, its inverse, the number of ranks."""
    return time_metrics(data.topology, value)


def time_metrics(topology: Topology, value: float | None) -> dict[str, Json]:
    """T, its inverse, ranks and diameter, for formulations that minimise T."""
    positive = value is not None and value > 0
    return {
        "T": value,
        "F": 1.0 / value if positive and value is not None else None,
        "ranks": topology.ranks,
        "diameter": int(topology.diameter),
    }


def derived(data: Gathering) -> list[Fraction]:
    """The bound of T, (N-1) / min c."""
    return [Fraction(data.topology.ranks - 1) / outward.entered(float(data.topology.capacity.min()))]


FORMULATION = Formulation(
    name=NAME,
    paper=PAPER,
    where="beyond the paper",
    title="All-gather at optimal throughput: a flow to every rank, copies free",
    sense="min",
    problem="LP",
    label_invariant=lambda _parameters: True,
    prepare=prepare,
    build={"cvxpy": build_cvxpy, "pyomo": build_pyomo},
    residuals=residuals,
    objective=stated_time,
    bounds=bounds,
    arrays=arrays,
    certify=certify,
    dual_arrays=dual_arrays,
    metrics=metrics,
    estimate=estimate,
    derived=derived,
    size="N m + 1 variables",
    meaning="time T [shards / link bandwidth]",
    shards=True,
    index_sets=index_sets,
    links=links,
)

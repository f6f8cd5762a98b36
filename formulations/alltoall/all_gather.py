"""All-gather in minimum time: every rank receives the shards of all others, and copies are free.

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
sent over it once. Arcs out of v are fixed at 0. The upper bound on T excludes no optimum: a spanning tree attains it.

Certificate. For any lengths l_av >= 0 and any v: T >= sum_{s != v} dist_l(s, v) / sum_a c_a l_av.

Worst cut. The shards of the ranks in S must leave S at least once if some rank is not in S:

    T >= |S & R| / c(S -> V - S),        T* = max over such S.

For one receiver v, the maximum over S without v is the smallest T at which a super-source, joined to every other rank
by an arc of capacity 1, can send N-1 units to v under capacities c T (max-flow min-cut). Newton's method starts at some
T; any v with a smaller max-flow gives a cut of larger ratio, which is the next T; if there is none, T = T*. The
arithmetic is on integers (capacities are binary fractions), so comparisons are exact and the last cut is a proof
without any tolerance.

T* is always attained by network coding (Ahlswede et al. 2000), and by store-and-forward if every vertex is a
rank, or if the capacities into and out of every vertex are equal (Edmonds' arborescence packing; Bang-Jensen et al.
1995). Otherwise vertices that are not ranks may have to copy or code what they forward: T* is a lower bound for
switches that only forward, as those of schedules do, and a schedule states what that costs. Closed forms: complete 1;
d-cube (N-1)/d; n-ring (n-1)/2, directed n-1: (N-1)/d wherever the worst cut is around one rank of in-degree d.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from opticoll.formulations import rounding
from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.flows.concurrent_flow import all_to_all_topology
from opticoll.formulations.index import Index
from opticoll.formulations.model import Bound, CvxpyModel, Formulation, PyomoModel
from opticoll.formulations.variables import (
    BANDWIDTHS,
    SHARDS,
    TIME,
    Array,
    Axis,
    Links,
    arc_axis,
    entries,
    incident_arcs,
    vertex_axis,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Mapping

    from opticoll.formulations.alltoall.all_reduce import AllReduction
    from opticoll.instances.topology import F64, I64, Mask, Topology
    from opticoll.types import Json, Settings

NAME = "alltoall.all-gather"


# Flows that share arcs ------------------------------------------------------------------------------------------------


def stated_time(_data: object, values: Mapping[str, F64]) -> float:
    """The stated T."""
    return float(np.asarray(values["T"]))


def throughput_metrics(data: SharedFlows | AllReduction, value: float | None) -> dict[str, Json]:
    """T, its inverse, ranks and diameter, for formulations that minimise T."""
    return {
        "T": value,
        "F": 1.0 / value if value is not None and value > 0 else None,
        "ranks": data.topology.num_ranks,
        "diameter": int(data.topology.diameter),
    }


@dataclass(frozen=True, eq=False)
class SharedFlows(Formulation):
    """Data of a model with a flow h_v for every end v, where the flows of different ends share an arc.

    Parameters
    ----------
    collective
        The collective.
    topology, ends
        The network, and the vertices v, ``(K,)``.
    supply
        What every vertex sends towards each end; with ``away``, what it receives from each; ``(n,)``.
    most
        Upper bound on h, and on T times the smallest capacity.
    away
        Whether flows lead away from their ends: the same model on reversed arcs.
    """

    where = "beyond the paper"
    sense = "min"
    problem = "LP"
    meaning = "time T [shards / link bandwidth]"
    shards = True
    objective = stated_time
    metrics = throughput_metrics

    collective: str
    topology: Topology
    ends: I64
    supply: F64
    most: int
    away: bool = False

    @classmethod
    def between_all(cls, instance: object, *, away: bool = False) -> Self:
        """The problem with a flow for every rank, to which (from which) every other rank sends (receives) one shard.

        Raises
        ------
        NotApplicable
            If the instance is not a connected topology of at least two ranks.
        """
        topology = all_to_all_topology(instance, cls.name)
        supply = np.isin(np.arange(topology.n), topology.terminals).astype(float)
        short = cls.name.rpartition(".")[-1]
        return cls(short, topology, topology.terminals, supply, topology.num_ranks - 1, away)

    @property
    def role(self) -> str:
        """Name of an end in messages."""
        return "contributor" if self.away else "receiver"

    @property
    def root(self) -> int | None:
        """Vertex that supplies everything; None if there are several."""
        result = np.flatnonzero(self.supply)
        return int(result[0]) if result.size == 1 else None

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of h, ``(m, K)``."""
        return self.topology.arcs, self.ends.size

    @cached_property
    def used(self) -> Mask:
        """Flows that do not lead back to their end (from it with ``away``), ``(m, K)``; the others are 0."""
        back = self.topology.head if self.away else self.topology.tail
        return np.asarray(back[:, None] != self.ends)

    def sets(self) -> dict[str, Axis]:
        """The ends."""
        return {self.role: vertex_axis(self.role, self.topology, self.ends)}

    def estimate(self) -> dict[str, int]:
        """Size of the model before it is built."""
        topology, K = self.topology, self.ends.size
        degrees = topology.out_degree[self.ends], topology.in_degree[self.ends]
        absent, ending = (int(sum(one)) for one in (reversed(degrees) if self.away else degrees))
        flows, rows = topology.arcs * K - absent, (topology.n - 1) * K
        return {"variables": flows + 1, "constraints": rows + flows, "nonzeros": 4 * flows - ending, "integers": 0}

    def arrays(self, _names: Collection[str]) -> dict[str, Array]:
        """The flows h, the time T and the duals of ``capacity``."""
        axes = arc_axis(self.topology), vertex_axis(self.role, self.topology, self.ends)
        return {"h": Array(axes, unit=SHARDS), "T": Array(unit=TIME), "capacity": Array(axes, dual=True)}

    def links(self, values: Mapping[str, F64]) -> Links:
        """Shards over every arc: the largest flow of any end, because copies and sums are free."""
        load = np.asarray(values["h"], dtype=float).max(axis=1, initial=0.0)
        return Links(self.topology, load, self.topology.capacity, float(np.asarray(values["T"])), SHARDS, BANDWIDTHS)

    def residuals(self, values: Mapping[str, F64]) -> dict[str, float]:
        """Worst violation of every block, from numpy alone; flows are relative to one shard, capacities to T."""
        topology, ends = self.topology, self.ends
        h, T = np.asarray(values["h"], dtype=float), float(np.asarray(values["T"]))
        if h.shape != self.shape or not np.isfinite(h).all() or not np.isfinite(T):
            return dict.fromkeys(("shape", "nonnegative", "blocked", "balance", "capacity"), np.inf)
        net = (-1.0 if self.away else 1.0) * outflow(topology, h) - self.supply[:, None]
        net[ends, np.arange(ends.size)] = 0.0
        over = (h / topology.capacity[:, None] - T).max(initial=0.0)
        return {
            "shape": 0.0,
            "nonnegative": float(max(0.0, -h.min(initial=0.0), -T)),
            "blocked": float(np.abs(h[~self.used]).max(initial=0.0)),
            "balance": float(np.abs(net).max(initial=0.0)),
            "capacity": float(max(over, 0.0)) / max(abs(T), np.finfo(float).tiny),
        }

    def certify(self, duals: Mapping[str, F64]) -> Bound | None:
        """Bound proven by the duals of ``capacity``, read as lengths towards or away from every end."""
        values = np.asarray(duals.get("capacity", np.zeros(0)), dtype=float)
        if values.shape != self.shape:
            return None
        return Bound(
            f"{self.role}-lengths", length_bound(self, -values), "lengths from the duals, shortest paths recomputed"
        )

    def derived(self) -> list[Fraction]:
        """Upper bound on T."""
        return [Fraction(self.most) / rounding.entered(float(self.topology.capacity.min()))]


def outflow(topology: Topology, flow: F64) -> F64:
    """Outflow less inflow of every vertex, for flows with arcs along the first axis."""
    net = np.zeros((topology.n, *flow.shape[1:]))
    np.add.at(net, topology.tail, flow)
    np.subtract.at(net, topology.head, flow)
    return net


def length_bound(data: SharedFlows, lengths: F64) -> float:
    """Lower bound on T proven by lengths ``(m, K)``, rounded down: the best over the ends.

    Lengths are read as by :func:`opticoll.formulations.flows.concurrent_flow.ConcurrentFlow.length_bound`.
    """
    from scipy.sparse.csgraph import dijkstra

    sends, topology = data.supply > 0, data.topology
    best, scale = 0.0, rounding.exponent(topology.capacity)
    capacity = rounding.scaled_up(topology.capacity, -scale)
    for j, v in enumerate(data.ends.tolist()):
        mine = rounding.usable_lengths(topology.capacity, lengths[:, j])
        if mine.size:
            matrix = topology.length_matrix(mine)
            reach = dijkstra(matrix if data.away else matrix.T, indices=v)
            paid = rounding.dot_down(data.supply[sends], reach[sends])
            distances = float(rounding.down(paid, topology.n))
            best = max(best, rounding.quotient_down(distances, rounding.dot_up(capacity, mine)))
    return max(float(rounding.scaled_down(best, -scale)), 0.0)


# All-gather -----------------------------------------------------------------------------------------------------------


def optimal_flows(topology: Topology) -> tuple[Fraction, frozenset[int], F64]:
    """T*, a set that attains it, and for every rank a flow of one unit from each other rank within c T*, ``(m, N)``.

    Raises
    ------
    BadInput
        If some rank cannot be reached from another.
    """
    import networkx as nx

    from opticoll.formulations.flows.worst_cuts import least_time

    time, inside = least_time(topology, [1] * topology.num_ranks)
    room = [Fraction(c) * time for c in topology.capacity.tolist()]
    scale = int(np.lcm.reduce([c.denominator for c in set(room)], dtype=object))
    whole = [int(c * scale) for c in room]
    ends = list(zip(topology.tail.tolist(), topology.head.tolist(), strict=True))
    joint: dict[tuple[int, int], int] = {}
    for arc, c in zip(ends, whole, strict=True):
        joint[arc] = joint.get(arc, 0) + c
    flows = np.zeros((topology.arcs, topology.num_ranks))
    source = topology.n
    for j, v in enumerate(topology.terminals.tolist()):
        graph: Any = nx.DiGraph()
        graph.add_nodes_from(range(topology.n))
        graph.add_edges_from((u, w, {"capacity": c}) for (u, w), c in joint.items() if u != w)
        graph.add_edges_from((source, s, {"capacity": scale}) for s in topology.terminals.tolist() if s != v)
        _, sent = nx.maximum_flow(graph, source, v)
        for a, (u, w) in enumerate(ends):
            if u not in (v, w):  # parallel arcs in proportion; v keeps what it would send on
                flows[a, j] = float(Fraction(sent[u][w] * whole[a], joint[u, w] * scale))
    return time, inside, flows


def cut_bounds(data: SharedFlows, node: str, what: str) -> list[Bound]:
    """Bounds of the worst cut, which is the optimum, and of the links of one rank."""
    from opticoll.formulations.flows.worst_cuts import least_time, reversed_arcs

    topology = data.topology
    ends, degree = (topology.tail, topology.out_degree) if data.away else (topology.head, topology.in_degree)
    passing = np.bincount(ends, topology.capacity, topology.n)[topology.terminals]
    room = float(rounding.up(passing.min(), int(degree.max())))
    exact_room = rounding.exact_sum(topology.capacity[ends == topology.terminals[int(np.argmin(passing))]])
    time, inside = least_time(reversed_arcs(topology) if data.away else topology, [1] * topology.num_ranks)
    held = int(np.isin(topology.terminals, list(inside)).sum())
    return [
        Bound(
            "node-cut",
            max(rounding.quotient_down(data.most, room), 0.0),
            node,
            fraction=rounding.quotient(Fraction(data.most), exact_room),
        ),
        Bound(
            "worst-cut",
            rounding.fraction_down(time),
            f"{what}{held} ranks behind a capacity of {float(held / time):g}, found by max-flows",
            exact=True,
            detail={"inside": sorted(inside)},
            fraction=rounding.quotient(Fraction(held), capacity_out_of(topology, inside, away=data.away)),
        ),
    ]


def capacity_out_of(topology: Topology, inside: Collection[int], *, away: bool = False) -> Fraction | None:
    """Capacity of the arcs out of a set of vertices, or into it with ``away``, of the decimals entered."""
    held = np.isin(np.arange(topology.n), list(inside))
    starts, ends = (topology.head, topology.tail) if away else (topology.tail, topology.head)
    return rounding.exact_sum(topology.capacity[held[starts] & ~held[ends]])


class AllGather(SharedFlows):
    """The problem."""

    name = NAME
    variables: ClassVar = {"h": ("arc", "receiver"), "T": ()}
    constraints: ClassVar = {"balance": ("vertex", "receiver"), "capacity": ("arc", "receiver")}

    @classmethod
    def prepare(cls, instance: object, parameters: Settings | None = None) -> Self:
        """The data of the model; errors as :meth:`SharedFlows.between_all`."""
        return cls.between_all(instance)

    def cvxpy(self) -> CvxpyModel:
        """The model in CVXPY, over the flows that do not lead back to their receiver."""
        b, topology, nodes = Cvx(self), self.topology, np.arange(self.topology.n)
        flows = Index.of_mask("arc receiver", topology.tail[:, None] != self.ends)
        flows = flows.given(tail=topology.tail[flows["arc"]], head=topology.head[flows["arc"]])
        rows = Index.of_mask("vertex receiver", nodes[:, None] != self.ends)
        h, T = b.var("h", upper=self.most, over=flows), b.var("T", upper=self.most / topology.capacity.min())
        net = rows.of(flows, tail="vertex") - rows.of(flows, head="vertex")
        b.row("balance", net @ h == self.supply[rows["vertex"]], over=rows)
        b.row("capacity", h <= topology.capacity[flows["arc"]] * T, over=flows)
        return b.minimize(T)

    def pyomo(self) -> PyomoModel:
        """The model in Pyomo: ``h[a,v]``, ``T``, ``balance[u,v]``, ``capacity[a,v]``."""
        from pyomo.core import quicksum

        b, (into, out_of) = Pyo(self), incident_arcs(self.topology)
        A, V = b.sets("arc", "vertex")
        c, supply = entries(self.topology.capacity, A), entries(self.supply, V)
        h = b.var("h", upper=self.most, where=lambda a, v: a not in out_of[v])
        T = b.var("T", upper=self.most / min(c.values()))

        def balance(u: Hashable, v: Hashable) -> Any:
            return quicksum(h[a, v] for a in out_of[u]) - quicksum(h[a, v] for a in into[u]) == supply[u,]

        b.row("balance", balance, where=lambda u, v: u != v)
        b.row("capacity", lambda a, v: h[a, v] <= c[a,] * T, where=lambda a, v: a not in out_of[v])
        return b.minimize(T)

    def bounds(self) -> list[Bound]:
        """Bounds of the worst cut, which is the optimum, and of the arcs into one rank."""
        return cut_bounds(self, "what enters the rank that gets least", "")

    @classmethod
    def label_invariant(cls, parameters: Settings) -> bool:
        """Isomorphic topologies have the same optimum."""
        return True


FORMULATION = AllGather

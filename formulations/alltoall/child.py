r"""One child LP of the decomposition: split a source's flow by destination.

Source  all-to-all paper, (10)-(14)
Sets    u in V vertices; a in A arcs; t in R ranks other than the source s
Data    g_a >= 0 the master's flow of source s over arc a, (m,); D_t > 0 demand of t from s [shards], (|R|,): 1 (the
        paper's) or that of the master (``--set demand=...``), whose ranks without demand are not in R
Vars    f_at >= 0 flow for destination t over arc a, (m, N-1); F >= 0 (the paper's F_s)

max F  s.t.
    balance[u,t]   (M f)_ut = F D_t [u = t]   u != s        (12), (13)
    capacity[a]    sum_t f_at <= g_a                        (11)

F_s >= F for every s and every solution (g, F) of the master, which may bring more than F D to some destinations (its
balance is an inequality). At an optimal one min_s F_s = F*: together the children fit into the capacities. So F_s
depends on the solution, and 1/F_s is the time of the shards of s within its share g_s, not the T = 1/F* of the
all-to-all, which it can be below.

The source is ``--set source=V`` (a rank number, counted from 0). The flow g is a solution of ``alltoall.master``, which
is solved first; the record names its run. A child does not need an LP (method ``flow-decomposition``); it is included
because the paper solves it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from opticoll.formulations import rounding
from opticoll.formulations.alltoall.master import Master
from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.flows.concurrent_flow import ConcurrentFlow, demand_parameter, demanded_traffic
from opticoll.formulations.model import (
    Bound,
    CvxpyModel,
    Formulation,
    NeededSolution,
    NotApplicable,
    Parameter,
    PyomoModel,
)
from opticoll.formulations.variables import Array, Axis, incident_arcs, vertex_axis

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterable, Mapping
    from fractions import Fraction

    from opticoll.formulations.variables import Links
    from opticoll.instances.topology import F64, Topology
    from opticoll.types import Json, Settings

NAME = "alltoall.child"


class Child(ConcurrentFlow, Formulation):
    """The problem: the flow of one source, split by destination."""

    name = NAME
    where = "(10)-(14)"
    sense = "max"
    problem = "LP"
    parameters = (
        Parameter("source", int, default=0, help="number of the rank whose flow is split"),
        demand_parameter(),
    )
    needs = NeededSolution(Master.name)
    concurrent = "F"
    meaning = "concurrent flow F_s of one source within its share of the master's flow [link bandwidths / shard]"
    shards = True
    variables: ClassVar = {"f": ("arc", "destination"), "F": ()}
    constraints: ClassVar = {"balance": ("vertex", "destination"), "capacity": ("arc",)}
    changeable: ClassVar = {"c": ("arc",), "D": ("vertex", "destination")}

    @classmethod
    def prepare(
        cls, instance: object, parameters: Settings | None = None, needed: Mapping[str, F64] | None = None
    ) -> Child:
        """The data of the model; ``needed`` are the values of a solution of ``alltoall.master``.

        Raises
        ------
        NotApplicable
            If the instance is not a topology of at least two ranks with a path for every demand, or ``source`` is
            not one of its ranks or sends nothing.
        """
        given = cls._completed(parameters)
        topology, traffic = demanded_traffic(instance, given, NAME)
        number = given["source"]
        if not 0 <= number < topology.num_ranks:
            msg = f"{NAME}: source={number} is not a rank of {topology.spec}; ranks are 0..{topology.num_ranks - 1}"
            raise NotApplicable(msg)
        # Without a master solution (for sizes and refusals) the arcs keep their own capacities.
        column = number if traffic is None else int(traffic[:number].any(axis=1).sum())
        if traffic is not None and not traffic[number].any():
            senders = np.flatnonzero(traffic.any(axis=1)).tolist()
            msg = f"{NAME}: source={number} sends nothing under this demand; choose one of {str(senders[:20])[1:-1]}"
            raise NotApplicable(msg)
        capacity = topology.capacity if needed is None else np.asarray(needed["g"], dtype=float)[:, column]
        amounts = None if traffic is None else traffic[number]
        return child_of(topology, number, np.maximum(capacity, 0.0), amounts)

    def sets(self) -> dict[str, Axis]:
        """The destinations."""
        return {"destination": vertex_axis("destination", self.topology, np.argmax(self.demand, axis=0))}

    def cvxpy(self) -> CvxpyModel:
        """The model in CVXPY: ``M f = F D`` without the rows of the source, ``f 1 <= c``."""
        import cvxpy as cp

        b, M = Cvx(self), self.topology.incidence()  # (n, m): +1 where an arc enters, -1 where it leaves
        c, D = b.data("c", self.capacity), b.data("D", self.demand)
        f, F = b.var("f", upper=np.where(self.blocked, 0.0, np.inf)), b.var("F")
        b.row("balance", M @ f == F * D, where=self.served)
        b.row("capacity", cp.sum(f, axis=1) <= c)
        return b.maximize(F)

    def pyomo(self) -> PyomoModel:
        """The model in Pyomo: ``f[a,t]``, ``F``, ``balance[u,t]``, ``capacity[a]``."""
        from pyomo.core import quicksum

        b, (into, out_of) = Pyo(self), incident_arcs(self.topology)
        V, R = b.sets("vertex", "destination")
        s = V[self.sources[0]]
        c, D = b.data("c", self.capacity), b.data("D", self.demand, where=lambda u, t: u == t)
        f, F = b.var("f", upper=np.where(self.blocked, 0.0, np.inf)), b.var("F")

        def balance(u: Hashable, t: Hashable) -> object:
            net = quicksum(f[a, t] for a in into[u]) - quicksum(f[a, t] for a in out_of[u])
            return net - (D[t, t] * F if u == t else 0) == 0

        b.row("balance", balance, where=lambda u, t: u != s)
        b.row("capacity", lambda a: quicksum(f[a, t] for t in R) <= c[a])
        return b.maximize(F)

    def bounds(self) -> list[Bound]:
        """Bounds of hop distances under g, and of the inflow of g into each destination."""
        targets = np.argmax(self.demand, axis=0)
        inflow = np.bincount(self.topology.head, self.capacity, self.topology.n)[targets] / self.demand.max(axis=0)
        hop = self.length_bound(np.ones(self.topology.arcs))
        return [
            Bound("distance", hop, "Theorem 1 under the capacities g", "alltoall"),
            Bound(
                "inflow",
                float(rounding.up(inflow.min(), int(self.topology.in_degree.max()) + 1)),
                "what g brings to the destination that gets least",
                "alltoall",
            ),
        ]

    def metrics(self, value: float | None) -> dict[str, Json]:
        """F_s, the number of ranks and their largest distance; no T, which only all sources together have."""
        known = super().metrics(value)
        return {"F_s": value, "ranks": known["ranks"], "diameter": known["diameter"]}

    def links(self, values: Mapping[str, F64]) -> Links:
        """Flow of the source over every arc, relative to the capacity of the arc (and not to the share g)."""
        return replace(super().links(values), capacity=self.topology.capacity)

    def arrays(self, names: Collection[str]) -> dict[str, Array]:
        """Shapes and ranges of the arrays."""
        return self.arrays_along(self.sets()["destination"])

    def derived(self) -> Iterable[Fraction]:
        """The demands."""
        return rounding.decimals(self.demand)


def child_of(topology: Topology, number: int, capacity: F64, shards: F64 | None = None) -> Child:
    """Child LP of rank ``number`` under the master's flow ``capacity``, shape ``(m,)``.

    ``shards`` are the demands of all ranks from this one, ``(N,)``; if None, 1 for every other rank.
    """
    source = topology.terminals[number]
    to = np.flatnonzero(np.arange(topology.num_ranks) != number if shards is None else shards)
    amount = None if shards is None else shards[to]
    sources = np.full(to.size, source)
    return Child.by_commodity(topology, sources, topology.terminals[to], amount, capacity=capacity)


FORMULATION = Child

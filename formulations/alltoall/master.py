"""Maximum concurrent flow grouped by source: the master LP of the decomposition.

Source  all-to-all paper, (6)-(9)
Sets    u in V vertices; a in A arcs; s in S sources (the ranks that send), ascending
Data    c_a > 0 capacity [link bandwidths], (m,); D_su >= 0 demand of rank u from source s [shards], (N, N): 1 for
        all u != s (the paper's) or ``--set demand=...`` (:mod:`opticoll.instances.demands`)
Vars    g_as >= 0 flow from source s over arc a, (m, |S|); F >= 0 concurrent flow [1 / time]

max F  s.t.
    balance[u,s]   inflow_u(g_s) - outflow_u(g_s) >= F D_su  (>= 0 where u is not a rank)  u != s        (8)
    capacity[a]    sum_s g_as <= c_a                                                                     (7)

Arcs into s are fixed at 0. The optimum is that of ``alltoall.link-mcf`` with 1/(N-1) of its variables: m |S| + 1.
T = 1/F is the time in which all of D is sent. Certificate: F <= sum_a c_a l_a / sum_su D_su dist_l(s,u) for any lengths
l >= 0. Closed forms: see :mod:`opticoll.formulations.flows`. For a single pair, F is the maximum flow over
the demand. The paper reports solving it at N=1000, d=4 in 40 minutes with MOSEK (figure 6).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from opticoll.formulations import rounding
from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.flows import flow_bounds
from opticoll.formulations.flows.concurrent_flow import (
    ConcurrentFlow,
    demand_parameter,
    demanded_traffic,
    equal_demands,
    size,
)
from opticoll.formulations.foreseen_size import ForeseenSize
from opticoll.formulations.model import CvxpyModel, Formulation, PyomoModel
from opticoll.formulations.variables import Axis, incident_arcs, vertex_axis
from opticoll.instances.readers.reading import PREFIX
from opticoll.instances.topology import Topology
from opticoll.types import Settings

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable
    from fractions import Fraction


NAME = "alltoall.master"


class Master(ConcurrentFlow, ForeseenSize, Formulation):
    """The problem: flows by source."""

    name = NAME
    where = "(6)-(9)"
    sense = "max"
    problem = "LP"
    parameters = (demand_parameter(),)
    concurrent = "F"
    meaning = "concurrent flow F [link bandwidths / shard]; T = 1/F"
    shards = True
    variables: ClassVar = {"g": ("arc", "source"), "F": ()}
    constraints: ClassVar = {"balance": ("vertex", "source"), "capacity": ("arc",)}
    changeable: ClassVar = {"c": ("arc",), "D": ("vertex", "source")}
    label_invariant = staticmethod(equal_demands)

    bounds = flow_bounds.bounds
    closed_forms = flow_bounds.closed_forms

    @classmethod
    def prepare(cls, instance: object, parameters: Settings | None = None) -> Self:
        """The problem on a topology.

        Raises
        ------
        NotApplicable
            If the instance is not a topology of at least two ranks with a path for every demand.
        BadInput
            For a demand that cannot be read (:func:`opticoll.instances.demands.read_demand`).
        """
        return cls.by_source(*demanded_traffic(instance, cls._completed(parameters), NAME))

    def sets(self) -> dict[str, Axis]:
        """The ranks that send."""
        return {"source": vertex_axis("source", self.topology, self.sources)}

    def cvxpy(self) -> CvxpyModel:
        """The model in CVXPY: ``M g >= F D`` without the rows of the sources, ``g 1 <= c``."""
        import cvxpy as cp

        b, M = Cvx(self), self.topology.incidence()  # (n, m): +1 where an arc enters, -1 where it leaves
        c, D = b.data("c", self.capacity), b.data("D", self.demand)
        g, F = b.var("g", upper=np.where(self.blocked, 0.0, np.inf)), b.var("F")
        b.row("balance", M @ g >= F * D, where=self.served)
        b.row("capacity", cp.sum(g, axis=1) <= c)
        return b.maximize(F)

    def pyomo(self) -> PyomoModel:
        """The model in Pyomo: ``g[a,s]``, ``F``, ``balance[u,s]``, ``capacity[a]``."""
        from pyomo.core import quicksum

        b, (into, out_of) = Pyo(self), incident_arcs(self.topology)
        (S,) = b.sets("source")
        c, D = b.data("c", self.capacity), b.data("D", self.demand)
        g, F = b.var("g", upper=np.where(self.blocked, 0.0, np.inf)), b.var("F")

        def balance(u: Hashable, s: Hashable) -> object:
            net = quicksum(g[a, s] for a in into[u]) - quicksum(g[a, s] for a in out_of[u])
            return net - D[u, s] * F >= 0

        b.row("balance", balance, where=lambda u, s: u != s)
        b.row("capacity", lambda a: quicksum(g[a, s] for s in S) <= c[a])
        return b.maximize(F)

    @staticmethod
    def early_estimate(instance: object, parameters: Settings) -> dict[str, int] | None:
        """Size of the model for all ranks; None for a demand from a file or data, whose sources are not yet known."""
        demand = parameters["demand"]
        if not isinstance(instance, Topology) or getattr(demand, "data", None) is not None:
            return None
        return None if str(demand).startswith(PREFIX) else size(instance, instance.num_ranks)

    def derived(self) -> Iterable[Fraction]:
        """The demands."""
        return rounding.decimals(self.demand)


FORMULATION = Master

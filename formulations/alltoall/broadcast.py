"""Broadcast in minimum time: every rank receives the shard of one root, and copies are free.

Source  beyond the all-to-all paper; disjoint branchings: Edmonds 1973; network coding: Ahlswede, Cai, Li & Yeung, IEEE
        Trans. Inf. Theory 46(4), 2000; as packing of trees over switches: ForestColl (Zhao et al., 2024)
Sets    u in V vertices (n); a in A arcs (m); r in V the root, a rank; v in R receiving ranks, all but r (N - 1)
Data    c_a > 0 capacity [link bandwidths], (m,); the root has one shard
Vars    0 <= h_av <= 1  flow towards v over arc a [shards], (m, N-1); 0 <= T <= 1 / min_a c_a  time
        [shards / link bandwidth]

min T  s.t.
    balance[u,v]    outflow_u(h_v) - inflow_u(h_v) = 1  at u = r, 0 elsewhere      u != v
    capacity[a,v]   h_av <= c_a T                                                  a not out of v

This formulation is ours. It is the model of :mod:`opticoll.formulations.alltoall.all_gather` with all supply at r:
flows towards different receivers do not add up, because a copy is made where their paths split. Arcs out of v are fixed
at 0. The upper bounds exclude no optimum, so the checker need not know them: a flow without cycles carries at most the
one shard that v receives, and a spanning tree attains that time.

Certificate. For any lengths l_av >= 0 and any v: T >= dist_l(r, v) / sum_a c_a l_av.

Minimum cut. The shard must leave every set S that contains r but not all ranks:

    T >= 1 / c(S -> V - S),        T* = max over such S = 1 / min_v maxflow(r, v).

T* is attained by store-and-forward: as many arc-disjoint trees from r to all ranks exist as the minimum cut admits, if
no more capacity leaves a vertex that is not a rank than enters it (Edmonds; Bang-Jensen, Frank & Jackson 1995).
*Reduce*, the sum of all ranks at r, is the same on the reversed topology, with sums for copies. Closed forms: complete
1/(N-1), d-cube 1/d, n-ring 1/2, directed n-ring 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.flows import shared_flows as shared
from opticoll.formulations.index import Index
from opticoll.formulations.model import CvxpyModel, Formulation, PyomoModel
from opticoll.formulations.parameters import Parameter

if TYPE_CHECKING:
    from collections.abc import Hashable

    from opticoll.formulations.model import Values
    from opticoll.instances.topology import F64, I64, Topology


@dataclass(frozen=True, eq=False)
class Broadcast(Formulation):
    """The problem: a flow of one shard from the root towards every other rank.

    ``ends`` are R, ``(N-1,)``, ``supply`` the shards of every vertex, ``(n,)``.
    """

    name = "alltoall.broadcast"
    where = "beyond the paper"
    meaning = "time T [shards / link bandwidth]"
    variables: ClassVar = {"h": ("arc", "receiver"), "T": ()}
    constraints: ClassVar = {"balance": ("vertex", "receiver"), "capacity": ("arc", "receiver")}
    units: ClassVar = shared.UNITS
    _beside = (shared,)
    parameters = (Parameter("root", int, 0, "rank that has the shard, counted from 0"),)

    bounds = shared.root_bounds
    _prepare = classmethod(shared.from_root)

    topology: Topology
    root: int
    ends: I64
    supply: F64
    most: ClassVar = 1
    away: ClassVar = False

    def cvxpy(self) -> CvxpyModel:
        """The model in CVXPY, over the flows that do not lead back to their receiver."""
        b, topology, c, nodes = Cvx(self), self.topology, self.topology.capacity, np.arange(self.topology.n)
        flows = Index.of_mask("arc receiver", topology.tail[:, None] != self.ends)
        flows = flows.given(tail=topology.tail[flows["arc"]], head=topology.head[flows["arc"]])
        rows = Index.of_mask("vertex receiver", nodes[:, None] != self.ends)
        h, T = b.var("h", upper=self.most, over=flows), b.var("T", upper=self.most / c.min())
        net = rows.of(flows, tail="vertex") - rows.of(flows, head="vertex")
        b.row("balance", net @ h == self.supply[rows["vertex"]], over=rows)
        b.row("capacity", h <= c[flows["arc"]] * T, over=flows)
        return b.minimize(T)

    def pyomo(self) -> PyomoModel:
        """The model in Pyomo: ``h[a,v]``, ``T``, ``balance[u,v]``, ``capacity[a,v]``."""
        b = Pyo(self)
        into, out_of = b.incident()
        c, supply = b.by_label(self.topology.capacity, "arc"), b.by_label(self.supply, "vertex")
        h = b.var("h", upper=self.most, where=lambda a, v: a not in out_of[v])
        T = b.var("T", upper=self.most / min(c.values()))

        def balance(u: Hashable, v: Hashable) -> Any:
            return b.sum(h[a, v] for a in out_of[u]) - b.sum(h[a, v] for a in into[u]) == supply[u]

        b.row("balance", balance, where=lambda u, v: u != v)
        b.row("capacity", lambda a, v: h[a, v] <= c[a] * T, where=lambda a, v: a not in out_of[v])
        return b.minimize(T)

    def residuals(self, values: Values) -> dict[str, float]:
        """Worst violation of ``balance``, ``capacity``, h >= 0 and h = 0 on arcs out of v."""
        return shared.shared_residuals(self, values)


FORMULATION = Broadcast

"""All-gather in minimum time: every rank receives the shards of all others, and copies are free.

Source  beyond the all-to-all paper; network coding: Ahlswede, Cai, Li & Yeung, IEEE Trans. Inf. Theory 46(4), 2000;
        tree packing: Edmonds 1973, Bang-Jensen, Frank & Jackson, SIAM J. Discrete Math. 8(2), 1995
Sets    u in V vertices (n); a in A arcs (m); v in R receiving ranks (N)
Data    c_a > 0 capacity [link bandwidths], (m,); every rank has one shard
Vars    0 <= h_av <= N-1  flow towards v over arc a [shards], (m, N); 0 <= T <= (N-1) / min_a c_a  time
        [shards / link bandwidth]

min T  s.t.
    balance[u,v]    outflow_u(h_v) - inflow_u(h_v) = 1   (0 where u is not a rank)     u != v
    capacity[a,v]   h_av <= c_a T                                                      a not out of v

Flows towards different receivers do *not* add up on an arc: a shard that several receivers get over the same arc is
sent over it once. Arcs out of v are fixed at 0. The upper bounds exclude no optimum, so the checker need not know
them: a flow without cycles carries at most the N-1 shards that v receives, and a spanning tree attains that time.

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
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.flows import shared_flows as shared
from opticoll.formulations.index import Index
from opticoll.formulations.model import CvxpyModel, Formulation, PyomoModel

if TYPE_CHECKING:
    from collections.abc import Hashable

    from opticoll.formulations.model import Values
    from opticoll.instances.topology import F64, I64, Topology


@dataclass(frozen=True, eq=False)
class AllGather(Formulation):
    """The problem: a flow of one shard from every rank towards every other.

    ``ends`` are R, ``(N,)``, ``supply`` the shards of every vertex, ``(n,)``, ``most`` is N - 1.
    """

    name = "alltoall.all-gather"
    where = "beyond the paper"
    meaning = "time T [shards / link bandwidth]"
    variables: ClassVar = {"h": ("arc", "receiver"), "T": ()}
    constraints: ClassVar = {"balance": ("vertex", "receiver"), "capacity": ("arc", "receiver")}
    units: ClassVar = shared.UNITS
    _beside = (shared,)

    _label_invariant = staticmethod(lambda parameters: True)

    _prepare = classmethod(shared.between_all)

    topology: Topology
    ends: I64
    supply: F64
    most: int
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


FORMULATION = AllGather

r"""One child LP of the decomposition: split a source's flow by destination.

Source  all-to-all paper, (10)-(14)
Sets    u in V vertices (n); a in A arcs (m), M their incidence (+1 into a vertex, -1 out of it), (n, m); t in R ranks
        other than the source s, with demand
Data    g_a >= 0 the master's flow of source s over arc a [link bandwidths], (m,); D_t > 0 demand of t from s [shards],
        (|R|,): 1 (the paper's) or that of the master (``--set demand=...``), whose ranks without demand are not in R
Vars    f_at >= 0 flow for destination t over arc a [link bandwidths], (m, |R|); F >= 0 concurrent flow within g, the
        paper's F_s [link bandwidths / shard]

max F  s.t.
    balance[u,t]   (M f)_ut = F D_t [u = t]   u != s        (12), (13)
    capacity[a]    sum_t f_at <= g_a                        (11)

The equality takes the place of the paper's ``>=`` in (12), which states the same optimum. D_t is row t of the data
``D``, (n, |R|), 0 elsewhere, and g their capacities ``c``. Vertices without arcs have no row.

Arcs into s and out of t are fixed at 0. F_s >= F for every s and every solution (g, F) of the master, which may bring
more than F D to some destinations (its balance is an inequality). At an optimal one min_s F_s = F*: together the
children fit into the capacities. So F_s depends on the solution, and 1/F_s is the time of the shards of s within its
share g_s, not the T = 1/F* of the all-to-all, which it can be below.

The source is ``--set source=V`` (a rank number, counted from 0). The flow g is a solution of ``alltoall.master``, which
is solved first; the record names its run. A child does not need an LP (method ``flow-decomposition``); it is included
because the paper solves it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from opticoll.formulations.alltoall import child_bounds
from opticoll.formulations.alltoall.master import Master
from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.flows import concurrent_flow
from opticoll.formulations.flows import flow_checks as checks
from opticoll.formulations.flows.concurrent_flow import ConcurrentFlow
from opticoll.formulations.model import CvxpyModel, Formulation, NeededSolution, PyomoModel

if TYPE_CHECKING:
    from opticoll.formulations.model import Values


@dataclass(frozen=True, eq=False)
class Child(Formulation):
    """The problem: the flow of one source, split by destination."""

    name = "alltoall.child"
    where = "(10)-(14)"
    parameters = (concurrent_flow.source_parameter(), concurrent_flow.demand_parameter())
    _needs = NeededSolution(Master.name)
    concurrent = "F"
    meaning = "concurrent flow F_s of one source within its share of the master's flow [link bandwidths / shard]"
    variables: ClassVar = {"f": ("arc", "destination"), "F": ()}
    constraints: ClassVar = {"balance": ("vertex", "destination"), "capacity": ("arc",)}
    _beside = (child_bounds, checks)

    flow: ConcurrentFlow
    topology = property(checks.topology)
    _prepare = classmethod(child_bounds.under_master)

    def cvxpy(self) -> CvxpyModel:
        """The model in CVXPY: ``M f = F D`` without the rows of the source, ``f 1 <= g``."""
        import cvxpy as cp

        b, M = Cvx(self), self.topology.incidence()  # (n, m): +1 where an arc enters, -1 where it leaves
        g, D = b.data("c"), b.data("D")
        f, F = b.var("f", upper=self.flow.most), b.var("F")
        b.row("balance", M @ f == F * D, where=self.flow.served)
        b.row("capacity", cp.sum(f, axis=1) <= g)
        return b.maximize(F)

    def pyomo(self) -> PyomoModel:
        """The model in Pyomo: ``f[a,t]``, ``F``, ``balance[u,t]``, ``capacity[a]``."""
        b = Pyo(self)
        into, out_of = b.incident()
        V, R = b.sets("vertex", "destination")
        (s,) = {V[u] for u in self.flow.sources}
        g, D = b.data("c"), b.data("D", where=lambda u, t: u == t)
        f, F = b.var("f", upper=self.flow.most), b.var("F")

        def balance(u: Any, t: Any) -> Any:
            net = b.sum(f[a, t] for a in into[u]) - b.sum(f[a, t] for a in out_of[u])
            return net - (D[t, t] * F if u == t else 0) == 0

        b.row("balance", balance, where=lambda u, t: u != s)
        b.row("capacity", lambda a: b.sum(f[a, t] for t in R) <= g[a])
        return b.maximize(F)

    matrix = checks.rows_alone

    def residuals(self, values: Values) -> dict[str, float]:
        """Worst violation of ``balance``, ``capacity``, f >= 0 and f = 0 on arcs into s and out of t."""
        return checks.flow_residuals(self.flow, values["f"], values["F"])


FORMULATION = Child

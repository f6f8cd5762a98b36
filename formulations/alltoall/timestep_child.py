r"""One child LP of the all-to-all in time steps: a source's flow in steps, split by destination.

Source  all-to-all paper, section 3.1.3: the time-stepped LP is decomposed as in section 3.1.2, (10)-(14)
Sets    v in V vertices (u, t), u after t = 0..L steps; a in A arcs: those of the topology in every step and, where data
        can be held, waiting from (u, t-1) to (u, t) (:mod:`opticoll.formulations.alltoall.time_expansion`); k in R
        ranks other than the source s with demand
Data    g_a >= 0 flow of source s over arc a in its step, in a solution of ``alltoall.timestep-mcf`` by source [shards];
        on waiting arcs more than leaves s in all steps; D_k > 0 demand of k from s [shards], (|R|,)
Vars    f_ak >= 0 flow for destination k over arc a [shards], (|A|, |R|); F >= 0 served fraction [-]

max F  s.t.
    balance[v,k]   inflow_v(f_k) - outflow_v(f_k) = F D_k [v = (k,L)]   v != (s,0)
    capacity[a]    sum_k f_ak <= g_a

Fixed at 0, as in ``alltoall.timestep-mcf`` by commodity: arcs of the topology into s and out of the destination, those
that s does not reach by their step, and those from whose head the destination is not reached by step L.

Closed form: F_s = 1 for every solution of the master, so the decomposition is exact. Not less, because causality and
balance mean that g is a flow from (s, 0) that brings D_k to every (k, L), and such a flow splits into paths by
destination; one that passes its destination or s again waits there instead. Not more, because nothing returns to s, and
what leaves it is sum_k D_k. (The child of the link MCF, ``alltoall.child``, can be above its master's F: there a source
may bring more than it must.) Its source sends f / F_s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from opticoll.formulations.alltoall import timestep_child_bounds
from opticoll.formulations.alltoall.timestep_mcf import StepFlow
from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.flows import flow_checks as checks
from opticoll.formulations.flows.concurrent_flow import ConcurrentFlow, source_parameter
from opticoll.formulations.model import CvxpyModel, Formulation, NeededSolution, PyomoModel
from opticoll.formulations.variables import SHARDS

if TYPE_CHECKING:
    from opticoll.formulations.model import Values


@dataclass(frozen=True, eq=False)
class StepChild(Formulation):
    """The problem: the flow of one source in steps, split by destination.

    Parameters
    ----------
    flow
        The data, on the time-expanded graph.
    commodities
        The time-stepped model of the commodities of the source.
    time
        Time of all steps of the master's solution [shards / link bandwidth].
    """

    name = "alltoall.timestep-child"
    where = "section 3.1.3"
    parameters = (
        source_parameter(),
        *(one for one in StepFlow.parameters if one.name in ("steps", "relays", "demand")),
    )
    _needs = NeededSolution(StepFlow.name, settings=(("aggregate", "source"),), passed_on=("steps", "relays", "demand"))
    concurrent = "F"
    meaning = "served fraction F_s of one source within its share of the master's flow [-]"
    variables: ClassVar = {"f": ("arc", "destination"), "F": ()}
    constraints: ClassVar = {"balance": ("vertex", "destination"), "capacity": ("arc",)}
    units: ClassVar = {"f": SHARDS, "F": ""}
    _beside = (timestep_child_bounds, checks)

    flow: ConcurrentFlow
    commodities: StepFlow
    time: float
    topology = property(checks.topology)
    _prepare = classmethod(timestep_child_bounds.under_master)

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
        """The model in Pyomo: ``f[a,k]``, ``F``, ``balance[v,k]``, ``capacity[a]``."""
        b = Pyo(self)
        into, out_of = b.incident()
        V, R = b.sets("vertex", "destination")
        (s,) = {V[u] for u in self.flow.sources}
        g, D = b.data("c"), b.data("D", where=lambda v, k: v == k)
        f, F = b.var("f", upper=self.flow.most), b.var("F")

        def balance(v: Any, k: Any) -> Any:
            net = b.sum(f[a, k] for a in into[v]) - b.sum(f[a, k] for a in out_of[v])
            return net - (D[k, k] * F if v == k else 0) == 0

        b.row("balance", balance, where=lambda v, k: v != s)
        b.row("capacity", lambda a: b.sum(f[a, k] for k in R) <= g[a])
        return b.maximize(F)

    matrix = checks.rows_alone

    def residuals(self, values: Values) -> dict[str, float]:
        """Worst violation of ``balance``, ``capacity``, f >= 0 and what is fixed at 0."""
        return checks.flow_residuals(self.flow, values["f"], values["F"])

    by_step = timestep_child_bounds.by_step


FORMULATION = StepChild

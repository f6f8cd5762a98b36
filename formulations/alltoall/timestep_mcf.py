r"""All-to-all in time steps: data is forwarded after it has arrived, and the busiest arc sets the length of a step.

Source  all-to-all paper, (15)-(20)
Sets    u in V vertices (n); H in V those that hold data; a in A arcs (m); k in K groups, each with one source s_k;
        t = 1..L steps
Data    c_a > 0 capacity [link bandwidths], (m,); D_uk >= 0 demand of u from s_k [shards], (n, |K|); L steps
Vars    0 <= f_akt <= sum_u D_uk  flow of group k over arc a in step t [shards], (m, |K|, L);
        0 <= U_t <= sum_uk D_uk / min_a c_a  utilisation: the time that step t takes [shards / link bandwidth], (L,)

min sum_t U_t  s.t.
    capacity[a,t]     sum_k f_akt <= c_a U_t                                                        (16)
    causality[u,k,t]  sum_{tau<=t} inflow_u(f_k,tau) >= sum_{tau<=t+1} outflow_u(f_k,tau)   u in H, u != s_k, t < L (17)
    passing[u,k,t]    inflow_u(f_kt) = outflow_u(f_kt)                                      u not in H
    balance[u,k]      sum_t inflow_u(f_kt) - outflow_u(f_kt) = D_uk                         u in H, u != s_k (18), (19)

Relays. With ``relays=pass`` H is the ranks: data that reaches a NIC or a switch leaves it in the same step, as in
schedules in steps, so on the graph of section 3.2.3 (``+host=B``) a step is one link with the host's arcs at both of
its ends. With ``relays=step`` H = V: every arc takes a step, as (15)-(20) imply on that graph. Without relays the two
are equivalent.

Fixed at 0: arcs into s_k; arcs out of the destination of a single commodity; flows that causality excludes: an arc that
s_k does not reach by step t, or from whose head no destination is reached by step L. A step begins where an arc leaves
H. Causality has no rows at vertices that no flow of k can leave. Balance sums to what leaves s_k, so the other
half of (19) is implied. U_t <= sum D / min c (all shards over one arc) excludes no optimum and bounds every dual.

Groups. ``--set aggregate=commodity`` is the paper's model: one group per pair, D_uk = 1 at its destination, or for
``--set demand=...`` (:mod:`opticoll.instances.demands`) the demand of that pair; pairs without demand have no group.
``aggregate=source`` has one group per source, D_uk = 1 (the demand) at every other rank, and N - 1 times fewer
variables; ``aggregate=auto``, the default, takes it beyond 50 million flows per pair. It is exact (same optimum, same
feasible U): *causality* and *balance* mean that f_k is a flow from (s_k, 0) to the (u, L) in the graph unrolled over
time (:mod:`opticoll.formulations.alltoall`; the slack of causality is the flow that waits). A single-source flow
decomposes into paths and cycles; paths that end in (u, L) are commodity (s_k, u), and one that passes its own
destination or its source again can wait there instead. Two similar aggregations are not exact and not offered: groups
of several sources (s -> t and t -> s together have no demand), and (19) summed as printed, with the inflow of u in
place of the amount that stays there. Then one unit serves every vertex that it passes, and path:4 takes 3 although
T = 4.

Bounds. For any prices p_at >= 0 with sum_a c_a p_at <= 1 in every step,

    sum_t U_t >= sum_{u,k} D_uk dist_p(s_k, u; L),

where dist_p is the minimum cost within L steps, with free waiting: the flow pays at least that, and at most U_t in step
t. The duals of ``capacity`` attain it. Prices that are the same in every step prove sum_t U_t >= T, the fluid optimum
of ``alltoall.link-mcf``. No feasible flow has fewer steps than the largest distance of a pair with demand.
alpha-beta time: alpha L + beta sum_t U_t.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from opticoll.formulations.alltoall import time_expansion, timestep_bounds
from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.flows import concurrent_flow
from opticoll.formulations.flows.concurrent_flow import ConcurrentFlow
from opticoll.formulations.flows.flow_checks import demand_units, group_axis
from opticoll.formulations.index import Index
from opticoll.formulations.model import CvxpyModel, Formulation, PyomoModel
from opticoll.formulations.parameters import Parameter
from opticoll.formulations.variables import SHARDS, TIME, Axis

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opticoll.formulations.model import Values
    from opticoll.instances.topology import F64, Mask, Topology


#: Most flows per pair, arc and step that ``aggregate=auto`` states.
MOST_FLOWS = 50_000_000


@dataclass(frozen=True, eq=False)
class StepFlow(Formulation):
    """The problem: flows in steps; ``groups`` hold topology, sources, demand and blocked arcs."""

    name = "alltoall.timestep-mcf"
    where = "(15)-(20)"
    parameters = (
        Parameter("steps", int, default=0, help="number of steps L, at least (0: equal to) the largest distance"),
        Parameter(
            "aggregate",
            str,
            default="auto",
            choices=("auto", "commodity", "source"),
            help="one flow per pair (the paper's) or one per source (same optimum, N-1 times smaller); auto: by source "
            f"beyond {MOST_FLOWS:,} flows per pair",
        ),
        Parameter(
            "relays",
            str,
            default="pass",
            choices=("pass", "step"),
            help="NICs and switches pass data on within a step, or every arc takes its own step",
        ),
        concurrent_flow.demand_parameter(),
        Parameter("alpha", float, default=0.0, help="fixed time of every step, for alpha_beta_time", least=0),
        Parameter("beta", float, default=1.0, help="time of one shard over one link, for alpha_beta_time", least=0),
    )
    meaning = "time of all steps, sum of U_t [shards / link bandwidth]"
    variables: ClassVar = {"f": ("arc", "group", "step"), "U": ("step",)}
    constraints: ClassVar = {
        "capacity": ("arc", "step"),
        "causality": ("vertex", "group", "wait"),
        "passing": ("vertex", "group", "step"),
        "balance": ("vertex", "group"),
    }
    units: ClassVar = {"f": SHARDS, "U": TIME}
    _beside = (timestep_bounds, time_expansion)
    _label_invariant = staticmethod(concurrent_flow.equal_demands)

    groups: ConcurrentFlow
    steps: int
    aggregate: str
    alpha: float = 0.0
    beta: float = 1.0
    relays: str = "pass"

    @classmethod
    def _prepare(cls, instance: object, given: dict[str, Any]) -> Self:
        """The data of the model."""
        topology, traffic = concurrent_flow.demanded_traffic(instance, given, cls.name)
        steps = time_expansion.enough_steps(cls.name, given["steps"], topology, traffic, given["relays"])
        pairs = concurrent_flow.pairs_of(topology, traffic)
        many = topology.arcs * pairs[0].size * steps > MOST_FLOWS
        aggregate = given["aggregate"] if given["aggregate"] != "auto" else "source" if many else "commodity"
        by_source = aggregate == "source"
        groups = (
            ConcurrentFlow.by_source(topology, traffic) if by_source else ConcurrentFlow.by_commodity(topology, *pairs)
        )
        return cls(groups, steps, aggregate, *(given[name] for name in ("alpha", "beta", "relays")))

    @property
    def topology(self) -> Topology:
        """V and A."""
        return self.groups.topology

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of f: arcs, groups, steps."""
        return self.topology.arcs, self.groups.groups, self.steps

    @cached_property
    def holds(self) -> Mask:
        """H: vertices that may send received data in a later step, ``(n,)``."""
        return time_expansion.holding(self.topology, self.relays)

    @cached_property
    def unrolled(self) -> time_expansion.TimeExpanded:
        """The time-expanded graph."""
        return time_expansion.unroll(self.topology, self.steps, self.holds)

    @cached_property
    def upper(self) -> F64:
        """Upper bounds of f, shape ``(m, |K|, L)``: 0 where f is fixed, otherwise the group's total demand."""
        topology, groups = self.topology, self.groups
        away, begins = time_expansion.step_hops(topology, self.holds)
        done = np.arange(1, self.steps + 1)
        from_source = (away[groups.sources][:, topology.tail] + begins).T  # (m, |K|)
        wanted = groups.demand > 0
        to_target = np.stack([away[:, wanted[:, k]].min(axis=1) for k in range(groups.groups)], axis=1)[topology.head]
        possible = (from_source[:, :, None] <= done) & (to_target[:, :, None] <= self.steps - done)
        possible &= ~groups.blocked[:, :, None]
        return np.where(possible, groups.demand.sum(axis=0)[None, :, None], 0.0)

    @property
    def longest(self) -> float:
        """Upper bound on every U_t, valid at every optimum."""
        return float(self.groups.demand.sum() / self.topology.capacity.min())

    def sets(self) -> dict[str, Axis | range]:
        """Sources or pairs, steps, and steps after which data can wait."""
        steps = range(1, self.steps + 1)
        return {"group": group_axis(self.groups), "step": Axis("step", self.steps, steps, steps), "wait": steps[:-1]}

    def cvxpy(self, *, whole: bool = False) -> CvxpyModel:
        """The model in CVXPY: ``moves`` are the flows that are not fixed at 0, with the ends of their arcs.

        With ``whole``, all variables are integers, as in :mod:`opticoll.formulations.alltoall.sccl`.
        """
        import cvxpy as cp

        b, topology, c, (m, _, L) = Cvx(self), self.topology, self.topology.capacity, self.shape
        moves = Index.of_mask("arc group step", self.upper > 0)
        moves = moves.given(tail=topology.tail[moves["arc"]], head=topology.head[moves["arc"]])
        source, holds, D = self.groups.sources, self.holds, self.groups.demand
        f = b.var("f", upper=self.upper, over=moves, integer=whole)
        U = b.var("U", upper=np.ceil(self.longest) if whole else self.longest, integer=whole)

        used = Index.grid(arc=m, step=L)
        b.row("capacity", used.of(moves) @ f <= cp.multiply(c[used["arc"]], U[used["step"]]), over=used)

        sent = moves.given(vertex=moves["tail"]).join(Index.grid(wait=L - 1))
        rows = sent.where((sent["step"] <= sent["wait"] + 1) & holds[sent["tail"]]).by("vertex group wait")
        rows = rows.where(rows["vertex"] != source[rows["group"]])
        received_by = rows.of(moves, head="vertex", where=lambda row, f: f["step"] <= row["wait"])
        sent_by = rows.of(moves, tail="vertex", where=lambda row, f: f["step"] <= row["wait"] + 1)
        b.row("causality", received_by @ f >= sent_by @ f, over=rows)

        touched = Index.table(
            "vertex group step", *({**moves.columns, "vertex": moves[end]} for end in ("tail", "head"))
        )
        rows = touched.where(~holds[touched["vertex"]]).by("vertex group step")
        b.row("passing", rows.of(moves, head="vertex") @ f == rows.of(moves, tail="vertex") @ f, over=rows)

        rows = touched.where(holds[touched["vertex"]]).by("vertex group")
        rows = rows.where(rows["vertex"] != source[rows["group"]])
        net = (rows.of(moves, head="vertex") - rows.of(moves, tail="vertex")) @ f
        b.row("balance", net == D[rows["vertex"], rows["group"]], over=rows)
        return b.minimize(cp.sum(U))

    def pyomo(self, *, whole: bool = False) -> PyomoModel:
        """The model in Pyomo: ``f[a,k,t]``, ``U[t]``; k is s or (s,t), t = 1..L."""
        b = Pyo(self)
        into, out_of = b.incident()
        V, T = b.sets("vertex", "step")
        c, D = b.by_label(self.topology.capacity, "arc"), b.by_label(self.groups.demand, "vertex", "group")
        H = {u for u, holds in zip(V, self.holds.tolist(), strict=True) if holds}
        f = b.var("f", upper=self.upper, over=Index.of_mask("arc group step", self.upper > 0), integer=whole)
        U = b.var("U", upper=math.ceil(self.longest) if whole else self.longest, integer=whole)
        tail, head = ({a: u for u in V for a in ends[u]} for ends in (out_of, into))

        def moved(arcs: list[str], k: Sequence[Any], steps: Sequence[int]) -> Any:
            return b.sum(f[(a, *k, t)] for a in arcs for t in steps)

        def causality(u: Any, *kt: Any) -> Any:
            *k, t = kt
            return moved(into[u], k, T[:t]) >= moved(out_of[u], k, T[: t + 1])

        over: dict[tuple[str, int], list[Any]] = defaultdict(list)
        for (a, *_, t), flow in f.items():
            over[a, t].append(flow)
        late = ((tail[a], *k, t) for a, *k, first in f for t in range(max(first - 1, 1), len(T)))
        ends = [(u, *k, t) for a, *k, t in f for u in (tail[a], head[a])]
        b.row("capacity", lambda a, t: b.sum(over[a, t]) <= c[a] * U[t])
        b.row("causality", causality, over={(u, *k) for u, *k in late if u in H and u != k[0]})
        b.row(
            "passing",
            lambda u, *k: moved(into[u], k[:-1], k[-1:]) == moved(out_of[u], k[:-1], k[-1:]),
            over={(u, *k) for u, *k in ends if u not in H},
        )
        b.row(
            "balance",
            lambda u, *k: moved(into[u], k, T) - moved(out_of[u], k, T) == D[(u, *k)],
            over={(u, *k) for u, *k, _ in ends if u in H and u != k[0]},
        )
        return b.minimize(b.sum(U[t] for t in T))

    def residuals(self, values: Values) -> dict[str, float]:
        """Worst violation of every block, from numpy alone, step by step.

        Flows are relative to the demand of the vertex, or to the group's smallest positive demand where that is 0.
        """
        f, U = np.asarray(values["f"], dtype=float), np.asarray(values["U"], dtype=float)
        topology, (_, groups, steps) = self.topology, self.shape
        held = np.zeros((topology.n, groups))
        served = self.groups.served
        early, kept, wanted = 0.0, 0.0, demand_units(self.groups.demand)
        least = float(wanted.min(initial=np.inf))
        may_wait = served & self.holds[:, None]
        for t in range(steps):  # data sent in step t was received before step t, or at a relay in step t
            out, received = topology.outflow(f[:, :, t]), topology.inflow(f[:, :, t])
            early = max(early, float((np.where(may_wait, out - held, 0.0) / wanted).max(initial=0.0)))
            kept = max(kept, float((np.abs(received - out)[~self.holds] / wanted[~self.holds]).max(initial=0.0)))
            held += received - out
        load = f.sum(axis=1)
        unit = max(float(U.max(initial=0.0)), np.finfo(float).tiny)
        return {
            "nonnegative": float(max(0.0, -f.min(initial=0.0), -U.min(initial=0.0))) / least,
            "blocked": float(np.where(self.upper == 0, np.abs(f), 0.0).max(initial=0.0)) / least,
            "causality": early,
            "passing": kept,
            "balance": float((np.abs(np.where(served, held - self.groups.demand, 0.0)) / wanted).max(initial=0.0)),
            "capacity": float((load / topology.capacity[:, None] - U).max(initial=0.0)) / unit,
        }

    def objective(self, values: Values) -> float:
        """Sum of the given U_t."""
        return float(np.asarray(values["U"], dtype=float).sum())


FORMULATION = StepFlow

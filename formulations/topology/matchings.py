r"""A demand matrix over parallel circuit switches: matchings, how long each is held, least makespan.

Source  the problem: *Scheduling Parallel Optical Circuit Switches for AI Training*, arXiv 2603.07373; the model and
        the bounds (:mod:`opticoll.formulations.topology.matching_bounds`) are ours
Sets    i, j in V nodes (n); h = 0..s-1 switches; k = 0..K-1 configurations of a switch, in any order in time
Data    D_ij >= 0 demand [shards], (n,n); delay >= 0 before a matching [shards / link bandwidth]; K: no less than the
        configurations of a switch in some optimum, or ``configurations``; M: the same for all switches, or 0
Vars    x_hkij in {0,1} circuit from i to j in a configuration, where D_ij > 0, (s,K,n,n); z_hk in {0,1} whether the
        switch sets a k-th matching, (s,K); t_hk >= 0 how long it holds it [shards / link bandwidth], (s,K);
        w_hkij >= 0 shards that the circuit carries, where D_ij > 0, (s,K,n,n); T >= 0 makespan
        [shards / link bandwidth]

min T      s.t.
    ports_out[h,k,i]      sum_j x_hkij <= z_hk
    ports_in[h,k,j]       sum_i x_hkij <= z_hk
    lit[h,k,i,j]          w_hkij <= D_ij x_hkij                         D_ij > 0
    sending[h,k,i]        sum_j w_hkij <= t_hk
    receiving[h,k,j]      sum_i w_hkij <= t_hk
    served[i,j]           sum_hk w_hkij >= D_ij                         D_ij > 0
    makespan[h]           sum_k t_hk + delay sum_k z_hk <= T            (without ``first``: sum over k > 0 of z_hk)
    total                 sum_hk z_hk <= M                              (M > 0)
    used_first[h,k]       z_hk >= z_h,k+1                               k < K-1
    longest_first[h,k]    t_hk >= t_h,k+1                               k < K-1
    switches[h]           t_h0 >= t_h+1,0                               h < s-1

A node has one port at every switch. Circuits are direct: nothing is relayed; a demand may be divided among switches
and configurations. A switch is dark during a delay, on its own: the others go on.

Exactness. A circuit carries t_hk x_hkij at most, which is a product: as a node has one circuit in a configuration,
``sending`` and ``receiving`` state w_hkij <= t_hk, and ``lit`` needs no constant but D_ij, for no pair needs more than
its demand. The last three rows choose one of the orders of configurations and switches, which are alike:
they compare an ``earlier`` configuration, any but the last, with the next one, and an ``upper`` switch, any but the
last, with the next one. All rows are for all indices but where a condition stands; a node that sends nothing has no
``ports_out`` and ``sending``, one that receives nothing no ``ports_in`` and ``receiving``.

Check. x and t alone are read: ``served`` takes lengths times circuits, so that ``lit``, ``sending`` and ``receiving``
hold by themselves, and the objective is the makespan of the matchings that are set. ``total`` excludes no optimum, and
``used_first``, ``longest_first`` and ``switches`` only remove equal schedules.

Delay. With ``first`` the switches begin dark, and each matching takes the delay. Otherwise the first matching of every
switch stands already; the optimum is then one delay less, with the same matchings.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.index import Index
from opticoll.formulations.model import CvxpyModel, Formulation, PyomoModel
from opticoll.formulations.topology import matching_bounds, matchings_solution
from opticoll.formulations.topology.node_demand import amount_unit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opticoll.instances.topology import F64, I64


@dataclass(frozen=True, eq=False)
class TopologyMatchings(Formulation):
    """The problem: ``demand`` from every node to every other [shards], ``(n, n)``, and parameters of their names.

    ``total`` is the most matchings of all switches (0: any); ``enough`` means that the number of configurations is no
    restriction.
    """

    name = "topology.matchings"
    where = "ours, on the problem of arXiv 2603.07373"
    example = "servers:n=4,degree=2,traffic=alltoall"
    problem = "MILP"
    parameters = matchings_solution.PARAMETERS
    meaning = "makespan of all switches [shards / link bandwidth]"
    variables: ClassVar = {
        "x": ("switch", "configuration", "src", "dst"),
        "z": ("switch", "configuration"),
        "t": ("switch", "configuration"),
        "w": ("switch", "configuration", "src", "dst"),
        "T": (),
    }
    constraints: ClassVar = {
        "ports_out": ("switch", "configuration", "src"),
        "ports_in": ("switch", "configuration", "dst"),
        "lit": ("switch", "configuration", "src", "dst"),
        "sending": ("switch", "configuration", "src"),
        "receiving": ("switch", "configuration", "dst"),
        "served": ("src", "dst"),
        "makespan": ("switch",),
        "total": (),
        "used_first": ("switch", "earlier"),
        "longest_first": ("switch", "earlier"),
        "switches": ("upper",),
    }
    _beside = (matching_bounds, matchings_solution)

    n: int
    switches: int
    configurations: int
    demand: F64
    delay: float
    first: bool = True
    total: int = 0
    enough: bool = False
    of_demand = classmethod(matchings_solution.of_demand)

    @cached_property
    def pairs(self) -> I64:
        """Pairs with demand, in C order, ``(P, 2)``."""
        return np.argwhere(self.demand > 0)

    def sets(self) -> dict[str, range]:
        """Switches and configurations, also all but the last of each, and nodes."""
        H, K, V = range(self.switches), range(self.configurations), range(self.n)
        nodes = dict.fromkeys(("src", "dst"), V)
        return {"switch": H, "configuration": K, "upper": H[:-1], "earlier": K[:-1], **nodes}

    def cvxpy(self) -> CvxpyModel:
        """The model in CVXPY, over the pairs with demand."""
        import cvxpy as cp

        b, s, K = Cvx(self), self.switches, self.configurations
        pairs = Index.of_mask("src dst", self.demand > 0)
        switches, slots = Index.grid(switch=s), Index.grid(switch=s, configuration=K)
        circuits = slots.join(pairs).keyed("switch configuration src dst")
        D = self.demand[circuits["src"], circuits["dst"]]
        x, w = b.var("x", upper=1, integer=True, over=circuits), b.var("w", over=circuits)
        z, t, T = b.var("z", upper=1, integer=True, over=slots), b.var("t", over=slots), b.var("T")
        out, into = (circuits.by(f"switch configuration {end}") for end in ("src", "dst"))
        b.row("ports_out", out.of(circuits) @ x <= out.of(slots) @ z, over=out)
        b.row("ports_in", into.of(circuits) @ x <= into.of(slots) @ z, over=into)
        b.row("lit", w <= cp.multiply(D, x), over=circuits)
        b.row("sending", out.of(circuits) @ w <= out.of(slots) @ t, over=out)
        b.row("receiving", into.of(circuits) @ w <= into.of(slots) @ t, over=into)
        b.row("served", pairs.of(circuits) @ w >= self.demand[pairs["src"], pairs["dst"]], over=pairs)
        charged = slots if self.first else slots.where(slots["configuration"] > 0)
        b.row("makespan", switches.of(slots) @ t + self.delay * (switches.of(charged) @ z) <= T)
        if self.total > 0:
            b.row("total", cp.sum(z) <= self.total)
        if K > 1:
            at = Index.grid(switch=s, earlier=K - 1)
            now, then = (at.of(slots, configuration=at["earlier"] + later) for later in (0, 1))
            b.row("used_first", now @ z >= then @ z, over=at)
            b.row("longest_first", now @ t >= then @ t, over=at)
        if s > 1:
            at = Index.grid(upper=s - 1)
            first, second = (at.of(slots, switch=at["upper"] + next_, configuration=0) for next_ in (0, 1))
            b.row("switches", first @ t >= second @ t)
        return b.minimize(T)

    def pyomo(self) -> PyomoModel:
        """The model in Pyomo, by switches, configurations and nodes."""
        b, D = Pyo(self), self.demand.tolist()
        H, K, V = b.sets("switch", "configuration", "src")
        to = [[j for j in V if D[i][j] > 0] for i in V]
        of = [[i for i in V if D[i][j] > 0] for j in V]

        def due(h: int, k: int, i: int, j: int) -> bool:
            return j in to[i]

        x, w = b.var("x", upper=1, integer=True, where=due), b.var("w", where=due)
        z, t, T = b.var("z", upper=1, integer=True), b.var("t"), b.var("T")

        def leaving(block: Any, h: int, k: int, i: int) -> Any:
            return b.sum(block[h, k, i, j] for j in to[i])

        def entering(block: Any, h: int, k: int, j: int) -> Any:
            return b.sum(block[h, k, i, j] for i in of[j])

        def makespan(h: int) -> Any:
            charged = K if self.first else K[1:]
            return b.sum(t[h, k] for k in K) + self.delay * b.sum(z[h, k] for k in charged) <= T

        b.row("ports_out", lambda h, k, i: leaving(x, h, k, i) <= z[h, k], where=lambda h, k, i: to[i])
        b.row("ports_in", lambda h, k, j: entering(x, h, k, j) <= z[h, k], where=lambda h, k, j: of[j])
        b.row("lit", lambda h, k, i, j: w[h, k, i, j] <= D[i][j] * x[h, k, i, j], where=due)
        b.row("sending", lambda h, k, i: leaving(w, h, k, i) <= t[h, k], where=lambda h, k, i: to[i])
        b.row("receiving", lambda h, k, j: entering(w, h, k, j) <= t[h, k], where=lambda h, k, j: of[j])
        b.row(
            "served",
            lambda i, j: b.sum(w[h, k, i, j] for h in H for k in K) >= D[i][j],
            where=lambda i, j: D[i][j] > 0,
        )
        b.row("makespan", makespan)
        if self.total:
            b.row("total", lambda: b.sum(z.values()) <= self.total)
        if len(K) > 1:
            b.row("used_first", lambda h, k: z[h, k] >= z[h, k + 1])
            b.row("longest_first", lambda h, k: t[h, k] >= t[h, k + 1])
        if len(H) > 1:
            b.row("switches", lambda h: t[h, 0] >= t[h + 1, 0])
        return b.minimize(T)

    def residuals(self, values: Mapping[str, F64]) -> dict[str, float]:
        """Worst violation of every block, amounts relative to :func:`.node_demand.amount_unit`.

        What a circuit carries is how long it is held; z, w and T are not read.
        """
        given, circuits, t = matchings_solution.circuits_and_lengths(self, values)
        carried = np.einsum("hkij,hk->ij", circuits, t)
        top = amount_unit(self.demand)
        return {
            "integrality": float(np.abs(given - circuits).max(initial=0.0)),
            "ports_out": float(max(circuits.sum(axis=3).max(initial=0.0) - 1.0, 0.0)),
            "ports_in": float(max(circuits.sum(axis=2).max(initial=0.0) - 1.0, 0.0)),
            "served": float(max((self.demand - carried).max(), 0.0)) / top,
            "sign": float(max(-t.min(initial=0.0), 0.0)) / top,
        }

    def objective(self, values: Mapping[str, F64]) -> float:
        """Makespan: the lengths and delays of the matchings that are set, on the switch that ends last."""
        _, circuits, t = matchings_solution.circuits_and_lengths(self, values)
        numbers = circuits.any(axis=(2, 3)).sum(axis=1)
        charged = numbers if self.first else np.maximum(numbers - 1, 0)
        return float((t.sum(axis=1) + self.delay * charged).max(initial=0.0))

    filled = matchings_solution.schedule_values


FORMULATION = TopologyMatchings

r"""Circuits and routes that minimize the maximum load or the bandwidth tax with d ports per server.

Source  TopoOpt, section 4 (the problem that TopologyFinder solves heuristically); Bienstock & Guenluek, Mathematical
        Programming 68, 1995 (the same problem in lightwave networks)
Sets    (i,j), i != j, pairs of servers; c in 0 .. p-1 parallel circuits of a pair; k in K commodities, each what a
        server s_k sends; r in R cyclic orders of the all-reduce groups, or pairs of trees (``rings=free``; none with
        ``rings=default``, where D has the ring of every group's order)
Data    d ports; D_uk >= 0 demand of commodity k at u [U], B_k = sum_u D_uk with all rings; S_ra bytes
        of hop a of ring r [U]; U the maximum load of circuits from every server to its next d servers, in closed form:
        the unit of all data; L <= 1 and H bounds on any design's maximum load and byte-hops [U], which follow from the
        traffic alone (:func:`opticoll.formulations.topoopt.circuit_design_bounds.lower_bounds`,
        :mod:`opticoll.formulations.topoopt.forwarding`)
Vars    y_ijc in {0,1} circuit, (n,n,p); f_kij in 0..B_k flow [U], none into s_k, (K,n,n); w_ijc in 0..1 load of a
        circuit [U], (n,n,p); t in L..1 the maximum load [U]; share_r in 0..1 of the group's all-reduce, (R,)

min U t                         (``objective=max-load``)  or  min U sum f / total demand  (``bandwidth-tax``)  s.t.
    ports_out[i]     sum_jc y_ijc <= d
    ports_in[j]      sum_ic y_ijc <= d
    order[i,j,c]     y_ij(c+1) <= y_ijc                                             c < p - 1
    balance[u,k]     inflow_u(f_k) - outflow_u(f_k) - sum_{hops a of r from s_k to u} S_ra share_r = D_uk   u != s_k
    split[g]         sum_{r of g} share_r = 1                                       (rings=free, where there are groups)
    open[k,i,j]      f_kij <= B_k y_ij0                                             j != s_k
    pair_load[i,j]   sum_k f_kij <= sum_c w_ijc                                     (max-load, up to total_load)
    load_open[i,j,c]    w_ijc <= y_ijc
    load_level[i,j,c]   w_ijc <= t - L (1 - y_ijc)
    total_load       sum_kij f_kij <= n d t
    total_hops       sum_kij f_kij >= H                                             (both objectives)

The load of a pair's circuits, w <= t y, is a product; load_open and load_level are its envelope over L <= t <= 1, exact
for integer y. There is no arbitrary big-M: U is the load of a design, so the optimum has t <= 1. ``order`` breaks the
symmetry of copies; total_load and total_hops hold for every design and tighten the relaxation. The tax does not benefit
from parallel circuits: p = 1.

``parallel`` = p limits the circuits of a pair (0: the number of ports). With ``rings=default`` every group's all-reduce
uses the ring of its members' order; with ``free`` it is split over all cyclic orders, which the program lists for
groups of at most ``MOST_MEMBERS`` servers. With ``all_reduce=trees`` a group sums over pairs of double binary trees in
place of rings (appendix A), in the orders of the +p rings of TotientPerms. The solution is a design of
:mod:`opticoll.formulations.topoopt.circuit_design`, which checks it: ``degree`` stands for the ports, ``rings`` for
``split``, ``routes`` and ``demand`` for ``balance`` and ``open``, ``loads`` and ``objective`` for the rows of w and t.

Closed form: demand only from each server to its successors on d rings over all servers has tax 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.index import Index
from opticoll.formulations.model import CvxpyModel, Formulation, PyomoModel
from opticoll.formulations.topoopt import (
    circuit_design,
    circuit_design_solution,
    wiring_bounds,
    wiring_demand,
    wiring_solution,
)
from opticoll.formulations.topoopt.circuit_design import CircuitDesign
from opticoll.instances.servers import ServerPool

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opticoll.instances.topology import F64, I64

    #: Group, and order of the ring as text.
    RingIndex = tuple[int, str]

OBJECTIVES = ("max-load", "bandwidth-tax")
MEANINGS = {"max-load": "largest load of a circuit [bytes]", "bandwidth-tax": "bandwidth tax: byte-hops per byte"}


@dataclass(frozen=True, eq=False)
class Wiring(Formulation):
    """Data of the model."""

    name = "topoopt.topology"
    where = "section 4, Algorithm 1"
    example = "servers:n=5,degree=2,traffic=random,seed=1"
    problem = "MILP"
    variables: ClassVar = {
        "y": ("src", "dst", "copy"),
        "f": ("commodity", "src", "dst"),
        "w": ("src", "dst", "copy"),
        "t": (),
        "share": ("ring",),
    }
    constraints: ClassVar = {
        "ports_out": ("server",),
        "ports_in": ("server",),
        "order": ("src", "dst", "lower"),
        "balance": ("server", "commodity"),
        "split": ("group",),
        "open": ("commodity", "src", "dst"),
        "pair_load": ("src", "dst"),
        "load_open": ("src", "dst", "copy"),
        "load_level": ("src", "dst", "copy"),
        "total_load": (),
        "total_hops": (),
    }
    parameters = wiring_demand.PARAMETERS
    _beside = (wiring_demand, wiring_bounds, wiring_solution)

    pool: ServerPool
    goal: str
    parallel: int
    free_rings: bool
    trees: bool = False

    by_default = cached_property(wiring_demand.rings_by_default)
    default_demand = cached_property(wiring_demand.default_demand)
    orders = cached_property(wiring_demand.listed_orders)
    candidates = cached_property(wiring_demand.candidate_rings)
    unit = cached_property(wiring_bounds.load_of_next_servers)
    byte_hops = cached_property(wiring_bounds.least_byte_hops)
    idle = cached_property(wiring_bounds.idle_bytes)
    hops = cached_property(wiring_bounds.least_hops)
    bounded_pool = cached_property(wiring_bounds.bounded_pool)
    most_of_trees = cached_property(wiring_demand.most_of_trees)
    most = cached_property(wiring_demand.most_demand)
    most_sent = cached_property(wiring_demand.most_sent)
    lower_bounds = cached_property(wiring_bounds.wiring_lower_bounds)
    floor = cached_property(wiring_bounds.least_load)
    commodities = cached_property(wiring_demand.commodities)
    flows = cached_property(wiring_demand.flow_variables)
    ring_hops = cached_property(wiring_demand.ring_hops)

    @property
    def n(self) -> int:
        """Servers."""
        return self.pool.n

    @property
    def degree(self) -> int:
        """Ports of a server, d."""
        return self.pool.degree

    @property
    def copies(self) -> int:
        """Number p of parallel circuits of a pair in the program."""
        return 1 if self.goal == "bandwidth-tax" else self.parallel

    @cached_property
    def total(self) -> float:
        """Total demand [bytes], the same for all rings."""
        return float(self.pool.point_to_point.sum()) + self.pool.all_reduce_bytes

    @cached_property
    def fixed(self) -> F64:
        """Demand that is independent of the rings [bytes], ``(n, n)``."""
        return self.pool.point_to_point if self.free_rings else self.default_demand

    def value_of(self, design: CircuitDesign) -> float:
        """Objective value of a design."""
        return design.max_load if self.goal == "max-load" else design.bandwidth_tax

    @cached_property
    def pairs(self) -> tuple[I64, I64]:
        """Tail and head of every pair, ``(n (n-1),)``."""
        tail, head = np.nonzero(~np.eye(self.n, dtype=bool))
        return tail, head

    def sets(self) -> dict[str, Sequence[Any]]:
        """Servers, parallel circuits, groups, commodities, and rings (group, order)."""
        V, copies = range(self.n), range(self.copies)
        rings = [(ring.group, ">".join(map(str, ring.order))) for ring in self.orders]
        servers = dict.fromkeys(("server", "src", "dst"), V)
        groups = range(len(self.pool.groups))
        return {
            **servers,
            "copy": copies,
            "lower": copies[:-1],
            "commodity": self.commodities[0].tolist(),
            "ring": rings,
            "group": groups,
        }

    def cvxpy(self) -> CvxpyModel:
        """The model in CVXPY, over the possible circuits and flows."""
        import cvxpy as cp

        b, n, d, p = Cvx(self), self.n, self.degree, self.copies
        U, L, H = self.unit, self.floor, self.hops
        source, D, B = self.commodities
        commodity, pair = self.flows
        tail, head = self.pairs
        pairs = Index.table("src dst", {"src": tail, "dst": head})
        circuits = pairs.join(Index.grid(copy=p)).keyed("src dst copy")
        flows = Index.table("commodity src dst", {"commodity": commodity, "src": tail[pair], "dst": head[pair]})
        upper = np.broadcast_to(B[:, None, None], (source.size, n, n))
        y, f = b.var("y", upper=1, integer=True, over=circuits), b.var("f", upper=upper, over=flows)
        servers = Index.grid(server=n)
        b.row("ports_out", servers.of(circuits, src="server") @ y <= d)
        b.row("ports_in", servers.of(circuits, dst="server") @ y <= d)
        if p > 1:
            at = circuits.given(lower=circuits["copy"]).where(circuits["copy"] < p - 1).keyed("src dst lower")
            b.row("order", at.of(circuits, copy=at["lower"] + 1) @ y <= at.of(circuits, copy="lower") @ y, over=at)
        rows = Index.of_mask("server commodity", np.arange(n)[:, None] != source)
        arriving = (rows.of(flows, dst="server") - rows.of(flows, src="server")) @ f
        if self.orders:
            share = b.var("share", upper=1)
            ring, of, to, amount = self.ring_hops
            hops = Index.table("hop", {"hop": np.arange(ring.size), "ring": ring, "commodity": of, "server": to})
            rings = Index.table(
                "ring", {"ring": np.arange(len(self.orders)), "group": [one.group for one in self.orders]}
            )
            arriving = arriving - rows.of(hops) @ cp.multiply(amount, hops.of(rings, ring="ring") @ share)
            b.row("split", Index.grid(group=len(self.pool.groups)).of(rings) @ share == 1)
        b.row("balance", arriving == D[rows["server"], rows["commodity"]], over=rows)
        b.row("open", f <= cp.multiply(B[commodity], flows.of(circuits, copy=0) @ y), over=flows)
        b.row("total_hops", cp.sum(f) >= H)
        if self.goal != "max-load":
            return b.minimize(U / self.total * cp.sum(f))
        w, t = b.var("w", upper=1, over=circuits), b.var("t", lower=L, upper=1)
        b.row("pair_load", pairs.of(flows) @ f <= pairs.of(circuits) @ w, over=pairs)
        b.row("load_open", w <= y, over=circuits)
        b.row("load_level", w <= t - L * (1 - y), over=circuits)
        b.row("total_load", cp.sum(f) <= n * d * t)
        return b.minimize(U * t)

    def pyomo(self) -> PyomoModel:
        """The model in Pyomo; k is its server, r a group and its ring's order."""
        b, n, d, U, L, H = Pyo(self), self.n, self.degree, self.unit, self.floor, self.hops
        V, copies, K, R = b.sets("server", "copy", "commodity", "ring")
        _, demand, most = self.commodities
        D = b.by_label(demand, "server", "commodity")
        upper = np.broadcast_to(most[:, None, None], (len(K), n, n))
        B = b.by_label(upper, "commodity", "src", "dst")
        brings: dict[tuple[int, int], list[tuple[RingIndex, float]]] = {}  # the rings that bring data to (u, k)
        for r, ring in zip(R, self.orders, strict=True):
            for i, j, size in zip(*(part.tolist() for part in ring.hops), strict=True):
                amount = self.pool.groups[ring.group].transfer / U * size
                brings.setdefault((j, i), []).append((r, amount))
        y = b.var("y", upper=1, integer=True, where=lambda i, j, c: i != j)
        f = b.var("f", upper=upper, where=lambda k, i, j: i != j != k)
        share = b.var("share", upper=1) if R else {}
        flow = b.sum(f.values())

        def balance(u: int, k: int) -> Any:
            net = b.sum(f[k, v, u] for v in V) - b.sum(f[k, u, v] for v in V)
            return net - b.sum(S * share[r] for r, S in brings.get((u, k), [])) == D[u, k]

        b.row("ports_out", lambda i: b.sum(y[i, j, c] for j in V for c in copies) <= d)
        b.row("ports_in", lambda j: b.sum(y[i, j, c] for i in V for c in copies) <= d)
        if len(copies) > 1:
            b.row("order", lambda i, j, c: y[i, j, c + 1] <= y[i, j, c], where=lambda i, j, c: i != j)
        b.row("balance", balance, where=lambda u, k: u != k)
        if R:
            b.row("split", lambda g: b.sum(share[r] for r in R if r[0] == g) == 1, over={g for g, _ in R})
        b.row("open", lambda k, i, j: f[k, i, j] <= B[k, i, j] * y[i, j, 0], where=lambda k, i, j: i != j != k)
        b.row("total_hops", lambda: flow >= H)
        if self.goal != "max-load":
            return b.minimize(U / self.total * flow)
        w, t = b.var("w", upper=1, where=lambda i, j, c: i != j), b.var("t", lower=L, upper=1)
        b.row(
            "pair_load",
            lambda i, j: b.sum(f[k, i, j] for k in K) <= b.sum(w[i, j, c] for c in copies),
            where=lambda i, j: i != j,
        )
        b.row("load_open", lambda *at: w[at] <= y[at], where=lambda i, j, c: i != j)
        b.row("load_level", lambda *at: w[at] <= t - L * (1 - y[at]), where=lambda i, j, c: i != j)
        b.row("total_load", lambda: flow <= n * d * t)
        return b.minimize(U * t)

    def residuals(self, values: Mapping[str, F64]) -> dict[str, float]:
        """Worst violation of every block of :func:`.circuit_design_solution.residuals`, and of the parameters.

        ``parallel`` counts circuits of a pair above the limit; ``default_rings`` is infinite for any other than the
        default rings; ``rings`` also for trees in place of rings, or the reverse.
        """
        result = circuit_design_solution.residuals(self.pool, values)
        read = circuit_design_solution.read_design(self.pool, values)
        if read is None:
            return {**result, "parallel": np.inf, "default_rings": np.inf}
        _, number = np.unique(read.circuits, axis=0, return_counts=True)
        result["parallel"] = float(max(int(number.max(initial=0)) - self.parallel, 0))
        own = circuit_design.ring_demand(self.pool, read.rings)
        same = self.free_rings or np.allclose(own, self.default_demand, rtol=1e-9, atol=0.0)
        result["default_rings"] = 0.0 if same else np.inf
        if any(ring.trees != self.trees for ring in read.rings):
            result["rings"] = np.inf
        return result

    def objective(self, values: Mapping[str, F64]) -> float:
        """Maximum load [bytes] or bandwidth tax of the routes; infinite if they are malformed."""
        read = circuit_design_solution.read_design(self.pool, values)
        return np.inf if read is None else self.value_of(read)

    @property
    def meaning(self) -> str:  # type: ignore[override]
        """Meaning of the value."""
        return MEANINGS[self.goal]


FORMULATION = Wiring

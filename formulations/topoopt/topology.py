r"""Circuits and routes that minimize the maximum load or the bandwidth tax with d ports per server.

Source  TopoOpt, section 4 (the problem that TopologyFinder solves heuristically); Bienstock & Guenluek, Mathematical
        Programming 68, 1995 (the same problem in lightwave networks)
Sets    (i,j), i != j, pairs of servers; c in 0 .. p-1 parallel circuits of a pair; k in K commodities: a server's
        traffic (``flows=source``), or a pair's (``flows=pair``: larger and tighter); r in R cyclic orders of the
        all-reduce groups, or pairs of trees (``rings=free``; one per group with ``rings=default``)
Data    d ports; D_uk >= 0 demand of commodity k at u, s_k its server, B_k = sum_u D_uk with all rings; S_ra bytes of
        hop a of ring r; U the maximum load of circuits from every server to its next d servers, in closed form: the
        unit of all data; L <= 1 and H bounds on any design's maximum load and byte-hops [U], which follow from the
        traffic alone (:func:`opticoll.formulations.topoopt.circuit_design.lower_bounds`,
        :mod:`opticoll.formulations.topoopt.forwarding`)
Vars    y_ijc in {0,1} circuit, (n,n,p); f_kij in 0..B_k flow [U], none into s_k, (K,n,n); w_ijc in 0..1 load of a
        circuit [U], (n,n,p); t in L..1 the maximum load [U]; share_r in 0..1 of the group's all-reduce, (R,)

min U t                         (``objective=max-load``)  or  min U sum f / total demand  (``bandwidth-tax``)  s.t.
    ports_out[i]     sum_jc y_ijc <= d
    ports_in[j]      sum_ic y_ijc <= d
    order[i,j,c]     y_ij(c+1) <= y_ijc
    balance[u,k]     inflow_u(f_k) - outflow_u(f_k) - sum_{hops a of r from s_k to u} S_ra share_r = D_uk   u != s_k
    split[g]         sum_{r of g} share_r = 1                                       (rings=free, where there are groups)
    open[k,i,j]      f_kij <= B_k y_ij0
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
:mod:`opticoll.formulations.topoopt`, which checks it.

Closed form: demand only from each server to its successors on d rings over all servers has tax 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import permutations
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from opticoll.formulations import rounding
from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.index import Index
from opticoll.formulations.model import (
    Bound,
    CvxpyModel,
    Formulation,
    NotApplicable,
    Parameter,
    PyomoModel,
    changed_from_defaults,
)
from opticoll.formulations.topoopt import circuit_design
from opticoll.formulations.topoopt.circuit_design import CircuitDesign, Ring, default_rings, server_pool
from opticoll.formulations.topoopt.forwarding import travelled
from opticoll.formulations.topoopt.routing import routed_by_flow
from opticoll.formulations.variables import Array, Axis, Names, entries
from opticoll.instances.servers import ServerPool

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from opticoll.formulations.variables import Links
    from opticoll.instances.topology import F64, I64
    from opticoll.types import Json, Settings

    #: Group, and order of the ring as text.
    RingIndex = tuple[int, str]

NAME = "topoopt.topology"
OBJECTIVES = ("max-load", "bandwidth-tax")
MEANINGS = {"max-load": "largest load of a circuit [bytes]", "bandwidth-tax": "bandwidth tax: byte-hops per byte"}
#: Maximum number of members of a group whose cyclic orders are listed: 7 members have 720.
MOST_MEMBERS = 7


@dataclass(frozen=True, eq=False)
class Wiring(Formulation):
    """Data of the model."""

    name = NAME
    where = "section 4, Algorithm 1"
    example = "servers:n=5,degree=2,traffic=random,seed=1"
    sense = "min"
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
    parameters = (
        Parameter(
            "objective",
            str,
            default="max-load",
            help="bytes over the busiest circuit, or byte-hops per byte",
            choices=OBJECTIVES,
        ),
        Parameter("parallel", int, default=0, help="maximum circuits per pair of servers; 0: as many as it has ports"),
        Parameter(
            "rings",
            str,
            default="free",
            help="all-reduce rings: chosen, or in the order of the members",
            choices=("free", "default"),
        ),
        Parameter(
            "all_reduce",
            str,
            default="rings",
            help="all-reduce over rings, or over pairs of double binary trees",
            choices=("rings", "trees"),
        ),
        Parameter(
            "flows",
            str,
            default="source",
            help="commodities of the program: servers, or pairs (tighter)",
            choices=("source", "pair"),
        ),
    )

    pool: ServerPool
    goal: str
    parallel: int
    free_rings: bool
    by_pair: bool
    trees: bool = False

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
    def by_default(self) -> tuple[Ring, ...]:
        """The ring, or pair of trees, of every group in the order of its members."""
        return default_rings(self.pool, trees=self.trees)

    @cached_property
    def default_demand(self) -> F64:
        """Demand with the default rings or trees [bytes], ``(n, n)``."""
        return circuit_design.ring_demand(self.pool, self.by_default)

    @cached_property
    def fixed(self) -> F64:
        """Demand that is independent of the rings [bytes], ``(n, n)``."""
        return self.pool.point_to_point if self.free_rings else self.default_demand

    @cached_property
    def orders(self) -> tuple[Ring, ...]:
        """All R cyclic orders of all groups, or pairs of trees (``rings=free``); empty otherwise.

        Raises
        ------
        NotApplicable
            For a group of more than ``MOST_MEMBERS`` servers.
        """
        if not self.free_rings:
            return ()
        for group in self.pool.groups:
            if group.size > MOST_MEMBERS and not self.trees:
                msg = (
                    f"{NAME}: an all-reduce group of {group.size} has too many rings to list in a program; set "
                    f"rings=default, or use --method design-search"
                )
                raise NotApplicable(msg)
        return self.candidates

    @cached_property
    def candidates(self) -> tuple[Ring, ...]:
        """Rings for a search: all rings of a group, or the +p rings if it has more than ``MOST_MEMBERS`` servers.

        Of trees, those in the orders of the +p rings.
        """
        if not self.free_rings:
            return ()
        results = []
        for number, group in enumerate(self.pool.groups):
            if group.size > MOST_MEMBERS or self.trees:
                steps = [p for p in range(1, group.size) if np.gcd(p, group.size) == 1]
                results += [Ring(number, 0.0, tuple(group.ring(p).tolist()), self.trees) for p in steps]
                continue
            first, *others = group.members
            results += [Ring(number, 0.0, (first, *rest)) for rest in permutations(others)]
        return tuple(results)

    def value_of(self, design: CircuitDesign) -> float:
        """Objective value of a design."""
        return design.max_load if self.goal == "max-load" else design.bandwidth_tax

    @cached_property
    def unit(self) -> float:
        """U [bytes]: maximum load of circuits to the next servers, with default rings, rounded up to 6 digits.

        Every server has d circuits, shared evenly among its next k = min(d, n-1) servers. Demand over m
        servers takes floor(m/k) steps of k, then one of m modulo k: valid for any ``parallel`` and choice of rings.
        """
        n, widest = self.n, min(self.degree, self.n - 1)
        servers, load = np.arange(n), np.zeros((widest + 1, n))
        for distance in range(1, n):
            demand = self.default_demand[servers, (servers + distance) % n]
            steps, rest = divmod(distance, widest)
            for step in range(steps):
                load[widest] += np.roll(demand, step * widest)
            if rest:
                load[rest] += np.roll(demand, steps * widest)
        circuits = np.bincount(1 + np.arange(self.degree) % (n - 1), minlength=widest + 1)[1:]
        return rounding.digits_up(float((load[1:] / circuits[:, None]).max()) * (1 + 1e-9), 6)

    @cached_property
    def byte_hops(self) -> float:
        """Minimum byte-hops of any design [bytes], rounded down."""
        within = travelled(self.fixed, self.degree) + (self.pool.all_reduce_bytes if self.free_rings else 0.0)
        by_depth = circuit_design.lower_bounds(self.bounded_pool, trees=self.trees)["bandwidth-tax"].value * self.total
        return float(rounding.down(max(within, by_depth), self.n**2 + len(self.pool.groups) + 3))

    @cached_property
    def idle(self) -> float:
        """Bytes by which n d Lambda exceeds the byte-hops of every design at least, rounded down.

        A server forwards F_v >= 0 bytes, so its d incoming circuits carry R_v + F_v and its d outgoing ones S_v + F_v,
        with max(S_v, R_v) + F_v <= d Lambda. The byte-hops are sum_v (S_v + F_v), so that

            n d Lambda  >=  byte-hops + sum_v max(R_v - S_v, 0).

        A member of a group sends as much of a ring as it receives; of trees it may not: then this is 0.
        :func:`opticoll.formulations.topology.sequence_bounds.unmatched` is the sum in fractions, for few nodes.
        """
        if self.free_rings and self.trees:
            return 0.0
        more = [rounding.sum_down([*self.fixed[:, v], *-self.fixed[v]]) for v in range(self.n)]
        return max(rounding.sum_down(np.maximum(more, 0.0)), 0.0)

    @cached_property
    def hops(self) -> float:
        """H [U], at most the minimum byte-hops: a decimal like L and U, as data of exact solves."""
        return -rounding.digits_up(-rounding.quotient_down(self.byte_hops, self.unit), 9)

    @cached_property
    def bounded_pool(self) -> ServerPool:
        """Pool for the bounds: with ``rings=default`` all traffic is point-to-point."""
        return self.pool if self.free_rings else ServerPool(self.n, self.degree, self.default_demand)

    @cached_property
    def most_of_trees(self) -> F64:
        """Largest demand of every pair and group over all pairs of trees [bytes], ``(groups, n, n)``."""
        most = np.zeros((len(self.pool.groups), self.n, self.n))
        for ring in self.candidates:
            sender, receiver, part = ring.hops
            own = most[ring.group]
            own[sender, receiver] = np.maximum(own[sender, receiver], self.pool.groups[ring.group].transfer * part)
        return most

    @cached_property
    def most(self) -> F64:
        """Largest demand of every pair over all choices of rings [bytes], ``(n, n)``."""
        most = self.fixed.copy()
        if self.free_rings and self.trees:
            return most + self.most_of_trees.sum(axis=0)
        if self.free_rings:
            for group in self.pool.groups:
                indices = np.ix_(group.members, group.members)
                most[indices] += group.transfer * (1 - np.eye(group.size))
        return most

    @cached_property
    def most_sent(self) -> F64:
        """Largest number of bytes that a server sends over all choices of rings, ``(n,)``."""
        sent = self.fixed.sum(axis=1)
        if not self.free_rings:
            return sent
        for number, group in enumerate(self.pool.groups):
            most = np.zeros(self.n)
            for ring in (one for one in self.candidates if self.trees and one.group == number):
                sender, _, part = ring.hops
                most = np.maximum(most, group.transfer * np.bincount(sender, part, self.n))
            most[list(group.members)] = np.maximum(most[list(group.members)], 0.0 if self.trees else group.transfer)
            sent += most
        return sent

    @cached_property
    def lower_bounds(self) -> list[Bound]:
        """Bounds from ports or depths, and from byte-hops (:mod:`opticoll.formulations.topoopt.forwarding`)."""
        n, d, hops = self.n, self.degree, self.byte_hops
        reason = f"at most {d} + ... + {d}^h pairs of every server are within h hops, as a transport problem"
        bytes_ = float(rounding.up(self.total, n * n + len(self.pool.groups)))
        value = rounding.quotient_down(hops, n * d if self.goal == "max-load" else bytes_)
        return [
            circuit_design.lower_bounds(self.bounded_pool, trees=self.trees)[self.goal],
            Bound("transport", value, reason, "topoopt"),
        ]

    @cached_property
    def floor(self) -> float:
        """L [U]."""
        best = max(bound.value for bound in self.lower_bounds) if self.goal == "max-load" else 0.0
        return min(-rounding.digits_up(-rounding.quotient_down(best, self.unit), 9), 1.0)

    @cached_property
    def commodities(self) -> tuple[I64, F64, F64]:
        """s_k, ``(K,)``; D_uk [U], ``(n, K)``; B_k [U], ``(K,)``."""
        n, fixed, most = self.n, self.fixed, self.most
        if self.by_pair:
            source, target = np.nonzero(most > 0)
            demand = np.zeros((n, source.size))
            demand[target, np.arange(source.size)] = fixed[source, target]
            return source, demand / self.unit, most[source, target] / self.unit
        source = np.flatnonzero(most.sum(axis=1) > 0)
        return source, np.ascontiguousarray(fixed[source].T) / self.unit, self.most_sent[source] / self.unit

    @cached_property
    def pairs(self) -> tuple[I64, I64]:
        """Tail and head of every pair, ``(n (n-1),)``."""
        tail, head = np.nonzero(~np.eye(self.n, dtype=bool))
        return tail, head

    @cached_property
    def flows(self) -> tuple[I64, I64]:
        """Commodity and pair of every flow variable; none enters the commodity's own server."""
        source = self.commodities[0]
        commodity, pair = np.nonzero(self.pairs[1][None, :] != source[:, None])
        return commodity, pair

    @cached_property
    def ring_hops(self) -> tuple[I64, I64, I64, F64]:
        """Ring, commodity, target, bytes [U] of every hop of every order."""
        source = self.commodities[0]
        results: list[tuple[int, int, int, float]] = []
        if self.by_pair:
            targets = np.nonzero(self.most > 0)[1]
            of_pair = {(int(s), int(t)): k for k, (s, t) in enumerate(zip(source, targets, strict=True))}
        of_server = {int(s): k for k, s in enumerate(source)}
        for r, ring in enumerate(self.orders):
            size = self.pool.groups[ring.group].transfer / self.unit
            for u, v, part in zip(*(column.tolist() for column in ring.hops), strict=True):
                results.append((r, of_pair[u, v] if self.by_pair else of_server[u], v, size * part))
        if not results:
            none = np.zeros(0, dtype=np.int64)
            return none, none, none, np.zeros(0)
        ring_, commodity, to, amount = zip(*results, strict=True)
        return np.array(ring_), np.array(commodity), np.array(to), np.array(amount)

    @classmethod
    def prepare(cls, instance: object, parameters: Settings | None = None) -> Self:
        """The data of the model.

        Raises
        ------
        NotApplicable
            For anything but a server pool with traffic, a negative ``parallel``, more ports than ``parallel`` allows to
            use, or a choice of rings where nothing is all-reduced.
        """
        pool, given = server_pool(instance, NAME), cls._completed(parameters)
        parallel = given["parallel"]
        if parallel < 0:
            msg = f"{NAME}: parallel={parallel}; give the maximum number of circuits of a pair, or 0 for no limit"
            raise NotApplicable(msg)
        if not pool.groups:
            stated = {name: given[name] for name in ("rings", "all_reduce")}
            for name in changed_from_defaults(cls.parameters, stated):
                msg = f"{NAME}: {name}={given[name]} has no effect on {pool.spec}, which all-reduces nothing"
                raise NotApplicable(msg)
        limit = min(parallel or pool.degree, pool.degree)
        if limit * (pool.n - 1) < pool.degree:
            msg = (
                f"{NAME}: parallel={parallel} leaves some of {pool.degree} ports without a circuit to one of the "
                f"{pool.n - 1} other servers; use degree={limit * (pool.n - 1)} or parallel=0"
            )
            raise NotApplicable(msg)
        return cls(
            pool,
            given["objective"],
            limit,
            given["rings"] == "free",
            given["flows"] == "pair",
            given["all_reduce"] == "trees",
        )

    def derived(self) -> list[Fraction]:
        """Demands in units of U, and U over the total demand; U, L and H are decimals."""
        pairs = np.argwhere(self.most > 0) if self.by_pair else None
        free = self.free_rings and not self.trees
        result, total = circuit_design.demand_fractions(self.pool, self.fixed, pairs, free_rings=free)
        if self.free_rings and self.trees:
            hops = {float(self.pool.groups[r.group].transfer * p) for r in self.candidates for p in r.hops[2].tolist()}
            numbers = {*hops, *self.most[self.most > 0].tolist(), *self.most_sent.tolist()}
            result += [rounding.decimal(value) for value in sorted(numbers)]
        return [value / rounding.entered(self.unit) for value in result] + [rounding.entered(self.unit) / total]

    def sets(self) -> dict[str, Sequence[Any]]:
        """Servers, parallel circuits, groups, commodities s or (s,t), and rings (group, order)."""
        V, copies = range(self.n), range(self.copies)
        K = [tuple(pair) for pair in np.argwhere(self.most).tolist()] if self.by_pair else self.commodities[0].tolist()
        rings = [(ring.group, ">".join(map(str, ring.order))) for ring in self.orders]
        servers = dict.fromkeys(("server", "src", "dst"), V)
        groups = range(len(self.pool.groups))
        return {**servers, "copy": copies, "lower": copies[:-1], "commodity": K, "ring": rings, "group": groups}

    def cvxpy(self) -> CvxpyModel:
        """The model in CVXPY, over the possible circuits and flows."""
        import cvxpy as cp

        b, n, d, p, L = Cvx(self), self.n, self.degree, self.copies, self.floor
        source, demand, most = self.commodities
        commodity, pair = self.flows
        tail, head = self.pairs
        pairs = Index.table("src dst", {"src": tail, "dst": head})
        circuits = pairs.join(Index.grid(copy=p)).keyed("src dst copy")
        flows = Index.table("commodity src dst", {"commodity": commodity, "src": tail[pair], "dst": head[pair]})
        upper = np.broadcast_to(most[:, None, None], (source.size, n, n))
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
        b.row("balance", arriving == demand[rows["server"], rows["commodity"]], over=rows)
        b.row("open", f <= cp.multiply(most[commodity], flows.of(circuits, copy=0) @ y), over=flows)
        b.row("total_hops", cp.sum(f) >= self.hops)
        if self.goal != "max-load":
            return b.minimize(self.unit / self.total * cp.sum(f))
        w, t = b.var("w", upper=1, over=circuits), b.var("t", lower=L, upper=1)
        b.row("pair_load", pairs.of(flows) @ f <= pairs.of(circuits) @ w, over=pairs)
        b.row("load_open", w <= y, over=circuits)
        b.row("load_level", w <= t - L * (1 - y), over=circuits)
        b.row("total_load", cp.sum(f) <= n * d * t)
        return b.minimize(self.unit * t)

    def pyomo(self) -> PyomoModel:
        """The model in Pyomo; k is s or (s,t), r a group and its ring's order."""
        from pyomo.core import quicksum

        b, n, d, L = Pyo(self), self.n, self.degree, self.floor
        V, copies, K, R = b.sets("server", "copy", "commodity", "ring")
        _, demand, most = self.commodities
        D, B = entries(demand, V, K), entries(most, K)
        upper = np.broadcast_to(most[:, None, None], (len(K), n, n))
        brings: dict[tuple[int, ...], list[tuple[RingIndex, float]]] = {}  # the rings that bring data to (u, k)
        for r, ring in zip(R, self.orders, strict=True):
            for i, j, size in zip(*(part.tolist() for part in ring.hops), strict=True):
                amount = self.pool.groups[ring.group].transfer / self.unit * size
                brings.setdefault((j, i, j) if self.by_pair else (j, i), []).append((r, amount))
        y = b.var("y", upper=1, integer=True, where=lambda i, j, c: i != j)
        f = b.var("f", upper=upper, where=lambda *kij: kij[-2] != kij[-1] != kij[0])
        share = b.var("share", upper=1) if R else {}
        flow = quicksum(f.values())

        def balance(u: int, *k: int) -> Any:
            net = quicksum(f[(*k, v, u)] for v in V) - quicksum(f[(*k, u, v)] for v in V)
            return net - quicksum(S * share[r] for r, S in brings.get((u, *k), [])) == D[(u, *k)]

        b.row("ports_out", lambda i: quicksum(y[i, j, c] for j in V for c in copies) <= d)
        b.row("ports_in", lambda j: quicksum(y[i, j, c] for i in V for c in copies) <= d)
        if len(copies) > 1:
            b.row("order", lambda i, j, c: y[i, j, c + 1] <= y[i, j, c], where=lambda i, j, c: i != j)
        b.row("balance", balance, where=lambda u, *k: u != k[0])
        if R:
            b.row("split", lambda g: quicksum(share[r] for r in R if r[0] == g) == 1, over={g for g, _ in R})
        b.row(
            "open",
            lambda *kij: f[kij] <= B[kij[:-2]] * y[kij[-2], kij[-1], 0],
            where=lambda *kij: kij[-2] != kij[-1] != kij[0],
        )
        b.row("total_hops", lambda: flow >= self.hops)
        if self.goal != "max-load":
            return b.minimize(self.unit / self.total * flow)
        w, t = b.var("w", upper=1, where=lambda i, j, c: i != j), b.var("t", lower=L, upper=1)
        carried: dict[tuple[int, int], list[Any]] = {}
        for (*_, i, j), one in f.items():
            carried.setdefault((i, j), []).append(one)
        b.row(
            "pair_load",
            lambda i, j: quicksum(carried[i, j]) <= quicksum(w[i, j, c] for c in copies),
            where=lambda i, j: i != j,
        )
        b.row("load_open", lambda *at: w[at] <= y[at], where=lambda i, j, c: i != j)
        b.row("load_level", lambda *at: w[at] <= t - L * (1 - y[at]), where=lambda i, j, c: i != j)
        b.row("total_load", lambda: flow <= n * d * t)
        return b.minimize(self.unit * t)

    def estimate(self) -> dict[str, int]:
        """Size of the model."""
        n, p, groups, rings = self.n, self.copies, self.commodities[0].size, len(self.orders)
        m, loads = n * (n - 1), self.goal == "max-load"
        flows = groups * (n - 1) * (n - 1)
        split = len(self.pool.groups) if rings else 0
        hops = sum(ring.hops[0].size if self.trees else len(ring.order) for ring in self.orders)
        rows = 2 * n + m * (p - 1) + groups * (n - 1) + flows + 1 + split
        nonzeros = 2 * m * p + 2 * m * (p - 1) + flows * 2 - groups * (n - 1) + 2 * flows + flows + hops + rings
        if loads:
            rows += m + 2 * m * p + 1
            nonzeros += flows + m * p + 2 * m * p + 3 * m * p + flows + 1
        columns = m * p + flows + rings + (m * p + 1 if loads else 0)
        return {"variables": columns, "constraints": rows, "nonzeros": nonzeros, "integers": m * p}

    def unfold(self, values: Mapping[str, F64]) -> dict[str, F64]:
        """Add the design that the values describe, if any."""
        result = _design_of(self, kept := {name: np.asarray(array, dtype=float) for name, array in values.items()})
        return kept if result is None else {**kept, **result.values()}

    def arrays(self, names: Collection[str]) -> dict[str, Array]:
        """Shapes of a design, and of the program's variables if given."""
        result = circuit_design.arrays(self.pool, lambda values: decode(self, values))
        if {"y", "f", "w", "t", "share"}.isdisjoint(names):
            return result
        pair = Axis("src", self.n), Axis("dst", self.n)
        copies = Array((*pair, Axis("copy", self.copies)), required=False)
        named: Names = self.commodities[0].tolist()
        if self.by_pair:
            named = [f"{s}->{t}" for s, t in np.argwhere(self.most > 0).tolist()]
        return result | {
            "y": copies,
            "f": Array((Axis("commodity", self.commodities[0].size, named), *pair), required=False),
            "w": copies,
            "t": Array(required=False),
            "share": Array((Axis("order", len(self.orders)),), required=False),
        }

    def residuals(self, values: Mapping[str, F64]) -> dict[str, float]:
        """Worst violation of every block of :func:`.circuit_design.residuals`, and of the parameters.

        ``parallel`` counts circuits of a pair above the limit; ``default_rings`` is infinite for any other than the
        default rings; ``rings`` also for trees in place of rings, or the reverse.
        """
        result, read = circuit_design.residuals(self.pool, values), circuit_design.read_design(self.pool, values)
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
        read = circuit_design.read_design(self.pool, values)
        return np.inf if read is None else self.value_of(read)

    def bounds(self) -> list[Bound]:
        """The :attr:`lower_bounds`, and for the maximum load what :attr:`idle` adds to them."""
        if self.goal != "max-load" or not self.idle:
            return self.lower_bounds
        reason = "byte-hops of the transport bound, and circuits of servers that receive more or less than they send"
        total = rounding.sum_down([self.byte_hops, self.idle])
        value = rounding.quotient_down(total, self.n * self.degree)
        return [*self.lower_bounds, Bound("imbalance", value, reason, "topoopt")]

    def describe(self, values: Mapping[str, F64]) -> Mapping[str, Json]:
        """Summary of a verified design."""
        read = circuit_design.read_design(self.pool, values)
        assert read is not None
        return circuit_design.describe(read)

    def links(self, values: Mapping[str, F64]) -> Links:
        """Load of every link."""
        return circuit_design.links(decode(self, values))

    @property
    def meaning(self) -> str:  # type: ignore[override]
        """Meaning of the value."""
        return MEANINGS[self.goal]


def _design_of(data: Wiring, values: Mapping[str, F64]) -> CircuitDesign | None:
    y, f = values.get("y"), values.get("f")
    if y is None or f is None or not np.isfinite(f[:, *data.pairs]).any():
        return None
    tail, head = data.pairs
    count = np.zeros((data.n, data.n), dtype=np.int64)
    count[tail, head] = np.rint(np.nan_to_num(y[tail, head])).sum(axis=1).astype(np.int64)
    rings: tuple[Ring, ...] = data.by_default
    if data.orders:
        rings = rings_of(data, np.asarray(values["share"], dtype=float))
    source = data.commodities[0]
    left = np.zeros((data.n, data.n, data.n))
    np.add.at(left, source, np.maximum(np.nan_to_num(f), 0.0))
    return design_from_flow(data, count, rings, left)


def design_from_flow(data: Wiring, count: I64, rings: tuple[Ring, ...], flow: F64) -> CircuitDesign | None:
    """Build the design of circuits ``count``, ``(n, n)``, and flows of every server over them, ``(n, n, n)``.

    A pair's circuits share its flow evenly. None if some demand is not served.
    """
    tail, head = np.nonzero(count)
    number = count[tail, head]
    circuits = np.repeat(np.stack([tail, head], axis=1), number, axis=0)
    sources = np.flatnonzero(circuit_design.ring_demand(data.pool, rings).sum(axis=1) > 0)
    shared = flow[sources][:, tail, head] / number
    return routed_by_flow(data.pool, circuits, rings, sources, np.repeat(shared.T, number, axis=0))


def rings_of(data: Wiring, share: F64) -> tuple[Ring, ...]:
    """Assign the candidate rings these shares, ``(R,)``, normalized to add up to 1 for every group."""
    share = np.where(share > 1e-9, share, 0.0)
    group = np.array([ring.group for ring in data.candidates])
    share = share / np.bincount(group, share)[group]
    return tuple(
        Ring(ring.group, float(part), ring.order, ring.trees)
        for ring, part in zip(data.candidates, share, strict=True)
        if part > 0
    )


def decode(data: Wiring, values: Mapping[str, F64]) -> CircuitDesign:
    """Return the typed design.

    Raises
    ------
    NotApplicable
        If the values are malformed.
    """
    read = circuit_design.read_design(data.pool, values)
    if read is None:
        msg = f"{NAME}: the values are not a design; give circuits, rings and routes"
        raise NotApplicable(msg)
    return read


FORMULATION = Wiring

r"""A demand matrix over parallel circuit switches: matchings, how long each is held, least makespan.

Source  the problem: *Scheduling Parallel Optical Circuit Switches for AI Training*, arXiv 2603.07373; the model and
        the bounds (:mod:`opticoll.formulations.topology.matching_bounds`) are ours
Sets    i, j in V nodes (n); h = 0..s-1 switches; k = 0..K-1 configurations of a switch, in any order in time
Data    D_ij >= 0 demand [shards], (n,n); delay >= 0 before a matching [shards / link bandwidth]; K: no less than the
        configurations of a switch in some optimum, or ``configurations``; M: the same for all switches, or 0
Vars    x_hkij in {0,1} circuit from i to j in a configuration, where D_ij > 0, (s,K,n,n); z_hk in {0,1} whether the
        switch sets a k-th matching, (s,K); t_hk >= 0 how long it holds it [shards / link bandwidth], (s,K);
        w_hkij >= 0 shards that the circuit carries, where D_ij > 0, (s,K,n,n); T >= 0 makespan

min T      s.t.
    ports_out[h,k,i]      sum_j x_hkij <= z_hk
    ports_in[h,k,j]       sum_i x_hkij <= z_hk
    lit[h,k,i,j]          w_hkij <= D_ij x_hkij
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
its demand. The last three rows choose one of the orders of configurations and switches, which are alike.

Delay. With ``first`` the switches begin dark, and each matching takes the delay. Otherwise the first matching of every
switch stands already; the optimum is then one delay less, with the same matchings.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from opticoll.formulations import rounding
from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.flows.concurrent_flow import demand_parameter
from opticoll.formulations.index import Index
from opticoll.formulations.model import Bound, CvxpyModel, Formulation, NotApplicable, Parameter, PyomoModel
from opticoll.formulations.topology import matching_bounds
from opticoll.formulations.topology.node_demand import pool_of_nodes, stated_demand
from opticoll.formulations.variables import SHARDS, TIME, Array, Axis, Links, SolutionSize
from opticoll.instances.topology import Topology

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from opticoll.instances.topology import F64, I64
    from opticoll.types import Json, Settings


NAME = "topology.matchings"
#: Maximum number of circuits of a stated model.
MOST_CIRCUITS = 2_000_000
#: Maximum numbers of switches and of configurations of a switch.
MOST_SWITCHES, MOST_CONFIGURATIONS = 1_024, 100_000


@dataclass(frozen=True, eq=False)
class TopologyMatchings(Formulation):
    """Data of the model; ``enough``: the number of configurations is no restriction."""

    name = NAME
    where = "ours, on the problem of arXiv 2603.07373"
    example = "servers:n=4,degree=2,traffic=alltoall"
    sense = "min"
    problem = "MILP"
    parameters = (
        Parameter("switches", int, default=0, help="number of parallel switches; 0 for the ports of a node"),
        Parameter("delay", float, default=1.0, help="time before a matching [shards / link bandwidth]"),
        Parameter("first", bool, default=True, help="the first matching of a switch takes the delay, too"),
        Parameter("configurations", int, default=0, help="most matchings of a switch; 0 for as many as can help"),
        demand_parameter(),
    )
    meaning = "makespan of all switches [shards / link bandwidth]"
    shards = True
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

    n: int
    switches: int
    configurations: int
    demand: F64
    delay: float
    first: bool = True
    total: int = 0
    enough: bool = False

    @cached_property
    def pairs(self) -> I64:
        """Pairs with demand, in C order, ``(P, 2)``."""
        return np.argwhere(self.demand > 0)

    @classmethod
    def prepare(cls, instance: object, parameters: Settings | None = None) -> TopologyMatchings:
        """Prepare the data of the model.

        Raises
        ------
        NotApplicable
            For anything but a server pool with uniform traffic, or parameters out of range.
        BadInput
            For a demand that cannot be read.
        """
        pool = pool_of_nodes(instance, NAME)
        given = cls._completed(parameters)
        return matchings_data(
            stated_demand(pool.n, given, NAME),
            given["switches"] or pool.degree,
            given["delay"],
            first=given["first"],
            configurations=given["configurations"],
        )

    def derived(self) -> list[Fraction]:
        """The demands."""
        return rounding.decimals(self.demand)

    def bounds(self) -> list[Bound]:
        """Bounds on every schedule, from ports, partners and the delay."""
        return matching_bounds.bounds(self)

    def closed_forms(self) -> list[Bound]:
        """Without delay, the bound of the ports."""
        return [bound for bound in self.bounds() if bound.exact]

    def refute(self) -> Bound | None:
        """Bound that excludes every schedule: too few matchings for the partners of a node."""
        return next((bound for bound in self.bounds() if bound.value == np.inf), None)

    def certify(self, duals: Mapping[str, F64]) -> Bound | None:
        """Bound from the duals of ``served`` as prices of the pairs."""
        prices = np.asarray(duals.get("served", ()), dtype=float)
        if prices.shape != self.demand.shape:
            return None
        value = max(matching_bounds.price_bound(self, sign * prices) for sign in (1.0, -1.0))
        return Bound("prices", value, "no matching serves more than its time is worth, at the duals of served")

    def sets(self) -> dict[str, range]:
        """Switches and configurations, also all but the last of each, and nodes."""
        H, K, V = range(self.switches), range(self.configurations), range(self.n)
        nodes = dict.fromkeys(("src", "dst"), V)
        return {"switch": H, "configuration": K, "upper": H[:-1], "earlier": K[:-1], **nodes}

    def cvxpy(self) -> CvxpyModel:
        """The model in CVXPY, over the pairs with demand."""
        import cvxpy as cp

        _refuse_large(self)
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
        from pyomo.core import quicksum

        _refuse_large(self)
        b, D = Pyo(self), self.demand.tolist()
        H, K, V = b.sets("switch", "configuration", "src")
        to = [[j for j in V if D[i][j] > 0] for i in V]
        of = [[i for i in V if D[i][j] > 0] for j in V]

        def due(h: int, k: int, i: int, j: int) -> bool:
            return j in to[i]

        x, w = b.var("x", upper=1, integer=True, where=due), b.var("w", where=due)
        z, t, T = b.var("z", upper=1, integer=True), b.var("t"), b.var("T")

        def leaving(block: Any, h: int, k: int, i: int) -> Any:
            return quicksum(block[h, k, i, j] for j in to[i])

        def entering(block: Any, h: int, k: int, j: int) -> Any:
            return quicksum(block[h, k, i, j] for i in of[j])

        def makespan(h: int) -> Any:
            charged = K if self.first else K[1:]
            return quicksum(t[h, k] for k in K) + self.delay * quicksum(z[h, k] for k in charged) <= T

        b.row("ports_out", lambda h, k, i: leaving(x, h, k, i) <= z[h, k], where=lambda h, k, i: to[i])
        b.row("ports_in", lambda h, k, j: entering(x, h, k, j) <= z[h, k], where=lambda h, k, j: of[j])
        b.row("lit", lambda h, k, i, j: w[h, k, i, j] <= D[i][j] * x[h, k, i, j], where=due)
        b.row("sending", lambda h, k, i: leaving(w, h, k, i) <= t[h, k], where=lambda h, k, i: to[i])
        b.row("receiving", lambda h, k, j: entering(w, h, k, j) <= t[h, k], where=lambda h, k, j: of[j])
        b.row(
            "served",
            lambda i, j: quicksum(w[h, k, i, j] for h in H for k in K) >= D[i][j],
            where=lambda i, j: D[i][j] > 0,
        )
        b.row("makespan", makespan)
        if self.total:
            b.row("total", lambda: quicksum(z.values()) <= self.total)
        if len(K) > 1:
            b.row("used_first", lambda h, k: z[h, k] >= z[h, k + 1])
            b.row("longest_first", lambda h, k: t[h, k] >= t[h, k + 1])
        if len(H) > 1:
            b.row("switches", lambda h: t[h, 0] >= t[h + 1, 0])
        return b.minimize(T)

    def estimate(self) -> dict[str, int]:
        """Size of the model."""
        s, K, P = self.switches, self.configurations, len(self.pairs)
        ends = int(self.demand.any(axis=1).sum() + self.demand.any(axis=0).sum())
        slots, charged = s * K, s * K if self.first else s * (K - 1)
        waiting = charged if self.delay > 0 else 0
        ordered, limited = s * (K - 1), int(self.total > 0)
        return {
            "variables": 2 * slots * P + 2 * slots + 1,
            "constraints": 2 * slots * ends + slots * P + P + s + 2 * ordered + s - 1 + limited,
            "nonzeros": 2 * slots * (2 * P + ends)
            + 2 * slots * P
            + slots * P
            + slots
            + waiting
            + s
            + 4 * ordered
            + 2 * (s - 1)
            + slots * limited,
            "integers": slots * P + slots,
        }

    def arrays(self, _names: Collection[str]) -> dict[str, Array]:
        """Shapes of the variables; a solution may have fewer configurations. Amounts and T follow from the others."""
        size = SolutionSize("configurations", most=None if self.enough else self.configurations)
        slots = Axis("switch", self.switches), Axis("configuration", size)
        pair = Axis("src", self.n), Axis("dst", self.n)
        return {
            "x": Array((*slots, *pair)),
            "t": Array(slots, unit=TIME),
            "z": Array(slots, required=False),
            "w": Array((*slots, *pair), unit=SHARDS, required=False),
            "T": Array((), unit=TIME, required=False),
            "served": Array(pair, dual=True),
        }

    def _read(self, values: Mapping[str, F64]) -> tuple[F64, F64, F64]:
        """Circuits as given and rounded, ``(s, K, n, n)``, and lengths, ``(s, K)``; none where nothing is due."""
        given = np.nan_to_num(np.asarray(values["x"], dtype=float)) * (self.demand > 0)
        return given, np.rint(np.clip(given, 0.0, 1.0)), np.nan_to_num(np.asarray(values["t"], dtype=float))

    def residuals(self, values: Mapping[str, F64]) -> dict[str, float]:
        """Worst violation of every block, amounts relative to the largest demand.

        What a circuit carries is how long it is held; z, w and T are not read.
        """
        given, circuits, t = self._read(values)
        carried = np.einsum("hkij,hk->ij", circuits, t)
        top = float(self.demand.max())
        return {
            "integrality": float(np.abs(given - circuits).max(initial=0.0)),
            "ports_out": float(max(circuits.sum(axis=3).max(initial=0.0) - 1.0, 0.0)),
            "ports_in": float(max(circuits.sum(axis=2).max(initial=0.0) - 1.0, 0.0)),
            "served": float(max((self.demand - carried).max(), 0.0)) / top,
            "sign": float(max(-t.min(initial=0.0), 0.0)) / top,
        }

    def objective(self, values: Mapping[str, F64]) -> float:
        """Makespan: the lengths and delays of the matchings that are set, on the switch that ends last."""
        _, circuits, t = self._read(values)
        numbers = circuits.any(axis=(2, 3)).sum(axis=1)
        charged = numbers if self.first else np.maximum(numbers - 1, 0)
        return float((t.sum(axis=1) + self.delay * charged).max(initial=0.0))

    def repair(self, values: Mapping[str, F64]) -> dict[str, F64] | None:
        """Round circuits, and hold all of them longer by the same factor until everything is served."""
        if {"x", "t"} - set(values):
            return None
        _, circuits, t = self._read(values)
        if circuits.sum(axis=3).max(initial=0.0) > 1 or circuits.sum(axis=2).max(initial=0.0) > 1:
            return None
        t = np.where(circuits.any(axis=(2, 3)), np.maximum(t, 0.0), 0.0)
        carried = np.einsum("hkij,hk->ij", circuits, t)
        due = self.demand > 0
        if (carried[due] <= 0).any():
            return None
        factor = max(float((self.demand[due] / carried[due]).max()), 1.0)
        return self.filled(circuits, t * factor * (1 + 4 * rounding.UNIT) if factor > 1 else t)

    def filled(self, circuits: F64, lengths: F64) -> dict[str, F64]:
        """All arrays of a schedule in the model's order, from its circuits (s,K,n,n) and lengths (s,K)."""
        used = circuits.any(axis=(2, 3))
        t = np.where(used, lengths, 0.0)
        order = np.lexsort((~used, -t), axis=1)
        t = np.take_along_axis(t, order, axis=1)
        z = np.take_along_axis(used, order, axis=1).astype(float)
        x = np.take_along_axis(circuits, order[:, :, None, None], axis=1)
        by_longest = np.argsort(-t[:, 0], kind="stable")
        x, z, t = x[by_longest], z[by_longest], t[by_longest]
        room = x * t[:, :, None, None]
        before = np.cumsum(room.reshape(-1, self.n, self.n), axis=0).reshape(room.shape) - room
        charged = z if self.first else z[:, 1:]
        makespan = (t.sum(axis=1) + self.delay * charged.sum(axis=1)).max()
        return {"x": x, "z": z, "t": t, "w": np.clip(self.demand - before, 0.0, room), "T": np.array(makespan)}

    def describe(self, values: Mapping[str, F64]) -> dict[str, Json]:
        """Properties of a verified solution: every switch's matchings as circuits, when they begin and how long."""
        _, circuits, t = self._read(values)
        schedule: list[Json] = []
        for h in range(self.switches):
            now = 0.0
            for k in np.flatnonzero(circuits[h].any(axis=(1, 2))).tolist():
                now += self.delay if self.first or now > 0 else 0.0
                pairs = np.argwhere(circuits[h, k] > 0).tolist()
                schedule.append({"switch": h, "begin": now, "length": float(t[h, k]), "circuits": pairs})
                now += float(t[h, k])
        return {
            "matchings": len(schedule),
            "lengths": float(t.sum()),
            "schedule": schedule,
        }

    def links(self, values: Mapping[str, F64]) -> Links:
        """Load of every pair with demand, and what its circuits could carry."""
        _, circuits, t = self._read(values)
        room = np.einsum("hkij,hk->ij", circuits, t)
        tail, head = self.pairs.T
        return Links(Topology(self.n, tail, head), self.demand[tail, head], room[tail, head], 1.0, SHARDS, SHARDS)

    def metrics(self, value: float | None) -> Mapping[str, Json]:
        """Figures at a value."""
        return {} if value is None else {"T": value, "delay": self.delay}


def matchings_data(
    demand: F64, switches: int, delay: float, *, first: bool = True, configurations: int = 0
) -> TopologyMatchings:
    """Prepare the data of the model.

    Parameters
    ----------
    demand
        Shards from every node to every other, ``(n, n)``, zero on the diagonal.
    switches, delay, first, configurations
        As the parameters of the formulation.

    Raises
    ------
    NotApplicable
        If the parameters are out of range.
    """
    if not 1 <= switches <= MOST_SWITCHES or not 0 <= configurations <= MOST_CONFIGURATIONS:
        msg = (
            f"{NAME}: {switches} switches, {configurations} configurations: give 1 to {MOST_SWITCHES} switches, and 0 "
            f"to {MOST_CONFIGURATIONS} configurations"
        )
        raise NotApplicable(msg)
    if not 0 <= delay < np.inf:
        msg = f"{NAME}: delay={delay} must be finite and nonnegative"
        raise NotApplicable(msg)
    amounts = np.asarray(demand, dtype=float)
    if configurations:
        return TopologyMatchings(len(amounts), switches, configurations, amounts, delay, first)
    number, total = matching_bounds.most_useful(amounts, switches, delay)
    return TopologyMatchings(len(amounts), switches, number, amounts, delay, first, total, enough=True)


def _refuse_large(data: TopologyMatchings) -> None:
    circuits = data.switches * data.configurations * len(data.pairs)
    if circuits > MOST_CIRCUITS:
        msg = f"{NAME}: {circuits:,} circuits are too many for a stated model; give configurations=, or --method auto"
        raise NotApplicable(msg)


FORMULATION = TopologyMatchings

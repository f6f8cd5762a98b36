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
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.formulations import rounding
from opticoll.formulations.flows.concurrent_flow import demand_parameter
from opticoll.formulations.model import Bound, CvxpyModel, Formulation, Named, NotApplicable, Parameter, PyomoModel
from opticoll.formulations.topology import matching_bounds
from opticoll.formulations.topology.node_demand import pool_of_nodes, stated_demand
from opticoll.formulations.variables import SHARDS, TIME, Array, Axis, Links, SolutionSize
from opticoll.instances.topology import Topology

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    import pyomo.core as pyo

    from opticoll.instances.topology import F64, I64
    from opticoll.instances.types import Json, Settings


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

    def cvxpy(self) -> CvxpyModel:
        """The model in matrix form."""
        import cvxpy as cp
        import scipy.sparse as sp

        _refuse_large(self)
        n, s, K, P = self.n, self.switches, self.configurations, len(self.pairs)
        i, j = np.tile(self.pairs, (s * K, 1)).T
        slot = np.repeat(np.arange(s * K), P)  # configuration h K + k of every circuit
        C, S = s * K * P, s * K
        each = np.arange(C)
        place = slot * n * n + i * n + j
        amounts = self.demand[i, j]
        x = cp.Variable(C, name="x", boolean=True)
        z = cp.Variable(S, name="z", boolean=True)
        t = cp.Variable(S, name="t", nonneg=True)
        w = cp.Variable(C, name="w", nonneg=True)
        makespan = cp.Variable(name="T", nonneg=True)

        def ones(rows: I64, columns: I64, shape: tuple[int, int]) -> sp.csr_array:
            return sp.csr_array((np.ones(rows.size), (rows, columns)), shape=shape)

        def side(ends: I64) -> tuple[sp.csr_array, sp.csr_array, I64]:
            """Circuits at every end that has any, the configuration of each, and its position in ``(s, K, n)``."""
            ports, number = np.unique(slot * n + ends, return_inverse=True)
            own = ones(np.arange(ports.size), ports // n, (ports.size, S))
            return ones(number, each, (ports.size, C)), own, ports

        out, out_slot, outs = side(i)
        into, into_slot, ins = side(j)
        charged = np.arange(S) if self.first else np.flatnonzero(np.arange(S) % K > 0)
        waiting = ones(charged // K, charged, (s, S))
        held = ones(np.arange(S) // K, np.arange(S), (s, S))
        wide, deep = (s, K, n), (s, K, n, n)
        named = {
            "ports_out": Named(out @ x - out_slot @ z <= 0, wide, outs),
            "ports_in": Named(into @ x - into_slot @ z <= 0, wide, ins),
            "lit": Named(w - sp.diags_array(amounts) @ x <= 0, deep, place),
            "sending": Named(out @ w - out_slot @ t <= 0, wide, outs),
            "receiving": Named(into @ w - into_slot @ t <= 0, wide, ins),
            "served": Named(
                ones(np.tile(np.arange(P), S), each, (P, C)) @ w >= self.demand[tuple(self.pairs.T)],
                (n, n),
                self.pairs @ np.array([n, 1]),
            ),
            "makespan": Named(held @ t + self.delay * (waiting @ z) - makespan * np.ones(s) <= 0, (s,)),
        }
        if self.total > 0:
            named["total"] = Named(cp.sum(z) <= self.total, ())
        if K > 1:
            earlier = np.flatnonzero(np.arange(S) % K < K - 1)
            index = earlier // K * (K - 1) + earlier % K
            named["used_first"] = Named(z[earlier] - z[earlier + 1] >= 0, (s, K - 1), index)
            named["longest_first"] = Named(t[earlier] - t[earlier + 1] >= 0, (s, K - 1), index)
        if s > 1:
            begun = np.arange(s - 1) * K
            named["switches"] = Named(t[begun] - t[begun + K] >= 0, (s - 1,))
        variables = {
            "x": Named(x, deep, place),
            "z": Named(z, (s, K), np.arange(S)),
            "t": Named(t, (s, K), np.arange(S)),
            "w": Named(w, deep, place),
            "T": Named(makespan, ()),
        }
        return CvxpyModel(cp.Problem(cp.Minimize(makespan), [row.item for row in named.values()]), variables, named)

    def pyomo(self) -> PyomoModel:
        """The model in Pyomo, constraints named as in the docstring."""
        import pyomo.core as pyo

        _refuse_large(self)
        n, s, K, D = self.n, self.switches, self.configurations, self.demand.tolist()
        to = [np.flatnonzero(row).tolist() for row in self.demand > 0]
        of = [np.flatnonzero(column).tolist() for column in self.demand.T > 0]
        due = [(i, j) for i in range(n) for j in to[i]]
        slots = [(h, k) for h in range(s) for k in range(K)]
        circuits = [(*slot, *pair) for slot in slots for pair in due]
        senders = [(*slot, i) for slot in slots for i in range(n) if to[i]]
        receivers = [(*slot, j) for slot in slots for j in range(n) if of[j]]
        model = pyo.ConcreteModel(name="matchings over parallel switches")
        model.x = pyo.Var(circuits, domain=pyo.Binary)
        model.z = pyo.Var(slots, domain=pyo.Binary)
        model.t = pyo.Var(slots, domain=pyo.NonNegativeReals)
        model.w = pyo.Var(circuits, domain=pyo.NonNegativeReals)
        model.T = pyo.Var(domain=pyo.NonNegativeReals)

        def from_(block: Any, h: int, k: int, i: int) -> Any:
            return pyo.quicksum(block[h, k, i, j] for j in to[i])

        def into(block: Any, h: int, k: int, j: int) -> Any:
            return pyo.quicksum(block[h, k, i, j] for i in of[j])

        def makespan(m: Any, h: int) -> Any:
            charged = range(0 if self.first else 1, K)
            waiting = self.delay * pyo.quicksum(m.z[h, k] for k in charged)
            return pyo.quicksum(m.t[h, k] for k in range(K)) + waiting <= m.T

        model.ports_out = pyo.Constraint(senders, rule=lambda m, h, k, i: from_(m.x, h, k, i) <= m.z[h, k])
        model.ports_in = pyo.Constraint(receivers, rule=lambda m, h, k, j: into(m.x, h, k, j) <= m.z[h, k])
        model.lit = pyo.Constraint(circuits, rule=lambda m, h, k, i, j: m.w[h, k, i, j] <= D[i][j] * m.x[h, k, i, j])
        model.sending = pyo.Constraint(senders, rule=lambda m, h, k, i: from_(m.w, h, k, i) <= m.t[h, k])
        model.receiving = pyo.Constraint(receivers, rule=lambda m, h, k, j: into(m.w, h, k, j) <= m.t[h, k])
        model.served = pyo.Constraint(
            due, rule=lambda m, i, j: pyo.quicksum(m.w[h, k, i, j] for h, k in slots) >= D[i][j]
        )
        model.makespan = pyo.Constraint(range(s), rule=makespan)
        model.end = pyo.Objective(expr=model.T)
        constraints: dict[str, tuple[Any, ...]] = {
            "ports_out": (s, K, n),
            "ports_in": (s, K, n),
            "lit": (s, K, n, n),
            "sending": (s, K, n),
            "receiving": (s, K, n),
            "served": (n, n),
            "makespan": (s,),
            **self._order_slots(model),
        }
        variables = {"x": (s, K, n, n), "z": (s, K), "t": (s, K), "w": (s, K, n, n), "T": ()}
        return PyomoModel(model, variables, constraints)

    def _order_slots(self, model: pyo.ConcreteModel) -> dict[str, tuple[int, ...]]:
        """Limit the number of configurations, and state the order among those that can be exchanged."""
        import pyomo.core as pyo

        s, K = self.switches, self.configurations
        named: dict[str, tuple[int, ...]] = {}
        if self.total:
            model.total = pyo.Constraint(expr=pyo.quicksum(model.z.values()) <= self.total)
            named["total"] = ()
        if K > 1:
            before = [(h, k) for h in range(s) for k in range(K - 1)]
            model.used_first = pyo.Constraint(before, rule=lambda m, h, k: m.z[h, k] >= m.z[h, k + 1])
            model.longest_first = pyo.Constraint(before, rule=lambda m, h, k: m.t[h, k] >= m.t[h, k + 1])
            named |= {"used_first": (s, K - 1), "longest_first": (s, K - 1)}
        if s > 1:
            model.switches = pyo.Constraint(range(s - 1), rule=lambda m, h: m.t[h, 0] >= m.t[h + 1, 0])
            named["switches"] = (s - 1,)
        return named

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

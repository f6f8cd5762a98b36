r"""Circuits that change during a collective: K configurations in turn, at least time.

Source  ours. The question: *To Reconfigure or Not to Reconfigure*, arXiv 2602.10468; *When Light Bends to the
        Collective Will*, arXiv 2510.08072. Bounds: :mod:`opticoll.formulations.topology.sequence_bounds`
Sets    u in V nodes (n); (i,j), i != j, ordered pairs of nodes; s in V sources that send; k = 0..K-1 configurations;
        m = 0..M-1 parallel circuits; p = 0..P-1 phases: the configurations and, with ``overlap``, the K-1 changes
        between them (P = 2K-1, else K)
Data    d ports: circuits out of and into a node, each of capacity 1; M parallel circuits at most; D_sv >= 0 demand
        [shards], (n,n); delay >= 0 of a change, startup >= 0 of a configuration [shards / link bandwidth]; optional:
        x^0 the circuits at the start;
        L no less than the length of a configuration in some optimum [shards / link bandwidth]
Vars    x_kijm in {0,1} circuit m from i to j, (K,n,n,M); t_k >= 0 length of a configuration, at most L, (K,);
        w_kijm >= 0 shards that a circuit can carry, (K,n,n,M); g_psij >= 0 flow of source s in a phase [shards], none
        into s, (P,n,n,n); b_psu >= 0 shards of s held by u != s after a phase, (P,n,n); with ``overlap``: e_kij >= 0
        circuits kept in change k, (K-1,n,n); with ``charge=changed``: z_k in {0,1} whether change k sets a circuit,
        (K-1,); with ``startup`` > 0: y_k in {0,1} whether configuration k is used, (K,)

min sum_k t_k + delay (K-1) + startup sum_k y_k      or, with ``charge=changed``, delay sum_k z_k in place of
                                                     delay (K-1)      s.t.
    ports_out[k,i]       sum_jm x_kijm <= d
    ports_in[k,j]        sum_im x_kijm <= d
    both_ways[k,i,j,m]   x_kijm = x_kjim                            i < j       (unless ``directed``)
    order[k,i,j,m]       x_kijm >= x_kij,m+1                        m < M-1
    standing[i,j,m]      x_0ijm = x^0_ijm                                       (with ``start``)
    lit[k,i,j,m]         w_kijm <= L x_kijm
    lasting[k,i,j,m]     w_kijm <= t_k
    used[k]              t_k <= L y_k                                           (with ``startup``)
    capacity[p,i,j]      sum_s g_psij <= sum_m w_kijm                           p is configuration k
                         sum_s g_psij <= delay e_kij                            p is change k   (``overlap``)
    kept_before[k,i,j]   e_kij <= sum_m x_kijm                                  (``overlap``)
    kept_after[k,i,j]    e_kij <= sum_m x_k+1,ijm                               (``overlap``)
    waiting[k,i,j]       e_kij <= M z_k                                         (``overlap`` and ``charge=changed``)
    setting[k,i,j,m]     x_k+1,ijm - x_kijm <= z_k                              (``charge=changed``)
    stock[p,s,u]         b_psu = b_p-1,su + inflow_u(g_ps) - outflow_u(g_ps)    u != s, b_-1 = 0
    held[p,s,u]          outflow_u(g_ps) <= b_p-1,su                            u != s      (``relays=step``, n > 2)
    served[s,u]          b_P-1,su >= D_su                                       D_su > 0

Check. Amounts are read from x, t and g alone: ``capacity`` takes circuits times lengths, so that ``lit``, ``lasting``,
``kept_before`` and ``kept_after`` hold by themselves; ``order`` only numbers circuits.

Time. Within a configuration data flow as a fluid, as in ``topology.design``, which is K = 1 with M = 1 and
``relays=pass``; between configurations nodes store them. With ``relays=step`` what a node sends in a phase it held
before it.

Exactness. x_kij t_k, the capacity of a configuration, is the largest sum of w that ``lit`` and ``lasting`` allow, for
t_k <= L. Some optimum has t_k <= L: the flow of a source in a phase can be freed of cycles, so that a circuit carries
at most the total demand; and no configuration of an optimum outlasts the time of a known sequence, a ring or a
rotation of direct circuits (:func:`opticoll.formulations.topology.sequence_bounds.known_sequences`). Flow grouped by
source is exact: over the phases it is a single-source flow, which decomposes into paths that end at (u, P-1).

Start-up. A configuration that lasts takes ``startup`` before its data flow, and in that time nothing is sent.

Delay. ``charge=any``: each of the K-1 changes takes the delay, even one that changes nothing. ``charge=changed``: only
changes that set a circuit which was not there, so that K is a maximum. In a change the whole fabric stops; with
``overlap`` only circuits that change are dark, and those of both configurations transmit. ``start`` is the first
configuration, which may be left at once (t_0 = 0). ``configurations=0`` chooses K: with ``charge=changed`` and a K
that no optimum exceeds (:func:`opticoll.formulations.topology.sequence_bounds.most_useful`); not with ``relays=step``,
where the same circuits may serve any number of configurations. Delay and start-up may be given in seconds (``3.7us``),
with the size of a shard and the bandwidth of a circuit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.flows.concurrent_flow import demand_parameter
from opticoll.formulations.index import Index
from opticoll.formulations.model import CvxpyModel, Formulation, PyomoModel
from opticoll.formulations.parameters import Parameter
from opticoll.formulations.topology import sequence_bounds, sequence_data, sequence_solution
from opticoll.formulations.topology.node_demand import amount_unit, pool_of_nodes, stated_demand
from opticoll.formulations.variables import SHARDS, TIME
from opticoll.instances.quantities import Duration, relative, shard_seconds
from opticoll.instances.topology_setting import TopologySetting, read_topology

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from opticoll.instances.topology import F64, I64, Mask


@dataclass(frozen=True, eq=False)
class TopologySequence(Formulation):
    """Data of the model."""

    name = "topology.sequence"
    where = "ours"
    example = "servers:n=5,degree=2,traffic=alltoall"
    problem = "MILP"
    parameters = (
        Parameter("configurations", int, default=2, help="number of configurations K; 0 to choose it, for a delay > 0"),
        Parameter(
            "delay",
            Duration,
            default=Duration(0.0),
            help="time of a change of circuits [shards / link bandwidth], or in seconds: 3.7us",
        ),
        Parameter("directed", bool, default=False, help="allow one-way circuits"),
        demand_parameter(),
        Parameter(
            "start",
            TopologySetting,
            default=TopologySetting(""),
            help="spec of the topology that stands at the start; empty for any",
        ),
        Parameter(
            "relays",
            str,
            default="pass",
            choices=("pass", "step"),
            help="within a configuration data pass through several circuits, or over one only",
        ),
        Parameter(
            "charge",
            str,
            default="any",
            choices=("any", "changed"),
            help="every change takes the delay, or only one that sets a circuit which was not there",
        ),
        Parameter("overlap", bool, default=False, help="circuits that do not change transmit during a change"),
        Parameter("parallel", int, default=0, help="maximum number of circuits from a node to another; 0 for no limit"),
        Parameter(
            "startup",
            Duration,
            default=Duration(0.0),
            help="time of every configuration that is used before its data flow, like delay",
        ),
        Parameter("shard", str, default="", help="size of a shard, such as 64MB, for times in seconds"),
        Parameter(
            "bandwidth",
            str,
            default="",
            help="bandwidth of a circuit, such as 100Gb/s, for times in seconds",
            only_with={"shard": ()},
        ),
    )
    meaning = "time of all configurations and changes [shards / link bandwidth]"
    variables: ClassVar = {
        "x": ("configuration", "src", "dst", "circuit"),
        "t": ("configuration",),
        "w": ("configuration", "src", "dst", "circuit"),
        "g": ("phase", "source", "src", "dst"),
        "b": ("phase", "source", "node"),
        "e": ("change", "src", "dst"),
        "z": ("change",),
        "y": ("configuration",),
    }
    units: ClassVar = {"t": TIME, "w": SHARDS, "g": SHARDS, "b": SHARDS}
    constraints: ClassVar = {
        "ports_out": ("configuration", "node"),
        "ports_in": ("configuration", "node"),
        "both_ways": ("configuration", "src", "dst", "circuit"),
        "order": ("configuration", "src", "dst", "lower"),
        "standing": ("src", "dst", "circuit"),
        "lit": ("configuration", "src", "dst", "circuit"),
        "lasting": ("configuration", "src", "dst", "circuit"),
        "used": ("configuration",),
        "capacity": ("phase", "src", "dst"),
        "kept_before": ("change", "src", "dst"),
        "kept_after": ("change", "src", "dst"),
        "waiting": ("change", "src", "dst"),
        "setting": ("change", "src", "dst", "circuit"),
        "stock": ("phase", "source", "node"),
        "held": ("phase", "source", "node"),
        "served": ("source", "node"),
    }
    _beside = (sequence_bounds, sequence_solution)

    n: int
    degree: int
    configurations: int
    demand: F64
    delay: float = 0.0
    directed: bool = False
    standing: I64 | None = None
    relays: str = "pass"
    charge: str = "any"
    overlap: bool = False
    parallel: int = 1
    chosen: bool = False
    startup: float = 0.0

    longest = cached_property(sequence_bounds.longest)
    of_nodes = classmethod(sequence_data.of_nodes)

    @property
    def phases(self) -> int:
        """Number of phases P: the configurations and, with ``overlap``, the changes between them."""
        return 2 * self.configurations - 1 if self.overlap else self.configurations

    @property
    def held(self) -> bool:
        """Whether the model has the rows ``held``: of two nodes, none sends on what it received."""
        return self.relays == "step" and self.n > 2

    @property
    def off(self) -> Mask:
        """Pairs of different nodes, ``(n, n)``."""
        return ~np.eye(self.n, dtype=bool)

    @property
    def sends(self) -> Mask:
        """Whether a node has any demand to send, ``(n,)``."""
        return np.asarray(self.demand.any(axis=1))

    @cached_property
    def amount(self) -> float | None:
        """What every node sends to every other; None if the amounts differ."""
        amounts = self.demand[self.off]
        return float(amounts[0]) if amounts.min() == amounts.max() else None

    @classmethod
    def _prepare(cls, instance: object, given: dict[str, Any]) -> TopologySequence:
        """Prepare the data of the model."""
        pool = pool_of_nodes(instance, cls.name)
        unit_s = shard_seconds(given["shard"], given["bandwidth"], cls.name)
        delay, startup = (relative(given[name], unit_s, f"{cls.name}: {name}") for name in ("delay", "startup"))
        return cls.of_nodes(
            pool.n,
            pool.degree,
            given["configurations"],
            demand=stated_demand(pool.n, given, cls.name),
            delay=delay,
            directed=given["directed"],
            start=read_topology(given["start"], f"{cls.name}: start"),
            startup=startup,
            **{name: given[name] for name in ("relays", "charge", "overlap", "parallel")},
        )

    def sets(self) -> dict[str, range]:
        """Configurations, changes, phases, parallel circuits and nodes."""
        V, K, M = range(self.n), range(self.configurations), range(self.parallel)
        sets = {"configuration": K, "change": K[:-1], "phase": range(self.phases), "circuit": M, "lower": M[:-1]}
        return sets | dict.fromkeys(("node", "source", "src", "dst"), V)

    def cvxpy(self) -> CvxpyModel:
        """The model in CVXPY, over the circuits, flows and stocks that can be above 0."""
        import cvxpy as cp

        b, n, K, M, P, L = Cvx(self), self.n, self.configurations, self.parallel, self.phases, self.longest
        nodes, changing = np.arange(n), self.charge == "changed" and K > 1
        sent = self.off & (nodes[:, None, None] != nodes) & self.sends[:, None, None]  # none into its source
        pairs, configurations, changes = (
            Index.of_mask("src dst", self.off),
            Index.grid(configuration=K),
            Index.grid(change=K - 1),
        )
        circuits = Index.of_mask("configuration src dst circuit", np.broadcast_to(self.off[:, :, None], (K, n, n, M)))
        flows = Index.of_mask("phase source src dst", np.broadcast_to(sent, (P, n, n, n)))
        stocks = Index.of_mask("phase source node", np.broadcast_to(self.off & self.sends[:, None], (P, n, n)))
        x, w = b.var("x", upper=1, integer=True, over=circuits), b.var("w", over=circuits)
        t, g, stock = b.var("t", upper=L), b.var("g", over=flows), b.var("b", over=stocks)

        ends = Index.grid(configuration=K, node=n)
        b.row("ports_out", ends.of(circuits, src="node") @ x <= self.degree, over=ends)
        b.row("ports_in", ends.of(circuits, dst="node") @ x <= self.degree, over=ends)
        if not self.directed:
            onward = circuits.where(circuits["src"] < circuits["dst"])
            b.row("both_ways", onward.of(circuits) @ x == onward.of(circuits, src="dst", dst="src") @ x, over=onward)
        if M > 1:
            at = (
                circuits.given(lower=circuits["circuit"])
                .where(circuits["circuit"] < M - 1)
                .keyed("configuration src dst lower")
            )
            here, next_one = at.of(circuits, circuit="lower"), at.of(circuits, circuit=at["lower"] + 1)
            b.row("order", here @ x >= next_one @ x, over=at)
        if self.standing is not None:
            at = pairs.join(Index.grid(circuit=M)).keyed("src dst circuit")
            there = at["circuit"] < self.standing[at["src"], at["dst"]]
            b.row("standing", at.of(circuits, configuration=0) @ x == there, over=at)
        b.row("lit", w <= L * x, over=circuits)
        b.row("lasting", w <= circuits.of(configurations) @ t, over=circuits)

        waiting, starting, room_in_changes = self.delay * (K - 1), 0.0, 0.0
        at = Index.grid(phase=P).join(pairs).keyed("phase src dst")
        k, change = np.divmod(at["phase"], 2) if self.overlap else (at["phase"], np.zeros(len(at), dtype=np.int64))
        if self.startup > 0:
            y = b.var("y", upper=1, integer=True)
            b.row("used", t <= L * y)
            starting = self.startup * cp.sum(y)
        if changing:
            z = b.var("z", upper=1, integer=True)
            waiting = self.delay * cp.sum(z)
            later = circuits.given(change=circuits["configuration"] - 1).where(circuits["configuration"] > 0)
            later = later.keyed("change src dst circuit")
            set_now = later.of(circuits, configuration="configuration") - later.of(circuits, configuration="change")
            b.row("setting", set_now @ x <= later.of(changes) @ z, over=later)
        if self.overlap and K > 1:
            kept = changes.join(pairs).keyed("change src dst")
            e = b.var("e", over=kept)
            b.row("kept_before", e <= kept.of(circuits, configuration="change") @ x, over=kept)
            b.row("kept_after", e <= kept.of(circuits, configuration=kept["change"] + 1) @ x, over=kept)
            room_in_changes = self.delay * (at.of(kept, change=np.where(change, k, -1)) @ e)
            if changing:
                b.row("waiting", e <= M * (kept.of(changes) @ z), over=kept)
        room = at.of(circuits, configuration=np.where(change, -1, k)) @ w + room_in_changes
        b.row("capacity", at.of(flows) @ g <= room, over=at)

        into, out_of = stocks.of(flows, dst="node") @ g, stocks.of(flows, src="node") @ g
        before = stocks.of(stocks, phase=stocks["phase"] - 1) @ stock
        b.row("stock", stock == before + into - out_of, over=stocks)
        if self.held:
            b.row("held", out_of <= before, over=stocks)
        last = stocks.where(stocks["phase"] == P - 1)
        due = last.where(self.demand[last["source"], last["node"]] > 0).keyed("source node")
        b.row("served", due.of(stocks, phase=P - 1) @ stock >= self.demand[due["source"], due["node"]], over=due)
        return b.minimize(cp.sum(t) + waiting + starting)

    def pyomo(self) -> PyomoModel:
        """The model in Pyomo, by configurations, phases and nodes."""
        b, D, d, L = Pyo(self), self.demand.tolist(), self.degree, self.longest
        V, K, P, M = b.sets("node", "configuration", "phase", "circuit")
        S = {s for s in V if any(D[s])}
        x = b.var("x", upper=1, integer=True, where=lambda k, i, j, m: i != j)
        w = b.var("w", where=lambda k, i, j, m: i != j)
        t, y = b.var("t", upper=L), None
        g = b.var("g", where=lambda p, s, i, j: s in S and i != j and j != s)
        stock = b.var("b", where=lambda p, s, u: s in S and u != s)

        def circuits(k: int, tails: Iterable[int], heads: Iterable[int]) -> Any:
            return b.sum(x[k, i, j, m] for i in tails for j in heads if i != j for m in M)

        b.row("ports_out", lambda k, i: circuits(k, [i], V) <= d)
        b.row("ports_in", lambda k, j: circuits(k, V, [j]) <= d)
        if not self.directed:
            b.row("both_ways", lambda k, i, j, m: x[k, i, j, m] == x[k, j, i, m], where=lambda k, i, j, m: i < j)
        if len(M) > 1:
            b.row("order", lambda k, i, j, m: x[k, i, j, m] >= x[k, i, j, m + 1], where=lambda k, i, j, m: i != j)
        if self.standing is not None:
            there = self.standing.tolist()
            b.row("standing", lambda i, j, m: x[0, i, j, m] == int(m < there[i][j]), where=lambda i, j, m: i != j)
        b.row("lit", lambda *at: w[at] <= L * x[at], where=lambda k, i, j, m: i != j)
        b.row("lasting", lambda *at: w[at] <= t[at[0]], where=lambda k, i, j, m: i != j)

        cost = b.sum(t[k] for k in K)
        if self.startup > 0:
            y = b.var("y", upper=1, integer=True)
            b.row("used", lambda k: t[k] <= L * y[k])
            cost += self.startup * b.sum(y[k] for k in K)
        if self.charge == "changed" and len(K) > 1:
            z = b.var("z", upper=1, integer=True)
            b.row(
                "setting", lambda k, i, j, m: x[k + 1, i, j, m] - x[k, i, j, m] <= z[k], where=lambda k, i, j, m: i != j
            )
            cost += self.delay * b.sum(z[k] for k in K[:-1])
        else:
            cost += self.delay * (len(K) - 1)
        if self.overlap and len(K) > 1:
            e = b.var("e", where=lambda k, i, j: i != j)
            b.row("kept_before", lambda k, i, j: e[k, i, j] <= circuits(k, [i], [j]), where=lambda k, i, j: i != j)
            b.row("kept_after", lambda k, i, j: e[k, i, j] <= circuits(k + 1, [i], [j]), where=lambda k, i, j: i != j)
            if self.charge == "changed":
                b.row("waiting", lambda k, i, j: e[k, i, j] <= len(M) * z[k], where=lambda k, i, j: i != j)

        def room(p: int, i: int, j: int) -> Any:
            if self.overlap and p % 2:
                return self.delay * e[p // 2, i, j]
            return b.sum(w[p // 2 if self.overlap else p, i, j, m] for m in M)

        def inflow(p: int, s: int, u: int) -> Any:
            return b.sum(g[p, s, v, u] for v in V)

        def outflow(p: int, s: int, u: int) -> Any:
            return b.sum(g[p, s, u, v] for v in V)

        def before(p: int, s: int, u: int) -> Any:
            return stock[p - 1, s, u] if p else 0

        b.row(
            "capacity",
            lambda p, i, j: b.sum(g[p, s, i, j] for s in V) <= room(p, i, j),
            where=lambda p, i, j: i != j,
        )
        states = [(p, s, u) for p in P for s in V if s in S for u in V if u != s]
        b.row("stock", lambda *at: stock[at] == before(*at) + inflow(*at) - outflow(*at), over=states)
        if self.held:
            b.row("held", lambda *at: outflow(*at) <= before(*at), over=states)
        b.row("served", lambda s, u: stock[P[-1], s, u] >= D[s][u], where=lambda s, u: D[s][u] > 0)
        return b.minimize(cost)

    def residuals(self, values: Mapping[str, F64]) -> dict[str, float]:
        """Worst violation of every block; amounts relative to :func:`.node_demand.amount_unit`.

        Capacities are circuits times length, stocks the sum of what arrived less what left: w, b and e are not read.
        """
        given = np.nan_to_num(np.asarray(values["x"], dtype=float)) * self.off[None, :, :, None]
        bits = np.rint(np.clip(given, 0.0, 1.0))
        t, counts = np.nan_to_num(np.asarray(values["t"], dtype=float)), bits.sum(axis=3)
        moved = sequence_solution.moved_flows(self, values)
        room = sequence_solution.phase_capacities(self, counts, t)
        arrived = moved.sum(axis=2) - moved.sum(axis=3)  # (P, s, u)
        stock = np.cumsum(arrived, axis=0)
        others, largest = self.off & self.sends[:, None], amount_unit(self.demand)
        before = np.concatenate([np.zeros_like(stock[:1]), stock[:-1]])
        result = {
            "integrality": float(np.abs(given - bits).max()),
            "ports_out": float(max((counts.sum(axis=2) - self.degree).max(), 0.0)),
            "ports_in": float(max((counts.sum(axis=1) - self.degree).max(), 0.0)),
            "both_ways": 0.0 if self.directed else float(np.abs(counts - counts.transpose(0, 2, 1)).max()),
            "standing": 0.0 if self.standing is None else float(np.abs(counts[0] - self.standing).max()),
            "capacity": float(max((moved.sum(axis=1) - room).max(), 0.0)) / largest,
            "stock": float(max(-(stock * others).min(), 0.0)) / largest,
            "served": float(max(((self.demand - stock[-1]) * others).max(), 0.0)) / largest,
            "sign": float(max(-moved.min(), -t.min(), 0.0)) / largest,
        }
        if self.startup > 0:
            given = np.nan_to_num(np.asarray(values["y"], dtype=float))
            y = np.rint(np.clip(given, 0.0, 1.0))
            result["integrality"] = max(result["integrality"], float(np.abs(given - y).max()))
            result["used"] = float((t * (y == 0)).max()) / largest
        if self.relays == "step":
            result["held"] = float(max(((moved.sum(axis=3) - before) * others).max(), 0.0)) / largest
        if self.charge == "changed" and self.configurations > 1:
            given = np.asarray(values["z"], dtype=float)
            z = np.rint(np.clip(np.nan_to_num(given), 0.0, 1.0))
            result["integrality"] = max(result["integrality"], float(np.abs(given - z).max()))
            new = np.maximum(np.diff(counts, axis=0), 0.0).max(axis=(1, 2))
            result["setting"] = float(np.maximum((new > 0) - z, 0.0).max())
            if self.overlap:  # no change, no time of a change
                late = moved[1::2].sum(axis=(1, 2, 3)) * (z == 0)
                result["waiting"] = float(late.max()) / largest
        return result

    def objective(self, values: Mapping[str, F64]) -> float:
        """Time of all configurations and changes."""
        changes: Any = self.configurations - 1
        if self.charge == "changed" and self.configurations > 1:
            changes = np.asarray(values["z"], dtype=float).sum()
        used = np.asarray(values["y"], dtype=float).sum() if self.startup > 0 else 0.0
        return float(np.asarray(values["t"], dtype=float).sum() + self.delay * changes + self.startup * used)


FORMULATION = TopologySequence

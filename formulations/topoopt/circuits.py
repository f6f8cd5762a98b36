r"""Circuits for a task graph: the least time of an iteration, with every transfer after what it waits for.

Source  beyond the paper: TopoOpt designs circuits for the sum of all traffic; circuits for the graph of computing and
        transfers, with intervals of variable length: DELTA (arXiv 2603.28096)
Sets    u,v,s in V servers (n); q in Q configurations (C), one after the other; j in 1..d parallel circuits;
        k in K intervals, q(k) the configuration of each, equally many of every one, in order; e in E transfers;
        (g,e) in W, transfer e waits for g
Data    p_e > 0 time of transfer e from s_e to t_e over one circuit [ms], (E,); h_e computing before it that waits for
        no transfer, r_e computing after it until the end [ms], (E,); m_ge longest chain of computing between g and e
        [ms], (W,); M >= 0 longest chain of computing without a transfer [ms]; d ports of every server; D >= 0 delay of
        another configuration [ms]; H a time within which some schedule ends [ms]
Vars    y_quvj in {0,1} whether there is a j-th circuit from u to v, (C,n,n,d); o_kuvj >= 0 time for which it serves in
        an interval [ms], (K,n,n,d); f_ksuv >= 0 what u passes on to v of s [ms of a circuit], (K,n,n,n), u != v != s;
        a_ke in {0,1} whether e is sent in k, (K,E); b_ke >= 0 how much of it [ms of a circuit], (K,E);
        t_k, l_k >= 0 start and length of an interval [ms], (K,); c_e >= h_e + p_e / d end of e [ms], (E,);
        z >= M makespan [ms]

min z  s.t.
    out[q,u]          sum_vj y_quvj <= d
    into[q,v]         sum_uj y_quvj <= d
    there[k,u,v,j]    o_kuvj <= H y_q(k)uvj
    within[k,u,v,j]   o_kuvj <= l_k
    sends[k,u]        sum_vj o_kuvj <= d l_k                             (implied where y is integral)
    receives[k,v]     sum_uj o_kuvj <= d l_k                             (implied where y is integral)
    capacity[k,u,v]   sum_s f_ksuv <= sum_j o_kuvj
    balance[k,s,v]    sum_u f_ksuv - sum_w f_ksvw = sum_(e: s_e = s, t_e = v) b_ke        v != s
    all[e]            sum_k b_ke = p_e
    shares[k,e]       b_ke <= p_e a_ke
    ready[k,e]        t_k >= h_e a_ke
    wait[g,e,k]       t_k >= c_g + m_ge - H (1 - a_ke)
    end[k,e]          c_e >= t_k + l_k - H (1 - a_ke)
    follow[k]         t_k >= t_k-1 + l_k-1 + D [q(k) != q(k-1)]          k > 0
    last[e]           z >= c_e + r_e

What a transfer gets. Within an interval every transfer has a constant rate, over any paths (a fluid, which servers may
relay), within the circuits that there are; it ends with the last interval in which it is sent. Intervals end whenever
one chooses. So the model is every schedule of rates that change at most K - 1 times: 2 E - 1 intervals are as good as
any number, since rates may as well be constant between starts and ends of transfers. DELTA sends over direct circuits
alone. A server computes one task at a time, in the order of their numbers, so that all computing is in h, m, r and M.
An all-reduce among k servers is one transfer of 2 (k-1)/k of its bytes over each hop of a ring, as in TopoOpt. The
first configuration is there at the start; no transfer is sent during a change.

H is the time of a schedule that sends the transfers one after the other over a ring of servers, wave by wave (a wave is
one more than the waves of what a transfer waits for).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from opticoll.errors import NotApplicable
from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.index import Index
from opticoll.formulations.model import CvxpyModel, Formulation, PyomoModel, of_kind
from opticoll.formulations.parameters import Parameter
from opticoll.formulations.topoopt import circuits_bounds, circuits_solution
from opticoll.formulations.topoopt.circuits_data import TaskTransfers, ring_strides, transfers_of
from opticoll.formulations.topoopt.strategy_traffic import BANDWIDTH
from opticoll.instances.quantities import Duration, relative
from opticoll.instances.training.task_pool import TaskPool

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opticoll.instances.topology import F64, I64


@dataclass(frozen=True, eq=False)
class TaskCircuits(Formulation):
    """Data of the model; ``part`` is the number of intervals of one configuration."""

    name = "topoopt.circuits"
    where = "beyond the paper"
    example = "tasks:moe,n=3,degree=1"
    problem = "MILP"
    parameters = (
        Parameter("bandwidth", float, default=BANDWIDTH, help="bandwidth of a circuit [bytes/s]", least=1),
        Parameter("intervals", int, default=0, help="intervals of a configuration; 0: one for every wave", least=0),
        Parameter("rings", str, default="1", help="strides of the rings of all-reduces, such as 1+5, in equal shares"),
        Parameter("configurations", int, default=1, help="configurations of circuits, one after the other", least=1),
        Parameter("delay", Duration, Duration(0.0), help="time of a change of the configuration [ms], or as 11.5us"),
    )
    meaning = "time of the iteration [ms]"
    variables: ClassVar = {
        "y": ("configuration", "tail", "head", "parallel"),
        "o": ("interval", "tail", "head", "parallel"),
        "f": ("interval", "source server", "tail", "head"),
        "a": ("interval", "transfer"),
        "b": ("interval", "transfer"),
        "t": ("interval",),
        "l": ("interval",),
        "c": ("transfer",),
        "z": (),
    }
    units: ClassVar = dict.fromkeys("ofbtlcz", "ms")
    constraints: ClassVar = {
        "out": ("configuration", "tail"),
        "into": ("configuration", "head"),
        "there": ("interval", "tail", "head", "parallel"),
        "within": ("interval", "tail", "head", "parallel"),
        "sends": ("interval", "tail"),
        "receives": ("interval", "head"),
        "capacity": ("interval", "tail", "head"),
        "balance": ("interval", "source server", "head"),
        "all": ("transfer",),
        "shares": ("interval", "transfer"),
        "ready": ("interval", "transfer"),
        "end": ("interval", "transfer"),
        "follow": ("interval",),
        "last": ("transfer",),
    }
    _beside = (circuits_bounds, circuits_solution)

    n: int
    degree: int
    transfers: TaskTransfers
    part: int
    configurations: int
    delay: float

    @classmethod
    def _prepare(cls, instance: object, given: dict[str, Any]) -> Self:
        """The data of the model."""
        needed = "servers with a task graph, such as tasks:moe,n=4,degree=2"
        instance = of_kind(TaskPool, instance, cls.name, needed)
        transfers = transfers_of(instance.graph, given["bandwidth"], ring_strides(given["rings"]))
        depth = int(transfers.wave.max()) + 1
        part, C = given["intervals"] or depth, given["configurations"]
        if part * C < depth:
            msg = (
                f"{cls.name}: transfers wait for each other in {depth} waves; set intervals to {-(-depth // C)} or more"
            )
            raise NotApplicable(msg)
        delay = relative(given["delay"], 1e-3, f"{cls.name}: delay")
        return cls(instance.n, instance.degree, transfers, part, C, round(delay, 6))

    @property
    def intervals(self) -> int:
        """K."""
        return self.part * self.configurations

    @cached_property
    def configuration(self) -> I64:
        """q(k), ``(K,)``."""
        return np.arange(self.intervals) // self.part

    @cached_property
    def pause(self) -> F64:
        """Time before every interval in which circuits change [ms], ``(K,)``."""
        return np.where(np.diff(self.configuration, prepend=0) > 0, self.delay, 0.0)

    @cached_property
    def horizon(self) -> float:
        """H."""
        return circuits_solution.wave_horizon(self)

    @cached_property
    def least_end(self) -> F64:
        """h_e + p_e / d, rounded down to nanoseconds, ``(E,)``."""
        return np.floor((self.transfers.head + self.transfers.size / self.degree) * 1e6) / 1e6

    def sets(self) -> dict[str, Sequence[Any]]:
        """Servers, configurations, parallel circuits, intervals and transfers."""
        servers = range(self.n)
        return {
            "tail": servers,
            "head": servers,
            "source server": servers,
            "configuration": range(self.configurations),
            "parallel": range(self.degree),
            "interval": range(self.intervals),
            "transfer": range(self.transfers.count),
        }

    def cvxpy(self) -> CvxpyModel:
        """The model in CVXPY, over servers u != v."""
        b, n, d, H, K, C = Cvx(self), self.n, self.degree, self.horizon, self.intervals, self.configurations
        e, apart, q = self.transfers, ~np.eye(n, dtype=bool), self.configuration
        Y = Index.of_mask("configuration tail head parallel", np.broadcast_to(apart[..., None], (C, n, n, d)))
        opened = Index.of_mask("interval tail head parallel", np.broadcast_to(apart[..., None], (K, n, n, d)))
        onward = apart & apart[:, None, :]  # s, u, v
        sending = np.isin(np.arange(n), e.source)[:, None, None]
        F = Index.of_mask("interval s tail head", np.broadcast_to(onward & sending, (K, n, n, n)))
        S, T = Index.grid(interval=K, transfer=e.count), Index.grid(interval=K)
        sent = S.given(s=e.source[S["transfer"]], target=e.target[S["transfer"]])
        y, o, f = b.var("y", upper=1, integer=True, over=Y), b.var("o", over=opened), b.var("f", over=F)
        share, active = b.var("b", over=S), b.var("a", upper=1, integer=True, over=S)
        t, length, end = b.var("t"), b.var("l"), b.var("c", lower=self.least_end)
        z = b.var("z", lower=e.computing)
        b.row("out", Index.grid(configuration=C, tail=n).of(Y) @ y <= d, over=Index.grid(configuration=C, tail=n))
        b.row("into", Index.grid(configuration=C, head=n).of(Y) @ y <= d, over=Index.grid(configuration=C, head=n))
        at = opened.given(own=q[opened["interval"]])
        b.row("there", o <= H * (at.of(Y, configuration="own") @ y), over=opened)
        b.row("within", o <= opened.of(T) @ length, over=opened)
        for name, side in (("sends", "tail"), ("receives", "head")):
            ends = Index.grid(interval=K, **{side: n})
            b.row(name, ends.of(opened) @ o <= d * (ends.of(T) @ length), over=ends)
        pairs = F.by("interval tail head")
        b.row("capacity", pairs.of(F) @ f <= pairs.of(opened) @ o, over=pairs)
        others = Index.of_mask("interval s vertex", np.broadcast_to(apart & sending[:, 0], (K, n, n)))
        net = others.of(F, head="vertex") @ f - others.of(F, tail="vertex") @ f
        b.row("balance", net == others.of(sent, target="vertex") @ share, over=others)
        each = Index.grid(transfer=e.count)
        b.row("all", each.of(S) @ share == e.size)
        i = S["transfer"]
        b.row("shares", share <= _times(e.size[i], active), over=S)
        b.row("ready", S.of(T) @ t >= _times(e.head[i], active), over=S)
        b.row("end", S.of(each) @ end >= S.of(T) @ (t + length) - H * (1 - active), over=S)
        if e.before.size:
            line, interval = (axis.ravel() for axis in np.indices((e.before.size, K)))
            waits = Index.table(
                "wait interval", {"wait": line, "interval": interval, "g": e.before[line], "e": e.after[line]}
            )
            ended, held = waits.of(each, transfer="g") @ end, waits.of(S, transfer="e") @ active
            b.row("wait", waits.of(T) @ t >= ended + e.lag[line] - H * (1 - held), over=waits)
        if K > 1:
            change = self.delay * (np.diff(q) > 0)
            b.row("follow", t[1:] >= t[:-1] + length[:-1] + change, over=T.where(T["interval"] > 0))
        b.row("last", z >= end + e.tail)
        return b.minimize(z)

    def pyomo(self) -> PyomoModel:
        """The model in Pyomo, constraint by constraint as in the module docstring."""
        b, n, d, H, e = Pyo(self), self.n, self.degree, self.horizon, self.transfers
        V, J, K, E = range(n), range(d), range(self.intervals), range(e.count)
        source, target, size, head, tail = (column.tolist() for column in (e.source, e.target, e.size, e.head, e.tail))
        senders = sorted(set(source))
        own = [k // self.part for k in K]
        carried: dict[tuple[int, int], list[int]] = {}
        for i in E:
            carried.setdefault((source[i], target[i]), []).append(i)
        y = b.var("y", upper=1, integer=True, where=lambda _, u, v, __: u != v)
        o = b.var("o", where=lambda _, u, v, __: u != v)
        f = b.var("f", where=lambda _, s, u, v: s in senders and v not in (s, u))
        a, share = b.var("a", upper=1, integer=True), b.var("b")
        t, length, c = b.var("t"), b.var("l"), b.var("c", lower=self.least_end)
        z = b.var("z", lower=e.computing)
        b.row("out", lambda q, u: b.sum(y[q, u, v, j] for v in V for j in J) <= d)
        b.row("into", lambda q, v: b.sum(y[q, u, v, j] for u in V for j in J) <= d)
        b.row("there", lambda k, u, v, j: o[k, u, v, j] <= H * y[own[k], u, v, j], where=lambda _, u, v, __: u != v)
        b.row("within", lambda k, u, v, j: o[k, u, v, j] <= length[k], where=lambda _, u, v, __: u != v)
        b.row("sends", lambda k, u: b.sum(o[k, u, v, j] for v in V for j in J) <= d * length[k])
        b.row("receives", lambda k, v: b.sum(o[k, u, v, j] for u in V for j in J) <= d * length[k])

        def capacity(k: int, u: int, v: int) -> Any:
            return b.sum(f[k, s, u, v] for s in senders) <= b.sum(o[k, u, v, j] for j in J)

        def balance(k: int, s: int, v: int) -> Any:
            passed = b.sum(f[k, s, u, v] for u in V) - b.sum(f[k, s, v, w] for w in V)
            return passed == b.sum(share[k, i] for i in carried.get((s, v), ()))

        def wait(g: int, i: int, k: int) -> Any:
            return t[k] >= c[g] + lag[g, i] - H * (1 - a[k, i])

        b.row("capacity", capacity, where=lambda _, u, v: u != v and any(s != v for s in senders))
        b.row("balance", balance, where=lambda _, s, v: s in senders and s != v)
        b.row("all", lambda i: b.sum(share[k, i] for k in K) == size[i])
        b.row("shares", lambda k, i: share[k, i] <= size[i] * a[k, i])
        b.row("ready", lambda k, i: t[k] >= head[i] * a[k, i])
        b.row("end", lambda k, i: c[i] >= t[k] + length[k] - H * (1 - a[k, i]))
        lag = dict(zip(zip(e.before.tolist(), e.after.tolist(), strict=True), e.lag.tolist(), strict=True))
        if lag:
            b.row("wait", wait, over=[(g, i, k) for g, i in lag for k in K])

        def follow(k: int) -> Any:
            return t[k] >= t[k - 1] + length[k - 1] + (self.delay if own[k] != own[k - 1] else 0)

        b.row("follow", follow, where=lambda k: k > 0)
        b.row("last", lambda i: z >= c[i] + tail[i])
        return b.minimize(z)

    def residuals(self, values: Mapping[str, F64]) -> dict[str, float]:
        """Worst violation of every block, from numpy alone, relative to the best bound; o and c are not read."""
        return circuits_solution.violations(self, values)

    def objective(self, values: Mapping[str, F64]) -> float:
        """The given z; :meth:`residuals` checks that the iteration ends by then."""
        return float(np.asarray(values["z"]))


def _times(numbers: F64, x: Any) -> Any:
    import cvxpy as cp

    return cp.multiply(numbers, x)


FORMULATION = TaskCircuits

r"""Placement of sub-operations on GPUs of limited degree that minimizes the makespan of one group's step.

Source  SiP-ML, section 3.2 and Algorithm 1
Sets    v in V sub-operations, in topological order; e = (u,v) in E dependencies; g in 0 .. k-1 GPUs of a group; pairs
        {u,v} in U of which neither precedes the other
Data    p_v > 0 computing time [us]; b_e bytes; B = ``bandwidth`` between GPUs [bytes/s], 0: communication takes no time
        (as in Algorithm 1 before network operations are added); H the horizon [us]; Delta: maximum number of other
        GPUs to send to, and to receive from; m_v bytes of v, ``states`` times its parameters plus all data it receives
        (mem_size, which the paper does not define); M = ``memory`` of a GPU [bytes], 0: no limit
Vars    a_vg in {0,1} v on g, (n, k); S_v in 0 .. 1 - p_v/H start, (n,), and C in 0 .. 1 makespan [H]; y_uv in
        {0,1} u before v, (|U|,); q_gh in {0,1} g sends to h, g != h, (k, k)

min H C  s.t.
    assign[v]      sum_g a_vg = 1
    finish[v]      S_v + p_v/H <= C
    precede[e,g]   S_v >= S_u + p_u/H + (b_e/B)/H (a_ug - a_vg)            (one row for all g if B = 0)
    before[uv,g]   S_u + p_u/H <= S_v + 3 - y_uv - a_ug - a_vg
    after[uv,g]    S_v + p_v/H <= S_u + 2 + y_uv - a_ug - a_vg
    memory[g]      sum_v (m_v/M) a_vg <= 1                             (M > 0, some m_v > 0)
  rule=degree
    link[e,g,h]    a_ug + a_vh - q_gh <= 1                             (g != h)
    sends[g]       sum_h q_gh <= Delta
    receives[h]    sum_g q_gh <= Delta
  rule=distance (the paper's: a GPU sends to itself and the next Delta GPUs)
    reach[e,g]     a_ug + sum_{h: (h - g) mod k > Delta} a_vh <= 1

with all times in us, and H the total work, plus all delays b_e/B if memory is limited (sequential execution).
Sub-operation 0 is on GPU 0 (both rules are invariant under rotations of the GPUs).

Delta = D - 1 if there are ``replicas`` groups that synchronise on a ring through one more circuit, D if there is one
group. The placement is repeated in every group (:func:`opticoll.analysis.papers.sipml.claims.hybrid_traffic`).

Bounds: :mod:`opticoll.formulations.sipml`.

A placement may also be given as ``device`` (n,) and ``start`` (n,) [us].
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from opticoll.formulations import rounding
from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.index import Index
from opticoll.formulations.model import CvxpyModel, Formulation, NotApplicable, Parameter, PyomoModel
from opticoll.formulations.sipml import transfers
from opticoll.formulations.sipml.transfers import chains
from opticoll.formulations.variables import Array, Axis, entries, members
from opticoll.instances.families.op_graphs import OpGraph

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from opticoll.instances.topology import F64, I64
    from opticoll.types import Json, Settings

NAME = "sipml.placement"
RULES = ("distance", "degree")
#: Maximum number of GPUs in a group, and maximum size of a matrix that is built.
MOST_DEVICES, MOST_NONZEROS = 4096, 5_000_000
#: Maximum number of sub-operations whose pairs are listed for a matrix.
MOST_MODELLED = 2000


@dataclass(frozen=True, eq=False)
class Placement(Formulation):
    """Data of the model: graph, k GPUs, Delta, rule, bandwidth [bytes/s] and memory [bytes] (0: no limit)."""

    name = NAME
    where = "section 3.2, Algorithm 1"
    example = "op-graph:model=transformer,layers=4,parts=4"
    sense = "min"
    problem = "MILP"
    parameters = (
        Parameter("k", int, default=4, help="GPUs per group (model parallel)"),
        Parameter("degree", int, default=3, help="circuits per GPU, D"),
        Parameter("replicas", int, default=2, help="groups (data parallel); with more than one, Delta = D - 1"),
        Parameter(
            "rule", str, default="distance", help="the paper's distance on a circle, or the degree alone", choices=RULES
        ),
        Parameter("bandwidth", float, default=0.0, help="bytes/s between two GPUs; 0: communication takes no time"),
        Parameter("memory", float, default=0.0, help="memory of a GPU [GiB]; 0: no limit"),
        Parameter("states", float, default=2.0, help="copies of the parameters, including gradients and optimizer"),
    )
    meaning = "makespan of a step [us]"
    variables: ClassVar = {"a": ("op", "gpu"), "S": ("op",), "C": (), "y": ("pair",), "q": ("src", "dst")}
    constraints: ClassVar = {
        "assign": ("op",),
        "finish": ("op",),
        "precede": ("dependency", "gpu"),
        "before": ("pair", "gpu"),
        "after": ("pair", "gpu"),
        "memory": ("gpu",),
        "link": ("dependency", "src", "dst"),
        "sends": ("src",),
        "receives": ("dst",),
        "reach": ("dependency", "gpu"),
    }
    bounds = transfers.bounds

    graph: OpGraph
    devices: int
    delta: int
    rule: str
    bandwidth: float
    replicas: int
    memory: float = 0.0
    states: float = 2.0

    @property
    def n(self) -> int:
        """Sub-operations."""
        return self.graph.n

    @property
    def work(self) -> float:
        """Total computing time [us]."""
        return float(self.graph.duration.sum())

    @cached_property
    def delay(self) -> F64:
        """Time of every dependency between two GPUs [us], ``(m,)``."""
        return self.graph.volume / self.bandwidth * 1e6 if self.bandwidth else np.zeros(self.graph.dependencies)

    @property
    def horizon(self) -> float:
        """Time within which some placement finishes, if one exists [us]."""
        return self.work + (float(self.delay.sum()) if self.memory else 0.0)

    @cached_property
    def occupied(self) -> F64:
        """Bytes m_v that every sub-operation occupies, ``(n,)``."""
        graph = self.graph
        return np.asarray(self.states * graph.weights + np.bincount(graph.head, graph.volume, self.n))

    @property
    def crowded(self) -> bool:
        """Whether the memory of GPUs is limited, and some sub-operation occupies any."""
        return self.memory > 0 and bool(self.occupied.any())

    @cached_property
    def forced(self) -> F64:
        """Delay of dependencies whose ends do not fit together on one GPU [us], 0 for the others, ``(m,)``."""
        together = self.occupied[self.graph.tail] + self.occupied[self.graph.head]
        return np.where((self.memory > 0) & (together > self.memory * (1 + 1e-9)), self.delay, 0.0)

    @property
    def free(self) -> bool:
        """Whether any GPU may send to any other."""
        return self.delta >= self.devices - 1

    @cached_property
    def heads(self) -> F64:
        """Longest chain before every sub-operation [us], ``(n,)``."""
        return chains(self.graph, self.forced)[0]

    @cached_property
    def tails(self) -> F64:
        """Longest chain after every sub-operation [us], ``(n,)``."""
        return chains(self.graph, self.forced)[1]

    @cached_property
    def unordered(self) -> tuple[I64, I64]:
        """Pairs u < v of which neither precedes the other, ``(|U|,)`` each."""
        behind = np.zeros((self.n, self.n), dtype=bool)
        for v in range(self.n):
            before = self.graph.tail[self.graph.first_in[v] : self.graph.first_in[v + 1]]
            behind[before, v] = True
            behind[:, v] |= behind[:, before].any(axis=1)
        first, second = np.nonzero(np.triu(~behind, k=1))
        return first, second

    @classmethod
    def prepare(cls, instance: object, parameters: Settings | None = None) -> Self:
        """The data of the model.

        Raises
        ------
        NotApplicable
            For anything but a computation graph; GPUs, degree, replicas, bandwidth or memory out of range; a degree
            of 1 with replicas, which leaves no circuit for the group; more GPUs than sub-operations; too little total
            memory.
        """
        if not isinstance(instance, OpGraph):
            spec = getattr(instance, "spec", type(instance).__name__)
            msg = f"{NAME}: needs a computation graph, op-graph:model=...,layers=...,parts=..., not {spec}"
            raise NotApplicable(msg)
        given = cls._completed(parameters)
        k, degree, replicas, bandwidth = (given[name] for name in ("k", "degree", "replicas", "bandwidth"))
        if not 1 <= k <= MOST_DEVICES or replicas < 1 or k * replicas > 10**6:
            msg = f"{NAME}: k={k}, replicas={replicas}; use 1 to {MOST_DEVICES} GPUs per group and at least 1 group"
            raise NotApplicable(msg)
        ring = int(replicas > 1)
        if degree < 1 + ring and k > 1:
            reason = "one circuit goes to the next group" if ring else "a GPU needs a circuit"
            msg = f"{NAME}: degree={degree}; {reason}, so use at least {1 + ring}, or k=1"
            raise NotApplicable(msg)
        if degree < ring or not 0 <= bandwidth < np.inf:
            msg = f"{NAME}: degree={degree}, bandwidth={bandwidth}; neither may be negative (bandwidth 0: no delay)"
            raise NotApplicable(msg)
        if k > instance.n:
            msg = (
                f"{NAME}: a group of k={k} GPUs for {instance.n} sub-operations; use at most "
                f"k={instance.n}, or more parts"
            )
            raise NotApplicable(msg)
        memory, states = given["memory"] * 2**30, given["states"]
        if not (0 <= memory < np.inf and 0 <= states < np.inf):
            msg = f"{NAME}: memory={given['memory']}, states={states:g}; neither may be negative (memory 0: no limit)"
            raise NotApplicable(msg)
        delta = min(degree - ring, max(k - 1, 0))
        data = cls(instance, k, delta, given["rule"], bandwidth, replicas, memory, states)
        least = max(float(data.occupied.max()), float(data.occupied.sum()) / k)
        if 0 < memory < least * (1 - 1e-9):
            msg = (
                f"{NAME}: the sub-operations need at least {least / 2**30:.4g} GiB per GPU; increase memory, k or parts"
            )
            raise NotApplicable(msg)
        return data

    def derived(self) -> list[Fraction]:
        """Durations and delays in units of the horizon, their differences to 1, 2 and 3, the horizon, and memory."""
        durations = [rounding.decimal(value) for value in self.graph.duration.tolist()]
        horizon, delays = sum(durations, Fraction(0)), []
        if self.bandwidth:
            rate = rounding.entered(self.bandwidth) / 10**6
            delays = [rounding.decimal(value) / rate for value in self.graph.volume.tolist()]
        if self.memory:
            horizon += sum(delays, Fraction(0))
        shares = {value / horizon for value in durations}
        results = [horizon, *shares, *(k - share for k in (1, 2, 3) for share in shares)]
        results += [delay / horizon for delay in delays]
        if self.memory:
            results += [rounding.entered(held) / rounding.entered(self.memory) for held in self.occupied.tolist()]
        return results

    def sets(self) -> dict[str, Sequence[Any]]:
        """Sub-operations, GPUs, dependencies (u,v) and pairs u < v of which neither precedes the other."""
        tail, head = self.graph.tail.tolist(), self.graph.head.tolist()
        G, pairs = range(self.devices), list(zip(*(part.tolist() for part in self.unordered), strict=True))
        E = list(zip(tail, head, strict=True))
        return {"op": range(self.n), "gpu": G, "src": G, "dst": G, "dependency": E, "pair": pairs}

    def cvxpy(self) -> CvxpyModel:
        """The model in CVXPY, over arrays (sub-operation, GPU)."""
        import cvxpy as cp

        _refuse_large(self)
        b, n, k, Delta, H = Cvx(self), self.n, self.devices, self.delta, self.horizon
        p, wait, (first, second) = self.graph.duration / H, self.delay / H, self.unordered
        ops, gpus, places, there = Index.grid(op=n), Index.grid(gpu=k), Index.grid(op=n, gpu=k), Index.grid(op=n, to=k)
        first_op, first_gpu = np.arange(n)[:, None] == 0, np.arange(k) == 0
        a = b.var("a", lower=first_op & first_gpu, upper=~first_op | first_gpu, integer=True, over=places)
        S, C = b.var("S", upper=1 - p), b.var("C", upper=1)
        b.row("assign", ops.of(places) @ a == 1)
        b.row("finish", S + p <= C)
        E = Index.grid(dependency=self.graph.dependencies, gpu=k)
        E = E.given(u=self.graph.tail[E["dependency"]], v=self.graph.head[E["dependency"]])
        at = E if self.bandwidth else E.where(E["gpu"] == 0)
        moved = cp.multiply(wait[at["dependency"]], (at.of(places, op="u") - at.of(places, op="v")) @ a)
        b.row("precede", at.of(ops, op="v") @ S >= at.of(ops, op="u") @ (S + p) + moved, over=at)
        pairs = Index.grid(pair=first.size)
        at = Index.grid(pair=first.size, gpu=k)
        at = at.given(i=first[at["pair"]], j=second[at["pair"]])
        if len(pairs):
            y = at.of(pairs) @ b.var("y", upper=1, integer=True)
            i, j, both = at.of(ops, op="i"), at.of(ops, op="j"), at.of(places, op="i") + at.of(places, op="j")
            b.row("before", i @ (S + p) <= j @ S + 3 - y - both @ a, over=at)
            b.row("after", j @ (S + p) <= i @ S + 2 + y - both @ a, over=at)
        if self.crowded:
            b.row("memory", gpus.of(places) @ cp.multiply((self.occupied / self.memory)[places["op"]], a) <= 1)
        if len(E) and not self.free and self.rule == "degree":
            peers = Index.of_mask("src dst", ~np.eye(k, dtype=bool))
            q = b.var("q", upper=1, integer=True, over=peers)
            at = E.where(E["gpu"] == 0).join(peers).keyed("dependency src dst")
            ends = at.of(places, op="u", gpu="src") + at.of(places, op="v", gpu="dst")
            b.row("link", ends @ a - at.of(peers) @ q <= 1, over=at)
            b.row("sends", gpus.of(peers, src="gpu") @ q <= Delta)
            b.row("receives", gpus.of(peers, dst="gpu") @ q <= Delta)
        elif len(E) and not self.free:
            far = E.of(there, op="v", where=lambda row, a: (a["to"] - row["gpu"]) % k > Delta)
            b.row("reach", (E.of(places, op="u") + far) @ a <= 1, over=E)
        return b.minimize(H * C)

    def pyomo(self) -> PyomoModel:
        """The model in Pyomo, by sub-operations and GPUs; a dependency is (u,v)."""
        from pyomo.core import quicksum

        _refuse_large(self)
        b, k, Delta, H = Pyo(self), self.devices, self.delta, self.horizon
        V, G, E, U = b.sets("op", "gpu", "dependency", "pair")
        p, wait = (self.graph.duration / H).tolist(), entries(self.delay / H, E)
        a, S, C = b.var("a", upper=1, integer=True), b.var("S", upper=1 - self.graph.duration / H), b.var("C", upper=1)
        a[0, 0].setlb(1)
        for g in G[1:]:
            a[0, g].setub(0)

        def precede(u: int, v: int, g: int) -> Any:
            return S[v] >= S[u] + p[u] + (wait[u, v] * (a[u, g] - a[v, g]) if self.bandwidth else 0)

        b.row("assign", lambda v: quicksum(a[v, g] for g in G) == 1)
        b.row("finish", lambda v: S[v] + p[v] <= C)
        b.row("precede", precede, where=lambda u, v, g: self.bandwidth or g == 0)
        if U:
            y = b.var("y", upper=1, integer=True)
            b.row("before", lambda i, j, g: S[i] + p[i] <= S[j] + 3 - y[i, j] - a[i, g] - a[j, g])
            b.row("after", lambda i, j, g: S[j] + p[j] <= S[i] + 2 + y[i, j] - a[i, g] - a[j, g])
        if self.crowded:
            m, M = self.occupied.tolist(), self.memory
            b.row("memory", lambda g: quicksum(m[v] / M * a[v, g] for v in V) <= 1)
        if E and not self.free and self.rule == "degree":
            q = b.var("q", upper=1, integer=True, where=lambda g, h: g != h)
            b.row("link", lambda u, v, g, h: a[u, g] + a[v, h] - q[g, h] <= 1, where=lambda u, v, g, h: g != h)
            b.row("sends", lambda g: quicksum(q[g, h] for h in G) <= Delta)
            b.row("receives", lambda h: quicksum(q[g, h] for g in G) <= Delta)
        elif E and not self.free:
            b.row("reach", lambda u, v, g: a[u, g] + quicksum(a[v, h] for h in G if (h - g) % k > Delta) <= 1)
        return b.minimize(H * C)

    def estimate(self) -> dict[str, int]:
        """Size of the model; with more than ``MOST_MODELLED`` sub-operations as if no pair were ordered."""
        n, k, m = self.n, self.devices, self.graph.dependencies
        pairs = self.unordered[0].size if n <= MOST_MODELLED else n * (n - 1) // 2
        rows, entries, integers = 2 * n, n * k + 2 * n, n * k + pairs
        rows += m * (k if self.bandwidth else 1) + 2 * pairs * k
        entries += m * (4 * k if self.bandwidth else 2) + 10 * pairs * k
        if self.crowded:
            rows += k
            entries += k * int(np.count_nonzero(self.occupied))
        if m and not self.free:
            if self.rule == "degree":
                rows += m * k * (k - 1) + 2 * k
                entries += 3 * m * k * (k - 1) + 2 * k * (k - 1)
                integers += k * (k - 1)
            else:
                rows += m * k
                entries += m * k * (k - self.delta)
        return {"variables": integers + n + 1, "constraints": rows, "nonzeros": entries, "integers": integers}

    def arrays(self, names: Collection[str]) -> dict[str, Array]:
        """Shapes of ``device`` and ``start``, or of a and S; and of the other variables if given."""
        k, gpu = self.devices, Axis("gpu", self.devices)
        named = {"sub-operation": range(self.n), "operation": self.graph.operation.tolist()}
        op = Axis("sub-operation", self.n, named)
        result = {"q": Array((Axis("src_gpu", k), Axis("dst_gpu", k)), required=False), "C": Array(required=False)}
        own = "device" not in names
        if not own:
            result["device"] = members(op, of=gpu)
            result["start"] = Array((op,), unit="us")
        result |= {"a": Array((op, gpu), required=own), "S": Array((op,), required=own)}
        if "y" in names:
            first, second = self.unordered
            pair = Axis("unordered pair", first.size, lambda _: [f"{u}, {v}" for u, v in np.c_[first, second].tolist()])
            result["y"] = Array((pair,), required=False)
        return result

    def residuals(self, values: Mapping[str, F64]) -> dict[str, float]:
        """Worst violation of every block, from numpy alone; times relative to the total work.

        ``placed`` is the distance from one GPU each, ``start`` the time before 0, ``precede`` the time before an
        input is
        ready, ``overlap`` the time that two run at once on a GPU, ``reach`` (rule distance) the steps beyond Delta or
        ``degree`` the peers of a GPU beyond Delta, ``memory`` the share of a GPU's memory beyond it, ``makespan`` the
        amount by which C, if given, understates the end.
        """
        limit = "reach" if self.rule == "distance" else "degree"
        blocks = ("placed", "start", "precede", "overlap", limit, "memory", "makespan")
        read = placed(self, values)
        if read is None:
            return dict.fromkeys(blocks, np.inf)
        device, start, fraction = read
        graph, k = self.graph, self.devices
        start = start / self.work
        end = start + graph.duration / self.work
        apart = device[graph.tail] != device[graph.head]
        ready = end[graph.tail] + np.where(apart, self.delay / self.work, 0.0)
        order = np.lexsort((start, device))
        follows = device[order][1:] == device[order][:-1]
        # Compare with the latest end so far on the same GPU: an earlier sub-operation may outlast the previous one.
        shift = device[order] * (2.0 * (float(np.abs(end).max()) + 1.0))
        latest = np.maximum.accumulate(end[order] + shift) - shift
        overlap = (latest[:-1] - start[order][1:])[follows]
        result = {
            "placed": fraction,
            "start": max(0.0, -float(start.min())),
            "precede": max(0.0, float((ready - start[graph.head]).max(initial=0.0))),
            "overlap": max(0.0, float(overlap.max(initial=0.0))),
            limit: float(_beyond(self, device)),
            "memory": max(0.0, float(held_by(self, device).max()) / self.memory - 1.0) if self.memory else 0.0,
            "makespan": 0.0,
        }
        if "C" in values:
            claimed = float(np.asarray(values["C"])) * self.horizon / self.work
            result["makespan"] = max(0.0, float(end.max()) - claimed)
        # Round-off of the sums along the longest chain does not count.
        return {name: 0.0 if value < 1e-12 * k else value for name, value in result.items()}

    def objective(self, values: Mapping[str, F64]) -> float:
        """Latest end [us]."""
        read = placed(self, values)
        return np.inf if read is None else float((read[1] + self.graph.duration).max())

    def repair(self, values: Mapping[str, F64]) -> dict[str, F64] | None:
        """Keep GPUs and order, and start as early as possible; None if the values are malformed."""
        read = placed(self, values)
        if read is None:
            return None
        device, start, _ = read
        fresh = starts(self, device, np.lexsort((np.arange(self.n), np.round(start / self.work, 9))))
        if fresh is None:
            fresh = starts(self, device, np.arange(self.n))
        if fresh is None:
            return None
        kept = {"device": device.astype(float), "start": fresh}
        return kept if "a" not in values else {**kept, **_columns(self, device, fresh)}

    def metrics(self, value: float | None) -> dict[str, Json]:
        """Makespan of the step, and the times with one GPU and with unlimited GPUs."""
        return {
            "makespan_us": value,
            "speedup": None if value is None else self.work / value,
            "one_gpu_us": self.work,
            "critical_path_us": float((self.heads + self.graph.duration + self.tails).max()),
            "sub_ops": self.n,
            "delta": self.delta,
            "gpus": self.devices * self.replicas,
        }

    def describe(self, values: Mapping[str, F64]) -> dict[str, Json]:
        """GPUs in use, largest numbers of peers that one sends to and receives from, bytes between GPUs."""
        read = placed(self, values)
        if read is None:
            return {}
        device = read[0]
        sends, receives = peers_of(self, device)
        apart = device[self.graph.tail] != device[self.graph.head]
        return {
            "gpus_used": int(np.unique(device).size),
            "most_sends": int(sends.max()),
            "most_hears": int(receives.max()),
            "bytes_between": float(self.graph.volume[apart].sum()),
            "most_memory_gib": float(held_by(self, device).max()) / 2**30,
        }


def _refuse_large(data: Placement) -> None:
    if data.n > MOST_MODELLED or data.estimate()["nonzeros"] > MOST_NONZEROS:
        msg = f"{NAME}: the matrix of {data.n} sub-operations is too large; use fewer, or --method degree-aware"
        raise NotApplicable(msg)


def placed(data: Placement, values: Mapping[str, F64]) -> tuple[I64, F64, float] | None:
    """GPU and start [us] of every sub-operation, and the GPUs' distance from integers; None if malformed."""
    n, k = data.n, data.devices
    if "device" in values:
        device, start = (np.asarray(values.get(name, ()), dtype=float) for name in ("device", "start"))
        if device.shape != (n,) or start.shape != (n,) or not np.isfinite([device, start]).all():
            return None
        whole = np.rint(device)
        if (whole < 0).any() or (whole >= k).any():
            return None
        return whole.astype(np.int64), start, float(np.abs(device - whole).max())
    a, S = (np.asarray(values.get(name, ()), dtype=float) for name in ("a", "S"))
    if a.shape != (n, k) or S.shape != (n,) or not np.isfinite(a).all() or not np.isfinite(S).all():
        return None
    worst = max(np.minimum(np.abs(a), np.abs(a - 1)).max(), np.abs(a.sum(axis=1) - 1).max())
    return a.argmax(axis=1), S * data.horizon, float(worst)


def _beyond(data: Placement, device: I64) -> int:
    graph, k = data.graph, data.devices
    if data.rule == "distance":
        steps = (device[graph.head] - device[graph.tail]) % k
        return max(0, int(steps.max(initial=0)) - data.delta)
    sends, receives = peers_of(data, device)
    return max(0, int(max(sends.max(), receives.max())) - data.delta)


def held_by(data: Placement, device: I64) -> F64:
    """Bytes held by every GPU, ``(k,)``."""
    return np.bincount(device, data.occupied, data.devices).astype(np.float64)


def peers_of(data: Placement, device: I64) -> tuple[I64, I64]:
    """Numbers of other GPUs that each GPU sends to and receives from, ``(k,)`` each."""
    graph, k = data.graph, data.devices
    key = np.unique(device[graph.tail] * k + device[graph.head])
    source, target = np.divmod(key, k)
    other = source != target
    return np.bincount(source[other], minlength=k), np.bincount(target[other], minlength=k)


def _columns(data: Placement, device: I64, start: F64) -> dict[str, F64]:
    """Compute the model's variables from a placement."""
    n, k, graph = data.n, data.devices, data.graph
    a, q = np.zeros((n, k)), np.zeros((k, k))
    a[np.arange(n), device] = 1.0
    q[device[graph.tail], device[graph.head]] = 1.0
    np.fill_diagonal(q, 0.0)
    first, second = data.unordered
    return {
        "a": a,
        "q": q,
        "S": start / data.horizon,
        "C": np.asarray((start + graph.duration).max() / data.horizon),
        "y": (start[first] <= start[second]).astype(float),
    }


def starts(data: Placement, device: I64, order: I64) -> F64 | None:
    """Earliest starts [us] if the GPUs run sub-operations in this order; None if it violates a dependency."""
    graph = data.graph
    tail, first = graph.tail.tolist(), graph.first_in.tolist()
    delay, duration, at = data.delay.tolist(), graph.duration.tolist(), device.tolist()
    free = [0.0] * data.devices
    end = [-1.0] * data.n
    begun = np.zeros(data.n)
    for v in order.tolist():
        ready = free[at[v]]
        for e in range(first[v], first[v + 1]):
            u = tail[e]
            if end[u] < 0:
                return None
            ready = max(ready, end[u] + (delay[e] if at[u] != at[v] else 0.0))
        begun[v] = ready
        free[at[v]] = end[v] = ready + duration[v]
    return begun


FORMULATION = Placement

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
  rule=degree, for Delta < k - 1
    link[e,g,h]    a_ug + a_vh - q_gh <= 1                             (g != h)
    sends[g]       sum_h q_gh <= Delta
    receives[h]    sum_g q_gh <= Delta
  rule=distance, for Delta < k - 1 (the paper's: a GPU sends to itself and the next Delta GPUs)
    reach[e,g]     a_ug + sum_{h: (h - g) mod k > Delta} a_vh <= 1

with all times in us, and H the total work, plus all delays b_e/B if memory is limited (sequential execution).
Sub-operation 0 is on GPU 0 (both rules are invariant under rotations of the GPUs).

Delta = D - 1 if there are ``replicas`` groups that synchronise on a ring through one more circuit, D if there is one
group. The placement is repeated in every group.

Bounds: :mod:`opticoll.formulations.sipml.placement_bounds`.

A placement may also be given as ``device`` (n,) and ``start`` (n,) [us]. The checker reads either, and neither y nor q:
``overlap`` stands for ``before`` and ``after``, and ``sends`` and ``receives`` count the peers themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.index import Index
from opticoll.formulations.model import CvxpyModel, Formulation, PyomoModel
from opticoll.formulations.sipml import placement_bounds, placement_solution

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opticoll.instances.families.op_graphs import OpGraph
    from opticoll.instances.topology import F64, I64


@dataclass(frozen=True, eq=False)
class Placement(Formulation):
    """Data of the model: graph, k GPUs, Delta, rule, bandwidth [bytes/s] and memory [bytes] (0: no limit)."""

    name = "sipml.placement"
    where = "section 3.2, Algorithm 1"
    example = "op-graph:model=transformer,layers=4,parts=4"
    problem = "MILP"
    parameters = placement_solution.PARAMETERS
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
    _beside = (placement_bounds, placement_solution)

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

    @property
    def free(self) -> bool:
        """Whether any GPU may send to any other."""
        return self.delta >= self.devices - 1

    def sets(self) -> dict[str, Sequence[Any]]:
        """Sub-operations, GPUs, dependencies (u,v) and pairs u < v of which neither precedes the other."""
        tail, head = self.graph.tail.tolist(), self.graph.head.tolist()
        G, pairs = range(self.devices), list(zip(*(part.tolist() for part in self.unordered), strict=True))
        E = list(zip(tail, head, strict=True))
        return {"op": range(self.n), "gpu": G, "src": G, "dst": G, "dependency": E, "pair": pairs}

    def cvxpy(self) -> CvxpyModel:
        """The model in CVXPY, over arrays (sub-operation, GPU)."""
        b, n, k, Delta, H = Cvx(self), self.n, self.devices, self.delta, self.horizon
        p, wait, (first, second) = self.graph.duration / H, self.delay / H, self.unordered
        ops, gpus, places, there = Index.grid(op=n), Index.grid(gpu=k), Index.grid(op=n, gpu=k), Index.grid(op=n, to=k)
        first_op, first_gpu = np.arange(n)[:, None] == 0, np.arange(k) == 0
        a = b.var("a", lower=first_op & first_gpu, upper=~first_op | first_gpu, integer=True, over=places)
        S, C = b.var("S", upper=1 - p), b.var("C", upper=1)
        b.row("assign", ops.of(places) @ a == 1)
        b.row("finish", S + p <= C)
        edges = Index.grid(dependency=self.graph.dependencies).given(u=self.graph.tail, v=self.graph.head)
        E = edges.join(gpus).keyed("dependency gpu")
        at = E if self.bandwidth else E.where(E["gpu"] == 0)
        u, v, late = at.of(ops, op="u"), at.of(ops, op="v"), 0.0
        if self.bandwidth:
            moved = at.of(places, op="u") - at.of(places, op="v")
            late = moved.multiply(wait[at["dependency"]][:, None]) @ a
        b.row("precede", (v - u) @ S >= u @ p + late, over=at)
        pairs = Index.grid(pair=first.size)
        at = Index.grid(pair=first.size, gpu=k)
        at = at.given(i=first[at["pair"]], j=second[at["pair"]])
        if len(pairs):
            i, j, both = at.of(ops, op="i"), at.of(ops, op="j"), at.of(places, op="i") + at.of(places, op="j")
            y, together = at.of(pairs) @ b.var("y", upper=1, integer=True), both @ a
            b.row("before", (i - j) @ S + y + together <= 3 - i @ p, over=at)
            b.row("after", (j - i) @ S - y + together <= 2 - j @ p, over=at)
        if self.crowded:
            m, M = self.occupied, self.memory
            b.row("memory", gpus.of(places).multiply((m / M)[places["op"]]) @ a <= 1)
        if len(E) and not self.free and self.rule == "degree":
            peers = Index.of_mask("src dst", ~np.eye(k, dtype=bool))
            q = b.var("q", upper=1, integer=True, over=peers)
            at = edges.join(peers).keyed("dependency src dst")
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
        b, k, Delta, H = Pyo(self), self.devices, self.delta, self.horizon
        V, G, E, U = b.sets("op", "gpu", "dependency", "pair")
        p, wait = (self.graph.duration / H).tolist(), b.by_label(self.delay / H, "dependency")
        a, S, C = b.var("a", upper=1, integer=True), b.var("S", upper=1 - self.graph.duration / H), b.var("C", upper=1)
        a[0, 0].setlb(1)
        for g in G[1:]:
            a[0, g].setub(0)

        def precede(u: int, v: int, g: int) -> Any:
            return S[v] >= S[u] + p[u] + (wait[u, v] * (a[u, g] - a[v, g]) if self.bandwidth else 0)

        b.row("assign", lambda v: b.sum(a[v, g] for g in G) == 1)
        b.row("finish", lambda v: S[v] + p[v] <= C)
        b.row("precede", precede, where=lambda u, v, g: self.bandwidth or g == 0)
        if U:
            y = b.var("y", upper=1, integer=True)
            b.row("before", lambda i, j, g: S[i] + p[i] <= S[j] + 3 - y[i, j] - a[i, g] - a[j, g])
            b.row("after", lambda i, j, g: S[j] + p[j] <= S[i] + 2 + y[i, j] - a[i, g] - a[j, g])
        if self.crowded:
            m, M = self.occupied.tolist(), self.memory
            b.row("memory", lambda g: b.sum(m[v] / M * a[v, g] for v in V) <= 1)
        if E and not self.free and self.rule == "degree":
            q = b.var("q", upper=1, integer=True, where=lambda g, h: g != h)
            b.row("link", lambda u, v, g, h: a[u, g] + a[v, h] - q[g, h] <= 1, where=lambda u, v, g, h: g != h)
            b.row("sends", lambda g: b.sum(q[g, h] for h in G) <= Delta)
            b.row("receives", lambda h: b.sum(q[g, h] for g in G) <= Delta)
        elif E and not self.free:
            b.row("reach", lambda u, v, g: a[u, g] + b.sum(a[v, h] for h in G if (h - g) % k > Delta) <= 1)
        return b.minimize(H * C)

    def residuals(self, values: Mapping[str, F64]) -> dict[str, float]:
        """Worst violation of every block, from numpy alone; times relative to the total work.

        ``assign`` is the distance from one GPU each, ``start`` the time before 0, ``precede`` the time before an input
        is ready, ``overlap`` the time that two run at once on a GPU, ``reach`` (rule distance) the steps beyond Delta,
        or ``sends`` and ``receives`` the peers of a GPU beyond Delta, ``memory`` the share of a GPU's memory beyond it,
        ``finish`` the amount by which C, if given, understates the end.
        """
        device, start, fraction = placement_solution.placed(self, values)
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
            "assign": fraction,
            "start": max(0.0, -float(start.min())),
            "precede": max(0.0, float((ready - start[graph.head]).max(initial=0.0))),
            "overlap": max(0.0, float(overlap.max(initial=0.0))),
            **_beyond(self, device),
            "memory": max(0.0, float(placement_solution.held_by(self, device).max()) / self.memory - 1.0)
            if self.memory
            else 0.0,
            "finish": 0.0,
        }
        if "C" in values:
            claimed = float(np.asarray(values["C"])) * self.horizon / self.work
            result["finish"] = max(0.0, float(end.max()) - claimed)
        # Round-off of the sums along the longest chain does not count.
        return {name: 0.0 if value < 1e-12 * k else value for name, value in result.items()}

    def objective(self, values: Mapping[str, F64]) -> float:
        """Latest end [us]."""
        _, start, _ = placement_solution.placed(self, values)
        return float((start + self.graph.duration).max())

    heads = cached_property(placement_bounds.heads)
    tails = cached_property(placement_bounds.tails)
    forced = cached_property(placement_bounds.forced_delays)
    unordered = cached_property(placement_solution.unordered_pairs)


def _beyond(data: Placement, device: I64) -> dict[str, float]:
    """Steps, or peers of a GPU, beyond Delta."""
    if data.rule == "distance":
        reached = {"reach": (device[data.graph.head] - device[data.graph.tail]) % data.devices}
    else:
        reached = dict(zip(("sends", "receives"), placement_solution.peers_of(data, device), strict=True))
    return {name: float(max(0, int(each.max(initial=0)) - data.delta)) for name, each in reached.items()}


FORMULATION = Placement

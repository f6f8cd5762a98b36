"""All-reduce in minimum time: every rank receives the sum of the buffers of all ranks.

Source  beyond the all-to-all paper; the program over the shares of roots and the two phases: ForestColl (Zhao et al.,
        2024); rows for vertices that are not ranks: preflow packing, Bang-Jensen, Frank & Jackson 1995
Sets    w in V vertices (n); a in A arcs (m); v in R ranks (N)
Data    c_a > 0 capacity [link bandwidths], (m,); every rank has a buffer of N shards
Vars    0 <= x_v <= N  amount summed at rank v [shards], (N,); y_a >= 0 copies and z_a >= 0 partial sums over arc a
        [shards], (m,); 0 <= f_av <= N  copies towards v, (m, N); 0 <= g_av <= N  contributions of v, (m, N);
        0 <= T <= 2 N (N-1) / min_a c_a  time [shards / link bandwidth]

min T  s.t.
    total            sum_v x_v = N
    copies[w,v]      outflow_w(f_v) - inflow_w(f_v) - x_w = 0      w != v   (without x_w where w is not a rank)
    sums[w,v]        inflow_w(g_v) - outflow_w(g_v) - x_w = 0      w != v   (without x_w where w is not a rank)
    copied[a,v]      f_av - y_a <= 0                               a not out of v
    summed[a,v]      g_av - z_a <= 0                               a not into v
    capacity[a]      y_a + z_a - c_a T <= 0
    forwards[w]      outflow_w(y) - inflow_w(y) <= 0               w no rank
    gathers[w]       inflow_w(z) - outflow_w(z) <= 0               w no rank

This formulation is ours. Every part of the buffer is summed at a rank and copied from there: x_v shards go to v as in a
reduce-scatter (g, z) and from v as in an all-gather (f, y), at the same time over the same arcs. By ``forwards`` and
``gathers`` a vertex that is not a rank neither copies nor sums, so trees between ranks carry y and z. Arcs out of v
are fixed at 0 in f_v, arcs into v in g_v. Reversing all arcs exchanges (f, y) and (g, z).

Bounds. Partial sums of a set S leave it, and whatever is summed in S leaves it as copies: with p disjoint sets S_i that
contain all ranks, z on the arcs out of S_i carries at least N - x(S_i), and so does y on the arcs into S_i; vertices
in no set add nothing to either (``forwards``, ``gathers``). Adding both over all i:

    T >= 2 N (p - 1) / sum_i c(S_i -> V - S_i),      T >= 2 N (p - 1) / sum_i c(V - S_i -> S_i).

For one set S, y and z out of it carry x(S) and x(V - S): T >= N / c(S -> V - S) if some rank is in S and some is not.

A reduce-scatter followed by an all-gather is a solution with x = 1, so T* <= T*_reduce-scatter + T*_all-gather; the two
are equal where the worst cuts of both phases are around disjoint sets that contain all ranks. Closed forms: complete 2;
d-cube 2 (N-1)/d; n-ring n-1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from opticoll.formulations.alltoall import all_reduce_bounds
from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.declared_axes import all_arrays
from opticoll.formulations.flows import shared_flows
from opticoll.formulations.flows.concurrent_flow import all_to_all_topology
from opticoll.formulations.index import Index
from opticoll.formulations.model import CvxpyModel, Formulation, PyomoModel
from opticoll.formulations.variables import BANDWIDTHS, SHARDS, TIME, Links

if TYPE_CHECKING:
    from opticoll.formulations.model import Values
    from opticoll.instances.topology import I64, Topology


@dataclass(frozen=True, eq=False)
class AllReduction(Formulation):
    """The problem: shares of the ranks, and flows of both phases."""

    name = "alltoall.all-reduce"
    where = "beyond the paper"
    meaning = "time T [shards / link bandwidth]"
    variables: ClassVar = {
        "x": ("rank",),
        "y": ("arc",),
        "z": ("arc",),
        "f": ("arc", "rank"),
        "g": ("arc", "rank"),
        "T": (),
    }
    constraints: ClassVar = {
        "total": (),
        "copies": ("vertex", "rank"),
        "sums": ("vertex", "rank"),
        "copied": ("arc", "rank"),
        "summed": ("arc", "rank"),
        "capacity": ("arc",),
        "forwards": ("vertex",),
        "gathers": ("vertex",),
    }
    units: ClassVar = dict.fromkeys("xyzfg", SHARDS) | {"T": TIME}
    _beside = (all_reduce_bounds,)

    objective = shared_flows.objective
    metrics = shared_flows.metrics
    _arrays = all_arrays

    topology: Topology

    @property
    def ranks(self) -> I64:
        """Ranks, ``(N,)``."""
        return self.topology.terminals

    @property
    def switches(self) -> I64:
        """Vertices that are not ranks."""
        return np.setdiff1d(np.arange(self.topology.n), self.topology.terminals)

    @classmethod
    def _prepare(cls, instance: object, given: dict[str, Any]) -> Self:
        """The problem on a topology; errors as :func:`.concurrent_flow.all_to_all_topology`."""
        return cls(all_to_all_topology(instance, cls.name))

    def cvxpy(self) -> CvxpyModel:
        """The model in CVXPY, over the flows that do not lead back to v (``f``), or from it (``g``)."""
        import cvxpy as cp

        b, topology, N, c = Cvx(self), self.topology, self.topology.num_ranks, self.topology.capacity
        A = Index.table("arc", {"arc": np.arange(topology.arcs), "tail": topology.tail, "head": topology.head})
        flows = A.join(Index.table("rank", {"rank": np.arange(N), "v": self.ranks})).keyed("arc rank")
        onward, inward = (flows.where(flows[end] != flows["v"]).keyed("arc rank") for end in ("tail", "head"))
        shares = Index.table("rank", {"v": self.ranks})
        x, y, z = b.var("x", upper=N), b.var("y"), b.var("z")
        f, g = b.var("f", upper=N, over=onward), b.var("g", upper=N, over=inward)
        T = b.var("T", upper=2.0 * N * (N - 1) / c.min())
        rows = Index.of_mask("vertex rank", np.arange(topology.n)[:, None] != self.ranks)
        share = rows.of(shares.known_by("v"), v="vertex") @ x
        b.row("total", cp.sum(x) == N)
        b.row("copies", (rows.of(onward, tail="vertex") - rows.of(onward, head="vertex")) @ f == share, over=rows)
        b.row("sums", (rows.of(inward, head="vertex") - rows.of(inward, tail="vertex")) @ g == share, over=rows)
        b.row("copied", f <= onward.of(A) @ y, over=onward)
        b.row("summed", g <= inward.of(A) @ z, over=inward)
        b.row("capacity", y + z <= c * T)
        relays = Index.table("vertex", {"vertex": self.switches})
        out_of, into = relays.of(A.known_by("tail"), tail="vertex"), relays.of(A.known_by("head"), head="vertex")
        b.row("forwards", out_of @ y <= into @ y, over=relays)
        b.row("gathers", into @ z <= out_of @ z, over=relays)
        return b.minimize(T)

    def pyomo(self) -> PyomoModel:
        """The model in Pyomo, variables and constraints as in the module docstring."""
        b = Pyo(self)
        entering, leaving = b.incident()
        (R,) = b.sets("rank")
        c, N = b.by_label(self.topology.capacity, "arc"), len(R)

        def out_of(flow: Any, w: Any, *v: Any) -> Any:
            return b.sum(flow[(a, *v)] if v else flow[a] for a in leaving[w])

        def into(flow: Any, w: Any, *v: Any) -> Any:
            return b.sum(flow[(a, *v)] if v else flow[a] for a in entering[w])

        x, y, z, T = b.var("x", upper=N), b.var("y"), b.var("z"), b.var("T", upper=2 * N * (N - 1) / min(c.values()))
        f = b.var("f", upper=N, where=lambda a, v: a not in leaving[v])
        g = b.var("g", upper=N, where=lambda a, v: a not in entering[v])

        def share(w: Any) -> Any:
            return x[w] if w in R else 0

        b.row("total", lambda: b.sum(x[v] for v in R) == N)
        b.row("copies", lambda w, v: out_of(f, w, v) - into(f, w, v) == share(w), where=lambda w, v: w != v)
        b.row("sums", lambda w, v: into(g, w, v) - out_of(g, w, v) == share(w), where=lambda w, v: w != v)
        b.row("copied", lambda a, v: f[a, v] <= y[a], where=lambda a, v: a not in leaving[v])
        b.row("summed", lambda a, v: g[a, v] <= z[a], where=lambda a, v: a not in entering[v])
        b.row("capacity", lambda a: y[a] + z[a] <= c[a] * T)
        b.row("forwards", lambda w: out_of(y, w) <= into(y, w), where=lambda w: w not in R)
        b.row("gathers", lambda w: into(z, w) <= out_of(z, w), where=lambda w: w not in R)
        return b.minimize(T)

    def links(self, values: Values) -> Links:
        """Shards over every arc, copies and partial sums."""
        load = np.asarray(values["y"], dtype=float) + np.asarray(values["z"], dtype=float)
        return Links(self.topology, load, self.topology.capacity, float(np.asarray(values["T"])), SHARDS, BANDWIDTHS)

    def residuals(self, values: Values) -> dict[str, float]:
        """Worst violation of every block, from numpy alone; flows are relative to one shard, capacities to T."""
        x, y, z, f, g = (np.asarray(values[name], dtype=float) for name in "xyzfg")
        topology, ranks, T = self.topology, self.ranks, float(np.asarray(values["T"]))
        N, copies, sums = ranks.size, -topology.net(f), topology.net(g)
        for net in (copies, sums):
            net[ranks] -= x[:, None]
            net[ranks, np.arange(N)] = 0.0
        blocked = (f[topology.tail[:, None] == ranks[None, :]], g[topology.head[:, None] == ranks[None, :]])
        over = ((y + z) / topology.capacity - T).max(initial=0.0)
        return {
            "nonnegative": float(max(0.0, -T, *(-array.min(initial=0.0) for array in (x, y, z, f, g)))),
            "blocked": float(max(np.abs(part).max(initial=0.0) for part in blocked)),
            "total": float(abs(x.sum() - N)),
            "copies": float(np.abs(copies).max(initial=0.0)),
            "sums": float(np.abs(sums).max(initial=0.0)),
            "copied": float((f - y[:, None]).max(initial=0.0)),
            "summed": float((g - z[:, None]).max(initial=0.0)),
            "capacity": float(max(over, 0.0)) / max(abs(T), np.finfo(float).tiny),
            "forwards": float((-topology.net(y)[self.switches]).max(initial=0.0)),
            "gathers": float(topology.net(z)[self.switches].max(initial=0.0)),
        }


FORMULATION = AllReduction

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
    copied[a,v]      f_av - y_a <= 0
    summed[a,v]      g_av - z_a <= 0
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
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from opticoll.formulations import rounding
from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.flows.concurrent_flow import all_to_all_topology
from opticoll.formulations.flows.shared_flows import capacity_out_of, outflow, stated_time, throughput_metrics
from opticoll.formulations.index import Index
from opticoll.formulations.model import Bound, CvxpyModel, Formulation, PyomoModel
from opticoll.formulations.variables import (
    BANDWIDTHS,
    SHARDS,
    TIME,
    Array,
    Links,
    arc_axis,
    entries,
    incident_arcs,
    vertex_axis,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from opticoll.instances.topology import F64, I64, Topology
    from opticoll.types import Settings

NAME = "alltoall.all-reduce"
_BLOCKS = (
    "shape",
    "nonnegative",
    "blocked",
    "total",
    "copies",
    "sums",
    "copied",
    "summed",
    "capacity",
    "forwards",
    "gathers",
)


@dataclass(frozen=True, eq=False)
class AllReduction(Formulation):
    """Data of the model."""

    name = NAME
    where = "beyond the paper"
    sense = "min"
    problem = "LP"
    meaning = "time T [shards / link bandwidth]"
    shards = True
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
    objective = stated_time
    metrics = throughput_metrics

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
    def prepare(cls, instance: object, parameters: Settings | None = None) -> Self:
        """The data of the model.

        Raises
        ------
        NotApplicable
            If the instance is not a connected topology of at least two ranks.
        """
        return cls(all_to_all_topology(instance, NAME))

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
        from pyomo.core import quicksum

        b, (entering, leaving) = Pyo(self), incident_arcs(self.topology)
        A, R = b.sets("arc", "rank")
        c, N = entries(self.topology.capacity, A), len(R)

        def out_of(flow: Any, w: Any, *v: Any) -> Any:
            return quicksum(flow[(a, *v)] if v else flow[a] for a in leaving[w])

        def into(flow: Any, w: Any, *v: Any) -> Any:
            return quicksum(flow[(a, *v)] if v else flow[a] for a in entering[w])

        x, y, z, T = b.var("x", upper=N), b.var("y"), b.var("z"), b.var("T", upper=2 * N * (N - 1) / min(c.values()))
        f = b.var("f", upper=N, where=lambda a, v: a not in leaving[v])
        g = b.var("g", upper=N, where=lambda a, v: a not in entering[v])

        def share(w: Any) -> Any:
            return x[w] if w in R else 0

        b.row("total", lambda: quicksum(x[v] for v in R) == N)
        b.row("copies", lambda w, v: out_of(f, w, v) - into(f, w, v) == share(w), where=lambda w, v: w != v)
        b.row("sums", lambda w, v: into(g, w, v) - out_of(g, w, v) == share(w), where=lambda w, v: w != v)
        b.row("copied", lambda a, v: f[a, v] <= y[a], where=lambda a, v: a not in leaving[v])
        b.row("summed", lambda a, v: g[a, v] <= z[a], where=lambda a, v: a not in entering[v])
        b.row("capacity", lambda a: y[a] + z[a] <= c[a,] * T)
        b.row("forwards", lambda w: out_of(y, w) <= into(y, w), where=lambda w: w not in R)
        b.row("gathers", lambda w: into(z, w) <= out_of(z, w), where=lambda w: w not in R)
        return b.minimize(T)

    def estimate(self) -> dict[str, int]:
        """Size of the model before it is built."""
        topology, m, N, n = self.topology, self.topology.arcs, self.topology.num_ranks, self.topology.n
        out, into = (int(degrees[self.ranks].sum()) for degrees in (topology.out_degree, topology.in_degree))
        flows = 2 * m * N - out - into
        relayed = int((topology.out_degree + topology.in_degree)[self.switches].sum())
        return {
            "variables": flows + 2 * m + N + 1,
            "constraints": 2 * (n - 1) * N + flows + m + 1 + 2 * (n - N),
            "nonzeros": 4 * flows - out - into + 2 * N * (N - 1) + N + 3 * m + 2 * relayed,
            "integers": 0,
        }

    def arrays(self, _names: Collection[str]) -> dict[str, Array]:
        """The shares x, the amounts y and z, the flows f and g, and the time T."""
        arc, rank = arc_axis(self.topology), vertex_axis("rank", self.topology, self.ranks)
        return {
            "x": Array((rank,), unit=SHARDS),
            "y": Array((arc,), unit=SHARDS),
            "z": Array((arc,), unit=SHARDS),
            "f": Array((arc, rank), unit=SHARDS),
            "g": Array((arc, rank), unit=SHARDS),
            "T": Array(unit=TIME),
        }

    def links(self, values: Mapping[str, F64]) -> Links:
        """Shards over every arc, copies and partial sums."""
        load = np.asarray(values["y"], dtype=float) + np.asarray(values["z"], dtype=float)
        return Links(self.topology, load, self.topology.capacity, float(np.asarray(values["T"])), SHARDS, BANDWIDTHS)

    def residuals(self, values: Mapping[str, F64]) -> dict[str, float]:
        """Worst violation of every block, from numpy alone; flows are relative to one shard, capacities to T."""
        x, y, z, f, g = (np.asarray(values[name], dtype=float) for name in "xyzfg")
        topology, ranks, T = self.topology, self.ranks, float(np.asarray(values["T"]))
        m, N = topology.arcs, ranks.size
        shapes = [x.shape == (N,), y.shape == z.shape == (m,), f.shape == g.shape == (m, N)]
        if not all(shapes) or not all(np.isfinite(array).all() for array in (x, y, z, f, g, T)):
            return dict.fromkeys(_BLOCKS, np.inf)
        copies, sums = outflow(topology, f), -outflow(topology, g)
        for net in (copies, sums):
            net[ranks] -= x[:, None]
            net[ranks, np.arange(N)] = 0.0
        blocked = (f[topology.tail[:, None] == ranks[None, :]], g[topology.head[:, None] == ranks[None, :]])
        over = ((y + z) / topology.capacity - T).max(initial=0.0)
        return {
            "shape": 0.0,
            "nonnegative": float(max(0.0, -T, *(-array.min(initial=0.0) for array in (x, y, z, f, g)))),
            "blocked": float(max(np.abs(part).max(initial=0.0) for part in blocked)),
            "total": float(abs(x.sum() - N)),
            "copies": float(np.abs(copies).max(initial=0.0)),
            "sums": float(np.abs(sums).max(initial=0.0)),
            "copied": float((f - y[:, None]).max(initial=0.0)),
            "summed": float((g - z[:, None]).max(initial=0.0)),
            "capacity": float(max(over, 0.0)) / max(abs(T), np.finfo(float).tiny),
            "forwards": float(outflow(topology, y)[self.switches].max(initial=0.0)),
            "gathers": float((-outflow(topology, z)[self.switches]).max(initial=0.0)),
        }

    def bounds(self) -> list[Bound]:
        """Bounds of single ranks, of the worst cuts of both phases, and of the minimum cut."""
        from opticoll.formulations.flows.worst_cuts import least_time, reversed_arcs, tight_partition

        topology, N = self.topology, self.topology.num_ranks
        both = (topology, reversed_arcs(topology))
        first = [1] + [0] * (N - 1)
        found = [least_time(one, first) for one in both]
        away = found[1][0] > found[0][0]
        time, inside = found[away]
        alone = [{v} for v in self.ranks.tolist()]
        result = [
            Bound(
                "receptions",
                partition_bound(topology, alone),
                "every rank sends N - x_v as sums and receives N - x_v as copies",
                fraction=exact_partition(topology, alone),
            ),
            Bound(
                "least-cut",
                rounding.fraction_down(time * N),
                f"{N} shards over a capacity of {float(1 / time):g}",
                detail={"inside": sorted(inside)},
                fraction=rounding.quotient(Fraction(N), capacity_out_of(topology, inside, away=away)),
            ),
        ]
        partitions = [sets for sets in (tight_partition(one, [1] * N) for one in both) if sets is not None]
        if partitions:
            sets = max(partitions, key=lambda sets: partition_bound(topology, sets))
            reason = f"{len(sets)} sets of ranks exchange sums and copies"
            exact = exact_partition(topology, sets)
            result.append(Bound("partition", partition_bound(topology, sets), reason, fraction=exact))
        return result

    def derived(self) -> list[Fraction]:
        """Upper bound on T."""
        N = self.topology.num_ranks
        return [Fraction(2 * N * (N - 1)) / rounding.entered(float(self.topology.capacity.min()))]


def partition_bound(topology: Topology, sets: Iterable[Collection[int]]) -> float:
    """Bound from disjoint sets that contain all ranks (see the module docstring), rounded down.

    Raises
    ------
    ValueError
        If the sets are not disjoint, or do not contain all ranks.
    """
    shards, sides = _crossing(topology, sets)
    least = min(float(rounding.up(capacity.sum(), topology.arcs)) for capacity in sides)
    return rounding.quotient_down(shards, least) if least > 0 else 0.0


def exact_partition(topology: Topology, sets: Iterable[Collection[int]]) -> Fraction | None:
    """:func:`partition_bound` as a fraction, of the decimals that the capacities stand for."""
    shards, sides = _crossing(topology, sets)
    rooms = [rounding.exact_sum(capacity) for capacity in sides]
    known = [room for room in rooms if room is not None]
    return rounding.quotient(Fraction(shards), min(known)) if len(known) == len(rooms) else None


def _crossing(topology: Topology, sets: Iterable[Collection[int]]) -> tuple[int, list[F64]]:
    """Twice N times the number of sets less one; capacities of the arcs out of a set, and of those into one."""
    number = np.full(topology.n, -1)
    for i, members in enumerate(sets):
        inside = sorted(members)
        if (number[inside] >= 0).any():
            msg = "partition_bound: the sets are not disjoint"
            raise ValueError(msg)
        number[inside] = i
    if (number[topology.terminals] < 0).any():
        msg = "partition_bound: the sets do not contain all ranks"
        raise ValueError(msg)
    parts, N = np.unique(number[topology.terminals]).size, topology.num_ranks
    crossing = number[topology.tail] != number[topology.head]
    sides = [topology.capacity[crossing & (number[ends] >= 0)] for ends in (topology.tail, topology.head)]
    return 2 * N * (parts - 1), sides


FORMULATION = AllReduction

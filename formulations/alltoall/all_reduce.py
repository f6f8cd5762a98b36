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
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from opticoll.formulations import rounding
from opticoll.formulations.alltoall import all_gather
from opticoll.formulations.alltoall.all_gather import capacity_out_of, outflow, stated_time
from opticoll.formulations.flows.concurrent_flow import all_to_all_topology
from opticoll.formulations.model import Bound, CvxpyModel, Formulation, Named, PyomoModel
from opticoll.formulations.variables import (
    BANDWIDTHS,
    SHARDS,
    TIME,
    Array,
    Links,
    arc_axis,
    arc_names,
    incident_arcs,
    vertex_axis,
    vertex_names,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from opticoll.instances.topology import F64, I64, Topology
    from opticoll.instances.types import Settings

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
    objective = stated_time
    metrics = all_gather.throughput_metrics

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
        """The model in matrix form, with the incidence M: ``-M f_v = x``, ``M g_v = x``, ``f <= y``, ``g <= z``."""
        import cvxpy as cp
        import scipy.sparse as sp

        topology, ranks, switches = self.topology, self.ranks, self.switches
        n, m, N = topology.n, topology.arcs, topology.num_ranks
        x = cp.Variable(N, name="x", bounds=[0, float(N)])
        y = cp.Variable(m, name="y", bounds=[0, None])
        z = cp.Variable(m, name="z", bounds=[0, None])
        leaves, enters = (ends[:, None] == ranks[None, :] for ends in (topology.tail, topology.head))
        f = cp.Variable(m * N, name="f", bounds=[0, np.where(leaves, 0.0, N).ravel()])
        g = cp.Variable(m * N, name="g", bounds=[0, np.where(enters, 0.0, N).ravel()])
        T = cp.Variable(name="T", bounds=[0, 2.0 * N * (N - 1) / topology.capacity.min()])
        incidence = topology.incidence()
        rows = np.flatnonzero((np.arange(n)[:, None] != ranks[None, :]).ravel())
        net = sp.csr_array(sp.kron(incidence, sp.eye_array(N), format="csr")[rows])
        held = sp.csr_array((np.ones(N), (ranks, np.arange(N))), shape=(n, N))
        share = sp.csr_array(sp.csr_array(sp.kron(held, np.ones((N, 1)), format="csr"))[rows])
        each = sp.csr_array(sp.kron(sp.eye_array(m), np.ones((N, 1)), format="csr"))
        total = cp.sum(x) == N
        copies = -net @ f - share @ x == 0
        sums = net @ g - share @ x == 0
        copied, summed = f - each @ y <= 0, g - each @ z <= 0
        capacity = y + z - topology.capacity * T <= 0
        constraints = {
            "total": Named(total, ()),
            "copies": Named(copies, (n, N), rows),
            "sums": Named(sums, (n, N), rows),
            "copied": Named(copied, (m, N), np.arange(m * N)),
            "summed": Named(summed, (m, N), np.arange(m * N)),
            "capacity": Named(capacity, (m,)),
        }
        if switches.size:
            relay = sp.csr_array(incidence[switches])
            constraints["forwards"] = Named(-relay @ y <= 0, (n,), switches)
            constraints["gathers"] = Named(relay @ z <= 0, (n,), switches)
        return CvxpyModel(
            cp.Problem(cp.Minimize(T), [named.item for named in constraints.values()]),
            variables={
                "x": Named(x, (N,)),
                "y": Named(y, (m,)),
                "z": Named(z, (m,)),
                "f": Named(f, (m, N), np.arange(m * N)),
                "g": Named(g, (m, N), np.arange(m * N)),
                "T": Named(T, ()),
            },
            constraints=constraints,
        )

    def pyomo(self) -> PyomoModel:
        """The model in Pyomo, variables and constraints as in the module docstring."""
        import pyomo.core as pyo

        topology = self.topology
        V, A = vertex_names(topology), arc_names(topology)
        R = [V[v] for v in topology.terminals.tolist()]
        relays = [w for w in V if w not in R]
        entering, leaving = incident_arcs(topology)
        c = dict(zip(A, topology.capacity.tolist(), strict=True))
        N = len(R)

        def out_of(flow: Any, w: Any, *v: Any) -> Any:
            return pyo.quicksum(flow[(a, *v)] for a in leaving[w])

        def into(flow: Any, w: Any, *v: Any) -> Any:
            return pyo.quicksum(flow[(a, *v)] for a in entering[w])

        model = pyo.ConcreteModel(name="all-reduce at optimal throughput")
        model.x = pyo.Var(R, bounds=(0, N))
        model.y = pyo.Var(A, domain=pyo.NonNegativeReals)
        model.z = pyo.Var(A, domain=pyo.NonNegativeReals)
        model.f = pyo.Var(A, R, bounds=lambda _, a, v: (0, 0 if a in leaving[v] else N))
        model.g = pyo.Var(A, R, bounds=lambda _, a, v: (0, 0 if a in entering[v] else N))
        model.T = pyo.Var(bounds=(0, 2 * N * (N - 1) / min(c.values())))
        model.time = pyo.Objective(expr=model.T, sense=pyo.minimize)
        model.total = pyo.Constraint(expr=pyo.quicksum(model.x[v] for v in R) == N)
        pairs = [(w, v) for w in V for v in R if w != v]
        model.copies = pyo.Constraint(
            pairs, rule=lambda m, w, v: out_of(m.f, w, v) - into(m.f, w, v) - (m.x[w] if w in R else 0) == 0
        )
        model.sums = pyo.Constraint(
            pairs, rule=lambda m, w, v: into(m.g, w, v) - out_of(m.g, w, v) - (m.x[w] if w in R else 0) == 0
        )
        model.copied = pyo.Constraint(A, R, rule=lambda m, a, v: m.f[a, v] - m.y[a] <= 0)
        model.summed = pyo.Constraint(A, R, rule=lambda m, a, v: m.g[a, v] - m.z[a] <= 0)
        model.capacity = pyo.Constraint(A, rule=lambda m, a: m.y[a] + m.z[a] - c[a] * m.T <= 0)
        model.forwards = pyo.Constraint(relays, rule=lambda m, w: out_of(m.y, w) - into(m.y, w) <= 0)
        model.gathers = pyo.Constraint(relays, rule=lambda m, w: into(m.z, w) - out_of(m.z, w) <= 0)
        return PyomoModel(
            model,
            {"x": (R,), "y": (A,), "z": (A,), "f": (A, R), "g": (A, R), "T": ()},
            {
                "total": (),
                "copies": (V, R),
                "sums": (V, R),
                "copied": (A, R),
                "summed": (A, R),
                "capacity": (A,),
                "forwards": (V,),
                "gathers": (V,),
            },
        )

    def estimate(self) -> dict[str, int]:
        """Size of the model before it is built."""
        m, N, n = self.topology.arcs, self.topology.num_ranks, self.topology.n
        return {
            "variables": 2 * m * N + 2 * m + N + 1,
            "constraints": 2 * (n - 1) * N + 2 * m * N + m + 1 + 2 * (n - N),
            "nonzeros": 8 * m * N + 2 * N * N + 3 * m,
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

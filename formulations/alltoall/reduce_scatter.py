"""Reduce-scatter of least time: every rank receives the sum of what all ranks have for it, and sums are free.

Source  beyond the all-to-all paper; reversed all-gather (:mod:`opticoll.formulations.alltoall.all_gather`, with its
        sources); as packing of trees over switches: ForestColl (Zhao et al., 2024)
Sets    u in V vertices (n); a in A arcs (m); v in R contributing ranks (N)
Data    c_a > 0 capacity [link bandwidths], (m,); every rank has one shard for the sum of every rank
Vars    0 <= h_av <= N-1  flow of what v contributes over arc a [shards], (m, N); 0 <= T <= (N-1) / min_a c_a  time
        [shards / link bandwidth]

min T  s.t.
    balance[u,v]    inflow_u(h_v) - outflow_u(h_v) = 1   (0 where u is not a rank)     u != v
    capacity[a,v]   h_av <= c_a T

This formulation is ours. Contributions of different ranks do *not* add up on an arc: those to the same sum are added
before they are sent, and the partial sum has the size of one. Arcs into v are fixed at 0. The upper bound of T excludes
no optimum: a spanning tree attains it.

Reversal. A schedule run backwards in time over reversed arcs, with a copy for every sum, is an all-gather of the same
time on the reversed topology, and vice versa. So what holds for all-gather holds here with the arcs reversed:

    T >= sum_{s != v} dist_l(v, s) / sum_a c_a l_av     for any lengths l_av >= 0 and any v,
    T* = max over S, S leaving out some rank, of |S & R| / c(V - S -> S),

and T* is attained by trees towards every rank, if every vertex is a rank or no more capacity enters a vertex that is no
rank than leaves it. Where every arc has one of equal capacity the other way, T* is that of the all-gather. Closed
forms: complete 1; d-cube (N-1)/d; n-ring (n-1)/2, directed n-1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations import outward
from opticoll.formulations.alltoall import PAPER
from opticoll.formulations.alltoall.all_gather import best_length_bound, flow_residuals, stated_time, time_metrics
from opticoll.formulations.arrays import (
    BANDWIDTHS,
    SHARDS,
    TIME,
    Array,
    Links,
    Names,
    arc_labels,
    arc_names,
    vertex_labels,
    vertex_names,
)
from opticoll.formulations.flows.concurrent_flow import all_to_all_topology
from opticoll.formulations.model import Bound, CvxpyModel, Formulation, Named, PyomoModel

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    import scipy.sparse as sp
    from numpy.typing import NDArray

    from opticoll.instances.digraph import Topology
    from opticoll.instances.readers.untrusted import Json, Settings

NAME = "alltoall.reduce-scatter"


@dataclass(frozen=True, eq=False)
class Reduction:
    """The data of the model above."""

    topology: Topology

    @property
    def contributors(self) -> NDArray[np.int64]:
        """The ranks, ``(N,)``."""
        return self.topology.terminals


def prepare(instance: object, parameters: Settings | None = None) -> Reduction:
    """The data of the model.

    Raises
    ------
    NotApplicable
        If the instance is not a connected topology of at least two ranks.
    """
    return Reduction(all_to_all_topology(instance, NAME))


def build_pyomo(data: Reduction) -> PyomoModel:
    """The model in Pyomo: ``h[a,v]``, ``T``, ``balance[u,v]``, ``capacity[a,v]``."""
    import pyomo.environ as pyo

    topology = data.topology
    V, A = vertex_names(topology), arc_names(topology)
    R = [V[v] for v in topology.terminals.tolist()]
    ends = {a: (V[u], V[w]) for a, u, w in zip(A, topology.tail.tolist(), topology.head.tolist(), strict=True)}
    c = dict(zip(A, topology.capacity.tolist(), strict=True))
    most = len(R) - 1
    model = pyo.ConcreteModel(name="reduce-scatter at optimal throughput")
    model.h = pyo.Var(A, R, bounds=lambda _, a, v: (0, 0 if ends[a][1] == v else most))
    model.T = pyo.Var(bounds=(0, most / min(c.values())))
    model.time = pyo.Objective(expr=model.T, sense=pyo.minimize)
    model.balance = pyo.Constraint(
        [(u, v) for u in V for v in R if u != v],
        rule=lambda m, u, v: (
            pyo.quicksum(m.h[a, v] for a in A if ends[a][1] == u)
            - pyo.quicksum(m.h[a, v] for a in A if ends[a][0] == u)
            == (1 if u in R else 0)
        ),
    )
    model.capacity = pyo.Constraint(A, R, rule=lambda m, a, v: m.h[a, v] - c[a] * m.T <= 0)
    return PyomoModel(model, {"h": (A, R), "T": ()}, {"balance": (V, R), "capacity": (A, R)})


def build_cvxpy(data: Reduction) -> CvxpyModel:
    """The model in matrix form: ``M h_v = 1`` at ranks without the contributor's row, ``h_v <= c T``."""
    import cvxpy as cp
    import scipy.sparse as sp

    topology, ranks = data.topology, data.contributors
    n, m, N = topology.n, topology.arcs, ranks.size
    most = np.where(topology.head[:, None] == ranks[None, :], 0.0, N - 1.0)
    h = cp.Variable(m * N, name="h", bounds=[0, most.ravel()])
    T = cp.Variable(name="T", bounds=[0, (N - 1) / topology.capacity.min()])
    rows = np.flatnonzero((np.arange(n)[:, None] != ranks[None, :]).ravel())
    wanted = np.repeat(np.isin(np.arange(n), ranks).astype(float), N)
    net = sp.csr_array(sp.kron(topology.incidence(), sp.eye_array(N), format="csr")[rows])
    balance = net @ h == wanted[rows]
    capacity = h - np.repeat(topology.capacity, N) * T <= 0
    return CvxpyModel(
        cp.Problem(cp.Minimize(T), [balance, capacity]),
        variables={"h": Named(h, (m, N), np.arange(m * N)), "T": Named(T, ())},
        constraints={
            "balance": Named(balance, (n, N), rows),
            "capacity": Named(capacity, (m, N), np.arange(m * N)),
        },
    )


def estimate(data: Reduction) -> dict[str, int]:
    """Size of the model before it is built."""
    m, N, n = data.topology.arcs, data.topology.ranks, data.topology.n
    return {"variables": m * N + 1, "constraints": (n - 1) * N + m * N, "nonzeros": 4 * m * N, "integers": 0}


def arrays(data: Reduction, _names: Collection[str]) -> dict[str, Array]:
    """The flows h and the time T."""
    shape = (data.topology.arcs, data.topology.ranks)
    return {"h": Array(shape, axes=("arc", "contributor"), unit=SHARDS), "T": Array(unit=TIME)}


def index_sets(data: Reduction, _values: object = None) -> dict[str, Names]:
    """Names of arcs and contributors."""
    return {"arc": arc_labels(data.topology), "contributor": vertex_labels(data.topology, data.contributors)}


def links(data: Reduction, values: Mapping[str, NDArray[np.float64]]) -> Links:
    """Shards over every arc: the largest flow of any contributor, because sums are free."""
    load = np.asarray(values["h"], dtype=float).max(axis=1, initial=0.0)
    return Links(data.topology, load, data.topology.capacity, float(np.asarray(values["T"])), SHARDS, BANDWIDTHS)


def dual_arrays(data: Reduction) -> dict[str, Array]:
    """The duals of ``capacity``."""
    return {"capacity": Array((data.topology.arcs, data.topology.ranks))}


def residuals(data: Reduction, values: Mapping[str, NDArray[np.float64]]) -> dict[str, float]:
    """Worst violation of every block, see :func:`opticoll.formulations.alltoall.all_gather.flow_residuals`."""
    supply = np.isin(np.arange(data.topology.n), data.contributors).astype(float)
    return flow_residuals(data.topology, values, data.contributors, supply, away=True)


def length_bound(data: Reduction, lengths: NDArray[np.float64]) -> float:
    """The lower bound on T that lengths prove, shape ``(m, N)``, rounded down: the best over the contributors.

    Lengths are read as by :func:`opticoll.formulations.flows.concurrent_flow.length_bound`.
    """
    from scipy.sparse.csgraph import dijkstra

    ranks = data.contributors

    def paid(j: int, matrix: sp.csr_array) -> float:
        return outward.dot_down(np.ones(ranks.size), dijkstra(matrix, indices=ranks[j])[ranks])

    return best_length_bound(data.topology, lengths, paid)


def certify(data: Reduction, duals: Mapping[str, NDArray[np.float64]]) -> Bound | None:
    """The bound that the duals of ``capacity`` prove, read as lengths away from every contributor."""
    found = np.asarray(duals.get("capacity", np.zeros(0)), dtype=float)
    if found.shape != (data.topology.arcs, data.topology.ranks):
        return None
    return Bound("contributor-lengths", length_bound(data, -found), "lengths from the duals, shortest paths recomputed")


def bounds(data: Reduction) -> list[Bound]:
    """The worst cut, which is the optimum, and what leaves one rank."""
    from opticoll.formulations.flows.worst_cuts import least_time, reversed_arcs

    topology = data.topology
    leaving = np.bincount(topology.tail, topology.capacity, topology.n)[topology.terminals]
    room = float(outward.up(leaving.min(), int(topology.out_degree.max())))
    time, inside = least_time(reversed_arcs(topology), [1] * topology.ranks)
    held = int(np.isin(topology.terminals, list(inside)).sum())
    return [
        Bound("node-cut", max(outward.quotient_down(topology.ranks - 1, room), 0.0),
              "what leaves the rank that can send least", "beyond"),
        Bound("worst-cut", outward.fraction_down(time),
              f"sums of {held} ranks behind a capacity of {float(held / time):g}, found by max-flows", "beyond",
              exact=True, detail={"inside": sorted(inside)}),
    ]  # fmt: skip


def metrics(data: Reduction, value: float | None) -> dict[str, Json]:
    """T, its inverse, the number of ranks."""
    return time_metrics(data.topology, value)


FORMULATION = Formulation(
    name=NAME,
    paper=PAPER,
    where="beyond the paper",
    title="Reduce-scatter at optimal throughput: a flow from every rank, sums free",
    sense="min",
    problem="LP",
    prepare=prepare,
    build={"cvxpy": build_cvxpy, "pyomo": build_pyomo},
    residuals=residuals,
    objective=stated_time,
    bounds=bounds,
    arrays=arrays,
    certify=certify,
    dual_arrays=dual_arrays,
    metrics=metrics,
    estimate=estimate,
    size="N m + 1 variables",
    meaning="time T [shards / link bandwidth]",
    shards=True,
    index_sets=index_sets,
    links=links,
)

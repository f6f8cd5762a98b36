"""Broadcast of least time: every rank receives the shard of one root, and copies are free.

Source  beyond the all-to-all paper; disjoint branchings: Edmonds 1973; network coding: Ahlswede, Cai, Li & Yeung, IEEE
        Trans. Inf. Theory 46(4), 2000; as packing of trees over switches: ForestColl (Zhao et al., 2024)
Sets    u in V vertices (n); a in A arcs (m); r in V the root, a rank; v in R receiving ranks, all but r (N - 1)
Data    c_a > 0 capacity [link bandwidths], (m,); the root has one shard
Vars    0 <= h_av <= 1  flow towards v over arc a [shards], (m, N-1); 0 <= T <= 1 / min_a c_a  time
        [shards / link bandwidth]

min T  s.t.
    balance[u,v]    outflow_u(h_v) - inflow_u(h_v) = 1  at u = r, 0 elsewhere      u != v
    capacity[a,v]   h_av <= c_a T

This formulation is ours. It is the model of :mod:`opticoll.formulations.alltoall.all_gather` with all supply at r:
flows towards different receivers do not add up, because a copy is made where their ways part. Arcs out of v are fixed
at 0.

Certificate. For any lengths l_av >= 0 and any v: T >= dist_l(r, v) / sum_a c_a l_av.

Least cut. The shard must leave every set S that holds r and leaves out some rank:

    T >= 1 / c(S -> V - S),        T* = max over such S = 1 / min_v maxflow(r, v).

T* is attained by store-and-forward: as many arc-disjoint trees from r to all ranks exist as the least cut admits, if no
more capacity leaves a vertex that is no rank than enters it (Edmonds; Bang-Jensen, Frank & Jackson 1995). *Reduce*, the
sum of all ranks at r, is the same on the reversed topology, with sums for copies. Closed forms: complete 1/(N-1),
d-cube 1/d, n-ring 1/2, directed n-ring 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import BadInput
from opticoll.formulations import outward
from opticoll.formulations.alltoall import PAPER
from opticoll.formulations.alltoall.all_gather import best_length_bound, flow_residuals, stated_time
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
from opticoll.formulations.model import Bound, CvxpyModel, Formulation, Named, Parameter, PyomoModel

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    import scipy.sparse as sp
    from numpy.typing import NDArray

    from opticoll.instances.digraph import Topology
    from opticoll.instances.readers.untrusted import Json, Settings

NAME = "alltoall.broadcast"
PARAMETERS = (Parameter("root", int, 0, "rank that has the shard, counted from 0"),)


@dataclass(frozen=True, eq=False)
class Spreading:
    """The data of the model above; ``root`` is a vertex."""

    topology: Topology
    root: int

    @property
    def receivers(self) -> NDArray[np.int64]:
        """The ranks without the root, ``(N - 1,)``."""
        return self.topology.terminals[self.topology.terminals != self.root]

    @property
    def weight(self) -> list[int]:
        """Shards that start at every rank."""
        return (self.topology.terminals == self.root).astype(int).tolist()


def prepare(instance: object, parameters: Settings | None = None) -> Spreading:
    """The data of the model.

    Raises
    ------
    NotApplicable
        If the instance is not a connected topology of at least two ranks.
    BadInput
        If the root is not one of its ranks.
    """
    topology = all_to_all_topology(instance, NAME)
    root = int((parameters or {}).get("root", 0))
    if not 0 <= root < topology.ranks:
        msg = f"{NAME}: root={root} is none of the ranks of {topology.spec}; use 0..{topology.ranks - 1}"
        raise BadInput(msg)
    return Spreading(topology, int(topology.terminals[root]))


def build_pyomo(data: Spreading) -> PyomoModel:
    """The model in Pyomo: ``h[a,v]``, ``T``, ``balance[u,v]``, ``capacity[a,v]``."""
    import pyomo.environ as pyo

    topology = data.topology
    V, A = vertex_names(topology), arc_names(topology)
    root = V[data.root]
    R = [V[v] for v in topology.terminals.tolist() if V[v] != root]
    ends = {a: (V[u], V[w]) for a, u, w in zip(A, topology.tail.tolist(), topology.head.tolist(), strict=True)}
    c = dict(zip(A, topology.capacity.tolist(), strict=True))
    model = pyo.ConcreteModel(name="broadcast at optimal throughput")
    model.h = pyo.Var(A, R, bounds=lambda _, a, v: (0, 0 if ends[a][0] == v else 1))
    model.T = pyo.Var(bounds=(0, 1 / min(c.values())))
    model.time = pyo.Objective(expr=model.T, sense=pyo.minimize)
    model.balance = pyo.Constraint(
        [(u, v) for u in V for v in R if u != v],
        rule=lambda m, u, v: (
            pyo.quicksum(m.h[a, v] for a in A if ends[a][0] == u)
            - pyo.quicksum(m.h[a, v] for a in A if ends[a][1] == u)
            == (1 if u == root else 0)
        ),
    )
    model.capacity = pyo.Constraint(A, R, rule=lambda m, a, v: m.h[a, v] - c[a] * m.T <= 0)
    return PyomoModel(model, {"h": (A, R), "T": ()}, {"balance": (V, R), "capacity": (A, R)})


def build_cvxpy(data: Spreading) -> CvxpyModel:
    """The model in matrix form: ``-M h_v = e_r`` without the receiver's row, ``h_v <= c T``."""
    import cvxpy as cp
    import scipy.sparse as sp

    topology, receivers = data.topology, data.receivers
    n, m, K = topology.n, topology.arcs, receivers.size
    most = (topology.tail[:, None] != receivers[None, :]).astype(float)
    h = cp.Variable(m * K, name="h", bounds=[0, most.ravel()])
    T = cp.Variable(name="T", bounds=[0, 1.0 / topology.capacity.min()])
    rows = np.flatnonzero((np.arange(n)[:, None] != receivers[None, :]).ravel())
    supply = np.repeat(np.eye(n)[data.root], K)
    net = sp.csr_array(sp.kron(-topology.incidence(), sp.eye_array(K), format="csr")[rows])
    balance = net @ h == supply[rows]
    capacity = h - np.repeat(topology.capacity, K) * T <= 0
    return CvxpyModel(
        cp.Problem(cp.Minimize(T), [balance, capacity]),
        variables={"h": Named(h, (m, K), np.arange(m * K)), "T": Named(T, ())},
        constraints={
            "balance": Named(balance, (n, K), rows),
            "capacity": Named(capacity, (m, K), np.arange(m * K)),
        },
    )


def estimate(data: Spreading) -> dict[str, int]:
    """Size of the model before it is built."""
    m, K, n = data.topology.arcs, data.topology.ranks - 1, data.topology.n
    return {"variables": m * K + 1, "constraints": (n - 1) * K + m * K, "nonzeros": 4 * m * K, "integers": 0}


def arrays(data: Spreading, _names: Collection[str]) -> dict[str, Array]:
    """The flows h and the time T."""
    shape = (data.topology.arcs, data.topology.ranks - 1)
    return {"h": Array(shape, axes=("arc", "receiver"), unit=SHARDS), "T": Array(unit=TIME)}


def index_sets(data: Spreading, _values: object = None) -> dict[str, Names]:
    """Names of arcs and receivers."""
    return {"arc": arc_labels(data.topology), "receiver": vertex_labels(data.topology, data.receivers)}


def links(data: Spreading, values: Mapping[str, NDArray[np.float64]]) -> Links:
    """Shards over every arc: the largest flow towards any receiver, because copies are free."""
    load = np.asarray(values["h"], dtype=float).max(axis=1, initial=0.0)
    return Links(data.topology, load, data.topology.capacity, float(np.asarray(values["T"])), SHARDS, BANDWIDTHS)


def dual_arrays(data: Spreading) -> dict[str, Array]:
    """The duals of ``capacity``."""
    return {"capacity": Array((data.topology.arcs, data.topology.ranks - 1))}


def residuals(data: Spreading, values: Mapping[str, NDArray[np.float64]]) -> dict[str, float]:
    """Worst violation of every block, see :func:`opticoll.formulations.alltoall.all_gather.flow_residuals`."""
    return flow_residuals(data.topology, values, data.receivers, np.eye(data.topology.n)[data.root])


def length_bound(data: Spreading, lengths: NDArray[np.float64]) -> float:
    """The lower bound on T that lengths prove, shape ``(m, N-1)``, rounded down: the best over the receivers.

    Lengths are read as by :func:`opticoll.formulations.flows.concurrent_flow.length_bound`.
    """
    from scipy.sparse.csgraph import dijkstra

    def paid(j: int, matrix: sp.csr_array) -> float:
        return float(dijkstra(matrix, indices=data.root)[data.receivers[j]])

    return best_length_bound(data.topology, lengths, paid)


def certify(data: Spreading, duals: Mapping[str, NDArray[np.float64]]) -> Bound | None:
    """The bound that the duals of ``capacity`` prove, read as lengths towards every receiver."""
    found = np.asarray(duals.get("capacity", np.zeros(0)), dtype=float)
    if found.shape != (data.topology.arcs, data.topology.ranks - 1):
        return None
    return Bound("receiver-lengths", length_bound(data, -found), "lengths from the duals, shortest paths recomputed")


def bounds(data: Spreading) -> list[Bound]:
    """The least cut, which is the optimum, and what leaves the root."""
    from opticoll.formulations.flows.worst_cuts import least_time

    topology = data.topology
    leaving = float(topology.capacity[topology.tail == data.root].sum())
    room = float(outward.up(leaving, int(topology.out_degree[data.root])))
    time, inside = least_time(topology, data.weight)
    return [
        Bound("node-cut", outward.quotient_down(1, room), "what leaves the root", "beyond"),
        Bound(
            "least-cut", outward.fraction_down(time),
            f"a cut of capacity {float(1 / time):g} around the root, by max-flows", "beyond", exact=True,
            detail={"inside": sorted(inside)},
        ),
    ]  # fmt: skip


def metrics(data: Spreading, value: float | None) -> dict[str, Json]:
    """T, its inverse, the root and the number of ranks."""
    positive = value is not None and value > 0
    return {
        "T": value,
        "F": 1.0 / value if positive and value is not None else None,
        "root": data.topology.labels[data.root],
        "ranks": data.topology.ranks,
    }


FORMULATION = Formulation(
    name=NAME,
    paper=PAPER,
    where="beyond the paper",
    title="Broadcast at optimal throughput: a flow from the root to every rank, copies free",
    sense="min",
    problem="LP",
    parameters=PARAMETERS,
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
    size="(N-1) m + 1 variables",
    meaning="time T [shards / link bandwidth]",
    shards=True,
    index_sets=index_sets,
    links=links,
)

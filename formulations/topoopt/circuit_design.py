"""Designs of server pools: circuits between servers with rings of all-reduce groups and routes.

Source  TopoOpt, section 4; section 5.4, Eq. (1)
Data    V servers of degree d; T_st >= 0 point-to-point traffic [bytes], (n,n); groups k of servers M_k, each member of
        which sends S_k bytes over its hop of a ring all-reduce
Design  circuits c, directed from tail to head, parallel ones allowed, (m,)
        rings r: a cyclic order of the members of group k(r) that carries the share w_r of S_k; or, as ``trees``, the
            places of the members in a pair of double binary trees (appendix A), each edge of which carries
            w_r S_k k / (4 (k - 1)) both ways, half of the summed bytes
        routes q: a chain of circuits without repeated servers that carries b_q bytes

Demand of the chosen rings   D = T + sum_r w_r S_k(r) [hop of r from s to t], (n,n)

A design is valid if
    degree      at most d circuits leave each server, and at most d enter it
    rings       every ring contains each member of its group once; the shares of each group's rings add up to 1
    routes      every route is such a chain
    demand      the routes from s to t together carry D_st
    loads       the given load of every circuit equals the sum over its routes
    max_load, bandwidth_tax   if given, equal the values computed from the loads

max load = max_c sum_{q over c} b_q [bytes]; divided by the bandwidth of a circuit it is the time of the slowest
circuit. Bandwidth tax (section 5.4) = sum_c load_c / sum_st D_st, 1 if nothing is forwarded.

As named arrays (circuits, groups and servers are numbered from 0)
    circuits (m,2)                          tail and head, sorted by both
    ring_start (R+1,), ring_order (.,)      ring r is ring_order[ring_start[r]:ring_start[r+1]], servers in order
    ring_group (R,), ring_share (R,)
    ring_trees (R,)                         1 where the order is that of trees, 0 of a ring; 0 everywhere if left out
    route_start (Q+1,), route_circuits (.,) route q is route_circuits[route_start[q]:route_start[q+1]], circuits
    route_bytes (Q,)
    loads (m,)                              given loads

Iteration time of a training job, Eq. (1):  T = R / (n B) + alpha A / (n B) + C

with R all-reduce and A point-to-point bytes of all servers together, n B the bandwidth of all servers, C the computing
time. alpha follows from the busiest circuit: with d circuits per server alpha = Lambda n d / A, where Lambda is the
largest point-to-point load of a circuit. For any routing alpha is at least the mean hops of a byte, with equality for
equal loads; an ideal switch has alpha = 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import NotApplicable, refuse
from opticoll.formulations.model import of_kind
from opticoll.formulations.topoopt.binary_trees import double_binary_tree, tree_traffic
from opticoll.instances.servers import ServerPool
from opticoll.instances.topology import Topology

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from opticoll.instances.topology import F64, I64


@dataclass(frozen=True)
class Ring:
    """An order of a group's members and the share of the group's all-reduce that it carries.

    The order is that of a ring, or with ``trees`` the places in a pair of double binary trees
    (:mod:`opticoll.formulations.topoopt.binary_trees`).
    """

    group: int
    share: float
    order: tuple[int, ...]
    trees: bool = False

    @cached_property
    def hops(self) -> tuple[I64, I64, F64]:
        """Sender, receiver and size of every hop, ``(h,)`` each, relative to a hop of a ring of all the all-reduce.

        On a ring every member sends to the next. An edge of a binary tree carries one half of the S summed bytes both
        ways, which is k / (4 (k - 1)) of the 2 (k - 1) / k S bytes over a hop of a ring of k members.
        """
        order = np.asarray(self.order, dtype=np.int64)
        if not self.trees:
            return order, np.roll(order, -1), np.ones(order.size)
        matrix = tree_traffic(double_binary_tree(order.size), order.size / (2 * (order.size - 1)))
        sender, receiver = np.nonzero(matrix)
        return order[sender], order[receiver], matrix[sender, receiver]


@dataclass(frozen=True, eq=False)
class CircuitDesign:
    """Circuits, rings and routes of a pool (see the module docstring).

    Parameters
    ----------
    pool
        Servers and their traffic.
    circuits
        Tail and head of every circuit, sorted by both, shape ``(m, 2)``.
    rings
        Rings of the groups.
    route_start, route_circuits, route_bytes
        Concatenated routes and the bytes of each; shapes ``(Q+1,)``, ``(total length,)``, ``(Q,)``.
    """

    pool: ServerPool
    circuits: I64
    rings: tuple[Ring, ...]
    route_start: I64
    route_circuits: I64
    route_bytes: F64

    @property
    def routes(self) -> int:
        """Number of routes."""
        return int(self.route_bytes.size)

    @cached_property
    def length(self) -> I64:
        """Number of circuits of every route, ``(Q,)``."""
        return np.diff(self.route_start)

    @cached_property
    def ends(self) -> tuple[I64, I64]:
        """Source and target of every route, ``(Q,)`` each."""
        if not self.routes:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        first, last = self.route_circuits[self.route_start[:-1]], self.route_circuits[self.route_start[1:] - 1]
        return self.circuits[first, 0], self.circuits[last, 1]

    @cached_property
    def demand(self) -> F64:
        """Demand D of the chosen rings and the point-to-point traffic [bytes], ``(n, n)``."""
        return ring_demand(self.pool, self.rings)

    @cached_property
    def loads(self) -> F64:
        """Bytes over every circuit, ``(m,)``."""
        carried = np.repeat(self.route_bytes, self.length)
        return np.bincount(self.route_circuits, carried, len(self.circuits)).astype(np.float64)

    @property
    def max_load(self) -> float:
        """Bytes over the busiest circuit."""
        return float(self.loads.max(initial=0.0))

    @property
    def bandwidth_tax(self) -> float:
        """Bytes over all circuits per byte of demand; 1 without traffic."""
        total = float(self.demand.sum())
        return float(self.loads.sum()) / total if total > 0 else 1.0

    @cached_property
    def topology(self) -> Topology:
        """The circuits as a topology of unit capacities, with arcs in the order of ``circuits``."""
        return Topology(self.pool.n, self.circuits[:, 0], self.circuits[:, 1])

    def values(self) -> dict[str, F64]:
        """The named arrays of the module docstring."""
        orders = [ring.order for ring in self.rings]
        flat = {
            "circuits": self.circuits,
            "ring_start": np.cumsum([0, *map(len, orders)]),
            "ring_order": np.array([v for order in orders for v in order]),
            "ring_group": np.array([ring.group for ring in self.rings]),
            "ring_share": np.array([ring.share for ring in self.rings]),
            "route_start": self.route_start,
            "route_circuits": self.route_circuits,
            "route_bytes": self.route_bytes,
            "loads": self.loads,
        }
        if any(ring.trees for ring in self.rings):
            flat["ring_trees"] = np.array([ring.trees for ring in self.rings])
        return {name: np.asarray(array, dtype=np.float64) for name, array in flat.items()}


def server_pool(instance: object, where: str) -> ServerPool:
    """Return the instance if it is a server pool with traffic.

    Raises
    ------
    NotApplicable
        If it is not such a pool.
    """
    pool = of_kind(ServerPool, instance, where, "a server pool, servers:n=...,degree=...,traffic=...")
    if not pool.traffic.any():
        refuse(where, f"{pool.spec} has no traffic; set traffic=...", NotApplicable)
    return pool


def ring_demand(pool: ServerPool, rings: Sequence[Ring]) -> F64:
    """D of these rings: point-to-point traffic plus every ring's share over each of its hops, ``(n, n)``."""
    demand = pool.point_to_point.copy()
    for ring in rings:
        sender, receiver, part = ring.hops
        demand[sender, receiver] += ring.share * pool.groups[ring.group].transfer * part
    return demand


def default_rings(pool: ServerPool, *, trees: bool = False) -> tuple[Ring, ...]:
    """One ring per group, or pair of trees, in the order of its members; for rings the demand is ``pool.traffic``."""
    return tuple(Ring(k, 1.0, group.members, trees) for k, group in enumerate(pool.groups))


def sorted_circuits(circuits: ArrayLike) -> I64:
    """Sort circuits by tail and head, ``(m, 2)``."""
    pairs = np.asarray(circuits, dtype=np.int64).reshape(-1, 2)
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


def circuits_between(n: int, circuits: I64) -> I64:
    """Number of circuits from server to server, ``(n, n)``, of a list ``(m, 2)``."""
    number = np.zeros((n, n), dtype=np.int64)
    np.add.at(number, (circuits[:, 0], circuits[:, 1]), 1)
    return number


def ports_left(n: int, degree: int, circuits: I64) -> tuple[I64, I64]:
    """Numbers of free ports out of and into every server, ``(n,)`` each."""
    return degree - np.bincount(circuits[:, 0], minlength=n), degree - np.bincount(circuits[:, 1], minlength=n)


def build_design(
    pool: ServerPool, circuits: ArrayLike, rings: Sequence[Ring], routes: Sequence[tuple[Sequence[int], float]]
) -> CircuitDesign:
    """Build a design from its parts.

    Parameters
    ----------
    pool
        Servers and their traffic.
    circuits
        Tail and head as from :func:`sorted_circuits`, shape ``(m, 2)``.
    rings
        Rings of the groups.
    routes
        Circuits (rows of ``circuits``) and bytes of every route.
    """
    start = np.cumsum([0, *(len(path) for path, _ in routes)], dtype=np.int64)
    flat = np.fromiter((c for path, _ in routes for c in path), dtype=np.int64, count=int(start[-1]))
    amount = np.array([b for _, b in routes], dtype=np.float64)
    pairs = np.asarray(circuits, dtype=np.int64).reshape(-1, 2)
    return CircuitDesign(pool, pairs, tuple(rings), start, flat, amount)

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
from fractions import Fraction
from functools import cache, cached_property
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations import rounding
from opticoll.formulations.model import Bound, NotApplicable
from opticoll.formulations.rounds.segments import splits
from opticoll.formulations.topoopt.binary_trees import double_binary_tree, tree_traffic
from opticoll.formulations.variables import Array, Axis, Links, Names, SolutionSize, arc_names, members, pair_labels
from opticoll.instances.servers import ServerPool
from opticoll.instances.topology import Topology

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import ArrayLike

    from opticoll.instances.topology import F64, I64


#: Blocks of :func:`residuals`.
BLOCKS = ("degree", "rings", "routes", "nonnegative", "demand", "loads", "objective")
#: Number of server visits that :func:`chains` checks at a time.
CHECK_ENTRIES = 4_000_000
#: Integer arrays of a design, with their number of dimensions.
_WHOLE = {"circuits": 2, "ring_start": 1, "ring_order": 1, "ring_group": 1, "route_start": 1, "route_circuits": 1}
_REAL = ("ring_share", "route_bytes", "loads")


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
    if not isinstance(instance, ServerPool):
        spec = getattr(instance, "spec", type(instance).__name__)
        msg = f"{where}: needs a server pool, servers:n=...,degree=...,traffic=..., not {spec}"
        raise NotApplicable(msg)
    if not instance.traffic.any():
        msg = f"{where}: {instance.spec} has no traffic; set traffic=..."
        raise NotApplicable(msg)
    return instance


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


def arrays(pool: ServerPool, decode: Callable[[Mapping[str, F64]], CircuitDesign]) -> dict[str, Array]:
    """Shapes and ranges of the named arrays of the module docstring; ``decode`` reads a verified design."""

    def boundary(count: str, part: str, parts: str) -> Array:
        return members(Axis("boundary", SolutionSize(count, plus=1)), of=Axis(part, SolutionSize(parts, plus=1)))

    def circuits(values: Mapping[str, F64]) -> Names:
        return arc_names(decode(values).topology)

    def routes(values: Mapping[str, F64]) -> Names:
        design = decode(values)
        return {"route": range(design.routes), "commodity": pair_labels(design.topology, *design.ends)}

    n = pool.n
    circuit = Axis("circuit", SolutionSize("circuits"), circuits)
    ring, route = Axis("ring", SolutionSize("rings")), Axis("route", SolutionSize("routes"), routes)
    member, hop = Axis("member", SolutionSize("members")), Axis("hop", SolutionSize("hops"))
    ends = Axis("src", n), Axis("dst", n)
    return {
        "circuits": Array((circuit, Axis("end", 2)), low=0, high=n, entries=ends),
        "ring_start": boundary("rings", "member", "members"),
        "ring_order": members(member, of=Axis("server", n)),
        "ring_group": members(ring, of=Axis("group", len(pool.groups))),
        "ring_share": Array((ring,)),
        "ring_trees": Array((ring,), low=0, high=2, required=False),
        "route_start": boundary("routes", "hop", "hops"),
        "route_circuits": members(hop, of=circuit),
        "route_bytes": Array((route,), unit="bytes"),
        "loads": Array((circuit,), unit="bytes"),
        "max_load": Array(required=False, unit="bytes"),
        "bandwidth_tax": Array(required=False),
    }


def links(design: CircuitDesign) -> Links:
    """Bytes over every circuit, relative to the busiest one."""
    topology = design.topology
    return Links(topology, design.loads, topology.capacity, design.max_load, "bytes", "circuits")


def read_design(pool: ServerPool, values: Mapping[str, F64]) -> CircuitDesign | None:
    """Read the design of named arrays, valid or not; None if they are malformed."""
    result = _whole_arrays(values)
    real = {name: np.asarray(values.get(name, np.nan), dtype=float) for name in _REAL}
    if result is None or any(array.ndim != 1 or not np.isfinite(array).all() for array in real.values()):
        return None
    circuits, group = result["circuits"], result["ring_group"]
    fits = (
        circuits.shape[1] == 2
        and (circuits < pool.n).all()
        and (group < len(pool.groups)).all()
        and group.shape == real["ring_share"].shape
        and real["loads"].shape == (len(circuits),)
        and (result["ring_order"] < pool.n).all()
        and (result["route_circuits"] < len(circuits)).all()
        and splits(result["ring_start"], group.size, result["ring_order"].size)
        and splits(result["route_start"], real["route_bytes"].size, result["route_circuits"].size)
    )
    if not fits:
        return None
    start, order = result["ring_start"], result["ring_order"]
    kinds = np.asarray(values.get("ring_trees", np.zeros(group.size)), dtype=float)
    if kinds.shape != group.shape or not np.isin(kinds, (0.0, 1.0)).all():
        return None
    if (np.diff(start)[kinds > 0] < 2).any():
        return None
    rings = tuple(
        Ring(
            int(group[r]), float(real["ring_share"][r]), tuple(order[start[r] : start[r + 1]].tolist()), bool(kinds[r])
        )
        for r in range(group.size)
    )
    return CircuitDesign(pool, circuits, rings, result["route_start"], result["route_circuits"], real["route_bytes"])


def _whole_arrays(values: Mapping[str, F64]) -> dict[str, I64] | None:
    """The arrays of counts and indices; None if one has other dimensions, or entries that are not 0, 1, 2, ...."""
    result: dict[str, I64] = {}
    for name, dimensions in _WHOLE.items():
        array = np.asarray(values.get(name, np.nan), dtype=float)
        if name == "circuits" and array.size == 0:
            array = array.reshape(0, 2)
        if array.ndim != dimensions or not ((array >= 0) & (array <= 2**53) & (array == np.rint(array))).all():
            return None
        result[name] = array.astype(np.int64)
    return result


def residuals(pool: ServerPool, values: Mapping[str, F64]) -> dict[str, float]:
    """Worst violation of every block of the module docstring, from numpy alone.

    ``degree`` counts excess circuits (infinite for self-loops or unsorted circuits); ``rings`` is the worst deviation
    of a group's shares from 1, infinite for an order that is not a ring of its group; ``routes`` is 0 or infinite;
    ``nonnegative`` and ``demand`` are relative to the largest demand, ``loads`` to the largest load, ``objective`` (a
    given ``max_load`` or ``bandwidth_tax``) to the computed value.
    """
    design = read_design(pool, values)
    if design is None:
        return dict.fromkeys(BLOCKS, np.inf)
    routed = np.zeros((pool.n, pool.n))
    chained = chains(design)
    if chained:
        np.add.at(routed, design.ends, design.route_bytes)
    demand, load = design.demand, design.loads
    most = max(float(demand.max(initial=0.0)), np.finfo(float).tiny)
    heaviest = max(float(load.max(initial=0.0)), np.finfo(float).tiny)
    shares = np.array([ring.share for ring in design.rings])
    stated = {"max_load": design.max_load, "bandwidth_tax": design.bandwidth_tax}
    wrong = [_relative(values[name], true) for name, true in stated.items() if name in values]
    return {
        "degree": _degree_excess(pool, design.circuits),
        "rings": _ring_violation(design, shares),
        "routes": 0.0 if chained else np.inf,
        "nonnegative": max(-float(design.route_bytes.min(initial=0.0)) / most, -float(shares.min(initial=0.0)), 0.0),
        "demand": float(np.abs(routed - demand).max(initial=0.0)) / most,
        "loads": float(np.abs(np.asarray(values["loads"], dtype=float) - load).max(initial=0.0)) / heaviest,
        "objective": max(wrong, default=0.0),
    }


def _relative(stated: ArrayLike, true: float) -> float:
    number = np.asarray(stated, dtype=float)
    if number.shape != () or not np.isfinite(number):
        return np.inf
    return abs(float(number) - true) / max(abs(true), np.finfo(float).tiny)


def _degree_excess(pool: ServerPool, circuits: I64) -> float:
    tail, head = circuits[:, 0], circuits[:, 1]
    if (tail == head).any() or not np.array_equal(circuits, sorted_circuits(circuits)):
        return np.inf
    leaving, entering = np.bincount(tail, minlength=pool.n), np.bincount(head, minlength=pool.n)
    return float(max(leaving.max(initial=0), entering.max(initial=0), pool.degree) - pool.degree)


def _ring_violation(design: CircuitDesign, shares: F64) -> float:
    groups = design.pool.groups
    for ring in design.rings:
        if sorted(ring.order) != sorted(groups[ring.group].members):
            return np.inf
    carried = np.bincount([ring.group for ring in design.rings], shares, len(groups)) if design.rings else 0.0
    return float(np.abs(np.ones(len(groups)) - carried).max(initial=0.0))


def chains(design: CircuitDesign) -> bool:
    """Whether every route is connected and visits no server twice."""
    tail, head = design.circuits[design.route_circuits].T
    inner = np.ones(tail.size, dtype=bool)
    inner[design.route_start[:-1]] = False  # the first circuit of a route has no predecessor
    places = np.flatnonzero(inner)
    if (tail[places] != head[places - 1]).any():
        return False
    start, n = design.route_start, design.pool.n
    first = 0
    while first < design.routes:  # in blocks: all routes may have very many visits
        last = max(first + 1, int(np.searchsorted(start, start[first] + CHECK_ENTRIES, side="right")) - 1)
        indices = np.arange(first, last)
        route = np.repeat(indices - first, design.length[indices])
        visits = np.concatenate(
            [route * n + head[start[first] : start[last]], (indices - first) * n + design.ends[0][indices]]
        )
        if np.unique(visits).size < visits.size:
            return False
        first = last
    return True


def describe(design: CircuitDesign) -> dict[str, float | int | None]:
    """Summary of a verified design: loads [bytes], tax, hops, numbers of circuits, rings and routes."""
    hops = design.topology.hops
    pairs = ~np.eye(design.pool.n, dtype=bool)
    connected = bool(np.isfinite(hops).all())
    load = design.loads
    mean = float(load.mean()) if load.size else 0.0
    return {
        "max_load": design.max_load,
        "min_load": float(load.min()) if load.size else None,
        "mean_load": mean,
        "imbalance": design.max_load / mean if mean > 0 else None,
        "bandwidth_tax": design.bandwidth_tax,
        "demand_bytes": float(design.demand.sum()),
        "circuits": len(design.circuits),
        "rings": len(design.rings),
        "routes": design.routes,
        "diameter": int(hops.max()) if connected else None,
        "mean_hops": float(hops[pairs].mean()) if connected else None,
    }


def lower_bounds(pool: ServerPool, *, trees: bool = False) -> dict[str, Bound]:
    r"""Lower bounds on ``max-load`` [bytes] and ``bandwidth-tax`` for every design of a pool.

    ports
        A server sends (receives) all its bytes over d ports: max load >= max_v sent_v / d. A member sends the group's
        transfer in any ring; with ``trees``, at least as much as the place with the fewest neighbours in both trees.
    reach
        At most d servers are one hop away, d^2 two, ...: bytes of v to its j-th largest destination travel at least the
        depth of position j, bytes of rings at least one hop. Divided by the demand this bounds the tax, by the n d
        circuits the max load.
    """
    members, least = np.zeros(pool.n), np.zeros(pool.n)
    least_of = [group.transfer * (_least_of_trees(group.size) if trees else 1.0) for group in pool.groups]
    for group, own in zip(pool.groups, least_of, strict=True):
        members[list(group.members)] += group.transfer
        least[list(group.members)] += own
    direct = pool.point_to_point
    sent, received = direct.sum(axis=1) + least, direct.sum(axis=0) + least
    # Sums of at most n pairs and the transfers of the groups.
    roundings = pool.n + len(pool.groups)
    worst = float(rounding.down(float(max(sent.max(), received.max())) / pool.degree, roundings + 2))
    depth = np.repeat(np.arange(1, pool.n), _layers(pool.n - 1, pool.degree)[: pool.n - 1])[: pool.n - 1]
    forward = (np.sort(direct, axis=1)[:, ::-1][:, : pool.n - 1] * depth).ravel()
    backward = (np.sort(direct, axis=0)[::-1][: pool.n - 1].T * depth).ravel()
    further = max(rounding.sum_down(forward), rounding.sum_down(backward))
    travelled = float(rounding.down(rounding.sum_down([further, rounding.sum_down(members)]), roundings + 1))
    total = float(rounding.up(rounding.sum_up(direct.sum(axis=1) + members), roundings))
    tax = rounding.quotient_down(travelled, total) if total > 0 else 1.0
    spread = rounding.quotient_down(travelled, pool.n * pool.degree)
    reach = f"at most {pool.degree}^h servers are h hops away"
    sides = (direct, direct.T)
    places = [int(np.argmax(total)) for total in (sent, received)]
    side = int(received.max() > sent.max())
    pairs = zip(pool.groups, least_of, strict=True)
    of_server = [rounding.decimal(own) for group, own in pairs if places[side] in group.members]
    bytes_ = rounding.exact_sum(sides[side][places[side]])
    exact = None if bytes_ is None or trees else (bytes_ + sum(of_server, Fraction(0))) / pool.degree
    reason = f"most bytes of one server over {pool.degree} ports"
    load = Bound("ports", worst, reason, "topoopt", fraction=exact)
    if spread > worst:
        load = Bound("reach", spread, f"{reach}, load spread evenly over all circuits", "topoopt")
    return {"max-load": load, "bandwidth-tax": Bound("reach", tax, reach, "topoopt")}


@cache
def _least_of_trees(size: int) -> float:
    """Fewest bytes that a place in a pair of trees sends, relative to a hop of a ring."""
    sender, _, part = Ring(0, 1.0, tuple(range(size)), trees=True).hops
    return float(rounding.down(np.bincount(sender, part).min(), 8))


def demand_fractions(
    pool: ServerPool, fixed: F64, pairs: I64 | None, *, free_rings: bool
) -> tuple[list[Fraction], Fraction]:
    """Demands of a pool as rational numbers, each float read as its shortest decimal [bytes]; and the total.

    Demands of pairs, ``fixed`` ``(n, n)``; bytes of a hop of each group's ring; largest demands over all choices of
    rings, of servers, and of ``pairs`` ``(k, 2)``. Without ``free_rings``, ``fixed`` contains the rings.
    """
    value = {one: rounding.decimal(one) for one in np.unique(fixed).tolist()}
    groups = [(set(group.members), rounding.decimal(group.transfer)) for group in pool.groups if free_rings]
    results = [*value.values(), *(size for _, size in groups)]
    for s, t in [] if pairs is None else pairs.tolist():
        results.append(value[fixed[s, t]] + sum((size for own, size in groups if {s, t} <= own), Fraction(0)))
    for s, row in enumerate(fixed.tolist()):
        of_rings = (size for own, size in groups if s in own)
        results.append(sum((value[one] for one in row), Fraction(0)) + sum(of_rings, Fraction(0)))
    direct = sum(map(rounding.decimal, pool.point_to_point.ravel().tolist()), Fraction(0))
    return results, direct + sum((group.size * rounding.decimal(group.transfer) for group in pool.groups), Fraction(0))


def _layers(others: int, degree: int) -> I64:
    """Servers at depth 1, 2, ... of a tree of out-degree ``degree`` with ``others`` servers, ``(others,)``."""
    left, layer, results = others, 1, []
    for _ in range(others):
        layer = min(layer * degree, others)
        results.append(min(layer, left))
        left -= results[-1]
    return np.array(results, dtype=np.int64)

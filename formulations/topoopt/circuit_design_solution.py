"""Designs of :mod:`opticoll.formulations.topoopt.circuit_design` as named arrays: shapes, reading, checker, figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.flows.path_sets import PathRule, PathSet, path_violations
from opticoll.formulations.rounds.segments import splits
from opticoll.formulations.topoopt.circuit_design import CircuitDesign, Ring, sorted_circuits
from opticoll.formulations.variables import Array, Axis, Links, Names, SolutionSize, arc_names, members, pair_labels

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import ArrayLike

    from opticoll.instances.servers import ServerPool
    from opticoll.instances.topology import F64, I64

#: Blocks of :func:`residuals`.
BLOCKS = ("degree", "rings", "routes", "nonnegative", "demand", "loads", "objective")
#: Integer arrays of a design.
_WHOLE = ("circuits", "ring_start", "ring_order", "ring_group", "route_start", "route_circuits")


def arrays(pool: ServerPool, decode: Callable[[Mapping[str, F64]], CircuitDesign]) -> dict[str, Array]:
    """Shapes and ranges of the named arrays of a design; ``decode`` reads a verified design."""

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
    """Read the design of named arrays, valid or not; None if they do not divide into rings and routes."""
    circuits, start, order, group, route_start, hops = (np.asarray(values[name]).astype(np.int64) for name in _WHOLE)
    share, amount = (np.asarray(values[name], dtype=float) for name in ("ring_share", "route_bytes"))
    trees = np.asarray(values.get("ring_trees", np.zeros(group.size))) > 0
    if not (splits(start, group.size, order.size) and splits(route_start, amount.size, hops.size)):
        return None
    if (np.diff(start)[trees] < 2).any():
        return None
    members = [tuple(part.tolist()) for part in np.split(order, start[1:-1])]
    rings = map(Ring, group.tolist(), share.tolist(), members, trees.tolist())
    return CircuitDesign(pool, circuits, tuple(rings), route_start, hops, amount)


def residuals(pool: ServerPool, values: Mapping[str, F64]) -> dict[str, float]:
    """Worst violation of every block of a valid design, from numpy alone.

    ``degree`` counts excess circuits (infinite for self-loops or unsorted circuits); ``rings`` is the worst deviation
    of a group's shares from 1, infinite for an order that is not a ring of its group; ``routes`` is 0 or infinite;
    ``nonnegative`` is relative to the largest demand, ``demand`` to that of the pair, or to the largest where it is 0,
    ``loads`` to the largest load, ``objective`` (a given ``max_load`` or ``bandwidth_tax``) to the computed value.
    """
    design = read_design(pool, values)
    if design is None:
        return dict.fromkeys(BLOCKS, np.inf)
    routed = np.zeros((pool.n, pool.n))
    excess = _degree_excess(pool, design.circuits)
    chained = bool(np.isfinite(excess)) and chains(design)
    if chained:
        np.add.at(routed, design.ends, design.route_bytes)
    demand, load = design.demand, design.loads
    most = max(float(demand.max(initial=0.0)), np.finfo(float).tiny)
    heaviest = max(float(load.max(initial=0.0)), np.finfo(float).tiny)
    shares = np.array([ring.share for ring in design.rings])
    stated = {"max_load": design.max_load, "bandwidth_tax": design.bandwidth_tax}
    wrong = [_relative(values[name], true) for name, true in stated.items() if name in values]
    return {
        "degree": excess,
        "rings": _ring_violation(design, shares),
        "routes": 0.0 if chained else np.inf,
        "nonnegative": max(-float(design.route_bytes.min(initial=0.0)) / most, -float(shares.min(initial=0.0)), 0.0),
        "demand": float((np.abs(routed - demand) / np.where(demand > 0, demand, most)).max(initial=0.0)),
        "loads": float(np.abs(np.asarray(values["loads"], dtype=float) - load).max(initial=0.0)) / heaviest,
        "objective": max(wrong, default=0.0),
    }


def _relative(stated: ArrayLike, true: float) -> float:
    return abs(float(np.asarray(stated)) - true) / max(abs(true), np.finfo(float).tiny)


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
    """Whether every route is connected and visits no server twice; the circuits must be sorted, without self-loops."""
    routes = np.arange(design.routes)
    paths = PathSet(design.topology, *design.ends, design.route_circuits, design.route_start, routes)
    return path_violations(paths, PathRule("all")) == 0


def describe(design: CircuitDesign) -> dict[str, float | int | None]:
    """Summary of a verified design: load [bytes], tax, hops, numbers of circuits, rings and routes."""
    hops = design.topology.hops
    pairs = ~np.eye(design.pool.n, dtype=bool)
    connected = bool(np.isfinite(hops).all())
    return {
        "max_load": design.max_load,
        "bandwidth_tax": design.bandwidth_tax,
        "circuits": len(design.circuits),
        "rings": len(design.rings),
        "routes": design.routes,
        "diameter": int(hops.max()) if connected else None,
        "mean_hops": float(hops[pairs].mean()) if connected else None,
    }

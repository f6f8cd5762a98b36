"""TopologyFinder and OCS-reconfig: the paper's heuristics for circuits and routes.

Source  TopoOpt, Algorithms 1 and 5

TopologyFinder:

1. d_A = max(1, ceil(d R / (R + A))) ports for rings, with R all-reduce and A point-to-point bytes.
2. Every group k gets d_k of them in proportion to its bytes, and as many +p rings (TotientPerms, SelectPermutations),
   which share its all-reduce evenly.
3. The remaining ports get circuits by maximum-weight matchings of the point-to-point traffic.
4. Ring hops take their own circuits; point-to-point traffic takes shortest paths over all circuits, or CoinChangeMod's.

Where the paper is not explicit: ports belong to servers, so groups without a common server do not compete for them
(d_k = ceil(d_A R_k / sum of R over the groups that share a server with k), at most the free ports of its members; the
largest group first). A group without a port keeps its default ring over several hops. Line 2 demands a connected
network; this is ensured at the end (:func:`opticoll.solvers.methods.topoopt.server_circuits.connected`).

OCS-reconfig places circuits where the demand is highest, with every group on its default ring.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, cast

import numpy as np

from opticoll.formulations.model import NotApplicable, Parameter
from opticoll.formulations.topoopt import topology
from opticoll.formulations.topoopt.design import Ring, default_rings, ports_left, sorted_circuits
from opticoll.formulations.topoopt.forwarding import routed_design
from opticoll.solvers.methods.method import Answer, Method
from opticoll.solvers.methods.topoopt.server_circuits import (
    HALF,
    Matching,
    connected,
    greedy_circuits,
    matched_circuits,
)
from opticoll.solvers.methods.topoopt.totient_rings import coin_routes, selected
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from opticoll.formulations.topoopt.design import TopologyDesign
    from opticoll.formulations.topoopt.topology import Wiring
    from opticoll.instances.servers import ServerPool
    from opticoll.solvers.methods.method import Context

Forwarding = Literal["shortest", "coin-change"]


def ring_ports(pool: ServerPool) -> int:
    """d_A: ports of every server for rings (line 2)."""
    reduce, direct = pool.all_reduce_bytes, float(pool.point_to_point.sum())
    if reduce + direct == 0:
        return pool.degree
    return max(1, math.ceil(pool.degree * reduce / (reduce + direct) - 1e-9))


def group_ports(pool: ServerPool) -> list[int]:
    """d_k: rings of every group (lines 5-7)."""
    most = ring_ports(pool)
    left = np.full(pool.n, most)
    found = [0] * len(pool.groups)
    members = [set(group.members) for group in pool.groups]
    for k in sorted(range(len(members)), key=lambda k: (-pool.groups[k].total, k)):
        rivals = sum(other.total for other, seen in zip(pool.groups, members, strict=True) if members[k] & seen)
        fair = math.ceil(most * pool.groups[k].total / rivals - 1e-9)
        here = list(pool.groups[k].members)
        found[k] = min(fair, int(left[here].min()))
        left[here] -= found[k]
    return found


def group_rings(pool: ServerPool, *, primes: bool = False) -> tuple[list[Ring], list[tuple[int, int]]]:
    """Rings of all groups, and the circuits of those that have ports."""
    rings: list[Ring] = []
    circuits: list[tuple[int, int]] = []
    for k, (group, count) in enumerate(zip(pool.groups, group_ports(pool), strict=True)):
        if count == 0:
            rings.append(Ring(k, 1.0, group.members))
            continue
        for step in selected(group.size, count, primes):
            order = group.ring(step)
            rings.append(Ring(k, 1.0 / count, tuple(order.tolist())))
            circuits += zip(order.tolist(), np.roll(order, -1).tolist(), strict=True)
    return rings, circuits


def topology_finder(
    pool: ServerPool,
    *,
    primes: bool = False,
    matching: Matching = "blossom",
    paths: int = 1,
    forwarding: Forwarding = "shortest",
) -> TopologyDesign:
    """TopologyFinder's design (Algorithm 1).

    Parameters
    ----------
    pool
        Servers, all-reduce groups, point-to-point traffic.
    primes
        Only prime steps (and +1).
    matching
        ``blossom`` as in the paper, or ``assignment`` of senders to receivers.
    paths
        Number of shortest paths that a forwarded demand is split over.
    forwarding
        ``shortest``, or ``coin-change`` over the rings of a group of all servers in order.

    Raises
    ------
    NotApplicable
        For coin change if no such group has rings.
    """
    rings, ringed = group_rings(pool, primes=primes)
    own = sorted_circuits(ringed)
    matched = matched_circuits(pool.point_to_point, *ports_left(pool.n, pool.degree, own), matching)
    circuits = connected(pool.n, np.concatenate([own, matched]), pool.degree, pool.traffic)
    if forwarding == "shortest":
        return routed_design(pool, circuits, rings, paths=paths)
    everyone = tuple(range(pool.n))
    counts = zip(pool.groups, group_ports(pool), strict=True)
    coins = [p for g, count in counts if count and g.members == everyone for p in selected(pool.n, count, primes)]
    if not coins:
        msg = "coin change: no group has a ring over all servers in numerical order; use forwarding=shortest"
        raise NotApplicable(msg)
    return routed_design(pool, circuits, rings, paths=paths, offsets=coin_routes(pool.n, coins))


def ocs_reconfig(pool: ServerPool, *, discount: float = HALF, paths: int = 1) -> TopologyDesign:
    """OCS-reconfig's design (Algorithm 5): circuits by demand, default rings, shortest paths.

    Parameters
    ----------
    pool
        Servers and their traffic, all of which counts as unsatisfied.
    discount
        Factor on a pair's demand after each circuit (one half in the paper), above 0 and at most 1.
    paths
        Number of shortest paths that a forwarded demand is split over.

    Raises
    ------
    NotApplicable
        For a discount out of range.
    """
    if not 0 < discount <= 1:
        msg = f"ocs-reconfig: discount={discount}; take a factor above 0 and at most 1"
        raise NotApplicable(msg)
    circuits = greedy_circuits(pool.traffic, pool.degree, discount)
    linked = connected(pool.n, circuits, pool.degree, pool.traffic)
    return routed_design(pool, linked, default_rings(pool), paths=paths)


def starting_design(data: Wiring) -> TopologyDesign:
    """The best design of the heuristics and a directed ring that keeps to the limits of ``topoopt.topology``."""
    pool, servers = data.pool, np.arange(data.n)
    circuits = np.stack([servers, (servers + 1) % data.n], axis=1)
    designs = (topology_finder(pool), ocs_reconfig(pool), routed_design(pool, circuits, default_rings(pool)))
    allowed = [made for made in designs if max(topology.residuals(data, made.values()).values()) <= 1e-6]
    return min(allowed, key=data.worth)


def run_topology_finder(context: Context) -> Answer:
    """Run TopologyFinder."""
    given = context.parameters
    design = topology_finder(
        context.instance,
        primes=bool(given["primes"]),
        matching=cast("Matching", given["matching"]),
        paths=int(given["split"]),
        forwarding=cast("Forwarding", given["forwarding"]),
    )
    return Answer(
        Termination.TOLERANCE,
        values=design.values(),
        solver={
            "name": "topology-finder",
            "version": None,
            "options": {},
            "algorithm": f"{given['matching']} matchings",
        },
        message="a heuristic: it proves no bound",
    )


TOPOLOGY_FINDER = Method(
    name="topology-finder",
    title="TopologyFinder (Algorithm 1)",
    summary="TotientPerms rings for all-reduce, matchings for point-to-point traffic, coin change or shortest paths",
    applies=lambda formulation: formulation.name == "topoopt.topology",
    parameters=(
        Parameter("primes", bool, default=False, help="prime ring steps (and +1) only"),
        Parameter("matching", str, default="blossom", help="matching of pairs, or of senders with receivers",
                  choices=("blossom", "assignment")),
        Parameter("split", int, default=1, help="number of shortest paths that forwarded traffic is split over"),
        Parameter("forwarding", str, default="shortest", help="routes of demand without a circuit of its own",
                  choices=("shortest", "coin-change")),
    ),
    run=run_topology_finder,
    construct=topology_finder,
)  # fmt: skip


def run_ocs_reconfig(context: Context) -> Answer:
    """Run OCS-reconfig."""
    given = context.parameters
    design = ocs_reconfig(context.instance, discount=float(given["discount"]), paths=int(given["split"]))
    return Answer(
        Termination.TOLERANCE,
        values=design.values(),
        solver={"name": "ocs-reconfig", "version": None, "algorithm": "highest demand first", "options": {}},
        message="a heuristic: it proves no bound",
    )


OCS_RECONFIG = Method(
    name="ocs-reconfig",
    title="OCS-reconfig (Algorithm 5)",
    summary="repeatedly a circuit for the highest remaining demand, halved each time; connected by exchanges",
    applies=lambda formulation: formulation.name == "topoopt.topology",
    parameters=(
        Parameter("discount", float, default=0.5, help="factor on a demand after each of its circuits"),
        Parameter("split", int, default=1, help="number of shortest paths that forwarded traffic is split over"),
    ),
    run=run_ocs_reconfig,
    construct=ocs_reconfig,
)


METHODS = (TOPOLOGY_FINDER, OCS_RECONFIG)

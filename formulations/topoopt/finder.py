r"""TopologyFinder: rings for the all-reduce groups, matchings for the rest, routes over both.

Source  TopoOpt, Algorithm 1

1. d_A = max(1, ceil(d R / (R + A))) ports for rings, with R all-reduce and A point-to-point bytes.
2. Every group k gets d_k of them in proportion to its bytes, and as many +p rings (TotientPerms, SelectPermutations),
   which share its all-reduce evenly.
3. The ports left get circuits by maximum-weight matchings of the point-to-point traffic.
4. Ring hops take their own circuits; point-to-point traffic the shortest paths over all circuits, or CoinChangeMod's.

Where the print is silent: ports belong to servers, so groups without a common server do not take each other's
(d_k = ceil(d_A R_k / sum of R over the groups that share a server with k), at most what its members have left; the
largest group first). A group that gets no port keeps its default ring over several hops. What line 2 is for, that the
network is connected, is seen to at the end (:func:`opticoll.formulations.topoopt.server_circuits.connected`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import numpy as np

from opticoll.formulations.model import NotApplicable
from opticoll.formulations.topoopt.design import Ring, default_rings, sorted_circuits
from opticoll.formulations.topoopt.forwarding import routed_design
from opticoll.formulations.topoopt.server_circuits import (
    HALF,
    Matching,
    connected,
    greedy_circuits,
    matched_circuits,
    ports_left,
)
from opticoll.formulations.topoopt.totient_rings import selected

if TYPE_CHECKING:
    from opticoll.formulations.topoopt.design import TopologyDesign
    from opticoll.instances.servers import ServerPool

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
    """Algorithm 1 end to end.

    Parameters
    ----------
    pool
        Servers, all-reduce groups, point-to-point traffic.
    primes
        Only prime steps (and +1).
    matching
        ``blossom`` as the paper, or ``assignment`` of senders to receivers.
    paths
        Shortest paths that a forwarded demand is split over.
    forwarding
        ``shortest``, or ``coin-change`` over the rings of a group of all servers in order.

    Raises
    ------
    NotApplicable
        For coin change where no such group has rings.
    """
    rings, ringed = group_rings(pool, primes=primes)
    own = sorted_circuits(ringed)
    matched = matched_circuits(pool.point_to_point, *ports_left(pool.n, pool.degree, own), matching)
    circuits = connected(pool.n, np.concatenate([own, matched]), pool.degree, pool.traffic)
    coins: tuple[int, ...] = ()
    if forwarding == "coin-change":
        whole = tuple(range(pool.n))
        counts = zip(pool.groups, group_ports(pool), strict=True)
        coins = tuple(p for g, count in counts if count and g.members == whole for p in selected(pool.n, count, primes))
        if not coins:
            msg = "coin change: no ring over all servers in the order of their numbers; forward by shortest paths"
            raise NotApplicable(msg)
    return routed_design(pool, circuits, rings, paths=paths, coins=coins)


def ocs_reconfig(pool: ServerPool, *, discount: float = HALF, paths: int = 1) -> TopologyDesign:
    """Algorithm 5: circuits by demand alone, with every group on its default ring, and shortest paths over them.

    Parameters
    ----------
    pool
        Servers and their traffic; what is unsatisfied is all of it.
    discount
        What is left of a pair's demand once it has a circuit (one half in the paper), above 0 and at most 1.
    paths
        Shortest paths that a forwarded demand is split over.

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

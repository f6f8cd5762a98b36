"""Demand of the commodities of a server pool over all choices of rings or trees."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import NotApplicable
from opticoll.formulations.parameters import Parameter, changed_from_defaults
from opticoll.formulations.topoopt import circuit_design
from opticoll.formulations.topoopt.circuit_design import Ring, default_rings, server_pool

if TYPE_CHECKING:
    from opticoll.formulations.topoopt.topology import Wiring
    from opticoll.instances.topology import F64, I64


#: Maximum number of members of a group whose cyclic orders are listed: 7 members have 720.
MOST_MEMBERS = 7
#: Parameters of ``topoopt.topology``.
PARAMETERS = (
    Parameter(
        "objective",
        str,
        default="max-load",
        help="bytes over the busiest circuit, or byte-hops per byte",
        choices=("max-load", "bandwidth-tax"),
    ),
    Parameter(
        "parallel", int, default=0, help="maximum circuits per pair of servers; 0: as many as it has ports", least=0
    ),
    Parameter(
        "rings",
        str,
        default="free",
        help="all-reduce rings: chosen, or in the order of the members",
        choices=("free", "default"),
    ),
    Parameter(
        "all_reduce",
        str,
        default="rings",
        help="all-reduce over rings, or over pairs of double binary trees",
        choices=("rings", "trees"),
    ),
)


def prepared(
    cls: type[Wiring], instance: object, *, objective: str, parallel: int, rings: str, all_reduce: str
) -> Wiring:
    """The problem on a pool of servers.

    Raises
    ------
    NotApplicable
        If a parameter has no effect, or leaves ports without a circuit.
    """
    pool = server_pool(instance, cls.name)
    if not pool.groups:
        stated = {"rings": rings, "all_reduce": all_reduce}
        for name in changed_from_defaults(cls.parameters, stated):
            msg = f"{cls.name}: {name}={stated[name]} has no effect on {pool.spec}, which all-reduces nothing"
            raise NotApplicable(msg)
    limit = min(parallel or pool.degree, pool.degree)
    if limit * (pool.n - 1) < pool.degree:
        msg = (
            f"{cls.name}: parallel={parallel} leaves some of {pool.degree} ports without a circuit to one of the "
            f"{pool.n - 1} other servers; use degree={limit * (pool.n - 1)} or parallel=0"
        )
        raise NotApplicable(msg)
    return cls(pool, objective, limit, rings == "free", all_reduce == "trees")


def rings_by_default(data: Wiring) -> tuple[Ring, ...]:
    """The ring, or pair of trees, of every group in the order of its members."""
    return default_rings(data.pool, trees=data.trees)


def default_demand(data: Wiring) -> F64:
    """Demand with the default rings or trees [bytes], ``(n, n)``."""
    return circuit_design.ring_demand(data.pool, data.by_default)


def listed_orders(data: Wiring) -> tuple[Ring, ...]:
    """All R cyclic orders of all groups, or pairs of trees (``rings=free``); empty otherwise.

    Raises
    ------
    NotApplicable
        For a group of more than ``MOST_MEMBERS`` servers.
    """
    if not data.free_rings:
        return ()
    for group in data.pool.groups:
        if group.size > MOST_MEMBERS and not data.trees:
            msg = (
                f"{data.name}: an all-reduce group of {group.size} has too many rings to list in a program; set "
                f"rings=default, or use method design-search"
            )
            raise NotApplicable(msg)
    return data.candidates


def candidate_rings(data: Wiring) -> tuple[Ring, ...]:
    """Rings for a search: all rings of a group, or the +p rings if it has more than ``MOST_MEMBERS`` servers.

    Of trees, those in the orders of the +p rings.
    """
    if not data.free_rings:
        return ()
    results = []
    for number, group in enumerate(data.pool.groups):
        if group.size > MOST_MEMBERS or data.trees:
            steps = [p for p in range(1, group.size) if np.gcd(p, group.size) == 1]
            results += [Ring(number, 0.0, tuple(group.ring(p).tolist()), data.trees) for p in steps]
            continue
        first, *others = group.members
        results += [Ring(number, 0.0, (first, *rest)) for rest in permutations(others)]
    return tuple(results)


def most_of_trees(data: Wiring) -> F64:
    """Largest demand of every pair and group over all pairs of trees [bytes], ``(groups, n, n)``."""
    most = np.zeros((len(data.pool.groups), data.n, data.n))
    for ring in data.candidates:
        sender, receiver, part = ring.hops
        own = most[ring.group]
        own[sender, receiver] = np.maximum(own[sender, receiver], data.pool.groups[ring.group].transfer * part)
    return most


def most_demand(data: Wiring) -> F64:
    """Largest demand of every pair over all choices of rings [bytes], ``(n, n)``."""
    most = data.fixed.copy()
    if data.free_rings and data.trees:
        return most + data.most_of_trees.sum(axis=0)
    if data.free_rings:
        for group in data.pool.groups:
            indices = np.ix_(group.members, group.members)
            most[indices] += group.transfer * (1 - np.eye(group.size))
    return most


def most_sent(data: Wiring) -> F64:
    """Largest number of bytes that a server sends over all choices of rings, ``(n,)``."""
    sent = data.fixed.sum(axis=1)
    if not data.free_rings:
        return sent
    for number, group in enumerate(data.pool.groups):
        most = np.zeros(data.n)
        for ring in (one for one in data.candidates if data.trees and one.group == number):
            sender, _, part = ring.hops
            most = np.maximum(most, group.transfer * np.bincount(sender, part, data.n))
        most[list(group.members)] = np.maximum(most[list(group.members)], 0.0 if data.trees else group.transfer)
        sent += most
    return sent


def commodities(data: Wiring) -> tuple[I64, F64, F64]:
    """s_k, ``(K,)``; D_uk [U], ``(n, K)``; B_k [U], ``(K,)``."""
    source = np.flatnonzero(data.most.sum(axis=1) > 0)
    return source, np.ascontiguousarray(data.fixed[source].T) / data.unit, data.most_sent[source] / data.unit


def flow_variables(data: Wiring) -> tuple[I64, I64]:
    """Commodity and pair of every flow variable; none enters the commodity's own server."""
    source = data.commodities[0]
    commodity, pair = np.nonzero(data.pairs[1][None, :] != source[:, None])
    return commodity, pair


def ring_hops(data: Wiring) -> tuple[I64, I64, I64, F64]:
    """Ring, commodity, target, bytes [U] of every hop of every order, of which there is at least one."""
    columns = []
    for r, ring in enumerate(data.orders):
        sender, target, part = ring.hops
        commodity = np.searchsorted(data.commodities[0], sender)
        size = data.pool.groups[ring.group].transfer / data.unit
        columns.append((np.full(sender.size, r), commodity, target, size * part))
    number, commodity, target, amount = map(np.concatenate, zip(*columns, strict=True))
    return number, commodity, target, amount

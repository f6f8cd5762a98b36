"""Bounds of every design (:mod:`opticoll.formulations.topoopt.circuit_design`) of a pool; its demands as fractions."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations import rounding
from opticoll.formulations.flows.flow_bounds import moore_depths
from opticoll.formulations.model import Bound
from opticoll.formulations.topoopt.circuit_design import Ring

if TYPE_CHECKING:
    from opticoll.instances.servers import ServerPool
    from opticoll.instances.topology import F64


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
    depth = moore_depths(pool.n - 1, pool.degree)
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


def demand_fractions(pool: ServerPool, fixed: F64, *, free_rings: bool) -> tuple[list[Fraction], Fraction]:
    """Demands of a pool as rational numbers, each float read as its shortest decimal [bytes]; and the total.

    Demands of pairs, ``fixed`` ``(n, n)``; bytes of a hop of each group's ring; largest demands of servers over all
    choices of rings. Without ``free_rings``, ``fixed`` contains the rings.
    """
    value = {one: rounding.decimal(one) for one in np.unique(fixed).tolist()}
    groups = [(set(group.members), rounding.decimal(group.transfer)) for group in pool.groups if free_rings]
    results = [*value.values(), *(size for _, size in groups)]
    for s, row in enumerate(fixed.tolist()):
        of_rings = (size for own, size in groups if s in own)
        results.append(sum((value[one] for one in row), Fraction(0)) + sum(of_rings, Fraction(0)))
    direct = sum(map(rounding.decimal, pool.point_to_point.ravel().tolist()), Fraction(0))
    return results, direct + sum((group.size * rounding.decimal(group.transfer) for group in pool.groups), Fraction(0))

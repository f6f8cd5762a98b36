"""Bounds on the load and the bandwidth tax of any circuits and routes, and the unit of the data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations import rounding
from opticoll.formulations.model import Bound
from opticoll.formulations.topoopt import circuit_design_bounds
from opticoll.formulations.topoopt.forwarding import travelled
from opticoll.instances.servers import ServerPool

if TYPE_CHECKING:
    from fractions import Fraction

    from opticoll.formulations.topoopt.topology import Wiring


def load_of_next_servers(data: Wiring) -> float:
    """U [bytes]: maximum load of circuits to the next servers, with default rings, rounded up to 6 digits.

    Every server has d circuits, shared evenly among its next k = min(d, n-1) servers. Demand over m
    servers takes floor(m/k) steps of k, then one of m modulo k: valid for any ``parallel`` and choice of rings.
    """
    n, widest = data.n, min(data.degree, data.n - 1)
    servers, load = np.arange(n), np.zeros((widest + 1, n))
    for distance in range(1, n):
        demand = data.default_demand[servers, (servers + distance) % n]
        steps, rest = divmod(distance, widest)
        for step in range(steps):
            load[widest] += np.roll(demand, step * widest)
        if rest:
            load[rest] += np.roll(demand, steps * widest)
    circuits = np.bincount(1 + np.arange(data.degree) % (n - 1), minlength=widest + 1)[1:]
    return rounding.digits_up(float((load[1:] / circuits[:, None]).max()) * (1 + 1e-9), 6)


def least_byte_hops(data: Wiring) -> float:
    """Minimum byte-hops of any design [bytes], rounded down."""
    within = travelled(data.fixed, data.degree) + (data.pool.all_reduce_bytes if data.free_rings else 0.0)
    least_tax = circuit_design_bounds.lower_bounds(data.bounded_pool, trees=data.trees)["bandwidth-tax"]
    by_depth = least_tax.value * data.total
    return float(rounding.down(max(within, by_depth), data.n**2 + len(data.pool.groups) + 3))


def idle_bytes(data: Wiring) -> float:
    """Bytes by which n d Lambda exceeds the byte-hops of every design at least, rounded down.

    A server forwards F_v >= 0 bytes, so its d incoming circuits carry R_v + F_v and its d outgoing ones S_v + F_v,
    with max(S_v, R_v) + F_v <= d Lambda. The byte-hops are sum_v (S_v + F_v), so that

        n d Lambda  >=  byte-hops + sum_v max(R_v - S_v, 0).

    A member of a group sends as much of a ring as it receives; of trees it may not: then this is 0.
    :func:`opticoll.formulations.topology.sequence_bounds.unmatched` is the sum in fractions, for few nodes.
    """
    if data.free_rings and data.trees:
        return 0.0
    more = [rounding.sum_down([*data.fixed[:, v], *-data.fixed[v]]) for v in range(data.n)]
    return max(rounding.sum_down(np.maximum(more, 0.0)), 0.0)


def least_hops(data: Wiring) -> float:
    """H [U], at most the minimum byte-hops: a decimal like L and U, as data of exact solves."""
    return -rounding.digits_up(-rounding.quotient_down(data.byte_hops, data.unit), 9)


def bounded_pool(data: Wiring) -> ServerPool:
    """Pool for the bounds: with ``rings=default`` all traffic is point-to-point."""
    return data.pool if data.free_rings else ServerPool(data.n, data.degree, data.default_demand)


def wiring_lower_bounds(data: Wiring) -> list[Bound]:
    """Bounds from ports or depths, and from byte-hops (:mod:`opticoll.formulations.topoopt.forwarding`)."""
    n, d, hops = data.n, data.degree, data.byte_hops
    reason = f"at most {d} + ... + {d}^h pairs of every server are within h hops, as a transport problem"
    bytes_ = float(rounding.up(data.total, n * n + len(data.pool.groups)))
    value = rounding.quotient_down(hops, n * d if data.goal == "max-load" else bytes_)
    return [
        circuit_design_bounds.lower_bounds(data.bounded_pool, trees=data.trees)[data.goal],
        Bound("transport", value, reason, "topoopt"),
    ]


def least_load(data: Wiring) -> float:
    """L [U]."""
    best = max(bound.value for bound in data.lower_bounds) if data.goal == "max-load" else 0.0
    return min(-rounding.digits_up(-rounding.quotient_down(best, data.unit), 9), 1.0)


def derived(data: Wiring) -> list[Fraction]:
    """Demands in units of U, and U over the total demand; U, L and H are decimals."""
    free = data.free_rings and not data.trees
    result, total = circuit_design_bounds.demand_fractions(data.pool, data.fixed, free_rings=free)
    if data.free_rings and data.trees:
        hops = {float(data.pool.groups[r.group].transfer * p) for r in data.candidates for p in r.hops[2].tolist()}
        numbers = {*hops, *data.most[data.most > 0].tolist(), *data.most_sent.tolist()}
        result += [rounding.decimal(value) for value in sorted(numbers)]
    return [value / rounding.entered(data.unit) for value in result] + [rounding.entered(data.unit) / total]


def bounds(data: Wiring) -> list[Bound]:
    """The :attr:`lower_bounds`, and for the maximum load what :attr:`idle` adds to them."""
    if data.goal != "max-load" or not data.idle:
        return data.lower_bounds
    reason = "byte-hops of the transport bound, and circuits of servers that receive more or less than they send"
    total = rounding.sum_down([data.byte_hops, data.idle])
    value = rounding.quotient_down(total, data.n * data.degree)
    return [*data.lower_bounds, Bound("imbalance", value, reason, "topoopt")]

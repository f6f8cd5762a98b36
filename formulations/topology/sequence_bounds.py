r"""Bounds on sequences of topologies: hops that K configurations need, ports, and the delay of changes.

Source  ours. For K = 1 the counts are those of Moore graphs (:mod:`opticoll.formulations.topology.design`).

A shard travels over circuits of configurations k_1 <= ... <= k_h, with ``relays=step`` k_1 < ... < k_h. Let h(s,v) be
the fewest circuits of such a walk from s to v.

Nodes at h hops. At most N_h nodes have h(s,v) = h, in any sequence of K configurations of degree d:

    one-way, pass     N_h = d^h C(K+h-1, h)
    two-way, pass     N_h = sum_{i=1..min(h,K)} C(K,i) C(h-1,i-1) d^i (d-1)^(h-i)
    step              N_h = d^h C(K, h)

Proof. Each such node is the end of a walk of h circuits; no two nodes share one. One-way: the configurations of a walk
are a multiset of h among K, C(K+h-1, h) of them (for ``step`` a set, C(K, h)), and each circuit is one of d. Two-way: a
shortest walk never takes a circuit back to where it came from in the same configuration, for without these two circuits
it would be shorter, so a circuit that follows another of its configuration is one of d-1, and the first of a
configuration one of d. If i configurations are used, C(K,i) ways, the h circuits are split among them in C(h-1,i-1)
ways, and i of them are the first. (So N_h is the coefficient of z^h in ((1+z) / (1-(d-1)z))^K.) The same counts hold
for the sources at h hops *from* which v is reached: walk backwards.

Hops. Let D be all demand and B_h = N_1 + ... + N_h. A node has at most B_h others within h hops, and is within h hops
of as many. So at most P_h of the demand has h hops or fewer: the largest demand of pairs of which every node starts and
ends at most B_h. All shards together take at least W = sum_(h >= 0) (D - P_h) circuits, of which W - D do not lead to
their last node: if R_v shards pass through v, sum_v R_v >= W - D. Let m_v be the larger of what v sends and what it
receives: m_v + R_v shards leave v, or so many enter it. All circuits carry at most C sum t_k, where C = n d, and
2 floor(n d / 2) if they are two-way. Each m_v + R_v is at most d sum t_k; if circuits are two-way, as many lead out of
v as into it, and what all nodes' circuits out carry is at most C sum t_k. Hence

    sum_k t_k >= (sum_v m_v + W - D) / C,

and if the counts N_1, N_2, ... end before the positive demands of a source (target) do, there is no solution. P_h is
bounded by prices u, v >= 0 of starts and ends, B_h (sum_s u_s + sum_w v_w) + sum_sw max(0, D_sw - u_s - v_w), of which
either side is lowered in turn. For uniform demand W = n sum_h h n_h, with n_h = N_h until n - 1 nodes are reached. For
K = 1 the sharper bound of ``topology.design`` applies. If the one configuration is given (``start``), h(s,v) and C are
its own.

Full circuits, for uniform demand of one shard, without ``overlap``, where K d >= n-1. A circuit carries no more than
one shard to its end, and ports that find no new end double a circuit, or idle. Let m = K d - (n-1), q = min(2m, d).
Then

    sum_k t_k >= (2 (n-1) + m - q K) / (2 d - q).

Proof. Let T = sum_k t_k, t_k = 1 - u_k + e_k with u_k, e_k >= 0 and u_k e_k = 0. A source has K d slots, d of length
t_k for every k, each a circuit to some node, or idle. With a_v the sum of the lengths of the slots to v, it sends at
most min(1, a_v) to v over one circuit, and needs two for the rest: d T >= 2 (n-1) - sum_v min(1, a_v) = 2 (n-1) - d T +
loss, where loss = sum_v max(a_v - 1, 0) + the lengths of idle slots. Let there be x more slots than nodes that they
lead to, so x >= m; at most 2x slots, at most d of every k, are idle or not the only one to their node. A node with g >
1 slots loses at least g - 1 - (its u_k) + (its e_k), an idle slot 1 - u_k + e_k, any other e_k. So loss >= d e + x -
min(2x, d) u, with u and e the sums of the u_k and e_k, and u - e = K - T. As d e >= min(2x, d) e, loss >= x - min(2x,
d) (K - T), which is least for x = m where it is positive. #

Ports. A node sends and receives over d circuits: sum_k t_k >= D_s / d, with D_s all that s sends or receives.
Cuts add nothing: min(|S|, n - |S|) d circuits may leave a set S, and the shards that leave it are at most those that
its nodes send and those that the others receive, so the bound of a cut is at most a mean of bounds of single nodes.
(Cuts could add something where ``parallel`` limits the circuits between two nodes; they are not computed.)

Delay. With ``charge=any`` the objective is sum_k t_k + delay (K-1). With ``charge=changed``, merge configurations
between which no circuit is set: a sequence of K' <= K configurations, so the least over K' of bound(K') + delay (K'-1)
is a bound. With ``relays=step`` a walk takes one circuit in each of the K configurations, several where they are
merged: N_h is the smaller of the counts for ``pass`` and K', and for ``step`` and K. With ``overlap`` a change also
carries at most C delay shards, over circuits of both configurations: they count as circuits of the earlier one, and a
walk remains one of ``pass``. Then sum_k t_k + delay (K-1) is at least the right-hand side above and the same for ports,
without the delay on the right, and of course the objective >= delay (K-1).

Start-up. At least one configuration is used, without ``overlap``. With ``charge=any`` and K' used ones, the walks and
the capacity are those of the K': the bound is the least over K' <= K of bound(K') + startup K', plus delay (K-1). With
``charge=changed`` every one of the K' merged configurations is used, as others can be left out, except the start
perhaps: startup K', or startup max(K'-1, 1) with a start. With ``overlap`` an unused configuration has changes in which
data flow: the bound is that for K, plus startup if all changes together, delay (K-1), are shorter than that; otherwise
all data may flow in changes, and no configuration need be used.

Known sequences. One configuration: all demand around a ring, shortest way round if two-way (not with ``step``). Direct
circuits: shifts i -> i+r, or the rounds of a tournament, d in a configuration, each as long as its largest demand. An
optimum takes no longer than the best of them, which bounds the length of its configurations (L) and, as the
configurations of an optimum take at least the ports' bound, the number of changes that can pay:
K - 1 <= (known - ports) / (delay + startup), as every change leads to a configuration that is used; with ``overlap``
K - 1 <= known / delay.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, chain
from math import comb
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations import rounding
from opticoll.formulations.model import Bound
from opticoll.formulations.rounding import largest, least
from opticoll.formulations.topology.design import Design
from opticoll.formulations.topology.design_bounds import least_time
from opticoll.instances.topology import Topology

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opticoll.formulations.topology.sequence import TopologySequence
    from opticoll.instances.topology import F64, I64


#: Significant digits of the length L, so that it stands for a decimal.
LENGTH_DIGITS = 6

#: Turns in which prices of the ends of pairs are lowered.
MOST_TURNS = 30
#: Shares of the prices of ends alone from which they begin; with 0 and 1, no bound of one side is better.
FIRST_PRICES = (0.0, 0.5, 1.0)

#: A time, or infinity where there is no solution.
Time = Fraction | float


@dataclass(frozen=True)
class KnownSequence:
    """Number of configurations of a sequence that serves the demand, and the sum of their lengths."""

    configurations: int
    time: Fraction


def nodes_at(hops: int, configurations: int, degree: int, *, directed: bool, step: bool) -> int:
    """N_h: the most nodes whose fewest hops from a node are ``hops``, in any sequence of configurations."""
    h, K, d = hops, configurations, degree
    if step:
        return int(d**h * comb(K, h))
    if directed:
        return int(d**h * comb(K + h - 1, h))
    return sum(comb(K, i) * comb(h - 1, i - 1) * d**i * (d - 1) ** (h - i) for i in range(1, min(h, K) + 1))


def one_by_one(data: TopologySequence) -> bool:
    """Whether a shard takes at most one circuit in a configuration and the change after it."""
    return data.relays == "step" and not data.overlap


def least_hops(data: TopologySequence) -> int:
    """Least sum of hops from a node to all others, as far as they can be reached."""
    return hops_from_one(layers(data, data.configurations))


def hops_from_one(reached: Sequence[int]) -> int:
    """Sum of hops from a node to so many nodes at 1, 2, ... hops."""
    return sum(hops * nodes for hops, nodes in enumerate(reached, 1))


def layers(data: TopologySequence, configurations: int) -> list[int]:
    """N_1, N_2, ... until all other nodes are reached, or no more are."""
    step = one_by_one(data)
    merged = step and data.charge == "changed"
    degree, left = min(data.degree, data.n - 1), data.n - 1
    result: list[int] = []
    while left > 0:
        hops = len(result) + 1
        most = nodes_at(hops, configurations, degree, directed=data.directed, step=step and not merged)
        if merged:
            most = min(most, nodes_at(hops, data.configurations, degree, directed=data.directed, step=True))
        if most == 0:
            break
        result.append(min(most, left))
        left -= result[-1]
    return result


def circuits(data: TopologySequence) -> int:
    """C: the most circuits of a configuration; a two-way circuit counts twice."""
    total = data.n * min(data.degree, data.parallel * (data.n - 1))
    return total if data.directed else total // 2 * 2


def most_within(demand: F64, number: int) -> Fraction:
    """P_h: upper bound on the demand of pairs of which every node starts and ends at most ``number``, (n, n)."""
    (_, u, v) = min((_end_prices(demand, share, number) for share in FIRST_PRICES), key=lambda one: one[0])
    starts, ends = list(map(Fraction, u.tolist())), list(map(Fraction, v.tolist()))
    total = number * sum((*starts, *ends), Fraction(0))
    tail, head = np.nonzero(np.nextafter(demand, np.inf) - u[:, None] > np.nextafter(v, -np.inf)[None, :])
    for i, j in zip(tail.tolist(), head.tolist(), strict=True):
        total += max(largest(float(demand[i, j])) - starts[i] - ends[j], Fraction(0))
    return total


def _end_prices(demand: F64, share: float, number: int) -> tuple[float, F64, F64]:
    """A bound and its prices of starts and ends: by turns at their best, from a share of those of the ends alone."""

    def best(left: F64) -> F64:
        return np.asarray(np.maximum(np.partition(left, -number, axis=1)[:, -number], 0.0))

    v = share * best(demand.T)
    for _ in range(MOST_TURNS):
        u = best(demand - v[None, :])
        w = best(demand.T - u[None, :])
        if (w == v).all():
            break
        v = w
    return float(number * (u.sum() + v.sum()) + np.maximum(demand - u[:, None] - v[None, :], 0.0).sum()), u, v


def least_load(data: TopologySequence, reached: Sequence[int]) -> Time:
    """Lower bound on the shards that the circuits of all nodes carry: m_v and what passes through."""
    partners = max(int((data.demand > 0).sum(axis=axis).max()) for axis in (0, 1))
    if partners > sum(reached):
        return math.inf
    total = sum(chain(*_exact_rows(data.demand)), Fraction(0))
    load = total + unmatched(data.demand)
    for within in accumulate(reached):
        if within < partners:
            load += max(total - most_within(data.demand, within), Fraction(0))
    return load


def unmatched(demand: F64) -> Fraction:
    """Lower bound on sum_v m_v less all demand: ports of nodes that send more than they receive, or less, idle."""
    pairs = zip(_exact_rows(demand), _exact_rows(demand.T), strict=True)
    uneven = (abs(sum(row, Fraction(0)) - sum(column, Fraction(0))) for row, column in pairs)
    return sum(uneven, Fraction(0)) / 2


def _exact_rows(matrix: F64) -> list[list[Fraction]]:
    return [[least(value) for value in row] for row in matrix.tolist()]


def hop_time(data: TopologySequence, configurations: int) -> tuple[Time, str]:
    """Lower bound on the lengths of this many configurations in all, by hops, and its reason."""
    leaving = data.startup > 0 and data.charge == "any" and data.configurations > 1  # the start may be the unused one
    if configurations == 1 and data.standing is not None and not leaving:
        return _standing_time(data, data.standing)
    reached = layers(data, configurations)
    if data.amount is not None:
        work: Time = data.n * hops_from_one(reached) * least(data.amount)
        if sum(reached) < data.n - 1:
            work = math.inf
    else:
        work = least_load(data, reached)
    where = "one configuration" if configurations == 1 else f"{configurations} configurations"
    if work == math.inf:
        return math.inf, f"a node reaches at most {sum(reached)} others in {where}"
    time = Fraction(work) / circuits(data)
    hops = "hop" if len(reached) == 1 else f"to {len(reached)} hops"
    reason = f"at most {', '.join(map(str, reached))} nodes at 1 {hops} in {where}"
    if configurations == 1 and data.amount is not None and data.degree < data.n:
        sharper, why = least_time(Design(data.n, data.degree, data.directed))
        sharper *= least(data.amount)
        if sharper > time:
            return sharper, why
    if data.amount is not None and not data.overlap:
        sharper = full_circuits_time(data.n, data.degree, configurations) * least(data.amount)
        if sharper > time:
            return sharper, f"a circuit carries one shard to its end, and {where} have more of them than others"
    return time, reason


def full_circuits_time(n: int, degree: int, configurations: int) -> Fraction:
    """Lower bound on the lengths of all configurations for uniform demand, as circuits carry one shard to their end."""
    more = configurations * degree - (n - 1)
    if more < 0:
        return Fraction(0)
    q = min(2 * more, degree)
    return Fraction(2 * (n - 1) + more - q * configurations, 2 * degree - q)


def _standing_time(data: TopologySequence, standing: I64) -> tuple[Time, str]:
    """Lower bound on the length of the configuration at the start, or of all that have its circuits."""
    through = data.relays == "pass" or data.configurations > 1
    links = Topology(data.n, *np.nonzero(standing))
    distance, wanted = links.hops if through else np.where(standing > 0, 1.0, np.inf), data.demand > 0
    if np.isinf(distance[wanted]).any():
        return math.inf, "the topology at the start has no path for some demand"
    pairs = zip(data.demand[wanted].tolist(), distance[wanted].tolist(), strict=True)
    work = sum((least(amount) * int(hops) for amount, hops in pairs), Fraction(0))
    return work / int(standing.sum()), "hops on the topology at the start, over all its circuits"


def port_time(data: TopologySequence) -> tuple[Fraction, str]:
    """Lower bound on the lengths of any number of configurations in all, by the ports of one node."""
    degree = min(data.degree, data.parallel * (data.n - 1))
    if data.amount is not None:
        most = (data.n - 1) * least(data.amount)
    else:
        rows = (*_exact_rows(data.demand), *_exact_rows(data.demand.T))
        most = max(sum(row, Fraction(0)) for row in rows)
    return most / degree, f"a node sends or receives {float(most):g} shards over {degree} circuits"


def bounds(data: TopologySequence) -> list[Bound]:
    """All bounds on the objective, rounded down."""
    flow, because = port_time(data)
    exact = rounding.as_decimals(data.demand) and rounding.as_decimals([data.delay, data.startup])
    if data.configurations == 1 or (data.charge == "any" and (data.startup == 0 or data.overlap)):
        times = {"hops": hop_time(data, data.configurations), "ports": (flow, because)}
        return [
            _bound(name, _with_delay(data, time, data.configurations), why, exact=exact)
            for name, (time, why) in times.items()
        ]
    best: Time = math.inf
    reason = ""
    for configurations in range(1, data.configurations + 1):
        hops, why = hop_time(data, configurations)
        value = _with_delay(data, max(hops, flow), configurations)
        if value < best or not reason:
            why = why if hops > flow else because
            best, reason = value, f"{why}; least for {configurations} of up to {data.configurations} configurations"
    ports = flow + least(data.startup) * _started(data, flow, 1)
    return [_bound("choice", best, reason, exact=exact), _bound("ports", ports, because, exact=exact)]


def _with_delay(data: TopologySequence, flow: Time, configurations: int) -> Time:
    """Lower bound on the objective of this many configurations from one on what they and changes carry."""
    changes = (data.configurations if data.charge == "any" else configurations) - 1
    waiting = least(data.delay) * changes
    started = _started(data, flow, configurations)
    return (max(flow, waiting) if data.overlap else flow + waiting) + least(data.startup) * started


def _started(data: TopologySequence, flow: Time, configurations: int) -> int:
    """The fewest of so many configurations that are used, if they and changes take at least ``flow``."""
    if data.overlap:
        return int(least(data.delay) * (data.configurations - 1) < flow)
    if data.standing is not None and data.charge == "changed":
        return max(configurations - 1, 1)
    return configurations


def _bound(name: str, value: Time, reason: str, *, exact: bool) -> Bound:
    """A bound from a fraction, rounded down, and that fraction if it is exact; infinite where there is no solution."""
    if value == math.inf:
        return Bound(name, math.inf, reason, "topology")
    fraction = Fraction(value)
    down = rounding.fraction_down(fraction)
    return Bound(name, down, reason, "topology", fraction=fraction if exact else None)


# known sequences ------------------------------------------------------------------------------------------------------


def rotation(n: int, degree: int, *, directed: bool) -> list[list[tuple[int, int]]]:
    """Configurations of direct circuits between all pairs: ordered pairs, one-way shifts or rounds of a tournament."""
    if directed:
        rounds = [[(i, (i + r) % n) for i in range(n)] for r in range(1, n)]
    else:
        even = n + n % 2
        rounds = []
        for r in range(even - 1):
            pairs = [((r + i) % (even - 1), (r - i) % (even - 1)) for i in range(1, even // 2)] + [(even - 1, r)]
            real = [pair for pair in pairs if max(pair) < n]
            rounds.append(real + [(v, u) for u, v in real])
    return [list(chain(*rounds[r : r + degree])) for r in range(0, len(rounds), degree)]


def ring_time(data: TopologySequence) -> Fraction | None:
    """Time of all demand around the ring 0, 1, ..., n-1 of parallel circuits; None if the ports allow no ring."""
    n, copies = data.n, ring_copies(data)
    if copies == 0 or data.relays == "step":
        return None
    farthest = n - 1 if data.directed else n // 2
    if data.amount is not None:
        return largest(data.amount) * (farthest * (farthest + 1) // 2) / copies
    loads = []
    for ahead, distances in ((True, range(1, farthest + 1)), (False, range(1, n - farthest))):
        change = [Fraction(0)] * (2 * n)  # of the load from one circuit of the ring to the next, unrolled twice
        for s in range(n):
            for distance in distances:
                v = (s + distance) % n if ahead else (s - distance) % n
                amount, first = largest(float(data.demand[s, v])), s if ahead else v
                change[first] += amount
                change[first + distance] -= amount
        total = list(accumulate(change))
        loads += [total[u] + total[u + n] for u in range(n)]
    return max(loads) / copies


def known_sequences(data: TopologySequence) -> list[KnownSequence]:
    """Sequences that serve the demand from any start, without the start."""
    ring, direct = ring_time(data), rotation(data.n, data.degree, directed=data.directed)
    slowest = [max(float(data.demand[pair]) for pair in pairs) for pairs in direct]
    turns = KnownSequence(len(direct), sum(map(largest, slowest), Fraction(0)))
    return [turns] if ring is None else [KnownSequence(1, ring), turns]


def ring_copies(data: TopologySequence) -> int:
    """Parallel circuits from a node of the ring to the next."""
    return min(data.parallel, data.degree if data.directed or data.n == 2 else data.degree // 2)


def _changes(data: TopologySequence, known: KnownSequence) -> int:
    return known.configurations - (data.standing is None)


def longest(data: TopologySequence) -> float:
    """L: no less than the length of every configuration in some optimum, a decimal of few digits."""
    most = sum(map(largest, data.demand[data.demand > 0].tolist()), Fraction(0))
    for known in known_sequences(data):
        if _changes(data, known) < data.configurations:
            charged = largest(data.delay) * _changes(data, known) if data.charge == "changed" else Fraction(0)
            most = min(most, known.time + charged + largest(data.startup) * known.configurations)
    return rounding.digits_up(rounding.fraction_up(most), LENGTH_DIGITS)


def most_useful(data: TopologySequence) -> int:
    """Number of configurations that no optimum needs to exceed, for a delay > 0."""
    delay, startup = least(data.delay), least(data.startup)
    known = min(
        known.time + delay * _changes(data, known) + startup * known.configurations for known in known_sequences(data)
    )
    spare = known if data.overlap else known - port_time(data)[0]
    each = delay if data.overlap else delay + startup
    return 1 + max(math.floor(spare / each * (1 + Fraction(1, 10**9))), 0)


def derived(data: TopologySequence) -> list[Fraction]:
    """The demands, the times, and the bound L on the lengths, which holds with some room."""
    times = data.delay, data.startup, data.longest
    return [*rounding.decimals(data.demand), *map(rounding.decimal, times)]


def refute(data: TopologySequence) -> Bound | None:
    """Bound that excludes every sequence: some source reaches too few nodes."""
    return next((bound for bound in data.bounds() if bound.value == np.inf), None)

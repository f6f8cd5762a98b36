r"""Bounds on matchings over parallel switches: ports, partners, delay, and prices of pairs.

Source  ours; ports and partners also in *Scheduling Parallel Optical Circuit Switches for AI Training*
        (arXiv 2603.07373)

All statements are about schedules whose first matchings take the delay, too. Without it every switch in use ends one
delay earlier, so the makespan is the same less one delay.

Write rho for the largest sum of a row or column of D, p_l for the number of partners of a line l (a row or column:
its positive entries), Delta for the largest p_l, c for a configuration, of length tau_c, and m for their number.

Ports. Sum_c tau_c >= rho, for a line is lit by one circuit of a configuration. If u <= min(s, m) switches are used,
u T >= sum_c tau_c + delay m, so T >= rho/min(s,m) + delay m / min(s,m).

Partners. A configuration joins a line l to one partner, so m >= Delta, and m = p_l + e with e >= 0. Of all
configurations, e are idle at l or repeat a partner; so at most e partners are served twice or more, and each of the
others has a configuration of its own, no shorter than its demand. These are whole jobs that are divided among the
switches, together with a delay for every configuration: with P(e) the least makespan on s machines of the p_l - e
smallest demands of l, each with a delay, and 2 e delays alone,

    T >= min over m >= Delta of max over lines l of max( (rho + delay m) / min(s, m), P(m - p_l) ).

For more than twelve jobs P(e) is bounded by a switch that has q = ceil(m/s) configurations or more, of which q - 2 e
are the only ones of their partners: P(e) >= delay q + the q - 2 e smallest demands.

Prices. Let pi >= 0 be prices of the pairs, and theta the largest value of W(tau) / (tau + delay), where W(tau) is the
largest weight of a matching with weights pi_ij min(D_ij, tau). A configuration of length tau serves at most
min(D_ij, tau) of a pair, so what it serves is worth at most theta (tau + delay). Hence
sum_c (tau_c + delay) >= sum_ij pi_ij D_ij / theta, and s T is no less. Over the lengths tau between two demands, the
weight of a matching is linear in tau, so its ratio is monotone: only the distinct demands need to be examined. W(tau)
is bounded from above by any v: sum_i max_j (w_ij - v_j) + sum_j v_j.

Closed form. Without delay T = rho / s: D is at most rho times a convex combination of matchings (Birkhoff), and every
switch takes a share 1/s of each.

Number of configurations. Some optimum has on every switch at most

* P_h, the pairs that the switch serves: for given amounts, its lengths are a linear program with a row for each pair;
* (n-1)^2 + 1: the sum of its lengths times matchings, filled up with idle ports to permutations, lies in the convex
  hull of its own permutations, whose dimension is at most (n-1)^2 (Caratheodory);
* (U - max(0, rho - (s-1) (U - delay))) / delay, with U the makespan of a known schedule: no switch ends after U, the
  others have lengths of at most U - delay, and all lengths together are at least rho.

The first two do not change the number of the others, and none of them makes another one worse. On all switches
together there are at most (s U - rho) / delay, since s U is no less than all lengths and delays.

Known schedules. A list of matchings: the shifts i -> i + r; first fit by decreasing demand; or as many as a node has
partners, each of which covers every node that has the most partners left (Koenig) and then is of largest demand. Each
as long as its largest demand; assigned to the switches longest first, or all of them on every switch for a share 1/s
of their length.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations import rounding
from opticoll.formulations.model import Bound
from opticoll.formulations.rounding import largest, least

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opticoll.formulations.topology.matchings import TopologyMatchings
    from opticoll.instances.topology import F64, I64

#: Largest number of lengths at which prices are examined exactly; beyond, they are grouped.
MOST_LENGTHS = 256
#: Most jobs that are divided among the switches exactly.
MOST_JOBS = 12


def lines_of(demand: F64) -> list[list[float]]:
    """Positive demands of every row and column that has any, each in ascending order."""
    rows = [*demand, *demand.T]
    return [sorted(row[row > 0].tolist()) for row in rows if row.any()]


def largest_line(demand: F64) -> Fraction:
    """rho: a lower bound on the largest sum of a row or column."""
    return max(sum(map(least, line), Fraction(0)) for line in lines_of(demand))


def most_partners(demand: F64) -> int:
    """Delta: the most partners of a row or column."""
    return max(map(len, lines_of(demand)))


def port_time(data: TopologyMatchings, configurations: int) -> Fraction:
    """Least makespan of this many configurations in all, by ports."""
    used = min(data.switches, configurations)
    return (largest_line(data.demand) + least(data.delay) * configurations) / used


def divided(jobs: list[Fraction], machines: int) -> Fraction:
    """Least makespan of whole jobs on machines alike."""
    scale = math.lcm(*(job.denominator for job in jobs))
    sizes = sorted((int(job * scale) for job in jobs), reverse=True)
    loads, best = [0] * machines, sum(sizes)
    least_load = max(-(-best // machines), sizes[0])

    def place(number: int) -> None:
        nonlocal best
        if best == least_load:
            return
        if number == len(sizes):
            best = max(loads)
            return
        for load in sorted(set(loads)):  # machines of one load are alike
            if load + sizes[number] < best:
                machine = loads.index(load)
                loads[machine] += sizes[number]
                place(number + 1)
                loads[machine] = load

    place(0)
    return Fraction(best, scale)


def line_time(data: TopologyMatchings, line: list[Fraction], configurations: int) -> Fraction:
    """Least makespan of this many configurations by the partners of a line, its demands in ascending order."""
    delay, twice = least(data.delay), 2 * (configurations - len(line))
    alone = line[: max(configurations - twice, 0)]
    if configurations <= MOST_JOBS:
        return divided([delay + amount for amount in alone] + [delay] * (configurations - len(alone)), data.switches)
    q = -(-configurations // data.switches)
    return delay * q + sum(alone[: max(q - twice, 0)], Fraction(0))


def partner_time(data: TopologyMatchings) -> Fraction:
    """Least makespan by the partners of the lines."""
    rho, s, delay = largest_line(data.demand), data.switches, least(data.delay)
    lines = [[least(amount) for amount in line] for line in {tuple(line) for line in lines_of(data.demand)}]
    first = max(map(len, lines))
    best: Fraction | None = None
    for m in range(first, 3 * first + 2 * s + 1):  # from there on both terms grow with m
        shared = (rho + delay * m) / min(s, m)
        if best is None or shared < best:
            alone = max(line_time(data, line, m) for line in lines)
            best = max(shared, alone) if best is None else min(best, max(shared, alone))
        elif m >= s:
            break
    assert best is not None
    return best


def bounds(data: TopologyMatchings) -> list[Bound]:
    """Analytic bounds on the makespan, rounded down."""
    rho, partners = largest_line(data.demand), most_partners(data.demand)
    earlier = Fraction(0) if data.first else largest(data.delay)
    s, delay = data.switches, least(data.delay)
    exact = rounding.as_decimals(data.demand) and least(data.delay) == largest(data.delay)
    if partners > data.switches * data.configurations:
        reason = f"a node has {partners} partners, and the switches {data.switches * data.configurations} matchings"
        return [Bound("partners", math.inf, reason, "topology")]

    def stated(name: str, time: Fraction, reason: str) -> Bound:
        value = rounding.fraction_down(time - earlier)
        return Bound(name, value, reason, "topology", fraction=time - earlier if exact else None)

    if delay == 0 and data.enough:
        reason = "the largest row or column over all switches, which is attained without delay"
        return [replace(stated("ports", rho / s, reason), exact=True)]
    ports, count = min(port_time(data, m) for m in range(1, s + 1)), max(partners, 1)
    reason = f"a node has {count} partners: at least {count} configurations, {-(-count // s)} on some switch"
    return [
        stated("ports", ports, f"a node sends or receives {float(rho):g} shards over {s} switches"),
        stated("partners", partner_time(data), reason),
    ]


closed_forms = bounds


def matching_weight(weights: F64) -> tuple[float, I64]:
    """Upper bound on the weight of every matching, ``(n, n)`` weights >= 0, and the heads of a heaviest one."""
    from scipy.optimize import linear_sum_assignment

    n = len(weights)
    _, heads = linear_sum_assignment(weights, maximize=True)
    v, own = np.zeros(n), weights[np.arange(n), heads]
    for _ in range(n):  # longest paths, which make the bound tight
        more = np.maximum(v, (v[heads][:, None] + weights - own[:, None]).max(axis=0))
        if (more <= v).all():
            break
        v = more
    v = np.where(np.isfinite(v), v, 0.0)
    terms = np.nextafter((weights - v[None, :]).max(axis=1), np.inf)
    return rounding.sum_up(np.concatenate([terms, v])), np.asarray(heads, dtype=np.int64)


def price_bound(data: TopologyMatchings, prices: F64) -> float:
    """Lower bound on the makespan from any prices of pairs, ``(n, n)``; negative ones count as 0."""
    prices = np.where(np.isfinite(prices) & (prices > 0) & (data.demand > 0), prices, 0.0)
    if not prices.any():
        return -math.inf
    lengths = np.unique(data.demand[data.demand > 0])
    groups = np.array_split(lengths, min(len(lengths), MOST_LENGTHS))
    theta = 0.0
    for group in groups:
        # within a group, W at its longest length over its shortest
        weights = np.asarray(rounding.up(prices * np.minimum(data.demand, group[-1])))
        worth, _ = matching_weight(np.where(prices > 0, weights, 0.0))
        theta = max(theta, rounding.quotient_up(worth, float(rounding.down(group[0] + data.delay))))
    total = rounding.dot_down(prices, data.demand)
    value = rounding.quotient_down(rounding.quotient_down(total, theta), float(data.switches))
    return value if data.first else float(rounding.sum_down([value, -data.delay]))


# known schedules ------------------------------------------------------------------------------------------------------


def first_fit(demand: F64) -> list[list[tuple[int, int]]]:
    """Matchings of all pairs with demand, filled by first fit in decreasing order of demand."""
    out: list[set[int]] = []
    into: list[set[int]] = []
    result: list[list[tuple[int, int]]] = []
    order = sorted(np.argwhere(demand > 0).tolist(), key=lambda pair: -demand[pair[0], pair[1]])
    for i, j in order:
        place = next((k for k in range(len(result)) if i not in out[k] and j not in into[k]), len(result))
        if place == len(result):
            result.append([])
            out.append(set())
            into.append(set())
        result[place].append((i, j))
        out[place].add(i)
        into[place].add(j)
    return result


def shifts(demand: F64) -> list[list[tuple[int, int]]]:
    """The shifts i -> i + r that have any demand."""
    n = len(demand)
    every = ([(i, (i + r) % n) for i in range(n) if demand[i, (i + r) % n] > 0] for r in range(1, n))
    return [pairs for pairs in every if pairs]


def fewest_matchings(demand: F64) -> list[list[tuple[int, int]]]:
    """As many matchings as a node has partners, each pair with demand in one of them."""
    from scipy.optimize import linear_sum_assignment

    left, n = demand.copy(), len(demand)
    result = []
    bonus = float(demand.max()) * (n + 1)
    while left.any():
        out, into = (left > 0).sum(axis=1), (left > 0).sum(axis=0)
        most = max(out.max(), into.max())
        urgent = (out == most)[:, None].astype(float) + (into == most)[None, :]
        rows, heads = linear_sum_assignment(np.where(left > 0, left + bonus * urgent, 0.0), maximize=True)
        used = left[rows, heads] > 0
        left[rows[used], heads[used]] = 0.0
        result.append(list(zip(rows[used].tolist(), heads[used].tolist(), strict=True)))
    return result


def known_makespan(demand: F64, switches: int, delay: float) -> Fraction:
    """Makespan of the best known schedule, the first matchings charged."""
    wait, times = largest(delay), []
    for listed in (first_fit(demand), shifts(demand), fewest_matchings(demand)):
        lengths = sorted((max(largest(float(demand[pair])) for pair in pairs) for pairs in listed), reverse=True)
        loads = [Fraction(0)] * switches
        for length in lengths:
            loads[loads.index(min(loads))] += length + wait
        times += [max(loads), sum(lengths, Fraction(0)) / switches + wait * len(lengths)]
    return min(times)


def most_useful(demand: F64, switches: int, delay: float) -> tuple[int, int]:
    """Configurations that some optimum does not exceed, on a switch and on all; the latter 0 if not known."""
    n = len(demand)
    few = min(int((demand > 0).sum()), (n - 1) ** 2 + 1)
    wait = least(delay)
    if wait == 0:
        return few, 0
    known, rho = known_makespan(demand, switches, delay), largest_line(demand)
    others = (switches - 1) * (known - wait)
    on_one = min(few, math.floor((known - max(rho - others, Fraction(0))) / wait))
    return max(on_one, 1), math.floor((switches * known - rho) / wait)


def derived(data: TopologyMatchings) -> list[Fraction]:
    """The demands."""
    return rounding.decimals(data.demand)


def refute(data: TopologyMatchings) -> Bound | None:
    """Bound that excludes every schedule: too few matchings for the partners of a node."""
    return next((bound for bound in data.bounds() if bound.value == np.inf), None)


def certify(data: TopologyMatchings, duals: Mapping[str, F64]) -> Bound | None:
    """Bound from the duals of ``served`` as prices of the pairs."""
    prices = np.asarray(duals.get("served", ()), dtype=float)
    if prices.shape != data.demand.shape:
        return None
    value = max(price_bound(data, sign * prices) for sign in (1.0, -1.0))
    return Bound("prices", value, "no matching serves more than its time is worth, at the duals of served")

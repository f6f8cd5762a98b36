r"""All assignments of pairs to the matchings of a schedule that may be shorter than the best known one.

For given numbers m_h of configurations of the switches, every pair gets a set of configurations in which it has a
circuit. A line (row or column) with p partners has m - p configurations to spare, in which it is idle or repeats a
partner. Some optimum has the fewest circuits: none of the configurations that serve a pair together is as long as its
demand.

A partial assignment bounds the lengths t_c of configurations: a demand that c serves alone from below, one that c and
others serve from above; those that serve a pair add up to its demand, and those of a switch to at most its share of the
target. It is excluded if no lengths satisfy this, or if the remaining partners of a line do not fit: in descending
order, the lengths of the configurations that it has left are at least these demands without the q largest, where q is
the number of configurations to spare.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from opticoll.compiled import compiled
from opticoll.compiled_arrays import copy_into, sum_of
from opticoll.formulations import rounding
from opticoll.solvers.methods.topology.matching_schedules import MatchingSchedule, fitted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opticoll.formulations.topology.matchings import TopologyMatchings
    from opticoll.instances.topology import F64, I64

#: States of an enumeration.
DONE, PAUSED, FOUND = 0, 1, 2
#: Partial assignments between two checks of the clock; rounds in which bounds on lengths are tightened.
NODES, ROUNDS = 5_000, 6
#: Most configurations, and most sets of configurations for a pair.
MOST_CONFIGURATIONS, MOST_SETS = 60, 2_000
#: Relative round-off of sums of lengths.
ROUND_OFF = 1e-12


@compiled()
def lengths_exist(low: F64, high: F64, switch: I64, room: F64, taken: I64, demand: F64) -> bool:
    """Tighten bounds on the lengths of configurations, ``(m,)``; False if there are no lengths.

    ``taken`` are the configurations of every pair as bits, 0 if it has none yet; ``room`` the length of every switch.
    """
    m, share = low.size, np.zeros(room.size)
    for _ in range(ROUNDS):
        share[:] = 0.0
        for c in range(m):
            share[switch[c]] += low[c]
        for c in range(m):
            high[c] = min(high[c], room[switch[c]] - share[switch[c]] + low[c])
            if low[c] > high[c] + ROUND_OFF * room[switch[c]]:
                return False
        changed = False
        for p in range(taken.size):
            together = taken[p]
            if together & (together - 1) == 0:
                continue
            most, spread = 0.0, False
            least, own = 0.0, -1
            for c in range(m):
                if together >> c & 1:
                    most += high[c]
                    least += low[c]
                    spread |= own >= 0 and switch[c] != own
                    own = switch[c]
            if most < demand[p] * (1.0 - ROUND_OFF):
                return False
            if not spread and share[own] - least + demand[p] > room[own] * (1.0 + ROUND_OFF):
                return False
            for c in range(m):
                if together >> c & 1:
                    need = demand[p] - (most - high[c])
                    if need > low[c] + 1e-9 * demand[p]:
                        low[c] = need * (1.0 - ROUND_OFF)
                        changed = True
        if not changed:
            break
    return True


@compiled()
def partners_fit(
    ranked: I64, own: int, spare: int, taken: I64, demand: F64, low: F64, order: I64, total: float
) -> bool:
    """Whether the remaining partners of a line may fit into the configurations that it has left.

    ``ranked`` are its pairs by decreasing demand, -1 after the last; ``own`` the configurations that it has, as bits;
    ``order`` all configurations by decreasing lower bounds ``low``; ``total`` the length of all together.
    """
    used = 0.0
    for c in range(low.size):
        used += low[c]
    place, skipped = 0, 0
    for p in ranked:
        if p < 0:
            break
        if taken[p]:
            continue
        if skipped < spare:
            skipped += 1
            continue
        while own >> order[place] & 1:
            place += 1
        used += max(demand[p] - low[order[place]], 0.0)
        place += 1
    if used > total * (1.0 + ROUND_OFF):
        return False
    used = 0.0
    for c in range(low.size):
        if own >> c & 1:
            used += low[c]
    for p in ranked:
        if p >= 0 and not taken[p]:
            used += demand[p]
    return used <= total * (1.0 + ROUND_OFF)


@compiled()
def sort_descending(order: I64, values: F64) -> None:
    """Sort ``order`` by decreasing ``values``; fast if it is almost sorted."""
    for k in range(1, order.size):
        c, j = order[k], k - 1
        while j >= 0 and values[order[j]] < values[c]:
            order[j + 1] = order[j]
            j -= 1
        order[j + 1] = c


@compiled()
def fits(
    together: int, p: int, demand: F64, low: F64, high: F64, switch: I64, room: F64, share: F64, used: I64, twin: I64
) -> bool:
    """Whether a pair may have these configurations; of unused ones that are alike, only the first ones."""
    most, least, own, spread = 0.0, 0.0, -1, False
    several = together & (together - 1) != 0
    for c in range(low.size):
        if together >> c & 1:
            if several and low[c] >= demand[p]:
                return False
            most += high[c]
            least += low[c]
            spread |= own >= 0 and switch[c] != own
            own = switch[c]
            before = twin[c]
            if used[c] == 0 and before >= 0 and used[before] == 0 and not together >> before & 1:
                return False
    if most < demand[p] * (1.0 - ROUND_OFF):
        return False
    return spread or share[own] - least + max(demand[p], least) <= room[own] * (1.0 + ROUND_OFF)


@compiled()
def enumerate_assignments(  # noqa: C901 - compiled
    ends: I64,
    demand: F64,
    lines: I64,
    sets: I64,
    size: I64,
    switch: I64,
    twin: I64,
    room: F64,
    nodes: int,
    depth: I64,
    pair: I64,
    option: I64,
    lows: F64,
    highs: F64,
    taken: I64,
    own: I64,
    spare: I64,
    used: I64,
    tally: I64,
) -> int:
    """Continue to enumerate assignments, at most ``nodes`` of them partial ones.

    Parameters
    ----------
    ends, demand, lines
        Both lines of every pair, ``(P, 2)``; its demand, ``(P,)``; pairs of every line by decreasing demand, -1 after
        the last, ``(lines, most)``.
    sets, size
        Sets of configurations as bits, and their sizes, ascending.
    switch, twin, room
        Switch of every configuration, ``(m,)``; the one before it that is alike as long as both are unused, or -1;
        length of every switch.
    depth, pair, option, lows, highs, taken, own, spare, used, tally
        The state: number of assigned pairs and whether that is a new node, ``(2,)``; pairs in order, and their sets,
        ``(P,)``; bounds on lengths before each, ``(P + 1, m)``; sets of pairs as bits, ``(P,)``; configurations that
        lines have and have to spare; pairs of every configuration; nodes, and complete assignments.
    """
    pairs, m = demand.size, switch.size
    share, order, total = np.zeros(room.size), np.arange(m), sum_of(room)
    visited = 0
    while True:
        d = depth[0]
        low, high = lows[d], highs[d]
        if depth[1]:
            if visited >= nodes:
                return PAUSED
            visited += 1
            tally[0] += 1
            depth[1] = 0
            good = lengths_exist(low, high, switch, room, taken, demand)
            if good:
                sort_descending(order, low)
                for line in range(lines.shape[0]):
                    if not partners_fit(lines[line], own[line], spare[line], taken, demand, low, order, total):
                        good = False
                        break
            if good and d == pairs:
                tally[1] += 1
                return FOUND
            if good:
                share[:] = 0.0
                for c in range(m):
                    share[switch[c]] += low[c]
                fewest, best = sets.size + 1, -1
                for p in range(pairs):
                    if taken[p]:
                        continue
                    a, b = ends[p]
                    most, count = 1 + min(spare[a], spare[b]), 0
                    for o in range(sets.size):
                        if size[o] > most:
                            break
                        if sets[o] & (own[a] | own[b]) == 0 and fits(
                            sets[o], p, demand, low, high, switch, room, share, used, twin
                        ):
                            count += 1
                            if count >= fewest:
                                break
                    if count < fewest:
                        fewest, best = count, p
                        if count == 0:
                            break
                good = fewest > 0
                pair[d], option[d] = best, -1
            if not good:
                option[d] = sets.size  # no set is left
        if d == pairs or option[d] >= sets.size:
            if d == 0:
                return DONE
            depth[0] = d = d - 1
            p = pair[d]
            o = option[d]
            for side in range(2):
                own[ends[p, side]] ^= sets[o]
                spare[ends[p, side]] += size[o] - 1
            for c in range(m):
                used[c] -= sets[o] >> c & 1
            taken[p] = 0
            low, high = lows[d], highs[d]
        p = pair[d]
        a, b = ends[p]
        most = 1 + min(spare[a], spare[b])
        share[:] = 0.0
        for c in range(m):
            share[switch[c]] += low[c]
        o = option[d] + 1
        while o < sets.size:
            if size[o] > most:
                o = sets.size
                break
            if sets[o] & (own[a] | own[b]) == 0 and fits(
                sets[o], p, demand, low, high, switch, room, share, used, twin
            ):
                break
            o += 1
        option[d] = o
        if o >= sets.size:
            continue
        taken[p] = sets[o]
        for side in range(2):
            own[ends[p, side]] |= sets[o]
            spare[ends[p, side]] -= size[o] - 1
        copy_into(lows[d + 1], low)
        copy_into(highs[d + 1], high)
        for c in range(m):
            if sets[o] >> c & 1:
                used[c] += 1
                if size[o] == 1:
                    lows[d + 1, c] = max(low[c], demand[p])
                else:
                    highs[d + 1, c] = min(high[c], demand[p])
        depth[0], depth[1] = d + 1, 1


def shares(total: int, parts: int, most: int) -> Iterator[list[int]]:
    """Numbers of configurations of the switches that use any, in descending order."""
    if total == 0:
        yield []
    elif parts > 0:
        for first in range(min(total, most), 0, -1):
            for rest in shares(total - first, parts - 1, first):
                yield [first, *rest]


class MatchingEnumeration:
    """Enumeration of all schedules that may be shorter than the best one, of makespan ``value``.

    ``least`` is a lower bound on the makespan of every schedule once :meth:`run` has ended; ``tally`` counts partial
    assignments and complete ones.
    """

    def __init__(self, data: TopologyMatchings, value: float, tol: float) -> None:
        self.data, self.value, self.tol = data, value, tol
        self.demand = data.demand[tuple(data.pairs.T)]
        self.ends = data.pairs + np.array([0, data.n])
        self.partners = np.bincount(self.ends.ravel(), minlength=2 * data.n)
        self.least = np.inf
        self.tally = np.zeros(2, dtype=np.int64)

    @property
    def target(self) -> float:
        """Makespan from which a schedule is not needed."""
        return self.value * (1 - 0.5 * self.tol)

    def room(self, numbers: list[int]) -> F64:
        """Length that the configurations of every switch may have together."""
        data = self.data
        charged = np.array(numbers) - (0 if data.first else 1)
        return np.maximum(self.target - data.delay * charged, 0.0)

    def run(self, better: Callable[[MatchingSchedule], float], tick: Callable[[], object], most: int) -> bool:
        """Enumerate; False if there are too many configurations, or more than ``most`` partial assignments.

        ``better`` is called with every schedule below the target, and returns the best makespan then.
        """
        data, rho = self.data, float(max(self.data.demand.sum(axis=0).max(), self.data.demand.sum(axis=1).max()))
        m = int(self.partners.max())
        while m <= data.switches * data.configurations:
            used = min(data.switches, m)
            if rho + data.delay * (m - (0 if data.first else used)) >= self.target * used * (1 + ROUND_OFF):
                if m >= data.switches:
                    break
                m += 1
                continue
            sets = self.sets(m)
            if sets is None:
                return False
            for numbers in shares(m, data.switches, data.configurations):
                if not self.exclude(numbers, sets, better, tick, most):
                    return False
            m += 1
        self.least = min(self.least, float(rounding.down(self.target * (1 - ROUND_OFF * (m + data.n)), 4)))
        return True

    def sets(self, m: int) -> I64 | None:
        """Sets of configurations that a pair may have, as bits, by size; None if there are too many."""
        most = 1 + min(m - int(self.partners[self.ends].max(axis=1).min()), m - 1)
        if m > MOST_CONFIGURATIONS:
            return None
        result: list[int] = []
        for size in range(1, most + 1):
            for chosen in combinations(range(m), size):
                result.append(sum(1 << c for c in chosen))
                if len(result) > MOST_SETS:
                    return None
        return np.array(result, dtype=np.int64)

    def exclude(
        self,
        numbers: list[int],
        sets: I64,
        better: Callable[[MatchingSchedule], float],
        tick: Callable[[], object],
        most: int,
    ) -> bool:
        """Enumerate with these numbers of configurations of the switches; False after too many."""
        P, m, lines = self.demand.size, sum(numbers), self.partners.size
        switch = np.repeat(np.arange(len(numbers)), numbers)
        first = np.concatenate([[0], np.cumsum(numbers)[:-1]])
        twin = np.arange(m) - 1
        for h, c in enumerate(first.tolist()):
            twin[c] = first[h - 1] if h and numbers[h - 1] == numbers[h] else -1
        ranked = np.full((lines, int(self.partners.max())), -1)
        order = np.argsort(-self.demand, kind="stable")
        for line in range(lines):
            mine = order[(self.ends[order] == line).any(axis=1)]
            ranked[line, : mine.size] = mine
        size = np.array([int(one).bit_count() for one in sets.tolist()])
        depth, pair, option = np.array([0, 1]), np.zeros(P + 1, dtype=np.int64), np.zeros(P + 1, dtype=np.int64)
        lows, highs = np.zeros((P + 1, m)), np.full((P + 1, m), np.inf)
        taken, own, used = np.zeros(P, dtype=np.int64), np.zeros(lines, dtype=np.int64), np.zeros(m, dtype=np.int64)
        spare = m - self.partners
        while True:
            tick()
            if self.tally[0] > most:
                return False
            state = enumerate_assignments(
                self.ends,
                self.demand,
                ranked,
                sets,
                size,
                switch,
                twin,
                self.room(numbers),
                min(NODES, most),
                depth,
                pair,
                option,
                lows,
                highs,
                taken,
                own,
                spare,
                used,
                self.tally,
            )
            if state == DONE:
                return True
            if state == FOUND:
                bound = self.bound(taken, switch, numbers)
                schedule = self.schedule(taken, switch) if bound < self.target else None
                if schedule is not None and schedule.makespan(self.data) < self.value:
                    self.value = better(schedule)
                self.least = min(self.least, bound)

    def bound(self, taken: I64, switch: I64, numbers: list[int]) -> float:
        """Lower bound on the makespan of an assignment, from the duals of a linear program over the lengths."""
        from scipy.optimize import linprog

        data, P, m, s = self.data, self.demand.size, switch.size, len(numbers)
        serving = (taken[:, None] >> np.arange(m) & 1).astype(float)
        ends = np.eye(s)[switch]
        waiting = data.delay * (np.array(numbers) - (0 if data.first else 1))
        rows = np.block([[-serving, np.zeros((P, 1))], [ends.T, -np.ones((s, 1))]])
        solved = linprog(np.append(np.zeros(m), 1.0), A_ub=rows, b_ub=-np.append(self.demand, waiting), method="highs")
        if solved.x is None:
            return -np.inf
        prices = np.maximum(-solved.ineqlin.marginals, 0.0)
        share = prices[P:] / prices[P:].sum()
        asked = prices[:P] @ serving
        paid = share[switch]
        worth = prices[:P] * min(float((paid[asked > 0] / asked[asked > 0]).min(initial=np.inf)), 1.0)
        total = float(worth @ self.demand + share @ waiting)
        return float(rounding.down(total, P + s + 8))

    def schedule(self, taken: I64, switch: I64) -> MatchingSchedule | None:
        """The schedule of an assignment."""
        heads = np.full((switch.size, self.data.n), -1)
        for (i, j), together in zip(self.data.pairs.tolist(), taken.tolist(), strict=True):
            for c in range(switch.size):
                if together >> c & 1:
                    heads[c, i] = j
        return fitted(self.data, heads, switch)

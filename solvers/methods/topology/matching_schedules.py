"""Schedules of matchings over parallel switches: assignment, equal loads, and best lengths for given matchings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opticoll.formulations.topology.matchings import TopologyMatchings
    from opticoll.instances.topology import F64, I64

#: Relative length below which a matching is not worth a linear program's round-off.
NEGLIGIBLE = 1e-11
#: Most entries of arrays that are filled up to the stated model's number of configurations.
MOST_FILLED = 1_000_000


@dataclass(frozen=True, eq=False)
class MatchingSchedule:
    """Matchings, their lengths and switches.

    Parameters
    ----------
    heads
        Whom every node sends to, -1 for nobody, ``(m, n)``.
    lengths
        How long every matching is held [shards / link bandwidth], ``(m,)``.
    switch
        Switch of every matching, ``(m,)``.
    """

    heads: I64
    lengths: F64
    switch: I64

    def loads(self, data: TopologyMatchings) -> F64:
        """Time of every switch, the first matchings charged, ``(s,)``."""
        return np.asarray(np.bincount(self.switch, self.lengths + data.delay, minlength=data.switches), dtype=float)

    def makespan(self, data: TopologyMatchings) -> float:
        """Time of the switch that ends last, as the model counts it."""
        return float(self.loads(data).max()) - (0.0 if data.first else data.delay)


def heads_of(matchings: list[list[tuple[int, int]]], n: int) -> I64:
    """Whom every node sends to in matchings given as pairs, ``(m, n)``."""
    result = np.full((len(matchings), n), -1, dtype=np.int64)
    for row, pairs in zip(result, matchings, strict=True):
        row[[i for i, _ in pairs]] = [j for _, j in pairs]
    return result


def wanted(data: TopologyMatchings, heads: I64) -> I64:
    """The same matchings without pairs that have no demand."""
    n = data.n
    inside = (heads >= 0) & (data.demand[np.arange(n)[None, :], np.maximum(heads, 0)] > 0)
    return np.where(inside, heads, -1)


def extended(data: TopologyMatchings, heads: I64) -> I64:
    """Matchings to which pairs with demand are added at idle ports, the largest demand first."""
    order = data.pairs[np.argsort(-data.demand[tuple(data.pairs.T)], kind="stable")].tolist()
    result = heads.copy()
    for row in result:
        taken = set(row[row >= 0].tolist())
        for i, j in order:
            if row[i] < 0 and j not in taken:
                row[i] = j
                taken.add(j)
    return result


def assigned(data: TopologyMatchings, heads: I64, lengths: F64) -> MatchingSchedule:
    """Every matching, the longest first, on the switch that ends first."""
    loads, switch = np.zeros(data.switches), np.zeros(len(heads), dtype=np.int64)
    for m in np.argsort(-lengths, kind="stable").tolist():
        switch[m] = int(loads.argmin())
        loads[switch[m]] += lengths[m] + data.delay
    return MatchingSchedule(heads, lengths, switch)


def equalized(data: TopologyMatchings, schedule: MatchingSchedule) -> MatchingSchedule:
    """Parts of the longest matching of the last switch are moved to the first one, as long as that pays the delay."""
    heads, lengths, switch = schedule.heads.tolist(), schedule.lengths.tolist(), schedule.switch.tolist()
    for _ in range(4 * data.switches + len(lengths)):
        loads = np.bincount(switch, np.array(lengths) + data.delay, minlength=data.switches)
        last, early = int(loads.argmax()), int(loads.argmin())
        spare = (loads[last] - loads[early] - data.delay) / 2
        if spare <= NEGLIGIBLE * loads[last]:
            break
        longest = max((m for m in range(len(lengths)) if switch[m] == last), key=lambda m: lengths[m])
        if lengths[longest] <= spare:
            switch[longest] = early
            continue
        lengths[longest] -= spare
        heads.append(heads[longest])
        lengths.append(spare)
        switch.append(early)
    return MatchingSchedule(np.array(heads), np.array(lengths), np.array(switch))


def fitted(data: TopologyMatchings, heads: I64, switch: I64) -> MatchingSchedule | None:
    """Lengths of least makespan for given matchings on given switches; those of length 0 are left out.

    None if they do not serve every demand.
    """
    import scipy.sparse as sp
    from scipy.optimize import linprog

    n, m = data.n, len(heads)
    number = np.full(n * n, -1)
    number[data.pairs @ np.array([n, 1])] = np.arange(len(data.pairs))
    which, tail = np.nonzero(heads >= 0)
    pair = number[tail * n + heads[which, tail]]
    which, pair = which[pair >= 0], pair[pair >= 0]
    if np.unique(pair).size < len(data.pairs):
        return None
    P, s = len(data.pairs), data.switches
    serve = sp.csr_array((-np.ones(pair.size), (pair, which)), shape=(P, m + 1))
    row, column = np.append(switch, np.arange(s)), np.append(np.arange(m), np.full(s, m))
    ends = sp.csr_array((np.append(np.ones(m), -np.ones(s)), (row, column)), shape=(s, m + 1))
    counts = np.bincount(switch, minlength=s)
    right = np.append(-data.demand[tuple(data.pairs.T)], -data.delay * counts)
    cost = np.append(np.full(m, 1e-9), 1.0)  # of schedules of one makespan, one that idles
    solved = linprog(cost, A_ub=sp.vstack([serve, ends]), b_ub=right, method="highs")
    if solved.x is None:
        return None
    lengths = np.maximum(solved.x[:m], 0.0)
    carried = np.bincount(pair, lengths[which], minlength=P)
    if (carried <= 0).any():
        return None
    lengths *= max(float((data.demand[tuple(data.pairs.T)] / carried).max()), 1.0)
    kept = lengths > NEGLIGIBLE * float(data.demand.max())
    return MatchingSchedule(heads[kept], lengths[kept], switch[kept])


def polished(data: TopologyMatchings, schedule: MatchingSchedule) -> MatchingSchedule:
    """The best lengths of its matchings, repeated while matchings drop out."""
    best = schedule
    while True:
        better = fitted(data, best.heads, best.switch)
        if better is None or better.makespan(data) >= best.makespan(data) * (1 - NEGLIGIBLE):
            return best
        best = better


def schedule_of(data: TopologyMatchings, values: Mapping[str, F64]) -> MatchingSchedule:
    """The schedule of a solution of the model; configurations that are not held are left out."""
    circuits, lengths = np.rint(np.asarray(values["x"])) > 0, np.asarray(values["t"], dtype=float)
    switch, place = np.nonzero(circuits.any(axis=(2, 3)) & (lengths > 0))
    sending = circuits[switch, place]
    heads = np.where(sending.any(axis=2), sending.argmax(axis=2), -1)
    return MatchingSchedule(heads, lengths[switch, place], switch)


def values_of(data: TopologyMatchings, schedule: MatchingSchedule) -> dict[str, F64]:
    """Arrays of the model, with its number of configurations if they are not too large."""
    n, s = data.n, data.switches
    K = int(np.bincount(schedule.switch, minlength=s).max())
    if data.configurations >= K and s * data.configurations * n * n <= MOST_FILLED:
        K = data.configurations
    x, t = np.zeros((s, K, n, n)), np.zeros((s, K))
    place = np.zeros(s, dtype=np.int64)
    for heads, length, h in zip(schedule.heads, schedule.lengths.tolist(), schedule.switch.tolist(), strict=True):
        sending = np.flatnonzero(heads >= 0)
        x[h, place[h], sending, heads[sending]] = 1.0
        t[h, place[h]] = length
        place[h] += 1
    return data.filled(x, t)

"""Compiled inner loops of the search over circuits: options of servers, bounds of partial wirings, enumeration."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import comb
from typing import TYPE_CHECKING

import numpy as np

from opticoll.compiled import compiled
from opticoll.compiled_arrays import copy_into, sum_of
from opticoll.solvers.methods.topology.minimum_load import least_load, with_distances

if TYPE_CHECKING:
    from collections.abc import Callable

    from opticoll.instances.topology import F64, I64

#: States at the end of a call: enumeration complete; node limit of the call reached; no room for more survivors.
DONE, PAUSED, FULL = 0, 1, 2
#: Options of a server above which wirings are not enumerated.
MOST_OPTIONS = 50_000
#: Limits on the renamings, and on the prefixes of options that are compared.
MOST_RENAMINGS, MOST_PREFIXES = 5000, 200_000


def renamings(weights: list[F64], first: int = 0) -> I64:
    """Permutations under which all these matrices are invariant, the identity first, at most :data:`MOST_RENAMINGS`.

    Only permutations that map the ``first`` servers to each other are returned.
    """
    n = len(weights[0])
    sums = np.stack([np.sort(w, axis=k) if k == 1 else np.sort(w, axis=k).T for w in weights for k in (0, 1)], axis=2)
    like = np.array([[np.array_equal(sums[u], sums[v]) for v in range(n)] for u in range(n)])
    images: list[list[int]] = []

    def extend(image: list[int]) -> None:
        u = len(image)
        if len(images) >= MOST_RENAMINGS:
            return
        if u == n:
            images.append(image.copy())
            return
        for v in range(first) if u < first else range(first, n):
            if v in image or not like[u, v]:
                continue
            longer = [*image, v]
            if all(
                np.array_equal(w[u, : u + 1], w[v, longer]) and np.array_equal(w[: u + 1, u], w[longer, v])
                for w in weights
            ):
                extend(longer)

    extend([])
    return np.array(images, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Options:
    """Possible circuits out of one server: numbers to every server, the servers reached as bits, and totals."""

    counts: I64
    masks: I64
    size: I64

    @classmethod
    def of(cls, n: int, degree: int, most: int, *, deficits: bool) -> Options | None:
        """All options; None if there are too many."""
        least = 0 if deficits else degree
        if sum(comb(n + k - 1, k) for k in range(least, degree + 1)) > MOST_OPTIONS:
            return None
        rows = []
        for k in range(degree, least - 1, -1):
            for chosen in combinations_with_replacement(range(n), k):
                count = np.bincount(np.array(chosen, dtype=np.int64), minlength=n)
                if count.max(initial=0) <= most:
                    rows.append(count)
        counts = np.array(rows, dtype=np.int64)
        return cls(counts, ((counts > 0) << np.arange(n)).sum(axis=1), counts.sum(axis=1))

    @property
    def depth(self) -> int:
        """Number of servers of a prefix."""
        many, n = self.counts.shape
        depth = 0
        while depth < n - 1 and many ** (depth + 1) <= MOST_PREFIXES:
            depth += 1
        return depth

    def prefixes(self, renaming: I64, tick: Callable[[], object]) -> I64:
        """Options of the first servers whose images under the renamings are no smaller, ``(P, depth)``.

        The renamings map the first servers to each other. ``tick`` is called before each of them.
        """
        many, depth = len(self.counts), self.depth
        if len(renaming) < 2 or depth == 0:
            return np.zeros((1, 0), dtype=np.int64)
        digits = (int(self.counts.max(initial=0)) + 1) ** np.arange(self.counts.shape[1])
        key = self.counts @ digits
        by_key = np.argsort(key)
        grid = np.indices((many,) * depth).reshape(depth, -1).T
        grid = grid[(self.counts[grid, np.arange(depth)] == 0).all(axis=1)]
        power = many ** np.arange(depth - 1, -1, -1)
        code = grid @ power
        for image in renaming[1:]:
            tick()
            option = by_key[np.searchsorted(key, self.counts @ digits[image], sorter=by_key)]
            keep = code <= option[grid] @ power[image[:depth]]
            grid, code = grid[keep], code[keep]
        return np.asarray(grid, dtype=np.int64)


@compiled()
def beyond(reach: I64, may: I64, spare: I64, demand: F64, ranked: I64, degree: int, most: float, least: F64) -> bool:
    """Raise ``least`` to lower bounds on the bytes that go beyond h hops in any completion of a partial wiring.

    Layers from every source contain the servers that decided circuits reach, and as many others as the previous layer
    has undecided ports. These others are assumed to be, of the servers that some completion reaches, those with the
    most bytes. Reversed, the same holds from every target.

    Parameters
    ----------
    reach, may
        Servers to which each server has, and may get, a circuit, as bits, ``(n,)``.
    spare
        Undecided ports of each server, ``(n,)``.
    demand, ranked
        Bytes, ``(n, n)``; targets of every server by decreasing bytes, ``(n, n)``.
    most
        Ends once there are this many byte-hops.
    least
        Entry h becomes the larger of itself and the bytes that go further than h hops, ``(n,)``.

    Returns
    -------
    Whether all demand may have paths with fewer than ``most`` byte-hops.
    """
    n = demand.shape[0]
    excess, total = np.zeros(n), 0.0
    for s in range(n):
        named = layer = near = fresh = 1 << s
        free = wild = 0
        for h in range(n):
            left, outside = 0.0, 0
            for k in range(n):
                t = ranked[s, k]
                if not named >> t & 1:
                    if near >> t & 1 and outside < free:
                        outside += 1
                    else:
                        left += demand[s, t]
            excess[h] += left
            total += left
            if total >= most:
                return False
            if left == 0.0:
                break
            if h == n - 1:
                return False
            following, grown = 0, wild * degree
            for v in range(n):
                if layer >> v & 1:
                    following |= reach[v]
                    grown += spare[v]
            others = 0
            for v in range(n):
                if fresh >> v & 1:
                    others |= may[v]
            layer, wild = following & ~named, min(grown, n)
            named |= following
            fresh = others & ~near
            near |= others
            free = min(free + wild, n)
    for h in range(n):
        least[h] = max(least[h], excess[h])
    return True


@compiled()
def with_free_ports(known: I64, decided: int, degree: int, result: I64) -> None:
    """A network whose minimum maximum load no completion of a partial wiring can undercut.

    All free ports lead to one additional server: as many circuits there as a server has undecided ones, and as many
    back as it has free ports into it. In a completion every new circuit is one there and one back.

    Parameters
    ----------
    known, decided, degree
        Circuits out of the first ``decided`` servers, ``(n, n)``; ports of a server.
    result
        Filled with the numbers of circuits, ``(n + 1, n + 1)``.
    """
    n = known.shape[0]
    result[:] = 0
    for t in range(n):
        result[n, t] = degree
    for u in range(decided):
        for t in range(n):
            result[u, t] = known[u, t]
            result[n, t] -= known[u, t]
    for u in range(decided, n):
        result[u, n] = degree


@compiled()
def enumerate_wirings(  # noqa: C901 - compiled
    options: I64,
    masks: I64,
    size: I64,
    first: int,
    index: I64,
    demand: F64,
    ranked: I64,
    turned: F64,
    ranked_back: I64,
    constant: float,
    degree: int,
    most: int,
    deficits: bool,
    target: float,
    tax: bool,
    nodes: int,
    wirings: I64,
    values: F64,
    tally: I64,
) -> int:
    """Enumerate wirings server by server, pruned by bounds.

    Parameters
    ----------
    options, masks, size
        Circuits out of a server: numbers to each, ``(O, n)``; the servers reached as bits, and totals, ``(O,)``.
    first
        Servers with smaller numbers are already wired, as given by ``index``.
    index
        Option of every server, ``(n,)``; initially -1 from ``first`` on; keeps the state between two calls.
    demand, ranked, turned, ranked_back
        Bytes and targets by decreasing bytes, ``(n, n)``; the same for the transposed demand.
    constant
        Byte-hops beyond those of ``demand``, of rings; for loads also those that circuits leave idle.
    degree, most, deficits
        Ports; most circuits of a pair; whether servers may have free ports (only where no circuit can be added).
    target
        Maximum load, or byte-hops if ``tax``, from which a wiring is ruled out.
    nodes
        Most nodes of this call.
    wirings, values, tally
        Survivors as options of every server, ``(room, n)``, and their lower bounds, ``(room,)``; counters: survivors,
        nodes, complete wirings, those ruled out by lengths alone, ``(4,)``.
    """
    n = demand.shape[0]
    entering = np.zeros(n, np.int64)
    reach = np.zeros(n, np.int64)
    back, spare, spare_back = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    may, may_back, least = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n)
    count, lengths, kept = np.zeros((n, n), np.int64), np.ones((n, n)), np.ones((n, n))
    freed, excluding, trial = np.zeros((n + 1, n + 1), np.int64), np.ones((n, n + 1, n + 1)), np.ones((n + 1, n + 1))
    extended = np.zeros((n + 1, n + 1))
    copy_into(extended[:n, :n], demand)
    goal = target if tax else target * n * degree
    i = 0
    while i < n and index[i] >= 0:  # resumed: the last wired server gets its next option, those before it stay
        for t in range(n):
            entering[t] += options[index[i], t]
        reach[i] = masks[index[i]]
        i += 1
    if i > first:
        i -= 1
    visited = 0
    while i >= first and i < n:
        if index[i] >= 0:
            if visited >= nodes:
                return PAUSED
            for t in range(n):
                entering[t] -= options[index[i], t]
        index[i] += 1
        if index[i] >= masks.size:
            index[i] = -1
            i -= 1
            continue
        o = index[i]
        allowed = options[o, i] == 0 and (deficits or size[o] == degree)
        for t in range(n):
            entering[t] += options[o, t]
            if entering[t] > degree:
                allowed = False
        if not allowed:
            continue
        visited += 1
        tally[1] += 1
        reach[i] = masks[o]
        if deficits:
            where, missing, later = (1 << n) - 1, 0, (n - 1 - i) * degree
            for j in range(i + 1):
                if size[index[j]] < degree:
                    missing += degree - size[index[j]]
                    own = 1 << j
                    for t in range(n):
                        if options[index[j], t] >= most:
                            own |= 1 << t
                    where &= own
            room, must = 0, 0
            for t in range(n):
                if missing > 0 and where >> t & 1:
                    room += degree - entering[t]
                elif missing > 0:
                    must += degree - entering[t]
            if missing > room or must > later:
                continue
        unfilled, undecided = 0, ((1 << n) - 1) >> (i + 1) << (i + 1)
        for v in range(n):
            back[v] = 0
            spare[v] = degree if v > i else 0
            spare_back[v] = min(degree - entering[v], degree * (n - 1 - i))
            if spare_back[v] > 0:
                unfilled |= 1 << v
        for v in range(n):
            if v > i:
                reach[v] = 0
            for t in range(n):
                if reach[v] >> t & 1:
                    back[t] |= 1 << v
        for v in range(n):
            may[v] = unfilled if v > i else reach[v]
            may_back[v] = back[v] | (undecided if spare_back[v] > 0 else 0)
        least[:] = 0.0
        if not beyond(reach, may, spare, demand, ranked, degree, goal - constant, least):
            continue
        if i < n - 1:
            if not beyond(back, may_back, spare_back, turned, ranked_back, degree, goal - constant, least):
                continue
            if sum_of(least) + constant >= goal:
                continue
        if i < n - 1 and not tax:
            for u in range(i + 1):
                copy_into(count[u], options[index[u]])
            with_free_ports(count, i + 1, degree, freed)
            copy_into(trial, excluding[i])
            bound = least_load(freed, extended, trial, target)[0]
            if bound >= target:
                tally[3] += 1
                if bound < np.inf:  # the next partial wiring is often similar
                    with_distances(freed, trial)
                    copy_into(excluding[i], trial)
                continue
        if i < n - 1:
            i += 1
            continue
        tally[2] += 1
        bound = sum_of(least) + constant
        if not tax:
            for v in range(n):
                copy_into(count[v], options[index[v]])
            copy_into(lengths, kept)
            bound = least_load(count, demand, lengths, target)[0]
            if bound >= target:
                tally[3] += 1
                if bound < np.inf:  # the next wiring is often similar
                    with_distances(count, lengths)
                    copy_into(kept, lengths)
                continue
        copy_into(wirings[tally[0]], index)
        values[tally[0]] = bound
        tally[0] += 1
        if tally[0] == wirings.shape[0]:
            return FULL
    return DONE

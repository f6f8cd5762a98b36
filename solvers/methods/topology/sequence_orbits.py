"""Sequences of circuits u -> u g of a group: few hops by simulated annealing over the generators of the configurations.

All nodes of such a sequence are alike, so the hops from one node, the identity, give the sum of all, and a linear
program of one source the least lengths (:func:`opticoll.solvers.methods.topology.sequence_flows.orbit_lines`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING

import numpy as np

from opticoll.compiled import compiled
from opticoll.compiled_arrays import copy_into, sum_of
from opticoll.formulations.topology import sequence_bounds
from opticoll.instances.families.low_diameter import inverse, product

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from opticoll.formulations.topology.sequence import TopologySequence
    from opticoll.instances.topology import I64


#: Temperature, in hops, at the first and at the last replacement.
HOT, COLD = 1.0, 0.15
#: What a node that is not reached counts, in hops.
UNREACHED = 1 << 20
#: Chance that two generators of a configuration are replaced at a time, not one.
TWICE = 0.25
#: Random elements tried for a free place before all are tried in turn.
DRAWS = 20
#: Groups that are annealed in every round, if there are as many.
LEAST_GROUPS = 4
#: Most groups of an order that are searched, evenly spread over all.
MOST_GROUPS = 64


@dataclass(frozen=True)
class OrbitSequence:
    """Generators of every configuration in a group, ``(K, d)``, and the sum of hops from a node in time."""

    hops: int
    group: Group
    generators: I64

    @property
    def circuits(self) -> I64:
        """Circuits u -> u g of every configuration, ``(K, n, n)``."""
        n = len(self.group.table)
        counts, nodes = np.zeros((len(self.generators), n, n), dtype=np.int64), np.arange(n)
        for one, row in zip(counts, self.generators.tolist(), strict=True):
            for g in row:
                one[nodes, self.group.table[nodes, g]] += 1
        return counts


@dataclass(frozen=True)
class Group:
    """Table of products ``(n, n)`` and inverses ``(n,)`` of a group; 0 is the identity.

    ``name`` is ``m,k,r`` for the metacyclic group of :func:`~opticoll.instances.families.low_diameter.cayley`, and
    ``xor`` for that of all x -> x xor g.
    """

    name: str
    table: I64
    inverses: I64


def groups(n: int) -> list[tuple[int, int, int]]:
    """(m, k, r) of the metacyclic groups of order n, at most ``MOST_GROUPS`` of them.

    Multipliers that generate the same subgroup modulo m give isomorphic groups if they have the same order; one of each
    is kept.
    """
    results = []
    for k in (k for k in range(1, n + 1) if n % k == 0):
        m = n // k
        seen: set[frozenset[int]] = set()
        for r in range(1, max(m, 2)):
            if gcd(r, m) != 1 or pow(r, k, m) != 1 % m or (r > 1 and k == 1):
                continue
            powers = frozenset(pow(r, b, m) for b in range(k))
            if powers not in seen:
                seen.add(powers)
                results.append((m, k, r))
    step = max(1, -(-len(results) // MOST_GROUPS))
    return results[::step]


def named_group(n: int, name: str) -> Group:
    """The group of order n of this name."""
    nodes = np.arange(n)
    if name == "xor":
        return Group(name, nodes[:, None] ^ nodes[None, :], nodes)
    m, k, r = (int(part) for part in name.split(","))
    return Group(name, product(m, k, r, nodes[:, None], nodes[None, :]), inverse(m, k, r, nodes))


def some_groups(n: int) -> Iterator[Group]:
    """The metacyclic groups of order n, the most that are searched; for powers of two also that of x -> x xor g."""
    if n & (n - 1) == 0 and n > 2:
        yield named_group(n, "xor")
    for m, k, r in sorted(groups(n), key=lambda group: group[1]):
        yield named_group(n, f"{m},{k},{r}")


@compiled()
def orbit_hops(table: I64, generators: I64, step: bool) -> int:
    """Sum of the least hops from the identity over circuits u -> u g in time; generators are ``(K, d)``.

    Nodes are reached hop by hop. ``since[v]`` is the first configuration in which a walk to v may go on; a node is
    visited again when a longer walk reaches it in an earlier configuration.
    """
    n, (K, d) = table.shape[0], generators.shape
    hops, since = np.full(n, UNREACHED), np.full(n, K)
    hops[0], since[0] = 0, 0
    now, then = np.zeros(n, np.int64), np.zeros(n, np.int64)
    start, queued = np.zeros(n, np.int64), np.zeros(n, np.bool_)
    size, hop = 1, 0
    while size > 0:
        hop += 1
        for i in range(size):
            start[i] = since[now[i]]
        reached = 0
        for i in range(size):
            for k in range(start[i], K):
                later = k + 1 if step else k
                for j in range(d):
                    v = table[now[i], generators[k, j]]
                    if later < since[v] or hops[v] == UNREACHED:
                        since[v] = min(since[v], later)
                        hops[v] = min(hops[v], hop)
                        if not queued[v]:
                            queued[v] = True
                            then[reached] = v
                            reached += 1
        for i in range(reached):
            queued[then[i]] = False
        now, then, size = then, now, reached
    return sum_of(hops)


@compiled()
def _fill(rng: np.random.Generator, row: I64, kept: int, inverses: I64, directed: bool) -> bool:
    """Put other random elements in the places from ``kept`` on, with their inverses if two-way; False if none fit."""
    n, d = inverses.size, row.size
    while kept < d:
        added = 0
        first = rng.integers(1, n)
        for draw in range(DRAWS + n):
            v = rng.integers(1, n) if draw < DRAWS else 1 + (first + draw) % (n - 1)
            back = inverses[v]
            size = 1 if directed or back == v else 2
            if kept + size > d:
                continue
            taken = False
            for j in range(kept):
                taken = taken or row[j] == v
            if not taken:
                row[kept] = v
                if size == 2:
                    row[kept + 1] = back
                added = size
                break
        if added == 0:
            return False
        kept += added
    return True


@compiled()
def _drop(rng: np.random.Generator, row: I64, size: int, inverses: I64, directed: bool) -> int:
    """Remove a random one of the first ``size`` elements, with its inverse if two-way; how many remain."""
    gone = row[rng.integers(0, size)]
    back = gone if directed else inverses[gone]
    kept = 0
    for j in range(size):
        if row[j] != gone and row[j] != back:
            row[kept] = row[j]
            kept += 1
    return kept


@compiled()
def replaced(rng: np.random.Generator, row: I64, inverses: I64, directed: bool) -> bool:
    """Replace one or two random elements of a configuration, in place; False if nothing fits."""
    kept = _drop(rng, row, row.size, inverses, directed)
    if kept > 0 and rng.random() < TWICE:
        kept = _drop(rng, row, kept, inverses, directed)
    return _fill(rng, row, kept, inverses, directed)


@compiled()
def drawn(rng: np.random.Generator, configurations: int, degree: int, inverses: I64, directed: bool) -> I64:
    """Random generators of all configurations, ``(K, d)``; ``(0, d)`` if there are none."""
    generators = np.zeros((configurations, degree), np.int64)
    for k in range(configurations):
        done = False
        for _ in range(DRAWS):
            done = done or _fill(rng, generators[k], 0, inverses, directed)
        if not done:
            return generators[:0]
    return generators


@compiled()
def annealed(
    rng: np.random.Generator,
    table: I64,
    inverses: I64,
    generators: I64,
    directed: bool,
    step: bool,
    moves: int,
    least: int,
) -> tuple[int, I64]:
    """Least sum of hops, and its generators, after so many replacements, or once it is ``least``."""
    now = orbit_hops(table, generators, step)
    best, kept = now, generators.copy()
    trial = generators.copy()
    for move in range(moves):
        if best <= least:
            break
        k = rng.integers(0, len(generators))
        if replaced(rng, trial[k], inverses, directed):
            total = orbit_hops(table, trial, step)
            if total <= now or rng.random() < np.exp((now - total) / (HOT * (COLD / HOT) ** (move / moves))):
                now = total
                copy_into(generators[k], trial[k])
                if now < best:
                    best, kept = now, generators.copy()
        copy_into(trial[k], generators[k])
    return best, kept


def few_hops(
    data: TopologySequence, rng: np.random.Generator, groups: Iterable[Group], *, rounds: int, moves: int
) -> Iterator[OrbitSequence]:
    """A sequence with few hops for every group in every round; the better half of the groups is in the next round."""
    step, floor = sequence_bounds.one_by_one(data), sequence_bounds.least_hops(data)
    for _ in range(rounds):
        found: list[OrbitSequence] = []
        for group in groups:
            generators = drawn(rng, data.configurations, data.degree, group.inverses, data.directed)
            if not len(generators):
                continue
            hops, generators = annealed(rng, group.table, group.inverses, generators, data.directed, step, moves, floor)
            found.append(OrbitSequence(int(hops), group, generators))
            if hops < UNREACHED:
                yield found[-1]
        found.sort(key=lambda one: one.hops)
        groups = [one.group for one in found[: max(LEAST_GROUPS, (len(found) + 1) // 2)]]


def neighbour(rng: np.random.Generator, data: TopologySequence, one: OrbitSequence) -> OrbitSequence | None:
    """The sequence with one or two generators of a configuration replaced; None if no others fit."""
    generators = one.generators.copy()
    k = int(rng.integers(len(generators)))
    if not replaced(rng, generators[k], one.group.inverses, data.directed):
        return None
    hops = orbit_hops(one.group.table, generators, sequence_bounds.one_by_one(data))
    return OrbitSequence(int(hops), one.group, generators)

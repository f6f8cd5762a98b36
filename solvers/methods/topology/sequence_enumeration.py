"""All configurations of a small problem, and a bound on the time of a sequence of them from prices."""

from __future__ import annotations

from itertools import combinations_with_replacement, permutations
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opticoll.formulations.topology.sequence import TopologySequence
    from opticoll.instances.topology import F64, I64
    from opticoll.solvers.methods.topology.sequence_flows import CircuitLines, RoutedSequence


#: Most configurations, partial ones included, that are listed.
MOST_LISTED = 200_000
#: Most sequences whose linear program is solved.
MOST_SOLVED = 20_000
#: Most nodes whose renamings are tried to leave out configurations that are alike.
MOST_RENAMED = 7
#: Relative round-off of a sum of at most a few thousand positive terms.
ROUND_OFF = 1e-12


def all_configurations(data: TopologySequence, most: int = MOST_LISTED) -> I64 | None:
    """Circuits of every configuration to which none can be added, ``(., n, n)``.

    None if more than ``most`` partial configurations have to be visited.
    """
    n, degree, visited = data.n, data.degree, 0
    result: list[I64] = []

    def rows(u: int, counts: I64) -> Iterator[I64]:
        """The configurations with one more node wired, by node."""
        free = degree - counts[u].sum()
        heads = [v for v in range(n) if v != u and (data.directed or v > u)]
        room = {v: degree - int(counts[:, v].sum()) for v in heads}
        for size in range(int(free) + 1):
            for chosen in combinations_with_replacement(heads, size):
                copies = {v: chosen.count(v) for v in chosen}
                if all(number <= min(room[v], data.parallel) for v, number in copies.items()):
                    wired = counts.copy()
                    for v, number in copies.items():
                        wired[u, v] = number
                        if not data.directed:
                            wired[v, u] = number
                    yield wired

    partial: list[tuple[int, I64]] = [(0, np.zeros((n, n), dtype=np.int64))]
    while partial:
        visited += 1
        if visited > most:
            return None
        u, counts = partial.pop()
        if u < n:
            partial += [(u + 1, wired) for wired in rows(u, counts)]
            continue
        out, into = counts.sum(axis=1) < degree, counts.sum(axis=0) < degree
        if not (out[:, None] & into[None, :] & data.off & (counts < data.parallel)).any():
            result.append(counts)
    return np.array(result)


def distinct(configurations: I64) -> I64:
    """Numbers of one configuration of every class that renamings of nodes turn into each other; all for many nodes."""
    n = configurations.shape[1]
    if n > MOST_RENAMED:
        return np.arange(len(configurations))
    orders, seen, kept = np.array(list(permutations(range(n)))), set[bytes](), []
    for number, counts in enumerate(configurations):
        if counts.astype(np.int8).tobytes() not in seen:
            kept.append(number)
            images = counts.astype(np.int8)[orders[:, :, None], orders[:, None, :]]
            seen |= {image.tobytes() for image in images}
    return np.array(kept)


def dual_time(data: TopologySequence, counts: I64, lines: CircuitLines, routed: RoutedSequence) -> float:
    r"""Lower bound on the sum of the lengths for these circuits, from the prices y >= 0 of their capacities.

    With y scaled so that no configuration's circuits cost more than 1 together, sum_k t_k is at least what the flows
    pay, which is at least demand times the cheapest walk in time.
    """
    K, n = data.configurations, data.n
    price = np.full((K, n, n), np.inf)
    price[lines.phase, lines.tail, lines.head] = routed.prices[lines.group]
    cost = max(float((counts[k] * np.where(counts[k] > 0, price[k], 0.0)).sum()) for k in range(K))
    if not cost > 0:
        return 0.0
    far: F64 = np.full((n, n), np.inf)
    np.fill_diagonal(far, 0.0)
    for k in range(K):
        within = price[k].copy()
        np.fill_diagonal(within, 0.0)
        if data.relays == "pass":
            for u in range(n):
                np.minimum(within, within[:, u : u + 1] + within[u : u + 1, :], out=within)
        far = (far[:, :, None] + within[None, :, :]).min(axis=1)
    wanted = data.demand > 0
    return float((data.demand[wanted] * far[wanted]).sum()) / cost * (1 - ROUND_OFF)

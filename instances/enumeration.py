"""All topologies of a degree, one of each isomorphism class: orderly generation.

Source  Read, Annals of Discrete Mathematics 2, 1978

A code numbers the nodes as a breadth-first search from one of them reaches them, and lists the heads of every node as a
bit mask. Codes are built node by node; one that is not the smallest of its topology is dropped as soon as the heads of
its first nodes show it. So exactly one code of each strongly connected topology remains.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from opticoll.array_copies import copy_into
from opticoll.compiled import compiled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opticoll.instances.topology import I64, Mask


def wirings(
    n: int, degree: int, *, directed: bool, wanted: Callable[[Mask, int, int], bool], lacking: int | None = None
) -> Iterator[Mask]:
    """Links ``(n, n)`` of one topology of each class, without loops, every node with at most ``degree`` in and out.

    Parameters
    ----------
    n, degree
        At most 62 nodes.
    directed
        Whether links may run one way only.
    wanted
        Whether to go on with a partial topology: its links, the number of nodes whose links are decided, and how many
        links these lack.
    lacking
        Most links that all nodes together may lack; None for any number.
    """
    links, rows = np.zeros((n, n), dtype=bool), np.zeros(n, dtype=np.int64)

    def extended(u: int, reached: int, missing: int) -> Iterator[Mask]:
        """Those in which the nodes before u have these links, lack so many, and reach the nodes before ``reached``."""
        if u == n:
            yield links.copy()
        if u == reached:
            return
        received = links.sum(axis=0)
        known = [v for v in range(0 if directed else u + 1, reached) if v != u and received[v] < degree]
        given, free = int(rows[u]), degree - int(links[u].sum())
        fewest = 0 if lacking is None else max(0, free + missing - lacking)
        for size in range(free, fewest - 1, -1):
            for new in range(max(0, size - len(known)), min(size, n - reached) + 1):
                for heads in combinations(known, size - new):
                    chosen = [*heads, *range(reached, reached + new)]
                    links[u, chosen] = True
                    rows[u] = given | sum(1 << v for v in chosen)
                    if not directed:
                        links[chosen, u] = True
                        rows[chosen] |= 1 << u
                    if wanted(links, u + 1, missing + free - size) and is_least_code(rows, u + 1):
                        yield from extended(u + 1, reached + new, missing + free - size)
                    links[u, chosen] = False
                    if not directed:
                        links[chosen, u] = False
                        rows[chosen] ^= 1 << u
        rows[u] = given

    return extended(0, 1, 0)


@compiled()
def is_least_code(rows: I64, decided: int) -> bool:
    """Whether no other breadth-first numbering gives a smaller code ``(n,)``, judged by the decided first nodes."""
    n = rows.size
    order, number = np.empty(n, np.int64), np.full(n, -1)
    placed, fresh = np.empty(n + 1, np.int64), np.zeros(n, np.int64)  # nodes with numbers before, and from, each place
    for root in range(decided):
        number[:] = -1
        order[0], number[root], placed[0], i, deeper = root, 0, 1, 0, True
        while i >= 0:
            first = placed[i]
            if deeper:
                fresh[i] = 0
                if i in (decided, first) or order[i] >= decided:  # heads that are not decided, or no more nodes
                    i, deeper = i - 1, False
                    continue
                row = 0
                for v in range(n):
                    if rows[order[i]] >> v & 1:
                        if number[v] >= 0:
                            row |= 1 << number[v]
                        else:
                            row |= 1 << (first + fresh[i])
                            order[first + fresh[i]] = v
                            fresh[i] += 1
                if row < rows[i]:
                    return False
                if row > rows[i]:
                    i, deeper = i - 1, False
                    continue
            elif not _next_permutation(order[first : first + fresh[i]]):
                number[order[first : first + fresh[i]]] = -1
                i -= 1
                continue
            for k in range(first, first + fresh[i]):
                number[order[k]] = k
            placed[i + 1] = first + fresh[i]
            i, deeper = i + 1, True
    return True


@compiled()
def _next_permutation(items: I64) -> bool:
    """Turn a sequence into the next one in lexicographic order; False if it is the last."""
    k = items.size - 2
    while k >= 0 and items[k] > items[k + 1]:
        k -= 1
    if k < 0:
        return False
    m = items.size - 1
    while items[m] < items[k]:
        m -= 1
    items[k], items[m] = items[m], items[k]
    copy_into(items[k + 1 :], items[k + 1 :][::-1].copy())
    return True

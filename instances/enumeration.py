"""All topologies of a degree, one of each isomorphism class: orderly generation.

Source  Read, Annals of Discrete Mathematics 2, 1978

A code numbers the nodes as a breadth-first search from one of them reaches them, and lists the heads of every node as a
bit mask. Codes are built node by node; one that is not the smallest of its topology is dropped as soon as the heads of
its first nodes show it. So exactly one code of each strongly connected topology remains. The other numberings that
agree with a code so far are compared further when the heads of its next node are decided, not anew.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opticoll.instances.topology import Mask


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
    links, rows = np.zeros((n, n), dtype=bool), [0] * n

    def extended(u: int, reached: int, missing: int, ties: list[Tie]) -> Iterator[Mask]:
        """Those in which the nodes before u have these links, lack so many, and reach the nodes before ``reached``."""
        if u == n:
            yield links.copy()
        if u == reached:
            return
        received = links.sum(axis=0).tolist()
        known = [v for v in range(0 if directed else u + 1, reached) if v != u and received[v] < degree]
        given, free = rows[u], degree - rows[u].bit_count()
        fewest = 0 if lacking is None else max(0, free + missing - lacking)
        for size in range(free, fewest - 1, -1):
            for new in range(max(0, size - len(known)), min(size, n - reached) + 1):
                for heads in combinations(known, size - new):
                    chosen = [*heads, *range(reached, reached + new)]
                    links[u, chosen] = True
                    rows[u] = given | sum(1 << v for v in chosen)
                    if not directed:
                        links[chosen, u] = True
                        for v in chosen:
                            rows[v] |= 1 << u
                    lacks = missing + free - size
                    tied = [*ties, ([1 << u], 0, 1 << u)]
                    if wanted(links, u + 1, lacks) and (left := ties_with(rows, u + 1, tied)) is not None:
                        yield from extended(u + 1, reached + new, lacks, left)
                    links[u, chosen] = False
                    if not directed:
                        links[chosen, u] = False
                        for v in chosen:
                            rows[v] ^= 1 << u
        rows[u] = given

    return extended(0, 1, 0, [])


#: An unfinished numbering: nodes in the order of their numbers, as sets whose members may come in any order, each a bit
#: mask; a place, before which every set is one node; and the nodes that may come there.
Tie = tuple[list[int], int, int]


def ties_with(rows: list[int], decided: int, ties: list[Tie]) -> list[Tie] | None:
    """The breadth-first numberings that agree with the code in all rows that are decided; None if one gives a smaller.

    A numbering leaves open in which order the nodes come that one node reaches first. The row of the next node fixes as
    much of it as makes this row smallest.

    Parameters
    ----------
    rows
        Heads of every node, as bit masks.
    decided
        The heads of the nodes with smaller numbers are decided.
    ties
        Numberings that agreed in the rows decided before; they are used up.
    """
    left: list[Tie] = []
    while ties:
        sets, place, untried = ties.pop()
        tried = untried & ((1 << decided) - 1) if place < decided else 0
        if tried != untried:
            left.append((sets, place, untried ^ tried))
        while tried:
            node = tried & -tried
            tried ^= node
            heads = rows[node.bit_length() - 1]
            row, size, finer, fresh = 0, 0, [], heads
            for nodes in (*sets[:place], node, sets[place] ^ node, *sets[place + 1 :]):
                reached = nodes & heads
                if reached:
                    row |= ((1 << reached.bit_count()) - 1) << size
                    fresh ^= reached
                    finer.append(reached)
                if nodes != reached:
                    finer.append(nodes ^ reached)
                size += nodes.bit_count()
            row |= ((1 << fresh.bit_count()) - 1) << size
            if row < rows[place]:
                return None
            if fresh:
                finer.append(fresh)
            if row == rows[place] and place + 1 < len(finer):
                ties.append((finer, place + 1, finer[place + 1]))
    return left

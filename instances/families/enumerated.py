"""Explicit small digraphs, and all regular digraphs and graphs of a size up to isomorphism."""

from __future__ import annotations

from functools import cache
from itertools import combinations, permutations
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import BadInput
from opticoll.instances.digraph import Topology
from opticoll.instances.spec import check_positive, family, population

if TYPE_CHECKING:
    pass

#: Names of vertices in a spec: vertex v is the v-th character.
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"
#: Largest number of arcs in a spec.
MOST_ARCS = 3000
#: Largest number of vertices to enumerate, by degree: at most some thousand members and a few seconds.
LARGEST_DIGRAPHS = {1: 40, 2: 9, 3: 7, 4: 7, 5: 7, 6: 7}
LARGEST_GRAPHS = {1: 40, 2: 40, 3: 14, 4: 11, 5: 10, 6: 9, 7: 8}


@family("digraph", example="digraph:12.20.01", source="Diestel, Graph Theory, 5th ed. 2017, section 1.10 (digraphs)")
def digraph(rows: str) -> Topology:
    """Digraph given by the out-neighbours of every node.

    The rows are separated by dots: ``digraph:12.20.01`` has the arcs 0->1, 0->2, 1->2, 1->0, 2->0 and 2->1. Nodes 10
    and above are the letters ``a`` to ``z`` and ``A`` to ``Z``, then ``-`` and ``_``. A repeated node stands for
    parallel arcs, an empty row for a node without outgoing arcs. All capacities are 1.
    :func:`digraph_spec` prints a topology in this form.

    Parameters
    ----------
    rows
        Heads of the arcs that leave nodes 0, 1, …; at most 64 nodes.

    Raises
    ------
    BadInput
        For more than 64 nodes, too many arcs, or a head that is not a node.
    """
    heads = [row.strip() for row in rows.split(".")]
    n, arcs = len(heads), sum(map(len, heads))
    if n > len(DIGITS) or arcs > MOST_ARCS:
        msg = f"digraph: {n} nodes and {arcs} arcs exceed the limits ({len(DIGITS)} nodes, {MOST_ARCS} arcs); use file:"
        raise BadInput(msg)
    for node, row in enumerate(heads):
        wrong = [letter for letter in row if letter not in DIGITS[:n]]
        if wrong:
            msg = f"digraph: row {node} names the node {wrong[0]!r}; the {n} rows define the nodes {DIGITS[:n]}"
            raise BadInput(msg)
    tail = np.repeat(np.arange(n), [len(row) for row in heads])
    return Topology(n, tail, [DIGITS.index(letter) for row in heads for letter in row], spec="digraph")


def digraph_spec(topology: Topology) -> str | None:
    """The spec ``digraph:…`` of a topology with the same arcs in the same numbering.

    Returns
    -------
    str or None
        None if the spec cannot express it: more than 64 nodes, too many arcs, capacities other than 1, nodes that are
        not ranks, or further data of a subclass.
    """
    n = topology.n
    plain = type(topology) is Topology and topology.ranks == n and bool((topology.capacity == 1.0).all())
    if not plain or n > len(DIGITS) or not 0 < topology.arcs <= MOST_ARCS:
        return None
    rows = [""] * n
    for tail, head in zip(topology.tail.tolist(), topology.head.tolist(), strict=True):
        rows[tail] += DIGITS[head]
    return "digraph:" + ".".join(rows)


@population(
    "all-digraphs",
    example="all-digraphs:n=5,d=2",
    source="Read, Annals of Discrete Mathematics 2, 1978 (orderly generation)",
)
def all_digraphs(n: int, d: int) -> list[str]:
    """All connected d-regular digraphs on n nodes, one of each isomorphism class.

    Every node has d arcs in and d out; there are no loops or parallel arcs. A connected regular digraph is strongly
    connected.

    Parameters
    ----------
    n, d
        Number of nodes, and in- and out-degree, 1 <= d < n.

    Raises
    ------
    BadInput
        If there is no such digraph, or there are too many to enumerate.
    """
    _check_sizes("all-digraphs", n, d, LARGEST_DIGRAPHS)
    return [_printed(rows) for rows in regular_codes(n, d, directed=True)]


@population(
    "all-graphs",
    example="all-graphs:n=6,d=3",
    source="Read, Annals of Discrete Mathematics 2, 1978 (orderly generation)",
)
def all_graphs(n: int, d: int) -> list[str]:
    """All connected d-regular graphs on n nodes, one of each isomorphism class, with links both ways.

    There are no loops or parallel links.

    Parameters
    ----------
    n, d
        Number of nodes and degree, 1 <= d < n; n d is even.

    Raises
    ------
    BadInput
        If there is no such graph, or there are too many to enumerate.
    """
    _check_sizes("all-graphs", n, d, LARGEST_GRAPHS)
    graphs = [] if n * d % 2 else [_printed(rows) for rows in regular_codes(n, d, directed=False)]
    if not graphs:
        msg = f"all-graphs: there is no connected {d}-regular graph on {n} nodes; n d must be even, and d > 1 if n > 2"
        raise BadInput(msg)
    return graphs


def _check_sizes(name: str, n: int, d: int, largest: dict[int, int]) -> None:
    check_positive(n, "n", name, least=2)
    check_positive(d, "d", name)
    if d >= n:
        msg = f"{name}: d must be below n={n}, not {d}; there are no parallel arcs"
        raise BadInput(msg)
    if n > largest.get(d, 0):
        limits = ", ".join(f"n={size} for d={degree}" for degree, size in largest.items())
        msg = f"{name}: n={n},d={d} has too many members to enumerate; the limits are {limits}"
        raise BadInput(msg)


def _printed(rows: tuple[int, ...]) -> str:
    heads = ("".join(DIGITS[v] for v in range(len(rows)) if row >> v & 1) for row in rows)
    return "digraph:" + ".".join(heads)


@cache
def regular_codes(n: int, d: int, *, directed: bool) -> tuple[tuple[int, ...], ...]:
    """The least code of every connected d-regular digraph or graph on n vertices.

    A code numbers the vertices in breadth-first order from some root and lists their rows, the sets of heads as bit
    masks. Codes are built row by row. One that is not the least code of its graph is dropped as soon as its first
    rows show it (orderly generation), so that each graph is left with one code.
    """
    codes: list[tuple[int, ...]] = []
    rows: list[int] = []
    received = [0] * n  # arcs into every vertex so far

    def extend(seen: int) -> None:
        i = len(rows)
        if i == n:
            codes.append(tuple(rows))
            return
        if i == seen:
            return  # not connected
        fixed = 0 if directed else sum(1 << j for j in range(i) if rows[j] >> i & 1)
        missing = d - fixed.bit_count()
        earlier = range(seen) if directed else range(i + 1, seen)
        free = [v for v in earlier if v != i and received[v] < d]
        for new in range(max(0, missing - len(free)), min(missing, n - seen) + 1):
            for old in combinations(free, missing - new):
                heads = (*old, *range(seen, seen + new))
                for v in heads:
                    received[v] += 1
                if not directed:
                    received[i] += missing
                rows.append(fixed | sum(1 << v for v in heads))
                if all(d - received[v] <= n - 1 - i - (v > i) for v in range(n)) and is_least_code(rows, n):
                    extend(seen + new)
                rows.pop()
                for v in heads:
                    received[v] -= 1
                if not directed:
                    received[i] -= missing

    extend(1)
    return tuple(codes)


def is_least_code(rows: list[int], n: int) -> bool:
    """Whether no other breadth-first numbering gives a smaller code, as far as the first rows show."""
    heads = [[v for v in range(n) if row >> v & 1] for row in rows]

    def smaller(order: tuple[int, ...], number: dict[int, int]) -> bool:
        i = len(done)
        if i == len(rows) or i == len(order) or order[i] >= len(rows):
            return False
        fresh = [v for v in heads[order[i]] if v not in number]
        row = sum(1 << number[v] for v in heads[order[i]] if v in number)
        row |= ((1 << len(fresh)) - 1) << len(order)
        if row != rows[i]:
            return row < rows[i]
        done.append(row)
        for chosen in permutations(fresh):
            numbered = number | {v: len(order) + k for k, v in enumerate(chosen)}
            if smaller(order + chosen, numbered):
                return True
        done.pop()
        return False

    done: list[int] = []
    return not any(smaller((root,), {root: 0}) for root in range(len(rows)))

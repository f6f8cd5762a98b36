"""Walks around a ring as sets of circuits that share wavelengths."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.index import Index

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opticoll.instances.topology import F64, I64

    Chord = tuple[int, int, int]  # direction and pair
    Part = dict[str, int | I64]

_Node = tuple[int, int, int]  # direction, start of the commodity, node


def directed(n: int, source: I64, target: I64, way: int) -> tuple[I64, I64]:
    """Ends of pairs as clockwise arcs on the cut ring, with target 0 written as n: way 0 unchanged, way 1 mirrored."""
    tail, head = (source, target) if way == 0 else (-source % n, -target % n)
    return tail, np.where(head == 0, n, head)


@dataclass(frozen=True, eq=False)
class Walks:
    """Index sets of the walks of both directions.

    Attributes
    ----------
    circuits
        Circuits on the line: direction ``way``, commodity ``start``, ``pair``, and ends on the cut line, ``tail`` and
        ``head``.
    idle
        Idle segments from ``tail`` to ``head`` = ``tail`` + 1.
    crossings
        Crossing circuits, each of the commodity that starts at its head.
    nodes
        Rows of conservation: ``node`` of a commodity.
    """

    n: int
    circuits: Index
    idle: Index
    crossings: Index
    nodes: Index


def walks(n: int, source: I64, target: I64) -> Walks:
    """Build the index sets for these pairs."""
    circuits: list[Part] = []
    idle: list[Part] = []
    crossings: list[Part] = []
    nodes: list[Part] = []
    for way in (0, 1):
        tail, head = directed(n, source, target, way)
        over, line = np.flatnonzero(head < tail), np.flatnonzero(head > tail)
        crossings.append({"way": way, "pair": over, "tail": tail[over], "head": head[over], "start": head[over]})
        for v in range(n):
            tails = tail[over][head[over] == v]
            if v and tails.size == 0:
                continue
            end = n if v == 0 else int(tails.max())
            on = line[(tail[line] >= v) & (head[line] <= end)]
            at, inner = np.arange(v, end), np.arange(1, n) if v == 0 else np.arange(v, end + 1)
            circuits.append({"way": way, "start": v, "pair": on, "tail": tail[on], "head": head[on]})
            idle.append({"way": way, "start": v, "tail": at, "head": at + 1})
            nodes.append({"way": way, "start": v, "node": inner})
    return Walks(
        n,
        Index.table("way start pair", *circuits),
        Index.table("way start tail", *idle),
        Index.table("way pair", *crossings),
        Index.table("way start node", *nodes),
    )


def ends_on_line(P: list[tuple[int, int]], n: int) -> tuple[dict[Chord, int], dict[Chord, int]]:
    """Tail and head of every pair on the cut ring, in both directions."""
    tail = {(0, i, j): i for i, j in P} | {(1, i, j): -i % n for i, j in P}
    head = {(0, i, j): j or n for i, j in P} | {(1, i, j): -j % n or n for i, j in P}
    return tail, head


def last_nodes(n: int, tail: Mapping[Chord, int], head: Mapping[Chord, int]) -> dict[tuple[int, int], int]:
    """The last node of every commodity (d,v): n for v = 0, else the largest tail of a pair over node n with head v."""
    last = {(d, 0): n for d in (0, 1)}
    for chord, v in head.items():
        if v < tail[chord]:
            last[chord[0], v] = max(last.get((chord[0], v), tail[chord]), tail[chord])
    return dict(sorted(last.items()))


def heaviest_set(n: int, source: I64, target: I64, weight: F64, way: int) -> float:
    """Largest total weight (each >= 0) of pairs that one wavelength of a direction can carry, ``(|P|,)``.

    Computed as longest walks from every node at once: n steps on an (n, n) array.
    """
    tail, head = directed(n, source, target, way)
    gain = np.full((n, n + 1), -np.inf)
    line = head > tail
    gain[tail[line], head[line]] = weight[line]
    best = np.full((n, n + 1), -np.inf)
    np.fill_diagonal(best, 0.0)
    for b in range(1, n + 1):
        reached = np.maximum(best[:, b - 1], (best[:, :b] + gain[:b, b]).max(axis=1))
        best[:, b] = np.maximum(best[:, b], reached)
    crossing = ~line
    over = best[head[crossing], tail[crossing]] + weight[crossing]
    return float(max(best[0, n], over.max(initial=0.0)))


def strip(walk: Walks, flow: I64, idle: I64, over: I64) -> list[tuple[int, list[int]]] | None:
    """Split integer flows into nonempty sets (direction, pairs); None if the flows are not conserved.

    Parameters
    ----------
    flow, idle, over
        Integer and nonnegative, ``(|F|,)``, ``(|H|,)``, ``(|X|,)``.
    """
    # Of every node of a commodity: its segments and circuits onward, and the crossing circuits that close a walk there.
    onward, closing = defaultdict[_Node, list[tuple[int, int]]](list), defaultdict[_Node, list[int]](list)
    lines = walk.circuits, walk.idle.given(pair=-1), walk.crossings
    for index, counts in zip(lines, (flow, idle, over), strict=True):
        listed = np.column_stack([index[name] for name in ("way", "start", "tail", "head", "pair")])
        for way, v, a, b, pair in np.repeat(listed, counts, axis=0).tolist():
            if index is walk.crossings:
                closing[way, v, a].append(pair)
            else:
                onward[way, v, a].append((b, pair))
    results: list[tuple[int, list[int]]] = []
    for way, v in product((0, 1), range(walk.n)):
        for _ in range(len(onward[way, v, v])):
            at, pairs = v, list[int]()
            while at < walk.n and not closing[way, v, at]:
                if not onward[way, v, at]:
                    return None
                at, pair = onward[way, v, at].pop()
                pairs += [pair] * (pair >= 0)
            if at < walk.n:
                pairs.append(closing[way, v, at].pop())
            elif v:
                return None
            if pairs:
                results.append((way, pairs))
    return None if any(onward.values()) or any(closing.values()) else results


def circuits_of_sets(sets: list[tuple[int, list[int]]]) -> I64:
    """Convert sets (direction, pairs) to ``circuits``, each on its own wavelength, in order."""
    results: list[tuple[int, int, int]] = []
    used = [0, 0]
    for way, pairs in sets:
        results += [(pair, way, used[way]) for pair in pairs]
        used[way] += 1
    return np.array(results, dtype=np.int64).reshape(-1, 3)

"""Walks around a ring as sets of circuits that share wavelengths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.index import Index

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opticoll.instances.topology import F64, I64

    Chord = tuple[int, int, int]  # direction and pair


def directed(n: int, source: I64, target: I64, way: int) -> tuple[I64, I64]:
    """Ends of pairs as clockwise arcs on the cut ring, with target 0 written as n: way 0 unchanged, way 1 mirrored."""
    tail, head = (source, target) if way == 0 else (-source % n, -target % n)
    return tail, np.where(head == 0, n, head)


@dataclass(frozen=True, eq=False)
class Walks:
    """Index sets of the walks of both directions.

    Attributes
    ----------
    flow_way, flow_start, flow_pair
        Circuits on the line: direction, commodity v, pair, ``(|F|,)`` each.
    flow_tail, flow_head
        Ends of these circuits on the cut line, ``(|F|,)``.
    idle_way, idle_start, idle_tail
        Idle segments a -> a + 1, ``(|H|,)`` each.
    over_way, over_pair, over_tail, over_head
        Crossing circuits; their commodity is ``over_head``, ``(|X|,)`` each.
    node_way, node_start, node
        Rows of conservation: node a of commodity v, ``(rows,)`` each.
    """

    n: int
    flow_way: I64
    flow_start: I64
    flow_pair: I64
    flow_tail: I64
    flow_head: I64
    idle_way: I64
    idle_start: I64
    idle_tail: I64
    over_way: I64
    over_pair: I64
    over_tail: I64
    over_head: I64
    node_way: I64
    node_start: I64
    node: I64

    @property
    def rows(self) -> int:
        """Number of rows of conservation."""
        return int(self.node.size)

    @property
    def circuits(self) -> Index:
        """The circuits on the line, with pair, tail and head."""
        ends = {"pair": self.flow_pair, "tail": self.flow_tail, "head": self.flow_head}
        return Index.table("way start pair", {"way": self.flow_way, "start": self.flow_start, **ends})

    @property
    def idle(self) -> Index:
        """The idle segments, with tail and head."""
        ends = {"tail": self.idle_tail, "head": self.idle_tail + 1}
        return Index.table("way start tail", {"way": self.idle_way, "start": self.idle_start, **ends})

    @property
    def crossings(self) -> Index:
        """The crossing circuits, with pair, tail and head; each is of the commodity that starts at its head."""
        ends = {"pair": self.over_pair, "tail": self.over_tail, "head": self.over_head}
        return Index.table("way pair", {"way": self.over_way, "start": self.over_head, **ends})

    @property
    def nodes(self) -> Index:
        """The rows of conservation."""
        return Index.table("way start node", {"way": self.node_way, "start": self.node_start, "node": self.node})

    def row_of(self, way: I64, start: I64, node: I64) -> I64:
        """Row of node a of commodity v, -1 if there is none (the start of commodity 0, and node n)."""
        n = self.n
        key = (self.node_way * n + self.node_start) * (n + 1) + self.node
        wanted = (way * n + start) * (n + 1) + node
        at = np.minimum(np.searchsorted(key, wanted), max(key.size - 1, 0))
        return np.where(key[at] == wanted, at, -1) if key.size else np.full(wanted.shape, -1)


def walks(n: int, source: I64, target: I64) -> Walks:
    """Build the index sets for these pairs."""
    flow: list[I64] = []
    idle: list[I64] = []
    over: list[I64] = []
    nodes: list[I64] = []
    for way in (0, 1):
        tail, head = directed(n, source, target, way)
        crossing = head < tail
        over.append(np.stack([np.full(crossing.sum(), way), np.flatnonzero(crossing), tail[crossing], head[crossing]]))
        line = np.flatnonzero(~crossing)
        for v in range(n):
            tails = tail[crossing & (head == v)]
            if v and tails.size == 0:
                continue
            end = n if v == 0 else int(tails.max())
            selected = line[(tail[line] >= v) & (head[line] <= end)]
            flow.append(
                np.stack(
                    [np.full(selected.size, way), np.full(selected.size, v), selected, tail[selected], head[selected]]
                )
            )
            at = np.arange(v, end)
            idle.append(np.stack([np.full(at.size, way), np.full(at.size, v), at]))
            inner = np.arange(1, n) if v == 0 else np.arange(v, end + 1)
            nodes.append(np.stack([np.full(inner.size, way), np.full(inner.size, v), inner]))
    parts = [np.concatenate(part, axis=1).astype(np.int64) for part in (flow, idle, over, nodes)]
    return Walks(n, *parts[0], *parts[1], *parts[2], *parts[3])


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
            last[chord[0], v] = max(last.get((chord[0], v), 0), tail[chord])
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
    n = walk.n
    out: dict[tuple[int, int, int], list[list[int]]] = {}
    for way, v, a, b, pair, count in zip(
        walk.flow_way.tolist(),
        walk.flow_start.tolist(),
        walk.flow_tail.tolist(),
        walk.flow_head.tolist(),
        walk.flow_pair.tolist(),
        flow.tolist(),
        strict=True,
    ):
        if count > 0:
            out.setdefault((way, v, a), []).append([count, b, pair])
    for way, v, a, count in zip(
        walk.idle_way.tolist(), walk.idle_start.tolist(), walk.idle_tail.tolist(), idle.tolist(), strict=True
    ):
        if count > 0:
            out.setdefault((way, v, a), []).append([count, a + 1, -1])
    ends: dict[tuple[int, int], dict[int, list[int]]] = {}
    for way, pair, u, v, count in zip(
        walk.over_way.tolist(),
        walk.over_pair.tolist(),
        walk.over_tail.tolist(),
        walk.over_head.tolist(),
        over.tolist(),
        strict=True,
    ):
        if count > 0:
            ends.setdefault((way, v), {})[u] = [count, pair]
    results: list[tuple[int, list[int]]] = []

    def follow(way: int, v: int) -> list[int] | None:
        at = v
        pairs: list[int] = []
        sinks = ends.get((way, v), {}) if v else {}
        while True:
            if at == n:
                return pairs if v == 0 else None
            if at in sinks and sinks[at][0] > 0:
                sinks[at][0] -= 1
                return [*pairs, sinks[at][1]]
            choices = out.get((way, v, at), [])
            while choices and choices[-1][0] == 0:
                choices.pop()
            if not choices:
                return None
            choices[-1][0] -= 1
            at, pair = choices[-1][1], choices[-1][2]
            if pair >= 0:
                pairs.append(pair)

    for way in (0, 1):
        for v in range(n):
            starts = sum(count for count, _, _ in out.get((way, v, v), []))
            for _ in range(starts):
                pairs = follow(way, v)
                if pairs is None:
                    return None
                if pairs:
                    results.append((way, pairs))
    left = any(item[0] for items in out.values() for item in items)
    left |= any(item[0] for sinks in ends.values() for item in sinks.values())
    return None if left else results


def circuits_of_sets(sets: list[tuple[int, list[int]]]) -> I64:
    """Convert sets (direction, pairs) to ``circuits``, each on its own wavelength, in order."""
    results: list[tuple[int, int, int]] = []
    used = [0, 0]
    for way, pairs in sets:
        results += [(pair, way, used[way]) for pair in pairs]
        used[way] += 1
    return np.array(results, dtype=np.int64).reshape(-1, 3)

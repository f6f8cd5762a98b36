r"""Collectives as pre- and post-conditions over chunks.

Source  LuMorph, section 3 (Pre, Post); reductions as in section 4

A *copying* collective starts with some vertices holding each chunk and ends with more of them holding it. In a
*summing* one every vertex of Pre[c] holds its own contribution to chunk c, and every vertex of Post[c] must end with
the sum of all of them, each counted once.

On ranks ``0 .. p-1`` (vertices ``ranks[i]``), every shard in ``pieces`` chunks:

    broadcast        the root's shard to all                  p - 1 deliveries a piece
    scatter          a shard of the root to each              p - 1
    gather           a shard of each to the root              p - 1
    all-gather       a shard of each to all                   p (p - 1)
    all-to-all       a shard of each for each                 p (p - 1)
    reduce           sum of all shards at the root            broadcast, backwards in time
    reduce-scatter   sum i of all at rank i                   all-gather, backwards in time
    all-reduce       every sum at all                         reduce-scatter, then all-gather
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import BadInput
from opticoll.instances.readers import untrusted
from opticoll.instances.readers.untrusted import PREFIX, pinned, read_pinned
from opticoll.instances.spec import nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import ArrayLike, NDArray

    I64 = NDArray[np.int64]

#: More (chunk, vertex) pairs than this in Pre or Post are refused.
MOST_PAIRS = 20_000_000
#: A file of a collective may not be larger than this [bytes].
MOST_BYTES = 64_000_000


@dataclass(frozen=True, eq=False)
class Collective:
    """Pre- and post-conditions over ``chunks`` chunks and ``n`` vertices.

    Parameters
    ----------
    name
        For records and messages.
    n, chunks
        Vertices and chunks.
    pre, post
        Pairs (chunk, vertex), ``(P, 2)`` and ``(Q, 2)``, each once, sorted.
    summing
        Whether Pre are contributions to be summed (see the module) or copies.

    Raises
    ------
    BadInput
        For a pair out of range, or a chunk that Post names and nobody holds.
    """

    name: str
    n: int
    chunks: int
    pre: I64
    post: I64
    summing: bool = False

    def __post_init__(self) -> None:
        for what in ("pre", "post"):
            pairs = _pairs(getattr(self, what), self, what)
            pairs.setflags(write=False)
            object.__setattr__(self, what, pairs)
        held = np.zeros(self.chunks, dtype=bool)
        held[self.pre[:, 0]] = True
        missing = self.post[~held[self.post[:, 0]]]
        if missing.size:
            chunk, vertex = missing[0].tolist()
            msg = f"collective {self.name!r}: vertex {vertex} is to get chunk {chunk}, which nobody holds; add a holder"
            raise BadInput(msg)

    @cached_property
    def deliveries(self) -> I64:
        """Pairs (chunk, vertex) of Post that are not in Pre, ``(D, 2)``, sorted: what must be received."""
        return self.post[~np.isin(self.key(self.post), self.key(self.pre))]

    def key(self, pairs: I64) -> I64:
        """One number a (chunk, vertex) pair: ``chunk n + vertex``."""
        return pairs[:, 0] * self.n + pairs[:, 1]

    @cached_property
    def holders(self) -> I64:
        """How many vertices hold each chunk at the start, ``(chunks,)``."""
        return np.bincount(self.pre[:, 0], minlength=self.chunks)

    @cached_property
    def spread(self) -> I64:
        """How many vertices must receive each chunk, ``(chunks,)``."""
        return np.bincount(self.deliveries[:, 0], minlength=self.chunks)

    def relabelled(self, order: ArrayLike) -> Collective:
        """Rename vertices: vertex ``v`` becomes ``order[v]``."""
        new = np.asarray(order, dtype=np.int64)

        def renamed(pairs: I64) -> I64:
            return np.column_stack([pairs[:, 0], new[pairs[:, 1]]])

        return Collective(self.name, self.n, self.chunks, renamed(self.pre), renamed(self.post), self.summing)


@dataclass(frozen=True)
class Phase:
    """A part of a collective that is scheduled on its own, as copies.

    ``backwards``: the schedule of ``copying`` is run backwards in time and against the arcs, and what it copies
    is summed.
    """

    copying: Collective
    backwards: bool


def phases(collective: Collective) -> tuple[Phase, ...]:
    """What a collective is composed of.

    Copies are one phase. Sums of one target a chunk are the spreading of that chunk from its target, backwards. Sums
    that several vertices need are summed at one of them and spread from there: at the ``c mod k``-th of the k targets
    of chunk c, which makes an all-reduce a reduce-scatter and an all-gather.
    """
    if not collective.summing:
        return (Phase(collective, backwards=False),)
    first = np.searchsorted(collective.post[:, 0], np.arange(collective.chunks))
    count = np.bincount(collective.post[:, 0], minlength=collective.chunks)
    wanted = np.flatnonzero(count)
    root = collective.post[first[wanted] + wanted % count[wanted], 1]
    roots = np.column_stack([wanted, root])
    name, n, chunks = collective.name, collective.n, collective.chunks
    contributors = collective.pre[np.isin(collective.pre[:, 0], wanted)]
    gathered = Phase(Collective(name, n, chunks, roots, contributors), backwards=True)
    if (count <= 1).all():
        return (gathered,)
    return gathered, Phase(Collective(name, n, chunks, roots, collective.post), backwards=False)


def _pairs(given: ArrayLike, collective: Collective, what: str) -> I64:
    pairs = np.asarray(given, dtype=np.int64).reshape(-1, 2)
    limits = (collective.chunks, collective.n)
    for column, kind in enumerate(("chunk", "vertex")):
        out = (pairs[:, column] < 0) | (pairs[:, column] >= limits[column])
        if out.any():
            msg = (
                f"collective {collective.name!r}: {what} names {kind} {pairs[out, column][0]}, "
                f"of {limits[column]} counted from 0"
            )
            raise BadInput(msg)
    return np.unique(pairs, axis=0)


def _fan(chunks: I64, vertices: I64) -> I64:
    """Every chunk with every vertex."""
    return np.column_stack([np.repeat(chunks, vertices.size), np.tile(vertices, chunks.size)])


def _from_root(ranks: I64, root: int, pieces: int) -> tuple[int, I64, I64]:
    chunks = np.arange(pieces)
    return pieces, _fan(chunks, ranks[[root]]), _fan(chunks, ranks)


def _scattered(ranks: I64, root: int, pieces: int) -> tuple[int, I64, I64]:
    chunks = np.arange(ranks.size * pieces)
    return chunks.size, _fan(chunks, ranks[[root]]), np.column_stack([chunks, np.repeat(ranks, pieces)])


def _gathered(ranks: I64, root: int, pieces: int) -> tuple[int, I64, I64]:
    count, pre, post = _scattered(ranks, root, pieces)
    return count, post, pre


def _all_gathered(ranks: I64, root: int, pieces: int) -> tuple[int, I64, I64]:
    count, _, own = _scattered(ranks, root, pieces)
    return count, own, _fan(np.arange(count), ranks)


def _exchanged(ranks: I64, root: int, pieces: int) -> tuple[int, I64, I64]:
    p = ranks.size
    chunks = np.arange(p * p * pieces)
    pair = chunks // pieces
    return chunks.size, np.column_stack([chunks, ranks[pair // p]]), np.column_stack([chunks, ranks[pair % p]])


def _reduced(ranks: I64, root: int, pieces: int) -> tuple[int, I64, I64]:
    count, pre, post = _from_root(ranks, root, pieces)
    return count, post, pre


def _reduce_scattered(ranks: I64, root: int, pieces: int) -> tuple[int, I64, I64]:
    count, pre, post = _all_gathered(ranks, root, pieces)
    return count, post, pre


def _all_reduced(ranks: I64, root: int, pieces: int) -> tuple[int, I64, I64]:
    count, _, post = _all_gathered(ranks, root, pieces)
    return count, post, post


_NAMED: dict[str, tuple[Callable[[I64, int, int], tuple[int, I64, I64]], bool]] = {
    "broadcast": (_from_root, False),
    "scatter": (_scattered, False),
    "gather": (_gathered, False),
    "all-gather": (_all_gathered, False),
    "all-to-all": (_exchanged, False),
    "reduce": (_reduced, True),
    "reduce-scatter": (_reduce_scattered, True),
    "all-reduce": (_all_reduced, True),
}
#: Names that :func:`collective` knows.
COLLECTIVES = tuple(_NAMED)


def collective(name: str, n: int, ranks: ArrayLike | None = None, *, root: int = 0, pieces: int = 1) -> Collective:
    """A collective by name.

    Parameters
    ----------
    name
        One of :data:`COLLECTIVES`, or ``file:PATH`` (see :func:`read_collective`).
    n
        Vertices of the topology.
    ranks
        Vertices that take part, in order; all by default.
    root
        Number of the root among the ranks, where there is one.
    pieces
        Chunks a shard.

    Chunk numbers: piece k of shard i is ``i pieces + k``; of the shard of i for j, ``(i p + j) pieces + k`` (the
    shards for itself are there, and need no delivery).

    Raises
    ------
    BadInput
        For an unknown name, ranks that are no distinct vertices, a root or number of pieces out of range, or more
        (chunk, vertex) pairs than :data:`MOST_PAIRS`.
    """
    if name.startswith(PREFIX):
        return read_collective(name, n)
    if name not in _NAMED:
        msg = f"no collective {name!r}; {nearest(name, _NAMED)}, or file:PATH"
        raise BadInput(msg)
    who = np.arange(n) if ranks is None else np.asarray(ranks, dtype=np.int64)
    if who.size < 2 or np.unique(who).size < who.size or who.min() < 0 or who.max() >= n:
        msg = f"collective {name!r}: the ranks must be at least 2 distinct vertices of 0..{n - 1}"
        raise BadInput(msg)
    if not 0 <= root < who.size:
        msg = f"collective {name!r}: root={root} is none of the {who.size} ranks; count from 0"
        raise BadInput(msg)
    pairs = who.size * who.size * pieces
    if pieces < 1 or pairs > MOST_PAIRS:
        msg = f"collective {name!r}: {pieces} chunks a shard on {who.size} ranks; take between 1 and {MOST_PAIRS} pairs"
        raise BadInput(msg)
    make, summing = _NAMED[name]
    chunks, pre, post = make(who, root, pieces)
    return Collective(name, n, chunks, pre, post, summing)


class CollectiveSpec(str):
    """The name of a collective; a file's is pinned to its contents (:mod:`opticoll.instances.readers.untrusted`)."""

    __slots__ = ()

    def __new__(cls, text: str) -> CollectiveSpec:
        """Pin a file to what it holds now."""
        return super().__new__(cls, pinned(str(text), MOST_BYTES))


def read_collective(name: str | Path, n: int) -> Collective:
    """A user's own collective from a JSON file: its path, or ``file:PATH`` pinned or not.

    ``{"name": "...", "sum": false, "chunks": [{"pre": [0], "post": [1, 2]}, ...]}``: vertices by number; ``name`` and
    ``sum`` (default false) may be left out.

    Raises
    ------
    BadInput
        For a file that is missing, too large or says something else, and for what :class:`Collective` refuses.
    """
    remedy = 'write a collective as {"chunks": [{"pre": [0], "post": [1, 2]}, ...]}'
    path, text = read_pinned(str(name), MOST_BYTES, "collective file", remedy)
    told: Any = untrusted.parse_json(text, path, remedy)
    if not isinstance(told, dict) or not isinstance(told.get("chunks"), list) or not told["chunks"]:
        msg = f'collective file {path}: needs {{"chunks": [{{"pre": [...], "post": [...]}}, ...]}}'
        raise BadInput(msg)
    unknown = set(told) - {"name", "sum", "chunks"}
    if unknown or not isinstance(told.get("sum", False), bool):
        msg = f'collective file {path}: keys are "name", "sum" (true or false) and "chunks"'
        raise BadInput(msg)
    columns: dict[str, list[tuple[int, int]]] = {"pre": [], "post": []}
    for chunk, each in enumerate(told["chunks"]):
        if not isinstance(each, dict) or set(each) != {"pre", "post"}:
            msg = f'collective file {path}: chunk {chunk} needs "pre" and "post", and nothing else'
            raise BadInput(msg)
        for what, pairs in columns.items():
            pairs += [(chunk, vertex) for vertex in _vertices(each[what], n, f"{path}: chunk {chunk}, {what}")]
    pre, post = (np.asarray(columns[what], dtype=np.int64).reshape(-1, 2) for what in ("pre", "post"))
    name = told.get("name", path.stem)
    return Collective(str(name)[:80], n, len(told["chunks"]), pre, post, bool(told.get("sum", False)))


def _vertices(given: Any, n: int, where: str) -> Sequence[int]:
    good = isinstance(given, list) and all(isinstance(v, int) and not isinstance(v, bool) for v in given)
    if not good or any(not 0 <= v < n for v in given):
        msg = f"collective file {where}: must be a list of vertices 0..{n - 1}"
        raise BadInput(msg)
    return list(given)

"""Collectives as chunks that ranks hold and need; named ones and those of files."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated

import msgspec
import numpy as np

from opticoll.errors import BadInput, refuse
from opticoll.instances.readers import reading
from opticoll.instances.readers.reading import PREFIX, read_pinned
from opticoll.nearest_names import nearest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import ArrayLike

    from opticoll.instances.topology import I64

    Chunks = Callable[[I64, int, int], tuple[int, I64, I64]]


#: Maximum number of (chunk, vertex) pairs in Pre or Post.
MOST_PAIRS = 20_000_000


@dataclass(frozen=True, eq=False)
class Collective:
    """Pre- and postconditions over ``chunks`` chunks and ``n`` vertices.

    Parameters
    ----------
    name
        Name in records and messages.
    n, chunks
        Numbers of vertices and chunks.
    pre, post
        Distinct pairs (chunk, vertex), sorted, ``(P, 2)`` and ``(Q, 2)``.
    summing
        Whether Pre contains contributions to sums (see the module docstring) or copies.

    Raises
    ------
    BadInput
        For a pair out of range, or a chunk of Post without a holder in Pre.
    """

    name: str
    n: int
    chunks: int
    pre: I64
    post: I64
    summing: bool = False

    def __post_init__(self) -> None:
        for column in ("pre", "post"):
            pairs = _pairs(getattr(self, column), self, column)
            pairs.setflags(write=False)
            object.__setattr__(self, column, pairs)
        held = np.zeros(self.chunks, dtype=bool)
        held[self.pre[:, 0]] = True
        missing = self.post[~held[self.post[:, 0]]]
        if missing.size:
            chunk, vertex = missing[0].tolist()
            msg = (
                f"collective {self.name!r}: vertex {vertex} requires chunk {chunk}, which no vertex holds; add a holder"
            )
            raise BadInput(msg)

    @cached_property
    def deliveries(self) -> I64:
        """Pairs (chunk, vertex) of Post that are not in Pre, sorted, ``(D, 2)``: the required receptions."""
        return self.post[~np.isin(self.key(self.post), self.key(self.pre))]

    def key(self, pairs: I64) -> I64:
        """Number (chunk, vertex) pairs as ``chunk n + vertex``."""
        return pairs[:, 0] * self.n + pairs[:, 1]

    @cached_property
    def holders(self) -> I64:
        """Number of vertices that hold each chunk at the start, ``(chunks,)``."""
        return np.bincount(self.pre[:, 0], minlength=self.chunks)

    @cached_property
    def spread(self) -> I64:
        """Number of vertices that must receive each chunk, ``(chunks,)``."""
        return np.bincount(self.deliveries[:, 0], minlength=self.chunks)

    def relabelled(self, order: ArrayLike) -> Collective:
        """Rename vertices: vertex ``v`` becomes ``order[v]``."""
        new = np.asarray(order, dtype=np.int64)

        def renamed(pairs: I64) -> I64:
            return np.column_stack([pairs[:, 0], new[pairs[:, 1]]])

        return Collective(self.name, self.n, self.chunks, renamed(self.pre), renamed(self.post), self.summing)


@dataclass(frozen=True)
class Phase:
    """A part of a collective that is scheduled separately, as copies.

    ``backwards``: the schedule of ``copying`` is run backwards in time, against the arcs, with sums instead of copies.
    """

    copying: Collective
    backwards: bool


def phases(collective: Collective) -> tuple[Phase, ...]:
    """Decompose a collective into phases.

    Copies are one phase. Sums with one target per chunk are the spreading of that chunk from its target, run backwards.
    Chunks with k > 1 targets are summed at the ``c mod k``-th target of chunk c and copied from there, which makes an
    all-reduce a reduce-scatter followed by an all-gather. If some targets contribute, the k targets are those: before
    the sum is at one of them, no other vertex has it. A phase that delivers nothing is left out, unless both do.
    """
    if not collective.summing:
        return (Phase(collective, backwards=False),)
    own = np.isin(collective.key(collective.post), collective.key(collective.pre))
    contributed = np.isin(np.arange(collective.chunks), collective.post[own, 0])
    able = collective.post[own | ~contributed[collective.post[:, 0]]]
    first = np.searchsorted(able[:, 0], np.arange(collective.chunks))
    count = np.bincount(able[:, 0], minlength=collective.chunks)
    summed = np.flatnonzero(count)
    root = able[first[summed] + summed % count[summed], 1]
    roots = np.column_stack([summed, root])
    name, n, chunks = collective.name, collective.n, collective.chunks
    contributors = collective.pre[np.isin(collective.pre[:, 0], summed)]
    gathered = Phase(Collective(name, n, chunks, roots, contributors), backwards=True)
    copied = Phase(Collective(name, n, chunks, roots, collective.post), backwards=False)
    return tuple(phase for phase in (gathered, copied) if len(phase.copying.deliveries)) or (gathered,)


def _pairs(rows: ArrayLike, collective: Collective, name: str) -> I64:
    pairs = np.asarray(rows, dtype=np.int64).reshape(-1, 2)
    limits = (collective.chunks, collective.n)
    for column, kind in enumerate(("chunk", "vertex")):
        out = (pairs[:, column] < 0) | (pairs[:, column] >= limits[column])
        if out.any():
            msg = (
                f"collective {collective.name!r}: {name} contains {kind} {pairs[out, column][0]}; "
                f"use 0..{limits[column] - 1}"
            )
            raise BadInput(msg)
    return np.column_stack(np.divmod(np.unique(collective.key(pairs)), collective.n))


def _fan(chunks: I64, vertices: I64) -> I64:
    """Pair every chunk with every vertex."""
    return np.column_stack([np.repeat(chunks, vertices.size), np.tile(vertices, chunks.size)])


def _from_root(ranks: I64, root: int, pieces: int) -> tuple[int, I64, I64]:
    chunks = np.arange(pieces)
    return pieces, _fan(chunks, ranks[[root]]), _fan(chunks, ranks)


def _scattered(ranks: I64, root: int, pieces: int) -> tuple[int, I64, I64]:
    chunks = np.arange(ranks.size * pieces)
    return chunks.size, _fan(chunks, ranks[[root]]), np.column_stack([chunks, np.repeat(ranks, pieces)])


def _all_gathered(ranks: I64, root: int, pieces: int) -> tuple[int, I64, I64]:
    count, _, own = _scattered(ranks, root, pieces)
    return count, own, _fan(np.arange(count), ranks)


def _exchanged(ranks: I64, root: int, pieces: int) -> tuple[int, I64, I64]:
    p = ranks.size
    chunks = np.arange(p * p * pieces)
    pair = chunks // pieces
    return chunks.size, np.column_stack([chunks, ranks[pair // p]]), np.column_stack([chunks, ranks[pair % p]])


def _backwards(chunks: Chunks) -> Chunks:
    """Exchange Pre and Post."""

    def exchanged(ranks: I64, root: int, pieces: int) -> tuple[int, I64, I64]:
        count, pre, post = chunks(ranks, root, pieces)
        return count, post, pre

    return exchanged


def _all_reduced(ranks: I64, root: int, pieces: int) -> tuple[int, I64, I64]:
    count, _, post = _all_gathered(ranks, root, pieces)
    return count, post, post


_NAMED: dict[str, tuple[Chunks, bool]] = {
    "broadcast": (_from_root, False),
    "scatter": (_scattered, False),
    "gather": (_backwards(_scattered), False),
    "all-gather": (_all_gathered, False),
    "all-to-all": (_exchanged, False),
    "reduce": (_backwards(_from_root), True),
    "reduce-scatter": (_backwards(_all_gathered), True),
    "all-reduce": (_all_reduced, True),
}
#: Names accepted by :func:`collective`.
COLLECTIVES = tuple(_NAMED)
#: Those with a root.
ROOTED = ("broadcast", "scatter", "gather", "reduce")


def collective(name: str, n: int, ranks: ArrayLike | None = None, *, root: int = 0, pieces: int = 1) -> Collective:
    """Build a collective by name.

    Parameters
    ----------
    name
        One of :data:`COLLECTIVES`, or ``file:PATH`` (see :func:`read_collective`).
    n
        Number of vertices of the topology.
    ranks
        Participating vertices, in order; all by default.
    root
        Index of the root among the ranks, for collectives with a root.
    pieces
        Chunks per shard.

    Chunk numbers: piece k of shard i is ``i pieces + k``; of the shard of i for j, ``(i p + j) pieces + k`` (the shard
    of i for itself exists and needs no delivery).

    Raises
    ------
    BadInput
        For an unknown name, ranks that are not distinct vertices, a root or number of pieces out of range, a root of a
        collective that has none, or more (chunk, vertex) pairs than :data:`MOST_PAIRS`.
    """
    if name.startswith(PREFIX):
        for word, value, default in (("root", root, 0), ("pieces", pieces, 1)):
            if value != default:
                refuse(f"collective {name!r}", f"{word}={value} has no effect; the file states all chunks")
        return read_collective(name, n)
    if name not in _NAMED:
        msg = f"no collective {name!r}; {nearest(name, _NAMED)}, or file:PATH"
        raise BadInput(msg)
    members = np.arange(n) if ranks is None else np.asarray(ranks, dtype=np.int64)
    if members.size < 2 or np.unique(members).size < members.size or members.min() < 0 or members.max() >= n:
        refuse(f"collective {name!r}", f"the ranks must be at least 2 distinct vertices of 0..{n - 1}")
    if root and name not in ROOTED:
        refuse(f"collective {name!r}", f"root={root} has no effect; only {', '.join(ROOTED)} have a root")
    if not 0 <= root < members.size:
        refuse(f"collective {name!r}", f"root={root} is out of range; use 0..{members.size - 1}")
    pairs = members.size * members.size * pieces
    if pieces < 1 or pairs > MOST_PAIRS:
        refuse(f"collective {name!r}", f"{pieces} chunks per shard give {pairs} pairs; use 1 to {MOST_PAIRS}")
    make, summing = _NAMED[name]
    chunks, pre, post = make(members, root, pieces)
    return Collective(name, n, chunks, pre, post, summing)


class ChunkEntry(msgspec.Struct, forbid_unknown_fields=True):
    """Vertices that hold a chunk at the start, and those that require it."""

    pre: list[int]
    post: list[int]


class CollectiveFile(msgspec.Struct, forbid_unknown_fields=True):
    """A collective in a JSON file; ``sum`` is whether Pre contains contributions to sums."""

    chunks: Annotated[list[ChunkEntry], msgspec.Meta(min_length=1)]
    name: str = ""
    sum: bool = False


def read_collective(name: str | Path, n: int) -> Collective:
    """Read a collective from a JSON file, given by its path or as ``file:PATH``, pinned or not.

    ``{"name": "...", "sum": false, "chunks": [{"pre": [0], "post": [1, 2]}, ...]}``: vertices by number; ``name`` and
    ``sum`` (default false) are optional.

    Raises
    ------
    BadInput
        For a file that is missing, too large or invalid, and for pairs that :class:`Collective` refuses.
    """
    remedy = 'write a collective as {"chunks": [{"pre": [0], "post": [1, 2]}, ...]}'
    path, text = read_pinned(str(name), "collective file", remedy)
    file = reading.as_struct(reading.parse_json(text, path, remedy), CollectiveFile, f"collective file {path}")
    pre, post = (
        np.array([(c, v) for c, one in enumerate(file.chunks) for v in getattr(one, side)], dtype=np.int64)
        for side in ("pre", "post")
    )
    return Collective((file.name or path.stem)[:80], n, len(file.chunks), pre, post, file.sum)

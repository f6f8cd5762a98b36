r"""Decompose a collective into calls on groups of GPUs by its pre- and post-conditions.

Source  LuMorph, Appendix C (co-scheduling of all-reduces)

A *call* is all chunks of one kind on one set of ranks:

    spread      one rank holds the chunk, all require it              (broadcast, all-gather)
    sum         all ranks contribute, one of them requires the sum    (reduce, reduce-scatter)
    all-reduce  all ranks contribute, all require the sum
    transfer    other copies: one vertex requires a chunk of another (scatter, gather, all-to-all, LayerToLayer), or
                several vertices hold the chunk

Calls that share a GPU conflict. Greedy maximal independent sets of the conflict graph, taken until no call is left, are
batches that run at the same time; the paper stops at a "cover set over the set of GPUs", which may leave calls out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from opticoll.errors import BadInput
from opticoll.formulations.rounds.collectives import MOST_PAIRS, Collective
from opticoll.instances.readers import untrusted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    I64 = NDArray[np.int64]

Kind = Literal["spread", "sum", "all-reduce", "transfer"]
#: Largest file of groups [bytes].
MOST_BYTES = 8_000_000


@dataclass(frozen=True, eq=False)
class Call:
    """Chunks of one kind on one set of ranks.

    Parameters
    ----------
    kind
        See the module.
    ranks
        Vertices that take part, ascending, ``(p,)``.
    chunks
        Numbers of its chunks, ``(k,)``.
    owners
        Position among the ranks of the vertex that holds each chunk at the start (spread, transfer) or requires the sum
        (sum), ``(k,)``; arbitrary for an all-reduce, where chunks are assigned in turn.
    """

    kind: Kind
    ranks: I64
    chunks: I64
    owners: I64


def calls(collective: Collective) -> list[Call]:
    """The calls of a collective in the order of their first chunks; chunks without deliveries are omitted.

    Raises
    ------
    BadInput
        For sums that several, but not all, contributors require.
    """
    pre, post = (_by_chunk(pairs, collective.chunks) for pairs in (collective.pre, collective.post))
    found: dict[tuple[Kind, bytes], list[tuple[int, int]]] = {}
    lacking = np.zeros(collective.chunks, dtype=bool)
    lacking[collective.deliveries[:, 0]] = True
    if collective.summing:
        lacking |= (collective.holders > 1) & (np.bincount(collective.post[:, 0], minlength=collective.chunks) > 0)
    for chunk in np.flatnonzero(lacking).tolist():
        kind, ranks, owner = _kind(collective, chunk, pre[chunk], post[chunk])
        found.setdefault((kind, ranks.tobytes()), []).append((chunk, owner))
    made = []
    for (kind, ranks_key), members in found.items():
        ranks = np.frombuffer(ranks_key, dtype=np.int64)
        chunks, owner = np.array(members, dtype=np.int64).T
        position = np.arange(chunks.size) % ranks.size if kind == "all-reduce" else np.searchsorted(ranks, owner)
        made.append(Call(kind, ranks, chunks, position))
    return made


def _by_chunk(pairs: I64, chunks: int) -> list[I64]:
    """The vertices of every chunk (pairs are sorted)."""
    return np.split(pairs[:, 1], np.searchsorted(pairs[:, 0], np.arange(1, chunks)))


def _kind(collective: Collective, chunk: int, pre: I64, post: I64) -> tuple[Kind, I64, int]:
    """Kind, ranks and the owner (a vertex) of one chunk."""
    if collective.summing:
        ranks = np.union1d(pre, post)
        if post.size == 1:
            return "sum", ranks, int(post[0])
        if pre.size == post.size == ranks.size:
            return "all-reduce", ranks, int(post[0])
        msg = (
            f"collective {collective.name!r}: chunk {chunk} is summed over {pre.size} vertices for {post.size}; "
            "patterns support sums required by one vertex, or by exactly the contributors"
        )
        raise BadInput(msg)
    everyone = np.union1d(pre, post)
    if pre.size == 1 and (post.size > 1 or pre[0] == post[0]):
        return "spread", everyone, int(pre[0])
    return "transfer", everyone, int(pre[0])


# Several all-reduces ------------------------------------------------------------------------------------------


def all_reduces(n: int, groups: Sequence[Sequence[int]], pieces: int = 1, name: str = "all-reduces") -> Collective:
    """One all-reduce on every group of vertices, ``pieces`` chunks for each of its members.

    Raises
    ------
    BadInput
        For a group of fewer than 2 distinct vertices or with a vertex out of range, no group, or too many chunks.
    """
    members = [np.unique(np.asarray(group, dtype=np.int64)) for group in groups]
    for number, (group, given) in enumerate(zip(members, groups, strict=True)):
        if group.size != len(given) or group.size < 2 or group[0] < 0 or group[-1] >= n:
            msg = f"group {number}: must be at least 2 distinct vertices of 0..{n - 1}"
            raise BadInput(msg)
    pairs = sum(group.size**2 for group in members) * pieces
    if not members or pieces < 1 or pairs > MOST_PAIRS:
        msg = f"{len(members)} all-reduces of {pieces} pieces: take between 1 and {MOST_PAIRS} (chunk, vertex) pairs"
        raise BadInput(msg)
    held, chunks = [], 0
    for group in members:
        own = np.arange(chunks, chunks + group.size * pieces)
        held.append(np.column_stack([np.repeat(own, group.size), np.tile(group, own.size)]))
        chunks += own.size
    both = np.concatenate(held)
    return Collective(name, n, chunks, both, both, summing=True)


def random_groups(n: int, count: int, least: int, most: int, seed: int = 0) -> list[list[int]]:
    """``count`` random groups of between ``least`` and ``most`` of n vertices.

    Raises
    ------
    BadInput
        For sizes or counts out of range.
    """
    if count < 1 or not 2 <= least <= most <= n or seed < 0:
        msg = (
            f"{count} random groups of {least} to {most} of {n}, seed {seed}: take at least one, "
            f"2 <= least <= most <= {n}, and a seed of at least 0"
        )
        raise BadInput(msg)
    random = np.random.default_rng(seed)
    sizes = random.integers(least, most, count, endpoint=True)
    return [sorted(random.choice(n, int(size), replace=False).tolist()) for size in sizes]


def read_groups(path: Path, n: int) -> list[list[int]]:
    """Groups from a JSON file: a list of lists of vertices.

    Raises
    ------
    BadInput
        For a file that is missing, too large or invalid.
    """
    groups: Any = untrusted.read_json(path, MOST_BYTES, "write groups of vertices as [[0, 1, 2, 3], [4, 5], ...]")
    good = isinstance(groups, list) and groups and all(
        isinstance(group, list) and all(type(v) is int and 0 <= v < n for v in group) for group in groups
    )  # fmt: skip
    if not good:
        msg = f"groups file {path}: must be a list of lists of vertices 0..{n - 1}"
        raise BadInput(msg)
    return [list(group) for group in groups]


def independent_sets(groups: Sequence[I64], n: int) -> list[list[int]]:
    """Batches of disjoint groups: greedy maximal independent sets until no group is left.

    Each set takes groups in the order of fewest conflicts with the remaining ones.
    """
    member = np.zeros((len(groups), n), dtype=np.int32)
    for number, group in enumerate(groups):
        member[number, group] = 1
    conflict = member @ member.T > 0
    left, batches = list(range(len(groups))), []
    while left:
        degree = conflict[np.ix_(left, left)].sum(axis=1)
        taken: list[int] = []
        for k in np.argsort(degree, kind="stable").tolist():
            if not conflict[left[k], taken].any():
                taken.append(left[k])
        batches.append(sorted(taken))
        left = [group for group in left if group not in set(taken)]
    return batches

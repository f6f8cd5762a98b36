"""Communication patterns of collective algorithms: exchanges, rings, trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Literal

import numpy as np

from opticoll.errors import BadInput
from opticoll.formulations.rounds.segments import offsets, positions

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from opticoll.instances.topology import I64, Mask


#: Most transfers of a pattern.
MOST_TRANSFERS = 20_000_000


@dataclass(frozen=True, eq=False)
class Pattern:
    """Transfers by step.

    Parameters
    ----------
    steps
        Number of steps.
    step, source, target, chunk
        Step counted from 0, vertices and chunk of every transfer, each ``(T,)``, in the order of the steps.
    adds
        Whether the target sums it, ``(T,)``.
    whole
        Whether the transfers of one chunk in a group must share a round: ranks that exchange sums can no longer send
        their own part once they have added the others'.
    group
        ``(T,)``: number of the group within its step; given where ``whole``.
    """

    steps: int
    step: I64
    source: I64
    target: I64
    chunk: I64
    adds: Mask
    whole: bool = False
    group: I64 | None = None

    @property
    def transfers(self) -> int:
        """Number of transfers."""
        return int(self.step.size)

    def taken(self, rows: I64 | Mask) -> Pattern:
        """These transfers, in their order."""
        arrays = {name: getattr(self, name)[rows] for name in ("step", "source", "target", "chunk", "adds")}
        return replace(self, **arrays, group=None if self.group is None else self.group[rows])

    def backwards(self) -> Pattern:
        """The pattern, which sums nothing, backwards in time: every transfer is reversed and adds."""
        when = self.steps - 1 - self.step
        reverse = replace(self, step=when, source=self.target, target=self.source, adds=np.ones_like(self.adds))
        return reverse.taken(np.argsort(when, kind="stable"))

    def then(self, other: Pattern) -> Pattern:
        """Append ``other`` in time."""
        return _joined((self, replace(other, step=other.step + self.steps)), self.steps + other.steps)

    def after(self, steps: int) -> Pattern:
        """The pattern without its first ``steps`` steps."""
        left = self.taken(self.step >= steps)
        return replace(left, steps=self.steps - steps, step=left.step - steps)

    def renamed(self, vertices: ArrayLike, chunk_of: ArrayLike) -> Pattern:
        """Vertex i becomes ``vertices[i]``, chunk c ``chunk_of[c]``."""
        v, c = (np.asarray(a, dtype=np.int64) for a in (vertices, chunk_of))
        return replace(self, source=v[self.source], target=v[self.target], chunk=c[self.chunk])

    def of(self, vertices: ArrayLike, owners: ArrayLike) -> Pattern:
        """The pattern on ``vertices[i]`` for rank i, chunk c being part of the shard of rank ``owners[c]``.

        Raises
        ------
        BadInput
            For more than :data:`MOST_TRANSFERS` transfers.
        """
        place, owner = (np.asarray(a, dtype=np.int64) for a in (vertices, owners))
        count = np.bincount(owner, minlength=place.size)
        _refuse_large(int(count[self.chunk].sum()))
        chunks = np.argsort(owner, kind="stable")
        row, at = positions(offsets(count), self.chunk)
        source, target = place[self.source[row]], place[self.target[row]]
        return replace(self.taken(row), source=source, target=target, chunk=chunks[at])

    def pairs(self, n: int) -> tuple[I64, I64, I64, I64]:
        """Pairs of every step and their payload: step, source, target, number of chunks, each ``(P,)``, sorted."""
        key = (self.step * n + self.source) * n + self.target
        unique, chunks = np.unique(key, return_counts=True)
        step, pair = np.divmod(unique, n * n)
        source, target = np.divmod(pair, n)
        return step, source, target, chunks


def beside(patterns: Sequence[Pattern]) -> Pattern:
    """Run patterns simultaneously, step by step."""
    return _joined(patterns, max(pattern.steps for pattern in patterns))


def _joined(patterns: Sequence[Pattern], steps: int) -> Pattern:
    groups, offset = [], 0
    for pattern in patterns:
        group = np.zeros(pattern.transfers, dtype=np.int64) if pattern.group is None else pattern.group
        groups.append(group + offset)
        offset += int(group.max(initial=-1)) + 1
    arrays = {
        name: np.concatenate([getattr(pattern, name) for pattern in patterns])
        for name in ("step", "source", "target", "chunk", "adds")
    }
    whole = any(pattern.whole for pattern in patterns)
    together = np.concatenate(groups) if whole else None
    return Pattern(steps, **arrays, whole=whole, group=together).taken(np.argsort(arrays["step"], kind="stable"))


def _refuse_large(transfers: int) -> None:
    if transfers > MOST_TRANSFERS:
        msg = f"a pattern of {transfers} transfers is too large (limit {MOST_TRANSFERS}); use fewer ranks or chunks"
        raise BadInput(msg)


def copies(steps: int, *parts: tuple[ArrayLike, ...]) -> Pattern:
    """A pattern of copies from step, source, target and chunk, arrays that are broadcast, sorted by step."""
    rows = [np.broadcast_arrays(*part) for part in parts]
    when, u, v, c = (np.concatenate([np.ravel(row[i]) for row in rows]).astype(np.int64) for i in range(4))
    return Pattern(steps, when, u, v, c, np.zeros(when.size, dtype=bool)).taken(np.argsort(when, kind="stable"))


# Sizes --------------------------------------------------------------------------------------------------------


def factors(p: int, radix: int) -> tuple[int, ...] | None:
    """P as a product of the fewest factors of at most ``radix``, largest first; None if a prime factor is larger.

    Of products of equally many factors, the one whose factors have the smallest sum.
    """
    if p == 1:
        return ()
    best: dict[int, tuple[int, ...] | None] = {1: ()}

    def split(m: int) -> tuple[int, ...] | None:
        if m not in best:
            splits = [
                (d, *rest) for d in range(2, min(radix, m) + 1) if m % d == 0 and (rest := split(m // d)) is not None
            ]
            best[m] = min(splits, key=lambda f: (len(f), sum(f), f)) if splits else None
        return best[m]

    radices = split(p)
    return None if radices is None else tuple(sorted(radices, reverse=True))


def least_steps(p: int, radix: int) -> int:
    """ceil(log_radix p) in exact arithmetic: steps in which one shard can reach p ranks."""
    steps, reached = 0, 1
    while reached < p:
        reached *= radix
        steps += 1
    return steps


# Spreadings ---------------------------------------------------------------------------------------------------


def exchange(radices: Sequence[int], *, near: bool = True) -> Pattern:
    """Recursive exchange on ``prod(radices)`` ranks; ``radices[0]`` belongs to the least significant digit."""
    p = prod(radices)
    _refuse_large(p * (p - 1))
    stride = np.cumprod([1, *radices[:-1]])
    rank = np.arange(p)[:, None, None]
    held, offset = np.zeros(1, dtype=np.int64), np.zeros(p, dtype=np.int64)
    parts = []
    digits = range(len(radices)) if near else range(len(radices) - 1, -1, -1)
    for step, t in enumerate(digits):
        m, s = radices[t], int(stride[t])
        digit = (rank // s) % m
        other = (digit + np.arange(1, m)[None, :, None]) % m
        target = rank + (other - digit) * s
        shard = rank - offset[:, None, None] + held[None, None, :]
        parts.append((step, rank, target, shard))
        held = (held[:, None] + np.arange(m)[None, :] * s).ravel()
        offset += digit[:, 0, 0] * s
    return copies(len(radices), *parts)


def circulant(p: int, radix: int) -> Pattern:
    """Bruck's all-gather on any number of ranks."""
    parts, held, steps = [], 1, 0
    rank = np.arange(p)[:, None]
    while held < p:
        for d in range(1, radix):
            many = min(held, p - d * held)
            if many > 0:
                target = (rank - d * held) % p
                parts.append((steps, rank, target, (rank + np.arange(many)) % p))
        held, steps = min(p, held * radix), steps + 1
    return copies(steps, *parts)


def recursive(
    p: int, radix: int, scheme: Literal["auto", "exchange", "circulant"] = "auto", *, near: bool = True
) -> Pattern:
    """Recursive doubling (radix 2), quadrupling (4), k + 1 for k peers, on p ranks.

    ``auto`` uses the exchange if p factors into the minimum number of steps, else the circulant pattern, which has that
    many for every p.

    Raises
    ------
    BadInput
        For an exchange on a p with a prime factor above the radix.
    """
    _refuse_large(p * (p - 1))
    radices = factors(p, radix)
    if scheme == "exchange" and radices is None:
        msg = (
            f"recursive exchange: {p} ranks have a prime factor above the radix {radix}; use a larger radix (it needs "
            "radix - 1 lasers), or scheme=circulant"
        )
        raise BadInput(msg)
    if radices is not None and (scheme == "exchange" or (scheme == "auto" and len(radices) == least_steps(p, radix))):
        return exchange(radices, near=near)
    return circulant(p, radix)


def ring(p: int) -> Pattern:
    """Ring all-gather: rank i sends to i + 1 in every step."""
    _refuse_large(p * (p - 1))
    step, rank = np.arange(p - 1)[:, None], np.arange(p)[None, :]
    return copies(p - 1, (step, rank, (rank + 1) % p, (rank - step) % p))


def neighbour_exchange(p: int) -> Pattern:
    """Neighbour exchange of an even number of ranks, which swap what they received last; p / 2 steps.

    Step 0 swaps one shard inside the pairs (2i, 2i + 1), every later step two shards with the other neighbour.

    Source  Chen et al., HPC Asia 2005
    """
    _refuse_large(p * (p - 1))
    rank = np.arange(p)
    last, parts = rank[:, None], []
    for step in range(p // 2):
        partner = np.where(rank % 2 == step % 2, rank + 1, rank - 1) % p
        parts.append((step, rank[:, None], partner[:, None], last))
        got = last[partner]
        last = np.concatenate([last, got], axis=1) if step == 0 else got
    return copies(p // 2, *parts)


# Trees --------------------------------------------------------------------------------------------------------


def heap_tree(p: int, arity: int = 2) -> I64:
    """Parents of the complete tree of an arity in heap order, ``(p,)``; the root 0 has -1."""
    parent = (np.arange(p) - 1) // arity
    parent[0] = -1
    return parent


def binomial_tree(p: int) -> I64:
    """Parents of the binomial tree: the rank without its lowest set bit; the root 0 has -1."""
    rank = np.arange(p)
    parent = rank & (rank - 1)
    parent[0] = -1
    return parent


def two_trees(p: int) -> tuple[I64, I64]:
    """Parents of two binary trees, each ``(p,)``; roots have -1. Leaves of one tree are inner vertices of the other.

    The first has ranks 1 .. p - 1 in order (odd ones are leaves) below rank 0 as root; the second is its mirror image
    (even p) or the same moved on by one rank (odd p, where rank 0 is an inner vertex of both).
    """
    place = np.arange(1, p)
    low = place & -place
    parent = np.full(p, -1, dtype=np.int64)
    up = (place - low) | (2 * low)
    down = place - low
    parent[1:] = np.where(up < p, up, down)
    first_tree = parent
    if p % 2 == 0:
        second = np.where(first_tree[::-1] >= 0, p - 1 - first_tree[::-1], -1)
    else:
        second = np.roll(np.where(first_tree >= 0, (first_tree + 1) % p, -1), 1)
    return first_tree, second


def depths(parent: I64) -> I64:
    """Hops of every rank from the root of a tree, ``(p,)``; the root has parent -1."""
    depth, at = np.zeros(parent.size, dtype=np.int64), np.arange(parent.size)
    while (at >= 0).any():
        at = np.where(at >= 0, parent[at], -1)
        depth += at >= 0
    return depth


def tree_spread(parent: I64, owners: ArrayLike, delay: ArrayLike) -> Pattern:
    """Spread chunk c from ``owners[c]`` over a tree: an edge at h hops is used in step ``delay[c] + h``."""
    owner, late = (np.asarray(a, dtype=np.int64) for a in (owners, delay))
    p = parent.size
    depth = depths(parent)
    _refuse_large(owner.size * (p - 1))
    child = np.flatnonzero(parent >= 0)
    roots, which = np.unique(owner, return_inverse=True)
    when, source, target = (np.zeros((roots.size, p - 1), dtype=np.int64) for _ in range(3))
    for k, root in enumerate(roots.tolist()):
        ancestors = [root]
        while parent[ancestors[-1]] >= 0:
            ancestors.append(int(parent[ancestors[-1]]))
        up = np.isin(child, ancestors)
        # Hops from the owner: up to the lowest common ancestor, then down.
        joint = _meeting(parent, depth, ancestors)
        hops = depth[root] + depth - 2 * joint
        source[k] = np.where(up, child, parent[child])
        target[k] = np.where(up, parent[child], child)
        when[k] = hops[source[k]]
    steps = int((when[which] + late[:, None]).max(initial=-1)) + 1
    return copies(steps, (when[which] + late[:, None], source[which], target[which], np.arange(owner.size)[:, None]))


def _meeting(parent: I64, depth: I64, ancestors: Sequence[int]) -> I64:
    """Depth of the lowest common ancestor of every rank and the first of ``ancestors``, ``(p,)``."""
    on_way = np.zeros(parent.size, dtype=bool)
    on_way[list(ancestors)] = True
    at = np.arange(parent.size)
    while not on_way[at].all():
        at = np.where(on_way[at], at, parent[at])
    return depth[at]


def tree_all_reduce(parent: I64, delay: ArrayLike) -> Pattern:
    """Sum every chunk c at the root and spread it from there, delayed by ``delay[c]`` steps.

    A child at depth h sends up in step ``height - h + delay``, after its own children, and receives in step
    ``height + h - 1 + delay``.
    """
    late = np.asarray(delay, dtype=np.int64)
    depth = depths(parent)
    height = int(depth.max())
    child = np.flatnonzero(parent >= 0)
    chunk, late = np.arange(late.size)[:, None], late[:, None]
    _refuse_large(2 * late.size * child.size)
    up = copies(0, (height - depth[child] + late, child, parent[child], chunk))
    down = copies(0, (height + depth[child] - 1 + late, parent[child], child, chunk))
    steps = 2 * height + int(late.max(initial=0))
    return _joined((replace(up, adds=~up.adds), down), steps)


# Whole buffers --------------------------------------------------------------------------------------------------


def whole_exchange(radices: Sequence[int], chunks: int) -> Pattern:
    """All-reduce in which the ranks of a group exchange their whole sums, one step per digit (LuMorph's D&C).

    Sends m - 1 buffers in a step of radix m, but needs half the steps of recursive halving and doubling.
    """
    p = prod(radices)
    _refuse_large(p * sum(m - 1 for m in radices) * chunks)
    stride = np.cumprod([1, *radices[:-1]])
    rank, chunk = np.arange(p)[:, None, None], np.arange(chunks)[None, None, :]
    parts = []
    for number, (m, s) in enumerate(zip(radices, stride.tolist(), strict=True)):
        digit = (rank // s) % m
        other = (digit + np.arange(1, m)[None, :, None]) % m
        parts.append(np.broadcast_arrays(number, rank, rank + (other - digit) * s, chunk, rank - digit * s))
    step, source, target, which, group = (np.concatenate([part[i].ravel() for part in parts]) for i in range(5))
    adds = np.ones(step.size, dtype=bool)
    return Pattern(len(radices), step, source, target, which, adds, whole=True, group=group)

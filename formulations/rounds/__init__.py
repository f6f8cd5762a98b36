r"""Collectives in rounds of optical circuits: collectives, schedules of rounds, and their independent check.

Wavelengths of a one-stage all-to-all on a line or ring of n nodes (OpTree, Lemma 1), with optimal assignments.

Source  OpTree, Lemma 1; ring: Bermond et al., ICALP 1996. Cycle covers of K_n: Bermond, Coudert, Chacon & Tillerot,
        SPAA 2003; matchings: D. Koenig, Math. Annalen 77, 1916

Every ordered pair (u,v) gets a direction and a wavelength; two pairs with the same wavelength and direction share no
arc.

Bounds. Line: the arc between nodes i-1 and i carries i (n-i) pairs, at most floor(n^2/4). Ring: shortest paths take
n floor(n^2/4) arcs in all (n odd: n (1 + ... + p) 2, n even: n p^2) and there are 2n arcs, so ceil(floor(n^2/4)/2).

Assignments that meet the bounds, in closed form.

Line, h = floor(n/2), pairs u < v (the others in mirror image, on the other fibres): a wavelength for every (l,r) with
l < h <= r, which carries the pair itself, the pair (u,v) of the left half with v = l and h + u = r, and the pair (u,v)
of the right half with u = r and n - 1 - v = l. These are disjoint: one ends where the next begins or before.

Ring, n = 2p or 2p + 1, node i opposite to node i + p (i < p), and if n is odd one more node z = 2p:

    i < j < p    i -> j -> i + p -> j + p -> i     two diameters are a rectangle: a full circle clockwise
    i < p        z -> i -> i + p -> z              n odd
    i < p        i -> i + p -> i                   n even; even i clockwise, odd i anticlockwise

and the rectangles and triangles in mirror image anticlockwise. Every wavelength of a direction is a full circle, and
their numbers are p(p-1)/2 + p for n odd, p(p-1)/2 + ceil(p/2) and p(p-1)/2 + floor(p/2) for n even: the bound.

So Lemma 1's ceil(n^2/8) is one too large for every odd n >= 3 (n^2 = 1 modulo 8), and exact for even n.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import BadInput
from opticoll.formulations.model import NotApplicable
from opticoll.instances import readers
from opticoll.instances.readers import PREFIX, pinned, read_pinned
from opticoll.instances.servers import WdmFibres
from opticoll.instances.spec import nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import ArrayLike

    from opticoll.instances.digraph import I64, Mask

    #: (ranks, root, pieces) -> number of chunks, Pre, Post.
    Chunks = Callable[[I64, int, int], tuple[int, I64, I64]]


def offsets(length: ArrayLike) -> I64:
    """Starts of rows with these lengths, ``(rows + 1,)``; the last is the number of entries."""
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(length, dtype=np.int64)])


def positions(start: I64, rows: I64) -> tuple[I64, I64]:
    """Concatenated entries of the selected rows: index into ``rows`` and index into ``entries``."""
    length = np.diff(start)[rows]
    owner = np.repeat(np.arange(length.size), length)
    return owner, np.arange(owner.size) + (start[:-1][rows] - offsets(length)[:-1])[owner]


def select(start: I64, entries: I64, rows: I64) -> tuple[I64, I64]:
    """Start and entries of the selected rows, in that order."""
    return offsets(np.diff(start)[rows]), entries[positions(start, rows)[1]]


#: Maximum number of (chunk, vertex) pairs in Pre or Post.
MOST_PAIRS = 20_000_000
#: Size limit of a collective file [bytes].
MOST_BYTES = 64_000_000


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
    all-reduce a reduce-scatter followed by an all-gather.
    """
    if not collective.summing:
        return (Phase(collective, backwards=False),)
    first = np.searchsorted(collective.post[:, 0], np.arange(collective.chunks))
    count = np.bincount(collective.post[:, 0], minlength=collective.chunks)
    summed = np.flatnonzero(count)
    root = collective.post[first[summed] + summed % count[summed], 1]
    roots = np.column_stack([summed, root])
    name, n, chunks = collective.name, collective.n, collective.chunks
    contributors = collective.pre[np.isin(collective.pre[:, 0], summed)]
    gathered = Phase(Collective(name, n, chunks, roots, contributors), backwards=True)
    if (count <= 1).all():
        return (gathered,)
    return gathered, Phase(Collective(name, n, chunks, roots, collective.post), backwards=False)


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
    return np.unique(pairs, axis=0)


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
        For an unknown name, ranks that are not distinct vertices, a root or number of pieces out of range, or more
        (chunk, vertex) pairs than :data:`MOST_PAIRS`.
    """
    if name.startswith(PREFIX):
        return read_collective(name, n)
    if name not in _NAMED:
        msg = f"no collective {name!r}; {nearest(name, _NAMED)}, or file:PATH"
        raise BadInput(msg)
    members = np.arange(n) if ranks is None else np.asarray(ranks, dtype=np.int64)
    if members.size < 2 or np.unique(members).size < members.size or members.min() < 0 or members.max() >= n:
        msg = f"collective {name!r}: the ranks must be at least 2 distinct vertices of 0..{n - 1}"
        raise BadInput(msg)
    if not 0 <= root < members.size:
        msg = f"collective {name!r}: root={root} is out of range; use 0..{members.size - 1}"
        raise BadInput(msg)
    pairs = members.size * members.size * pieces
    if pieces < 1 or pairs > MOST_PAIRS:
        msg = f"collective {name!r}: {pieces} chunks per shard give {pairs} pairs; use 1 to {MOST_PAIRS}"
        raise BadInput(msg)
    make, summing = _NAMED[name]
    chunks, pre, post = make(members, root, pieces)
    return Collective(name, n, chunks, pre, post, summing)


class CollectiveSpec(str):
    """The name of a collective; ``file:`` names are pinned to the contents of the file.

    See :mod:`opticoll.instances.readers`.
    """

    __slots__ = ()

    def __new__(cls, text: str) -> CollectiveSpec:
        """Pin a file to its current contents."""
        return super().__new__(cls, pinned(str(text), MOST_BYTES))


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
    path, text = read_pinned(str(name), MOST_BYTES, "collective file", remedy)
    document: Any = readers.parse_json(text, path, remedy)
    if not isinstance(document, dict) or not isinstance(document.get("chunks"), list) or not document["chunks"]:
        msg = f'collective file {path}: needs {{"chunks": [{{"pre": [...], "post": [...]}}, ...]}}'
        raise BadInput(msg)
    unknown = set(document) - {"name", "sum", "chunks"}
    if unknown or not isinstance(document.get("sum", False), bool):
        msg = f'collective file {path}: keys are "name", "sum" (true or false) and "chunks"'
        raise BadInput(msg)
    columns: dict[str, list[tuple[int, int]]] = {"pre": [], "post": []}
    for chunk, entry in enumerate(document["chunks"]):
        if not isinstance(entry, dict) or set(entry) != {"pre", "post"}:
            msg = f'collective file {path}: chunk {chunk} must have exactly the keys "pre" and "post"'
            raise BadInput(msg)
        for column, pairs in columns.items():
            pairs += [(chunk, vertex) for vertex in _vertices(entry[column], n, f"{path}: chunk {chunk}, {column}")]
    pre, post = (np.asarray(columns[column], dtype=np.int64).reshape(-1, 2) for column in ("pre", "post"))
    name = document.get("name", path.stem)
    return Collective(str(name)[:80], n, len(document["chunks"]), pre, post, bool(document.get("sum", False)))


def _vertices(entries: Any, n: int, where: str) -> Sequence[int]:
    valid = isinstance(entries, list) and all(isinstance(v, int) and not isinstance(v, bool) for v in entries)
    if not valid or any(not 0 <= v < n for v in entries):
        msg = f"collective file {where}: must be a list of vertices 0..{n - 1}"
        raise BadInput(msg)
    return list(entries)


#: Largest number of nodes whose assignment is listed pair by pair.
MOST_NODES = 2048


def whole_fibres(instance: object, where: str) -> WdmFibres:
    """Return the instance if it is an optical line or ring with all its fibres.

    Raises
    ------
    NotApplicable
        If it is not such an instance.
    """
    if not isinstance(instance, WdmFibres):
        spec = getattr(instance, "spec", type(instance).__name__)
        msg = f"{where}: needs wdm-ring:n=...,wavelengths=... or wdm-line:n=...,wavelengths=..., not {spec}"
        raise NotApplicable(msg)
    if not instance.intact:
        msg = f"{where}: {instance.spec} has fibres or nodes removed, added or scaled; remove the modifiers"
        raise NotApplicable(msg)
    return instance


def lemma_1(n: int, *, ring: bool) -> int:
    """Lemma 1 as printed: ceil(n^2/8) wavelengths on a ring, floor(n^2/4) on a line."""
    return -(-n * n // 8) if ring else n * n // 4


def wavelengths_needed(n: int, *, ring: bool) -> int:
    """Proven minimum: ceil(floor(n^2/4)/2) on a ring, floor(n^2/4) on a line."""
    crossing = n * n // 4
    return -(-crossing // 2) if ring else crossing


def load_bound(n: int, *, ring: bool) -> int:
    """Lower bound from counting arcs, computed from distances rather than from the closed form."""
    distance = np.arange(n, dtype=np.int64)
    if not ring:
        return int((distance * (n - distance)).max(initial=0))
    hops = n * int(np.minimum(distance, n - distance).sum())
    return -(-hops // (2 * n))


@dataclass(frozen=True, eq=False)
class WavelengthAssignment:
    """Direction and wavelength of every ordered pair of n nodes.

    Attributes
    ----------
    source, target
        The pairs, ``(n (n - 1),)``.
    onward
        Whether a pair is routed clockwise (on a line: towards higher numbers).
    colour
        Wavelength within its direction, from 0.
    colours
        Numbers of wavelengths used onward and backward.
    """

    n: int
    source: I64
    target: I64
    onward: Mask
    colour: I64
    colours: tuple[int, int]

    @property
    def wavelengths(self) -> int:
        """Number of wavelengths, the maximum over both directions."""
        return max(self.colours)

    def by_pair(self) -> tuple[Mask, I64]:
        """Direction and wavelength as matrices, ``(n, n)`` each; the diagonal is unused."""
        onward, colour = np.zeros((self.n, self.n), dtype=bool), np.zeros((self.n, self.n), dtype=np.int64)
        onward[self.source, self.target], colour[self.source, self.target] = self.onward, self.colour
        return onward, colour


def assign(n: int, *, ring: bool, mirrored: bool = False) -> WavelengthAssignment:
    """Build the optimal assignment of the module docstring; ``mirrored`` reverses every pair and swaps directions.

    Raises
    ------
    BadInput
        If ``2 <= n <= MOST_NODES`` does not hold.
    """
    if not 2 <= n <= MOST_NODES:
        msg = f"one-stage assignment: n must be from 2 to {MOST_NODES}, not {n}"
        raise BadInput(msg)
    (u, v, colour), (x, y, other) = _circles(n) if ring else _chains(n)
    source, target = np.concatenate([u, y]), np.concatenate([v, x])
    onward = np.concatenate([np.ones(u.size, dtype=bool), np.zeros(x.size, dtype=bool)])
    colours = (int(colour.max(initial=-1)) + 1, int(other.max(initial=-1)) + 1)
    both = np.concatenate([colour, other])
    if mirrored:
        return WavelengthAssignment(n, target, source, ~onward, both, (colours[1], colours[0]))
    return WavelengthAssignment(n, source, target, onward, both, colours)


def _chains(n: int) -> tuple[tuple[I64, I64, I64], tuple[I64, I64, I64]]:
    """Pairs u < v with their wavelengths, for both directions."""
    half = n // 2
    u, v = np.triu_indices(n, k=1)
    left = np.where(u < half, np.where(v >= half, u, v), n - 1 - v)
    right = np.where(v >= half, np.where(u < half, v, u), half + u)
    assigned = (u, v, left * (n - half) + right - half)
    return assigned, assigned


def _circles(n: int) -> tuple[tuple[I64, I64, I64], tuple[I64, I64, I64]]:
    """Pairs (u, v) with their wavelengths: routed clockwise from u to v, and anticlockwise from v to u."""
    p = n // 2
    i, j = np.triu_indices(p, k=1)
    rectangles = i.size
    u = [i, j, i + p, j + p]
    v = [j, i + p, j + p, i]
    colour = [np.arange(rectangles)] * 4
    nodes = np.arange(p)
    if n % 2:
        z = np.full(p, 2 * p)
        sides = (np.concatenate([*u, z, nodes, nodes + p]), np.concatenate([*v, nodes, nodes + p, z]))
        both = (*sides, np.concatenate([*colour, *[rectangles + nodes] * 3]))
        return both, both

    def with_diameters(which: I64) -> tuple[I64, I64, I64]:
        count = rectangles + np.arange(which.size)
        return (
            np.concatenate([*u, which, which + p]),
            np.concatenate([*v, which + p, which]),
            np.concatenate([*colour, count, count]),
        )

    return with_diameters(nodes[::2]), with_diameters(nodes[1::2])


def arcs_taken(n: int, source: I64, target: I64, onward: Mask) -> tuple[I64, I64, I64]:
    """Fibre spans between source and target of every pair, in order.

    Returns
    -------
    span
        All spans, span i lying between nodes i and i + 1 modulo n, in the order in which they are crossed.
    start
        Spans of pair k are ``span[start[k] : start[k + 1]]``.
    owner
        Pair of every span.
    """
    hops = np.where(onward, target - source, source - target) % n
    start = offsets(hops)
    owner = np.repeat(np.arange(source.size), hops)
    step = np.arange(start[-1]) - start[owner]
    span = np.where(onward[owner], source[owner] + step, source[owner] - 1 - step) % n
    return span, start, owner


def conflicts(n: int, pairs: WavelengthAssignment, *, ring: bool) -> int:
    """Number of repeated wavelengths on arcs, plus missing, repeated and (on a line) wrapping pairs."""
    span, _, owner = arcs_taken(n, pairs.source, pairs.target, pairs.onward)
    key = (pairs.colour[owner] * 2 + pairs.onward[owner]) * n + span
    doubled = key.size - np.unique(key).size
    all_pairs = n * (n - 1)
    present = np.unique(pairs.source * n + pairs.target).size
    around = 0 if ring else int((span == n - 1).sum())
    return (
        doubled
        + (all_pairs - present)
        + (pairs.source.size - present)
        + int((pairs.source == pairs.target).sum())
        + around
    )


# Matchings, one for each optical switch ------------------------------------------------------------------------


def matchings(n: int, source: I64, target: I64, colours: int) -> I64:
    """Find a matching for every switch: ``match[q, i]`` is the server to which i sends on switch q, -1 for none.

    Each edge gets a colour that is free at both ends; if there is none, the alternating path of a free colour of each
    end is swapped. O(E n) steps, far fewer in practice.

    Parameters
    ----------
    n
        Number of servers.
    source, target
        Ends of every circuit, parallel ones repeated, ``(E,)``.
    colours
        Number of switches D.

    Raises
    ------
    BadInput
        If a server has more outgoing or incoming circuits than there are switches.
    """
    for name, ends in (("out of", source), ("into", target)):
        degree = np.bincount(ends, minlength=n)
        if degree.max(initial=0) > colours:
            i = int(degree.argmax())
            msg = f"edge colouring: {int(degree[i])} circuits {name} server {i} on {colours} switches; remove some"
            raise BadInput(msg)
    ahead = [[-1] * n for _ in range(colours)]
    back = [[-1] * n for _ in range(colours)]
    free_out, free_in = [(1 << colours) - 1] * n, [(1 << colours) - 1] * n
    for u, v in zip(source.tolist(), target.tolist(), strict=True):
        both = free_out[u] & free_in[v]
        if both:
            bit = both & -both
            c = bit.bit_length() - 1
        else:
            bit, other = free_out[u] & -free_out[u], free_in[v] & -free_in[v]
            c, d = bit.bit_length() - 1, other.bit_length() - 1
            # At v colour c is used and d free: swap the path c, d, c, ... from v. It cannot end in u, where c is free.
            path: list[tuple[int, int, int]] = []
            w = v
            while True:
                x = back[c][w]
                if x < 0:
                    break
                path.append((x, w, c))
                w = ahead[d][x]
                if w < 0:
                    break
                path.append((x, w, d))
            for x, y, colour in path:
                ahead[colour][x] = back[colour][y] = -1
            for x, y, colour in path:
                swapped = d if colour == c else c
                ahead[swapped][x], back[swapped][y] = y, x
            for end in {(0, x) for x, _, _ in path} | {(1, y) for _, y, _ in path}:
                side, node = end
                table = ahead if side == 0 else back
                mask = free_out if side == 0 else free_in
                for colour, owner_bit in ((c, bit), (d, other)):
                    mask[node] = mask[node] & ~owner_bit if table[colour][node] >= 0 else mask[node] | owner_bit
        ahead[c][u], back[c][v] = v, u
        free_out[u] &= ~bit
        free_in[v] &= ~bit
    return np.array(ahead, dtype=np.int64).reshape(colours, n)

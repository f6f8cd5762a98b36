"""Collective algorithms of LuMorph and NCCL as communication patterns.

Source  LuMorph, sections 3.2 and 4, Algorithm 3, Appendices B, C; NCCL (ring, tree)

    recursive           LUMORPH-2 (radix 2), LUMORPH-4 (radix 4), radix k + 1 for k simultaneous peers
    ring                in the order of a Hamiltonian cycle of the mesh where it has one
    neighbour-exchange  pairs of neighbours swap, each with the next and the previous rank in turn (Chen et al., 2005);
                        an even number of ranks
    tree                one binary (or k-ary) tree, pipelined: ``batch`` chunks enter it every step
    double-binary-tree  two trees, chunks alternate between them
    divide-and-conquer  2x2 squares first, then squares exchange with squares (section 3.2), by the prime factors of the
                        numbers of squares per row and column

A *call* is all chunks of one kind on one set of ranks:

    spread      one rank holds the chunk, all require it              (broadcast, all-gather)
    sum         all ranks contribute, one of them requires the sum    (reduce, reduce-scatter)
    all-reduce  all ranks contribute, all require the sum
    transfer    other copies: one vertex requires a chunk of another (scatter, gather, all-to-all, LayerToLayer), or
                several vertices hold the chunk

A call that spreads chunks uses the algorithm's spreading; a sum uses its reverse; an all-reduce uses the reverse, then
the spreading, except that trees sum to their root and spread from there, and that divide-and-conquer may exchange whole
buffers (``whole``). Calls that share a GPU conflict. Greedy maximal independent sets of the conflict graph are batches
that run at the same time (Appendix C); the paper stops at a "cover set over the set of GPUs", which may omit calls.

``layer_to_layer`` takes any collective, by the greedy rounds of Algorithm 3. In a round every receiver picks random
senders among those it has not yet heard from, at most L; each gets one wavelength (a "thin pipe"). As printed, nothing
limits how many receivers pick the same sender, which has only L lasers: a broadcast or scatter to N - 1 GPUs would take
one round. With ``both`` (the default) a sender is picked at most L times per round, receivers choosing in random order;
with ``receivers``, as printed, rounds must be split afterwards. At least max(ceil(sends/L), ceil(receptions/L)) rounds
over all GPUs are needed, which König's theorem attains; the greedy rounds may take more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from opticoll.errors import BadInput, NotApplicable, refuse
from opticoll.formulations.lumorph.mesh_cuts import grid_shape
from opticoll.formulations.parameters import Parameter, read_parameters
from opticoll.formulations.rounds.collectives import Collective, phases
from opticoll.solvers.methods.lumorph.patterns import (
    Pattern,
    beside,
    binomial_tree,
    copies,
    exchange,
    heap_tree,
    neighbour_exchange,
    recursive,
    ring,
    tree_all_reduce,
    tree_spread,
    two_trees,
    whole_exchange,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opticoll.formulations.rounds.round_schedule import Limits
    from opticoll.instances.topology import I64, Topology
    from opticoll.types import Settings

Kind = Literal["spread", "sum", "all-reduce", "transfer"]


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
    number = np.arange(1, collective.chunks)
    pre, post = (np.split(p[:, 1], np.searchsorted(p[:, 0], number)) for p in (collective.pre, collective.post))
    chunks_of: dict[tuple[Kind, bytes], list[tuple[int, int]]] = {}
    lacking = np.zeros(collective.chunks, dtype=bool)
    lacking[collective.deliveries[:, 0]] = True
    if collective.summing:
        lacking |= (collective.holders > 1) & (np.bincount(collective.post[:, 0], minlength=collective.chunks) > 0)
    for chunk in np.flatnonzero(lacking).tolist():
        kind, ranks, owner = _kind(collective, chunk, pre[chunk], post[chunk])
        chunks_of.setdefault((kind, ranks.tobytes()), []).append((chunk, owner))
    result = []
    for (kind, ranks_key), members in chunks_of.items():
        ranks = np.frombuffer(ranks_key, dtype=np.int64)
        chunks, owner = np.array(members, dtype=np.int64).T
        position = np.arange(chunks.size) % ranks.size if kind == "all-reduce" else np.searchsorted(ranks, owner)
        result.append(Call(kind, ranks, chunks, position))
    return result


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


def independent_sets(groups: Sequence[I64], n: int) -> list[list[int]]:
    """Batches of disjoint groups: greedy maximal independent sets until no group remains.

    Each set takes groups in the order of fewest conflicts with the remaining ones.
    """
    member = np.zeros((len(groups), n), dtype=np.int32)
    for number, group in enumerate(groups):
        member[number, group] = 1
    conflict = member @ member.T > 0
    left, batches = list(range(len(groups))), []
    while left:
        degree = conflict[np.ix_(left, left)].sum(axis=1)
        colours: list[int] = []
        for k in np.argsort(degree, kind="stable").tolist():
            if not conflict[left[k], colours].any():
                colours.append(left[k])
        batches.append(sorted(colours))
        left = [group for group in left if group not in set(colours)]
    return batches


# Algorithms ----------------------------------------------------------------------------------------------------

Shape = tuple[int, int] | None


@dataclass(frozen=True)
class Algorithm:
    """A collective algorithm.

    Parameters
    ----------
    name, title
        Name as in the module docstring, and a one-line title.
    make
        ``(call, shape of the grid or None, limits, parameters) -> Pattern`` on vertices and chunks of the collective.
    parameters
        Parameters of ``make``.
    """

    name: str
    title: str
    make: Callable[[Call, Shape, Limits, Settings], Pattern]
    parameters: tuple[Parameter, ...] = field(default=())


def pattern_of(
    algorithm: str, collective: Collective, topology: Topology, limits: Limits, **settings: Any
) -> tuple[Pattern, list[list[int]]]:
    """The pattern of an algorithm for a collective, and the batches of its calls (indices of calls).

    Raises
    ------
    NotApplicable
        If the algorithm does not apply: personal data (all-to-all, scatter, gather), an unsuitable size or grid, or
        more simultaneous peers than lasers.
    BadInput
        For an unknown parameter.
    """
    method = ALGORITHMS[algorithm]
    parameters = read_parameters(method.parameters, settings, algorithm)
    needed = calls(collective)
    if not needed:
        msg = f"{algorithm}: collective {collective.name!r} has no transfers; use a collective with deliveries"
        raise NotApplicable(msg)
    personal = next((call for call in needed if call.kind == "transfer"), None)
    if personal is not None:
        msg = (
            f"{algorithm}: chunk {personal.chunks[0]} of {collective.name!r} is for one vertex or has several holders; "
            "this algorithm spreads or sums over groups: use all-gather, broadcast, reduce-scatter, reduce, "
            "all-reduce, or method layer-to-layer; the index algorithm solves lumorph.forwarded-rounds"
        )
        raise NotApplicable(msg)
    shape = grid_shape(topology)
    patterns = [method.make(call, shape, limits, parameters) for call in needed]
    batches = independent_sets([call.ranks for call in needed], collective.n)
    joined = [beside([patterns[k] for k in batch]) for batch in batches]
    pattern = joined[0]
    for following in joined[1:]:
        pattern = pattern.then(following)
    return pattern, batches


def _composed(call: Call, spreading: Pattern, order: I64, *, backwards: I64 | None = None) -> Pattern:
    """The pattern of a call from a spreading on ranks ``0..p-1``, rank i being ``call.ranks[order[i]]``.

    ``backwards`` is the order for the reversed part, if different.
    """
    ahead = _placed(call, spreading, order)
    if call.kind == "spread":
        return ahead
    back = (ahead if backwards is None else _placed(call, spreading, backwards)).backwards()
    return back if call.kind == "sum" else back.then(ahead)


def _placed(call: Call, spreading: Pattern, order: I64) -> Pattern:
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    return spreading.of(call.ranks[order], place[call.owners]).renamed(np.arange(call.ranks.max() + 1), call.chunks)


def _peers(needed: int, limits: Limits, algorithm: str) -> None:
    ports = limits.ports
    if ports is not None and needed > limits.wavelengths * ports:
        msg = (
            f"{algorithm}: {needed} simultaneous peers need {needed} lasers per GPU, but there are "
            f"{limits.wavelengths * ports}; use a smaller radix or more lasers"
        )
        raise NotApplicable(msg)


def _recursive(call: Call, shape: Shape, limits: Limits, settings: Mapping[str, Any]) -> Pattern:
    radix = settings["radix"]
    p = call.ranks.size
    _peers(min(radix, p) - 1, limits, f"recursive: radix={radix}")
    pattern = recursive(p, radix, settings["scheme"], near=settings["order"] == "near-first")
    return _composed(call, pattern, np.arange(p))


def _ring(call: Call, shape: Shape, limits: Limits, settings: Mapping[str, Any]) -> Pattern:
    order = cycle_order(call.ranks, shape)
    # Reverse the order of the reversed part, so sums and copies use the same circuits in the same direction.
    return _composed(call, ring(call.ranks.size), order, backwards=order[::-1])


def _neighbour_exchange(call: Call, shape: Shape, limits: Limits, settings: Mapping[str, Any]) -> Pattern:
    if call.ranks.size % 2:
        msg = f"neighbour-exchange: ranks swap in pairs, so their number must be even, not {call.ranks.size}; use ring"
        raise NotApplicable(msg)
    return _composed(call, neighbour_exchange(call.ranks.size), cycle_order(call.ranks, shape))


def cycle_order(ranks: I64, shape: Shape) -> I64:
    """Ranks in the order of a Hamiltonian cycle of the grid, ``(p,)``; in ascending order without a grid.

    A grid of at least 2 by 2 with an even side has one: along the first row or column, then back and forth. Others are
    walked back and forth only, with a long closing edge. A subset of the grid keeps this order.
    """
    if shape is None:
        return np.arange(ranks.size)
    rows, columns = shape
    turn = rows % 2 == 1 and columns % 2 == 0
    place = np.arange(rows * columns).reshape(shape)
    grid = place.T if turn else place
    if min(shape) >= 2 and grid.shape[0] % 2 == 0:
        inner = grid[:, 1:].copy()
        inner[1::2] = inner[1::2, ::-1]
        order = np.concatenate([inner.ravel(), grid[::-1, 0]])
    else:
        grid = grid.copy()
        grid[1::2] = grid[1::2, ::-1]
        order = grid.ravel()
    when = np.empty(order.size, dtype=np.int64)
    when[order] = np.arange(order.size)
    return np.argsort(when[ranks], kind="stable")


def _trees(call: Call, parents: Sequence[I64], batch: int) -> Pattern:
    """Assign chunks to the trees in turn; ``batch`` chunks per owner enter each tree in every step."""
    p = call.ranks.size
    which = np.arange(call.chunks.size) % len(parents)
    trees = []
    for number, parent in enumerate(parents):
        mine = np.flatnonzero(which == number)
        if not mine.size:
            continue
        if call.kind == "all-reduce":
            pattern = tree_all_reduce(parent, np.arange(mine.size) // batch)
        else:
            owner = call.owners[mine]
            order = np.argsort(owner, kind="stable")
            turn = np.empty(mine.size, dtype=np.int64)
            first = np.searchsorted(owner[order], np.arange(p))
            turn[order] = np.arange(mine.size) - first[owner[order]]
            pattern = tree_spread(parent, owner, turn // batch)
            pattern = pattern.backwards() if call.kind == "sum" else pattern
        trees.append(pattern.renamed(call.ranks, call.chunks[mine]))
    return beside(trees)


def _batch(settings: Mapping[str, Any], limits: Limits, children: int) -> int:
    """Chunks that enter a tree every step: ``batch``, or as many as the lasers can send to all children at once."""
    batch = int(settings["batch"])
    if batch or limits.load is None:
        return max(batch, 1)
    return max(limits.wavelengths * (limits.ports or 1) * limits.load // max(children, 1), 1)


def _tree(call: Call, shape: Shape, limits: Limits, settings: Mapping[str, Any]) -> Pattern:
    arity = settings["arity"]
    if arity < 0 or arity == 1:
        refuse("tree", f"arity={arity} must be at least 2, or 0 for the binomial tree", NotApplicable)
    p = call.ranks.size
    parent = heap_tree(p, arity) if arity else binomial_tree(p)
    return _trees(call, [parent], _batch(settings, limits, int(np.bincount(parent[1:]).max())))


def _two_trees(call: Call, shape: Shape, limits: Limits, settings: Mapping[str, Any]) -> Pattern:
    return _trees(call, two_trees(call.ranks.size), _batch(settings, limits, 4))


def square_radices(rows: int, columns: int) -> tuple[int, ...]:
    """4 for a square, then the prime factors of the squares along a row, and along a column.

    Raises
    ------
    NotApplicable
        If a side of the grid is odd.
    """
    if rows % 2 or columns % 2:
        msg = f"divide-and-conquer: a grid of {rows}x{columns} tiles is not made of 2x2 squares; use even sides"
        raise NotApplicable(msg)
    return (4, *_primes(columns // 2), *_primes(rows // 2))


def _primes(m: int) -> tuple[int, ...]:
    primes, d = [], 2
    while m > 1:
        while m % d == 0:
            primes.append(d)
            m //= d
        d += 1
    return tuple(primes)


def square_order(rows: int, columns: int) -> I64:
    """Tiles in the order of the radices of :func:`square_radices`, square by square, ``(rows columns,)``."""
    tile = np.arange(rows * columns).reshape(rows // 2, 2, columns // 2, 2)
    return tile.transpose(0, 2, 1, 3).ravel()


def _squares(call: Call, shape: Shape, limits: Limits, settings: Mapping[str, Any]) -> Pattern:
    if shape is None or call.ranks.size != shape[0] * shape[1]:
        msg = "divide-and-conquer: needs all tiles of a grid, such as lightpath:4x4; use recursive for other groups"
        raise NotApplicable(msg)
    radices, order = square_radices(*shape), square_order(*shape)
    if settings["whole"]:
        if call.kind != "all-reduce":
            msg = "divide-and-conquer: whole=true exchanges whole buffers and applies only to all-reduce"
            raise NotApplicable(msg)
        pattern = whole_exchange(radices, call.chunks.size)
        return pattern.renamed(call.ranks[order], call.chunks)
    return _composed(call, exchange(radices), order)


_BATCH = Parameter(
    "batch", int, 0, "chunks that enter a tree every step; 0 for as many as the lasers can send", least=0
)
#: The algorithms by name.
ALGORITHMS: dict[str, Algorithm] = {
    one.name: one
    for one in (
        Algorithm(
            "recursive",
            "Recursive exchange with radix - 1 peers (LUMORPH-2, LUMORPH-4)",
            _recursive,
            (
                Parameter("radix", int, 2, "simultaneous peers + 1: 2 doubles, 4 quadruples", least=2),
                Parameter(
                    "scheme",
                    str,
                    "auto",
                    "mixed-radix exchange, or the circulant pattern for any size",
                    ("auto", "exchange", "circulant"),
                ),
                Parameter(
                    "order", str, "near-first", "order of the partners in an exchange", ("near-first", "far-first")
                ),
            ),
        ),
        Algorithm("ring", "Ring over a Hamiltonian cycle of the mesh", _ring),
        Algorithm("neighbour-exchange", "Pairs of neighbours swap in turn", _neighbour_exchange),
        Algorithm(
            "tree",
            "One pipelined tree",
            _tree,
            (Parameter("arity", int, 2, "children of a rank; 0 for the binomial tree"), _BATCH),
        ),
        Algorithm("double-binary-tree", "Two pipelined binary trees, as in NCCL", _two_trees, (_BATCH,)),
        Algorithm(
            "divide-and-conquer",
            "2x2 squares, then squares with squares",
            _squares,
            (Parameter("whole", bool, False, "all-reduce by exchanging whole buffers, as in the paper"),),
        ),
    )
}


LaserLimit = Literal["both", "receivers"]


def greedy_rounds(sources: I64, targets: I64, lasers: int, *, limit: LaserLimit = "both", seed: int = 0) -> I64:
    """The round in which Algorithm 3 takes each transfer ``sources[k] -> targets[k]``, ``(K,)``."""
    random = np.random.default_rng(seed)
    n = int(max(sources.max(initial=0), targets.max(initial=0))) + 1
    when = np.full(sources.size, -1, dtype=np.int64)
    # Senders of a receiver in random order; those without a free laser wait.
    order = random.permutation(sources.size)
    waiting = {v: order[targets[order] == v].tolist() for v in np.unique(targets).tolist()}
    sender = sources.tolist()
    r = 0
    while waiting:
        free = [lasers if limit == "both" else sources.size] * n
        for v in random.permutation(list(waiting)).tolist():
            picked, postponed = 0, []
            for k in waiting[v]:
                if picked < lasers and free[sender[k]] > 0:
                    free[sender[k]] -= 1
                    picked += 1
                    when[k] = r
                else:
                    postponed.append(k)
            if postponed:
                waiting[v] = postponed
            else:
                del waiting[v]
        r += 1
    return when


def layer_to_layer(collective: Collective, lasers: int, *, limit: LaserLimit = "both", seed: int = 0) -> Pattern:
    """Every delivery directly from a random holder, in greedy rounds; sums are copies run backwards."""
    joined: Pattern | None = None
    random = np.random.default_rng(seed)
    for number, phase in enumerate(phases(collective)):
        copying = phase.copying
        chunk, target = copying.deliveries.T
        first = np.searchsorted(copying.pre[:, 0], chunk)
        source = copying.pre[first + random.integers(0, copying.holders[chunk]), 1]
        when = greedy_rounds(source, target, lasers, limit=limit, seed=seed + number)
        spread = copies(int(when.max(initial=-1)) + 1, (when, source, target, chunk))
        pattern = spread.backwards() if phase.backwards else spread
        joined = pattern if joined is None else joined.then(pattern)
    assert joined is not None
    return joined

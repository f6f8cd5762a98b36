"""Chunked schedules of collectives in steps, and those with copies and sums made from packed trees.

A *move* takes one chunk over a path from one rank to another; all vertices in between are switches, which forward
within the step and store nothing. It copies what the sender holds, or adds it to what the receiver holds:

    all-to-all                  copies along the routes of a pair (:mod:`opticoll.solvers.schedules.link_schedule`)
    all-gather, broadcast       copies along a tree from the shard's rank
    reduce-scatter              sums along a tree towards the shard's rank
    all-reduce                  sums towards the rank of that part of the buffer, then copies from it

Steps are synchronous: a move sends what its sender held before the step. With D chunks a shard, a step takes U_t, the
largest load of an arc [chunks] / (D c_a); the schedule takes sum_t (alpha + beta U_t). Loads count every arc of every
path.

List scheduling: a move is ready when the moves before it in its tree are done; in every step each arc takes as many
chunks as a budget in proportion to its capacity allows, those with the longest remaining path (or with most moves
after them) first. The same is done backwards in time. The schedule with the shortest alpha-beta time over both
directions, both orders and several budgets is used (if large: one direction, fewer budgets); an all-reduce is a
reduce-scatter followed by an all-gather, or both at the same time if that is shorter.

Trees that translations copy (:mod:`opticoll.instances.translations`) are scheduled once: all ranks do in a step
what the first of their orbit does, and an orbit of arcs has room for what its arcs carry together. Schedules are
executed by independent code, :mod:`opticoll.solvers.schedules.moves_execution`.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise, product
from math import lcm
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from opticoll.formulations.flows.worst_cuts import network_of
from opticoll.formulations.rounds.segments import offsets, positions, select
from opticoll.solvers.schedules.schedule_check import FREE_STEPS, Cost

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from opticoll.instances.topology import F64, I64, Mask, Topology
    from opticoll.solvers.schedules.tree_packing import TreePacking


#: Formulations with such schedules, and the name of their collective in files.
COLLECTIVES = {
    "alltoall.all-gather": "allgather",
    "alltoall.broadcast": "broadcast",
    "alltoall.reduce-scatter": "reducescatter",
    "alltoall.all-reduce": "allreduce",
}
#: Default maximum numbers of chunks per shard, in general and of trees for a broadcast, which has few moves.
MOST_CHUNKS, BROADCAST_CHUNKS = 24, 240
#: Part of the time of a broadcast that is lost until all links are busy, and the most moves by which it is so small.
FILLED, MOST_PIPELINED = 0.1, 2_800_000
#: Chunks per step on the slowest arc that list scheduling tries.
BUDGETS = (1, 2, 3, 4, 6, 8, 12)
#: Number of moves up to which shards are cut into more chunks than there are trees.
MANY_MOVES = 240_000
#: Maximum number of moves times schedules tried.
TRIED_MOVES = 400_000
#: Share of the time of both phases that must be saved for them to be scheduled together.
OVERLAP = 0.01
#: Maximum number of moves of both phases for them to be scheduled together.
JOINT_MOVES = 20_000


#: A shard: that of a rank, or in an all-to-all of a pair (source, target), by vertices.
Shard = int | tuple[int, ...]


class Move(NamedTuple):
    """Chunk ``chunk`` of shard ``shard`` goes over ``path``; added to the receiver's, or copied."""

    path: tuple[int, ...]
    shard: Shard
    chunk: int
    adds: bool


@dataclass(frozen=True, eq=False)
class CollectiveSteps:
    """Moves in the order of their steps, in flat arrays.

    Parameters
    ----------
    collective, chunks
        The collective, and the chunks of a shard.
    step
        Step of every move, ascending, ``(moves,)``.
    first, vertices
        Path of move i: ``vertices[first[i] : first[i + 1]]``.
    shard
        Vertices of every move's shard, ``(moves, 2)``: source and target of the pair in an all-to-all, else its rank
        and -1.
    chunk, adds
        Chunk of every move, and whether it is added, ``(moves,)``.
    root, demand
        The vertex of a broadcast, None otherwise; what every pair of an all-to-all sends [shards], None for 1 between
        all ranks.
    """

    collective: str
    chunks: int
    step: I64
    first: I64
    vertices: I64
    shard: I64
    chunk: I64
    adds: Mask
    root: int | None = None
    demand: dict[tuple[int, int], float] | None = None

    @classmethod
    def of(
        cls,
        collective: str,
        chunks: int,
        steps: Sequence[Sequence[Move]],
        root: int | None = None,
        demand: dict[tuple[int, int], float] | None = None,
    ) -> Self:
        """The arrays of moves that are listed by step."""
        moves = list(chain.from_iterable(steps))
        shards = [move.shard if isinstance(move.shard, tuple) else (move.shard, -1) for move in moves]
        return cls(
            collective,
            chunks,
            np.repeat(np.arange(len(steps)), [len(step) for step in steps]),
            offsets([len(move.path) for move in moves]),
            np.array([v for move in moves for v in move.path], dtype=np.int64),
            np.array(shards, dtype=np.int64).reshape(-1, 2),
            np.array([move.chunk for move in moves], dtype=np.int64),
            np.array([move.adds for move in moves], dtype=bool),
            root,
            demand,
        )

    @property
    def moves(self) -> int:
        """Number of moves."""
        return self.step.size

    @property
    def steps(self) -> int:
        """Number of steps, up to the last one with a move."""
        return int(self.step[-1]) + 1 if self.step.size else 0

    def by_step(self) -> Iterator[list[Move]]:
        """The moves of every step."""
        bounds = np.searchsorted(self.step, np.arange(self.steps + 1)).tolist()
        for first, last in pairwise(bounds):
            begin = self.first[first : last + 1]
            walk, at = self.vertices[begin[0] : begin[-1]].tolist(), (begin - begin[0]).tolist()
            shards = self.shard[first:last].tolist()
            rows = zip(
                pairwise(at), shards, self.chunk[first:last].tolist(), self.adds[first:last].tolist(), strict=True
            )
            yield [
                Move(tuple(walk[i:j]), (source, target) if target >= 0 else source, chunk, adds)
                for (i, j), (source, target), chunk, adds in rows
            ]

    def translated(self, images: I64) -> Self:
        """The same moves by all ranks: every one moved by every translation ``(g, n)``."""
        order = np.argsort(np.tile(self.step, len(images)), kind="stable")
        by, move = np.divmod(order, max(self.step.size, 1))
        place, inside = positions(self.first, move)
        return replace(
            self,
            step=self.step[move],
            first=offsets(np.diff(self.first)[move]),
            vertices=images[by[place], self.vertices[inside]],
            shard=np.where(self.shard[move] >= 0, images[by[:, None], self.shard[move]], -1),
            chunk=self.chunk[move],
            adds=self.adds[move],
        )

    def crossings(self) -> tuple[I64, I64, I64]:
        """Move, tail and head of every arc that a move crosses."""
        last = np.zeros(self.vertices.size, dtype=bool)
        last[self.first[1:] - 1] = True
        at = np.flatnonzero(~last)
        move = np.repeat(np.arange(self.moves), np.diff(self.first) - 1)
        return move, self.vertices[at], self.vertices[at + 1]

    def time(self, topology: Topology, cost: Cost = FREE_STEPS) -> float:
        """The alpha-beta time on a topology, parallel arcs together; empty steps take none."""
        if not self.moves:
            return 0.0
        joint = topology.joined()
        move, tail, head = self.crossings()
        arc = np.searchsorted(joint.tail * joint.n + joint.head, tail * joint.n + head)
        cell = self.step[move] * joint.arcs + arc
        amount = None
        if self.demand is not None:
            amount = np.array([self.demand[pair] for pair in map(tuple, self.shard.tolist())])[move]
        load = np.bincount(cell, amount, minlength=self.steps * joint.arcs).reshape(-1, joint.arcs)
        busiest = (load / (self.chunks * joint.capacity)).max(axis=1)
        return cost.time(np.unique(self.step).size, float(busiest.sum()))


@dataclass(frozen=True)
class CollectiveSchedule:
    """A schedule made from a flow or from trees, with their time and its own.

    ``prices`` is the time of the flow that was cut into chunks, for every number of them that was tried.
    """

    steps: CollectiveSteps
    fluid_time: float
    time: float
    alpha_beta_time: float
    prices: dict[int, float] = field(default_factory=dict)


def pair_capacity(topology: Topology) -> dict[tuple[int, int], float]:
    """Capacity between adjacent vertices, summed over parallel arcs."""
    joint = topology.joined()
    ends = zip(joint.tail.tolist(), joint.head.tolist(), strict=True)
    return dict(zip(ends, joint.capacity.tolist(), strict=True))


# List scheduling --------------------------------------------------------------------------------------------------


class Listed(NamedTuple):
    """Moves to schedule, as for :func:`~opticoll.solvers.schedules.schedule_kernels.list_schedule`.

    ``urgencies`` are two orders in which they may be sent.
    """

    first: I64
    arcs: I64
    size: F64
    waiting: I64
    begin: I64
    behind: I64
    urgencies: tuple[I64, I64]

    def scheduled(self, rule: int, limit: F64) -> I64:
        """The step of every move by one of the urgencies, within limits of what arcs send in a step."""
        from opticoll.solvers.schedules.schedule_kernels import list_schedule

        step = np.empty(self.size.size, dtype=np.int64)
        urgency, waiting = self.urgencies[rule], self.waiting.copy()
        list_schedule(self.first, self.arcs, urgency, self.size, waiting, self.begin, self.behind, limit, step)
        return step

    def time(self, step: I64, room: F64, cost: Cost) -> float:
        """Alpha-beta time to 12 digits, for arcs that carry ``room`` in a unit of time."""
        steps, length = int(step.max()) + 1, np.diff(self.first)
        cell = np.repeat(step, length) * room.size + self.arcs
        load = np.bincount(cell, np.repeat(self.size, length), minlength=steps * room.size).reshape(steps, -1)
        return float(f"{cost.time(steps, float((load / room).max(axis=1).sum())):.12g}")


def shortest(trials: Iterable[tuple[Listed, int, F64]], room: F64, cost: Cost) -> tuple[float, Listed, I64]:
    """The shortest of list schedules (moves, urgency, limits), of equally short ones that with the fewest steps.

    Returns
    -------
    Its alpha-beta time, the moves and their steps.
    """
    best: tuple[float, int, Listed, I64] | None = None
    for listed, rule, limit in trials:
        step = listed.scheduled(rule, limit)
        time, steps = listed.time(step, room, cost), int(step.max()) + 1
        if best is None or (time, steps) < best[:2]:
            best = (time, steps, listed, step)
    assert best is not None
    return best[0], best[2], best[3]


def per_step(capacity: F64, budget: int | None) -> F64:
    """Chunks that arcs send in a step, ``(m,)``: the budget on the slowest one, on others by their capacity."""
    if budget is None:
        return np.full(capacity.size, np.inf)
    return np.maximum(np.floor(budget * capacity / capacity.min() + 1e-9), 1.0)


# Construction -----------------------------------------------------------------------------------------------------


def best_schedule(
    name: str,
    topology: Topology,
    root: int | None = None,
    *,
    chunks: int | Sequence[int] | None = None,
    cost: Cost = FREE_STEPS,
) -> CollectiveSchedule:
    """Best schedule with this number of chunks per shard, or with one of these numbers; None for the default."""
    if chunks is None:
        most = None if COLLECTIVES[name] == "broadcast" else MOST_CHUNKS
        return schedule_collective(name, topology, root, most=most, cost=cost)
    numbers = (chunks,) if isinstance(chunks, int) else sorted(set(chunks))
    made = (schedule_collective(name, topology, root, chunks=D, cost=cost) for D in numbers)
    return min(made, key=lambda one: one.alpha_beta_time)


def schedule_collective(
    name: str,
    topology: Topology,
    root: int | None = None,
    *,
    most: int | None = 24,
    chunks: int | None = None,
    trees: int | None = None,
    cost: Cost = FREE_STEPS,
) -> CollectiveSchedule:
    """A schedule of formulation ``name`` from packed trees.

    Parameters
    ----------
    name
        One of :data:`COLLECTIVES`.
    topology
        Where it runs.
    root
        The vertex of a broadcast.
    most
        Maximum number of chunks per shard, if ``chunks`` is None; for a broadcast None, which takes so many that little
        of the time is lost until all links are busy.
    chunks
        Chunks per shard.
    trees
        Maximum number of trees per shard, if ``chunks`` is given; fewer trees are simpler but load the network more.
    cost
        Cost model by which the size of steps is chosen.

    Raises
    ------
    NotApplicable
        If the capacities, scaled to whole numbers, are too large.
    """
    collective, more = COLLECTIVES[name], most is None and chunks is None
    most = most or BROADCAST_CHUNKS
    spread, summed = _packings(collective, topology, root, most, chunks, trees)
    if spread is not None and summed is not None and not np.array_equal(spread.images, summed.images):
        spread, summed = spread.expanded(), summed.expanded()
    images = next(packing.images for packing in (spread, summed) if packing is not None)
    per_chunk = topology.num_ranks * (topology.num_ranks - 1) if root is None else topology.num_ranks - 1
    per_chunk *= 1 + (collective == "allreduce")
    if chunks is None:
        chunks = lcm(*(packing.chunks for packing in (spread, summed) if packing is not None))
        chunks *= max(1, min(most // chunks, MANY_MOVES // max(per_chunk * chunks, 1)))
    fluid = _fluid(topology, spread, summed)
    piped = None if spread is None or root is None or cost.alpha else _pipelined(spread, root, chunks, more)
    trials = _Trials(topology, images, chunks, cost)
    results: list[tuple[float, list[list[Move]]]] = []
    if spread is not None and summed is not None:
        sums, copies = trials.best(*_moves(None, summed, chunks)), trials.best(*_moves(spread, None, chunks))
        results.append((sums[0] + copies[0], sums[1] + copies[1]))
    apart = float(sum(packing.time for packing in (spread, summed) if packing is not None))
    few = trees is None and per_chunk * chunks <= JOINT_MOVES * len(images)
    if not results or (few and fluid < apart * (1 - OVERLAP)):
        results.append(trials.best(*_moves(spread, summed, chunks)))
    tried = min(results, key=lambda one: one[0])
    if piped is not None and (time := piped.time(topology)) * cost.beta < tried[0]:
        return CollectiveSchedule(piped, fluid, time, time * cost.beta)
    steps = CollectiveSteps.of(collective, chunks, tried[1], root)
    if len(images) > 1:
        steps = steps.translated(images)
    return CollectiveSchedule(steps, fluid, steps.time(topology), tried[0])


def _pipelined(packing: TreePacking, root: int, chunks: int, more: bool) -> CollectiveSteps:
    """Broadcasts along all trees, one after the other: in a step, every arc of a tree carries the next chunk.

    No step takes longer than the trees themselves; in D - 1 of them, for the depth D of the trees, some links wait.
    If there may be ``more`` chunks, there are so many that this is a tenth of the steps.
    """
    trees = [tree.paths for tree in packing.trees for _ in range(tree.count)]
    paths, tree = [path for hops in trees for path in hops], np.repeat(np.arange(len(trees)), [len(h) for h in trees])
    depth: list[int] = []
    for hops in trees:
        reached = {root: -1}
        for path in hops:
            reached[path[-1]] = reached[path[0]] + 1
            depth.append(reached[path[-1]])
    rounds = chunks // len(trees)
    if more:
        rounds = max(rounds, int(min(max(depth) / FILLED, MOST_PIPELINED / len(paths))))
    step = (np.array(depth)[:, None] + np.arange(rounds)).ravel()
    order = np.argsort(step, kind="stable")
    move, number = np.divmod(order, rounds)
    length = np.array([len(path) for path in paths])
    first, vertices = select(offsets(length), np.array([v for path in paths for v in path]), move)
    shard, chunk = np.tile([root, -1], (order.size, 1)), number * len(trees) + tree[move]
    none = np.zeros(order.size, dtype=bool)
    return CollectiveSteps("broadcast", rounds * len(trees), step[order], first, vertices, shard, chunk, none, root)


class _Trials:
    """List schedules of moves on a topology, for translations of which all ranks do the images of some moves."""

    def __init__(self, topology: Topology, images: I64, chunks: int, cost: Cost) -> None:
        from opticoll.solvers.schedules.translated_trees import JointOrbits

        network = network_of(topology, (1,) * topology.num_ranks)
        orbits = JointOrbits(network, images)
        ends = zip(network.tail.tolist(), network.head.tolist(), strict=True)
        #: The number of every arc's orbit, and what an orbit carries for each of the moves that have images.
        self.place = dict(zip(ends, orbits.label.tolist(), strict=True))
        self.capacity = np.array([float(c * network.unit / len(images)) for c in orbits.room])
        self.chunks, self.cost = chunks, cost

    def best(self, moves: list[Move], before: list[list[int]]) -> tuple[float, list[list[Move]]]:
        """Alpha-beta time and steps of the best schedule tried."""
        after: list[list[int]] = [[] for _ in moves]
        for i, needed in enumerate(before):
            for j in needed:
                after[j].append(i)
        order, arcs = range(len(moves)), [[self.place[arc] for arc in pairwise(move.path)] for move in moves]
        number = np.array([move.chunk for move in moves])
        ahead = _listed(arcs, before, after, order[::-1], number)
        back = _listed([way[::-1] for way in arcs], after, before, order, number)
        allowed = max(TRIED_MOVES // max(len(moves), 1), 2)
        ways = (back, ahead) if all(move.adds for move in moves) else (ahead, back)  # copies spread, sums come together
        trials = list(product(ways, BUDGETS, (0, 1)))
        if allowed < len(trials):
            trials = list(product(ways[:1], BUDGETS, (0, 1)))
        tried = ((way, rule, per_step(self.capacity, budget)) for way, budget, rule in trials[:allowed])
        time, way, step = shortest(tried, self.chunks * self.capacity, self.cost)
        listed: list[list[Move]] = [[] for _ in range(int(step.max()) + 1)]
        for move, number in zip(moves, (step if way is ahead else step.max() - step).tolist(), strict=True):
            listed[number].append(move)
        return time, listed


def _listed(
    arcs: list[list[int]], before: list[list[int]], after: list[list[int]], order: Sequence[int], number: I64
) -> Listed:
    """Moves of chunks ``number`` over these arcs, those before and after each; ``order`` begins at the ends.

    The urgencies are the longest path from every move to an end, of equals the lower chunk; and the number of moves
    after it.
    """
    depth, count = [0] * len(arcs), [0] * len(arcs)
    for i in order:
        for j in before[i]:
            depth[j] = max(depth[j], depth[i] + 1)
            count[j] += count[i] + 1
    first, begin = (offsets(list(map(len, lists))) for lists in (arcs, after))
    crossed, behind = (np.array(list(chain.from_iterable(lists)), dtype=np.int64) for lists in (arcs, after))
    rules = np.array(depth) * (int(number.max()) + 1) - number, np.array(count)
    long, many = (np.unique(rule, return_inverse=True)[1] for rule in rules)
    waiting = np.array(list(map(len, before)))
    return Listed(first, crossed, np.ones(len(arcs)), waiting, begin, behind, (long, many))


def _packings(
    collective: str, topology: Topology, root: int | None, most: int, exact: int | None, trees: int | None
) -> tuple[TreePacking | None, TreePacking | None]:
    """Trees for the copies, and trees of the reversed topology for the sums; both with the same number of chunks."""
    from opticoll.formulations.flows.worst_cuts import reversed_arcs
    from opticoll.solvers.schedules.tree_packing import pack, pack_dividing

    weight = None if root is None else tuple(int(v == root) for v in topology.terminals.tolist())
    back = reversed_arcs(topology)
    copies, sums = collective != "reducescatter", collective in {"reducescatter", "allreduce"}
    if exact is not None:
        spread = pack_dividing(topology, weight, exact, trees) if copies else None
        return spread, pack_dividing(back, None, exact, trees) if sums else None
    spread = pack(topology, weight, most) if copies else None
    summed = pack(back, None, most) if sums else None
    if spread is not None and summed is not None and lcm(spread.chunks, summed.chunks) > most:
        chunks = max(spread.chunks, summed.chunks)
        return pack_dividing(topology, None, chunks), pack_dividing(back, None, chunks)
    return spread, summed


def _fluid(topology: Topology, spread: TreePacking | None, summed: TreePacking | None) -> float:
    """Time of the trees when all of them are used at the same time."""
    joint, load = topology.joined(), np.zeros(topology.n**2)
    for packing, backwards in ((spread, False), (summed, True)):
        if packing is not None:
            load += packing.load(backwards=backwards) / packing.chunks
    return float((load[joint.tail * joint.n + joint.head] / joint.capacity).max())


def _moves(spread: TreePacking | None, summed: TreePacking | None, chunks: int) -> tuple[list[Move], list[list[int]]]:
    """All moves, and for each the moves that come before it."""
    moves: list[Move] = []
    before: list[list[int]] = []
    last: dict[tuple[int, int], list[int]] = defaultdict(list)  # sums that complete a chunk at its rank
    for packing, adds in ((summed, True), (spread, False)):
        used: dict[int, int] = defaultdict(int)
        if packing is None:
            continue
        for tree in packing.trees:
            for _ in range(tree.count * (chunks // packing.chunks)):
                chunk = used[tree.root]
                used[tree.root] += 1
                if adds:
                    into: dict[int, list[int]] = defaultdict(list)
                    for path in reversed(tree.paths):
                        into[path[0]].append(len(moves))
                        before.append(into[path[-1]])
                        moves.append(Move(path[::-1], tree.root, chunk, True))
                    last[tree.root, chunk] = into[tree.root]
                else:
                    reached = {tree.root: last[tree.root, chunk]}
                    for path in tree.paths:
                        before.append(reached[path[0]])
                        reached[path[-1]] = [len(moves)]
                        moves.append(Move(path, tree.root, chunk, False))
    return moves, before

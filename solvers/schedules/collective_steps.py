"""Chunked schedules of collectives in steps: executed, and those with copies and sums made from packed trees.

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

The execution (:func:`run_moves`) replays contributions. Every rank holds, for every chunk, a set of ranks whose
contributions are summed in it; a sum of two sets that share a rank counts that rank twice and is refused.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cache, partial
from heapq import heapify, heappop, heappush
from itertools import chain, pairwise, permutations, product
from math import lcm
from typing import TYPE_CHECKING, NamedTuple

from opticoll.solvers.schedules.link_schedule import pair_capacity
from opticoll.solvers.schedules.schedule_check import ScheduleCheck, refused

if TYPE_CHECKING:
    from collections.abc import Sequence, Set

    from opticoll.instances.topology import Topology
    from opticoll.solvers.schedules.link_schedule import LinkSchedule
    from opticoll.solvers.schedules.tree_packing import PackedTree, TreePacking


#: Formulations with such schedules, and the name of their collective in files.
COLLECTIVES = {
    "alltoall.all-gather": "allgather",
    "alltoall.broadcast": "broadcast",
    "alltoall.reduce-scatter": "reducescatter",
    "alltoall.all-reduce": "allreduce",
}
#: Default maximum numbers of chunks per shard, in general and for a broadcast, which has few moves.
MOST_CHUNKS, BROADCAST_CHUNKS = 24, 240
#: Chunks per step on the slowest arc that list scheduling tries.
BUDGETS = (1, 2, 3, 4, 6, 8, 12)
#: Number of moves up to which shards are cut into more chunks than there are trees.
MANY_MOVES = 240_000
#: Maximum number of moves times schedules tried.
TRIED_MOVES = 400_000
#: Maximum number of queued moves skipped in a step because an arc on their path is full.
BLOCKED = 64
#: Share of the time of both phases that must be saved for them to be scheduled together.
OVERLAP = 0.01
#: Maximum number of moves of both phases for them to be scheduled together.
JOINT_MOVES = 20_000


#: A shard: that of a rank, or in an all-to-all of a pair (source, target), by vertices.
Shard = int | tuple[int, int]


class Move(NamedTuple):
    """Chunk ``chunk`` of shard ``shard`` goes over ``path``; added to the receiver's, or copied."""

    path: tuple[int, ...]
    shard: Shard
    chunk: int
    adds: bool


@dataclass(frozen=True, eq=False)
class CollectiveSteps:
    """Moves by step.

    ``root`` is the vertex of a broadcast, None otherwise; ``demand`` what every pair of an all-to-all sends [shards],
    None for 1 between all ranks.
    """

    collective: str
    chunks: int
    steps: list[list[Move]]
    root: int | None = None
    demand: dict[tuple[int, int], float] | None = None

    @property
    def moves(self) -> int:
        """Number of moves."""
        return sum(map(len, self.steps))

    def time(self, capacity: dict[tuple[int, int], float], alpha: float = 0.0, beta: float = 1.0) -> float:
        """The alpha-beta time on arcs of these capacities; empty steps take none."""
        total, demand = 0.0, self.demand
        for step in filter(None, self.steps):
            load: dict[tuple[int, int], float] = defaultdict(float)
            for path, shard, _, _ in step:
                amount = 1.0 if demand is None else demand[shard]  # type: ignore[index]
                for arc in pairwise(path):
                    load[arc] += amount
            total += alpha + beta * max(q / (self.chunks * capacity[arc]) for arc, q in load.items())
        return total


def moves_of(schedule: LinkSchedule) -> CollectiveSteps:
    """A link schedule as moves between ranks."""
    rows, paths = schedule.moves()
    steps: list[list[Move]] = [[] for _ in range(schedule.steps)]
    for i, (step, u, v, source, target, chunk) in enumerate(rows.tolist()):
        steps[step].append(Move(paths.get(i, (u, v)), (source, target), chunk, False))
    return CollectiveSteps("alltoall", schedule.chunks, steps, demand=schedule.amount)


class CollectiveSchedule(NamedTuple):
    """A schedule made from trees, with the time of the trees, the bound that they attain, and its own time."""

    steps: CollectiveSteps
    fluid_time: float
    time: float
    alpha_beta_time: float


# Construction -----------------------------------------------------------------------------------------------------


def best_schedule(
    name: str,
    topology: Topology,
    root: int | None = None,
    *,
    chunks: int | Sequence[int] | None = None,
    alpha: float = 0.0,
    beta: float = 1.0,
) -> CollectiveSchedule:
    """Best schedule with this number of chunks per shard, or with one of these numbers; None for the default."""
    if chunks is None:
        most = BROADCAST_CHUNKS if COLLECTIVES[name] == "broadcast" else MOST_CHUNKS
        return schedule_collective(name, topology, root, most=most, alpha=alpha, beta=beta)
    numbers = (chunks,) if isinstance(chunks, int) else sorted(set(chunks))
    made = (schedule_collective(name, topology, root, chunks=D, alpha=alpha, beta=beta) for D in numbers)
    return min(made, key=lambda one: one.alpha_beta_time)


def schedule_collective(
    name: str,
    topology: Topology,
    root: int | None = None,
    *,
    most: int = 24,
    chunks: int | None = None,
    trees: int | None = None,
    alpha: float = 0.0,
    beta: float = 1.0,
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
        Maximum number of chunks per shard, if ``chunks`` is None.
    chunks
        Chunks per shard.
    trees
        Maximum number of trees per shard, if ``chunks`` is given; fewer trees are simpler but load the network more.
    alpha, beta
        Cost model by which the size of steps is chosen.

    Raises
    ------
    NotApplicable
        If the capacities, scaled to whole numbers, are too large.
    """
    collective = COLLECTIVES[name]
    spread, summed = _packings(collective, topology, root, most, chunks, trees)
    per_chunk = topology.num_ranks * (topology.num_ranks - 1) if root is None else topology.num_ranks - 1
    per_chunk *= 1 + (collective == "allreduce")
    if chunks is None:
        chunks = lcm(*(packing.chunks for packing in (spread, summed) if packing is not None))
        chunks *= max(1, min(most // chunks, MANY_MOVES // max(per_chunk * chunks, 1)))
    fluid = _fluid(topology, spread, summed)
    results: list[tuple[float, list[list[Move]]]] = []
    if spread is not None and summed is not None:
        sums = _best(topology, _moves(None, summed, chunks), chunks, alpha, beta)
        copies = _best(topology, _moves(spread, None, chunks), chunks, alpha, beta)
        results.append((sums[0] + copies[0], sums[1] + copies[1]))
    apart = float(sum(packing.time for packing in (spread, summed) if packing is not None))
    few = trees is None and per_chunk * chunks <= JOINT_MOVES
    if not results or (few and fluid < apart * (1 - OVERLAP)):
        results.append(_best(topology, _moves(spread, summed, chunks), chunks, alpha, beta))
    tried = min(results, key=lambda one: one[0])
    steps = CollectiveSteps(collective, chunks, tried[1], root)
    return CollectiveSchedule(steps, fluid, steps.time(pair_capacity(topology)), tried[0])


def _best(
    topology: Topology, tree_moves: tuple[list[Move], list[list[int]]], chunks: int, alpha: float, beta: float
) -> tuple[float, list[list[Move]]]:
    """Alpha-beta time and steps of the best schedule tried."""
    moves, before = tree_moves
    after = _inverted(before)
    number = [move.chunk for move in moves]
    place, capacity = _arcs(topology)
    order, arcs = range(len(moves)), [[place[arc] for arc in pairwise(move.path)] for move in moves]
    ahead = _Direction(before, after, [_ranking(order[::-1], before, count=count) for count in (False, True)], arcs)
    back = _Direction(
        after, before, [_ranking(order, after, count=count) for count in (False, True)], [w[::-1] for w in arcs]
    )
    allowed = max(TRIED_MOVES // max(len(moves), 1), 2)
    ways = (back, ahead) if all(move.adds for move in moves) else (ahead, back)  # copies spread, sums come together
    trials = list(product(ways, BUDGETS, (0, 1)))
    if allowed < len(trials):
        trials = list(product(ways[:1], BUDGETS, (0, 1)))
    best: tuple[float, int, list[list[int]]] | None = None
    for way, budget, rule in trials[:allowed]:
        listed = _listed(capacity, way, way.ranks[rule], number, budget)
        steps = listed if way is ahead else listed[::-1]
        key = (_time([[arcs[i] for i in step] for step in steps], capacity, chunks, alpha, beta), len(steps))
        if best is None or key < best[:2]:
            best = (*key, steps)
    assert best is not None
    return best[0], [[moves[i] for i in step] for step in best[2]]


def _inverted(before: list[list[int]]) -> list[list[int]]:
    """The moves that wait for every move, given those for which it waits."""
    after: list[list[int]] = [[] for _ in before]
    for i, needed in enumerate(before):
        for j in needed:
            after[j].append(i)
    return after


def _arcs(topology: Topology) -> tuple[dict[tuple[int, int], int], list[float]]:
    """Numbers of the pairs of adjacent vertices, and their capacities."""
    joint = pair_capacity(topology)
    return {arc: k for k, arc in enumerate(joint)}, list(joint.values())


class _Direction(NamedTuple):
    """Moves in one direction of time: predecessors and successors, two rankings, the numbers of the arcs of a path."""

    before: list[list[int]]
    after: list[list[int]]
    ranks: list[list[int]]
    arcs: list[list[int]]


def _ranking(order: Sequence[int], before: list[list[int]], *, count: bool = False) -> list[int]:
    """Longest path from every move to an end, or number of moves after it; ``order`` begins at the ends."""
    rank = [0] * len(before)
    for i in order:
        for j in before[i]:
            rank[j] = rank[j] + rank[i] + 1 if count else max(rank[j], rank[i] + 1)
    return rank


def _packings(
    collective: str, topology: Topology, root: int | None, most: int, exact: int | None, trees: int | None
) -> tuple[TreePacking | None, TreePacking | None]:
    """Trees for the copies, and trees of the reversed topology for the sums; both with the same number of chunks."""
    from opticoll.formulations.flows.worst_cuts import reversed_arcs
    from opticoll.solvers.schedules.tree_packing import pack, pack_dividing, pack_into

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
        return pack_into(topology, None, chunks), pack_into(back, None, chunks)
    return spread, summed


def _fluid(topology: Topology, spread: TreePacking | None, summed: TreePacking | None) -> float:
    """Time of the trees when all of them are used at the same time."""
    capacity = pair_capacity(topology)
    load: dict[tuple[int, int], float] = defaultdict(float)
    for packing, backwards in ((spread, False), (summed, True)):
        if packing is None:
            continue
        for tree in packing.trees:
            for path, count in tree.hops:
                for u, v in pairwise(path[::-1] if backwards else path):
                    load[u, v] += count / packing.chunks
    return max(q / capacity[arc] for arc, q in load.items())


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
            for hops in _single(tree, chunks // packing.chunks):
                chunk = used[tree.root]
                used[tree.root] += 1
                if adds:
                    into: dict[int, list[int]] = defaultdict(list)
                    for path in reversed(hops):
                        into[path[0]].append(len(moves))
                        before.append(into[path[-1]])
                        moves.append(Move(path[::-1], tree.root, chunk, True))
                    last[tree.root, chunk] = into[tree.root]
                else:
                    reached = {tree.root: last[tree.root, chunk]}
                    for path in hops:
                        before.append(reached[path[0]])
                        reached[path[-1]] = [len(moves)]
                        moves.append(Move(path, tree.root, chunk, False))
    return moves, before


def _single(tree: PackedTree, copies: int) -> list[list[tuple[int, ...]]]:
    """The trees one by one, ``copies`` of each, with one path for every hop."""
    trees: list[list[tuple[int, ...]]] = [[] for _ in range(tree.count)]
    taken: dict[int, int] = defaultdict(int)
    for path, count in tree.hops:
        for i in range(taken[path[-1]], taken[path[-1]] + count):
            trees[i].append(path)
        taken[path[-1]] += count
    ordered = []
    for paths in trees:
        placed = {tree.root}
        waiting = list(paths)
        hops: list[tuple[int, ...]] = []
        while waiting:
            rest: list[tuple[int, ...]] = []
            for path in waiting:
                (hops if path[0] in placed else rest).append(path)
                if path[0] in placed:
                    placed.add(path[-1])
            waiting = rest
        ordered += [hops] * copies
    return ordered


def _listed(capacity: list[float], way: _Direction, rank: list[int], number: list[int], budget: int) -> list[list[int]]:
    """List scheduling of moves in one direction of time, larger rank first, then lower chunk number."""
    slowest = min(capacity)
    room = [max(int(budget * c / slowest + 1e-9), 1) for c in capacity]
    after, arcs_of = way.after, way.arcs
    waiting = [len(needed) for needed in way.before]
    ready: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for i, count in enumerate(waiting):
        if not count:
            ready[arcs_of[i][0]].append((-rank[i], number[i], i))
    for queue in ready.values():
        heapify(queue)
    steps: list[list[int]] = []
    left = len(arcs_of)
    while left:
        free = room.copy()
        taken: list[int] = []
        for first, queue in ready.items():
            aside: list[tuple[int, int, int]] = []
            while queue and free[first] > 0 and len(aside) < BLOCKED:
                entry = heappop(queue)
                arcs = arcs_of[entry[2]]
                for arc in arcs:
                    if free[arc] <= 0:
                        aside.append(entry)
                        break
                else:
                    taken.append(entry[2])
                    for arc in arcs:
                        free[arc] -= 1
            for entry in aside:
                heappush(queue, entry)
        for i in taken:
            for j in after[i]:
                waiting[j] -= 1
                if not waiting[j]:
                    heappush(ready[arcs_of[j][0]], (-rank[j], number[j], j))
        steps.append(taken)
        left -= len(taken)
    return steps


def _time(steps: list[list[list[int]]], capacity: list[float], chunks: int, alpha: float, beta: float) -> float:
    """Time of steps that are given by the arcs of their moves."""
    total = 0.0
    for step in steps:
        load = Counter(chain.from_iterable(step))
        total += alpha + beta * max((q / (chunks * capacity[arc]) for arc, q in load.items()), default=0.0)
    return total


# Execution --------------------------------------------------------------------------------------------------------


def run_moves(
    schedule: CollectiveSteps, topology: Topology, root: int = 0, *, alpha: float = 0.0, beta: float = 1.0
) -> ScheduleCheck:
    """Execute a schedule; a valid one has metrics ``time`` (alpha-beta), ``steps``, ``transfers``, ``chunks``.

    ``root`` is the rank of a broadcast, counted from 0.
    """
    ranks = topology.terminals.tolist()
    if schedule.collective == "broadcast" and schedule.root != ranks[root]:
        where = f"from vertex {schedule.root}, but the root is {ranks[root]}"
        return refused("collective", f"the file broadcasts {where}; give the root of the file")
    capacity = pair_capacity(topology)
    number = {v: i for i, v in enumerate(ranks)}
    origin = _origins(schedule, ranks)
    sums = schedule.collective in {"reducescatter", "allreduce"}
    held: dict[tuple[int, Shard, int], int] = {}
    wrong_path = cache(partial(_wrong_path, capacity, number.keys()))

    def has(v: int, shard: Shard, chunk: int) -> int:
        """Contributions summed at rank v, one bit per rank."""
        own = held.get((v, shard, chunk))
        return own if own is not None else 1 << number[v] if sums or v == origin[shard] else 0

    for t, step in enumerate(schedule.steps):
        arriving: list[tuple[Move, int]] = []
        for move in step:
            wrong = wrong_path(move.path) or _misplaced(move, schedule, origin.keys())
            u = move.path[0]
            if wrong is None and not (sent := has(u, move.shard, move.chunk)):
                wrong = "not-held", f"{u} sends it before receiving it"
            if wrong is not None:
                msg = f"step {t}: {chunk_name(move.shard, move.chunk)}: {wrong[1]}"
                return refused(wrong[0], msg, rank=u, chunk=move.chunk, step=t)
            arriving.append((move, sent))
        for move, sent in arriving:
            v = move.path[-1]
            own = has(v, move.shard, move.chunk)
            wrong = _miscounted(move, own, sent, ranks)
            if wrong is not None:
                msg = f"step {t}: {chunk_name(move.shard, move.chunk)}: {wrong[1]}"
                return refused(wrong[0], msg, rank=v, chunk=move.chunk, step=t)
            held[v, move.shard, move.chunk] = own | sent if move.adds else sent
    for shard, source in origin.items():
        due = (1 << len(ranks)) - 1 if sums else 1 << number[source]
        ends = [shard[1]] if isinstance(shard, tuple) else [shard] if schedule.collective == "reducescatter" else ranks
        for v, chunk in product(ends, range(schedule.chunks)):
            if (own := has(v, shard, chunk)) != due:
                return _missing(v, shard, chunk, own, due, ranks, sums=sums)
    return ScheduleCheck(
        True,
        metrics={
            "time": schedule.time(capacity, alpha, beta),
            "steps": sum(1 for step in schedule.steps if step),
            "transfers": schedule.moves,
            "chunks": schedule.chunks,
            "ranks": len(ranks),
        },
    )


def _origins(schedule: CollectiveSteps, ranks: list[int]) -> dict[Shard, int]:
    """The rank of every shard of the collective; of an all-to-all, the source of its pair."""
    if schedule.collective == "alltoall":
        pairs = permutations(ranks, 2) if schedule.demand is None else schedule.demand
        return {pair: pair[0] for pair in pairs}
    return {rank: rank for rank in (ranks if schedule.root is None else [schedule.root])}


def chunk_name(shard: Shard, chunk: int) -> str:
    """What messages call a chunk."""
    return f"chunk {chunk} of {f'{shard[0]}->{shard[1]}' if isinstance(shard, tuple) else shard}"


def _miscounted(move: Move, own: int, sent: int, ranks: list[int]) -> tuple[str, str] | None:
    """Why a receiver that has the contributions ``own`` cannot take those ``sent``; None if it can."""
    v = move.path[-1]
    if move.adds and own & sent:
        twice = ranks[(own & sent).bit_length() - 1]
        return "wrong-sum", f"{v} adds it, which counts the contribution of {twice} twice"
    if not move.adds and own & sent == sent:
        return "duplicate", f"{v} receives it, but already has it"
    return None


def _wrong_path(
    capacity: dict[tuple[int, int], float], ranks: Set[int], path: tuple[int, ...]
) -> tuple[str, str] | None:
    """Why no move can take a path; None if one can."""
    for u, v in pairwise(path):
        if (u, v) not in capacity:
            return "no-arc", f"moves {u}->{v}, which is not an arc"
    ends = path[0] in ranks and path[-1] in ranks and path[0] != path[-1]
    if not ends or any(v in ranks for v in path[1:-1]) or len(set(path)) < len(path):
        return "no-route", f"moves over {list(path)[:12]}; a path joins two ranks through switches only"
    return None


def _misplaced(move: Move, schedule: CollectiveSteps, shards: Set[Shard]) -> tuple[str, str] | None:
    """Why a move cannot be one of this collective; None if it can."""
    if move.shard not in shards or move.chunk >= schedule.chunks:
        return "no-chunk", f"a shard has {schedule.chunks} chunks, and only ranks, or pairs that send, have shards"
    if move.adds and schedule.collective not in {"reducescatter", "allreduce"}:
        return "wrong-sum", "is added, but this collective has no sums"
    return None


def _missing(v: int, shard: Shard, chunk: int, own: int, due: int, ranks: list[int], *, sums: bool) -> ScheduleCheck:
    name = chunk_name(shard, chunk)
    if sums:
        lacking = due & ~own
        first = ranks[lacking.bit_length() - 1] if lacking else shard
        msg = f"rank {v}: the sum of {name} lacks the contribution of {first}"
        return refused("wrong-sum", msg, rank=v, chunk=chunk)
    return refused("missing-chunk", f"rank {v}: {name} never arrives", rank=v, chunk=chunk)

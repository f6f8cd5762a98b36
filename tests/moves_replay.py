"""A second execution of schedules in steps, one move after the other, with sets of Python."""

from __future__ import annotations

from itertools import pairwise, permutations
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opticoll.instances import Topology
    from opticoll.solvers.schedules.collective_steps import CollectiveSteps


def replayed(schedule: CollectiveSteps, topology: Topology) -> tuple[str, int | None, int | None]:
    """Reason, rank and chunk of the first violation; an empty reason if the schedule performs its collective."""
    ranks = topology.terminals.tolist()
    arcs = set(zip(topology.tail.tolist(), topology.head.tolist(), strict=True))
    sums = schedule.collective in {"reducescatter", "allreduce"}
    if schedule.collective == "alltoall":
        origin = {pair: pair[0] for pair in permutations(ranks, 2)}
    else:
        origin = {v: v for v in (ranks if schedule.root is None else [schedule.root])}
    held: dict = {}

    def has(v, shard, chunk):
        start = {v} if sums or v == origin[shard] else set()
        return held.get((v, shard, chunk), start)

    for step in schedule.by_step():
        arriving = []
        for move in step:
            u, v, inner = move.path[0], move.path[-1], move.path[1:-1]
            reason = ""
            if not all(arc in arcs for arc in pairwise(move.path)):
                reason = "no-arc"
            elif u == v or not {u, v} <= set(ranks) or set(inner) & set(ranks) or len(set(move.path)) < len(move.path):
                reason = "no-route"
            elif move.shard not in origin or not 0 <= move.chunk < schedule.chunks:
                reason = "no-chunk"
            elif move.adds and not sums:
                reason = "wrong-sum"
            elif not has(u, move.shard, move.chunk):
                reason = "not-held"
            if reason:
                return reason, u, move.chunk
            arriving.append((move, set(has(u, move.shard, move.chunk))))
        for move, sent in arriving:
            v = move.path[-1]
            before = has(v, move.shard, move.chunk)
            if (before & sent) if move.adds else sent <= before:
                return ("wrong-sum" if move.adds else "duplicate"), v, move.chunk
            held[v, move.shard, move.chunk] = before | sent if move.adds else sent
    for shard, source in origin.items():
        ends = [shard[1]] if isinstance(shard, tuple) else [shard] if schedule.collective == "reducescatter" else ranks
        for v in ends:
            for chunk in range(schedule.chunks):
                if has(v, shard, chunk) != (set(ranks) if sums else {source}):
                    return ("wrong-sum" if sums else "missing-chunk"), v, chunk
    return "", None, None

"""Executes link schedules and routes: who holds what after every step, and whether everybody ends with every shard."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING

from formulations.schedules.verdict import Verdict, refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from formulations.schedules.schedule_json import LinkSteps, RouteTable
    from instances.topology import Topology

#: Shares of a pair that add up to 1 within this are complete.
WHOLE = 1e-6


def pair_capacity(topology: Topology) -> dict[tuple[int, int], float]:
    """Capacity from every vertex to its neighbours, parallel arcs together."""
    joint: dict[tuple[int, int], float] = defaultdict(float)
    for u, v, c in zip(topology.tail.tolist(), topology.head.tolist(), topology.capacity.tolist(), strict=True):
        joint[u, v] += c
    return dict(joint)


def run_links(schedule: LinkSteps, topology: Topology, *, alpha: float = 0.0, beta: float = 1.0) -> Verdict:
    """Execute a link schedule; a valid one has metrics ``time`` (alpha-beta), ``steps``, ``transfers``, ``chunks``."""
    capacity = pair_capacity(topology)
    ranks = set(topology.terminals.tolist())
    gathering = schedule.collective == "allgather"
    held: dict[int, set[tuple[int, int, int]]] = defaultdict(set)
    last: dict[tuple[int, int, int], tuple[int, int]] = {}
    time, transfers = 0.0, 0
    for t, step in enumerate(schedule.steps):
        load: dict[tuple[int, int], int] = defaultdict(int)
        arriving: list[tuple[int, tuple[int, int, int]]] = []
        for u, v, chunk in step:
            source, target, number = chunk
            name = f"chunk {number} of {source}" + ("" if gathering else f"->{target}")
            bad = None
            if (u, v) not in capacity:
                bad = ("no-arc", f"{name} moves {u}->{v}, and there is no such arc")
            elif source not in ranks or number >= schedule.chunks or (not gathering and target not in ranks - {source}):
                bad = ("no-chunk", f"{name}: a shard has {schedule.chunks} chunks, and only ranks have shards")
            elif source != u and chunk not in held[u]:
                bad = ("not-held", f"{u} sends {name} to {v} before it has it")
            elif source == v or chunk in held[v]:
                bad = ("duplicate", f"{name} moves {u}->{v}, and {v} has it already")
            if bad is not None:
                return refused(
                    bad[0], f"step {t}: {bad[1]}", rank=v if bad[0] == "duplicate" else u, chunk=number, step=t
                )
            load[u, v] += 1
            arriving.append((v, chunk))
        for v, chunk in arriving:
            if chunk in held[v]:
                msg = f"step {t}: {v} gets chunk {chunk[2]} of {chunk[0]} more than once"
                return refused("duplicate", msg, rank=v, chunk=chunk[2], step=t)
            held[v].add(chunk)
            last[chunk] = (t, v)
        if step:
            time += alpha + beta * max(q / (schedule.chunks * capacity[arc]) for arc, q in load.items())
            transfers += len(step)
    missing = _missing(schedule, topology, held, last)
    if missing is not None:
        return missing
    return Verdict(
        True,
        metrics={
            "time": time, "steps": sum(1 for step in schedule.steps if step), "transfers": transfers,
            "chunks": schedule.chunks, "ranks": len(ranks),
        },
    )  # fmt: skip


def _missing(
    schedule: LinkSteps,
    topology: Topology,
    held: Mapping[int, set[tuple[int, int, int]]],
    last: Mapping[tuple[int, int, int], tuple[int, int]],
) -> Verdict | None:
    ends = topology.terminals.tolist()
    for target in ends:
        for source in ends:
            if source == target:
                continue
            for number in range(schedule.chunks):
                chunk = (source, -1 if schedule.collective == "allgather" else target, number)
                if chunk not in held.get(target, ()):
                    t, v = last.get(chunk, (None, source))
                    msg = f"rank {target}: chunk {number} of {source} never arrives; it was last brought to {v}"
                    return refused("missing-chunk", msg, rank=target, chunk=number, step=t)
    return None


def run_routes(table: RouteTable, topology: Topology) -> Verdict:
    """Check routes and weights; a valid table has metrics ``time`` (busiest link), ``paths``, ``longest_path``."""
    capacity = pair_capacity(topology)
    ends = topology.terminals.tolist()
    ranks = set(ends)
    share: dict[tuple[int, int], float] = defaultdict(float)
    load: dict[tuple[int, int], float] = defaultdict(float)
    for i, route in enumerate(table.routes):
        path, pair = route.path, (route.source, route.target)
        name = f"route {i} ({route.source}->{route.target})"
        if not {*pair} <= ranks or pair[0] == pair[1]:
            return refused("no-route", f"{name}: connects no two ranks", rank=route.source, step=i)
        if len(path) < 2 or (path[0], path[-1]) != pair or len(set(path)) < len(path):
            return refused("no-route", f"{name}: {list(path)[:12]} is no simple path", rank=route.source, step=i)
        amount = route.weight
        if table.chunks is not None and route.chunks is not None:
            amount = route.chunks / table.chunks
            if abs(amount - route.weight) > WHOLE:
                msg = f"{name}: weight {route.weight:g} is not {route.chunks} of {table.chunks} chunks"
                return refused("weights", msg, rank=route.source, step=i)
        for arc in pairwise(path):
            if arc not in capacity:
                return refused("no-arc", f"{name}: there is no arc {arc[0]}->{arc[1]}", rank=arc[0], step=i)
            load[arc] += amount
        share[pair] += amount
    for s in ends:
        for d in ends:
            if s != d and abs(share.get((s, d), 0.0) - 1.0) > WHOLE:
                msg = f"the routes {s}->{d} carry {share.get((s, d), 0.0):g} of the shard"
                return refused("weights", msg, rank=s)
    return Verdict(
        True,
        metrics={
            "time": max((q / capacity[arc] for arc, q in load.items()), default=0.0), "paths": len(table.routes),
            "longest_path": max((len(r.path) - 1 for r in table.routes), default=0), "ranks": len(ends),
            "chunks": table.chunks,
        },
    )  # fmt: skip

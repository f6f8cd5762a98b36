"""Execute schedules of circuits that change, and refuse what circuits cannot do.

Time in shards / link bandwidth. A chunk flows over the circuits of its path at the constant rate amount / (end -
start), from ``start`` to ``end``: the first node of the path holds it at ``start``, the last one at ``end``, nodes
between them never. The simulator knows the problem (ports, delay, demand) and the document, not the solution:

* circuits of a configuration keep to the ports, run both ways unless ``directed``, and begin with the ``start``;
* they are lit from the start to the end of their configuration, but not in the start-up of one in which data flow; in a
  change, which takes at least the delay if it is charged, all are dark, or with ``overlap`` those that are not in both
  configurations;
* at no time circuits from a node to another carry more than 1 each;
* a node sends a chunk when it holds it, along a path of different nodes; with ``relays=step`` over one circuit, if it
  held it before the configuration, or the change, began;
* the chunks of every pair amount to its demand, and all arrive.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from opticoll.solvers.schedules.schedule_check import ScheduleCheck, refused

if TYPE_CHECKING:
    from opticoll.formulations.topology.sequence import TopologySequence
    from opticoll.instances.topology import F64, I64
    from opticoll.solvers.schedules.sequence_schedule import SequenceSchedule


#: Amounts relative to the largest demand, and times relative to the end, up to which a violation is round-off.
AMOUNT, TIME = 1e-6, 1e-9


def run_configurations(stated: SequenceSchedule, data: TopologySequence) -> ScheduleCheck:
    """Execute a schedule; a valid one has metrics ``time``, ``arrived``, ``configurations``, ``transfers``, ``chunks``.

    ``time`` is the end of the last configuration, ``arrived`` when the last chunk arrives.
    """
    if not any(one.transfers for one in stated.configurations):
        return refused("missing-chunk", "nothing is sent")
    for test in (_circuits, _times, _amounts, _held, _rates):
        verdict = test(stated, data)
        if verdict is not None:
            return verdict
    return ScheduleCheck(
        True,
        metrics={
            "time": stated.time,
            "arrived": max(move.end for one in stated.configurations for move in one.transfers),
            "configurations": len(stated.configurations),
            "transfers": stated.transfers,
            "chunks": len(stated.chunks),
        },
    )


def _late(stated: SequenceSchedule) -> float:
    """Time up to which a difference is round-off."""
    return TIME * max(1.0, abs(stated.time))


def _circuits(stated: SequenceSchedule, data: TopologySequence) -> ScheduleCheck | None:
    """Ports, directions and number of the configurations."""
    number, most = len(stated.configurations), data.configurations
    if number > most or (number < most and data.charge == "any"):
        return refused("ports", f"{number} configurations, and the problem has {most}")
    for k, one in enumerate(stated.configurations):
        counts = one.circuits
        if max(counts.sum(axis=0).max(), counts.sum(axis=1).max()) > data.degree:
            u = int((np.maximum(counts.sum(axis=0), counts.sum(axis=1)) > data.degree).argmax())
            return refused(
                "ports", f"node {u} has more than {data.degree} circuits in configuration {k}", rank=u, step=k
            )
        if counts.max() > data.parallel:
            return refused("ports", f"more than {data.parallel} parallel circuits in configuration {k}", step=k)
        if not data.directed and (counts != counts.T).any():
            return refused("ports", f"circuits of configuration {k} run one way; add directed=true", step=k)
    if data.standing is not None and (stated.configurations[0].circuits != data.standing).any():
        return refused("ports", "the first configuration is not the one at the start", step=0)
    return None


def _starting(stated: SequenceSchedule, data: TopologySequence) -> list[float]:
    """Start-up of every configuration: of those in which anything is sent."""
    if data.startup == 0:
        return [0.0] * len(stated.configurations)
    slack = _late(stated)
    start, end = np.array([(move.start, move.end) for one in stated.configurations for move in one.transfers]).T
    used = [bool(((start < one.end - slack) & (end > one.start + slack)).any()) for one in stated.configurations]
    return [data.startup if one else 0.0 for one in used]


def _times(stated: SequenceSchedule, data: TopologySequence) -> ScheduleCheck | None:
    """Order of the configurations, and the delay between them."""
    at, slack = 0.0, _late(stated)
    before: I64 | None = None
    for k, (one, starting) in enumerate(zip(stated.configurations, _starting(stated, data), strict=True)):
        if before is not None and (data.charge == "any" or (one.circuits > before).any()):
            at += data.delay
        if one.start < at - slack:
            return refused("early", f"configuration {k} starts at {one.start:g}, before {at:g}", step=k)
        if one.end < one.start + starting - slack:
            return refused("early", f"configuration {k} ends at {one.end:g}, before its start is over", step=k)
        at, before = one.end, one.circuits
    return None


def _amounts(stated: SequenceSchedule, data: TopologySequence) -> ScheduleCheck | None:
    """The chunks of every pair add up to its demand."""
    total = np.zeros_like(data.demand)
    for source, target, amount in stated.chunks:
        total[source, target] += amount
    wrong = np.abs(total - data.demand) > AMOUNT * float(data.demand.max())
    if not wrong.any():
        return None
    u, v = np.argwhere(wrong)[0].tolist()
    msg = f"the chunks from {u} to {v} amount to {total[u, v]:g}, and the demand is {data.demand[u, v]:g}"
    return refused("demand", msg, rank=u)


def _held(stated: SequenceSchedule, data: TopologySequence) -> ScheduleCheck | None:
    """Every chunk is where it is sent from, and arrives at its target."""
    at = [source for source, _, _ in stated.chunks]
    since = [0.0] * len(at)
    slack = _late(stated)
    begins = sorted({edge for one in stated.configurations for edge in (one.start, one.end)})
    moves = sorted((move for one in stated.configurations for move in one.transfers), key=lambda move: move.start)
    for move in moves:
        c, u = move.chunk, move.path[0]
        if len(set(move.path)) < len(move.path):
            return refused("no-route", f"chunk {c} visits a node of {list(move.path)[:12]} twice", rank=u, chunk=c)
        if not move.start < move.end:
            return refused("early", f"chunk {c} takes no time from {u}", rank=u, chunk=c)
        if move.end > stated.time + slack:  # however slowly it flows, which _rates may round off
            msg = f"{u} sends chunk {c} until {move.end:g}, after the last configuration"
            return refused("dark", msg, rank=u, chunk=c)
        until = move.start
        if data.relays == "step":
            until = begins[max(bisect_right(begins, move.start + slack) - 1, 0)]
            if len(move.path) > 2:
                return refused("relayed", f"chunk {c} takes {len(move.path) - 1} circuits at once", rank=u, chunk=c)
        if at[c] != u or since[c] > until + slack:
            when = f"at {move.start:g}" if data.relays == "pass" else f"before the configuration at {until:g}"
            return refused("not-held", f"{u} does not hold chunk {c} {when}", rank=u, chunk=c)
        at[c], since[c] = move.path[-1], move.end
    for c, (_, target, _) in enumerate(stated.chunks):
        if at[c] != target:
            return refused("missing-chunk", f"chunk {c} ends at {at[c]}, not at {target}", rank=target, chunk=c)
    return None


def _lit(stated: SequenceSchedule, data: TopologySequence) -> tuple[list[float], list[I64]]:
    """Times from which circuits ``(n, n)`` are lit, in ascending order; none before the first."""
    edges: list[float] = []
    circuits: list[I64] = []
    ones = stated.configurations
    for k, (one, starting) in enumerate(zip(ones, _starting(stated, data), strict=True)):
        following = ones[k + 1].circuits if k + 1 < len(ones) else np.zeros_like(one.circuits)
        if starting > 0:
            edges.append(one.start)
            circuits.append(np.zeros_like(one.circuits))
        edges += [one.start + starting, max(one.end, one.start + starting)]
        circuits += [one.circuits, np.minimum(one.circuits, following) if data.overlap else np.zeros_like(following)]
    return edges, circuits


def _rates(stated: SequenceSchedule, data: TopologySequence) -> ScheduleCheck | None:
    """What circuits carry at every time."""
    edges, circuits = _lit(stated, data)
    flows: dict[tuple[int, int], list[tuple[float, float, float]]] = defaultdict(list)
    for one in stated.configurations:
        for move in one.transfers:
            rate = stated.chunks[move.chunk][2] / (move.end - move.start)
            for pair in pairwise(move.path):
                flows[pair].append((move.start, move.end, rate))
    allowed = AMOUNT * float(data.demand.max())
    edge = np.array(edges)
    for (u, v), listed in sorted(flows.items()):
        start, end, rate = np.array(listed).T
        time = np.unique(np.concatenate([start, end, edge]))
        change: F64 = np.zeros(time.size)
        np.add.at(change, np.searchsorted(time, start), rate)
        np.add.at(change, np.searchsorted(time, end), -rate)
        there = np.append(0, [counts[u, v] for counts in circuits])[np.searchsorted(edge, time, side="right")]
        over = np.maximum(np.cumsum(change) - there, 0.0)[:-1] * np.diff(time)
        if over.sum() > allowed:
            worst = int(over.argmax())
            if there[worst] == 0:
                return refused("dark", f"{u} sends to {v} at {time[worst]:g}, when no circuit is set", rank=u)
            msg = f"{there[worst]} circuits from {u} to {v} carry more than 1 each at {time[worst]:g}"
            return refused("rate", msg, rank=u)
    return None

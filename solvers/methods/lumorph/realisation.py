"""Schedule a communication pattern on a topology: routes, wavelengths and rounds, then compaction.

Source  LuMorph, section 4 (lanes), Appendix C ("split this round into two and repeat")

Steps of a pattern follow each other. Within a step every pair of GPUs gets circuits:

    load q         one circuit for every q chunks (Algorithm 1: q = 1)
    load unlimited lanes in proportion to payload: with L lasers and t chunks at the busiest sender or receiver, a pair
                   with x chunks gets max(1, floor(L x / t)) circuits; k equal peers get floor(L / k)

Routes come from Algorithm 2 (:func:`opticoll.solvers.methods.lumorph.overlap_search.min_overlap_routes`) or are random
shortest ones; rounds and wavelengths from :func:`opticoll.solvers.methods.lumorph.assignment.assign_rounds`, or from an
edge colouring where only the GPUs are limiting.

Compaction (:func:`compacted`) starts every transfer as early as possible. In a schedule whose circuits carry one chunk
each, transfers are processed in the order of their rounds. Each moves to the first round after its sender has its
complete payload (a copy, or a sum with every contribution that was added before), in which the sender's laser, the
receiver's photodiode and every arc of its route have room for one wavelength. Routes do not change. A schedule that
sums first and copies then keeps the two parts apart, as Algorithm 1 gives each phase its own rounds; a schedule that
mixes them, an all-reduce on a tree, is left unchanged.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from functools import reduce
from math import gcd
from typing import TYPE_CHECKING, Literal

import numpy as np

from opticoll.errors import NotApplicable
from opticoll.formulations.rounds.round_schedule import RoundSchedule, chained, direct
from opticoll.formulations.rounds.segments import select
from opticoll.solvers.methods.edge_colouring import matchings

if TYPE_CHECKING:
    from collections.abc import Callable

    from opticoll.formulations.flows.path_sets import PathSet
    from opticoll.formulations.rounds.round_schedule import Limits
    from opticoll.instances.topology import I64, Topology
    from opticoll.solvers.methods.lumorph.patterns import Pattern


Routing = Literal["min-overlap", "random"]
Assigned = tuple["I64", "I64", "I64", "I64"]


def realised(
    topology: Topology,
    limits: Limits,
    pattern: Pattern,
    *,
    routing: Routing = "min-overlap",
    seed: int = 0,
    tick: Callable[[], object] = lambda: None,
) -> RoundSchedule:
    """The schedule of a pattern on ``topology`` under ``limits``, see the module.

    ``tick`` is called before every step.

    Raises
    ------
    NotApplicable
        If a pair has no route, or sums that must be exchanged in one round do not fit into it.
    """
    machine = StepCircuits(topology, limits, routing, seed)
    parts: list[RoundSchedule] = []
    cut = np.searchsorted(pattern.step, np.arange(pattern.steps + 1))
    for a, b in zip(cut[:-1].tolist(), cut[1:].tolist(), strict=True):
        tick()
        rows = np.arange(a, b)
        if not rows.size:
            continue
        if pattern.whole and pattern.group is not None:
            parts += machine.in_groups(pattern, rows)
        else:
            parts.append(machine.step(pattern, rows))
    return chained(parts)


class StepCircuits:
    """Routes and assignments of the steps, computed once per set of circuits."""

    def __init__(self, topology: Topology, limits: Limits, routing: Routing, seed: int) -> None:
        self.topology, self.limits, self.routing, self.seed = topology, limits, routing, seed
        self.known: dict[bytes, Assigned] = {}

    def step(self, pattern: Pattern, rows: I64) -> RoundSchedule:
        """Schedule transfers that do not depend on each other."""
        n = self.topology.n
        key = pattern.source[rows] * n + pattern.target[rows]
        order = np.argsort(key, kind="stable")
        pairs, first, chunks = np.unique(key[order], return_index=True, return_counts=True)
        source, target = np.divmod(pairs, n)
        lanes, bundle = self.lanes(source, target, chunks)
        copies = np.repeat(np.arange(pairs.size), lanes)
        when, wave, start, arcs = self.assigned(source[copies], target[copies], bundle)
        # Distribute the chunks of a pair over its requests in the order of their rounds.
        by_round = np.lexsort((when, copies))
        slot = _distributed(chunks, lanes, first)
        request = by_round[slot]
        used = np.zeros(copies.size, dtype=bool)
        used[request] = True
        if self.limits.load is None:
            # All circuits of a pair in a round share the payload of that round.
            busy = np.unique(copies[request] * (int(when.max()) + 1) + when[request])
            used = np.isin(copies * (int(when.max()) + 1) + when, busy)
        used_items = np.flatnonzero(used)
        if not used.all():
            when = when.copy()
            _, when[used_items] = np.unique(when[used_items], return_inverse=True)
        start, arcs = select(start, arcs, np.repeat(used_items, bundle))
        lane = np.tile(np.arange(bundle), used_items.size)
        many, row = np.repeat(used_items, bundle), rows[order]
        return RoundSchedule(
            when[many],
            source[copies[many]],
            target[copies[many]],
            wave[many] * bundle + lane,
            start,
            arcs,
            when[request],
            pattern.source[row],
            pattern.target[row],
            pattern.chunk[row],
            pattern.adds[row],
        )

    def in_groups(self, pattern: Pattern, rows: I64) -> list[RoundSchedule]:
        """Schedule groups that must share a round, as many at a time as fit into one round.

        With limited load only the transfers of one chunk must stay together; they are taken in random order, so
        distant GPUs share a round.

        Raises
        ------
        NotApplicable
            If a single group does not fit.
        """
        assert pattern.group is not None
        _, unit = np.unique(pattern.group[rows], return_inverse=True)
        if self.limits.load is not None:
            _, unit = np.unique(unit * (int(pattern.chunk.max()) + 1) + pattern.chunk[rows], return_inverse=True)
            unit = np.random.default_rng(self.seed).permutation(int(unit.max()) + 1)[unit]
        order = np.argsort(unit, kind="stable")
        rows = rows[order]
        _, first = np.unique(unit[order], return_index=True)
        edge = np.append(first, rows.size)
        parts, first_group, many = [], 0, first.size
        while first_group < first.size:
            many = min(many, first.size - first_group)
            selected = rows[edge[first_group] : edge[first_group + many]]
            part = self.step(pattern, selected)
            if part.rounds == 1:
                parts.append(part)
                first_group, many = first_group + many, many + 1
            elif many > 1:
                many = -(-many // 2)
            else:
                members = np.unique(pattern.source[selected]).tolist()
                msg = (
                    f"the sums that {len(members)} GPUs ({members[0]}, {members[1]}, ...) exchange do not fit into one "
                    "round; use more lasers or waveguides, or whole=false"
                )
                raise NotApplicable(msg)
        return parts

    def lanes(self, source: I64, target: I64, chunks: I64) -> tuple[I64, int]:
        """Number of requests of every pair, and of wavelengths per request."""
        if self.limits.load is not None:
            return -(-chunks // self.limits.load), 1
        busiest = max(int(np.bincount(ends, chunks).max()) for ends in (source, target))
        lasers = self.limits.wavelengths * (self.limits.ports or 1)
        lanes = np.maximum(lasers * chunks // busiest, 1)
        bundle = reduce(gcd, np.unique(lanes).tolist())
        return lanes // bundle, int(bundle)

    def assigned(self, source: I64, target: I64, bundle: int) -> Assigned:
        """Round, bundle of wavelengths and route of every request."""
        key = source.tobytes() + b"|" + target.tobytes() + bytes(str(bundle), "ascii")
        if key not in self.known:
            limits = replace(self.limits, wavelengths=self.limits.wavelengths // bundle, load=1)
            self.known[key] = self._first_fit(source, target, limits)
        return self.known[key]

    def _first_fit(self, source: I64, target: I64, limits: Limits) -> Assigned:
        """Assign rounds and wavelengths on one route each; the lower bound is from the busiest GPU and arc."""
        from opticoll.solvers.methods.lumorph.assignment import assign_rounds

        routes = self._routes(source, target)
        load = np.bincount(routes.arcs, minlength=self.topology.arcs)
        least = int((-(-load // (limits.room(self.topology) * limits.wavelengths))).max())
        if limits.ports is not None:
            busiest = max(int(np.bincount(ends).max()) for ends in (source, target))
            least = max(least, -(-busiest // (limits.wavelengths * limits.ports)))
        assigned = assign_rounds(self.topology, limits, source, target, routes=routes, least=least, seed=self.seed)
        if assigned.rounds > least:
            coloured = self._by_colours(source, target, limits, routes)
            if coloured is not None and int(coloured[0].max()) + 1 < assigned.rounds:
                return coloured
        return assigned.round, assigned.wavelength, assigned.path_start, assigned.path_arcs

    def _routes(self, source: I64, target: I64) -> PathSet:
        from opticoll.solvers.methods.lumorph.overlap_search import min_overlap_routes, shortest_routes

        if self.routing == "random":
            return shortest_routes(self.topology, source, target, np.random.default_rng(self.seed))
        return min_overlap_routes(self.topology, source, target, seed=self.seed).routes

    def _by_colours(self, source: I64, target: I64, limits: Limits, routes: PathSet) -> Assigned | None:
        """Minimum colouring by the GPUs alone (first fit may need more); None if it overloads an arc."""
        ports = limits.ports or 1
        colour = edge_colours(source, target, self.topology.n) // ports
        key, load = np.unique(np.repeat(colour, routes.length) * self.topology.arcs + routes.arcs, return_counts=True)
        if (load > limits.room(self.topology)[key % self.topology.arcs]).any():
            return None
        when, wave = np.divmod(colour, limits.wavelengths)
        return when, wave, routes.start, routes.arcs


def edge_colours(source: I64, target: I64, n: int) -> I64:
    """Colour circuits ``source[k] -> target[k]``, ``(K,)``, with as few colours as the maximum degree."""
    degree = max(int(np.bincount(ends, minlength=n).max()) for ends in (source, target))
    match = matchings(n, source, target, degree)
    colour, u = np.nonzero(match >= 0)
    order = np.lexsort((colour, u * n + match[colour, u]))
    colours = np.empty_like(source)
    colours[np.argsort(source * n + target, kind="stable")] = colour[order]
    return colours


def _distributed(chunks: I64, lanes: I64, first: I64) -> I64:
    """The request that carries every transfer, sorted by pair, distributed evenly in order, ``(T,)``."""
    pair = np.repeat(np.arange(chunks.size), chunks)
    number = np.arange(pair.size) - first[pair]
    offset = np.cumsum(lanes) - lanes
    return np.asarray(offset[pair] + number * lanes[pair] // chunks[pair], dtype=np.int64)


def compacted(
    topology: Topology, limits: Limits, schedule: RoundSchedule, *, tick: Callable[[], object] = lambda: None
) -> RoundSchedule:
    """Start transfers as early as possible, see the module; the unchanged schedule if that saves no round.

    For spreadings, their reverse, and trees, with one chunk on every circuit. If two vertices add each other's sums in
    one round (whole buffers), moving one transfer before the other would count contributions twice.
    """
    sums = int(schedule.transfer_round[schedule.transfer_adds].max(initial=-1)) + 1
    if 0 < sums < schedule.rounds:
        if not schedule.transfer_adds[schedule.transfer_round < sums].all():
            return schedule
        parts = [
            schedule.taken(schedule.circuit_round < sums, schedule.transfer_round < sums),
            schedule.taken(schedule.circuit_round >= sums, schedule.transfer_round >= sums).moved(-sums),
        ]
        return chained([compacted(topology, limits, part, tick=tick) for part in parts])
    n = int(max(schedule.transfer_source.max(initial=0), schedule.transfer_target.max(initial=0))) + 1
    pairs = (
        (schedule.circuit_round, schedule.circuit_source, schedule.circuit_target),
        (schedule.transfer_round, schedule.transfer_source, schedule.transfer_target),
    )
    circuit, transfer = (np.lexsort((target, source, when)) for when, source, target in pairs)
    room = limits.room(topology).tolist()
    spectrum, ports = (1 << limits.wavelengths) - 1, limits.ports
    count: defaultdict[tuple[int, int, int], int] = defaultdict(int)
    full: defaultdict[tuple[int, int], int] = defaultdict(int)
    ready: dict[int, int] = {}
    rounds, waves = np.zeros(circuit.size, dtype=np.int64), np.zeros(circuit.size, dtype=np.int64)
    arcs = schedule.circuit_arcs.max(initial=0) + 1
    start, path = schedule.circuit_start.tolist(), schedule.circuit_arcs.tolist()
    ends = [a.tolist() for a in (schedule.transfer_source, schedule.transfer_target, schedule.transfer_chunk)]
    for i, (k, t) in enumerate(zip(circuit.tolist(), transfer.tolist(), strict=True)):
        if i % 4096 == 0:
            tick()
        s, d, chunk = (column[t] for column in ends)
        needs = [(a, room[a]) for a in path[start[k] : start[k + 1]]]
        if ports is not None:
            needs += [(int(arcs) + s, ports), (int(arcs) + n + d, ports)]
        r = ready.get(chunk * n + s, 0)
        while True:
            occupied = 0
            for item, _ in needs:
                occupied |= full[r, item]
            free = spectrum & ~occupied
            if free:
                break
            r += 1
        w = (free & -free).bit_length() - 1
        for item, most in needs:
            count[r, item, w] += 1
            if count[r, item, w] >= most:
                full[r, item] |= 1 << w
        rounds[i], waves[i] = r, w
        key = chunk * n + d
        ready[key] = max(ready.get(key, 0), r + 1)
    moved = schedule.taken(circuit, transfer)
    shorter = direct(
        rounds,
        moved.transfer_source,
        moved.transfer_target,
        moved.transfer_chunk,
        waves,
        moved.circuit_start,
        moved.circuit_arcs,
        adds=moved.transfer_adds,
    )
    return shorter if shorter.rounds < schedule.rounds else schedule

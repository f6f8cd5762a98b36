r"""Schedule one phase of copies: constructions first, then search, until a lower bound is met.

    exchange    every delivery directly from a holder, by the permutations of
                :mod:`opticoll.solvers.methods.lumorph.constructions`
    ring        all-gather around a ring, same module
    halving     broadcast along a Hamiltonian path, same module
    first fit   directly from a holder, :mod:`opticoll.solvers.methods.lumorph.assignment`
    ejection    the same, packed into fewer rounds
    spreading   copies of copies, :func:`spread`
    ordered     the same on small networks, by ejections, a copy in a later round than its own reception

Spreading works on any topology: every receiver takes from the nearest holder the rarest of its missing chunks, and
circuits are routed when they are chosen (:mod:`opticoll.solvers.methods.lumorph.spreading_kernel`). Every attempt has
its own seed.

Deliveries directly from holders have no precedence, so their rounds may be in any order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.lumorph.scheduled_rounds import circuits_of, circuits_off
from opticoll.formulations.rounds.round_schedule import direct
from opticoll.formulations.rounds.segments import offsets, positions, select
from opticoll.instances.photonics import LightpathMesh
from opticoll.solvers.methods.lumorph.assignment import (
    Items,
    candidates,
    improve,
    intact,
    orders,
    pack_first,
    packing,
    within,
)
from opticoll.solvers.methods.lumorph.constructions import halving_broadcast, mesh_exchange, ring_all_gather

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from opticoll.formulations.flows.path_sets import PathSet
    from opticoll.formulations.lumorph.scheduled_rounds import Circuit
    from opticoll.formulations.rounds.collectives import Collective
    from opticoll.formulations.rounds.round_schedule import Limits, RoundSchedule
    from opticoll.instances.topology import F64, I64, Topology
    from opticoll.solvers.methods.lumorph.assignment import Assignment, Packing


#: Turns with ejections per possible reception of a round.
PATIENCE = 3
#: Consecutive rounds without transfers after which an attempt ends.
IDLE = 2


def bit_sets(pairs: I64, n: int, chunks: int) -> NDArray[np.uint64]:
    """Bit sets of the chunks of every vertex, ``(n, words)``, from pairs (chunk, vertex)."""
    bits = np.zeros((n, max((chunks + 63) // 64, 1)), dtype=np.uint64)
    np.bitwise_or.at(bits, (pairs[:, 1], pairs[:, 0] // 64), np.uint64(1) << (pairs[:, 0] % 64).astype(np.uint64))
    return bits


def spread_copies(
    topology: Topology,
    collective: Collective,
    limits: Limits,
    seed: int,
    most: int,
    left: Callable[[], float],
) -> RoundSchedule | None:
    """A schedule of a copying collective in at most ``most`` rounds; None if it needs more, or time is up.

    A vertex receives at most one circuit of a wavelength, whatever ``limits.ports``.
    """
    from opticoll.solvers.methods.lumorph.spreading_kernel import one_round

    random = np.random.default_rng(seed)
    n, waves = topology.n, limits.wavelengths
    in_arc = np.argsort(topology.head, kind="stable")
    first_in = np.searchsorted(topology.head[in_arc], np.arange(n + 1))
    ports = n if limits.ports is None else limits.ports
    room = np.minimum(limits.room(topology), n * ports)
    holds = bit_sets(collective.pre, n, collective.chunks)
    wants = bit_sets(collective.deliveries, n, collective.chunks)
    holders = np.zeros(64 * wants.shape[1], dtype=np.int64)
    holders[: collective.chunks] = collective.holders
    hops = topology.hops
    longest = int(min(n - 1, max(64, 4 * np.max(hops, where=np.isfinite(hops), initial=1.0))))
    source, chunk, length = (np.empty((waves, n), dtype=np.int32) for _ in range(3))
    path = np.empty((waves, n, longest), dtype=np.int32)
    rounds: list[tuple[I64, I64, I64, I64, I64, I64]] = []
    idle = 0
    left_over = np.bitwise_count(wants).sum(axis=1).astype(np.int64)
    while left_over.any():
        need = -(-int(left_over.max()) // waves)
        if len(rounds) + need > most or left() <= 0:
            return None
        quota = np.minimum(left_over, waves)
        total = int(quota.sum())
        one_round(
            first_in,
            in_arc,
            topology.tail,
            topology.head,
            room,
            ports,
            holds,
            wants,
            holders,
            quota,
            PATIENCE * total + 100,
            int(random.integers(2**31)),
            source,
            chunk,
            length,
            path,
        )
        entry = np.nonzero(source >= 0)
        wave, target = entry
        got = chunk[entry].astype(np.int64)
        np.bitwise_or.at(holds, (target, got // 64), np.uint64(1) << (got % 64).astype(np.uint64))
        on_path = np.arange(longest) < length[entry][:, None]
        rounds.append(
            (
                wave,
                source[entry].astype(np.int64),
                target,
                got,
                length[entry].astype(np.int64),
                path[entry][on_path].astype(np.int64),
            )
        )
        idle = 0 if wave.size else idle + 1
        if idle >= IDLE:
            return None
        left_over = np.bitwise_count(wants).sum(axis=1).astype(np.int64)
    when = np.repeat(np.arange(len(rounds)), [columns[0].size for columns in rounds])
    wave, sources, targets, chunks, lengths, arcs = (np.concatenate(columns) for columns in zip(*rounds, strict=True))
    return direct(when, sources, targets, chunks, wave, offsets(lengths), arcs)


#: Attempts by spreading before a small case is searched by ejections.
SPREADS = 5


@dataclass(frozen=True, eq=False)
class AllowedRoutes:
    """The allowed routes of every pair, and the wavelength of each, ``(P,)`` (WAVE of the paper); None for any."""

    routes: PathSet
    wave: I64 | None

    @cached_property
    def _circuits(self) -> set[Circuit]:
        return circuits_of(self.routes, self.wave)

    def permit(self, schedule: RoundSchedule) -> bool:
        """Whether every circuit of a schedule is on one of them."""
        return not circuits_off(self._circuits, schedule, fixed=self.wave is not None)


class PhaseSearch:
    """Search for a schedule of a copying collective; keeps the best one.

    Parameters
    ----------
    topology, collective, limits
        The problem.
    least
        A lower bound on the rounds.
    allowed
        The routes, and their wavelengths, if not all are allowed.
    """

    def __init__(
        self,
        topology: Topology,
        collective: Collective,
        limits: Limits,
        least: int,
        allowed: AllowedRoutes | None,
        seed: int,
    ) -> None:
        self.topology, self.collective, self.limits = topology, collective, limits
        self.least, self.allowed = least, allowed
        self.random = np.random.default_rng(seed)
        self.best: RoundSchedule | None = None
        self.found_by = "nothing"
        self.attempts = 0
        self._items: Packing | None = None

    @property
    def rounds(self) -> int:
        """Rounds of the best schedule, once there is one."""
        assert self.best is not None
        return self.best.rounds

    @property
    def done(self) -> bool:
        """Whether the bound is met."""
        return self.best is not None and self.best.rounds <= self.least

    @property
    def copies(self) -> bool:
        """Whether some chunk has several destinations, so receivers may forward it."""
        return bool((self.collective.spread > 1).any())

    def _keep(self, schedule: RoundSchedule | None, by: str) -> None:
        if schedule is None or (self.best is not None and schedule.rounds >= self.best.rounds):
            return
        if self.allowed is None or self.allowed.permit(schedule):
            self.best, self.found_by = schedule, by

    def take(self, other: PhaseSearch) -> None:
        """Copy the result of another search of the same problem."""
        self.best, self.found_by, self.least = other.best, other.found_by, other.least

    # Direct sends ----------------------------------------------------------------------------------------------

    def _sources(self) -> I64:
        """The nearest holder of every delivery, ties at random, ``(D,)``."""
        pre, deliveries = self.collective.pre, self.collective.deliveries
        first = np.searchsorted(pre[:, 0], np.arange(self.collective.chunks + 1))
        chunk, target = deliveries.T
        delivery, position = positions(first, chunk)
        holder = pre[position, 1]
        hops = self._hops()[holder, target[delivery]]
        order = np.lexsort((self.random.random(delivery.size), hops, delivery))
        return np.asarray(holder[order[np.searchsorted(delivery[order], np.arange(chunk.size))]], dtype=np.int64)

    def _hops(self) -> F64:
        """Hops between all vertices, ``(n, n)``: of the topology, or infinite without an allowed route."""
        if self.allowed is None:
            if self.topology.num_ranks == self.topology.n:
                return self.topology.hops
            return self.topology.distances(np.ones(self.topology.arcs))
        routes = self.allowed.routes
        hops = np.full((self.topology.n, self.topology.n), np.inf)
        hops[routes.sources, routes.targets] = routes.length[routes.first[:-1]]
        return hops

    def _direct(self, sources: I64, assignment: Assignment) -> RoundSchedule:
        chunk, target = self.collective.deliveries.T
        return direct(
            assignment.round, sources, target, chunk, assignment.wavelength, assignment.path_start, assignment.path_arcs
        )

    def construct(self) -> None:
        """Run the constructions and first fit; constructions over other routes than the allowed ones are dropped."""
        sources = self._sources()
        target = self.collective.deliveries[:, 1]
        if self.allowed is None or self.allowed.wave is None:
            self._exchange(sources, target)
            if not self.done and self.copies:
                wavelengths = self.limits.wavelengths
                self._keep(ring_all_gather(self.topology, self.collective, wavelengths), "ring")
                if not self.done:
                    self._keep(halving_broadcast(self.topology, self.collective, wavelengths), "halving")
        if self.best is None or not (self.done or (self.copies and self.allowed is None)):
            self._first_fit(sources, target)

    def _exchange(self, sources: I64, targets: I64) -> None:
        mesh = self.topology
        if not isinstance(mesh, LightpathMesh) or not intact(mesh) or self.limits.ports != 1:
            return
        n = mesh.n
        pair = sources * n + targets
        order = np.argsort(pair, kind="stable")
        copy = np.empty(pair.size, dtype=np.int64)
        copy[order] = np.arange(pair.size) - np.searchsorted(pair[order], pair[order])
        if np.unique(pair).size * 2 < n * (n - 1):
            return  # with few pairs most colours would be empty
        waveguides, fibres = self.limits.waveguides, self.limits.fibres
        in_rows = None if fibres is None else min(waveguides, fibres.number)
        colour, total = mesh_exchange(mesh.shape[0], mesh.shape[1], waveguides, in_rows)
        _, used = np.unique(copy * total + colour[sources, targets], return_inverse=True)
        routes = candidates(mesh, sources, targets)
        items = packing(mesh, self.limits, routes)
        items.bin_of, items.choice = used.reshape(-1), routes.first[:-1].copy()
        if self.allowed is None:
            self._items = items
        self._keep(self._direct(sources, items.assignment()), "exchange")

    def _allowed_routes(self, sources: I64, targets: I64) -> tuple[PathSet, I64 | None]:
        """The allowed routes of every delivery, pair by pair, and their wavelengths."""
        from opticoll.formulations.flows.path_sets import PathSet

        assert self.allowed is not None
        known, wave, n = self.allowed.routes, self.allowed.wave, self.topology.n
        code = known.sources * n + known.targets
        order = np.argsort(code)
        pair = order[np.searchsorted(code[order], sources * n + targets)]
        owner, path = positions(known.first, pair)
        start, arcs = select(known.start, known.arcs, path)
        routes = PathSet(self.topology, sources, targets, arcs, start, owner)
        return routes, None if wave is None else wave[path]

    def _first_fit(self, sources: I64, targets: I64) -> None:
        if self.allowed is None:
            routes, wave = candidates(self.topology, sources, targets, seed=int(self.random.integers(2**31))), None
        else:
            routes, wave = self._allowed_routes(sources, targets)
        items = packing(self.topology, self.limits, routes, wave)
        for order in orders(items, self.random):
            pack_first(items, order)
            if self._items is None or items.rounds < self.rounds:
                self._keep(self._direct(sources, items.assignment()), "first fit")
                saved = items.bin_of.copy(), items.choice.copy()
                self._items = items
            if self.done:
                break
        if self._items is items:
            items.bin_of, items.choice = saved

    # Search ----------------------------------------------------------------------------------------------------

    def search(self, left: Callable[[], float], improved: Callable[[], None]) -> None:
        """Search until the bound is met or ``left()`` is 0; call ``improved`` after every improvement."""
        if self.done:
            return
        if self.copies and self.allowed is not None:
            if small_enough(self.topology, self.collective, self.limits, self.rounds):
                self._ordered(left, improved)
            self._squeeze(left, improved)
        elif self.copies:
            self._spread(left, improved)
        elif self._items is not None:
            self._squeeze(left, improved)

    def _squeeze(self, left: Callable[[], float], improved: Callable[[], None]) -> None:
        items = self._items
        assert items is not None
        while not self.done and left() > 0:
            before = self.rounds
            improve(items, self.least, self.random, within(left, max(left() / 2, 1.0)))
            self.attempts += 1
            if items.rounds < before:
                self._keep(self._direct(items.routes.sources, items.assignment()), "ejection search")
                improved()

    def _ordered(self, left: Callable[[], float], improved: Callable[[], None]) -> None:
        """Try schedules from the bound up to the best rounds, each with half the remaining time."""
        for rounds in range(self.least, self.rounds):
            until, seed = within(left, left() / 2), int(self.random.integers(2**31))
            schedule = ordered_copies(self.topology, self.collective, self.limits, rounds, seed, until, self.allowed)
            self.attempts += 1
            if schedule is not None:
                self._keep(schedule, "ordered ejection search")
                improved()
                return

    def _spread(self, left: Callable[[], float], improved: Callable[[], None]) -> None:
        while not self.done and left() > 0:
            self.attempts += 1
            if self.attempts == SPREADS and small_enough(self.topology, self.collective, self.limits, self.least):
                self._ordered(left, improved)
            seed = int(self.random.integers(2**31))
            schedule = spread_copies(self.topology, self.collective, self.limits, seed, self.rounds - 1, left)
            if schedule is not None:
                self._keep(schedule, "spreading")
                improved()


# Copies in order -----------------------------------------------------------------------------------------------

#: Most entries of all candidates together, and of the tables of one search.
MOST_ENTRIES = 20_000_000
#: Steps of one attempt.
STEPS = 60_000


class OrderedCopies:
    """Deliveries and their candidates for :func:`opticoll.solvers.methods.lumorph.search_kernels.eject`.

    Item k is a delivery of the collective, over route ``route[p]`` of ``routes`` for one of its candidates p, from a
    vertex that holds the chunk or receives it earlier.
    """

    def __init__(
        self, topology: Topology, collective: Collective, limits: Limits, allowed: AllowedRoutes | None
    ) -> None:
        self.collective, self.limits = collective, limits
        n, m = topology.n, topology.arcs
        if allowed is None:
            source, goal = np.nonzero(np.isfinite(topology.hops) & ~np.eye(n, dtype=bool))
            self.routes = candidates(topology, source, goal)
        else:
            self.routes = allowed.routes
        first, after = self._candidates(n)
        ends = self.routes.pair[self.route]
        start = offsets(self.routes.length[self.route] + 2)
        needs = np.empty(start[-1], dtype=np.int64)
        needs[start[:-1]] = m + self.routes.sources[ends]
        needs[start[:-1] + 1] = m + n + self.routes.targets[ends]
        owner, position = positions(self.routes.start, self.route)
        needs[start[owner] + 2 + position - self.routes.start[self.route[owner]]] = self.routes.arcs[position]
        wave = None if allowed is None else allowed.wave
        tie = np.full(self.route.size, -1) if wave is None else wave[self.route]
        most = n * (limits.ports or 1)
        room = np.concatenate([np.minimum(limits.room(topology), most), np.full(2 * n, limits.ports or 1)])
        self.items = Items(first, start, needs, after, tie, limits.wavelengths, room)

    def _candidates(self, n: int) -> tuple[I64, I64]:
        """List the routes of every delivery: where they begin, and the delivery that must precede each, or -1."""
        collective = self.collective
        number = {key: k for k, key in enumerate(collective.key(collective.deliveries).tolist())}
        place = {pair: k for k, pair in enumerate((self.routes.sources * n + self.routes.targets).tolist())}
        holders = [set(collective.pre[collective.pre[:, 0] == c, 1].tolist()) for c in range(collective.chunks)]
        first, route, after = [0], [], []
        for c, v in collective.deliveries.tolist():
            for s in range(n):
                before = -1 if s in holders[c] else number.get(c * n + s)
                pair = place.get(s * n + v)
                if s == v or before is None or pair is None:
                    continue
                for p in self.routes.of_pair(pair):
                    route.append(p)
                    after.append(before)
            first.append(len(route))
        self.route = np.array(route)
        return np.array(first), np.array(after)

    def schedule(self, bin_of: I64, choice: I64) -> RoundSchedule:
        """The schedule of the deliveries over these candidates."""
        path = self.route[choice]
        start, arcs = select(self.routes.start, self.routes.arcs, path)
        chunk, target = self.collective.deliveries.T
        when, wave = np.divmod(bin_of, self.limits.wavelengths)
        return direct(when, self.routes.sources[self.routes.pair[path]], target, chunk, wave, start, arcs)


def small_enough(topology: Topology, collective: Collective, limits: Limits, rounds: int) -> bool:
    """Whether the search applies: one chunk per circuit, limited ports, all vertices ranks, and small tables."""
    deliveries = len(collective.deliveries)
    candidates_size = deliveries * topology.n * 2 * 8
    room = int(limits.room(topology).max(initial=1))
    tables = rounds * limits.wavelengths * (deliveries + (topology.arcs + 2 * topology.n) * (room + 1))
    plain = limits.ports is not None and limits.load == 1 and topology.num_ranks == topology.n
    return plain and max(candidates_size, tables) <= MOST_ENTRIES


def ordered_copies(
    topology: Topology,
    collective: Collective,
    limits: Limits,
    rounds: int,
    seed: int,
    left: Callable[[], float],
    allowed: AllowedRoutes | None = None,
) -> RoundSchedule | None:
    """A schedule of at most ``rounds`` rounds, by repeated attempts until time is up; None if none is found.

    Only ``allowed`` routes are used, if these are given.
    """
    from opticoll.solvers.methods.lumorph.search_kernels import eject

    ordered = OrderedCopies(topology, collective, limits, allowed)
    random = np.random.default_rng(seed)
    count = len(collective.deliveries)
    bins, choice = rounds * limits.wavelengths, np.zeros(count, dtype=np.int64)
    while left() > 0:
        bin_of, until = np.full(count, -1), np.zeros((count, bins), dtype=np.int64)
        if eject(ordered.items, bins, bin_of, choice, until, int(random.integers(2**31)), STEPS) == 0:
            return ordered.schedule(bin_of, choice)
    return None

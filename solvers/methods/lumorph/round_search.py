r"""Schedule one phase of copies: constructions first, then search, until a lower bound is met.

    exchange    every delivery directly from a holder, by the permutations of
                :mod:`opticoll.solvers.methods.lumorph.constructions`
    ring        all-gather around a ring, same module
    halving     broadcast along a Hamiltonian path, same module
    first fit   directly from a holder, :mod:`opticoll.solvers.methods.lumorph.assignment`
    ejection    the same, packed into fewer rounds
    spreading   copies of copies, :mod:`opticoll.solvers.methods.lumorph.spreading`
    symmetric   the same on small meshes with one waveguide, :mod:`opticoll.solvers.methods.lumorph.symmetric_rounds`

Deliveries directly from holders have no precedence, so their rounds may be in any order.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.rounds import positions, select
from opticoll.formulations.rounds.round_schedule import direct
from opticoll.instances.photonic import LightpathMesh
from opticoll.solvers.methods.lumorph.assignment import (
    candidates,
    improve,
    intact,
    orders,
    pack_first,
    packing,
    squeeze,
    tight_bound,
)
from opticoll.solvers.methods.lumorph.constructions import halving_broadcast, mesh_exchange, ring_all_gather
from opticoll.solvers.methods.lumorph.spreading import Policy, policies, spread_copies
from opticoll.solvers.methods.lumorph.symmetric_rounds import small_enough, symmetric_copies

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from opticoll.formulations.lumorph.route_sets import RouteSet
    from opticoll.formulations.rounds.collectives import Collective
    from opticoll.formulations.rounds.round_schedule import Limits, RoundSchedule
    from opticoll.instances import Topology
    from opticoll.solvers.methods.lumorph.assignment import Assignment, Packing

    I64 = NDArray[np.int64]

#: Attempts by spreading before a small case is searched by symmetric schedules.
SPREADS = 5


@dataclass(frozen=True, eq=False)
class TiedRoutes:
    """The allowed routes of every pair, and the fixed wavelength of each, ``(P,)`` (WAVE of the paper)."""

    routes: RouteSet
    wave: I64


def compile_search(*, copies: bool) -> None:
    """Compile the searches, so that compilation does not count towards time limits."""
    from opticoll.formulations.rounds.collectives import collective
    from opticoll.formulations.rounds.round_schedule import Limits
    from opticoll.instances import Topology

    pair = Topology(2, [0, 1], [1, 0])
    tiny = collective("all-gather", 2)
    one, other = np.array([0]), np.array([1])
    items = packing(pair, Limits(1), candidates(pair, one, other))
    squeeze(items, 1, np.random.default_rng(0), lambda: 1.0)
    if copies:
        spread_copies(pair, tiny, Limits(1), Policy(1, 1), 0, 4, lambda: 1.0)
        symmetric_copies(pair, tiny, Limits(1), 1, 0, lambda: 1.0)
    else:
        tight_bound(pair, collective("all-to-all", 2), Limits(1), 9, lambda: 1.0, steps=1)


class PhaseSearch:
    """Search for a schedule of a copying collective; keeps the best one.

    Parameters
    ----------
    topology, collective, limits
        The problem.
    least
        A lower bound on the rounds.
    tied
        Routes and wavelengths if these are fixed.
    """

    def __init__(
        self, topology: Topology, collective: Collective, limits: Limits, least: int, tied: TiedRoutes | None, seed: int
    ) -> None:
        self.topology, self.collective, self.limits, self.least, self.tied = topology, collective, limits, least, tied
        self.random = np.random.default_rng(seed)
        self.best: RoundSchedule | None = None
        self.found_by = "nothing"
        self.attempts = 0
        self._items: Packing | None = None

    @property
    def rounds(self) -> int:
        """Rounds of the best schedule.

        Raises
        ------
        RuntimeError
            Before there is one.
        """
        if self.best is None:
            msg = "no schedule yet; call construct() first"
            raise RuntimeError(msg)
        return self.best.rounds

    @property
    def done(self) -> bool:
        """Whether the bound is met."""
        return self.best is not None and self.best.rounds <= self.least

    @property
    def copies(self) -> bool:
        """Whether some chunk has several destinations, so that receivers may forward it."""
        return bool((self.collective.spread > 1).any())

    def _keep(self, schedule: RoundSchedule | None, by: str) -> None:
        if schedule is not None and (self.best is None or schedule.rounds < self.best.rounds):
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

    def _hops(self) -> NDArray[np.float64]:
        """Hops between all vertices, ``(n, n)``: of the topology, or infinite without a fixed route."""
        if self.tied is None:
            if self.topology.ranks == self.topology.n:
                return self.topology.hops
            from scipy.sparse.csgraph import dijkstra

            return np.asarray(dijkstra(self.topology.length_matrix(np.ones(self.topology.arcs)), unweighted=True))
        routes = self.tied.routes
        hops = np.full((self.topology.n, self.topology.n), np.inf)
        hops[routes.source, routes.target] = np.diff(routes.start)[routes.first[:-1]]
        return hops

    def _direct(self, sources: I64, found: Assignment) -> RoundSchedule:
        chunk, target = self.collective.deliveries.T
        return direct(found.round, sources, target, chunk, found.wavelength, found.path_start, found.path_arcs)

    def construct(self) -> None:
        """Run the constructions and first fit."""
        sources = self._sources()
        target = self.collective.deliveries[:, 1]
        if self.tied is None:
            self._exchange(sources, target)
            if not self.done and self.copies:
                wavelengths = self.limits.wavelengths
                self._keep(ring_all_gather(self.topology, self.collective, wavelengths), "ring")
                if not self.done:
                    self._keep(halving_broadcast(self.topology, self.collective, wavelengths), "halving")
        if self.best is None or not (self.done or self.copies):
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
        colour, total = mesh_exchange(mesh.shape[0], mesh.shape[1], self.limits.waveguides)
        _, used = np.unique(copy * total + colour[sources, targets], return_inverse=True)
        routes = candidates(mesh, sources, targets)
        self._items = packing(mesh, self.limits, routes)
        self._items.bin_of, self._items.choice = used.reshape(-1), routes.first[:-1].copy()
        self._keep(self._direct(sources, self._items.assignment()), "exchange")

    def _tied_routes(self, sources: I64, targets: I64) -> tuple[RouteSet, I64]:
        """The fixed routes of every delivery, pair by pair, and their wavelengths."""
        from opticoll.formulations.lumorph.route_sets import RouteSet

        assert self.tied is not None
        known, n = self.tied.routes, self.topology.n
        code = known.source * n + known.target
        order = np.argsort(code)
        pair = order[np.searchsorted(code[order], sources * n + targets)]
        owner, path = positions(known.first, pair)
        return RouteSet(sources, targets, owner, *select(known.start, known.arcs, path)), self.tied.wave[path]

    def _first_fit(self, sources: I64, targets: I64) -> None:
        if self.tied is None:
            routes, wave = candidates(self.topology, sources, targets, seed=int(self.random.integers(2**31))), None
        else:
            routes, wave = self._tied_routes(sources, targets)
        items = packing(self.topology, self.limits, routes, wave)
        for order in orders(items, self.random):
            pack_first(items, order)
            if self.best is None or items.rounds < self.best.rounds:
                self._keep(self._direct(sources, items.assignment()), "first fit")
                kept = items.bin_of.copy(), items.choice.copy()
                self._items = items
            if self.done:
                break
        if self._items is items:
            items.bin_of, items.choice = kept

    # Search ----------------------------------------------------------------------------------------------------

    def search(self, left: Callable[[], float], improved: Callable[[], None]) -> None:
        """Search until the bound is met or ``left()`` is 0; call ``improved`` after every improvement."""
        if self.done:
            return
        if self.copies and self.tied is not None:
            if small_enough(self.topology, self.collective, self.limits, self.rounds):
                self._symmetric(left, improved)
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
            slice_end = time.monotonic() + max(left() / 2, 1.0)

            def until(end: float = slice_end) -> float:
                return min(left(), end - time.monotonic())

            improve(items, self.least, self.random, until)
            self.attempts += 1
            if items.rounds < before:
                self._keep(self._direct(items.routes.source, items.assignment()), "ejection search")
                improved()

    def _symmetric(self, left: Callable[[], float], improved: Callable[[], None]) -> None:
        """Try symmetric schedules from the bound up to the best rounds, each with half the remaining time."""
        for rounds in range(self.least, self.rounds):
            end = time.monotonic() + left() / 2

            def until(end: float = end) -> float:
                return min(left(), end - time.monotonic())

            seed = int(self.random.integers(2**31))
            found = symmetric_copies(
                self.topology, self.collective, self.limits, rounds, seed, until,
                *((self.tied.routes, self.tied.wave) if self.tied is not None else ()),
            )  # fmt: skip
            self.attempts += 1
            if found is not None:
                self._keep(found, "symmetric ejection search" if self.tied is None else "ordered ejection search")
                improved()
                return

    def _spread(self, left: Callable[[], float], improved: Callable[[], None]) -> None:
        for policy in policies(self.topology.n, self.random):
            if self.done or left() <= 0:
                return
            self.attempts += 1
            if self.attempts == SPREADS and small_enough(self.topology, self.collective, self.limits, self.least):
                self._symmetric(left, improved)
            seed = int(self.random.integers(2**31))
            found = spread_copies(self.topology, self.collective, self.limits, policy, seed, self.rounds - 1, left)
            if found is not None:
                self._keep(found, "spreading")
                improved()

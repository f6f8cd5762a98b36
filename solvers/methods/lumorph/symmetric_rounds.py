r"""Search for schedules of copies in a given number of rounds that are invariant under reflections of the mesh.

If a side of the mesh is even, its reflection moves every tile and every arc; a collective that is invariant under it
(such as all-gather with renamed chunks) has a quotient: orbits of deliveries, of arcs, of tiles. A schedule of the
quotient, in which a whole orbit has one colour, is a schedule of the mesh. With both sides even the search is four
times smaller, which makes nearly full schedules possible: all-gather on 4 x 8 tiles with 16 lasers and one waveguide in
2 rounds, 31 receptions of 32.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.rounds import offsets, positions, select
from opticoll.formulations.rounds.round_schedule import direct
from opticoll.instances.photonic import LightpathMesh
from opticoll.solvers.methods.lumorph.assignment import candidates, intact

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from opticoll.formulations.lumorph.route_sets import RouteSet
    from opticoll.formulations.rounds.collectives import Collective
    from opticoll.formulations.rounds.round_schedule import Limits, RoundSchedule
    from opticoll.instances import Topology

    I64 = NDArray[np.int64]

#: Most entries of all candidates together, and of the tables of one search.
MOST_ENTRIES = 20_000_000
#: Steps of one attempt.
STEPS = 60_000


@dataclass(frozen=True, eq=False)
class Symmetry:
    """A reflection or rotation: the images of vertices, arcs and chunks."""

    vertex: I64
    arc: I64
    chunk: I64


def symmetries(topology: Topology, collective: Collective) -> list[Symmetry]:
    """The group of the identity and the reflections of an intact mesh that move all tiles and keep the collective."""
    n = topology.n
    found = [Symmetry(np.arange(n), np.arange(topology.arcs), np.arange(collective.chunks))]
    if not isinstance(topology, LightpathMesh) or not intact(topology):
        return found
    rows, columns = topology.shape
    tiles = np.arange(n).reshape(rows, columns)
    turns = []
    if rows % 2 == 0:
        turns.append(tiles[::-1].ravel())
    if columns % 2 == 0:
        turns.append(tiles[:, ::-1].ravel())
    if len(turns) == 2:
        turns.append(tiles[::-1, ::-1].ravel())
    code = topology.tail * n + topology.head
    for turn in turns:
        chunk = _chunk_images(collective, turn)
        if chunk is not None:
            arc = np.searchsorted(code, turn[topology.tail] * n + turn[topology.head])
            found.append(Symmetry(turn, arc, chunk))
    return found


def _chunk_images(collective: Collective, turn: I64) -> I64 | None:
    """The image of every chunk when vertices are renamed, ``(chunks,)``; None if some chunk has no match."""

    def codes(order: I64) -> list[bytes]:
        held = np.zeros((collective.chunks, 2, collective.n), dtype=bool)
        held[collective.pre[:, 0], 0, order[collective.pre[:, 1]]] = True
        held[collective.post[:, 0], 1, order[collective.post[:, 1]]] = True
        return [each.tobytes() for each in held]

    same: dict[bytes, list[int]] = {}
    for chunk, code in enumerate(codes(np.arange(collective.n))):
        same.setdefault(code, []).append(chunk)
    if any(len(each) > 1 for each in same.values()):
        return None  # equal chunks could be matched such that two reflections do not commute
    image = [same.get(code) for code in codes(turn)]
    return None if any(each is None for each in image) else np.array([each[0] for each in image if each is not None])


class Quotient:
    """Items and candidates, one per orbit, for :func:`opticoll.solvers.methods.lumorph.packing.eject_ordered`.

    ``items`` are (chunk, vertex) of one delivery of every orbit, ``(K, 2)``; candidate p is route ``route[p]`` of
    ``routes``.
    """

    def __init__(
        self, topology: Topology, collective: Collective, limits: Limits, routes: RouteSet | None, wave: I64 | None
    ) -> None:
        self.topology, self.collective, self.limits = topology, collective, limits
        # Fixed wavelengths are not invariant under reflections.
        self.group = symmetries(topology, collective)[: None if wave is None else 1]
        n, m = topology.n, topology.arcs
        vertex = np.min([each.vertex for each in self.group], axis=0)
        arc = np.min([each.arc for each in self.group], axis=0)
        chunk, target = collective.deliveries.T
        least = np.min([each.chunk[chunk] * n + each.vertex[target] for each in self.group], axis=0)
        keys = np.unique(least)
        self.items = np.column_stack(np.divmod(keys, n))
        number = {key: k for k, key in enumerate(collective.key(collective.deliveries).tolist())}
        orbit = np.searchsorted(keys, least)
        if routes is None:
            source, goal = np.nonzero(np.isfinite(topology.hops) & ~np.eye(n, dtype=bool))
            routes = candidates(topology, source, goal)
        self.routes = routes
        source, goal = routes.source, routes.target
        place = {pair: k for k, pair in enumerate((source * n + goal).tolist())}
        length = np.diff(self.routes.start)
        holders = [set(collective.pre[collective.pre[:, 0] == c, 1].tolist()) for c in range(collective.chunks)]
        first, route, after = [0], [], []
        for c, v in self.items.tolist():
            for s in range(n):
                wanted = number.get(c * n + s)
                if s == v or (s not in holders[c] and wanted is None):
                    continue
                pair = place.get(s * n + v)
                if pair is None:
                    continue
                before = -1 if s in holders[c] or wanted is None else int(orbit[wanted])
                for p in range(int(self.routes.first[pair]), int(self.routes.first[pair + 1])):
                    route.append(p)
                    after.append(before)
            first.append(len(route))
        self.route, self.after, self.first = np.array(route), np.array(after), np.array(first)
        ends = self.routes.pair[self.route]
        size = length[self.route] + 2
        self.start = offsets(size)
        needs = np.empty(self.start[-1], dtype=np.int64)
        needs[self.start[:-1]], needs[self.start[:-1] + 1] = m + vertex[source[ends]], m + n + vertex[goal[ends]]
        owner, position = positions(self.routes.start, self.route)
        place_on_route = position - self.routes.start[self.route[owner]]
        needs[self.start[owner] + 2 + place_on_route] = arc[self.routes.arcs[position]]
        self.needs = needs
        self._drop_clashes()
        self.tie = np.full(self.route.size, -1) if wave is None else wave[self.route]
        most = n * (limits.ports or 1)
        self.room = np.concatenate([np.full(m, min(limits.waveguides, most)), np.full(2 * n, limits.ports or 1)])

    def _drop_clashes(self) -> None:
        """Drop candidates that share a resource with their own image."""
        owner = np.repeat(np.arange(self.route.size), np.diff(self.start))
        keys, count = np.unique(owner * (self.needs.max(initial=0) + 1) + self.needs, return_counts=True)
        bad = np.zeros(self.route.size, dtype=bool)
        bad[keys[count > 1] // (self.needs.max(initial=0) + 1)] = True
        if not bad.any():
            return
        item = np.repeat(np.arange(self.first.size - 1), np.diff(self.first))[~bad]
        self.first = np.searchsorted(item, np.arange(self.first.size))
        self.needs = self.needs[~bad[owner]]
        self.start = offsets(np.diff(self.start)[~bad])
        self.route, self.after = self.route[~bad], self.after[~bad]

    def schedule(self, bin_of: I64, choice: I64) -> RoundSchedule:
        """The schedule of the mesh for a schedule of the quotient."""
        parts = []
        path = self.route[choice]
        start, route_arcs = select(self.routes.start, self.routes.arcs, path)
        source = self.routes.source[self.routes.pair[path]]
        for each in self.group:
            parts.append(
                (each.vertex[source], each.vertex[self.items[:, 1]], each.chunk[self.items[:, 0]],
                 each.arc[route_arcs])
            )  # fmt: skip
        sources, targets, chunks, arcs = (np.concatenate(column) for column in zip(*parts, strict=True))
        when, wave = np.divmod(np.tile(bin_of, len(self.group)), self.limits.wavelengths)
        starts = offsets(np.tile(np.diff(start), len(self.group)))
        return direct(when, sources, targets, chunks, wave, starts, arcs)


def small_enough(topology: Topology, collective: Collective, limits: Limits, rounds: int) -> bool:
    """Whether the search applies: one chunk per circuit, limited ports, all vertices ranks, and small tables."""
    deliveries = len(collective.deliveries)
    candidates_size = deliveries * topology.n * 2 * 8
    tables = rounds * limits.wavelengths * (deliveries + (topology.arcs + 2 * topology.n) * (limits.waveguides + 1))
    plain = limits.ports is not None and limits.load == 1 and topology.ranks == topology.n
    return plain and max(candidates_size, tables) <= MOST_ENTRIES


def symmetric_copies(
    topology: Topology, collective: Collective, limits: Limits, rounds: int, seed: int, left: Callable[[], float],
    routes: RouteSet | None = None, wave: I64 | None = None,
) -> RoundSchedule | None:  # fmt: skip
    """A schedule of at most ``rounds`` rounds, by repeated attempts until time is up; None if none is found.

    If ``routes`` with their wavelengths ``wave``, ``(P,)``, are given, only these are used.
    """
    from opticoll.solvers.methods.lumorph.packing import eject_ordered

    quotient = Quotient(topology, collective, limits, routes, wave)
    random = np.random.default_rng(seed)
    count = quotient.items.shape[0]
    bin_of, choice = np.empty(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    while left() > 0:
        missing, _ = eject_ordered(
            quotient.first, quotient.start, quotient.needs, quotient.after, quotient.tie, quotient.room,
            limits.wavelengths, rounds, bin_of, choice, int(random.integers(2**31)), STEPS, 0.1,
        )  # fmt: skip
        if missing == 0:
            return quotient.schedule(bin_of, choice)
    return None

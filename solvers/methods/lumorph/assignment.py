"""Assign rounds, wavelengths and routes to circuits without precedence.

A *colour* is a wavelength of a round: R rounds of L wavelengths are R L colours, colour k being wavelength ``k mod L``
of round ``k // L``. In a colour a vertex sends and receives at most ``ports`` circuits; an arc holds as many as
:meth:`~opticoll.formulations.rounds.round_schedule.Limits.room`.

1. Candidate routes: the straight ones of a mesh, and shortest ones that avoid loaded arcs.
2. First fit of all circuits in several orders.
3. In ``certified-rounds`` alone, ejection search for fewer rounds
   (:mod:`opticoll.solvers.methods.lumorph.search_kernels`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from opticoll.errors import NotApplicable
from opticoll.formulations.flows.path_sets import PathSet
from opticoll.formulations.lumorph.route_sets import straight_routes
from opticoll.formulations.rounds.segments import offsets, select
from opticoll.instances.photonics import LightpathMesh
from opticoll.solvers.methods.flows.column_generation import EveryPath

if TYPE_CHECKING:
    from collections.abc import Callable

    from opticoll.formulations.rounds.round_schedule import Limits
    from opticoll.instances.topology import F64, I64, Topology


#: Weight of the load of an arc, in units of the mean load, beside its length 1; random part of a length.
AVERSION, NOISE = 0.5, 0.01
#: Most entries in the tables of one search.
MOST_ENTRIES = 400_000_000
#: Search steps times bins between two checks of the clock.
STRIDE = 2_000_000


#: Lightly loaded candidates of a pair.
TREES = 2


def candidates(topology: Topology, sources: I64, targets: I64, *, seed: int = 0) -> PathSet:
    """Distinct candidates of every pair: the unbroken straight routes of a mesh, and :data:`TREES` lightly loaded ones.

    Lightly loaded routes come from shortest-path trees in which the length of an arc grows with the number of earlier
    routes on it. On an intact mesh there are only straight routes.

    Raises
    ------
    NotApplicable
        If a pair has no route.
    """
    parts: list[tuple[I64, I64, I64]] = []
    pairs = np.arange(sources.size)
    if isinstance(topology, LightpathMesh):
        bends: tuple[Literal["columns", "rows"], ...] = ("columns", "rows")
        for first in bends:
            start, arcs, straight = straight_routes(topology, sources, targets, first)
            parts.append((pairs[straight], offsets(np.diff(start)[straight]), arcs))  # arcs holds only theirs
    if not isinstance(topology, LightpathMesh) or not intact(topology):
        load = np.zeros(topology.arcs)
        for number in range(TREES):
            start, arcs = light_routes(topology, sources, targets, load, seed + number)
            if (np.diff(start) == 0).any():
                k = int(np.argmax(np.diff(start) == 0))
                msg = (
                    f"{topology.spec}: no route from vertex {sources[k]} to vertex {targets[k]}; use fewer failed links"
                )
                raise NotApplicable(msg)
            load += np.bincount(arcs, minlength=topology.arcs)
            parts.append((pairs, start, arcs))
    return _distinct(topology, sources, targets, parts)


def intact(mesh: LightpathMesh) -> bool:
    """Whether no link of the mesh has failed."""
    rows, columns = mesh.shape
    return mesh.arcs == 2 * (rows * (columns - 1) + columns * (rows - 1))


def light_routes(topology: Topology, sources: I64, targets: I64, load: F64, seed: int) -> tuple[I64, I64]:
    """One route per pair, sources in random order, over arcs with little load so far; empty where unreachable."""
    random, m = np.random.default_rng(seed), topology.arcs
    passes, length = np.zeros(m), np.zeros(sources.size, dtype=np.int64)
    routed: list[tuple[I64, I64, I64]] = []
    before = load / load.mean() if load.any() else load
    share = sources.size / max(m, 1) * max(topology.n, 4) ** 0.5 / 2
    for source in random.permutation(np.unique(sources)).tolist():
        mine = np.flatnonzero(sources == source)
        lengths = 1.0 + AVERSION * (before + passes / share) + NOISE * random.random(m)
        shortest, arcs_of = EveryPath(topology, (sources[mine], targets[mine])).traced(lengths)
        pairs, table = arcs_of(np.isfinite(shortest))
        used = table >= 0
        passes += np.bincount(table[used], minlength=m)
        routed.append((mine[pairs], used.sum(axis=1), table[used]))
    pair, arcs_each, arcs = (np.concatenate(columns) for columns in zip(*routed, strict=True))
    length[pair] = arcs_each
    return offsets(length), select(offsets(arcs_each), arcs, np.argsort(pair))[1]


def _distinct(topology: Topology, sources: I64, targets: I64, parts: list[tuple[I64, I64, I64]]) -> PathSet:
    """Join parts (pairs, start, arcs) in order, without duplicate routes of a pair."""
    pair = np.concatenate([part[0] for part in parts])
    length = np.concatenate([np.diff(part[1]) for part in parts])
    arcs = np.concatenate([part[2] for part in parts])
    start = offsets(length)
    # A random hash of arcs and positions identifies a route.
    random = np.random.default_rng(12345)
    names = random.integers(1, 2**62, size=(int(arcs.max(initial=0)) + 1,), dtype=np.int64).astype(np.uint64)
    owner = np.repeat(np.arange(pair.size), length)
    place = np.arange(arcs.size) - start[:-1][owner] + 1
    mixed = names[arcs] * (2 * place.astype(np.uint64) + 1)
    code = np.zeros(pair.size, dtype=np.uint64)
    np.add.at(code, owner, mixed)
    _, keep = np.unique(np.stack([pair.astype(np.uint64), code], axis=1), axis=0, return_index=True)
    keep = keep[np.lexsort((keep, pair[keep]))]
    start, arcs = select(start, arcs, keep)
    return PathSet(topology, sources, targets, arcs, start, pair[keep])


class Assignment(NamedTuple):
    """Round and wavelength of every circuit, ``(K,)``, and its path ``path_arcs[path_start[k]:path_start[k + 1]]``."""

    round: I64
    wavelength: I64
    path_start: I64
    path_arcs: I64

    @property
    def rounds(self) -> int:
        """Rounds used."""
        return int(self.round.max(initial=-1)) + 1


class Items(NamedTuple):
    """Items for the kernels of :mod:`opticoll.solvers.methods.lumorph.search_kernels`, and what they need.

    Parameters
    ----------
    first, start, needs
        Candidates of item k are ``first[k] .. first[k + 1] - 1``; candidate p needs ``needs[start[p]:start[p + 1]]``.
    after
        The item that must be in an earlier round, of ``period`` bins, than each candidate; -1 for none.
    tie, period
        Residue modulo ``period`` of the bins allowed for each candidate, -1 for all bins.
    room
        Units of each resource per bin.
    """

    first: I64
    start: I64
    needs: I64
    after: I64
    tie: I64
    period: int
    room: I64


@dataclass
class Packing:
    """The circuits as items of period L; ``bin_of`` and ``choice`` are their current colours and routes (-1: none)."""

    routes: PathSet
    items: Items
    bin_of: I64
    choice: I64

    @property
    def rounds(self) -> int:
        """Rounds spanned by the colours in use."""
        return int(self.bin_of.max(initial=-1)) // self.items.period + 1

    def assignment(self) -> Assignment:
        """The current packing as arrays."""
        round_, wavelength = np.divmod(self.bin_of, self.items.period)
        return Assignment(round_, wavelength, *select(self.routes.start, self.routes.arcs, self.choice))


def packing(topology: Topology, limits: Limits, routes: PathSet, wave: I64 | None = None) -> Packing:
    """Circuits ``routes.sources -> routes.targets`` as items; ``wave`` fixes the wavelengths of routes, ``(P,)``."""
    n, m = topology.n, topology.arcs
    length = routes.length
    source, target = routes.sources[routes.pair], routes.targets[routes.pair]
    needs, start = routes.arcs, routes.start
    # A limit above the number of circuits never binds, but would cost memory.
    most = source.size if limits.ports is None else n * limits.ports
    room = np.minimum(limits.room(topology), most)
    ports = limits.ports
    if ports is not None:
        start = offsets(length + 2)
        needs = np.empty(start[-1], dtype=np.int64)
        needs[start[:-1]], needs[start[:-1] + 1] = m + source, m + n + target
        owner = np.repeat(np.arange(routes.paths), length)
        needs[start[owner] + 2 + np.arange(routes.arcs.size) - routes.start[owner]] = routes.arcs
        room = np.concatenate([room, np.full(2 * n, ports)])
    anywhere, nothing = np.full(routes.paths, -1), np.full(routes.pairs, -1)
    tie = anywhere if wave is None else np.asarray(wave, dtype=np.int64)
    items = Items(routes.first, start, needs, anywhere, tie, limits.wavelengths, room)
    return Packing(routes, items, nothing, nothing.copy())


def pack_first(items: Packing, order: I64) -> int:
    """First fit of all items in this order, in place; returns the number of rounds."""
    from opticoll.solvers.methods.lumorph.search_kernels import first_fit

    most, period = 64, items.items.period
    while True:
        most = -(-most // period) * period
        first_fit(items.items, order, most, items.bin_of, items.choice)
        if (items.bin_of >= 0).all():
            return items.rounds
        most *= 2


def orders(items: Packing, random: np.random.Generator) -> list[I64]:
    """Orders for first fit: longest first by rank distance, with increasing noise, and random."""
    length = items.routes.length[items.items.first[:-1]].astype(float)
    turn = (items.routes.targets - items.routes.sources) % (int(items.routes.targets.max(initial=0)) + 1)
    return [
        np.lexsort((turn, -length)),
        np.argsort(-length - random.random(length.size), kind="stable"),
        np.argsort(-length - 3.0 * random.random(length.size), kind="stable"),
        random.permutation(length.size),
    ]


def squeeze(items: Packing, rounds: int, random: np.random.Generator, left: Callable[[], float]) -> bool:
    """Repack into ``rounds`` rounds by ejection search while ``left()`` is positive; in place if it succeeds."""
    from opticoll.solvers.methods.lumorph.search_kernels import eject

    bins = rounds * items.items.period
    if bins <= 0 or too_large(items, rounds):
        return False
    bin_of, choice = items.bin_of.copy(), items.choice.copy()
    bin_of[bin_of >= bins] = -1
    until = np.zeros((bin_of.size, bins), dtype=np.int64)
    stride = max(STRIDE // bins, 50)
    while left() > 0:
        unplaced = eject(items.items, bins, bin_of, choice, until, int(random.integers(2**31)), stride)
        if unplaced == 0:
            items.bin_of, items.choice = bin_of, choice
            return True
    return False


def within(left: Callable[[], float], seconds: float) -> Callable[[], float]:
    """Seconds left of ``left()``, and of so many from now."""
    end = time.monotonic() + seconds
    return lambda: min(left(), end - time.monotonic())


def improve(items: Packing, least: int, random: np.random.Generator, left: Callable[[], float]) -> None:
    """Reduce the rounds, in place, while there is time and more than ``least`` are used.

    Tries ``least`` itself, then bisects; a number at which the search fails counts as too small until all have failed.
    """
    floor, slices = least, 4
    while items.rounds > least and left() > 0:
        rounds = least if slices == 4 else (floor + items.rounds - 1) // 2
        until = within(left, max(left() / slices, 0.02))
        slices = 3
        if not squeeze(items, rounds, random, until):
            floor = rounds + 1
        if floor >= items.rounds:
            floor = least
            if too_large(items, least):
                return


def too_large(items: Packing, rounds: int) -> bool:
    """Whether the tables of a search with this many rounds would exceed :data:`MOST_ENTRIES`."""
    bins, room = rounds * items.items.period, items.items.room
    return bins * (int(room.sum()) + room.size + items.bin_of.size) > MOST_ENTRIES


def assign_rounds(
    topology: Topology,
    limits: Limits,
    sources: I64,
    targets: I64,
    *,
    routes: PathSet | None = None,
    wave: I64 | None = None,
    least: int = 1,
    seed: int = 0,
) -> Assignment:
    """Assign circuits ``sources[k] -> targets[k]`` to few rounds: the best first fit of several orders.

    Parameters
    ----------
    routes
        Candidates, one pair per circuit in circuit order; straight and light ones by default.
    wave
        Fixed wavelength of each candidate, ``(P,)``; any by default.
    least
        A lower bound on the rounds, at which no further order is tried.

    Raises
    ------
    NotApplicable
        If a pair has no route.
    """
    source, target = np.asarray(sources, dtype=np.int64), np.asarray(targets, dtype=np.int64)
    if not source.size:
        nothing = np.zeros(0, dtype=np.int64)
        return Assignment(nothing, nothing, np.zeros(1, dtype=np.int64), nothing)
    random = np.random.default_rng(seed)
    listed = routes or candidates(topology, source, target, seed=seed)
    items = packing(topology, limits, listed, wave)
    best: tuple[int, I64, I64] | None = None
    for order in orders(items, random):
        bins = pack_first(items, order)
        if best is None or bins < best[0]:
            best = bins, items.bin_of.copy(), items.choice.copy()
        if bins <= least:
            break
    assert best is not None
    _, items.bin_of, items.choice = best
    return items.assignment()

"""Rounds and wavelengths for circuits that may stand in any order: first fit, then ejection search.

A *colour* is a wavelength of a round: R rounds of L wavelengths are R L colours, colour ``k`` being wavelength
``k mod L`` of round ``k // L``. In a colour a vertex sends and receives at most ``ports`` circuits, an arc
holds ``waveguides``.

Candidate routes of many circuits at once: the straight ones of a mesh, and shortest ones that avoid loaded arcs.

Arc prices whose bound on the rounds is tight: multiplicative weights on the fluid routing problem.

Prices grow with the load that shortest paths under them put on the arcs (Plotkin, Shmoys & Tardos, Mathematics of
Operations Research 20, 1995). Whatever they are, :func:`opticoll.formulations.lumorph.round_bounds.priced_bound` is
rigorous.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from opticoll.errors import BadInput
from opticoll.formulations.lumorph.round_bounds import priced_bound, single_demand
from opticoll.formulations.lumorph.route_sets import RouteSet, straight_routes
from opticoll.formulations.model import NotApplicable
from opticoll.instances.photonic import LightpathMesh

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from opticoll.instances import Topology

    I64 = NDArray[np.int64]
    F64 = NDArray[np.float64]
    from collections.abc import Callable

    from opticoll.formulations.lumorph.route_sets import RouteSet
    from opticoll.formulations.model import Bound
    from opticoll.formulations.rounds.collectives import Collective
    from opticoll.formulations.rounds.round_schedule import Limits


#: Arcs of all candidates together are at most about this many.
MOST_ARCS = 40_000_000
#: How strongly loaded arcs are avoided: a detour of one arc is worth this many times the mean load.
AVERSION = 0.5


def candidates(topology: Topology, sources: I64, targets: I64, trees: int = 2, seed: int = 0) -> RouteSet:
    """Distinct candidates of every pair: whole straight routes of a mesh, and ``trees`` light ones.

    The light routes come from shortest-path trees whose arcs are dearer the more earlier routes are on them. On an
    intact mesh none is added.

    Raises
    ------
    NotApplicable
        If a pair has no route.
    """
    parts: list[tuple[I64, I64, I64]] = []
    every = np.arange(sources.size)
    if isinstance(topology, LightpathMesh):
        bends: tuple[Literal["columns", "rows"], ...] = ("columns", "rows")
        for first in bends:
            start, arcs, whole = straight_routes(topology, sources, targets, first)
            parts.append(_some(every, start, arcs, whole))
    if not isinstance(topology, LightpathMesh) or not intact(topology):
        load = np.zeros(topology.arcs)
        for number in range(max(trees, 1)):
            start, arcs = light_routes(topology, sources, targets, load, seed + number)
            if (np.diff(start) == 0).any():
                k = int(np.argmax(np.diff(start) == 0))
                msg = f"{topology.spec}: no route from vertex {sources[k]} to vertex {targets[k]}; fewer links may fail"
                raise NotApplicable(msg)
            load += np.bincount(arcs, minlength=topology.arcs)
            parts.append((every, start, arcs))
    return _distinct(sources, targets, parts)


def intact(mesh: LightpathMesh) -> bool:
    """Whether no link of the mesh has failed."""
    rows, columns = mesh.shape
    return mesh.arcs == 2 * (rows * (columns - 1) + columns * (rows - 1))


def light_routes(topology: Topology, sources: I64, targets: I64, load: F64, seed: int) -> tuple[I64, I64]:
    """One route a pair, sources in random order, over arcs that are loaded little so far; none where cut off."""
    from opticoll.solvers.methods.lumorph.route_kernels import routes_by_trees

    order = np.argsort(sources, kind="stable")
    first_out = np.searchsorted(topology.tail, np.arange(topology.n + 1))
    mean = float(load.mean()) if load.any() else 1.0
    start, arcs = routes_by_trees(
        first_out, topology.head, topology.tail, sources[order], targets[order], load / max(mean, 1e-300), AVERSION,
        sources.size / max(topology.arcs, 1) * max(topology.n, 4) ** 0.5 / 2, seed,
    )  # fmt: skip
    back = np.argsort(order, kind="stable")
    length = np.diff(start)[back]
    out = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(length)])
    at = np.arange(out[-1]) - np.repeat(out[:-1], length) + np.repeat(start[:-1][back], length)
    return out, arcs[at]


def _some(every: I64, start: I64, arcs: I64, keep: NDArray[np.bool_]) -> tuple[I64, I64, I64]:
    """The pairs that have the route, with it (``arcs`` holds those only)."""
    length = np.diff(start)[keep]
    return every[keep], np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(length)]), arcs


def _distinct(sources: I64, targets: I64, parts: list[tuple[I64, I64, I64]]) -> RouteSet:
    """One set of all parts (pairs, start, arcs), duplicates of a pair dropped, in the order of the parts."""
    pair = np.concatenate([part[0] for part in parts])
    length = np.concatenate([np.diff(part[1]) for part in parts])
    arcs = np.concatenate([part[2] for part in parts])
    start = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(length)])
    # Two sums of random numbers tell routes apart, position by position.
    random = np.random.default_rng(12345)
    names = random.integers(1, 2**62, size=(int(arcs.max(initial=0)) + 1,), dtype=np.int64).astype(np.uint64)
    owner = np.repeat(np.arange(pair.size), length)
    place = np.arange(arcs.size) - start[:-1][owner] + 1
    mixed = names[arcs] * (2 * place.astype(np.uint64) + 1)
    code = np.zeros(pair.size, dtype=np.uint64)
    np.add.at(code, owner, mixed)
    _, keep = np.unique(np.stack([pair.astype(np.uint64), code], axis=1), axis=0, return_index=True)
    keep = keep[np.lexsort((keep, pair[keep]))]
    size = length[keep]
    out = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(size)])
    at = np.arange(out[-1]) - np.repeat(out[:-1], size) + np.repeat(start[:-1][keep], size)
    return RouteSet(sources, targets, pair[keep], out, arcs[at])


#: Steps without a better bound after which the search ends.
STALE = 60


def tight_bound(
    topology: Topology, collective: Collective, limits: Limits, enough: int, left: Callable[[], float], steps: int = 400
) -> Bound:
    """The best priced bound found; stops at ``enough`` rounds, when time is up, or when it no longer grows.

    Only chunks that go from one vertex to one other shape the prices.
    """
    from opticoll.solvers.methods.lumorph.route_kernels import loads_by_trees

    demand, _ = single_demand(collective)
    first_out = np.searchsorted(topology.tail, np.arange(topology.n + 1))
    logarithm = np.zeros(topology.arcs)
    price = np.ones(topology.arcs)
    best = priced_bound(topology, collective, limits, price)
    level, stale = 0.0, 0
    for step in range(steps if demand.any() else 0):
        if best.value >= enough or left() <= 0 or stale >= STALE:
            break
        load = loads_by_trees(first_out, topology.head, topology.tail, price, demand)
        value = float((load * price).sum() / price.sum())
        stale = 0 if value > level * (1 + 1e-4) else stale + 1
        if value > level:
            level = value
            best = max(best, priced_bound(topology, collective, limits, price), key=lambda bound: bound.value)
        logarithm += load / load.max(initial=1e-300) / np.sqrt(1.0 + step / 4.0)
        price = np.exp(logarithm - logarithm.max())
    return best


#: Entries of the tables of one search.
MOST_ENTRIES = 400_000_000
#: Steps of the search between two looks at the clock, times the bins.
STRIDE = 2_000_000


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


@dataclass
class Packing:
    """The circuits as items for :mod:`opticoll.solvers.methods.lumorph.packing`.

    ``first``, ``start``, ``needs``, ``tie``, ``room`` as there; ``wavelengths`` is L; ``bin_of`` and ``choice`` the
    colour and route of every circuit so far (-1: none).
    """

    routes: RouteSet
    first: I64
    start: I64
    needs: I64
    tie: I64
    room: I64
    wavelengths: int
    bin_of: I64
    choice: I64

    @property
    def rounds(self) -> int:
        """Rounds that the colours in use span."""
        return int(self.bin_of.max(initial=-1)) // self.wavelengths + 1

    def assignment(self) -> Assignment:
        """What stands now, as arrays."""
        length = np.diff(self.routes.start)[self.choice]
        start = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(length)])
        at = np.arange(start[-1]) - np.repeat(start[:-1], length) + np.repeat(self.routes.start[self.choice], length)
        round_, wave = np.divmod(self.bin_of, self.wavelengths)
        return Assignment(round_, wave, start, self.routes.arcs[at])


def packing(topology: Topology, limits: Limits, routes: RouteSet, wave: I64 | None = None) -> Packing:
    """Circuits ``routes.source -> routes.target`` as items; ``wave`` ties routes to wavelengths, ``(P,)``."""
    n, m = topology.n, topology.arcs
    length = np.diff(routes.start)
    source, target = routes.source[routes.pair], routes.target[routes.pair]
    needs, start = routes.arcs, routes.start
    # More than every circuit of a colour is no limit, and would only cost memory.
    most = source.size if limits.ports is None else n * limits.ports
    room = np.full(m, min(limits.waveguides, most))
    ports = limits.ports
    if ports is not None:
        start = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(length + 2)])
        needs = np.empty(start[-1], dtype=np.int64)
        needs[start[:-1]], needs[start[:-1] + 1] = m + source, m + n + target
        owner = np.repeat(np.arange(routes.paths), length)
        needs[start[owner] + 2 + np.arange(routes.arcs.size) - routes.start[owner]] = routes.arcs
        room = np.concatenate([room, np.full(2 * n, ports)])
    tie = np.full(routes.paths, -1) if wave is None else np.asarray(wave, dtype=np.int64)
    nothing = np.full(routes.source.size, -1)
    return Packing(routes, routes.first, start, needs, tie, room, limits.wavelengths, nothing, nothing.copy())


def pack_first(items: Packing, order: I64) -> int:
    """First fit of everything in this order, in place; the rounds it takes."""
    from opticoll.solvers.methods.lumorph.packing import first_fit

    most = 64
    while True:
        most = -(-most // items.wavelengths) * items.wavelengths
        first_fit(
            items.first, items.start, items.needs, items.tie, items.wavelengths, items.room, order, most, items.bin_of,
            items.choice,
        )  # fmt: skip
        if (items.bin_of >= 0).all():
            return items.rounds
        most *= 2


def orders(items: Packing, random: np.random.Generator) -> list[I64]:
    """Orders worth trying: by length, long first, with more and more noise; by source and distance."""
    length = np.diff(items.routes.start)[items.first[:-1]].astype(float)
    turn = (items.routes.target - items.routes.source) % (int(items.routes.target.max(initial=0)) + 1)
    return [
        np.lexsort((turn, -length)),
        np.argsort(-length - random.random(length.size), kind="stable"),
        np.argsort(-length - 3.0 * random.random(length.size), kind="stable"),
        random.permutation(length.size),
    ]


def squeeze(
    items: Packing, rounds: int, random: np.random.Generator, left: Callable[[], float], stop: int | None = None
) -> bool:
    """Repack into ``rounds`` rounds by ejection search, in place if it succeeds, while ``left()`` is positive."""
    from opticoll.solvers.methods.lumorph.packing import eject

    bins = rounds * items.wavelengths
    if bins <= 0 or too_large(items, rounds):
        return False
    bin_of, choice = items.bin_of.copy(), items.choice.copy()
    bin_of[bin_of >= bins] = -1
    until = np.zeros((bin_of.size, bins), dtype=np.int64)
    stride = max(STRIDE // bins, 50)
    made = 0
    while left() > 0 and (stop is None or made < stop):
        homeless, steps = eject(
            items.first, items.start, items.needs, items.tie, items.wavelengths, items.room, bins, bin_of, choice,
            until, int(random.integers(2**31)), stride,
        )  # fmt: skip
        made += steps
        if homeless == 0:
            items.bin_of, items.choice = bin_of, choice
            return True
    return False


def improve(items: Packing, least: int, random: np.random.Generator, left: Callable[[], float]) -> None:
    """Fewer rounds while there is time and more than ``least`` are used, in place.

    First ``least`` itself; then by halving, where what failed once counts as too few until everything has failed.
    """
    floor, slices = least, 4
    while items.rounds > least and left() > 0:
        rounds = least if slices == 4 else (floor + items.rounds - 1) // 2
        end = time.monotonic() + max(left() / slices, 0.02)
        slices = 3

        def until(end: float = end) -> float:
            return min(left(), end - time.monotonic())

        if not squeeze(items, rounds, random, until):
            floor = rounds + 1
        if floor >= items.rounds:
            floor = least
            if too_large(items, least):
                return


def too_large(items: Packing, rounds: int) -> bool:
    """Whether the tables of a search with so many rounds would exceed :data:`MOST_ENTRIES`."""
    bins = rounds * items.wavelengths
    return bins * (int(items.room.sum()) + items.room.size + items.bin_of.size) > MOST_ENTRIES


def assign_rounds(
    topology: Topology,
    limits: Limits,
    sources: I64,
    targets: I64,
    *,
    routes: RouteSet | None = None,
    wave: I64 | None = None,
    least: int = 1,
    seconds: float = 1.0,
    seed: int = 0,
) -> Assignment:
    """Rounds and wavelengths for circuits ``sources[k] -> targets[k]``, few rounds.

    Parameters
    ----------
    routes
        Candidates, one pair a circuit in their order; straight and light ones by default.
    wave
        Wavelength that each candidate is tied to, ``(P,)``; any by default.
    least
        A lower bound on the rounds: the search stops there.
    seconds
        Time for the search after first fit; it ends earlier at ``least``.

    Raises
    ------
    BadInput
        For arrays of unequal length, vertices out of range or circuits to oneself.
    NotApplicable
        If a pair has no route.
    """
    source, target = np.asarray(sources, dtype=np.int64), np.asarray(targets, dtype=np.int64)
    ends = np.concatenate([source, target])
    if source.shape != target.shape or source.ndim != 1 or (source == target).any():
        msg = f"circuits: {source.size} sources for {target.size} targets, or one to itself; give pairs of two vertices"
        raise BadInput(msg)
    if ends.size and (ends.min() < 0 or ends.max() >= topology.n):
        msg = f"circuits: vertices lie in 0..{topology.n - 1}, not {ends.min()}..{ends.max()}"
        raise BadInput(msg)
    if not source.size:
        nothing = np.zeros(0, dtype=np.int64)
        return Assignment(nothing, nothing, np.zeros(1, dtype=np.int64), nothing)
    random = np.random.default_rng(seed)
    listed = routes or candidates(topology, source, target, seed=seed)
    items = packing(topology, limits, listed, wave)
    best: tuple[int, I64, I64] | None = None
    for order in orders(items, random):
        taken = pack_first(items, order)
        if best is None or taken < best[0]:
            best = taken, items.bin_of.copy(), items.choice.copy()
        if taken <= least:
            break
    assert best is not None
    _, items.bin_of, items.choice = best
    end = time.monotonic() + seconds
    improve(items, least, random, lambda: end - time.monotonic())
    return items.assignment()

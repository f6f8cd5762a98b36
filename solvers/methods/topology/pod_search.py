"""Methods ``pod-search`` and ``pod-enumeration``: wirings of a pod, each with its time by linear programs."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import permutations, product, zip_longest
from math import factorial, isqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import NotApplicable
from opticoll.formulations import rounding
from opticoll.formulations.parameters import Parameter
from opticoll.formulations.topology.pod_bounds import cube_links, least_time
from opticoll.formulations.topology.pod_solution import values_on
from opticoll.instances import parse
from opticoll.instances.families.pods import (
    even_shape,
    lattice,
    moved_wirings,
    pod_of,
    published_twist,
    spec_of,
    without_cables,
)
from opticoll.solvers.methods.method import Answer, Beyond, Method
from opticoll.solvers.methods.topology.minimum_load import least_load
from opticoll.solvers.methods.topology.pod_loads import SQUARINGS, annealed, load_norm, switches_of, worst_norm
from opticoll.solvers.methods.topology.sequence_orbits import some_groups
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opticoll.formulations.topology.pod import PodWiring
    from opticoll.instances.topology import F64, I64, Topology
    from opticoll.solvers.methods.method import Context

#: Most chips of solutions that are written, most chips whose loads are found by a compiled simplex method, and most
#: characters of a spec, through which the symmetries of a wiring are known.
MOST_CHIPS, MOST_SIMPLEX, MOST_TEXT = 1024, 32, 4000
#: Most twisted boxes that are tried.
MOST_LATTICES = 500
#: Most wirings that are enumerated.
MOST_WIRINGS = 200_000
#: Relative round-off of bounds by distances and of the simplex method.
ROUND_OFF = 1e-9


@dataclass
class BestWiring:
    """The fastest wiring so far, ``(3, side^2, k)``: its time, its flows in every case, and how many were solved."""

    data: PodWiring
    tol: float
    time: float = np.inf
    wiring: I64 | None = None
    flows: list[F64] = field(default_factory=list)
    solved: int = 0

    @property
    def target(self) -> float:
        """Time from which a wiring is not needed."""
        return self.time * (1 - 0.5 * self.tol)

    def answer(self, termination: Termination) -> Answer:
        """The solution, scaled to unit capacities."""
        if self.wiring is None:
            return Answer(termination, message="no wiring that carries the demand within the limits; raise them")
        F = 1.0 / self.time
        return Answer(
            termination,
            values=values_on(self.data, self.wiring, [flow * F for flow in self.flows], F),
            solver={"algorithm": "linear programs of wirings"},
            metrics={"wirings": self.solved},
        )


def network(wiring: I64, side: int, lost: int) -> Topology:
    """The pod after the loss of a switch, -1 for none; with the name by which its symmetries are known."""
    spec, at = spec_of(wiring, side), divmod(lost, side**2)
    if len(spec) <= MOST_TEXT:
        return parse(spec if lost < 0 else f"{spec}+fail=switch:{at[0]}.{at[1]}")
    whole = pod_of(wiring, side)
    return whole if lost < 0 else without_cables(whole, wiring, side, at)


def worst_first(wiring: I64, lost: Sequence[int]) -> list[int]:
    """Switches that may be lost, -1 for none, by the norm of the loads without them, the largest first."""
    side, cubes = isqrt(wiring.shape[1]), wiring.shape[2]
    follow = wiring.reshape(-1, cubes)
    back = np.argsort(follow, axis=1)
    links = [cube_links(side, same=False, lost=switch) for switch in lost]
    norms = [load_norm(one.head, one.letter, follow, back, False, SQUARINGS[-1]) for one in links]
    return [lost[case] for case in np.argsort(norms)[::-1]]


def hop_bound(data: PodWiring, pod: Topology) -> float:
    """Lower bound on T of one case by distances; infinite if some demand has no path."""
    sent = data.demand > 0.0
    total = float((data.demand[sent] * pod.hops[sent]).sum())
    return total / pod.arcs * (1 - ROUND_OFF) if np.isfinite(total) else np.inf


def load_bound(data: PodWiring, pod: Topology, worst: float) -> float:
    """Lower bound on T of one case by the loads of a small network, which begins with its distances."""
    low = hop_bound(data, pod)
    if data.n > MOST_SIMPLEX or np.isinf(low):
        return low
    count = np.zeros((data.n, data.n), dtype=np.int64)
    np.add.at(count, (pod.tail, pod.head), 1)
    return least_load(count, data.demand, np.ones((data.n, data.n)), worst)[0] * (1 - ROUND_OFF)


def improve(context: Context, best: BestWiring, wiring: I64) -> float:
    """Solve the flow problems of a wiring, keep it if it is the fastest; return a lower bound on its time.

    Raises
    ------
    TimeoutError
        When no time is left.
    """
    from opticoll.formulations.alltoall.master import Master
    from opticoll.solvers.methods.flows import flow_orbits
    from opticoll.solvers.methods.flows.orbit_lp import solve_reduced

    data, low, high = best.data, 0.0, 0.0
    flows: dict[int, F64] = {}
    whole = [-1] if data.survive else []  # no loss makes it faster
    for lost in whole + worst_first(wiring, data.lost.tolist()):
        context.remaining()
        pod = network(wiring, data.side, lost)
        low = max(low, load_bound(data, pod, best.target))
        if low >= best.target:
            return low
        demand: Any = {"demand": data.demand}
        orbits = flow_orbits.find(Master.prepare(pod, demand).flow)
        solved = solve_reduced(context, orbits, None, "auto")
        low, high = max(low, solved.lower), max(high, solved.upper)
        if solved.flows is None or low >= best.target:
            return low
        flows[lost] = np.zeros((pod.arcs, data.n))
        flows[lost][:, orbits.data.sources] = orbits.lift(solved.flows)
    best.solved += 1
    if high < best.time * (1 - 1e-9):
        best.time, best.wiring, best.flows = high, wiring, [flows[lost] for lost in data.lost.tolist()]
        context.save(best.answer(Termination.TOLERANCE), 1.0 / high)
    return low


def run_pod_search(context: Context) -> Answer:
    """Wirings in which all cubes are alike, by annealing over the elements of groups, and exchanges at single switches.

    Number the cubes by the elements of a group, and let every switch join c with c g for an element g of its own: the
    products with elements from the left keep the wiring, so that the chips of one cube stand for all. Tori, twisted
    tori and Cayley graphs are such wirings.

    1. groups: cyclic ones and all metacyclic ones, for powers of two also that of x -> x xor g; with ``places=same``
       also quotients of the lattice Z^3, which are the twisted boxes of cubes
    2. for each, annealing over the elements of all switches (with ``places=free`` the same at places that are opposite
       each other, which is a further symmetry of commutative groups) under norms of the loads of equally split
       shortest paths (:mod:`opticoll.solvers.methods.topology.pod_loads`); with ``survive=1`` the largest one after
       the loss of a switch, one of two that are opposite
    3. T of those with the smallest norms, of the torus and of the published twist, by the linear program on orbits
       (:mod:`opticoll.solvers.methods.flows.orbit_lp`); with ``survive=1`` for every switch that may be lost, in the
       order of the norms, until one makes the wiring slower than the best
    4. in pods of up to 32 chips, exchanges of the ends of two links of one switch, as long as they are faster

    The search is a heuristic. The bounds on every wiring tell how far its result can be from the best one.
    """
    data: PodWiring = context.data
    refuse_large(data)
    best, rng = BestWiring(data, context.task.tol), np.random.default_rng(context.task.seed)
    least = float(least_time(data)[0]) * (1 + context.task.tol)
    try:
        for listed in (known(data), candidates(context, data, rng)):
            for wiring in listed:
                improve(context, best, wiring)
                if best.time <= least:
                    return best.answer(Termination.OPTIMAL)
        if data.n <= MOST_SIMPLEX:
            exchange(context, best, rng, int(context.parameters["exchanges"]))
    except TimeoutError:
        return best.answer(Termination.TIME_LIMIT)
    return best.answer(Termination.OPTIMAL if best.time <= least else Termination.TOLERANCE)


def refuse_large(data: PodWiring) -> None:
    """Refuse pods whose flows are too many to be written.

    Raises
    ------
    NotApplicable
        Above :data:`MOST_CHIPS` chips.
    """
    if data.n > MOST_CHIPS:
        msg = f"{data.name}: solutions of {data.n} chips are too large to write; use up to {MOST_CHIPS}, "
        msg += f"or run opticoll design pod cubes={data.cubes}"
        raise NotApplicable(msg)


def known(data: PodWiring) -> list[I64]:
    """The torus and, where there is one, the published twist."""
    shape = even_shape(data.cubes)
    twists = [(0, 0, 0)] + ([published_twist(shape)] if shape[2] == 2 * shape[0] else [])
    return [lattice_wiring(data, twist) for twist in twists]


def candidates(context: Context, data: PodWiring, rng: np.random.Generator) -> list[I64]:
    """The wirings of groups with the smallest norms; found in at most half of the time."""
    half = None if context.deadline is None else (time.monotonic() + context.deadline) / 2
    settings = {name: int(context.parameters[name]) for name in ("starts", "moves", "most")}
    return best_wirings(data.cubes, data.side, same=data.same, survive=data.survive, rng=rng, until=half, **settings)


def lattice_wiring(data: PodWiring, twist: tuple[int, int, int]) -> I64:
    """The wiring of the box of even shape, with a twist."""
    return np.repeat(lattice(even_shape(data.cubes), twist)[:, None], data.side**2, axis=1)


def best_wirings(
    cubes: int,
    side: int,
    *,
    same: bool,
    survive: bool,
    rng: np.random.Generator,
    starts: int,
    moves: int,
    most: int,
    until: float | None,
) -> list[I64]:
    """At most so many wirings of groups with the smallest norms, of the norms in turn, without repetitions.

    The search ends at the time ``until``.
    """

    def tick() -> None:
        if until is not None and time.monotonic() > until:
            raise TimeoutError

    found: dict[int, list[tuple[float, I64]]] = {power: [] for power in SQUARINGS}
    with suppress(TimeoutError):  # those that were found are solved
        kinds = {"same": same, "survive": survive}
        for power, norm, wiring in group_wirings(cubes, side, **kinds, rng=rng, starts=starts, moves=moves, tick=tick):
            found[power].append((norm, wiring))
    ranked = (sorted(one, key=lambda pair: pair[0]) for one in found.values())
    listed = {pair[1].tobytes(): pair[1] for row in zip_longest(*ranked) for pair in row if pair is not None}
    return list(listed.values())[:most]


def group_wirings(
    cubes: int, side: int, *, same: bool, survive: bool, rng: np.random.Generator, starts: int, moves: int, tick: Any
) -> Iterator[tuple[int, float, I64]]:
    """Squarings of a norm, norm and wiring ``(3, side^2, k)`` of every group, ``starts`` times with the norms in turn.

    With ``same`` also of lattices.
    """
    links, switch = cube_links(side, same=False, lost=-1), np.arange(3 * side**2)
    place = switch % side**2  # that and the one opposite, both coordinates reversed, are alike
    first, pairs = np.unique(switch - place + np.minimum(place, side**2 - 1 - place), return_inverse=True)
    sets, lost = switch // side**2 if same else pairs, first if survive else np.array([-1])
    for wiring in lattices(cubes, side) if same else ():
        tick()
        follow = wiring.reshape(-1, cubes)
        back = np.argsort(follow, axis=1)
        for power in SQUARINGS:
            yield power, worst_norm(links.head, links.letter, follow, back, power, lost.copy(), np.inf), wiring
    for start in range(starts if cubes > 1 else 0):
        power = SQUARINGS[start % len(SQUARINGS)]
        for group in some_groups(cubes):
            tick()
            products = group.table, group.inverses, sets, power
            norm, elements = annealed(links, *products, moves=moves, random=rng, lost=lost, tick=tick)
            yield power, norm, switches_of(group.table, elements, sets).reshape(3, side**2, cubes)


def lattices(cubes: int, side: int) -> Iterator[I64]:
    """Twisted boxes of so many cubes: all quotients of the lattice Z^3, at most ``MOST_LATTICES``, evenly spread."""
    boxes = [
        ((a, b, cubes // (a * b)), twist)
        for a in range(1, cubes + 1)
        if cubes % a == 0
        for b in range(1, cubes // a + 1)
        if cubes // a % b == 0
        for twist in product(range(b), range(cubes // (a * b)), range(cubes // (a * b)))
    ]
    for box, twist in boxes[:: -(-len(boxes) // MOST_LATTICES)]:
        yield np.repeat(lattice(box, twist)[:, None], side**2, axis=1)


def exchange(context: Context, best: BestWiring, rng: np.random.Generator, tries: int) -> None:
    """Exchange the ends of two links of a matching of the best wiring, while that is faster.

    Raises
    ------
    TimeoutError
        When no time is left.
    """
    data = best.data
    for _ in range(tries if best.wiring is not None and data.cubes > 1 else 0):
        assert best.wiring is not None
        trial = best.wiring.reshape(data.switches, data.cubes).copy()
        at = np.flatnonzero(data.matching == rng.integers(data.matching[-1] + 1))
        i, j = rng.choice(data.cubes, 2, replace=False)
        trial[np.ix_(at, [i, j])] = trial[np.ix_(at, [j, i])]
        improve(context, best, trial.reshape(best.wiring.shape))


def classes(data: PodWiring, tick: Any) -> Iterator[I64]:
    """One of each class of wirings that are isomorphic with their demand."""
    k, count, size = data.cubes, int(data.matching[-1]) + 1, data.side**3
    orders = np.array(list(permutations(range(k))))
    kept: list[list[I64]] = []
    for image, _ in moved_wirings(lattice_wiring(data, (0, 0, 0)), data.side):
        kept.append([])
        for order in orders:  # it and the image make chip (c, image[a]) the chip (order[c], a)
            chips = (size * np.argsort(order)[:, None] + image).ravel()
            if np.array_equal(data.demand[np.ix_(chips, chips)], data.demand):
                kept[-1].append(order)
    seen: set[bytes] = set()
    for chosen in product(orders, repeat=count):
        tick()
        wiring = np.array(chosen)[data.matching].reshape(3, -1, k)
        if wiring.tobytes() not in seen:
            for (_, moved), alike in zip(moved_wirings(wiring, data.side), kept, strict=True):
                seen |= {order[moved[:, :, np.argsort(order)]].tobytes() for order in alike}
            yield wiring


def run_pod_enumeration(context: Context) -> Answer:
    """The best of all wirings of a few cubes, one of each class under orders of the cubes and symmetries of a cube.

    They are examined in the order of the bounds that their distances give. A wiring is excluded if its distances, the
    loads of its links or its linear program prove that it is no faster than the best one so far; these numbers bound
    the time of every wiring.
    """
    data: PodWiring = context.data
    refuse_large(data)
    number = factorial(data.cubes) ** (int(data.matching[-1]) + 1)
    if number > MOST_WIRINGS:
        msg = f"pod-enumeration: {number:.3g} wirings are more than the limit of {MOST_WIRINGS}; use pod-search"
        raise NotApplicable(msg)
    best, least = BestWiring(data, context.task.tol), np.inf
    try:
        for wiring in known(data):  # all of them are examined below, which may take long
            improve(context, best, wiring)
        listed = [
            (max(hop_bound(data, network(wiring, data.side, lost)) for lost in data.lost.tolist()), wiring)
            for wiring in classes(data, context.remaining)
        ]
        for low, wiring in sorted(listed, key=lambda one: one[0]):
            least = min(least, low if low >= best.target else improve(context, best, wiring))
            if best.time <= float(least_time(data)[0]) * (1 + context.task.tol):
                return best.answer(Termination.OPTIMAL)
    except TimeoutError:
        return best.answer(Termination.TIME_LIMIT)
    answer = best.answer(Termination.OPTIMAL)
    if best.wiring is not None:
        answer.bound = rounding.quotient_up(1.0, min(least, best.target))
        answer.bound_source = f"enumeration of {len(listed)} wirings, which stand for all {number}"
        answer.metrics = {**answer.metrics, "classes": len(listed)}
    return answer


METHODS = (
    Method(
        name="pod-search",
        title="Wirings of a pod in which all cubes are alike, by annealing over groups",
        summary="every switch joins c with c g; the norm of loads over shortest paths chooses the elements g, linear "
        "programs on orbits the best wiring; small pods also by exchanges at one switch",
        serves=("topology.pod",),
        # cubes=2,side=2 2,209 variables in 1 s; cubes=6,side=1 1,009 variables not in 40 s, but by its bound.
        takes_over=(Beyond("topology.pod", 2_500, proves=False),),
        parameters=(
            Parameter("starts", int, default=2, help="random wirings to start from, for each group"),
            Parameter("moves", int, default=400, help="replacements of elements from each start"),
            Parameter("most", int, default=6, help="number of wirings whose flow problems are solved"),
            Parameter("exchanges", int, default=200, help="exchanges of two links, for up to 32 chips"),
        ),
        run=run_pod_search,
    ),
    Method(
        name="pod-enumeration",
        title="All wirings of a pod of few cubes, up to isomorphism",
        summary="wirings are excluded by distances, by loads or by their linear programs; proves the best one",
        serves=("topology.pod",),
        run=run_pod_enumeration,
    ),
)

"""Methods ``pod-search`` and ``pod-enumeration``: wirings of a pod, each with its time by linear programs."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from itertools import permutations, product
from math import factorial
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import NotApplicable
from opticoll.formulations import rounding
from opticoll.formulations.parameters import Parameter
from opticoll.formulations.topology.pod_bounds import cube_links, least_time
from opticoll.formulations.topology.pod_solution import values_on
from opticoll.instances import parse
from opticoll.instances.families.pods import even_shape, lattice, moved_wirings, pod_of, published_twist, spec_of
from opticoll.solvers.methods.method import Answer, Beyond, Method
from opticoll.solvers.methods.topology.link_exchanges import SQUARINGS
from opticoll.solvers.methods.topology.minimum_load import least_load
from opticoll.solvers.methods.topology.pod_loads import annealed, load_norm, switches_of
from opticoll.solvers.methods.topology.sequence_orbits import some_groups
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from collections.abc import Iterator

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
            return Answer(termination, message="no wiring joins all cubes within the limits; raise them")
        F = 1.0 / self.time
        return Answer(
            termination,
            values=values_on(self.data, self.wiring, [flow * F for flow in self.flows], F),
            solver={"algorithm": "linear programs of wirings"},
            metrics={"wirings": self.solved},
        )


def networks(data: PodWiring, wiring: I64) -> Iterator[Topology]:
    """The pod of every case, one after the loss of each switch that may be lost."""
    spec = spec_of(wiring, data.side)
    known = len(spec) <= MOST_TEXT
    whole = parse(spec) if known else pod_of(wiring, data.side)
    for lost in data.lost.tolist():
        if lost < 0:
            yield whole
        elif known:
            yield parse(f"{spec}+fail=switch:{lost // data.side**2}.{lost % data.side**2}")
        else:
            yield whole_without(data, wiring, lost)


def whole_without(data: PodWiring, wiring: I64, lost: int) -> Topology:
    """The pod without a switch."""
    from opticoll.instances.families.pods import without_cables

    return without_cables(pod_of(wiring, data.side), wiring, data.side, divmod(lost, data.side**2))


def hop_bound(data: PodWiring, wiring: I64) -> float:
    """Lower bound on T of a wiring, the worst of its cases, by distances; infinite if it is disconnected."""
    worst = 0.0
    for network in networks(data, wiring):
        if not network.connected:
            return np.inf
        worst = max(worst, float((data.demand * network.hops).sum()) / network.arcs)
    return worst * (1 - ROUND_OFF)


def load_bound(data: PodWiring, network: Topology, worst: float) -> float:
    """Lower bound on T of one case by the loads of a small network, which begins with its distances."""
    if not network.connected:
        return np.inf
    if data.n > MOST_SIMPLEX:
        return float((data.demand * network.hops).sum()) / network.arcs * (1 - ROUND_OFF)
    count = np.zeros((data.n, data.n), dtype=np.int64)
    np.add.at(count, (network.tail, network.head), 1)
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

    data, low, high, flows = best.data, 0.0, 0.0, []
    for network in networks(data, wiring):
        context.remaining()
        low = max(low, load_bound(data, network, best.target))
        if low >= best.target:
            return low
        demand: Any = {"demand": data.demand}
        orbits = flow_orbits.find(Master.prepare(network, demand).flow)
        solved = solve_reduced(context, orbits, None, "auto")
        low, high = max(low, solved.lower), max(high, solved.upper)
        if solved.flows is None or low >= best.target:
            return low
        flows.append(orbits.lift(solved.flows))
    best.solved += 1
    if high < best.time * (1 - 1e-9):
        best.time, best.wiring, best.flows = high, wiring, flows
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
       each other, which is a further symmetry of commutative groups) under a norm of the loads of equally split
       shortest paths (:mod:`opticoll.solvers.methods.topology.pod_loads`)
    3. T of those with the smallest norm, of the torus and of the published twist, by the linear program on orbits
       (:mod:`opticoll.solvers.methods.flows.orbit_lp`), for every switch that may be lost
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


def candidates(context: Context, data: PodWiring, rng: np.random.Generator) -> Iterator[I64]:
    """The wirings of groups with the smallest norms, without repetitions; found in at most half of the time."""
    half = None if context.deadline is None else (time.monotonic() + context.deadline) / 2
    settings = context.parameters
    found: dict[bytes, tuple[float, I64]] = {}

    def tick() -> None:
        if half is not None and time.monotonic() > half:
            raise TimeoutError

    try:
        for norm, wiring in group_wirings(
            data.cubes,
            data.side,
            same=data.same,
            rng=rng,
            starts=int(settings["starts"]),
            moves=int(settings["moves"]),
            tick=tick,
        ):
            found.setdefault(wiring.tobytes(), (norm, wiring))
    except TimeoutError:  # those that were found are solved
        pass
    for _, wiring in sorted(found.values(), key=lambda one: one[0])[: int(settings["most"])]:
        yield wiring


def lattice_wiring(data: PodWiring, twist: tuple[int, int, int]) -> I64:
    """The wiring of the box of even shape, with a twist."""
    return np.repeat(lattice(even_shape(data.cubes), twist)[:, None], data.side**2, axis=1)


def group_wirings(
    cubes: int, side: int, *, same: bool, rng: np.random.Generator, starts: int, moves: int, tick: Any
) -> Iterator[tuple[float, I64]]:
    """Norms and wirings ``(3, side^2, k)`` of every group in turn, ``starts`` times; of lattices with ``same``."""
    links, switch = cube_links(side, same=False, lost=-1), np.arange(3 * side**2)
    sets = switch // side**2
    if not same:  # a place and the one opposite: both coordinates reversed
        place = switch % side**2
        _, sets = np.unique(sets * side**2 + np.minimum(place, side**2 - 1 - place), return_inverse=True)
    for wiring in lattices(cubes, side) if same else ():
        tick()
        follow = wiring.reshape(-1, cubes)
        yield load_norm(links.head, links.letter, follow, np.argsort(follow, axis=1), True, SQUARINGS), wiring
    for _ in range(starts if cubes > 1 else 0):
        for group in some_groups(cubes):
            tick()
            norm, elements = annealed(links, group.table, group.inverses, sets, moves=moves, random=rng, tick=tick)
            yield norm, switches_of(group.table, elements, sets).reshape(3, side**2, cubes)


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
    """One of each class of isomorphic wirings; with a demand that varies, all of them."""
    k, count = data.cubes, int(data.matching[-1]) + 1
    orders = np.array(list(permutations(range(k))))
    seen: set[bytes] = set()
    for chosen in product(orders, repeat=count):
        tick()
        wiring = np.array(chosen)[data.matching].reshape(3, -1, k)
        if data.demand_varies:
            yield wiring
        elif wiring.tobytes() not in seen:
            for _, moved in moved_wirings(wiring, data.side):
                for order in orders:
                    seen.add(order[moved[:, :, np.argsort(order)]].tobytes())
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
        listed = [(hop_bound(data, wiring), wiring) for wiring in classes(data, context.remaining)]
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

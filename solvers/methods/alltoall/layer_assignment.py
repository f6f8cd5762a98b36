"""Method ``layer-assignment``: virtual channels that break the cycles of routes."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.alltoall.virtual_channels_solution import values_of as layer_values
from opticoll.formulations.parameters import Parameter
from opticoll.solvers.methods.method import Answer, Beyond, Method
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from opticoll.formulations.alltoall.virtual_channels import LayeredRoutes
    from opticoll.instances.topology import F64, I64
    from opticoll.solvers.methods.method import Context

    Dependency = tuple[int, int]


class ChannelLayer:
    """The dependencies of one layer, each with its number of routes."""

    def __init__(self) -> None:
        self.routes: dict[Dependency, int] = {}
        self.after: dict[int, set[int]] = {}

    def add(self, dependencies: list[Dependency]) -> bool:
        """Add those of a route; undo it and return False if they close a cycle."""
        for e in dependencies:
            self.routes[e] = self.routes.get(e, 0) + 1
            if self.routes[e] == 1:
                self.after.setdefault(e[0], set()).add(e[1])
        if all(self.routes[e] > 1 or not self._reaches(e[1], e[0]) for e in dependencies):
            return True
        self.remove(dependencies)
        return False

    def remove(self, dependencies: list[Dependency]) -> None:
        """Remove those of a route."""
        for e in dependencies:
            self.routes[e] -= 1
            if self.routes[e] == 0:
                del self.routes[e]
                self.after[e[0]].discard(e[1])

    def _reaches(self, start: int, goal: int) -> bool:
        seen, stack = {start}, [start]
        while stack:
            a = stack.pop()
            if a == goal:
                return True
            new = self.after.get(a, set()) - seen
            seen |= new
            stack += new
        return False


def route_dependencies(data: LayeredRoutes) -> list[list[Dependency]]:
    """The dependencies of every route, in path order."""
    routes = data.known_routes
    return [list(pairwise(path)) for path in map(routes.path, range(routes.paths))]


def _carriers(dependencies: list[list[Dependency]], routes: Iterable[int]) -> dict[Dependency, set[int]]:
    carriers: dict[Dependency, set[int]] = {}
    for r in routes:
        for e in dependencies[r]:
            carriers.setdefault(e, set()).add(r)
    return carriers


class CyclicPart:
    """The dependencies that lead to a cycle: arcs that none of the others follow are dropped as they arise."""

    def __init__(self, carriers: dict[Dependency, set[int]]) -> None:
        self.carriers = carriers
        self.after: dict[int, set[int]] = {}
        self.before: dict[int, set[int]] = {}
        for a, b in carriers:
            self.after.setdefault(a, set()).add(b)
            self.before.setdefault(b, set()).add(a)
        self._drop([b for b in self.before if b not in self.after])

    def remove(self, dependency: Dependency) -> None:
        """Remove a dependency, if it is still here."""
        a, b = dependency
        if b in self.after.get(a, ()):
            self.after[a].discard(b)
            self.before[b].discard(a)
            if not self.after[a]:
                self._drop([a])

    def _drop(self, last: list[int]) -> None:
        while last:
            b = last.pop()
            self.after.pop(b, None)
            for a in self.before.pop(b, ()):
                self.after[a].discard(b)
                if not self.after[a]:
                    last.append(a)

    def find(self) -> list[Dependency]:
        """A cycle along dependencies of many routes; empty if there is none."""
        place: dict[int, int] = {}
        a = next(iter(self.after), None)
        while a is not None and a not in place:
            place[a] = len(place)
            a = max((len(self.carriers[a, b]), b) for b in self.after[a])[1]
        cycle = [] if a is None else list(place)[place[a] :]
        return list(zip(cycle, cycle[1:] + cycle[:1], strict=True))


def breaking_cycles(data: LayeredRoutes, tick: Callable[[], object] = lambda: None) -> I64:
    """D.1 (1): all routes start in one layer; the routes of every cycle's rarest dependency move to the next layer."""
    dependencies = route_dependencies(data)
    layer = np.zeros(len(dependencies), dtype=np.int64)
    current, level = list(range(len(dependencies))), 0
    while current:
        carriers, moved = _carriers(dependencies, current), set()
        cycles = CyclicPart(carriers)
        while cycle := cycles.find():
            tick()
            rarest = min(cycle, key=lambda e: (len(carriers[e]), e))
            for r in list(carriers[rarest]):
                moved.add(r)
                for e in dependencies[r]:
                    carriers[e].discard(r)
                    if not carriers[e]:
                        cycles.remove(e)
        level += 1
        current = sorted(moved)
        layer[current] = level
    return layer


def random_assignment(data: LayeredRoutes, seed: int, tick: Callable[[], object] = lambda: None) -> I64:
    """D.1 (2): routes in random order, each to the layer least used on and around its arcs.

    Around an arc are the arcs that enter its tail and leave its head. Layers in which the route would close a cycle are
    skipped; if all are, a new layer is opened.
    """
    topology, dependencies = data.topology, route_dependencies(data)
    routes, random = data.known_routes, np.random.default_rng(seed)
    around = (topology.head[:, None] == topology.tail[None, :]).astype(float)
    around = np.eye(topology.arcs) + around + around.T
    layer = np.zeros(len(dependencies), dtype=np.int64)
    usage: list[F64] = []
    layers: list[ChannelLayer] = []
    for r in random.permutation(len(dependencies)).tolist():
        tick()
        arcs = routes.path(r)
        near = around[arcs].sum(axis=0)
        order = sorted(range(len(layers)), key=lambda i: float(usage[i] @ near))
        chosen = next((i for i in order if layers[i].add(dependencies[r])), len(layers))
        if chosen == len(layers):
            usage.append(np.zeros(topology.arcs))
            layers.append(ChannelLayer())
            layers[-1].add(dependencies[r])
        usage[chosen][arcs] += 1.0
        layer[r] = chosen
    return layer


def conflict_colouring(data: LayeredRoutes, tick: Callable[[], object] = lambda: None) -> I64:
    """D.1 (3): colours of a conflict graph of routes, which gains edges until no colour has a cycle.

    For every remaining cycle in a layer, conflicts are added between the routes of its rarest dependency and those of
    another dependency that lack the rarest one; then all are coloured again, most conflicts first. This terminates
    because every round adds a conflict between two routes of one layer.
    """
    dependencies = route_dependencies(data)
    count = len(dependencies)
    conflict: list[set[int]] = [set() for _ in range(count)]
    while True:
        layer = _greedy_colours(conflict)
        clean = True
        for level in range(int(layer.max(initial=0)) + 1):
            tick()
            carriers = _carriers(dependencies, np.flatnonzero(layer == level).tolist())
            cycle = CyclicPart(carriers).find()
            if not cycle:
                continue
            clean = False
            left, right = _sides(carriers, cycle)
            for r in left:
                conflict[r] |= right
            for r in right:
                conflict[r] |= left
        if clean:
            return layer


def _sides(carriers: dict[Dependency, set[int]], cycle: list[Dependency]) -> tuple[set[int], set[int]]:
    """Two disjoint sets of routes of a cycle to be separated, so that the cycle cannot remain in one layer."""
    ordered = sorted(cycle, key=lambda e: (len(carriers[e]), e))
    rarest = carriers[ordered[0]]
    for e in ordered[1:]:
        others = carriers[e] - rarest
        if others:
            return set(rarest), others
    # All dependencies have the same routes; a simple path alone is no cycle, so these can be separated.
    first = min(rarest)
    return {first}, set(rarest) - {first}


def _greedy_colours(conflict: list[set[int]]) -> I64:
    colour = np.full(len(conflict), -1, dtype=np.int64)
    for r in sorted(range(len(conflict)), key=lambda r: (-len(conflict[r]), r)):
        used = {int(colour[q]) for q in conflict[r]}
        colour[r] = next(c for c in range(len(conflict) + 1) if c not in used)
    return colour


HEURISTICS = ("breaking-cycles", "random", "conflict-colouring")
#: Most routes whose conflicts are coloured by default, since a round takes time in the square of their number, and that
#: are assigned at random, one after the other.
MOST_COLOURED, MOST_RANDOM = 1_000, 20_000


def run(context: Context) -> Answer:
    """The three layer assignments of the all-to-all paper's Appendix D.1, and orders of arcs.

    By default the best of the three is taken, or one to fewer layers that annealing finds
    (:mod:`opticoll.solvers.methods.alltoall.layer_orders`), whose number is bisected. Conflicts of more than
    :data:`MOST_COLOURED` routes are coloured, and more than :data:`MOST_RANDOM` are assigned at random, only if that
    heuristic is asked for.

    The checker uses :func:`~opticoll.formulations.alltoall.dependencies.acyclic` of the formulation instead.
    """
    from opticoll.solvers.methods.alltoall.layer_orders import LayerOrders

    data: LayeredRoutes = context.data
    seed, moves, tick = context.task.seed, int(context.parameters["moves"]), context.remaining
    ways: dict[str, Callable[[], I64]] = {
        "breaking-cycles": lambda: breaking_cycles(data, tick),
        "random": lambda: random_assignment(data, seed, tick),
        "conflict-colouring": lambda: conflict_colouring(data, tick),
    }
    chosen = str(context.parameters["heuristic"])
    routes = data.known_routes.paths
    tried = HEURISTICS[: 1 if routes > MOST_RANDOM else 2 if routes > MOST_COLOURED else 3]
    layers: dict[str, I64] = {}

    def answer(ending: Termination = Termination.TIME_LIMIT) -> Answer:
        best = min(layers, key=lambda name: int(layers[name].max(initial=0)))
        return Answer(
            ending,
            values=layer_values(data, layers[best]),
            solver={"algorithm": best},
            metrics={
                "layers_by_heuristic": {name: int(one.max(initial=0)) + 1 for name, one in layers.items()},
                "found_by": best,
            },
            message="a heuristic: it stops without trying to prove anything",
        )

    def keep(name: str, layer: I64) -> None:
        layers[name] = layer
        if (used := int(layer.max(initial=0)) + 1) <= data.layers:
            context.save(answer(), float(used))

    with suppress(TimeoutError):
        for name in tried if chosen == "best" else (chosen,):
            keep(name, ways[name]())
        fewest = max(int(bound.value) for bound in data.bounds())
        found = min(int(layer.max(initial=0)) for layer in layers.values()) + 1
        while chosen == "best" and moves > 0 and fewest < found:
            count = (fewest + found) // 2
            orders = LayerOrders(data.known_routes, count, seed)
            if orders.anneal(moves, tick) > 0:
                fewest = count + 1
            else:
                found = count
                keep("orders", orders.layer)
        return answer(Termination.TOLERANCE)
    if not layers:
        raise TimeoutError
    return answer()


METHOD = Method(
    name="layer-assignment",
    title="Layers by the heuristics of App. D.1, and by orders of arcs",
    summary="breaking cycles, random assignment by usage, colouring of a growing conflict graph; fewer layers by "
    "annealing orders of arcs; seeded",
    serves=("alltoall.virtual-channels",),
    # torus:4x4, 4 layers, 1,880 variables in 3.7 s.
    takes_over=(Beyond("alltoall.virtual-channels", 2_000, 8_000, proves=False),),
    parameters=(
        Parameter("heuristic", str, default="best", help="heuristic to use", choices=("best", *HEURISTICS)),
        Parameter("moves", int, default=3_000_000, help="steps of annealing for a number of layers; 0 for none"),
    ),
    run=run,
)

"""Method ``layer-assignment``: virtual channels that break the cycles of routes."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.alltoall.dependencies import circle
from opticoll.formulations.alltoall.virtual_channels_solution import values_of as layer_values
from opticoll.formulations.parameters import Parameter
from opticoll.solvers.methods.method import Answer, Beyond, Method
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from opticoll.formulations.alltoall.virtual_channels import LayeredRoutes
    from opticoll.instances.topology import I64
    from opticoll.solvers.methods.method import Context

    Dependency = tuple[int, int]


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


def _cycle(carriers: dict[Dependency, set[int]]) -> list[Dependency]:
    """A cycle along dependencies of many routes; empty if there is none."""
    after: dict[int, set[int]] = {}
    for a, b in carriers:
        after.setdefault(a, set()).add(b)
    arcs = circle(after, lambda a, options: max((len(carriers[a, b]), b) for b in options)[1])
    return list(zip(arcs, arcs[1:] + arcs[:1], strict=True))


def breaking_cycles(data: LayeredRoutes, tick: Callable[[], object] = lambda: None) -> I64:
    """D.1 (1): all routes start in one layer; the routes of every cycle's rarest dependency move to the next layer."""
    dependencies = route_dependencies(data)
    layer = np.zeros(len(dependencies), dtype=np.int64)
    current, level = list(range(len(dependencies))), 0
    while current:
        carriers, moved = _carriers(dependencies, current), set()
        while cycle := _cycle(carriers):
            tick()
            gone = set(carriers[min(cycle, key=lambda e: (len(carriers[e]), e))])
            moved |= gone
            for r in gone:
                for e in dependencies[r]:
                    carriers[e].remove(r)
            carriers = {e: routes for e, routes in carriers.items() if routes}
        level += 1
        current = sorted(moved)
        layer[current] = level
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
            cycle = _cycle(carriers)
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


HEURISTICS = {"breaking-cycles": breaking_cycles, "conflict-colouring": conflict_colouring}


def run(context: Context) -> Answer:
    """Orders of arcs, or one of the layer assignments of the all-to-all paper's Appendix D.1.

    By default all available layers are tried first, and then the fewest in which annealing finds orders
    (:mod:`opticoll.solvers.methods.alltoall.layer_orders`) along which every route ascends. If it finds none, as for
    the 261,632 routes of ``torus:8x8x8``, cycles are broken. On small networks the two heuristics need as many layers
    or more.

    The checker uses :func:`~opticoll.formulations.alltoall.dependencies.acyclic` of the formulation instead.
    """
    from opticoll.solvers.methods.alltoall.layer_orders import LayerOrders

    data: LayeredRoutes = context.data
    chosen, moves, tick = str(context.parameters["heuristic"]), int(context.parameters["moves"]), context.remaining

    def answer(layer: I64, ending: Termination = Termination.TOLERANCE, algorithm: str = chosen) -> Answer:
        message = "a heuristic: it stops without trying to prove anything"
        return Answer(ending, values=layer_values(data, layer), solver={"algorithm": algorithm}, message=message)

    if chosen in HEURISTICS:
        return answer(HEURISTICS[chosen](data, tick))
    routes, seed, fewest = data.known_routes, context.task.seed, max(int(bound.value) for bound in data.bounds())
    orders = LayerOrders(routes, data.layers, seed)
    if orders.anneal(moves, tick) > 0:
        broken = breaking_cycles(data, tick)
        if broken.max(initial=0) < data.layers:
            return answer(broken, algorithm="breaking-cycles")
        more = f"raise layers={data.layers}, or moves={moves}"
        return Answer(Termination.TOLERANCE, message=f"no orders were found in which every route ascends; {more}")
    found = orders.layer
    context.save(answer(found, Termination.TIME_LIMIT), float(data.layers))
    with suppress(TimeoutError):
        for layers in range(fewest, data.layers):
            orders = LayerOrders(routes, layers, seed)
            if orders.anneal(moves, tick) == 0:
                return answer(orders.layer)
        return answer(found)
    return answer(found, Termination.TIME_LIMIT)


METHOD = Method(
    name="layer-assignment",
    title="Layers by orders of arcs, and by two heuristics of App. D.1",
    summary="annealing of orders of arcs in which all routes ascend; breaking cycles; colouring of a growing conflict "
    "graph; seeded",
    serves=("alltoall.virtual-channels",),
    # torus:4x4, 4 layers, 1,880 variables in 3.7 s.
    takes_over=(Beyond("alltoall.virtual-channels", 2_000, 8_000, proves=False),),
    parameters=(
        Parameter("heuristic", str, default="orders", help="how layers are found", choices=("orders", *HEURISTICS)),
        Parameter("moves", int, default=3_000_000, help="steps of annealing for a number of layers"),
    ),
    run=run,
)

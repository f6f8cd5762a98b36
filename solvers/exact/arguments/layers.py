"""Arguments for layers without cycles: a cycle of dependencies."""

from __future__ import annotations

from graphlib import TopologicalSorter
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from opticoll.solvers.exact import combinatorial_check
from opticoll.solvers.exact.arguments.argument import Argument
from opticoll.solvers.exact.combinatorial_check import Refused

if TYPE_CHECKING:
    from opticoll.solvers.exact.arguments.argument import Document, Parts, Values


def _routes(data: Any) -> dict[str, Any]:
    return {"routes": [data.known_routes.path(k) for k in range(data.known_routes.paths)]}


def _layers_parts(data: Any, values: Values, _duals: object) -> Parts:
    from opticoll.formulations.alltoall.virtual_channels import layers_of

    routes = _routes(data)["routes"]
    assigned = layers_of(data, values)
    assert assigned is not None
    layer = assigned.tolist()
    used = {old: new for new, old in enumerate(sorted(set(layer)))}
    order = []
    for old in used:
        before: dict[int, set[int]] = {}
        for route, where in zip(routes, layer, strict=True):
            for a in route if where == old else ():
                before.setdefault(a, set())
            for a, b in pairwise(route) if where == old else ():
                before[b].add(a)
        order.append(list(TopologicalSorter(before).static_order()))
    cycle = cycle_of({pair for route in routes for pair in pairwise(route)})
    arguments = [{"cycle": cycle}] if cycle else []
    return {"layer": [used[old] for old in layer], "order": order}, arguments


def cycle_of(pairs: set[tuple[int, int]]) -> list[int]:
    """The vertices of a cycle of a graph, in order; empty if it has none."""
    while pairs:  # until every remaining vertex has a predecessor
        entered = {b for _, b in pairs}
        rest = {(a, b) for a, b in pairs if a in entered}
        if len(rest) == len(pairs):
            break
        pairs = rest
    before = {b: a for a, b in sorted(pairs)}
    path: list[int] = []
    at = min(before, default=None)
    while at is not None and at not in path:
        path.append(at)
        at = before[at]
    return [] if at is None else path[path.index(at) :][::-1]


def _difference(data: Any, document: Document) -> str:
    """Describe how the routes of a file are not one path for every pair of ranks; empty if they are."""
    from opticoll.formulations.flows.concurrent_flow import commodities

    stated = document["problem"]
    sources, targets = commodities(data.topology)
    ends = list(zip(data.topology.tail.tolist(), data.topology.head.tolist(), strict=True))
    if len(stated["routes"]) != sources.size:
        return "the file states another problem: the number of routes differs"
    for route, s, t in zip(stated["routes"], sources.tolist(), targets.tolist(), strict=True):
        try:
            combinatorial_check.walk(route, ends, s, t)
        except Refused as error:
            return f"the file states another problem: {error}"
    return ""


ARGUMENT = Argument(
    "layers", ("alltoall.virtual-channels",), problem=_routes, parts=_layers_parts, difference=_difference
)

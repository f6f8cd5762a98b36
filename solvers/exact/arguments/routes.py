"""Arguments for routes of any size: prices of arcs."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.solvers.exact.arguments.argument import Argument, numbers, pairs_of, unequal, word

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from opticoll.instances import Topology
    from opticoll.solvers.exact.arguments.argument import Document, Parts, Values
    from opticoll.types import Json

#: Largest denominator of arc prices rounded from duals.
MOST_PARTS = 5040


def routes_problem(data: Any) -> dict[str, Json]:
    """Certificates of min-congestion, min-overlap and the one-stage assignment."""
    topology: Topology = data.fibres if hasattr(data, "fibres") else data.topology
    if hasattr(data, "fibres"):
        sources, targets = (ends[:: 2 if data.fibres.circular else 1] for ends in data.ends[:2])
        capacity, amount = np.ones(topology.arcs), np.ones(sources.size)
    else:
        (sources, targets), capacity = data.commodities, topology.capacity
        amount = data.amount if hasattr(data, "amount") and not hasattr(data, "circuits") else np.ones(sources.size)
    stated: dict[str, Json] = {
        "arcs": pairs_of(topology.tail, topology.head.tolist(), numbers(capacity)),
        "pairs": pairs_of(sources, targets.tolist(), numbers(amount)),
        "colours": hasattr(data, "fibres"),
    }
    return stated if getattr(data, "kappa", 1) == 1 else {**stated, "split": data.kappa}


def _prices(data: Any, duals: Values) -> list[dict[str, Any]]:
    """Arc prices to try: rounded duals, 1 everywhere, the best line across a grid, and the middle of a line."""
    topology: Topology = data.fibres if hasattr(data, "fibres") else data.topology
    tried: list[NDArray[np.float64]] = [np.ones(topology.arcs)]
    for name in ("congestion", "capacity"):
        if name in duals and np.size(duals[name]) == topology.arcs and np.abs(duals[name]).max() > 0:
            price = np.abs(np.asarray(duals[name], dtype=np.float64)).ravel()
            tried.insert(0, price / price.max())
    if hasattr(data, "fibres") and not data.fibres.circular:
        onward, backward = data.fibres.arcs_onward()
        numbers = np.arange(topology.arcs)
        tried += [(numbers == arcs[(data.n - 1) // 2]).astype(np.float64) for arcs in (onward, backward)]
    if hasattr(data, "circuits"):
        tried += _line(topology, data.commodities)
    return [
        {
            "prices": [
                [a, word(part)]
                for a, value in enumerate(price.tolist())
                if (part := Fraction(value).limit_denominator(MOST_PARTS)) > 0
            ]
        }
        for price in tried
    ]


def _line(topology: Topology, pairs: tuple[NDArray[np.int64], NDArray[np.int64]]) -> list[NDArray[np.float64]]:
    """A price of 1 on the arcs across the grid line that most pairs per arc cross; empty if it is not a grid."""
    from opticoll.formulations.lumorph.mesh_cuts import grid_shape

    shape = grid_shape(topology)
    if shape is None:
        return []
    best = 0.0
    results: list[NDArray[np.float64]] = []
    for axis, size in enumerate(shape):
        s, t, u, v = (np.divmod(ends, shape[1])[axis] for ends in (*pairs, topology.tail, topology.head))
        for at in range(size - 1):
            for one, other, tail, head in ((s, t, u, v), (t, s, v, u)):
                arcs = (tail <= at) & (head > at)
                ratio = float(((one <= at) & (other > at)).sum()) / max(float(topology.capacity[arcs].sum()), 1.0)
                if ratio > best and arcs.any():
                    best, results = ratio, [arcs.astype(np.float64)]
    return results


def routes_parts(data: Any, values: Values, duals: Values) -> Parts:
    """Routes, coloured in the one-stage assignment, and prices of arcs."""
    if hasattr(data, "fibres"):
        return _colouring(data, values), _prices(data, duals)
    if hasattr(data, "circuits"):
        from opticoll.formulations.lumorph.overlap_solution import routes

        paths = routes(data, values)
    else:
        from opticoll.formulations.flows.path_flow import chosen_paths

        paths = chosen_paths(data, values)
    return {"paths": [paths.path(k) for k in range(paths.paths)], "colour": None}, _prices(data, duals)


def _colouring(data: Any, values: Values) -> dict[str, Any]:
    plan = data.rounds(values)
    order = np.lexsort((plan.circuit_target, plan.circuit_source)).tolist()
    colour = plan.circuit_round * data.fibres.wavelengths + plan.circuit_wavelength
    return {"paths": [plan.path(k) for k in order], "colour": colour[order].tolist()}


def _difference(data: Any, document: Document) -> str:
    """Describe how a file's problem or its paths disagree with the formulation; empty if they agree."""
    differing = unequal(routes_problem(data), document["problem"])
    if not differing and hasattr(data, "rule") and not data.rule.unrestricted:
        offered = {tuple(data.paths.path(p)) for p in range(data.paths.paths)}
        taken = [] if document["solution"] is None else document["solution"]["paths"]
        if not offered.issuperset(map(tuple, taken)):
            return f"a path is not allowed by {data.rule}"
    return differing


ARGUMENT = Argument(
    "routes",
    ("alltoall.min-congestion", "lumorph.min-overlap", "optree.one-stage"),
    problem=routes_problem,
    parts=routes_parts,
    difference=_difference,
)

"""Arguments for placements: the work between two chains of a computation graph."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.formulations.rounding import decimal
from opticoll.solvers.exact.arguments.argument import Argument, numbers, pairs_of, word

if TYPE_CHECKING:
    from opticoll.solvers.exact.arguments.argument import Parts, Values

#: With more operations, only the longest chain and the total work are tried as arguments.
MOST_OPERATIONS = 40


def _placement_problem(data: Any) -> dict[str, Any]:
    graph = data.graph
    rate = decimal(float(data.bandwidth))
    delays = [word(decimal(float(b)) / rate * 10**6 if rate else Fraction(0)) for b in graph.volume.tolist()]
    return {
        "devices": data.devices,
        "durations": numbers(graph.duration.tolist()),
        "edges": pairs_of(graph.tail, graph.head.tolist(), delays),
        "peers": data.delta,
        "distance": data.rule == "distance",
    }


def _placement_parts(data: Any, values: Values, _duals: object) -> Parts:
    from opticoll.formulations.sipml.placement_solution import placed

    problem = _placement_problem(data)
    result = placed(data, values)
    assert result is not None
    device, begin = result[0].tolist(), result[1]
    lasts = [Fraction(p) for p in problem["durations"]]
    into: dict[int, list[tuple[int, Fraction]]] = {}
    for u, v, delay in problem["edges"]:
        into.setdefault(v, []).append((u, Fraction(delay)))
    free, start = [Fraction(0)] * data.devices, [Fraction(0)] * data.n
    for v in np.lexsort((np.arange(data.n), begin)).tolist():  # the same order in exact arithmetic
        ready = [start[u] + lasts[u] + (wait if device[u] != device[v] else 0) for u, wait in into.get(v, [])]
        start[v] = max([free[device[v]], *ready])
        free[device[v]] = start[v] + lasts[v]
    heads, tails, p = data.heads, data.tails, data.graph.duration
    arguments = [{"operations": [int(np.argmax(heads + p + tails))]}, {"operations": list(range(data.n))}]
    for h in np.unique(heads):
        for r in np.unique(tails[heads >= h]) if data.n <= MOST_OPERATIONS else ():
            arguments.append({"operations": np.flatnonzero((heads >= h) & (tails >= r)).tolist()})
    return {"device": device, "start": [word(s) for s in start]}, arguments


ARGUMENT = Argument(
    "placement",
    ("sipml.placement",),
    problem=_placement_problem,
    parts=_placement_parts,
    refuses=lambda data: bool(data.memory),
)

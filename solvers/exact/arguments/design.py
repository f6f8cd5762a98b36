"""Arguments for topologies of bounded degree: the distances in any of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opticoll.solvers.exact.arguments.argument import Argument, pairs_of, word
from opticoll.solvers.exact.arguments.steps import exact_flow

if TYPE_CHECKING:
    from opticoll.solvers.exact.arguments.argument import Parts, Values
    from opticoll.types import Json


def design_problem(data: Any) -> dict[str, Json]:
    """Problem of topologies of bounded degree."""
    return {"nodes": data.n, "degree": data.degree, "directed": data.directed}


def design_parts(data: Any, values: Values, _duals: object) -> Parts:
    """Links with exactly solved flows, and the distances that any topology of the degree has."""
    from opticoll.formulations.topology.design_solution import topology_of

    topology = topology_of(data, values)
    form, answer = exact_flow(topology)
    assert answer.x is not None
    flows = []
    for place, j in enumerate(form.columns["g"].index.tolist()):
        if j >= 0 and answer.x[j]:
            a, s = divmod(place, data.n)
            flows.append([s, a, word(answer.x[j])])
    onward, odd = data.degree - (not data.directed), not data.directed and data.n * data.degree % 2
    argument = {
        "full": _layers(data.n, data.degree, onward),
        "lacking": _layers(data.n, data.degree - 1, onward) if odd else [],
    }
    links = pairs_of(topology.tail, topology.head.tolist())
    return {"links": links, "flows": flows}, [argument]


def _layers(n: int, first: int, onward: int) -> list[int]:
    """The most nodes at distance 1, 2, ...; with ``onward`` = 0 all others follow in one layer."""
    results: list[int] = []
    while (left := n - 1 - sum(results)) > 0:
        results.append(min(left, first) or left)
        first *= onward
    return results


ARGUMENT = Argument(
    "design",
    ("topology.design",),
    problem=design_problem,
    parts=design_parts,
    refuses=lambda data: bool(data.rack),
)

"""Problems, solutions and arguments of combinatorial certificates over networks: circuits, designs and steps.

Every function named after what is done returns the three parts of a certificate as
:mod:`~opticoll.solvers.exact.combinatorial_check` reads them.
"""

from __future__ import annotations

from fractions import Fraction
from heapq import heapify, heapreplace
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.formulations.outward import decimal
from opticoll.solvers.exact import combinatorial_check
from opticoll.solvers.exact.form import Leaf

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from opticoll.instances import Topology
    from opticoll.instances.readers.untrusted import Json
    from opticoll.solvers.exact.form import ExactAnswer, ExactForm

    Parts = tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]]]


def word(value: Fraction | None) -> int | str | None:
    """A number as it stands in a file."""
    if value is None:
        return None
    return int(value) if value.denominator == 1 else str(value)


def numbers(values: Iterable[float]) -> list[int | str | None]:
    """The decimals of floats, as they stand in a file."""
    return [word(decimal(float(value))) for value in values]


def pairs_of(first: NDArray[np.int64], *others: Any) -> list[list[Any]]:
    """The rows of columns."""
    return [list(row) for row in zip(first.tolist(), *others, strict=True)]


def circuits_problem(data: Any) -> dict[str, Json]:
    """Of circuits on a ring, and on switches: there a server reaches every other over a hub, once on each switch."""
    moves, n = data.transfers, data.n
    if hasattr(data, "pool"):
        arcs, colours = [[v, n] for v in range(n)] + [[n, v] for v in range(n)], data.degree
    else:
        arcs, colours = [[v, (v + 1) % n] for v in range(n)] + [[(v + 1) % n, v] for v in range(n)], data.wavelengths
    rate = decimal(float(moves.bandwidth))
    times = [word(decimal(float(volume)) / rate) for volume in moves.volume.tolist()]
    return {"arcs": arcs, "colours": colours, "pairs": pairs_of(moves.source, moves.target.tolist(), times)}


def lighting(data: Any, values: Mapping[str, NDArray[np.float64]], _duals: object) -> Parts:
    """Circuits, with prices of the ports of the worst server, or of all segments and of the worst cut of a ring."""
    n, moves, problem = data.n, data.transfers, circuits_problem(data)
    taken: list[list[Any]] = []
    if hasattr(data, "pool"):
        from opticoll.formulations.sipml.ocs_circuits import decode

        pair_of = {pair: p for p, pair in enumerate(zip(moves.source.tolist(), moves.target.tolist(), strict=True))}
        match = decode(data, values)
        for switch, s in zip(*(part.tolist() for part in np.nonzero(match >= 0)), strict=True):
            t = int(match[switch, s])
            if (s, t) in pair_of:
                taken.append([pair_of[s, t], switch, [s, n + t]])
        worst = int(data.server_times.argmax())
        prices, near = [[[worst, 1]]], data.server_times[worst]
    else:
        from opticoll.formulations.sipml.ring_wavelengths import circuits_of

        read = circuits_of(data, values)
        assert read is not None
        for p, way, wavelength in read[0].tolist():
            s, hops = int(moves.source[p]), int(data.hops[p, way])
            arcs = [(s + k) % n for k in range(hops)] if way == 0 else [n + (s - 1 - k) % n for k in range(hops)]
            taken.append([p, wavelength, arcs])
        _, first, size = data.cut_bound
        prices = [[[a, 1] for a in range(2 * n)], [[(first + size - 1) % n, 1], [n + (first - 1) % n, 1]]]
        near = data.least
    arguments = [{"prices": some, "time": word(_least_time(problem, some, near))} for some in prices]
    return problem, {"circuits": taken}, arguments


def _least_time(problem: dict[str, Any], prices: list[list[int]], near: float) -> Fraction:
    """The least time in which the circuits that pairs need cost no more than there are, from one near it on."""
    ends = [(u, v) for u, v in problem["arcs"]]
    price, costs = combinatorial_check.priced(ends, [(s, t) for s, t, _ in problem["pairs"]], prices)
    left, start = problem["colours"] * sum(price.values()), Fraction(near * (1 + START))
    heap = []
    for (_, _, word), cost in zip(problem["pairs"], costs, strict=True):
        if cost:
            count = max(int(Fraction(word) / start), 1)
            left -= count * cost
            heap.append((-Fraction(word) / count, count, Fraction(word), cost))
    heapify(heap)
    while heap:
        longest, count, time, cost = heap[0]
        left -= cost
        if left < 0:
            return -longest
        heapreplace(heap, (-time / (count + 1), count + 1, time, cost))
    return Fraction(0)


#: Part by which a time is raised, so that the circuits that it needs are surely not too many.
START = 1e-9


def design_problem(data: Any) -> dict[str, Json]:
    """Of topologies of a degree."""
    return {"nodes": data.n, "degree": data.degree, "directed": data.directed}


def designing(data: Any, values: Mapping[str, NDArray[np.float64]], _duals: object) -> Parts:
    """The flows on the links are solved exactly."""
    from opticoll.formulations.topology.degree_design import topology_of

    topology = topology_of(data, values)
    form, answer = _flow(topology)
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
    return design_problem(data), {"links": links, "flows": flows}, [argument]


def _layers(n: int, first: int, onward: int) -> list[int]:
    """The most nodes at distance 1, 2, ...; all at once that ``onward`` = 0 leaves out."""
    found: list[int] = []
    while (left := n - 1 - sum(found)) > 0:
        found.append(min(left, first) or left)
        first *= onward
    return found


def _flow(topology: Topology) -> tuple[ExactForm, ExactAnswer]:
    """The all-to-all flow of a topology by source, solved exactly, and its program."""
    from opticoll.formulations import formulation
    from opticoll.solvers.exact.prove import exact_problem, solve_apart

    master = formulation("alltoall.master")
    form = exact_problem(master, master.prepare(topology, {}))
    return form, solve_apart(form)


def steps_problem(data: Any) -> dict[str, Json]:
    """Of whole chunks in steps."""
    topology = data.flow.topology
    ends = [(s, t) for s in range(topology.n) for t in range(topology.n) if s != t]
    return {
        "arcs": pairs_of(topology.tail, topology.head.tolist(), numbers(topology.capacity)),
        "pairs": [[s, t, data.chunks] for s, t in ends], "steps": data.flow.steps,
    }  # fmt: skip


def stepping(data: Any, values: Mapping[str, NDArray[np.float64]], _duals: object) -> Parts:
    """The prices are the multipliers of the arcs in the flow problem, or 1."""
    from opticoll.formulations.alltoall.sccl import ways

    n, topology = data.flow.topology.n, data.flow.topology
    taken = [
        [s * (n - 1) + t - (t > s), [int(a) for a in arcs], [int(k) for k in steps]]
        for s, t, arcs, steps in ways(data, values)
    ]
    form, answer = _flow(topology)
    leaf = answer.nodes[0]
    assert isinstance(leaf, Leaf)
    rows = form.rows["capacity"].index.tolist()
    found = [[a, word(abs(leaf.y[i]))] for a, i in enumerate(rows) if leaf.y.get(i)]
    prices = [found, [[a, 1] for a in range(topology.arcs)]]
    return steps_problem(data), {"ways": taken}, [{"prices": some} for some in prices if some]

"""Arguments for circuits on a ring or over switches: prices of arcs, and the circuits that pairs need."""

from __future__ import annotations

from fractions import Fraction
from heapq import heapify, heapreplace
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.formulations.rounding import decimal
from opticoll.solvers.exact import combinatorial_check
from opticoll.solvers.exact.arguments.argument import Argument, pairs_of, word

if TYPE_CHECKING:
    from opticoll.solvers.exact.arguments.argument import Parts, Values
    from opticoll.types import Json

#: Relative increase of the time at which the search starts, so that its circuits are surely affordable.
START = 1e-9


def circuits_problem(data: Any) -> dict[str, Json]:
    """Problem of circuits on a ring, or on switches, where a server reaches each other server once per switch."""
    moves, n = data.transfers, data.n
    if hasattr(data, "pool"):
        arcs, colours = [[v, n] for v in range(n)] + [[n, v] for v in range(n)], data.degree
    else:
        arcs, colours = [[v, (v + 1) % n] for v in range(n)] + [[(v + 1) % n, v] for v in range(n)], data.wavelengths
    rate = decimal(float(moves.bandwidth))
    times = [word(decimal(float(volume)) / rate) for volume in moves.volume.tolist()]
    return {"arcs": arcs, "colours": colours, "pairs": pairs_of(moves.source, moves.target.tolist(), times)}


def circuits_parts(data: Any, values: Values, _duals: object) -> Parts:
    """Circuits, with prices of the ports of the worst server, or of all segments and of the worst cut of a ring."""
    n, moves, problem = data.n, data.transfers, circuits_problem(data)
    taken: list[list[Any]] = []
    if hasattr(data, "pool"):
        from opticoll.formulations.sipml.ocs_solution import decode

        pair_of = {pair: p for p, pair in enumerate(zip(moves.source.tolist(), moves.target.tolist(), strict=True))}
        match = decode(data, values)
        for switch, s in zip(*(part.tolist() for part in np.nonzero(match >= 0)), strict=True):
            t = int(match[switch, s])
            if (s, t) in pair_of:
                taken.append([pair_of[s, t], switch, [s, n + t]])
        worst = int(data.server_times.argmax())
        prices, near = [[[worst, 1]]], data.server_times[worst]
    else:
        from opticoll.formulations.sipml.ring_solution import circuits_of

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
    return {"circuits": taken}, arguments


def _least_time(problem: dict[str, Any], prices: list[list[int]], near: float) -> Fraction:
    """The smallest time for which the circuits that pairs need are affordable, searched downwards from ``near``."""
    ends = [(u, v) for u, v in problem["arcs"]]
    price, costs = combinatorial_check.priced(ends, [(s, t) for s, t, _ in problem["pairs"]], prices)
    left, start = problem["colours"] * sum(price.values()), Fraction(near * (1 + START))
    heap = []
    for (_, _, whole), cost in zip(problem["pairs"], costs, strict=True):
        if cost:
            count = max(int(Fraction(whole) / start), 1)
            left -= count * cost
            heap.append((-Fraction(whole) / count, count, Fraction(whole), cost))
    heapify(heap)
    while heap:
        longest, count, time, cost = heap[0]
        left -= cost
        if left < 0:
            return -longest
        heapreplace(heap, (-time / (count + 1), count + 1, time, cost))
    return Fraction(0)


ARGUMENT = Argument(
    "circuits", ("sipml.ring-wavelengths", "sipml.ocs-circuits"), problem=circuits_problem, parts=circuits_parts
)

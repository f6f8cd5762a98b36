"""Problems, solutions and arguments of combinatorial certificates over networks: circuits, designs, steps and wirings.

The functions named after an activity (``lighting``, ``designing``, ...) return the three parts of a certificate in the
format of :mod:`~opticoll.solvers.exact.combinatorial_check`.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from fractions import Fraction
from heapq import heapify, heapreplace
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.formulations.rounding import decimal
from opticoll.solvers.exact import combinatorial_check, wiring_check
from opticoll.solvers.exact.combinatorial_check import Refused
from opticoll.solvers.exact.exact_form import ExactForm, Leaf

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from opticoll.instances import Topology
    from opticoll.instances.types import Json
    from opticoll.solvers.exact.exact_form import ExactAnswer
    from opticoll.solvers.messages import Report

    Parts = tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]]]


def word(value: Fraction | None) -> int | str | None:
    """A number in the format of a certificate file."""
    if value is None:
        return None
    return int(value) if value.denominator == 1 else str(value)


def numbers(values: Iterable[float]) -> list[int | str | None]:
    """The shortest decimals of floats, in the format of a certificate file."""
    return [word(decimal(float(value))) for value in values]


def pairs_of(first: NDArray[np.int64], *others: Any) -> list[list[Any]]:
    """Transpose columns into a list of rows."""
    return [list(row) for row in zip(first.tolist(), *others, strict=True)]


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
    """The smallest time for which the circuits that pairs need are affordable, searched downwards from ``near``."""
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


#: Relative increase of the time at which the search starts, so that its circuits are surely affordable.
START = 1e-9


def design_problem(data: Any) -> dict[str, Json]:
    """Problem of topologies of bounded degree."""
    return {"nodes": data.n, "degree": data.degree, "directed": data.directed}


def designing(data: Any, values: Mapping[str, NDArray[np.float64]], _duals: object) -> Parts:
    """Links with exactly solved flows, and the distances that any topology of the degree has."""
    from opticoll.formulations.topology.design import topology_of

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
    """The most nodes at distance 1, 2, ...; with ``onward`` = 0 all others follow in one layer."""
    results: list[int] = []
    while (left := n - 1 - sum(results)) > 0:
        results.append(min(left, first) or left)
        first *= onward
    return results


def _flow(topology: Topology) -> tuple[ExactForm, ExactAnswer]:
    """The all-to-all flow of a topology by source, solved exactly, and its program."""
    from opticoll.formulations import formulation
    from opticoll.solvers.exact.prove import exact_problem, solve_apart

    master = formulation("alltoall.master")
    form = exact_problem(master.prepare(topology, {}))
    return form, solve_apart(form)


def steps_problem(data: Any) -> dict[str, Json]:
    """Problem of whole chunks in steps."""
    topology = data.flow.topology
    ends = [(s, t) for s in range(topology.n) for t in range(topology.n) if s != t]
    return {
        "arcs": pairs_of(topology.tail, topology.head.tolist(), numbers(topology.capacity)),
        "pairs": [[s, t, data.chunks] for s, t in ends],
        "steps": data.flow.steps,
    }


def stepping(data: Any, values: Mapping[str, NDArray[np.float64]], _duals: object) -> Parts:
    """Chunks in steps, with prices that are the arcs' multipliers in the flow problem, or 1."""
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
    results = [[a, word(abs(leaf.y[i]))] for a, i in enumerate(rows) if leaf.y.get(i)]
    prices = [results, [[a, 1] for a in range(topology.arcs)]]
    return steps_problem(data), {"ways": taken}, [{"prices": some} for some in prices if some]


#: Time limit of the enumeration [s]; if it is exceeded, the argument uses byte-hops alone.
LIMIT_S = 300.0


def wiring_problem(data: Any) -> dict[str, Json]:
    """Problem of circuits for the traffic of a pool of servers."""
    sent = data.pool.point_to_point
    source, target = np.nonzero(sent)
    sizes = numbers(sent[source, target].tolist())
    return {"servers": data.n, "ports": data.degree, "traffic": pairs_of(source, target.tolist(), sizes)}


def wiring(data: Any, values: Mapping[str, NDArray[np.float64]], _duals: object) -> Parts:
    """Circuits with an exactly solved flow, and lengths that rule out all other wirings, found in a worker process.

    The checker's own enumeration lists all wirings that byte-hops do not rule out, and each needs lengths that prove
    its load. The multipliers of the exact flow over one wiring are such lengths, where a circuit that the wiring lacks
    gets the distance of its ends. They often prove the load of similar wirings too.
    """
    from opticoll.formulations.topoopt.topology import decode
    from opticoll.solvers.isolation import call_isolated

    problem = wiring_problem(data)
    order = np.argsort(-(data.fixed.sum(axis=0) + data.fixed.sum(axis=1)), kind="stable").tolist()
    arguments = {"problem": problem, "order": order, "circuits": decode(data, values).circuits.tolist()}
    call = call_isolated(
        "opticoll.solvers.exact.combinatorial_networks:in_worker", arguments, threads=1, modules=("highspy",)
    )
    return problem, call.values["solution"], call.values["arguments"]


def in_worker(
    arguments: dict[str, Any], _arrays: Mapping[str, NDArray[Any]], _report: Report
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Find solution and arguments; target of :func:`opticoll.solvers.isolation.call_isolated`."""
    problem, order = arguments["problem"], arguments["order"]
    solution, load, lengths = _least_load(problem, Counter(map(tuple, arguments["circuits"])))
    n, ports, demand, whole = wiring_check.stated(problem, load)
    hops = wiring_check.least_hops(demand, ports)([()] * n, list(range(n)))
    alone = {"load": word(Fraction(int(hops), whole * n * ports)), "order": order, "lengths": []}
    result, end = [lengths], time.monotonic() + LIMIT_S
    try:
        for rows in wiring_check.wirings(demand, ports, order, int(load * whole) * n * ports):
            for k, length in enumerate(result):
                paid, total = wiring_check.paid(demand, rows, length)
                if paid >= load * whole * total > 0:
                    result.insert(0, result.pop(k))
                    break
            else:
                if time.monotonic() > end:
                    return {"solution": solution, "arguments": [alone]}, {}
                other, least, lengths = _least_load(problem, Counter((u, v) for u, row in enumerate(rows) for v in row))
                if least < load:  # possible within the floating-point tolerance, or if the optimum is unproven
                    solution, load = other, least
                result.insert(0, lengths)
    except Refused:  # there are too many wirings
        return {"solution": solution, "arguments": [alone]}, {}
    return {
        "solution": solution,
        "arguments": [{"load": word(load), "order": order, "lengths": result[::-1]}, alone],
    }, {}


def _least_load(
    problem: Mapping[str, Any], wired: Mapping[tuple[int, int], int]
) -> tuple[dict[str, Any], Fraction, list[list[int]]]:
    """The exact flow of minimum maximum load over circuits as a solution, its load, and integer lengths that prove it.

    Parameters
    ----------
    problem
        As :func:`wiring_problem` returns it.
    """
    from opticoll.solvers.exact.linear import solve_linear

    n, sent = problem["servers"], {(s, t): Fraction(size) for s, t, size in problem["traffic"]}
    unit, pairs, sources = max(sent.values()), sorted(wired), sorted({s for s, _ in sent})
    flows = [(s, a) for s in sources for a, (_, v) in enumerate(pairs) if v != s]
    rows: list[dict[int, Fraction]] = [{len(flows): Fraction(-wired[pair])} for pair in pairs]
    place = {pair: len(rows) + k for k, pair in enumerate((s, u) for s in sources for u in range(n) if u != s)}
    rows += [{} for _ in place]
    for j, (s, a) in enumerate(flows):
        u, v = pairs[a]
        rows[a][j] = rows[place[s, v]][j] = Fraction(1)
        if u != s:
            rows[place[s, u]][j] = Fraction(-1)
    form = _program(rows, [None] * len(pairs) + [sent.get(pair, Fraction(0)) / unit for pair in place], len(flows) + 1)
    answer = solve_linear(form)
    leaf = answer.nodes[0]
    assert answer.x is not None
    assert answer.objective is not None
    assert isinstance(leaf, Leaf)
    first = {pair: sum(wired[other] for other in pairs[:a]) for a, pair in enumerate(pairs)}
    divided = [
        [s, first[pairs[a]] + k, word(answer.x[j] * unit / wired[pairs[a]])]
        for j, (s, a) in enumerate(flows)
        if answer.x[j]
        for k in range(wired[pairs[a]])
    ]
    solution = {"circuits": [list(pair) for pair in pairs for _ in range(wired[pair])], "flows": divided}
    price = {pair: abs(leaf.y.get(a, Fraction(0))) for a, pair in enumerate(pairs)}
    return solution, answer.objective * unit, _everywhere(n, price)


def _program(rows: Sequence[Mapping[int, Fraction]], low: list[Fraction | None], columns: int) -> ExactForm:
    """Program that minimizes the last of its columns >= 0; rows are at least ``low``, or at most 0 if that is None."""
    zero = Fraction(0)
    return ExactForm(
        np.cumsum([0, *map(len, rows)]),
        np.array([j for row in rows for j in sorted(row)], dtype=np.int64),
        tuple(row[j] for row in rows for j in sorted(row)),
        tuple(low),
        tuple(zero if end is None else None for end in low),
        (zero,) * columns,
        (None,) * columns,
        (zero,) * (columns - 1) + (Fraction(1),),
        "min",
        np.zeros(columns, dtype=bool),
    )


def _everywhere(n: int, price: Mapping[tuple[int, int], Fraction]) -> list[list[int]]:
    """Integer lengths between all servers: the price of a circuit, else the distance over circuits."""
    out = {u: [(v, cost) for (tail, v), cost in price.items() if tail == u] for u in range(n)}
    near = [combinatorial_check.distances(out, s, None, 1) for s in range(n)]
    far = sum(price.values(), Fraction(0))
    length = [[price.get((u, v), Fraction(near[u].get(v, [far])[0])) for v in range(n)] for u in range(n)]
    whole = math.lcm(*(one.denominator for row in length for one in row))
    return [[int(one * whole) if u != v else 0 for v, one in enumerate(row)] for u, row in enumerate(length)]

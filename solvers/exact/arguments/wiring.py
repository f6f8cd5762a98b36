"""Arguments for circuits between servers: an enumeration of wirings, with byte-hops and lengths that rule them out."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.solvers.exact import combinatorial_check, wiring_check
from opticoll.solvers.exact.arguments.argument import Argument, numbers, pairs_of, word
from opticoll.solvers.exact.combinatorial_check import Refused
from opticoll.solvers.exact.exact_form import ExactForm, Leaf

if TYPE_CHECKING:
    from opticoll.solvers.exact.arguments.argument import Parts, Values
    from opticoll.solvers.process.messages import Report
    from opticoll.types import Json

#: Time limit of the enumeration [s]; if it is exceeded, the argument uses byte-hops alone.
LIMIT_S = 300.0


def wiring_problem(data: Any) -> dict[str, Json]:
    """Problem of circuits for the traffic of a pool of servers."""
    sent = data.pool.point_to_point
    source, target = np.nonzero(sent)
    sizes = numbers(sent[source, target].tolist())
    return {"servers": data.n, "ports": data.degree, "traffic": pairs_of(source, target.tolist(), sizes)}


def wiring_parts(data: Any, values: Values, _duals: object) -> Parts:
    """Circuits with an exactly solved flow, and lengths that rule out all other wirings, found in a worker process.

    The checker's own enumeration lists all wirings that byte-hops do not rule out, and each needs lengths that prove
    its load. The multipliers of the exact flow over one wiring are such lengths, where a circuit that the wiring lacks
    gets the distance of its ends. They often prove the load of similar wirings too.
    """
    from opticoll.formulations.topoopt.wiring_solution import decode
    from opticoll.solvers.process.isolation import call_isolated

    problem = wiring_problem(data)
    order = np.argsort(-(data.fixed.sum(axis=0) + data.fixed.sum(axis=1)), kind="stable").tolist()
    arguments = {"problem": problem, "order": order, "circuits": decode(data, values).circuits.tolist()}
    call = call_isolated(
        "opticoll.solvers.exact.arguments.wiring:in_worker", arguments, threads=1, modules=("highspy",)
    )
    return call.values["solution"], call.values["arguments"]


def in_worker(
    problem: Mapping[str, Any], order: list[int], circuits: list[list[int]], report: Report
) -> dict[str, Any]:
    """Find solution and arguments; target of :func:`opticoll.solvers.process.isolation.call_isolated`."""
    solution, load, lengths = _least_load(problem, Counter((u, v) for u, v in circuits))
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
                    return {"solution": solution, "arguments": [alone]}
                other, least, lengths = _least_load(problem, Counter((u, v) for u, row in enumerate(rows) for v in row))
                if least < load:  # possible within the floating-point tolerance, or if the optimum is unproven
                    solution, load = other, least
                result.insert(0, lengths)
    except Refused:  # there are too many wirings
        return {"solution": solution, "arguments": [alone]}
    return {"solution": solution, "arguments": [{"load": word(load), "order": order, "lengths": result[::-1]}, alone]}


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
    unit, pairs = max(sent.values()), sorted(wired)
    flows = [(s, a) for s in sorted({s for s, _ in sent}) for a, (_, v) in enumerate(pairs) if v != s]
    answer = solve_linear(_load_program(n, {pair: size / unit for pair, size in sent.items()}, wired, flows))
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


def _load_program(
    n: int,
    sent: Mapping[tuple[int, int], Fraction],
    wired: Mapping[tuple[int, int], int],
    flows: Sequence[tuple[int, int]],
) -> ExactForm:
    """Program of the least maximum load: a row for every pair with circuits, then one for what a server receives.

    ``flows`` are the columns but the last, which is the load: a source, and a pair by its place among those sorted.
    """
    pairs = sorted(wired)
    rows: list[dict[int, Fraction]] = [{len(flows): Fraction(-wired[pair])} for pair in pairs]
    received = [(s, u) for s in sorted({s for s, _ in sent}) for u in range(n) if u != s]
    place = {pair: len(rows) + k for k, pair in enumerate(received)}
    rows += [{} for _ in place]
    for j, (s, a) in enumerate(flows):
        u, v = pairs[a]
        rows[a][j] = rows[place[s, v]][j] = Fraction(1)
        if u != s:
            rows[place[s, u]][j] = Fraction(-1)
    return _program(rows, [None] * len(pairs) + [sent.get(pair, Fraction(0)) for pair in received], len(flows) + 1)


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


def _has_none(data: Any) -> bool:
    return bool(
        data.goal != "max-load"
        or data.parallel < data.degree
        or data.pool.groups
        or data.n > wiring_check.SERVERS
        or not data.fixed.any()
    )


ARGUMENT = Argument("wiring", ("topoopt.topology",), problem=wiring_problem, parts=wiring_parts, refuses=_has_none)

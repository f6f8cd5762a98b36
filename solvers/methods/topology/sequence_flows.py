"""Flows through given sequences of circuits: least hops, and least lengths by linear programming."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from opticoll.compiled import compiled
from opticoll.formulations.standard_form import StandardForm
from opticoll.solvers.process.isolation import solve_here
from opticoll.solvers.task import SolveRequest

if TYPE_CHECKING:
    from opticoll.formulations.topology.sequence import TopologySequence
    from opticoll.instances.topology import F64, I64
    from opticoll.solvers.task import Outcome


#: Hops to a node that is not reached.
UNREACHED = 1 << 20
#: Share of a time below which a length is 0 up to round-off.
NO_TIME = 1e-9
#: Columns above which a linear program is solved by interior points.
SIMPLEX_COLUMNS = 4000


@compiled()
def with_circuits(hops: I64, circuits: I64, step: bool) -> I64:
    """Fewest hops from every node to every other, ``(n, n)``, with the circuits ``(n, n)`` of one more configuration.

    Walks stay in a configuration or go on to a later one; with ``step`` each configuration gives one circuit.
    """
    n = hops.shape[0]
    result = hops.copy()
    for s in range(n):
        changed = True
        while changed:
            changed = False
            before = hops[s] if step else result[s].copy()
            for u in range(n):
                if before[u] < UNREACHED:
                    for v in range(n):
                        if circuits[u, v] > 0 and before[u] + 1 < result[s, v]:
                            result[s, v] = before[u] + 1
                            changed = not step
    return result


@compiled()
def no_hops(n: int) -> I64:
    """Hops without any configuration, ``(n, n)``."""
    hops = np.full((n, n), UNREACHED)
    for s in range(n):
        hops[s, s] = 0
    return hops


def least_hops(counts: I64, step: bool) -> I64:
    """Fewest circuits of a walk from every node to every other in time, ``(n, n)``, over circuits ``(K, n, n)``."""
    hops = no_hops(counts.shape[1])
    for circuits in counts:
        hops = with_circuits(hops, circuits, step)
    return hops


@dataclass(frozen=True)
class CircuitLines:
    """Circuits over which flows are routed, and the capacities that they share.

    Parameters
    ----------
    phase, tail, head, group
        Phase and ends of every circuit, and the capacity that its flow counts against, ``(A,)`` each.
    shared_phase, circuits
        Phase of every capacity, and the number of its circuits, ``(G,)`` each.
    sources, demand
        Sources that are routed, ``(S,)``, and what they send to every node, ``(S, n)``.
    """

    phase: I64
    tail: I64
    head: I64
    group: I64
    shared_phase: I64
    circuits: I64
    sources: I64
    demand: F64


@dataclass(frozen=True)
class RoutedSequence:
    """Lengths of the configurations, ``(K,)``, flows of the sources over the lines, ``(S, A)``, prices, ``(G,)``."""

    time: float
    lengths: F64
    flows: F64
    prices: F64


def in_phases(data: TopologySequence, counts: I64) -> I64:
    """Circuits in every phase, ``(P, ...)``, from those of the configurations, ``(K, ...)``."""
    if not data.overlap or len(counts) == 1:
        return counts
    result = np.zeros((2 * len(counts) - 1, *counts.shape[1:]), dtype=np.int64)
    result[::2], result[1::2] = counts, np.minimum(counts[:-1], counts[1:])
    return result


def all_lines(data: TopologySequence, counts: I64) -> CircuitLines:
    """Every circuit on its own, and all sources."""
    there = in_phases(data, counts)
    phase, tail, head = np.nonzero(there)
    sources = np.flatnonzero(data.sends)
    number = there[phase, tail, head]
    return CircuitLines(phase, tail, head, np.arange(phase.size), phase, number, sources, data.demand[sources])


def orbit_lines(data: TopologySequence, table: I64, generators: I64) -> CircuitLines:
    """The circuits u -> u g of a group, and the identity as the source; those of an element g share their capacity."""
    n, K = data.n, len(generators)
    counts = np.zeros((K, n), dtype=np.int64)
    np.add.at(counts, (np.repeat(np.arange(K), generators.shape[1]), generators.ravel()), 1)
    there = in_phases(data, counts)
    phase, element = np.nonzero(there)
    group = np.repeat(np.arange(phase.size), n)
    tail = np.tile(np.arange(n), phase.size)
    head = table[tail, np.repeat(element, n)]
    number = there[phase, element]
    return CircuitLines(phase[group], tail, head, group, phase, number, np.zeros(1, dtype=np.int64), data.demand[:1])


def _solved(form: StandardForm) -> Outcome:
    """The outcome of HiGHS for a program of this file."""
    if form.cost.size <= SIMPLEX_COLUMNS:
        return solve_here(form, "highs-simplex", SolveRequest(threads=1))
    return solve_here(form, "highs-ipx", SolveRequest(threads=1, options={"run_crossover": "on"}))


def _leave_out(form: StandardForm, best: Outcome, lengths: I64, startup: float) -> Outcome:
    """Leave out configurations, the shortest first, while the others take less than their start-up longer.

    The program does not count start-ups, and of several optima may return one that uses more configurations.
    """

    def times(outcome: Outcome) -> F64:
        return np.maximum(np.asarray(outcome.x)[lengths], 0.0)

    def value(outcome: Outcome) -> float:
        t = times(outcome)
        return float(t.sum()) + startup * np.count_nonzero(t > NO_TIME * max(t.sum(), startup))

    for column in lengths[np.argsort(times(best), kind="stable")].tolist():
        without = replace(form, col_upper=np.where(np.arange(form.cost.size) == column, 0.0, form.col_upper))
        tried = _solved(without)
        if tried.x is not None and value(tried) < value(best):
            form, best = without, tried
    return best


def route(data: TopologySequence, lines: CircuitLines, configurations: int) -> RoutedSequence | None:
    """Least sum of the lengths for these circuits, as a linear program; None if they cannot serve the demand.

    Columns: flows (source, circuit), none into the source; stocks (phase, source, node); lengths.
    """
    import scipy.sparse as sp

    n, S, A = data.n, lines.sources.size, lines.phase.size
    windows = data.overlap and configurations > 1
    P, stride = (2 * configurations - 1, 2) if windows else (configurations, 1)
    source, line = np.nonzero(lines.head[None, :] != lines.sources[:, None])
    F = source.size
    states = np.arange(P * S * n).reshape(P, S, n)
    lengths = F + P * S * n
    columns = lengths + configurations
    phase, tail, head = lines.phase[line], lines.tail[line], lines.head[line]
    flow, leaving = np.arange(F), np.flatnonzero(tail != lines.sources[source])
    stock, G = states.size, lines.circuits.size
    lasting = np.flatnonzero(lines.shared_phase % stride == 0)
    out_of = states[phase[leaving], source[leaving], tail[leaving]]
    later = states[1:].ravel()
    rows = [states.ravel(), later, states[phase, source, head], out_of, stock + lines.group[line], stock + lasting]
    cols = [F + states.ravel(), F + later - S * n, flow, leaving, flow, lengths + lines.shared_phase[lasting] // stride]
    entries = [
        np.ones(stock),
        -np.ones(later.size),
        -np.ones(F),
        np.ones(leaving.size),
        np.ones(F),
        -lines.circuits[lasting].astype(float),
    ]
    upper = np.concatenate([np.zeros(stock), data.delay * lines.circuits * (lines.shared_phase % stride != 0)])
    lower = np.concatenate([np.zeros(stock), np.full(G, -np.inf)])
    if data.relays == "step":
        rows += [stock + G + out_of, stock + G + later]
        cols += [leaving, F + later - S * n]
        entries += [np.ones(leaving.size), -np.ones(later.size)]
        upper, lower = np.concatenate([upper, np.zeros(stock)]), np.concatenate([lower, np.full(stock, -np.inf)])
    matrix = sp.csc_array(
        (np.concatenate(entries), (np.concatenate(rows), np.concatenate(cols))), shape=(upper.size, columns)
    )
    least = np.zeros(columns)
    least[F + states[-1].ravel()] = lines.demand.ravel()
    most = np.full(columns, np.inf)
    own = F + states[:, np.arange(S), lines.sources].ravel()  # what a source keeps of its own is not counted
    most[own] = 0.0
    cost = (np.arange(columns) >= lengths).astype(float)
    form = StandardForm(matrix, lower, upper, least, most, cost, "min")
    outcome = _solved(form)
    if outcome.x is None or outcome.row_duals is None:
        return None
    if data.startup > 0:
        outcome = _leave_out(form, outcome, np.arange(lengths, columns), data.startup)
    x = np.maximum(np.asarray(outcome.x), 0.0)
    prices = np.maximum(-np.asarray(outcome.row_duals)[stock : stock + G], 0.0)
    flows = np.zeros((S, A))
    flows[source, line] = x[:F]
    return RoutedSequence(float(x[lengths:].sum()), x[lengths:], flows, prices)

"""Methods for circuits of greatest utility: the transportation problem, Algorithm 5, and successive matchings."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from opticoll.formulations.parameters import Parameter
from opticoll.formulations.topoopt.circuit_design import circuits_between
from opticoll.solvers.methods.method import Answer, Beyond, Method
from opticoll.solvers.methods.topoopt.topology_finder import MATCHINGS, connected, matched_circuits, without_ties
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from opticoll.formulations.topoopt.utility import CircuitUtility
    from opticoll.instances.topology import F64, I64
    from opticoll.solvers.methods.method import Context
    from opticoll.solvers.methods.topoopt.topology_finder import Matching


def optimal_circuits(data: CircuitUtility) -> tuple[I64, F64, F64]:
    """Numbers of circuits of greatest utility, ``(|P|,)``, and prices of ports out of and into servers, ``(n,)`` each.

    The columns are the circuits of every pair, the rows the ports of every server.
    """
    import scipy.sparse as sp
    from scipy.optimize import linprog

    pairs, steps = len(data.pairs), data.gains.size
    source, target = data.pairs.T
    rows = np.concatenate([np.repeat(source, steps), data.n + np.repeat(target, steps)])
    columns = np.tile(np.arange(pairs * steps), 2)
    matrix = sp.csc_array((np.ones(rows.size), (rows, columns)), shape=(2 * data.n, pairs * steps))
    largest = float(data.amounts.max())
    worth = np.outer(data.amounts / largest, data.gains).ravel()
    solved = linprog(
        -worth, A_ub=matrix, b_ub=np.full(2 * data.n, float(data.degree)), bounds=(0, 1), method="highs-ds"
    )
    prices = np.maximum(-solved.ineqlin.marginals, 0.0) * largest
    counts = np.rint(solved.x.reshape(pairs, steps)).sum(axis=1).astype(np.int64)
    return counts, prices[: data.n], prices[data.n :]


def run_transportation(context: Context) -> Answer:
    """Optimal circuits: the linear relaxation of the model, a transportation problem.

    A circuit takes a port out of one server and a port into another: the rows are the incidence matrix of a bipartite
    graph, so every vertex is integer (Hoffman and Kruskal, 1956), and the simplex method ends at one. The prices of
    the ports prove that it is optimal.
    """
    data: CircuitUtility = context.data
    counts, out, into = optimal_circuits(data)
    return Answer(
        Termination.OPTIMAL,
        values=data.filled(counts),
        duals={"ports_out": out, "ports_in": into},
        solver={"algorithm": "dual simplex (HiGHS in SciPy)"},
    )


TRANSPORTATION = Method(
    name="transportation",
    title="Transportation problem",
    summary="optimal circuits in polynomial time: the linear relaxation has integer vertices, prices of ports prove it",
    serves=("topoopt.utility",),
    # n=128, d=8 130,048 variables in 5.6 s; n=64, d=16 64,512 in 3.0 s.
    takes_over=(Beyond("topoopt.utility", 100_000),),
    run=run_transportation,
)


def geometric(degree: int, discount: float) -> F64:
    """Value of the first, second, ... circuit of a pair relative to the first, ``(degree,)``."""
    return np.asarray(discount ** np.arange(degree))


def greedy_circuits(demand: F64, degree: int, gains: F64) -> I64:
    """Algorithm 5, lines 6-20: repeatedly a circuit for the highest demand, ``(m, 2)``.

    The l-th circuit of a pair counts its demand times ``gains[l - 1]``, and 0 beyond. Remaining ports connect pairs
    without demand, lowest numbers first.
    """
    n = len(demand)
    whole = without_ties(demand)
    left = whole.copy()
    np.fill_diagonal(left, -1.0)
    number = np.zeros((n, n), dtype=np.int64)
    out, into = np.full(n, degree), np.full(n, degree)
    circuits: list[tuple[int, int]] = []
    while True:
        u, v = divmod(int(left.argmax()), n)
        if left[u, v] < 0:
            return np.array(circuits, dtype=np.int64).reshape(-1, 2)
        circuits.append((u, v))
        number[u, v] += 1
        left[u, v] = whole[u, v] * gains[number[u, v]] / gains[0] if number[u, v] < gains.size else 0.0
        out[u] -= 1
        into[v] -= 1
        if out[u] == 0:
            left[u, :] = -1.0
        if into[v] == 0:
            left[:, v] = -1.0


def counted(data: CircuitUtility, circuits: I64) -> I64:
    """Number of circuits of every pair with demand that count, ``(|P|,)``, of a list ``(m, 2)``."""
    number = circuits_between(data.n, circuits)
    return np.minimum(number[tuple(data.pairs.T)], data.gains.size)


def run_greedy(context: Context) -> Answer:
    """Algorithm 5's greedy circuits for the discounts of the model.

    Source  TopoOpt, Algorithm 5, lines 6-20; with ``connected`` also line 21

    A circuit goes where the demand, times the gain of the next circuit, is greatest. Circuits are the common
    independent sets of two partition matroids (ports out, ports in), so the utility is at least half of the optimum
    (Korte and Hausmann, 1978), and no more in general: demands 1 + e, 1 and 1 of 0 -> 1, 0 -> 2 and 3 -> 1, with one
    port each, give 1 + e of 2.
    """
    data: CircuitUtility = context.data
    circuits = greedy_circuits(data.demand, data.degree, data.gains)
    if context.parameters["connected"]:
        circuits = connected(data.n, circuits, data.degree, data.demand)
    return Answer.heuristic(data.filled(counted(data, circuits)), "highest demand first")


GREEDY_CIRCUITS = Method(
    name="greedy-circuits",
    title="Greedy circuits (Algorithm 5)",
    summary="repeatedly a circuit where the demand, discounted by the circuits that it has, is highest",
    serves=("topoopt.utility",),
    parameters=(Parameter("connected", bool, default=False, help="exchange circuits until all servers are connected"),),
    run=run_greedy,
)


def run_matchings(context: Context) -> Answer:
    """Successive maximum-weight matchings, as in TopologyFinder, for the discounts of the model.

    Source  TopoOpt, Algorithm 1, lines 11-16

    Each matching has the greatest sum of demands times the gain of the next circuit of each pair. ``blossom`` matches
    servers, with a circuit each way; ``assignment`` matches senders with receivers.
    """
    data: CircuitUtility = context.data
    ports = np.full(data.n, data.degree)
    kind = cast("Matching", context.parameters["matching"])
    circuits = matched_circuits(data.demand, ports, ports, kind, gains=data.gains)
    return Answer.heuristic(data.filled(counted(data, circuits)), f"{kind} matchings")


SUCCESSIVE_MATCHINGS = Method(
    name="successive-matchings",
    title="Successive matchings (Algorithm 1)",
    summary="one maximum-weight matching after the other, of servers or of senders with receivers",
    serves=("topoopt.utility",),
    parameters=(
        Parameter(
            "matching",
            str,
            default="blossom",
            help="matching of pairs, or of senders with receivers",
            choices=MATCHINGS,
        ),
    ),
    run=run_matchings,
)


METHODS = (TRANSPORTATION, GREEDY_CIRCUITS, SUCCESSIVE_MATCHINGS)

"""Method ``greedy-circuits``: Algorithm 5's circuits, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.model import Parameter
from opticoll.solvers.methods.method import Answer, Method
from opticoll.solvers.methods.topoopt.topology_finder import connected, without_ties
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from opticoll.formulations.topoopt.utility import CircuitUtility
    from opticoll.instances.topology import F64, I64
    from opticoll.solvers.methods.method import Context


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
    number = np.zeros((data.n, data.n), dtype=np.int64)
    np.add.at(number, (circuits[:, 0], circuits[:, 1]), 1)
    return np.minimum(number[tuple(data.pairs.T)], data.gains.size)


def run(context: Context) -> Answer:
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
    return Answer(
        Termination.TOLERANCE,
        values=data.filled(counted(data, circuits)),
        solver={"name": "greedy-circuits", "version": None, "algorithm": "highest demand first", "options": {}},
        message="a heuristic: it proves no bound",
    )


METHOD = Method(
    name="greedy-circuits",
    title="Greedy circuits (Algorithm 5)",
    summary="repeatedly a circuit where the demand, discounted by the circuits that it has, is highest",
    serves=("topoopt.utility",),
    parameters=(Parameter("connected", bool, default=False, help="exchange circuits until all servers are connected"),),
    run=run,
)

"""Methods ``circuit-search`` and ``replayed-finder``: circuits for a task graph, replayed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.parameters import Parameter
from opticoll.formulations.topoopt.circuit_design import circuits_between
from opticoll.formulations.topoopt.circuits_solution import replayed
from opticoll.solvers.methods.method import Answer, Beyond, Method
from opticoll.solvers.methods.topoopt.ocs_reconfig import ocs_reconfig
from opticoll.solvers.methods.topoopt.topology_finder import topology_finder
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from opticoll.formulations.topoopt.circuits import TaskCircuits
    from opticoll.instances.topology import F64
    from opticoll.solvers.methods.method import Context


def _static(data: TaskCircuits) -> str | None:
    return None if data.configurations == 1 else f"sets one configuration, not {data.configurations}"


def exchanged(x: F64, random: np.random.Generator) -> F64 | None:
    """Circuits after one exchange: u to v and w to z become u to z and w to v; None where that gives nothing new."""
    tail, head = np.nonzero(x)
    one, two = random.integers(tail.size, size=2)
    u, v, w, z = int(tail[one]), int(head[one]), int(tail[two]), int(head[two])
    if u in (w, z) or v in (w, z):
        return None
    new = x.copy()
    new[[u, w], [v, z]] -= 1.0
    new[[u, w], [z, v]] += 1.0
    return new


def run_search(context: Context) -> Answer:
    """Local search over circuits, each replayed on shortest paths.

    Starts from the designs of ``topology-finder`` and ``ocs-reconfig`` for the sum of all traffic, and from the
    circulant graph of the strides 1 to d. Exchanges two circuits at random and keeps what is not slower; after
    ``patience`` exchanges without a shorter time the next start is taken. The replay
    (:func:`opticoll.formulations.topoopt.circuits_solution.replayed`) sends whatever is ready, so a schedule may be
    slower than the best one over the same circuits.
    """
    data: TaskCircuits = context.data
    n, pool = data.n, context.instance
    around = np.array([(s, (s + k % (n - 1) + 1) % n) for s in range(n) for k in range(data.degree)])
    designs = [
        circuits_between(n, circuits).astype(float)
        for circuits in (topology_finder(pool).circuits, ocs_reconfig(pool).circuits, around)
    ]
    random = np.random.default_rng(context.task.seed)
    best: dict[str, F64] | None = None
    replays, least = 0, max(bound.value for bound in data.bounds()) * (1 + 1e-9)
    for x in designs:
        values = replayed(data, x)
        replays += 1
        if values is None:
            continue
        time, idle = float(values["z"]), 0
        if best is None or time < float(best["z"]):
            best = values
        while idle < int(context.parameters["patience"]) and float(best["z"]) > least and not context.expired:
            idle += 1
            new = exchanged(x, random)
            values = None if new is None else replayed(data, new)
            replays += new is not None
            if new is None or values is None or float(values["z"]) > time:
                continue
            if float(values["z"]) < time * (1 - 1e-9):
                idle = 0
            x, time = new, float(values["z"])
            if time < float(best["z"]):
                best = values
                context.save(Answer.heuristic(best, "exchanges of circuits"), time)
    if best is None:
        return Answer(Termination.ITERATION_LIMIT, message="no start has a path for every transfer")
    return Answer.heuristic(best, "exchanges of circuits", {"replays": replays})


def run_finder(context: Context) -> Answer:
    """Replay the circuits that TopologyFinder chooses for the sum of all traffic.

    All-reduces take the rings of the formulation's parameter ``rings``, not those that TopologyFinder chooses.
    """
    x = circuits_between(context.data.n, topology_finder(context.instance).circuits).astype(float)
    values = replayed(context.data, x)
    if values is None:
        return Answer(Termination.ITERATION_LIMIT, message="a transfer has no path over TopologyFinder's circuits")
    return Answer.heuristic(values, "TopologyFinder, replayed")


METHODS = (
    Method(
        name="circuit-search",
        title="Local search over circuits",
        summary="exchanges of circuits, each replayed over the task graph on shortest paths",
        serves=("topoopt.circuits",),
        # HiGHS: 475 variables (4 servers, 6 transfers, 6 intervals) in 10 s, 681 in 16 s.
        takes_over=(Beyond("topoopt.circuits", 500, proves=False),),
        parameters=(
            Parameter(
                "patience", int, default=200, help="exchanges without a shorter time before a new start", least=0
            ),
        ),
        run=run_search,
        refuse=_static,
    ),
    Method(
        name="replayed-finder",
        title="TopologyFinder's circuits, replayed",
        summary="the circuits that TopologyFinder chooses for the sum of all traffic, replayed over the task graph",
        serves=("topoopt.circuits",),
        run=run_finder,
        refuse=_static,
    ),
)

"""Methods ``circuit-search`` and ``replayed-finder``: circuits for a task graph, replayed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.parameters import Parameter
from opticoll.formulations.topoopt.circuit_design import circuits_between
from opticoll.formulations.topoopt.circuits_solution import replayed
from opticoll.instances.topology import Topology
from opticoll.solvers.methods.method import Answer, Beyond, Method
from opticoll.solvers.methods.topoopt.ocs_reconfig import ocs_reconfig
from opticoll.solvers.methods.topoopt.topology_finder import topology_finder
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opticoll.formulations.topoopt.circuits import TaskCircuits
    from opticoll.instances.topology import F64
    from opticoll.solvers.methods.method import Context

#: Most seconds for a network for an all-to-all, which usually ends with its exchanges (n = 8: 2 s).
MOST_S = 60.0


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


def starts(context: Context) -> Iterator[F64]:
    """Circuits to begin with: for the sum of traffic, around a ring, and for an all-to-all."""
    data, pool = context.data, context.instance
    n = data.n
    around = np.array([(s, (s + k % (n - 1) + 1) % n) for s in range(n) for k in range(data.degree)])
    for circuits in (topology_finder(pool).circuits, ocs_reconfig(pool).circuits, around):
        yield circuits_between(n, circuits).astype(float)
    settings = {"directed": True, "partial": 0, "exchanges": 20_000}
    spec = f"servers:n={n},degree={data.degree}"
    if n > data.degree > 1:
        run = context.solve(
            context.part("topology.design", MOST_S, instance=spec, method="symmetric-search", settings=settings)
        )
        if run.verified:
            yield np.rint(run.values["x"])


def best_shares(context: Context, x: F64) -> F64 | None:
    """Share of every transfer over every pair of servers, ``(E, n, n)``, that ends each wave, alone, first.

    None if a transfer has no path.
    """
    e, n = context.data.transfers, len(x)
    tail, head = np.nonzero(x)
    topology, shares = Topology(n, tail, head, x[tail, head]), np.zeros((e.count, n, n))
    for wave in range(int(e.wave.max()) + 1):
        own = np.flatnonzero(e.wave == wave)
        demand = e.between(n, np.where(e.wave == wave, e.size, 0.0))
        run = context.solve(context.part("alltoall.link-mcf", instance=topology, settings={"demand": demand}))
        if not run.verified or not run.objective:
            return None
        number = np.cumsum(demand.ravel() > 0).reshape(n, n) - 1  # of the pair among those with demand
        pair = number[e.source[own], e.target[own]]
        whole = run.objective * demand[e.source[own], e.target[own]]
        shares[own[:, None], tail, head] = run.values["f"][:, pair].T / whole[:, None]
    return shares


def run_search(context: Context) -> Answer:
    """Local search over circuits, each replayed on shortest paths.

    Starts from the designs of ``topology-finder`` and ``ocs-reconfig`` for the sum of all traffic, from the circulant
    graph of the strides 1 to d, and from the best network for an all-to-all that ``symmetric-search`` finds. Exchanges
    two circuits at random and keeps what is not slower; after ``patience`` exchanges without a shorter time the next
    start is taken. The replay (:func:`opticoll.formulations.topoopt.circuits_solution.replayed`) sends whatever is
    ready, so a schedule may be slower than the best one over the same circuits. The first and the last circuits from
    every start are also replayed on the best routes of every wave.
    """
    random, found = np.random.default_rng(context.task.seed), _Found(context)
    for x in starts(context):
        values, idle = found.replay(x), 0
        if values is None:
            continue
        found.replay_best(x)
        begun, time = x, float(values["z"])
        while idle < int(context.parameters["patience"]) and not found.proven:
            idle += 1
            new = exchanged(x, random)
            values = None if new is None else found.replay(new)
            if new is None or values is None or float(values["z"]) > time:
                continue
            if float(values["z"]) < time * (1 - 1e-9):
                idle = 0
            x, time = new, float(values["z"])
        if x is not begun:
            found.replay_best(x)
        if found.proven:
            break
    if found.values is None:
        return Answer(Termination.ITERATION_LIMIT, message="no start has a path for every transfer")
    return Answer.heuristic(found.values, "exchanges of circuits", {"replays": found.replays})


class _Found:
    """The best schedule so far; kept where time ends, as :meth:`~.Context.remaining` tells before every replay."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.values: dict[str, F64] | None = None
        self.replays, self.least = 0, max(bound.value for bound in context.data.bounds()) * (1 + 1e-9)

    @property
    def proven(self) -> bool:
        """Whether no schedule is faster."""
        return self.values is not None and float(self.values["z"]) <= self.least

    def replay(self, x: F64, paths: F64 | None = None) -> dict[str, F64] | None:
        """Replay circuits, and keep the schedule if it is faster than those before."""
        self.context.remaining()
        self.replays += 1
        values = replayed(self.context.data, x, paths)
        if values is not None and (self.values is None or float(values["z"]) < float(self.values["z"])):
            self.values = values
            self.context.save(Answer.heuristic(values, "exchanges of circuits"), float(values["z"]))
        return values

    def replay_best(self, x: F64) -> None:
        """Replay circuits over the best routes of every wave, unless nothing faster is possible."""
        if not self.proven and (paths := best_shares(self.context, x)) is not None:
            self.replay(x, paths)


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

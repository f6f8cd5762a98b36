"""Methods ``circuit-search`` and ``replayed-finder``: circuits for a task graph, replayed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.parameters import Parameter
from opticoll.formulations.topoopt.circuit_design import circuits_between
from opticoll.instances.topology import Topology
from opticoll.solvers.methods.method import Answer, Beyond, Method
from opticoll.solvers.methods.topoopt.ocs_reconfig import ocs_reconfig
from opticoll.solvers.methods.topoopt.topology_finder import topology_finder
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from opticoll.formulations.topoopt.circuits import TaskCircuits
    from opticoll.instances.topology import F64, I64
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
    start is taken. The replay (:func:`replayed`) sends whatever is
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


def shortest_shares(x: F64, source: I64, target: I64) -> F64 | None:
    """Share of every transfer over every pair of servers, ``(E, n, n)``, on shortest paths; None if one has none.

    At every server the share is split over the circuits to servers that are nearer to the target.
    """
    n = len(x)
    there = x > 0
    distance = np.where(np.eye(n, dtype=bool), 0, n)
    reached = np.eye(n, dtype=bool)
    for h in range(1, n):
        reached = reached @ there | reached
        distance = np.minimum(distance, np.where(reached, h, n))
    if (distance[source, target] >= n).any():
        return None
    left = distance[:, target].T  # of every transfer, from every server to its target
    split = np.where((left[:, :, None] == left[:, None, :] + 1) & there, x, 0.0)
    total = split.sum(axis=2, keepdims=True)
    split = np.divide(split, total, out=np.zeros_like(split), where=total > 0)
    at, flow = np.zeros((source.size, n)), np.zeros((source.size, n, n))
    at[np.arange(source.size), source] = 1.0
    for _ in range(int(left[np.arange(source.size), source].max(initial=0))):
        step = at[:, :, None] * split
        flow += step
        at = step.sum(axis=1)
    return flow


def replayed(data: TaskCircuits, x: F64, paths: F64 | None = None) -> dict[str, F64] | None:
    """The schedule of circuits x, ``(n, n)``, of the one configuration; None if a transfer has no path.

    Transfers take shortest paths, or their shares over every pair of servers are ``paths``, ``(E, n, n)``.

    The better one of two. *Wave by wave*: all that waits for nothing is sent once all of it is ready, with rates that
    end it together. *At once*: whatever is ready is sent, transfers of earlier waves first (:func:`rates_of`), and an
    interval ends when a transfer ends or another gets ready; once no more intervals are left than transfers wait for
    each other in a chain, it goes on wave by wave.
    """
    if paths is None:
        paths = shortest_shares(x, data.transfers.source, data.transfers.target)
    if paths is None:
        return None
    found = [_replay(data, x, paths, waves=waves) for waves in (True, False)]
    return min(found, key=lambda values: float(values["z"]))


def rates_of(x: F64, paths: F64, left: F64, wave: I64) -> F64:
    """Rates of transfers of which so much is left on paths ``(., n, n)`` over circuits x, earlier waves first.

    With rho_e the largest load of a pair of servers on the paths of e, what is left of its wave over the circuits that
    earlier waves leave, e gets the rate that ends it in rho_e: no circuit is overloaded. Three rounds, since a transfer
    that is slow elsewhere leaves room.
    """
    free, rate, used = x.copy(), np.zeros(left.size), paths > 0
    for _ in range(3):
        for k in np.unique(wave):
            own = np.flatnonzero(wave == k)
            load = np.tensordot(left[own], paths[own], 1)
            full = np.divide(load, free, out=np.full_like(free, np.inf), where=free > 1e-9 * x)
            more = left[own] / np.where(used[own], full, 0.0).reshape(own.size, -1).max(axis=1)
            rate[own] += more
            free = np.maximum(free - np.tensordot(more, paths[own], 1), 0.0)
    return rate


def _replay(data: TaskCircuits, x: F64, paths: F64, *, waves: bool) -> dict[str, F64]:
    e, n, E = data.transfers, data.n, data.transfers.count
    depth, wave = e.following, e.wave
    left, end, ready = e.size.copy(), np.full(E, np.inf), e.head.copy()
    waits = np.bincount(e.after, minlength=E)
    lists: dict[str, list[F64]] = {"t": [], "l": [], "b": [], "f": []}
    now = 0.0
    while (todo := left > 0).any():
        together = waves or data.intervals - len(lists["t"]) <= int(depth[todo].max())
        waiting = todo & (waits == 0)
        now = max(now, float(ready[waiting].max() if together else ready[waiting].min()))
        own = np.flatnonzero(waiting & (ready <= now))
        if together:
            part, last = left[own], 0.0
        else:
            rate = rates_of(x, paths[own], left[own], wave[own])
            needs = np.divide(left[own], rate, out=np.full(own.size, np.inf), where=rate > 0)
            last = min(float(needs.min()), float(ready[waiting & (ready > now)].min(initial=np.inf)) - now)
            part = np.where(needs <= last * (1 + 1e-9), left[own], rate * last)
        load = np.tensordot(part, paths[own], 1)
        last = max(last, float(np.divide(load, x, out=np.zeros_like(x), where=x > 0).max()))
        flow, share = np.zeros((n, n, n)), np.zeros(E)
        np.add.at(flow, e.source[own], part[:, None, None] * paths[own])
        share[own] = part
        for name, one in zip("tlbf", (now, last, share, flow), strict=True):
            lists[name].append(np.asarray(one))
        left[own] = np.where(part >= left[own], 0.0, left[own] - part)
        now += last
        done = np.zeros(E, dtype=bool)
        done[own] = left[own] <= 0
        end[done] = now
        freed = done[e.before]
        np.maximum.at(ready, e.after[freed], now + e.lag[freed])
        np.subtract.at(waits, e.after[freed], 1)
    return _as_values(data, x, end, lists)


def _as_values(data: TaskCircuits, x: F64, end: F64, lists: Mapping[str, list[F64]]) -> dict[str, F64]:
    """The arrays of a replay of one configuration: intervals without a transfer follow at its end."""
    more = data.intervals - len(lists["t"])
    stop = float(lists["t"][-1] + lists["l"][-1])
    t, length = (np.append(np.array(lists[name]), np.full(more, rest)) for name, rest in (("t", stop), ("l", 0.0)))
    share, f = (np.stack([*lists[name], *[np.zeros_like(lists[name][0])] * more]) for name in "bf")
    y = (x[None, :, :, None] > np.arange(data.degree)).astype(float)
    z = max(data.transfers.computing, float((end + data.transfers.tail).max()))
    return {"y": y, "f": f, "a": (share > 0).astype(float), "b": share, "t": t, "l": length, "z": np.asarray(z)}


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

"""Method ``alternating``: TopoOpt's alternating optimization of strategy and topology."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.parameters import Parameter
from opticoll.formulations.topoopt.forwarding import routed_design
from opticoll.instances.servers import ServerPool
from opticoll.solvers.methods.method import Answer, Method
from opticoll.solvers.methods.topoopt.strategy_front import front
from opticoll.solvers.methods.topoopt.topology_finder import topology_finder

if TYPE_CHECKING:
    from collections.abc import Callable

    from opticoll.formulations.topoopt.circuit_design import CircuitDesign
    from opticoll.formulations.topoopt.strategy import Plane
    from opticoll.instances.topology import F64, I64
    from opticoll.solvers.methods.method import Context


#: First and last temperature of the Markov chain, relative to the time.
HEAT, COOL = 0.1, 1e-4


@dataclass(frozen=True, eq=False)
class Planned:
    """A strategy, ``(K, C)``, the design for its traffic, and the iteration time over it [s]."""

    x: I64
    design: CircuitDesign
    time: float


def way_loads(data: Plane, circuits: I64) -> F64:
    """Point-to-point bytes over every circuit by shortest paths, for one part of every kind and way, ``(K, C, m)``."""
    loads = np.zeros((*data.allowed.shape, len(circuits)))
    for (k, c), (matrix, _) in data.patterns.items():
        if matrix.any():
            alone = ServerPool(data.pool.n, data.pool.degree, matrix)
            loads[k, c] = routed_design(alone, circuits, ()).loads
    return loads


def time_over(data: Plane, x: I64, loads: F64) -> float:
    """T of a strategy [s] over circuits with these loads, ``(K, C, m)``."""
    reduce, computing = float((data.reduced * x).sum()), data.computing + float((data.work * x).sum())
    worst = float(np.tensordot(x, loads, axes=2).max(initial=0.0))
    return computing + reduce / (data.pool.n * data.pool.degree * data.bandwidth) + worst / data.bandwidth


def first_strategy(data: Plane) -> I64:
    """All kinds replicated, or in their first way if they cannot be.

    While they exceed the memory, the largest kinds switch to the way that needs the least memory.
    """
    allowed = np.where(data.allowed, data.held, np.inf)
    x = np.zeros(data.allowed.shape, dtype=np.int64)
    kinds, first = np.arange(len(data.kinds)), data.allowed.argmax(axis=1)
    x[kinds, first] = data.count
    for k in np.argsort(-(data.held[kinds, first] * data.count), kind="stable").tolist():
        if data.memory <= 0 or float((data.held * x).sum()) <= data.memory:
            break
        x[k] = 0
        x[k, int(np.argmin(allowed[k]))] = data.count[k]
    return x


def chain(data: Plane, x: I64, loads: F64, steps: int, random: np.random.Generator) -> tuple[I64, float]:
    """The best strategy on a chain of ``steps`` moves from x over fixed circuits, and its T."""
    current = time_over(data, x, loads)
    best, least = x.copy(), current
    x = x.copy()
    movable = np.flatnonzero(data.allowed.sum(axis=1) > 1)
    if not movable.size:
        return best, least
    for step in range(steps):
        k = int(random.choice(movable))
        source = int(random.choice(np.flatnonzero(x[k])))
        target = int(random.choice(np.flatnonzero(data.allowed[k] & (np.arange(len(data.ways)) != source))))
        parts = int(x[k, source]) if random.random() < 0.5 else 1
        x[k, source] -= parts
        x[k, target] += parts
        proposed = time_over(data, x, loads)
        level = least * HEAT * (COOL / HEAT) ** (step / steps)
        fits = data.memory <= 0 or float((data.held * x).sum()) <= data.memory
        if fits and (proposed <= current or random.random() < np.exp((current - proposed) / max(level, 1e-300))):
            current = proposed
            if current < least:
                best, least = x.copy(), current
        else:
            x[k, source] += parts
            x[k, target] -= parts
    return best, least


def planned(data: Plane, x: I64) -> Planned:
    """TopologyFinder's circuits for a strategy's traffic, and T over them."""
    design = topology_finder(data.job_pool(x))
    return Planned(x, design, time_over(data, x, way_loads(data, design.circuits)))


def alternate(
    data: Plane, *, rounds: int, steps: int, seed: int, tick: Callable[[Planned], None], start: I64 | None = None
) -> tuple[Planned, int]:
    """Alternate until T does not fall; return the best plan and the number of rounds.

    ``tick`` is called with every better plan. ``start`` is the first strategy, :func:`first_strategy` by default.
    """
    random = np.random.default_rng(seed)
    best = planned(data, first_strategy(data) if start is None else start)
    tick(best)
    for number in range(1, rounds + 1):
        x, _ = chain(data, best.x, way_loads(data, best.design.circuits), steps, random)
        plan = planned(data, x)
        if not plan.time < best.time * (1 - 1e-9):
            return best, number
        best = plan
        tick(best)
    return best, rounds


def run_alternating(context: Context) -> Answer:
    """TopoOpt's alternating optimization of strategy and circuits.

    Source  TopoOpt, section 4.1, figure 6

    1. Comp. x Comm. plane: over fixed circuits, Markov chain Monte Carlo over strategies (move: parts of one kind to
       another way within the memory; accepted with probability min(1, exp(-change / temperature))), by Eq. (1) with the
       loads of shortest paths: T = C(x) + R(x)/(n B) + (largest point-to-point load of a circuit) / b. These loads are
       linear in the strategy, and so is its computing time C(x), so a move costs one vector.
    2. Comm. x Topo. plane: TopologyFinder for the best strategy's traffic; T over its circuits.
    3. Repeat from the new circuits until T does not fall, or for ``rounds`` rounds.
    """
    settings, data = context.parameters, context.data
    rounds, steps = int(settings["rounds"]), int(settings["steps"])

    def answer(best: Planned, count: int) -> Answer:
        least = data.time(best.x.astype(float))
        metrics = {
            "iteration_time": best.time,
            "over_any_topology": best.time / least if least > 0 else None,
            "rounds_made": count,
            "max_load": best.design.max_load,
            "bandwidth_tax": best.design.bandwidth_tax,
        }
        return Answer.heuristic({"x": best.x.astype(np.float64)}, "MCMC and TopologyFinder", metrics)

    def tick(best: Planned) -> None:
        context.save(answer(best, 0), data.time(best.x.astype(float)))
        context.remaining()

    start = front(data)[2][0] if settings["start"] == "ideal" else None
    return answer(*alternate(data, rounds=rounds, steps=steps, seed=context.task.seed, tick=tick, start=start))


METHOD = Method(
    name="alternating",
    title="Alternating optimization (section 4.1)",
    summary="MCMC over strategies for fixed circuits, TopologyFinder for a fixed strategy, in turn",
    serves=("topoopt.strategy",),
    parameters=(
        Parameter("rounds", int, default=10, help="limit on rounds of both planes, k in the paper", least=1),
        Parameter("steps", int, default=2000, help="moves of the chain in one round", least=1),
        Parameter(
            "start",
            str,
            default="replicated",
            help="first strategy: replicated, or the best over any topology",
            choices=("replicated", "ideal"),
        ),
    ),
    run=run_alternating,
)

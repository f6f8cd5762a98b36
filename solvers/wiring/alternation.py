r"""Alternating optimisation: a strategy for given circuits, circuits for a given strategy, in turn.

Source  TopoOpt, section 4.1, figure 6

1. Comp. x Comm. plane: over fixed circuits, Markov chain Monte Carlo over strategies (move: one part of one kind to
   another way; taken with probability min(1, exp(-change / temperature)), memory kept), by Eq. (1) with the load that
   shortest paths give: T = C + R/(n B) + (greatest point-to-point load of a circuit) / b. Those loads are linear in the
   strategy, so a move costs one vector.
2. Comm. x Topo. plane: TopologyFinder for the best strategy's traffic; T over its circuits.
3. Again from the new circuits, until T has not fallen or ``rounds`` are done.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from formulations.topoopt.forwarding import routed_design
from formulations.topoopt.topology_finder import topology_finder
from instances.servers import ServerPool

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from formulations.topoopt.design import TopologyDesign
    from formulations.topoopt.strategy import Plane

    F64 = NDArray[np.float64]
    I64 = NDArray[np.int64]

#: Temperature of the chain at its beginning and end, relative to the time.
HEAT, COOL = 0.1, 1e-4


@dataclass(frozen=True, eq=False)
class Planned:
    """A strategy, ``(K, C)``, the design for its traffic, and the iteration time over it [s]."""

    x: I64
    design: TopologyDesign
    time: float


def way_loads(data: Plane, circuits: I64) -> F64:
    """Point-to-point bytes over every circuit for one part of every kind and way by shortest paths, ``(K, C, m)``."""
    found = np.zeros((*data.allowed.shape, len(circuits)))
    for (k, c), (matrix, _) in data.patterns.items():
        if matrix.any():
            alone = ServerPool(data.pool.n, data.pool.degree, matrix)
            found[k, c] = routed_design(alone, circuits, ()).loads
    return found


def time_over(data: Plane, x: I64, loads: F64) -> float:
    """T of a strategy over circuits with these loads of its ways [s]."""
    reduce = float((data.reduced * x).sum())
    worst = float(np.tensordot(x, loads, axes=2).max(initial=0.0))
    return data.computing + reduce / (data.pool.n * data.pool.degree * data.bandwidth) + worst / data.bandwidth


def first_strategy(data: Plane) -> I64:
    """Every kind in its cheapest way that keeps to the memory: replicated where that fits, as few bytes held else."""
    allowed = np.where(data.allowed, data.held, np.inf)
    x = np.zeros(data.allowed.shape, dtype=np.int64)
    x[:, 0] = data.count
    for k in np.argsort(-(data.held[:, 0] * data.count), kind="stable").tolist():
        if data.memory <= 0 or float((data.held * x).sum()) <= data.memory:
            break
        x[k] = 0
        x[k, int(np.argmin(allowed[k]))] = data.count[k]
    return x


def chain(data: Plane, x: I64, loads: F64, steps: int, random: np.random.Generator) -> tuple[I64, float]:
    """The best strategy that a chain of ``steps`` moves from x comes by, over fixed circuits, and its T."""
    now = time_over(data, x, loads)
    best, least = x.copy(), now
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
        found = time_over(data, x, loads)
        level = least * HEAT * (COOL / HEAT) ** (step / steps)
        fits = data.memory <= 0 or float((data.held * x).sum()) <= data.memory
        if fits and (found <= now or random.random() < np.exp((now - found) / max(level, 1e-300))):
            now = found
            if now < least:
                best, least = x.copy(), now
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
    """Alternate until nothing improves: the best plan, the rounds made. ``tick`` is called with every better plan.

    ``start`` is the first strategy, replicated layers (as far as they fit) if none is given.
    """
    random = np.random.default_rng(seed)
    best = planned(data, first_strategy(data) if start is None else start)
    tick(best)
    for number in range(1, rounds + 1):
        x, _ = chain(data, best.x, way_loads(data, best.design.circuits), steps, random)
        found = planned(data, x)
        if not found.time < best.time * (1 - 1e-9):
            return best, number
        best = found
        tick(best)
    return best, rounds

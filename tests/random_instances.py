"""Random instances for the draws of ``tests/problems``."""

from __future__ import annotations

from typing import Any

import numpy as np

from opticoll.instances import Instance, Topology, parse
from opticoll.instances.servers import ServerPool

Random = np.random.Generator
#: An instance and settings.
Drawn = tuple[Instance, dict[str, Any]]


def digraph(random: Random, least: int = 3, most: int = 8, extra: float = 1.5, spread: bool = True) -> Topology:
    """A random strongly connected digraph: a directed ring, further arcs, and capacities between 0.001 and 10."""
    n = int(random.integers(least, most + 1))
    order = random.permutation(n)
    arcs = {(int(order[i]), int(order[(i + 1) % n])) for i in range(n)}
    for _ in range(int(random.integers(0, round(extra * n) + 1))):
        u, v = (int(w) for w in random.choice(n, 2, replace=False))
        arcs.add((u, v))
    listed = sorted(arcs)
    kind = int(random.integers(4)) if spread else 3
    if kind == 0:
        capacity = 10.0 ** random.uniform(-3, 1, len(listed))
    elif kind == 1:
        capacity = np.round(10.0 ** random.uniform(-3, 1, len(listed)), 3)
    elif kind == 2:
        capacity = random.choice([0.001, 0.01, 0.1, 1.0, 10.0], len(listed))
    else:
        capacity = random.choice([1.0, 2.0, 3.0], len(listed))
    return Topology(n, [u for u, _ in listed], [v for _, v in listed], capacity)


def pool(random: Random, least: int, most: int, degrees: tuple[int, ...], spread: bool = True) -> ServerPool:
    """Servers with random traffic: uniform, the same between all, sparse, or over four orders of magnitude."""
    n, kind = int(random.integers(least, most + 1)), int(random.integers(4 if spread else 3))
    matrix = random.uniform(0.0, 2e6, (n, n))
    if kind == 1:
        matrix = np.full((n, n), 1e6)
    elif kind == 2:
        matrix = np.where(random.random((n, n)) < 0.5, np.round(matrix), 0.0)
        matrix[np.arange(n), (np.arange(n) + 1) % n] = 1e6
    elif kind == 3:
        matrix = 10.0 ** random.uniform(2, 6, (n, n))
    np.fill_diagonal(matrix, 0.0)
    return ServerPool(n, int(random.choice(degrees)), matrix)


def mesh(random: Random, shapes: tuple[str, ...]) -> Instance:
    """A wafer of one of the shapes, with few lasers and waveguides."""
    shape, lasers, guides = random.choice(shapes), int(random.integers(1, 5)), int(random.integers(1, 4))
    return parse(f"lightpath:{shape},lasers={lasers},waveguides={guides}")


def fibres(random: Random) -> Instance:
    """A line or ring of few nodes and wavelengths."""
    shape = random.choice(["line", "ring"])
    return parse(f"wdm-{shape}:n={int(random.integers(3, 9))},wavelengths={int(random.integers(1, 5))}")

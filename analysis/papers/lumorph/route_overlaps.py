"""Circuits of LuMorph's recursive exchanges on a grid, and the busiest edge of their routes.

The authors' figures count the circuits on an edge in both directions together and ignore wavelengths. The paper does
not say how GPUs are numbered: by rows, or by 2x2 squares as in section 3.2; nor which shapes the grids have.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from opticoll.analysis.papers.lumorph.machine_times import GRIDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from opticoll.instances import Topology

    I64 = NDArray[np.int64]


MCF, RANDOM = "MCF", "Random"
VARIANTS = {"Lumorph-2": 2, "Lumorph-4": 4}
#: The paper states no shapes. On 2x4 tiles, as in the code, LUMORPH-4 needs 8 circuits on an edge, on 4x2 the drawn 4.
SHAPES = {**GRIDS, 8: "4x2"}


def circuits(n: int, radix: int) -> Iterator[tuple[I64, I64]]:
    """Sources and targets of every step of the recursive exchange on n ranks; the last step takes what is left."""
    ranks, reached = np.arange(n), 1
    while reached < n:
        m = radix if n // reached % radix == 0 else n // reached
        digit = ranks // reached % m
        targets = [ranks + ((digit + k) % m - digit) * reached for k in range(1, m)]
        yield np.tile(ranks, m - 1), np.concatenate(targets)
        reached *= m


def numbering(grid: str, by: str) -> I64:
    """Tile of every rank: by ``rows``, or by ``squares`` of 2x2, 4x4, ... tiles while both sides are even."""
    rows, columns = map(int, grid.split("x"))
    tile = np.arange(rows * columns).reshape(rows, columns)

    def quarters(part: I64) -> I64:
        r, c = part.shape
        if r == 1 or c == 1 or r % 2 or c % 2:
            return part.ravel()
        if r < c:
            return np.concatenate([quarters(part[:, : c // 2]), quarters(part[:, c // 2 :])])
        if c < r:
            return np.concatenate([quarters(part[: r // 2]), quarters(part[r // 2 :])])
        halves = (part[: r // 2], part[r // 2 :])
        return np.concatenate([quarters(p) for half in halves for p in (half[:, : c // 2], half[:, c // 2 :])])

    return tile.ravel() if by == "rows" else quarters(tile)


def edges(mesh: Topology) -> I64:
    """Number of the edge of every arc, ``(m,)``: both directions have the same."""
    ends = np.minimum(mesh.tail, mesh.head) * mesh.n + np.maximum(mesh.tail, mesh.head)
    return np.unique(ends, return_inverse=True)[1]


def _random_arcs(mesh: Topology, grid: str, pairs: tuple[I64, I64], random: np.random.Generator) -> I64:
    """The arcs of a shortest path for every pair of tiles, uniform among all: its steps in random order."""
    columns, taken = int(grid.split("x")[1]), []
    arc = np.zeros((mesh.n, mesh.n), dtype=np.int64)
    arc[mesh.tail, mesh.head] = np.arange(mesh.arcs)
    at, to = pairs[0].copy(), pairs[1]
    while (left := np.flatnonzero(at != to)).size:
        down = to[left] // columns - at[left] // columns
        right = to[left] % columns - at[left] % columns
        vertical = random.random(left.size) * (abs(down) + abs(right)) < abs(down)
        ahead = at[left] + np.where(vertical, columns * np.sign(down), np.sign(right))
        taken.append(arc[at[left], ahead])
        at[left] = ahead
    return np.concatenate(taken)


@cache
def overlaps(grid: str, radix: int, by: str, routes: str, seed: int = 0) -> tuple[tuple[int, int], ...]:
    """The busiest edge of every step: circuits in one direction, and in both together.

    ``routes`` is ``straight`` (row first, then column; the best of both orders) or ``random`` shortest paths.
    """
    from opticoll.instances import parse
    from opticoll.solvers.methods.lumorph.overlap_search import straight_or_shortest

    mesh = parse(f"lightpath:{grid}")
    tile, random = numbering(grid, by), np.random.default_rng(seed)
    number, measured = edges(mesh), []
    for sources, targets in circuits(mesh.n, radix):
        pairs = tile[sources], tile[targets]
        arcs = (
            straight_or_shortest(mesh, *pairs).arcs if routes == "straight" else _random_arcs(mesh, grid, pairs, random)
        )
        loads = np.bincount(arcs, minlength=mesh.arcs)
        measured.append((int(loads.max()), int(np.bincount(number, loads).max())))
    return tuple(measured)


def busiest_edge(grid: str, radix: int, by: str, routes: str, seed: int = 0, *, both: bool = True) -> int:
    """The busiest edge of all steps, as :func:`overlaps`: circuits in both directions, or in one."""
    return max(step[both] for step in overlaps(grid, radix, by, routes, seed))


def least_by_cuts(grid: str, radix: int, by: str) -> list[int]:
    """Lower bound on the overlap of every step, both directions: circuits across a straight cut over its edges."""
    rows, columns = map(int, grid.split("x"))
    tile, bounds = numbering(grid, by), []
    for sources, targets in circuits(rows * columns, radix):
        bound = 0
        for side, across, place in ((columns, rows, tile % columns), (rows, columns, tile // columns)):
            ends = place[sources], place[targets]
            for line in range(1, side):
                bound = max(bound, -(-int(((ends[0] < line) != (ends[1] < line)).sum()) // across))
        bounds.append(bound)
    return bounds


def proven_overlap(grid: str, radix: int, by: str) -> int:
    """The least overlap in both directions: straight routes that attain a cut.

    Raises
    ------
    ArithmeticError
        If they do not.
    """
    least, bound = busiest_edge(grid, radix, by, "straight"), max(least_by_cuts(grid, radix, by))
    if least != bound:
        msg = f"radix {radix} on {grid} by {by}: straight routes overlap {least} times, the cuts give {bound}"
        raise ArithmeticError(msg)
    return least


def least_reconfigurations(name: str, n: int, waveguides: int) -> int:
    """Rounds of an all-reduce with the fewest splits of its steps, circuits counted in both directions.

    Raises
    ------
    ArithmeticError
        If some step's routes are not proven to need the fewest rounds.
    """
    grid, radix = SHAPES[n], VARIANTS[name]
    steps = [both for _, both in overlaps(grid, radix, "rows", "straight")]
    rounds = [ceil(step / waveguides) for step in steps]
    if rounds != [ceil(bound / waveguides) for bound in least_by_cuts(grid, radix, "rows")]:
        msg = f"{name} on {grid}, {waveguides} waveguides: the cuts do not prove {rounds} rounds"
        raise ArithmeticError(msg)
    return 2 * sum(rounds)

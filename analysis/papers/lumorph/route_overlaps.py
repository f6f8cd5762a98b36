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
from opticoll.instances.collective_steps import ALL_GATHER, collective_steps
from opticoll.instances.topology import link_groups

if TYPE_CHECKING:
    from opticoll.instances.topology import I64


MCF, RANDOM = "MCF", "Random"
VARIANTS = {"Lumorph-2": 2, "Lumorph-4": 4}
#: The paper states no shapes. On 2x4 tiles, as in the code, LUMORPH-4 needs 8 circuits on an edge, on 4x2 the drawn 4.
SHAPES = {**GRIDS, 8: "4x2"}


def circuits(n: int, radix: int) -> Iterator[tuple[I64, I64]]:
    """Sources and targets of every step of the recursive exchange on n ranks; the last step takes what is left."""
    for step in collective_steps(f"recursive:{radix}", n, ALL_GATHER):
        yield np.tile(np.arange(n), len(step.peers)), step.peers.ravel()


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


@cache
def overlaps(grid: str, radix: int, by: str, routes: str, seed: int = 0) -> tuple[tuple[int, int], ...]:
    """The busiest edge of every step: circuits in one direction, and in both together.

    ``routes`` is ``straight`` (row first, then column; the best of both orders) or ``random`` shortest paths.
    """
    from opticoll.instances import parse
    from opticoll.solvers.methods.lumorph.overlap_search import shortest_routes, straight_or_shortest

    mesh = parse(f"lightpath:{grid}")
    tile, random = numbering(grid, by), np.random.default_rng(seed)
    (edge, _), measured = link_groups(mesh.tail, mesh.head, mesh.capacity), []
    for sources, targets in circuits(mesh.n, radix):
        pairs = tile[sources], tile[targets]
        paths = straight_or_shortest(mesh, *pairs) if routes == "straight" else shortest_routes(mesh, *pairs, random)
        loads = np.bincount(paths.arcs, minlength=mesh.arcs)
        measured.append((int(loads.max()), int(np.bincount(edge, loads).max())))
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

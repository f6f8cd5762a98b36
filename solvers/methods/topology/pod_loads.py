"""Loads of a pod's links over equally split shortest paths, and annealing of its wiring under a norm of them."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from opticoll.compiled import compiled
from opticoll.solvers.methods.topology.link_exchanges import SQUARINGS, split_norm

if TYPE_CHECKING:
    from collections.abc import Callable

    from opticoll.formulations.topology.pod_bounds import CubeLinks
    from opticoll.instances.topology import I64

#: First and last temperature, relative to the norm, and the number of pieces of a run.
HEAT, PIECES = (0.01, 2e-4), 8


@compiled()
def load_norm(  # type: ignore[no-untyped-def]
    head, letter, follow, back, alike, squarings
):
    """The p-norm of the loads of an all-to-all over equally split shortest paths, divided by that of loads of 1.

    Parameters
    ----------
    head, letter
        As in :class:`~opticoll.formulations.topology.pod_bounds.CubeLinks`, with a letter for every switch.
    follow, back
        The permutation of every switch and its inverse, ``(W, k)``.
    alike
        Whether all cubes are alike under permutations that keep the wiring: sources of one cube stand for all.
    squarings
        p is 2 to this power.
    """
    (chips, ways), k = head.shape, follow.shape[1]
    n = k * chips
    onward = np.empty((n, ways), np.int64)
    for v in range(n):
        cube, chip = v // chips, v % chips
        for way in range(ways):
            name, into = letter[chip, way], cube
            if name >= 0:
                into = follow[name >> 1, cube] if name & 1 else back[name >> 1, cube]
            onward[v, way] = into * chips + head[chip, way]
    demand, first = np.ones((chips if alike else n, n)), np.arange(0, n * ways + 1, ways)
    for v in range(demand.shape[0]):
        demand[v, v] = 0.0
    kind = np.arange(n * ways) % (demand.shape[0] * ways)  # of all cubes together, if they are alike
    return split_norm(first, onward.ravel(), demand, kind, squarings, demand.shape[0] * ways)


@compiled()
def _anneal(  # type: ignore[no-untyped-def]
    head, letter, chosen, best, table, inverses, group, squarings, moves, heat, cool, seed
):
    """Anneal the group element of every set of switches; ``chosen`` becomes the last state, ``best`` the best one."""
    np.random.seed(seed)  # noqa: NPY002 - the generator of the compiled code
    k, switches = table.shape[0], group.size
    follow, back = np.empty((switches, k), np.int64), np.empty((switches, k), np.int64)
    now, least = -1.0, np.inf
    changed, was = 0, chosen[0]
    for move in range(moves + 1):
        if move:
            changed = np.random.randint(chosen.size)  # noqa: NPY002
            was = chosen[changed]
            chosen[changed] = (was + 1 + np.random.randint(k - 1)) % k  # noqa: NPY002
        for w in range(switches):
            for c in range(k):
                follow[w, c] = table[c, chosen[group[w]]]
                back[w, c] = table[c, inverses[chosen[group[w]]]]
        then = load_norm(head, letter, follow, back, True, squarings)
        level = heat * (cool / heat) ** (move / moves)
        if not move or then <= now * (1.0 - level * np.log(1.0 - np.random.random())):  # noqa: NPY002
            now = then
            if now < least:
                least = now
                best[:] = chosen
        else:
            chosen[changed] = was
    return least


def annealed(
    links: CubeLinks,
    table: I64,
    inverses: I64,
    group: I64,
    *,
    moves: int,
    random: np.random.Generator,
    start: I64 | None = None,
    tick: Callable[[], object] = lambda: None,
) -> tuple[float, I64]:
    """Norm and elements of the best wiring c -> c g found, with one element g of a group for every set of switches.

    Parameters
    ----------
    links
        The links of a cube, with a letter for every switch.
    table, inverses
        Products ``(k, k)`` and inverses ``(k,)`` of the group.
    group
        The set of every switch, ``(W,)``, numbered from 0.
    moves, start
        Number of elements that are replaced; the first ones, random if None.
    tick
        Called between pieces of the run; ends it by raising.
    """
    sets, k = int(group.max()) + 1, len(table)
    chosen = random.integers(k, size=sets) if start is None else start.copy()
    best, least = chosen.copy(), np.inf
    heats = np.geomspace(*HEAT, PIECES + 1).tolist()
    for heat, cool in pairwise(heats):
        tick()
        found = chosen.copy()
        norm = _anneal(
            links.head, links.letter, chosen, found, table, inverses, group, SQUARINGS,
            max(moves // PIECES, 1), heat, cool, int(random.integers(2**31)),
        )  # fmt: skip
        if norm < least:
            least, best = norm, found
    return least, best


def switches_of(table: I64, elements: I64, group: I64) -> I64:
    """The permutations c -> c g of every switch, ``(W, k)``."""
    return np.ascontiguousarray(table[:, elements[group]].T)

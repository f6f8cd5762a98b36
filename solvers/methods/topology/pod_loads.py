"""Loads of a pod's links over equally split shortest paths, and annealing of its wiring under a norm of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.compiled import compiled
from opticoll.solvers.methods.topology.split_loads import split_norm

if TYPE_CHECKING:
    from collections.abc import Callable

    from opticoll.formulations.topology.pod_bounds import CubeLinks
    from opticoll.instances.topology import I64

#: Squarings of the norms, as for :func:`load_norm`: none finds the best wirings of all numbers of cubes.
SQUARINGS = (3, 5)
#: First and last temperature, relative to the norm; replacements between two looks at the clock.
HOT, COLD, TICKED = 0.01, 2e-4, 50


@compiled()
def load_norm(  # type: ignore[no-untyped-def]
    head, letter, follow, back, alike, squarings
):
    """The p-norm of the loads of an all-to-all over equally split shortest paths, divided by that of loads of 1.

    Parameters
    ----------
    head, letter
        As in :class:`~opticoll.formulations.topology.pod_bounds.CubeLinks`, with a letter for every switch; links with
        the letter -2 lead nowhere.
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
            onward[v, way] = v if name == -2 else into * chips + head[chip, way]
    demand, first = np.ones((chips if alike else n, n)), np.arange(0, n * ways + 1, ways)
    for v in range(demand.shape[0]):
        demand[v, v] = 0.0
    kind = np.arange(n * ways) % (demand.shape[0] * ways)  # of all cubes together, if they are alike
    return split_norm(first, onward.ravel(), demand, kind, squarings, demand.shape[0] * ways)


@compiled()
def worst_norm(  # type: ignore[no-untyped-def]
    head, letter, follow, back, squarings, lost, most
):
    """The largest :func:`load_norm` of cubes that are alike after the loss of a switch of ``lost``, -1 for none.

    It ends as soon as a norm is above ``most``. The switch of the largest one becomes the first of ``lost``.
    """
    worst = 0.0
    for case in range(lost.size):
        kept = letter.copy()
        for chip in range(letter.shape[0]):
            for way in range(letter.shape[1]):
                if letter[chip, way] >= 0 and letter[chip, way] >> 1 == lost[case]:
                    kept[chip, way] = -2
        norm = load_norm(head, kept, follow, back, True, squarings)
        if norm > worst:
            worst = norm
            lost[0], lost[case] = lost[case], lost[0]
        if worst > most:
            break
    return worst


def annealed(
    links: CubeLinks,
    table: I64,
    inverses: I64,
    group: I64,
    squarings: int,
    *,
    moves: int,
    random: np.random.Generator,
    lost: I64,
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
    squarings
        As for :func:`load_norm`.
    moves
        Number of elements that are replaced.
    lost
        The switches of which any one may be lost; -1 for none.
    tick
        Called now and then; ends the run by raising TimeoutError, after the first wiring with what was found.
    """
    sets, k = int(group.max()) + 1, len(table)
    chosen, lost = random.integers(k, size=sets), lost.copy()
    best, now, least = chosen, np.inf, np.inf
    for move in range(moves + 1):
        if move % TICKED == 0:
            try:
                tick()
            except TimeoutError:
                if np.isinf(least):
                    raise
                break
        trial = chosen.copy()
        if move:
            at = random.integers(sets)
            trial[at] = (trial[at] + random.integers(1, k)) % k
        heat = HOT * (COLD / HOT) ** (move / moves)
        most = now * (1.0 + heat * random.exponential())
        follow, back = switches_of(table, trial, group), switches_of(table, inverses[trial], group)
        norm = worst_norm(links.head, links.letter, follow, back, squarings, lost, most)
        if norm <= most:
            chosen, now = trial, norm
            if now < least:
                least, best = now, chosen
    return least, best


def switches_of(table: I64, elements: I64, group: I64) -> I64:
    """The permutations c -> c g of every switch, ``(W, k)``."""
    return np.ascontiguousarray(table[:, elements[group]].T)

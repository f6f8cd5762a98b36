"""Wavelengths of circuits on lines, rings and meshes: bounds, assignments and conflicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import NotApplicable
from opticoll.formulations.model import of_kind
from opticoll.formulations.rounds.segments import offsets
from opticoll.instances.photonics import WdmFibres

if TYPE_CHECKING:
    from opticoll.instances.topology import I64, Mask


#: Largest number of nodes whose assignment is listed pair by pair.
MOST_NODES = 2048


def whole_fibres(instance: object, where: str) -> WdmFibres:
    """Return the instance if it is an optical line or ring with all its fibres.

    Raises
    ------
    NotApplicable
        If it is not such an instance.
    """
    needed = "wdm-ring:n=...,wavelengths=... or wdm-line:n=...,wavelengths=..."
    fibres = of_kind(WdmFibres, instance, where, needed)
    if not fibres.intact:
        msg = f"{where}: {fibres.spec} has fibres or nodes removed, added or scaled; remove the modifiers"
        raise NotApplicable(msg)
    return fibres


def lemma_1(n: int, *, ring: bool) -> int:
    """Lemma 1 as restored: ceil(n^2/8) wavelengths on a ring, floor(n^2/4) on a line."""
    return -(-n * n // 8) if ring else n * n // 4


def wavelengths_needed(n: int, *, ring: bool) -> int:
    """Proven minimum: ceil(floor(n^2/4)/2) on a ring, floor(n^2/4) on a line."""
    crossing = n * n // 4
    return -(-crossing // 2) if ring else crossing


def load_bound(n: int, *, ring: bool) -> int:
    """Lower bound from counting arcs, computed from distances rather than from the closed form."""
    distance = np.arange(n, dtype=np.int64)
    if not ring:
        return int((distance * (n - distance)).max(initial=0))
    hops = n * int(np.minimum(distance, n - distance).sum())
    return -(-hops // (2 * n))


@dataclass(frozen=True, eq=False)
class WavelengthAssignment:
    """Direction and wavelength of every ordered pair of n nodes.

    Attributes
    ----------
    source, target
        The pairs, ``(n (n - 1),)``.
    onward
        Whether a pair is routed clockwise (on a line: towards higher numbers).
    colour
        Wavelength within its direction, from 0.
    colours
        Numbers of wavelengths used onward and backward.
    """

    n: int
    source: I64
    target: I64
    onward: Mask
    colour: I64
    colours: tuple[int, int]

    @property
    def wavelengths(self) -> int:
        """Number of wavelengths, the maximum over both directions."""
        return max(self.colours)

    def by_pair(self) -> tuple[Mask, I64]:
        """Direction and wavelength as matrices, ``(n, n)`` each; the diagonal is unused."""
        onward, colour = np.zeros((self.n, self.n), dtype=bool), np.zeros((self.n, self.n), dtype=np.int64)
        onward[self.source, self.target], colour[self.source, self.target] = self.onward, self.colour
        return onward, colour


def assign(n: int, *, ring: bool, mirrored: bool = False) -> WavelengthAssignment:
    """The optimal assignment, in closed form, of 2 to ``MOST_NODES`` nodes.

    ``mirrored`` reverses every pair and swaps directions.
    """
    (u, v, colour), (x, y, other) = _circles(n) if ring else _chains(n)
    source, target = np.concatenate([u, y]), np.concatenate([v, x])
    onward = np.concatenate([np.ones(u.size, dtype=bool), np.zeros(x.size, dtype=bool)])
    colours = (int(colour.max(initial=-1)) + 1, int(other.max(initial=-1)) + 1)
    both = np.concatenate([colour, other])
    if mirrored:
        return WavelengthAssignment(n, target, source, ~onward, both, (colours[1], colours[0]))
    return WavelengthAssignment(n, source, target, onward, both, colours)


def _chains(n: int) -> tuple[tuple[I64, I64, I64], tuple[I64, I64, I64]]:
    """Pairs u < v with their wavelengths, for both directions."""
    half = n // 2
    u, v = np.triu_indices(n, k=1)
    left = np.where(u < half, np.where(v >= half, u, v), n - 1 - v)
    right = np.where(v >= half, np.where(u < half, v, u), half + u)
    assigned = (u, v, left * (n - half) + right - half)
    return assigned, assigned


def _circles(n: int) -> tuple[tuple[I64, I64, I64], tuple[I64, I64, I64]]:
    """Pairs (u, v) with their wavelengths: routed clockwise from u to v, and anticlockwise from v to u."""
    p = n // 2
    i, j = np.triu_indices(p, k=1)
    rectangles = i.size
    u = [i, j, i + p, j + p]
    v = [j, i + p, j + p, i]
    colour = [np.arange(rectangles)] * 4
    nodes = np.arange(p)
    if n % 2:
        z = np.full(p, 2 * p)
        sides = (np.concatenate([*u, z, nodes, nodes + p]), np.concatenate([*v, nodes, nodes + p, z]))
        both = (*sides, np.concatenate([*colour, *[rectangles + nodes] * 3]))
        return both, both

    def with_diameters(which: I64) -> tuple[I64, I64, I64]:
        count = rectangles + np.arange(which.size)
        return (
            np.concatenate([*u, which, which + p]),
            np.concatenate([*v, which + p, which]),
            np.concatenate([*colour, count, count]),
        )

    return with_diameters(nodes[::2]), with_diameters(nodes[1::2])


def arcs_taken(n: int, source: I64, target: I64, onward: Mask) -> tuple[I64, I64, I64]:
    """Fibre spans between source and target of every pair, in order.

    Returns
    -------
    span
        All spans, span i lying between nodes i and i + 1 modulo n, in the order in which they are crossed.
    start
        Spans of pair k are ``span[start[k] : start[k + 1]]``.
    owner
        Pair of every span.
    """
    hops = np.where(onward, target - source, source - target) % n
    start = offsets(hops)
    owner = np.repeat(np.arange(source.size), hops)
    step = np.arange(start[-1]) - start[owner]
    span = np.where(onward[owner], source[owner] + step, source[owner] - 1 - step) % n
    return span, start, owner


def conflicts(n: int, pairs: WavelengthAssignment, *, ring: bool) -> int:
    """Number of repeated wavelengths on arcs, plus missing, repeated and (on a line) wrapping pairs."""
    span, _, owner = arcs_taken(n, pairs.source, pairs.target, pairs.onward)
    key = (pairs.colour[owner] * 2 + pairs.onward[owner]) * n + span
    taken = np.zeros(int(key.max(initial=-1)) + 1, dtype=np.bool_)
    taken[key] = True
    doubled = key.size - int(taken.sum())
    all_pairs = n * (n - 1)
    present = np.unique(pairs.source * n + pairs.target).size
    around = 0 if ring else int((span == n - 1).sum())
    return (
        doubled
        + (all_pairs - present)
        + (pairs.source.size - present)
        + int((pairs.source == pairs.target).sum())
        + around
    )

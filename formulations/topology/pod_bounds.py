"""Bounds on the time of a demand in every wiring of a pod: cuts between cubes, and chips that are within reach."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from opticoll.compiled import compiled
from opticoll.compiled_arrays import max_of, sum_of
from opticoll.formulations import rounding
from opticoll.formulations.declared_axes import size
from opticoll.formulations.model import Bound
from opticoll.instances.families.pods import DIMENSIONS

if TYPE_CHECKING:
    from opticoll.formulations.topology.pod import PodWiring
    from opticoll.instances.topology import I64

#: Cubes up to which all sets of them are cut off; more are cut off one at a time.
MOST_CUT = 12
#: Length of an optical link when lengths are raised and lowered, and the factors of fixed links, one after the other.
UNIT, FACTORS = 1 << 10, (32, 4, 2, 1.4, 1.2, 1.1)
#: Chips up to which lengths are varied.
MOST_VARIED = 4096
#: Largest cube whose walks are counted, and most cubes that they enter.
MOST_SIDE, MOST_ENTERED = 8, 20_000


def bounds(data: PodWiring) -> list[Bound]:
    """Bounds from cuts between cubes, and from the chips within reach."""
    found = []
    for name, (time, reason) in (("cube-cut", cut_time(data)), ("reach", reach_time(data))):
        if time > 0:
            found.append(Bound(name, rounding.fraction_up(1 / time), reason, "topology", fraction=1 / time))
    return found


def least_time(data: PodWiring) -> tuple[Fraction, str]:
    """Lower bound on T that holds for every wiring, and its reason."""
    return max(cut_time(data), reach_time(data), key=lambda bound: bound[0])


def cut_time(data: PodWiring) -> tuple[Fraction, str]:
    """Lower bound on T from what cubes send to the others over their ports, or get from them."""
    k, chips, best = data.cubes, data.side**DIMENSIONS, (Fraction(0), "one cube")
    between = data.demand.reshape(k, chips, k, chips).sum(axis=(1, 3)) * (1 - np.eye(k))
    ports = 2 * DIMENSIONS * data.side**2 - 2 * data.survive
    for number in range(1, k if k <= MOST_CUT else 2):
        for some in combinations(range(k), number):
            inside = np.isin(np.arange(k), some)
            sent = max(between[inside][:, ~inside].sum(), between[~inside][:, inside].sum())
            units = ports * min(number, k - number)
            time = rounding.least(rounding.float_down(float(sent), k * data.n)) / units
            if rounding.whole(data.demand.ravel()):
                time = Fraction(int(sent), units)
            if time > best[0]:
                what = "a cube sends or gets" if number == 1 else f"{number} cubes send or get"
                best = time, f"{what} {float(sent):.6g} shards over {units} ports"
        if not data.demand_varies:
            break  # one cube is the narrowest cut of an all-to-all
    return best


@dataclass(frozen=True, eq=False)
class CubeLinks:
    """Links of a cube for walks that enter no cube twice.

    ``head`` and ``kind`` are the chip and the kind of link in each of six directions, ``(b^3, 6)``; ``letter`` names
    the cube that an optical link enters by its direction, or by its switch too, and is -1 for fixed links and -2 where
    there is none; a letter and its inverse differ in the last bit. Kind 0 are optical links, the others fixed ones by
    their distance from the faces across; ``number`` counts them.
    """

    head: I64
    letter: I64
    kind: I64
    number: I64
    letters: int


@cache
def cube_links(side: int, *, same: bool, lost: int) -> CubeLinks:
    """The links of a cube of ``side``^3 chips, without those of a ``lost`` switch (-1 for none)."""
    chips = np.indices((side,) * DIMENSIONS).reshape(DIMENSIONS, -1).T
    strides = side ** np.arange(DIMENSIONS)[::-1]
    depth = np.minimum(chips, side - 1 - chips)  # from the nearer face
    head, letter = (np.empty((len(chips), 2 * DIMENSIONS), dtype=np.int64) for _ in range(2))
    mark = np.empty((len(chips), 2 * DIMENSIONS), dtype=np.int64)
    for d in range(DIMENSIONS):
        across = np.delete(np.arange(DIMENSIONS), d)
        switch = d * side**2 + chips[:, across] @ (side, 1)
        for up in (0, 1):
            end = chips[:, d] == (side - 1) * up
            onward = np.where(end, (side - 1) * (1 - up), chips[:, d] + 2 * up - 1)
            head[:, 2 * d + up] = np.arange(len(chips)) + (onward - chips[:, d]) * strides[d]
            optical = np.where(switch == lost, -2, 2 * (d if same else switch) + up)
            letter[:, 2 * d + up] = np.where(end, optical, -1)
            mark[:, 2 * d + up] = np.where(end, -1, depth[:, d] + np.minimum(onward, side - 1 - onward))
    _, kind = np.unique(mark, return_inverse=True)
    kind = kind.reshape(head.shape)
    return CubeLinks(head, letter, kind, np.bincount(kind[letter > -2]), 2 * DIMENSIONS * (1 if same else side**2))


@compiled()
def reached(  # type: ignore[no-untyped-def]
    head, letter, kind, lengths, letters, source, copies
):
    """The least lengths of walks from a chip to its own position and every other one, in order.

    Dijkstra's algorithm on the cubes that walks enter, which form a tree.

    Parameters
    ----------
    head, letter, kind, letters
        As in :class:`CubeLinks`.
    lengths
        Length of every kind of link, whole numbers >= 0.
    source
        The chip from which all walks start.
    copies
        Number of chips of every position that are reached, the source not counted, ``(b^3,)``.

    Returns
    -------
    Lengths, ``(b^3, most copies)``; 0 where none is found within :data:`MOST_ENTERED` cubes.
    """
    size, ways = head.shape
    far = np.zeros((size, max_of(copies)), np.int64)
    found, left = np.zeros(size, np.int64), sum_of(copies)
    # Of every cube, the letter that enters it, the cube before, and the cubes behind every letter.
    room, cubes = 16, 1
    tree, dist = np.full((room, 2 + letters), -1), np.full((room, size), np.int64(1) << 60)
    dist[0, source] = 0
    heap = [(np.int64(0), 0, np.int64(source))]
    while left > 0 and cubes < MOST_ENTERED:
        length, cube, chip = heapq.heappop(heap)
        if length > dist[cube, chip]:
            continue
        if found[chip] < copies[chip] and (cube > 0 or chip != source):
            far[chip, found[chip]] = length
            found[chip] += 1
            left -= 1
        for step in range(ways):
            into, name = cube, letter[chip, step]
            if name == -2:
                continue
            if name >= 0 and tree[cube, 0] == name ^ 1:
                into = tree[cube, 1]
            elif name >= 0:
                into = tree[cube, 2 + name]
                if into < 0:
                    if cubes == room:
                        tree = np.concatenate((tree, np.full((room, 2 + letters), -1)))
                        dist = np.concatenate((dist, np.full((room, size), np.int64(1) << 60)))
                        room *= 2
                    into = cubes
                    cubes += 1
                    tree[cube, 2 + name] = into
                    tree[into, 0], tree[into, 1] = name, cube
            to = head[chip, step]
            if length + lengths[kind[chip, step]] < dist[into, to]:
                dist[into, to] = length + lengths[kind[chip, step]]
                heapq.heappush(heap, (dist[into, to], into, to))
    return far


def reach_time(data: PodWiring) -> tuple[Fraction, str]:
    """Lower bound on T from the least lengths of walks that enter no cube twice, as the formulation states it."""
    if data.side > MOST_SIDE:
        return Fraction(0), "the cubes are too large"
    if data.survive:
        kept = [cube_links(data.side, same=data.same, lost=w) for w in np.unique([0, data.side**2 // 2]).tolist()]
        return max((_demand_reach(data, cube) for cube in kept), key=lambda bound: bound[0])
    if data.demand_varies:
        return _demand_reach(data, cube_links(data.side, same=data.same, lost=-1))
    return all_to_all_reach(data.cubes, data.side, same=data.same)


def all_to_all_least(cubes: int, side: int, *, same: bool) -> tuple[Fraction, str]:
    """Lower bound on T of an all-to-all in every wiring, and its reason, without its matrix of demands."""
    chips = side**DIMENSIONS
    units = 2 * DIMENSIONS * side**2
    cut = Fraction(chips * chips * (cubes - 1), units), f"a cube sends to all others over {units} ports"
    reach = all_to_all_reach(cubes, side, same=same) if side <= MOST_SIDE else (Fraction(0), "")
    return max(cut, reach, key=lambda bound: bound[0])


@cache
def all_to_all_reach(cubes: int, side: int, *, same: bool) -> tuple[Fraction, str]:
    """The bound for an all-to-all, under the best lengths that raising and lowering those of fixed links finds."""
    cube = cube_links(side, same=same, lost=-1)
    kinds = len(cube.number)
    lengths = np.full(kinds, UNIT)
    best = hops = _even_reach(cube, lengths, cubes, side)
    groups = [list(range(1, kinds))] * (kinds > 2) + [[kind] for kind in range(1, kinds)]
    for factor in FACTORS if cubes * side**DIMENSIONS <= MOST_VARIED else ():
        for some in groups:
            for times in (factor, 1 / factor):
                trial = lengths.copy()
                trial[some] = np.clip(np.rint(trial[some] * times), 1, UNIT)
                time = _even_reach(cube, trial, cubes, side)
                if time > best:
                    best, lengths = time, trial
                    break
    used = ", ".join(f"{length / UNIT:.3g}" for length in lengths[1:].tolist())
    how = f"chips within reach in any wiring: {float(hops):.6g} by hops"
    return best, how + ("" if best == hops else f", more where fixed links have the length {used} of an optical one")


def _even_reach(cube: CubeLinks, lengths: I64, cubes: int, side: int) -> Fraction:
    """The bound for an all-to-all under lengths by kind of link; one chip of all that are alike walks."""
    chips = np.indices((side,) * DIMENSIONS).reshape(DIMENSIONS, -1).T
    alike = np.sort(np.minimum(chips, side - 1 - chips), axis=1)
    _, first, times = np.unique(alike, axis=0, return_index=True, return_counts=True)
    total = sum(
        number * int(_walked(cube, lengths, cubes, source).sum())
        for source, number in zip(first.tolist(), times.tolist(), strict=True)
    )
    return Fraction(total, int(lengths @ cube.number))


def _walked(cube: CubeLinks, lengths: I64, cubes: int, source: int) -> I64:
    """The least lengths from a chip to the chips of all positions in so many cubes, ``(b^3, k)``."""
    copies = np.full(len(cube.head), cubes)
    copies[source] -= 1
    result: I64 = reached(cube.head, cube.letter, cube.kind, lengths, cube.letters, source, copies)
    return result


def _demand_reach(data: PodWiring, cube: CubeLinks) -> tuple[Fraction, str]:
    """The bound for any demand, by hops: from every chip the largest demands at the least distances."""
    k, chips, paid = data.cubes, data.side**DIMENSIONS, 0.0
    hops = np.ones(cube.number.size, dtype=np.int64)
    for source in range(chips):
        far = _walked(cube, hops, k, source)
        due = data.demand[source::chips].reshape(k, k, chips)
        paid += float((-np.sort(-due, axis=1)[:, : far.shape[1]] * far.T).sum())
    exact = rounding.whole(data.demand.ravel())
    least = Fraction(int(paid)) if exact else rounding.least(rounding.float_down(paid, data.n**2))
    return least / (k * int(cube.number.sum())), "chips within reach in any wiring, by hops"


def estimate(data: PodWiring) -> dict[str, int] | None:
    """About the size of the model."""
    k, b, n = data.cubes, data.side, data.n
    flows = 2 * DIMENSIONS * b**2 * ((b - 1) * k + k * k)
    return size(data, variables=len(data.lost) * n * flows)

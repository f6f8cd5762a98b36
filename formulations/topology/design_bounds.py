"""Bounds on the time of an all-to-all in any topology of a degree: distances, and cuts between racks."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations import rounding
from opticoll.formulations.declared_axes import size
from opticoll.formulations.model import Bound

if TYPE_CHECKING:
    from opticoll.formulations.topology.design import Design


def bounds(data: Design) -> list[Bound]:
    """Bounds from distances in any topology of the degree, and from cuts between racks."""
    time, reason = moore_time(data)
    result = [Bound("moore", rounding.fraction_up(1 / time), reason, "topology", fraction=1 / time)]
    if data.rack:
        time, reason = cut_time(data)
        result.append(Bound("rack-cut", rounding.fraction_up(1 / time), reason, "topology", fraction=1 / time))
    return result


def depth_sum(n: int, first: int, onward: int) -> int:
    """Minimum sum of distances to n-1 others: ``first`` at distance 1, and ``onward`` times as many at each next one.

    With ``onward`` = 0, all but ``first`` are unreachable; the sum is then that of the nodes at distance 1.
    """
    left, layer, depth, total = n - 1, first, 1, 0
    while left > 0 and layer > 0:
        taken = min(layer, left)
        total += depth * taken
        left, depth, layer = left - taken, depth + 1, layer * onward
    return total


def least_time(data: Design) -> tuple[Fraction, str]:
    """Lower bound on T that holds for every topology, and its reason."""
    return max(moore_time(data), cut_time(data), key=lambda bound: bound[0])


def cut_time(data: Design) -> tuple[Fraction, str]:
    """Lower bound on T from the shards that whole racks send over their cables; 0 without racks."""
    best = Fraction(0), "no racks"
    for racks in range(1, data.racks):
        size = racks * data.rack
        links = data.leaving(size, racks)
        time = Fraction(size * (data.n - size), links)
        if time > best[0]:
            several = "a rack sends" if racks == 1 else f"{racks} racks send"
            best = time, f"{several} {size * (data.n - size)} shards over at most {links} links"
    return best


def moore_time(data: Design) -> tuple[Fraction, str]:
    """Lower bound on T from the distances in any topology."""
    n, d = data.n, data.degree
    onward = d if data.directed else d - 1
    each = depth_sum(n, d, onward)
    total, reason = n * each, f"minimum sum of distances {each} for every node"
    if not data.directed and n * d % 2:
        fewer = depth_sum(n, d - 1, onward)
        total += fewer - each
        reason += f", {fewer} for one that lacks a link, since {n} x {d} is odd"
    diameter = moore_diameter(data)
    if data.directed and d >= 2 and diameter >= 2:
        total += 1
        reason += ", attained by no digraph (Bridges & Toueg)"
    elif not data.directed and d >= 3 and diameter >= 2 and not (diameter == 2 and d in {3, 7, 57}):
        total += 2
        reason += ", attained by no graph (Hoffman & Singleton; Damerell; Bannai & Ito)"
    if data.most_links < n * d - n * d % 2:
        reason += f", and at most {data.most_links} links within and between the racks"
    return Fraction(total, data.most_links), reason


def moore_diameter(data: Design) -> int:
    """Diameter k for which n is the Moore bound of degree d; 0 if there is none."""
    d, nodes, k = data.degree, 1, 0
    while nodes < data.n:
        nodes += d ** (k + 1) if data.directed else d * (d - 1) ** k
        k += 1
        if d < 2:
            return 0
    return k if nodes == data.n else 0


def most_links(data: Design) -> int:
    """Maximum number of links of a topology, C; a two-way link counts twice."""
    total = data.n * data.degree
    if data.rack:
        sizes = np.bincount(data.rack_of).tolist()
        total = sum(min(size * data.degree, size * (size - 1) + data.leaving(size)) for size in sizes)
    return total if data.directed else total // 2 * 2


def leaving(data: Design, size: int, racks: int = 1) -> int:
    """Maximum number of links that leave ``racks`` racks with ``size`` nodes in all."""
    rest, most = data.racks - racks, [size * data.degree, (data.n - size) * data.degree]
    if data.uplinks:
        most += [racks * data.uplinks, rest * data.uplinks]
    if data.cables:
        most.append(data.cables * racks * rest)
    return min(most)


def estimate(data: Design) -> dict[str, int] | None:
    """About the size of the model: no link from a node to itself, no flow into its source."""
    return size(data, variables=data.n**2 * (data.n - 1) + 1)

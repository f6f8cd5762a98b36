r"""Routes of a torus by dimension order at the least load, on two layers for every two dimensions.

Every pair goes the shorter way round in one dimension after the other; halfway round, forward if the coordinate there
and those of both ends have an even sum. These are the routes of the nodes whose coordinates are 0 or 1 (in odd
dimensions 0), moved by even numbers (in odd dimensions by any). Of n nodes, the links of a dimension of k carry
n (k - 1/k) / 8 each if k is odd, and if it is even n k / 8, rounded up on the busiest one.

A layer orders the links of every ring, beginning at one node: routes through that node are not on it. With the
coordinates x, y of two dimensions of equal even size, the rings begin on layer i = 0, 1 where x + y is, modulo k,

.. math:: x^+: i k/2, \quad x^-: (1 - i) k/2, \quad y^+: (1 - i) k/2, \quad y^-: i k/2.

Two layers are enough. Let a route go forward in x, from x + y = h to h + a, and in y from there to h + a + b, with
a, b at most k/2. If it passes 0 in x, -k/2 < h < 0 < h + a < k/2: in x it does not pass k/2, and in y, from h + a to
h + a + b < k, it does not pass 0: layer 1 has it. If it passes k/2 in x, layer 0 has it likewise; if neither, it passes
at most one of both in y. The other directions follow by reflection. The rings of a dimension that is left over, or of
other sizes, begin at 0 and at half their size. Every combination of the choices is a layer.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.formulations.flows.path_sets import PathSet
from opticoll.formulations.rounds.segments import offsets
from opticoll.instances.spec import family_of

if TYPE_CHECKING:
    from opticoll.instances.topology import F64, I64, Topology


def torus_routes(topology: Topology) -> tuple[PathSet, I64, F64] | None:
    """Routes of some pairs, images of all vertices ``(g, n)`` and places of arcs on all layers ``(m, L)``.

    None of networks that are no torus, or have a dimension of fewer than three nodes.
    """
    known = family_of(topology)
    arguments = dict[str, Any](known[1]) if known is not None and known[0].name == "torus" else {"shape": (0,)}
    sides: tuple[int, ...] = arguments["shape"]
    n, d = topology.n, len(sides)
    if min(sides) < 3 or n != np.prod(sides) or topology.num_ranks != n or topology.arcs != 2 * d * n:
        return None
    size, at = np.array(sides), np.stack(np.unravel_index(np.arange(n), sides))
    # The arc of every vertex in every dimension forward and back.
    key, out = topology.tail * n + topology.head, np.empty((d, 2, n), dtype=np.int64)
    for j, back in product(range(d), range(2)):
        there = at.copy()
        there[j] = (there[j] + (-1) ** back) % size[j]
        ends = np.arange(n) * n + np.asarray(np.ravel_multi_index(tuple(there), sides))
        out[j, back] = np.minimum(np.searchsorted(key, ends), key.size - 1)
        if not np.array_equal(key[out[j, back]], ends):
            return None
    even = size % 2 == 0
    sources = np.flatnonzero((at <= even[:, None]).all(axis=0))
    moves = np.array(list(product(*(range(0, k, 1 + (k % 2 == 0)) for k in sides))))
    images = np.stack([np.ravel_multi_index(tuple((at + move[:, None]) % size[:, None]), sides) for move in moves])
    first, last = np.repeat(sources, n), np.tile(np.arange(n), sources.size)
    first, last = first[first != last], last[first != last]
    gap = (at[:, last] - at[:, first]) % size[:, None]
    turn = (at[:, first] + (at[:, first] + at[:, last]).sum(axis=0)) % 2
    forward = (2 * gap < size[:, None]) | ((2 * gap == size[:, None]) & (turn == 0))
    steps = np.where(forward, gap, size[:, None] - gap)
    length = steps.sum(axis=0)
    begin = offsets(length)
    arcs, node = np.empty(begin[-1], dtype=np.int64), first.copy()
    done = np.zeros(first.size, dtype=np.int64)
    for j in range(d):
        for step in range(int(steps[j].max())):
            going = np.flatnonzero(steps[j] > step)
            taken = out[j, 1 - forward[j, going].astype(np.int64), node[going]]
            arcs[begin[going] + done[going]] = taken
            node[going], done[going] = topology.head[taken], done[going] + 1
    paths = PathSet(topology, first, last, arcs, begin, np.arange(first.size))
    return paths, images, _places(sides, at, out)


def _places(sides: tuple[int, ...], at: I64, out: I64) -> F64:
    """The places of arcs on the layers of the module's text, ``(m, L)``."""
    left, groups = list(range(len(sides))), []
    while left:
        j = left.pop(0)
        other = next((i for i in left if sides[i] == sides[j] and sides[j] % 2 == 0), None)
        groups.append((j,) if other is None else (j, other))
        left = [i for i in left if i != other]
    columns = []
    for chosen in product(range(2), repeat=len(groups)):
        place = np.empty(out.size)
        for group, i in zip(groups, chosen, strict=True):
            half = sides[group[0]] // 2
            for second, j in enumerate(group):
                for back in range(2):
                    flips = i ^ second ^ back if len(group) == 2 else i
                    along = (at[list(group)].sum(axis=0) - flips * half) % sides[j]
                    if back:  # the diagonal descends on the way back
                        along = -along % sides[j]
                    place[out[j, back]] = along + j * max(sides)
        columns.append(place)
    return np.stack(columns, axis=1)

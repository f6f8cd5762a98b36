r"""All-to-all on an intact mesh by permutations whose load is balanced over the waveguides.

A pair (i, j) -> (i', j') takes its row to column j', then that column (XY). Decompose all pairs (j, j') of a line of c
tiles into c permutations sigma, those of a line of r into tau; the products of both are N = r c permutations of the
mesh that hold every pair once. If sigma has load rho (its worst arc), its moves fall into rho classes a(j) of load one
(colouring intervals), those of tau into gamma classes b(i); with m = ceil(max(rho, gamma) / W) the circuits of class
(a + b) mod m load no arc, of a row or a column, above W: m colours a product.

    balanced    c = 2 h even: (b, x) -> (b + f(x), pi(x)), pi the reflections x -> k - x of Z_h, f in {0, 1} different
                on the two ends of every pair of pi, and 1 - f: load ceil(c / 4) or floor(c / 4), which sum up to
                floor(c^2 / 4), the cut. So on c >= r the products take r floor(c^2 / 4) / W colours, which is the cut,
                wherever the loads divide.
    shifts      j -> j + k mod c, load min(k, c - k): with W >= floor(max(r, c) / 2) every product is one colour; the
                product of identities moves nothing, so N - 1 colours: every tile sends all the time. For powers of two
                i -> i xor k does the same.
    searched    odd lines, loads between c / 4 and c / 2, and partial permutations of load W where c / 4 is no multiple
                of W: ejection search on the line.

Source  opticoll; the construction is checked by :func:`formulations.rounds.check.violations` on every use.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from formulations.lumorph.route_sets import RouteSet
from formulations.rounds.check import Limits
from instances import Topology
from solvers.rounds.assignment import pack_first, packing, squeeze

if TYPE_CHECKING:
    from numpy.typing import NDArray

    I64 = NDArray[np.int64]

#: Lines that are searched have at most this many tiles.
LONGEST_SEARCH = 64
#: Stretches of that search, each about a tenth of a second.
CALLS = 12


def shifts(c: int) -> I64:
    """All cyclic shifts of c tiles, ``(c, c)``, the identity first."""
    j = np.arange(c)
    return (j[:, None] + j) % c


def balanced(c: int) -> I64:
    """Permutations of an even number of tiles with load ceil(c/4) or floor(c/4), see the module, ``(c, c)``."""
    h = c // 2
    x = np.arange(h)
    found = []
    for k in range(h):
        pi = (k - x) % h
        f = (x > pi).astype(np.int64)
        fixed = np.flatnonzero(pi == x)
        f[fixed] = np.arange(fixed.size) % 2
        for flip in (f, 1 - f):
            found.append(np.concatenate([flip * h + pi, (1 - flip) * h + pi]))
    return np.array(found)


def line_load(permutation: I64) -> int:
    """Circuits on the worst arc of a line, each way counted alone."""
    j = np.arange(permutation.size)
    worst = 0
    for low, high in ((j, permutation), (permutation, j)):
        moves = (low < high) & (permutation >= 0)
        ends = np.bincount(low[moves], minlength=j.size) - np.bincount(high[moves], minlength=j.size)
        worst = max(worst, int(np.cumsum(ends).max(initial=0)))
    return worst


def line_classes(permutation: I64) -> I64:
    """Classes of load one: an interval colouring of the moves each way, ``(c,)``; they number ``line_load``."""
    c = permutation.size
    found = np.zeros(c, dtype=np.int64)
    for right in (True, False):
        moves = [j for j in range(c) if (permutation[j] > j if right else 0 <= permutation[j] < j)]
        moves.sort(key=lambda j: min(j, int(permutation[j])))
        free_at: list[int] = []
        for j in moves:
            low, high = sorted((j, int(permutation[j])))
            k = next((k for k, end in enumerate(free_at) if end <= low), len(free_at))
            if k == len(free_at):
                free_at.append(high)
            free_at[k] = high
            found[j] = k
    return found


@lru_cache(maxsize=256)
def _searched(c: int, load: int, parts: int, rest: bool) -> I64 | None:
    if not 2 <= c <= LONGEST_SEARCH or load * (parts - rest) < c * c // 4 or parts < c:
        return None
    source, target = (each.ravel() for each in np.indices((c, c)))
    if rest:
        source, target = source[source != target], target[source != target]
    length = np.abs(target - source)
    start = np.concatenate([[0], np.cumsum(length)])
    owner = np.repeat(np.arange(source.size), length)
    along = np.arange(start[-1]) - start[owner]
    # Arcs of a line: j -> j + 1 is 2 j, j -> j - 1 is 2 j - 1.
    arcs = np.where(target[owner] > source[owner], 2 * (source[owner] + along), 2 * (source[owner] - along) - 1)
    j = np.arange(c)
    line = Topology(c, np.concatenate([j[:-1], j[1:]]), np.concatenate([j[1:], j[:-1]]))
    items = packing(line, Limits(1, load), RouteSet(source, target, np.arange(source.size), start, arcs))
    bins = parts - rest
    if pack_first(items, np.argsort(-length, kind="stable")) > bins:
        calls = iter([1.0] * CALLS)
        if not squeeze(items, bins, np.random.default_rng(1000 * c + load), lambda: next(calls, 0.0)):
            return None
    found = np.full((parts, c), -1)
    if rest:
        found[0] = j
    found[items.bin_of + rest, source] = target
    return found


def searched(c: int, load: int, parts: int, *, rest: bool = False) -> I64 | None:
    """Partial permutations of a line with at most this load that hold every pair once, ``(parts, c)``.

    -1 where a tile does not take part; ``parts`` = c makes them permutations. ``rest``: the identity is the first of
    them. None if the search finds none.
    """
    return _searched(c, load, parts, rest)


def decompositions(c: int, waveguides: int) -> list[I64]:
    """Decompositions of all pairs of a line worth trying with so many waveguides."""
    if c == 1:
        return [np.zeros((1, 1), dtype=np.int64)]
    found = [shifts(c)]
    if waveguides >= c // 2:
        return found
    crossing = c * c // 4
    mean = -(-crossing // c)
    tries = [balanced(c) if c % 2 == 0 else searched(c, mean, c)]
    if waveguides * (c - 1) >= crossing:
        tries.append(searched(c, waveguides, c, rest=True))
    elif mean % waveguides or crossing % c:
        least = -(-crossing // waveguides)
        parts = (searched(c, waveguides, least + more) for more in range(0, 3 + least // 50, 1 + least // 100))
        tries.append(next((each for each in parts if each is not None), None))
    return found + [each for each in tries if each is not None]


def mesh_exchange(rows: int, columns: int, waveguides: int) -> tuple[I64, int]:
    """Colour of every ordered pair of tiles, ``(n, n)`` with -1 on the diagonal, and how many colours; XY routes."""
    best: tuple[int, I64, I64] | None = None
    for sigma in decompositions(columns, waveguides):
        rho = np.array([line_load(each) for each in sigma])
        for tau in decompositions(rows, waveguides):
            gamma = np.array([line_load(each) for each in tau])
            count = int((-(-np.maximum(rho[:, None], gamma) // waveguides)).sum())
            if best is None or count < best[0]:
                best = count, sigma, tau
    assert best is not None
    total, sigma, tau = best
    n = rows * columns
    colour = np.full((n, n), -1, dtype=np.int64)
    here = np.arange(n)
    i, j = np.divmod(here, columns)
    across = [(line_classes(each), line_load(each)) for each in tau]
    first = 0
    for each in sigma:
        a, rho_one = line_classes(each), line_load(each)
        moving = each[j] >= 0
        for other, (b, gamma_one) in zip(tau, across, strict=True):
            many = -(-max(rho_one, gamma_one) // waveguides)
            if many:
                goes = np.flatnonzero(moving & (other[i] >= 0))
                k, row, column = here[goes], i[goes], j[goes]
                colour[k, other[row] * columns + each[column]] = first + (a[column] + b[row]) % many
            first += many
    assert first == total
    np.fill_diagonal(colour, -1)
    return colour, total

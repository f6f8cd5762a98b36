"""Rings, paths, stars, complete and circulant graphs; meshes, tori, LIGHTPATH wafers (row-major), hypercubes."""

from __future__ import annotations

import itertools
from fractions import Fraction
from functools import partial
from math import gcd, prod
from typing import TYPE_CHECKING

import numpy as np

from opticoll.arguments import whole_number
from opticoll.errors import refuse
from opticoll.instances.photonics import LightpathMesh
from opticoll.instances.spec import Dimensions, family
from opticoll.instances.topology import MAX_VERTICES, Topology, both_ways, check_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray


def _ring_time(n: int, directed: bool) -> Fraction:
    if directed:
        return Fraction(n * (n - 1), 2)
    return Fraction(n * n // 4, 2) if n > 2 else Fraction(1)


@family(
    "ring",
    example="ring:8",
    source="Diestel, Graph Theory, 5th ed. 2017, section 1.3 (cycles)",
    closed_form=_ring_time,
)
def ring(n: int, directed: bool = False) -> Topology:
    r"""Ring of n nodes, two-way or one-way.

    Node :math:`i` has arcs to :math:`i \pm 1 \bmod n`, or with ``directed`` to :math:`i+1 \bmod n` only.
    Degree 2 and diameter :math:`\lfloor n/2 \rfloor`; directed: degree 1, diameter :math:`n-1`. The
    two-way ring of two nodes is a single link.

    Parameters
    ----------
    n
        Number of nodes, at least 2.
    directed
        Whether arcs run one way only.

    Raises
    ------
    BadInput
        If ``n`` is out of range.
    """
    whole_number(n, "ring: n", 2)
    check_size(n, n if directed else 2 * n, "ring")
    i = np.arange(n)
    if directed:
        return Topology(n, i, (i + 1) % n, spec="ring")
    i = i[: 1 if n == 2 else n]
    return Topology(n, *both_ways(i, (i + 1) % n), spec="ring")


@family(
    "path",
    example="path:4",
    source="Diestel, Graph Theory, 5th ed. 2017, section 1.3 (paths)",
    closed_form=lambda n: Fraction((n // 2) * ((n + 1) // 2)),  # the middle link
)
def path(n: int) -> Topology:
    r"""Path of n nodes, links both ways between neighbours.

    Arcs :math:`i \leftrightarrow i+1` for :math:`0 \le i < n-1`; diameter :math:`n-1`.

    Parameters
    ----------
    n
        Number of nodes, at least 2.

    Raises
    ------
    BadInput
        If ``n`` is out of range.
    """
    whole_number(n, "path: n", 2)
    check_size(n, 2 * (n - 1), "path")
    i = np.arange(n - 1)
    return Topology(n, *both_ways(i, i + 1), spec="path")


@family("star", example="star:6", source="Diestel, Graph Theory, 5th ed. 2017, section 1.7 (stars)")
def star(n: int) -> Topology:
    """Star of n nodes: hub 0 linked to all others.

    The hub is one of the n nodes: :math:`n-1` leaves of degree 1, diameter 2 for :math:`n > 2`.

    Parameters
    ----------
    n
        Number of nodes, hub included, at least 2.

    Raises
    ------
    BadInput
        If ``n`` is out of range.
    """
    whole_number(n, "star: n", 2)
    check_size(n, 2 * (n - 1), "star")
    leaves = np.arange(1, n)
    return Topology(n, *both_ways(np.zeros_like(leaves), leaves), spec="star")


def _transposed(n: int, u: int, v: int) -> NDArray[np.int64]:
    image = np.arange(n)
    image[[u, v]] = v, u
    return image


@family(
    "complete",
    example="complete:5",
    source="Diestel, Graph Theory, 5th ed. 2017, section 1.1",
    automorphisms=lambda n: [_transposed(n, 0, 1)],
    closed_form=lambda n: Fraction(1),
)
def complete(n: int) -> Topology:
    r"""Complete graph: every pair of nodes is linked.

    :math:`n(n-1)` arcs, degree :math:`n-1`, diameter 1.

    Parameters
    ----------
    n
        Number of nodes, at least 2.

    Raises
    ------
    BadInput
        If ``n`` is out of range.
    """
    whole_number(n, "complete: n", 2)
    check_size(n, n * (n - 1), "complete")
    return Topology(n, *both_ways(*np.triu_indices(n, k=1)), spec="complete")


def _bipartite_automorphisms(shape: Dimensions) -> Iterator[NDArray[np.int64]]:
    """A rotation and a transposition of each side, and the exchange of equal sides."""
    a, b = shape
    left, right = np.arange(a), np.arange(b)
    yield np.concatenate([np.roll(left, -1), a + right])
    yield np.concatenate([left, a + np.roll(right, -1)])
    for size, first in ((a, 0), (b, a)):
        if size > 1:
            yield _transposed(a + b, first, first + 1)
    if a == b:
        yield np.concatenate([a + left, right])


@family(
    "bipartite",
    example="bipartite:4x4",
    source="Diestel, Graph Theory, 5th ed. 2017, section 1.6",
    automorphisms=_bipartite_automorphisms,
    closed_form=lambda shape: 3 - Fraction(2, shape[0]) if len(shape) == 2 and shape[0] == shape[1] else None,
)
def bipartite(shape: Dimensions) -> Topology:
    r"""Complete bipartite graph: every node of one side is linked to every node of the other.

    Sides :math:`0 .. a-1` and :math:`a .. a+b-1`; :math:`2ab` arcs, degrees :math:`b` and :math:`a`,
    diameter 2 (1 if :math:`a=b=1`).

    Parameters
    ----------
    shape
        The two sides, ``axb``, each at least 1.

    Raises
    ------
    BadInput
        If there are not exactly two sides, or one is out of range.
    """
    if len(shape) != 2:
        refuse("bipartite", f"{shape} has {len(shape)} sides; write two, such as 4x4")
    a, b = shape
    whole_number(min(a, b), "bipartite: each side", 1)
    check_size(a + b, 2 * a * b, "bipartite")
    left, right = np.divmod(np.arange(a * b), b)
    return Topology(a + b, *both_ways(left, a + right), spec="bipartite")


def _unit_multiplications(n: int, offsets: Dimensions, directed: bool) -> Iterator[NDArray[np.int64]]:
    """Multiplications of Z_n by units that map the set of jumps to itself."""
    jumps = np.unique(offsets if directed else [*offsets, *(n - offset for offset in offsets)])
    for unit in range(2, n):
        if gcd(unit, n) == 1 and np.array_equal(np.unique(jumps * unit % n), jumps):
            yield np.arange(n) * unit % n


@family(
    "circulant",
    example="circulant:n=12,offsets=1x5",
    source="Elspas & Turner, J. Combinatorial Theory 9(3), 1970; directed: TopoOpt, Theorem 2 (+p rings)",
    automorphisms=_unit_multiplications,
)
def circulant(n: int, offsets: Dimensions, directed: bool = False) -> Topology:
    r"""Circulant graph: every node is linked to the nodes at fixed offsets.

    Node :math:`i` has arcs to :math:`i \pm o \bmod n` for every offset :math:`o`, or with ``directed`` to
    :math:`i + o \bmod n` only. Degree: two per offset, one for :math:`o = n/2`; directed: one per offset.
    Connected if and only if :math:`\gcd(n, o_1, …, o_k) = 1`; other offsets are accepted.

    Parameters
    ----------
    n
        Number of nodes, at least 2.
    offsets
        Jumps in :math:`1 .. n-1`, such as ``1x5``; two-way graphs take only one of :math:`o` and
        :math:`n - o`.
    directed
        Whether arcs run one way only.

    Raises
    ------
    BadInput
        If ``n`` is out of range, or an offset is out of range or repeated.
    """
    whole_number(n, "circulant: n", 2)
    check_size(n, n * len(offsets) * (1 if directed else 2), "circulant")
    seen: dict[int, int] = {}
    for offset in offsets:
        if not 1 <= offset < n:
            refuse("circulant", f"offset {offset} must lie in 1..{n - 1}")
        jump = offset if directed else min(offset, n - offset)
        if jump in seen:
            refuse("circulant", f"offsets {seen[jump]} and {offset} give the same links; omit one of them")
        seen[jump] = offset
    nodes = np.arange(n)
    tails, heads = [], []
    for jump in seen:
        start = nodes[: n // 2] if not directed and 2 * jump == n else nodes
        tails.append(start)
        heads.append((start + jump) % n)
    u, v = np.concatenate(tails), np.concatenate(heads)
    return Topology(n, u, v, spec="circulant") if directed else Topology(n, *both_ways(u, v), spec="circulant")


def _grid(shape: Dimensions, name: str, *, periodic: bool) -> Topology:
    """Link every node to its neighbours along each dimension."""
    whole_number(min(shape), f"{name}: each size", 1)
    n = prod(shape)
    whole_number(n, f"{name}: the product of the sizes", 2)
    links = sum(n if periodic and size > 2 else n // size * (size - 1) for size in shape)
    check_size(n, 2 * links, name)
    if len(shape) > 32:
        refuse(name, f"{len(shape)} dimensions exceed the limit of 32; omit sizes of 1")
    nodes = np.arange(n).reshape(shape)
    ends = []
    for axis, size in enumerate(shape):
        if periodic and size > 2:
            ends.append((nodes, np.roll(nodes, -1, axis=axis)))
        else:
            ahead = np.moveaxis(nodes, axis, 0)
            ends.append((ahead[:-1], ahead[1:]))
    u = np.concatenate([a.ravel() for a, _ in ends])
    v = np.concatenate([b.ravel() for _, b in ends])
    places = itertools.product(*([str(i) for i in range(size)] for size in shape))
    return Topology(n, *both_ways(u, v), spec=name, labels=tuple(map(".".join, places)))


def _grid_automorphisms(shape: Sequence[int], *, periodic: bool) -> Iterator[NDArray[np.int64]]:
    """Shifts (if ``periodic``), reflections, and swaps of equal dimensions."""
    nodes = np.arange(prod(shape)).reshape(shape)
    for axis, size in enumerate(shape):
        if periodic and size > 1:
            yield np.roll(nodes, -1, axis=axis).ravel()
    for axis, size in enumerate(shape):
        if size > 2 or not periodic:  # about node 0 in a torus, where shifts give the other reflections
            yield np.roll(np.flip(nodes, axis=axis), int(periodic), axis=axis).ravel()
    last: dict[int, int] = {}
    for axis, size in enumerate(shape):
        if size > 1 and size in last:
            yield np.swapaxes(nodes, last[size], axis).ravel()
        last[size] = axis


@family(
    "mesh",
    example="mesh:4x4",
    source="Dally & Towles, Interconnection Networks 2004, chapter 5",
    automorphisms=partial(_grid_automorphisms, periodic=False),
)
def mesh(shape: Dimensions) -> Topology:
    r"""Mesh of any dimension, links both ways between neighbours.

    Nodes are the points :math:`(x_1, …, x_k)` with :math:`0 \le x_j < s_j`, numbered with the last
    coordinate varying fastest and labelled ``x1.x2.…``. Order :math:`\prod_j s_j`, diameter
    :math:`\sum_j (s_j - 1)`.

    Parameters
    ----------
    shape
        Sizes :math:`s_j \ge 1`, such as ``4x4`` or ``2x3x4``; a size of 1 has no effect.

    Raises
    ------
    BadInput
        If a size is 0, or the mesh has fewer than two nodes or too many.
    """
    return _grid(shape, "mesh", periodic=False)


def _torus_time(shape: Sequence[int]) -> Fraction | None:
    """``N k_max / 8``: the longest dimension limits; for even sizes above 2 only."""
    return Fraction(prod(shape) * max(shape), 8) if all(k % 2 == 0 and k > 2 for k in shape) else None


@family(
    "torus",
    example="torus:3x4",
    source="Dally & Towles, Interconnection Networks 2004, chapter 5",
    automorphisms=partial(_grid_automorphisms, periodic=True),
    closed_form=_torus_time,
)
def torus(shape: Dimensions) -> Topology:
    r"""Torus of any dimension, links both ways, wrapped around in each dimension.

    A mesh with the additional links :math:`s_j - 1 \leftrightarrow 0`. In a dimension of size 2 the wrapped
    link would duplicate the direct one, so there is only one, as in networkx's periodic
    ``grid_graph``; a size of 1 has no effect. Degree :math:`2 |\{j: s_j > 2\}| + |\{j: s_j = 2\}|`,
    diameter :math:`\sum_j \lfloor s_j/2 \rfloor`. Labels as in a mesh.

    Parameters
    ----------
    shape
        Sizes :math:`s_j \ge 1`, such as ``3x4`` or ``4x4x4``.

    Raises
    ------
    BadInput
        If a size is 0, or the torus has fewer than two nodes or too many.
    """
    return _grid(shape, "torus", periodic=True)


def _wafer_automorphisms(shape: Sequence[int], wafers: int = 1, **_: object) -> Iterator[NDArray[np.int64]]:
    """Reflections of all wafers together; with one wafer, also the transposition of a square."""
    if wafers == 1:
        yield from _grid_automorphisms(shape, periodic=False)
        return
    nodes = np.arange(prod(shape) * wafers).reshape(shape[0], -1)
    yield nodes[::-1].ravel()
    yield nodes[:, ::-1].ravel()


@family(
    "lightpath",
    example="lightpath:2x4,lasers=16,waveguides=1",
    source="LuMorph, section 2 (LIGHTPATH tiles with 16 lasers), section 3 (wafers in series)",
    automorphisms=_wafer_automorphisms,
)
def lightpath(
    shape: Dimensions, lasers: int = 16, waveguides: int = 1, wafers: int = 1, fibres: int = 0
) -> LightpathMesh:
    """LIGHTPATH wafers: meshes of server tiles with lasers, joined by bundles of waveguides, and by fibres in between.

    Several wafers stand in a row: in every row of tiles, fibres join the last column of a wafer and the first column of
    the next one, both ways, so that the tiles form a mesh of ``rows x (wafers columns)``, numbered by rows. The paper
    says that wafers are connected serially by point-to-point fibres, but not at which tiles. Labels are ``row.column``,
    and ``wafer.row.column`` if there are several wafers.

    Parameters
    ----------
    shape
        Rows and columns of a wafer, such as ``2x4``.
    lasers
        Wavelengths that a tile can send, and can receive, at one time; at least 1.
    waveguides
        Waveguides of every arc on a wafer, at least 1.
    wafers
        Number of wafers, at least 1.
    fibres
        Fibres of every arc between wafers, each as good as a waveguide; 0 for as many as ``waveguides``.

    Raises
    ------
    BadInput
        If the shape does not have two sizes, a number is out of range, or ``fibres`` are given for one wafer.
    """
    if len(shape) != 2:
        refuse("lightpath", f"{shape} has {len(shape)} sizes; write rows and columns, such as 2x4")
    whole_number(wafers, "lightpath: wafers", 1)
    if wafers == 1:
        if fibres:
            refuse("lightpath", f"fibres={fibres} join wafers, but there is only one; write wafers=2 or remove fibres")
        return LightpathMesh(_grid(shape, "lightpath", periodic=False), shape, lasers, waveguides)
    if fibres < 0:
        refuse("lightpath", f"fibres={fibres} is negative; write 1 or more, or 0 for as many as waveguides")
    whole_number(waveguides, "lightpath: waveguides", 1)
    whole = Dimensions((shape[0], shape[1] * wafers))
    mesh = _grid(whole, "lightpath", periodic=False)
    row, column = np.divmod(np.arange(mesh.n), whole[1])
    wafer = column // shape[1]
    places = zip(wafer.tolist(), row.tolist(), (column % shape[1]).tolist(), strict=True)
    joins = wafer[mesh.tail] != wafer[mesh.head]
    numbered = Topology(
        mesh.n,
        mesh.tail,
        mesh.head,
        np.where(joins, (fibres or waveguides) / waveguides, 1.0),
        spec="lightpath",
        labels=tuple(".".join(map(str, place)) for place in places),
    )
    return LightpathMesh(numbered, whole, lasers, waveguides, wafers, fibres or waveguides)


def _links(dimension: int, name: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    if dimension >= MAX_VERTICES.bit_length():  # before 2**dimension is computed
        refuse(name, f"2**{dimension} vertices exceed the limit of {MAX_VERTICES}; choose a smaller dimension")
    n = 2**dimension
    check_size(n, n * dimension, name)
    nodes = np.arange(n)
    low = [nodes[nodes & bit == 0] for bit in (1 << np.arange(dimension))]
    return np.concatenate(low), np.concatenate([u | (1 << k) for k, u in enumerate(low)])


@family(
    "hypercube",
    example="hypercube:3",
    source="Harary, Hayes & Wu, Comput. Math. Appl. 15(4), 1988",
    automorphisms=lambda dimension: _grid_automorphisms((2,) * dimension, periodic=True),
    closed_form=lambda dimension: Fraction(2**dimension, 2),
)
def hypercube(dimension: int) -> Topology:
    r"""Binary hypercube: nodes differ in one bit along each link.

    Arcs :math:`u \leftrightarrow u \oplus 2^k` for :math:`0 \le k < D`. Order :math:`2^D`, degree and
    diameter :math:`D`.

    Parameters
    ----------
    dimension
        :math:`D \ge 1`.

    Raises
    ------
    BadInput
        If the dimension is out of range.
    """
    whole_number(dimension, "hypercube: dimension", 1)
    u, v = _links(dimension, "hypercube")
    return Topology(2**dimension, *both_ways(u, v), spec="hypercube")


@family(
    "twisted-hypercube",
    example="twisted-hypercube:3",
    source="Esfahanian, Ni & Sagan, IEEE Trans. Computers 40(1), 1991 (twisted n-cube)",
)
def twisted_hypercube(dimension: int) -> Topology:
    r"""Twisted n-cube: a hypercube in which two parallel links of one 4-cycle are crossed.

    In the 4-cycle 0, 1, 3, 2 of the hypercube the links :math:`\{0,1\}` and :math:`\{2,3\}` are replaced by
    :math:`\{0,3\}` and :math:`\{1,2\}`; all 4-cycles give isomorphic graphs. Order :math:`2^D`, degree
    :math:`D`, diameter :math:`D - 1`, one less than the hypercube's.

    Parameters
    ----------
    dimension
        :math:`D \ge 3` (for 2 the twist changes nothing).

    Raises
    ------
    BadInput
        If the dimension is out of range.
    """
    whole_number(dimension, "twisted-hypercube: dimension", 3)
    u, v = _links(dimension, "twisted-hypercube")
    v[:2] = 3, 1  # the first two links were {0, 1} and {2, 3}
    return Topology(2**dimension, *both_ways(u, v), spec="twisted-hypercube")

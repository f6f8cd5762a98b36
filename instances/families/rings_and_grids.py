"""Rings, paths, stars, complete and circulant graphs; meshes, tori, twisted tori, wafers (row-major); hypercubes."""

from __future__ import annotations

import itertools
from fractions import Fraction
from functools import partial
from math import comb, gcd, prod
from typing import TYPE_CHECKING

import numpy as np

from opticoll.arguments import whole_number
from opticoll.errors import refuse
from opticoll.instances.photonics import LightpathMesh
from opticoll.instances.spec import Dimensions, family
from opticoll.instances.topology import MAX_VERTICES, Topology, both_ways, check_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opticoll.instances.topology import I64


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


@family(
    "star",
    example="star:6",
    source="Diestel, Graph Theory, 5th ed. 2017, section 1.7 (stars)",
    closed_form=lambda n: Fraction(n - 1),  # out of every leaf
)
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


def _transposed(n: int, u: int, v: int) -> I64:
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


def _bipartite_automorphisms(shape: Dimensions) -> Iterator[I64]:
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


def _bipartite_time(shape: Sequence[int]) -> Fraction:
    """All distances over all arcs, of which symmetry and reversal make one orbit."""
    a, b = shape
    return 1 + Fraction(a * (a - 1) + b * (b - 1), a * b)


@family(
    "bipartite",
    example="bipartite:4x4",
    source="Diestel, Graph Theory, 5th ed. 2017, section 1.6",
    automorphisms=_bipartite_automorphisms,
    closed_form=_bipartite_time,
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


def _unit_multiplications(n: int, offsets: Dimensions, directed: bool) -> Iterator[I64]:
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
    n = _nodes(shape, name)
    links = sum(n if periodic and size > 2 else n // size * (size - 1) for size in shape)
    check_size(n, 2 * links, name)
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
    return Topology(n, *both_ways(u, v), spec=name, labels=_places(shape))


def _nodes(shape: Dimensions, name: str) -> int:
    """Number of points of a grid, at least 2."""
    whole_number(min(shape), f"{name}: each size", 1)
    n = prod(shape)
    whole_number(n, f"{name}: the product of the sizes", 2)
    if len(shape) > 32:
        refuse(name, f"{len(shape)} dimensions exceed the limit of 32; omit sizes of 1")
    return n


def _places(shape: Dimensions) -> tuple[str, ...]:
    """Labels ``x1.x2.…`` of the points of a grid, the last coordinate varying fastest."""
    return tuple(map(".".join, itertools.product(*([str(i) for i in range(size)] for size in shape))))


def _grid_automorphisms(shape: Sequence[int], *, periodic: bool) -> Iterator[I64]:
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
    closed_form=lambda shape: max(Fraction(prod(shape) // k * (k * k // 4)) for k in shape),
)
def mesh(shape: Dimensions) -> Topology:
    r"""Mesh of any dimension, links both ways between neighbours.

    Nodes are the points :math:`(x_1, …, x_k)` with :math:`0 \le x_j < s_j`, numbered with the last
    coordinate varying fastest and labelled ``x1.x2.…``. Order :math:`N = \prod_j s_j`, diameter
    :math:`\sum_j (s_j - 1)`.

    :math:`T = \max_j (N / s_j) \lfloor s_j^2 / 4 \rfloor`. The :math:`N / s_j` links across the middle of dimension
    :math:`j` carry all shards between the two sides; routing one dimension after the other loads the links between the
    same two positions of a dimension equally, the most in the middle.

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


def _torus_time(shape: Sequence[int]) -> Fraction:
    """Distances along a ring of the slowest dimension over its arcs, of which a ring of two has one per node."""
    n = prod(shape)
    return max(Fraction(n // k * (k * k // 4), 2 if k > 2 else 1) for k in shape)


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

    :math:`T = \max_j (N / s_j) \lfloor s_j^2 / 4 \rfloor / a_j`, with :math:`a_j = 2` arcs of a node along dimension
    :math:`j`, or 1 if :math:`s_j = 2`. With length 1 on the arcs of dimension :math:`j` and 0 on all others, distances
    are those of the ring; routing one dimension after the other, both ways round where they are equally long, loads all
    arcs of a dimension equally.

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


def _wraps(shape: Dimensions, twist: Dimensions | None) -> I64:
    """Shift along dimension j where dimension i wraps around, ``(k, k)``, 0 unless i < j."""
    k = len(shape)
    shift, above = np.zeros((k, k), dtype=np.int64), np.triu_indices(k, 1)
    by_first = k > 1 and shape[0] < shape[1] and len(set(shape[1:])) == 1
    few = shift[0, 1:] if by_first else shift[:-1, -1]  # views
    if twist is None:
        if len(set(shape)) != 2 or max(shape) != 2 * min(shape) or list(shape) != sorted(shape):
            refuse("twisted-torus", f"{shape} has no usual twist, as kxkx2k and kx2kx2k have; write twist=SHIFTS")
        few[:] = min(shape)
    elif k > 1 and len(twist) == k - 1:
        few[:] = twist
    elif k > 1 and len(twist) == above[0].size:
        shift[above] = twist
    else:
        counts = " or ".join(map(str, sorted({k - 1, above[0].size}))) if k > 1 else "none, or use two sizes"
        refuse("twisted-torus", f"twist={twist} does not fit {k} dimension{'s' * (k > 1)}; number of shifts: {counts}")
    i, j = np.nonzero(shift >= np.array(shape))
    if i.size:
        size = shape[j[0]]
        msg = f"the shift {shift[i[0], j[0]]} along a dimension of size {size} must lie in 0..{size - 1}"
        refuse("twisted-torus", f"{msg}; list short dimensions first, as in 4x4x8")
    return shift


def _points(shape: Dimensions) -> I64:
    """Coordinates of all nodes of a grid, ``(n, k)``."""
    return np.stack(np.unravel_index(np.arange(prod(shape)), shape), axis=-1)


def _wrapped(points: I64, shape: Dimensions, shift: I64) -> I64:
    """Node at every point ``(..., k)`` of the whole lattice, by wrapping around one dimension after the other."""
    points = points.copy()
    for i, size in enumerate(shape):
        turns = points[..., i] // size
        points[..., i] -= turns * size
        points += turns[..., None] * shift[i]
    return np.asarray(np.ravel_multi_index(tuple(np.moveaxis(points, -1, 0)), shape), dtype=np.int64)


def _lattice_symmetries(shape: Dimensions, shift: I64) -> Iterator[I64]:
    """Permutations of the axes with signs, ``(k, k)``, under which the wraps are the same; of up to 4 axes."""
    k = len(shape)
    wraps = np.diag(shape) - shift
    for order in itertools.permutations(range(k)) if k <= 4 else ():
        for signs in itertools.product((1, -1), repeat=k):
            turned = np.eye(k, dtype=np.int64)[list(order)] * np.array(signs)
            if not _wrapped(wraps @ turned, shape, shift).any():
                yield turned


def _twisted_automorphisms(shape: Dimensions, twist: Dimensions | None) -> Iterator[I64]:
    """Shifts along every dimension, and the symmetries of the axes that the twist leaves."""
    points, shift = _points(shape), _wraps(shape, twist)
    for step in np.eye(len(shape), dtype=np.int64):
        yield _wrapped(points + step, shape, shift)
    for turned in _lattice_symmetries(shape, shift):
        yield _wrapped(points @ turned, shape, shift)


def _twisted_time(shape: Dimensions, twist: Dimensions | None) -> Fraction | None:
    """That of the torus without a twist; where symmetry makes all arcs alike, distances from a node over its degree."""
    from scipy.sparse.csgraph import dijkstra

    shift = _wraps(shape, twist)
    if not shift.any():
        return _torus_time(shape)
    images = np.array([np.abs(turned[0]) for turned in _lattice_symmetries(shape, shift)])
    if not images.size or not images.any(axis=0).all():  # the first axis is not mapped to all others
        return None
    topology = twisted_torus(shape, twist)
    hops = dijkstra(topology.length_matrix(np.ones(topology.arcs)), indices=0, unweighted=True)
    return Fraction(int(hops.sum()), int(topology.out_degree[0]))


@family(
    "twisted-torus",
    example="twisted-torus:4x4x8,twist=4x4",
    source="Camarero, Martinez & Beivide, IEEE TPDS 26(2), 2015 (lattice graphs); Jouppi et al., ISCA 2023 (TPU v4)",
    automorphisms=_twisted_automorphisms,
    closed_form=_twisted_time,
)
def twisted_torus(shape: Dimensions, twist: Dimensions | None = None) -> Topology:
    r"""Torus whose wrapped links are shifted along other dimensions.

    A node has links to its neighbours at :math:`\pm 1` in every dimension, as in a torus. But a link that wraps around
    dimension :math:`i`, from :math:`s_i - 1` to 0, is shifted by :math:`t_{ij}` along every later dimension :math:`j`.
    So the nodes are the points of :math:`Z^k` modulo the rows of :math:`\mathrm{diag}(s) - t`, the Cayley graph of an
    abelian group; every lattice of full rank has such a form.

    ``twist`` lists the shifts. Of two dimensions that is :math:`t_{12}`: ``twisted-torus:4x8,twist=4``. Of :math:`k`
    dimensions it is all :math:`t_{ij}` with :math:`i < j` by rows: ``4x4x8,twist=0x3x4`` has :math:`t_{12} = 0`,
    :math:`t_{13} = 3`, :math:`t_{23} = 4`. Or it is :math:`k - 1` of them, the others being 0: if the first size is
    smaller than all others, which are equal, those of the first dimension, as in ``4x8x8,twist=4x4``; otherwise those
    along the last dimension, as in ``4x4x8,twist=3x4``.

    Without ``twist`` it is that of TPU v4 slices: in ``k x k x 2k``, ``k x 2k x 2k`` and their like every shift of the
    last item is :math:`k`. Links that coincide, as in a dimension of size 2 without a shift, count once; loops are
    dropped. Labels as in a mesh.

    Where the symmetries of the lattice map every axis to every other, all arcs are alike and T is the sum of distances
    from a node over its degree: 220/3 for ``4x4x8`` and 184 for ``4x8x8``, whose tori take 128 and 256.

    Parameters
    ----------
    shape
        Sizes :math:`s_j \ge 1`, such as ``4x4x8``.
    twist
        Shifts :math:`0 \le t_{ij} < s_j`, such as ``4x4``.

    Raises
    ------
    BadInput
        If a size is 0, the torus has fewer than two nodes or too many, or the shifts do not fit.
    """
    n = _nodes(shape, "twisted-torus")
    check_size(n, 2 * n * len(shape), "twisted-torus")
    shift, points = _wraps(shape, twist), _points(shape)
    ends = np.array(
        [[np.arange(n), _wrapped(points + step, shape, shift)] for step in np.eye(len(shape), dtype=np.int64)]
    )
    low, high = ends.min(axis=1).ravel(), ends.max(axis=1).ravel()
    u, v = np.divmod(np.unique((low * n + high)[low != high]), n)
    return Topology(n, *both_ways(u, v), spec="twisted-torus", labels=_places(shape))


def _wafer_automorphisms(shape: Sequence[int], wafers: int = 1, **_: object) -> Iterator[I64]:
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


def _links(dimension: int, name: str) -> tuple[I64, I64]:
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


def _folded_automorphisms(dimension: int) -> Iterator[I64]:
    """Those of the hypercube, and the linear map that exchanges bit 0 and the complement of all bits."""
    yield from _grid_automorphisms((2,) * dimension, periodic=True)
    nodes = np.arange(2**dimension)
    yield nodes ^ (nodes & 1) * (2**dimension - 2)


@family(
    "folded-hypercube",
    example="folded-hypercube:4",
    source="El-Amawy & Latifi, IEEE Trans. Parallel and Distributed Systems 2(1), 1991",
    automorphisms=_folded_automorphisms,
    closed_form=lambda dimension: Fraction(
        sum(comb(dimension, w) * min(w, dimension + 1 - w) for w in range(dimension + 1)), dimension + 1
    ),
)
def folded_hypercube(dimension: int) -> Topology:
    r"""Hypercube with additional links between complementary nodes.

    The links of a hypercube, and :math:`u \leftrightarrow u \oplus (2^D - 1)`. Order :math:`2^D`, degree :math:`D + 1`,
    diameter :math:`\lceil D/2 \rceil`: a node that differs in :math:`w` bits is :math:`\min(w, D + 1 - w)` links away.
    All arcs are alike, so T is the sum of these over all nodes, divided by :math:`D + 1`.

    Parameters
    ----------
    dimension
        :math:`D \ge 2` (for 1 the additional link is the only one of the hypercube).

    Raises
    ------
    BadInput
        If the dimension is out of range.
    """
    whole_number(dimension, "folded-hypercube: dimension", 2)
    u, v = _links(dimension, "folded-hypercube")
    n = 2**dimension
    check_size(n, n * (dimension + 1), "folded-hypercube")
    half = np.arange(n // 2)
    return Topology(n, *both_ways(np.append(u, half), np.append(v, n - 1 - half)), spec="folded-hypercube")

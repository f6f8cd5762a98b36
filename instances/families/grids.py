"""Meshes, tori and LIGHTPATH wafers in row-major numbering; hypercubes, plain and twisted."""

from __future__ import annotations

import itertools
from fractions import Fraction
from functools import partial
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import BadInput
from opticoll.instances.digraph import MAX_VERTICES, Topology, both_ways, check_size
from opticoll.instances.photonic import LightpathMesh
from opticoll.instances.spec import Dimensions, check_positive, family

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray


def _grid(shape: Dimensions, name: str, *, periodic: bool) -> Topology:
    """Link every node to its neighbours along each dimension."""
    check_positive(min(shape), "each size", name)
    n = prod(shape)
    check_positive(n, "the product of the sizes", name, least=2)
    links = sum(n if periodic and size > 2 else n // size * (size - 1) for size in shape)
    check_size(n, 2 * links, name)
    if len(shape) > 32:
        msg = f"{name}: {len(shape)} dimensions exceed the limit of 32; leave out sizes of 1"
        raise BadInput(msg)
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

    Nodes are the places :math:`(x_1, …, x_k)` with :math:`0 \le x_j < s_j`, numbered with the last
    coordinate running fastest and labelled ``x1.x2.…``. Order :math:`\prod_j s_j`, diameter
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

    A mesh with the further links :math:`s_j - 1 \leftrightarrow 0`. In a dimension of size 2 the wrapped
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


@family(
    "lightpath",
    example="lightpath:2x4,lasers=16,waveguides=1",
    source="LuMorph, section 2 (LIGHTPATH tiles with 16 lasers)",
    automorphisms=lambda shape, **_: _grid_automorphisms(shape, periodic=False),
)
def lightpath(shape: Dimensions, lasers: int = 16, waveguides: int = 1) -> LightpathMesh:
    """LIGHTPATH wafer: a mesh of server tiles with lasers, joined by bundles of waveguides.

    Parameters
    ----------
    shape
        Rows and columns, such as ``2x4``.
    lasers
        Wavelengths that a tile can send, and can receive, at one time; at least 1.
    waveguides
        Waveguides of every arc, at least 1.

    Raises
    ------
    BadInput
        If the shape is not two sizes, or a number is out of range.
    """
    if len(shape) != 2:
        msg = f"lightpath: {shape} has {len(shape)} sizes; write rows and columns, such as 2x4"
        raise BadInput(msg)
    return LightpathMesh(_grid(shape, "lightpath", periodic=False), shape, lasers, waveguides)


def _links(dimension: int, name: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    if dimension >= MAX_VERTICES.bit_length():  # before 2**dimension is computed
        msg = f"{name}: 2**{dimension} vertices exceed the limit of {MAX_VERTICES}; choose a smaller dimension"
        raise BadInput(msg)
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
    check_positive(dimension, "dimension", "hypercube")
    u, v = _links(dimension, "hypercube")
    return Topology(2**dimension, *both_ways(u, v), spec="hypercube")


@family(
    "twisted-hypercube",
    example="twisted-hypercube:3",
    source="Esfahanian, Ni & Sagan, IEEE Trans. Computers 40(1), 1991 (twisted n-cube)",
)
def twisted_hypercube(dimension: int) -> Topology:
    r"""Twisted n-cube: a hypercube with one pair of parallel links of one 4-cycle crossed.

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
    check_positive(dimension, "dimension", "twisted-hypercube", least=3)
    u, v = _links(dimension, "twisted-hypercube")
    v[:2] = 3, 1  # the first two links were {0, 1} and {2, 3}
    return Topology(2**dimension, *both_ways(u, v), spec="twisted-hypercube")

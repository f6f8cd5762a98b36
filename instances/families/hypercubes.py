"""Hypercubes, straight and twisted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from instances.errors import BadInput
from instances.links import both_ways
from instances.spec import check_positive, family
from instances.topology import MAX_VERTICES, Topology, check_size

if TYPE_CHECKING:
    from numpy.typing import NDArray


def _links(dimension: int, what: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    if dimension >= MAX_VERTICES.bit_length():  # before 2**dimension is computed
        msg = f"{what}: 2**{dimension} vertices are more than opticoll takes ({MAX_VERTICES}); ask for fewer"
        raise BadInput(msg)
    n = 2**dimension
    check_size(n, n * dimension, what)
    nodes = np.arange(n)
    low = [nodes[nodes & bit == 0] for bit in (1 << np.arange(dimension))]
    return np.concatenate(low), np.concatenate([u | (1 << k) for k, u in enumerate(low)])


@family("hypercube", example="hypercube:3", source="Harary, Hayes & Wu, Comput. Math. Appl. 15(4), 1988")
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

    In the 4-cycle 0, 1, 3, 2 of the hypercube the links :math:`\{0,1\}` and :math:`\{2,3\}` give way to
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

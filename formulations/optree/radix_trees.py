"""All-gather trees by their radices: steps, and walks over products.

Integer radices. A tree on n nodes is given by its radices m_1 .. m_k >= 2. After j stages a node has at most
P_j = m_1 ... m_j chunks and its group has at most s_j = ceil(n / P_j) nodes; P_k >= n. The stage from P = P_{j-1} with
radix m = m_j takes, by ``count``,

    lemma     ceil(s_j L(m) P / w), L(m) Lemma 1's wavelengths as restored, with every ceiling: the paper's count.
              Stage 1 uses the whole ring, L(m) = ceil(m^2/8), the others segments, L(m) = floor(m^2/4)
    exact     the same with the proven minimum: on the ring all s_1 subsets together take
              ceil(s_1 floor(m^2/4) / 2), because mirrored assignments share their odd wavelength
    printed   Theorem 1's term, rounded up: ceil(n m / (8w)) on the ring, ceil(n m / (4w)) on a segment

steps: s_j subsets in a group (groups use disjoint segments and share wavelengths), P chunks per node, one chunk per
wavelength and step. On ``wdm-line`` stage 1 is on a segment too. The cost depends only on (P, m), because
ceil(ceil(n/a)/b) = ceil(n/(ab)). So trees are walks 1 -> P_1 -> P_2 -> ... -> n over products, where n stands for all
products of at least n, and the best tree is a shortest walk. The last radix is at most ceil(n/P).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import BadInput, refuse
from opticoll.formulations.optree.step_counts import refuse_sizes
from opticoll.formulations.rounds.segments import offsets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opticoll.instances.topology import I64


#: Maximum number of nodes for the search of trees: the graph of products has about n ln n arcs.
MOST_NODES = 200_000
#: Steps to a product that is not reached.
NEVER = np.iinfo(np.int64).max // 2


@dataclass(frozen=True)
class Fabric:
    """Nodes, wavelengths of every fibre, ring or line, and the ``count`` of a stage's steps."""

    n: int
    wavelengths: int
    ring: bool = True
    count: str = "lemma"

    def __post_init__(self) -> None:
        refuse_sizes(self.n, self.wavelengths)

    @property
    def deepest(self) -> int:
        """Largest depth, with all radices 2."""
        return (self.n - 1).bit_length()

    def demand(self, product: int | I64, radix: int | I64) -> I64:
        """Wavelengths of the stage from ``product`` with ``radix``, elementwise (``printed``: 8 times as many)."""
        P, m = np.asarray(product, dtype=np.int64), np.asarray(radix, dtype=np.int64)
        first = (P == 1) & self.ring
        if self.count == "printed":
            return np.where(first, self.n * m, 2 * self.n * m)
        subsets = -(-self.n // (P * m))
        crossing = m * m // 4
        around = subsets * -(-m * m // 8) if self.count == "lemma" else -(-subsets * crossing // 2)
        return np.where(first, around, subsets * crossing * P)

    def steps(self, product: int | I64, radix: int | I64) -> I64:
        """Steps of the stage from ``product`` with ``radix``, elementwise."""
        each = self.wavelengths * (8 if self.count == "printed" else 1)
        return -(-self.demand(product, radix) // each)

    def stages(self, radices: Sequence[int]) -> list[int]:
        """Steps of every stage of a tree.

        Raises
        ------
        BadInput
            If the radices are not integers of at least 2 whose product reaches n with the last one, not before.
        """
        check_radices(self.n, radices)
        products = np.concatenate([[1], np.cumprod(np.asarray(radices[:-1], dtype=np.int64))]).astype(np.int64)
        values: list[int] = self.steps(products, np.asarray(radices, dtype=np.int64)).tolist()
        return values


def check_radices(n: int, radices: Sequence[int]) -> None:
    """Check that the radices define a tree on n nodes.

    Raises
    ------
    BadInput
        As :meth:`Fabric.stages`.
    """
    product = 1
    for number, radix in enumerate(radices):
        if radix != int(radix) or radix < 2:
            refuse("optree", f"radix {radix} of stage {number + 1} must be an integer of at least 2")
        if product >= n:
            refuse("optree", f"stages 1 to {number} of {list(radices)} already reach all {n} nodes; remove the others")
        product *= int(radix)
    if product < n:
        msg = f"optree: a tree of radices {list(radices)} has {product} leaves for {n} nodes; raise one or add a stage"
        raise BadInput(msg)


@dataclass(frozen=True, eq=False)
class RadixGraph:
    """Graph of products: arc e goes from ``product[e]`` with ``radix[e]`` to ``reached[e]`` at ``cost[e]`` steps.

    Arcs are sorted by product, then radix; nodes are 1 .. n. All arrays are ``(E,)``.
    """

    n: int
    product: I64
    radix: I64
    reached: I64
    cost: I64

    @property
    def arcs(self) -> int:
        """Number of arcs E."""
        return int(self.product.size)

    def layers(self, depth: int) -> list[I64]:
        """Minimum steps to every product by exactly j stages, j = 0 .. depth; ``(n + 1,)`` each, huge if none."""
        results = [np.full(self.n + 1, NEVER)]
        results[0][1] = 0
        for _ in range(depth):
            reach = np.full(self.n + 1, NEVER)
            np.minimum.at(reach, self.reached, results[-1][self.product] + self.cost)
            results.append(reach)
        return results


def walks(fabric: Fabric) -> RadixGraph:
    """The graph of products of a fabric of at most :data:`MOST_NODES` nodes."""
    n = fabric.n
    products = np.arange(1, n)
    choices = -(-n // products) - 1  # radices 2 .. ceil(n/P)
    start = offsets(choices)
    product = np.repeat(products, choices)
    radix = np.arange(start[-1]) - np.repeat(start[:-1], choices) + 2
    reached = np.minimum(product * radix, n)
    return RadixGraph(n, product, radix, reached, fabric.steps(product, radix))

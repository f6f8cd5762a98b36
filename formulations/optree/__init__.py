"""All-gather by m-ary trees on optical lines and rings (paper: OpTree).

Steps of OpTree's all-gather trees: closed forms for real radices, and the best tree with integer radices.

Source  OpTree, section III-D.1, Theorems 1-3 with proofs, Table I, (1)-(3)

Real radices. An m-ary tree of depth k on n nodes with w wavelengths, m = n^(1/k), takes S steps and time T:

    S(k)  = n m / (8w) + (k-1) n m / (4w) = n m (2k-1) / (8w)       (Theorem 1)
    k*    = round((ln n + sqrt(ln^2 n - 2 ln n)) / 2)               (Theorem 2)
    T     = (d/B + a) S                                             (Theorem 3)

d data of a node [bytes], B bandwidth of a wavelength [bytes/s], a delay of a step [s] (reconfiguration and conversion).
In packets of 128 bytes and flits of 32 bytes (section IV-A), with q = ceil(d/128) packets and a clock of f cycles/s for
the O/E/O conversion of one cycle per flit, which the paper does not state (:class:`StepCost`):

    T / S = 128 q / B + r + h / f,    h = 4 (pipelined: the last packet is converted alone), or 4 q (serial)

T / S depends only on d, so ratios of times are ratios of steps for any clock.
dS/dk = 0 is 2k^2 - (2k-1) ln n = 0; its larger root is the minimum. It is real for ln n >= 2, n >= 8.

Table I, steps for n = 1024, w = 64 in parentheses: ring n - 1 (1023), neighbour exchange n/2 (512), WRHT with
p = 2w + 1: p ceil(log_p n) + 1 (259), one stage ceil(n^2/8)/w (2048; the table prints 128), OpTree min_k S(k) (70). The
available scan lacks the formulas; WRHT's is reconstructed from 259 and the text's ranking at w = 96 and 128.

Integer radices. A tree on n nodes is given by its radices m_1 .. m_k >= 2. After j stages a node has at most
P_j = m_1 ... m_j chunks and its group has at most s_j = ceil(n / P_j) nodes; P_k >= n. The stage from P = P_{j-1} with
radix m = m_j takes, by ``count``,

    lemma     ceil(s_j L(m) P / w), L(m) Lemma 1's wavelengths as printed, with every ceiling: the paper's count.
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

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import BadInput
from opticoll.formulations.rounds import lemma_1

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opticoll.instances.digraph import I64


PAPER = "OpTree: an efficient algorithm for all-gather operation in optical interconnect systems"


#: Bandwidth of a wavelength [bytes/s] and reconfiguration delay [s] of the paper's simulations. The delay of O/E/O
#: conversion is missing in (3): it is one cycle per flit, of a clock that the paper does not state.
BANDWIDTH, RECONFIGURATION = 40e9 / 8, 25e-6
#: Packet and flit [bytes].
PACKET, FLIT = 128, 32
#: Whether the conversion of flits overlaps with the transmission of the following packets.
CONVERSIONS = ("pipelined", "serial")
COUNTS = ("lemma", "exact", "printed")
#: Maximum number of nodes for the search of trees: the graph of products has about n ln n arcs.
MOST_NODES = 200_000
_NEVER = np.iinfo(np.int64).max // 2


def _check(n: int, wavelengths: int) -> None:
    if n < 2 or wavelengths < 1:
        msg = f"optree: needs at least 2 nodes and 1 wavelength, not n={n}, wavelengths={wavelengths}"
        raise BadInput(msg)


def leaves_bound(radix: int, depth: int) -> int:
    """Maximum number of leaves of an m-ary tree of a given depth (Lemma 2): m^k."""
    return int(radix) ** int(depth)


def theorem_1(n: int, wavelengths: int, depth: float) -> float:
    """Steps S(k) of the m-ary tree with m = n^(1/k) (a real number), Theorem 1.

    Raises
    ------
    BadInput
        For fewer than 2 nodes, no wavelength, or a depth below 1.
    """
    _check(n, wavelengths)
    if depth < 1:
        msg = f"optree: the depth of a tree must be at least 1, not {depth}"
        raise BadInput(msg)
    return float(n * n ** (1.0 / depth) * (2 * depth - 1) / (8 * wavelengths))


def theorem_2_root(n: int) -> float:
    """Real k that minimizes Theorem 1's S(k), (2); 1 for n < 8, where S has no interior minimum."""
    log = math.log(n)
    if log < 2:
        return 1.0
    return (log + math.sqrt(log * log - 2 * log)) / 2


def theorem_2(n: int) -> int:
    """Optimal depth by Theorem 2: the root rounded to the nearest integer."""
    return max(1, round(theorem_2_root(n)))


def best_depth(n: int) -> int:
    """Integer depth with minimum S(k), by enumeration up to the root, beyond which S increases.

    The smallest if several are equal; the number of wavelengths cancels.
    """
    depths = range(1, max(2, math.ceil(math.log2(n)) + 2))
    return min(depths, key=lambda k: theorem_1(n, 1, k))


def uniform_radix(n: int, depth: int) -> int:
    """Smallest integer m with m^depth >= n: the m-ary tree of that depth."""
    m = max(2, round(n ** (1.0 / depth)) - 1)
    while m**depth < n:
        m += 1
    return m


def optree_steps(n: int, wavelengths: int) -> float:
    """Steps of OpTree by Theorems 1 and 2, unrounded."""
    return theorem_1(n, wavelengths, theorem_2(n))


def ring_steps(n: int, wavelengths: int = 1) -> int:
    """Ring all-gather: every node forwards the chunk it received last; n - 1 steps on one wavelength."""
    _check(n, wavelengths)
    return n - 1


def neighbour_exchange_steps(n: int, wavelengths: int = 1) -> int:
    """Neighbour exchange: pairs of neighbours swap, with alternating neighbours; n/2 steps for even n.

    Raises
    ------
    BadInput
        For odd n, for which nodes cannot be paired.
    """
    _check(n, wavelengths)
    if n % 2:
        msg = f"neighbour exchange: nodes work in pairs, so n must be even, not {n}"
        raise BadInput(msg)
    return n // 2


def wrht_steps(n: int, wavelengths: int) -> int:
    """WRHT adapted to all-gather, p = 2w + 1: p ceil(log_p n) + 1 (reconstructed, see the module docstring)."""
    _check(n, wavelengths)
    p, levels, reach = 2 * wavelengths + 1, 0, 1
    while reach < n:
        reach, levels = reach * p, levels + 1
    return p * levels + 1


def one_stage_steps(n: int, wavelengths: int) -> int:
    """All-to-all in one stage on the ring: Lemma 1's wavelengths over w, rounded up."""
    _check(n, wavelengths)
    return -(-lemma_1(n, ring=True) // wavelengths)


def gather_bound(n: int, wavelengths: int, *, ring: bool = True) -> int:
    """Lower bound on the rounds of any all-gather by one-chunk circuits: every node receives n - 1 chunks.

    Two fibres enter a node of a ring, one enters an end of a line; a fibre carries at most w chunks in a round.
    """
    _check(n, wavelengths)
    return -(-(n - 1) // (wavelengths * (2 if ring and n > 2 else 1)))


@dataclass(frozen=True)
class AllGatherScheme:
    """A row of Table I: its steps in closed form and the number printed for n = 1024, w = 64."""

    name: str
    steps: Callable[[int, int], float]
    printed: int


#: Rows of Table I, in order.
TABLE_I = (
    AllGatherScheme("Ring", ring_steps, 1023),
    AllGatherScheme("NE", neighbour_exchange_steps, 512),
    AllGatherScheme("WRHT", wrht_steps, 259),
    AllGatherScheme("One-stage", one_stage_steps, 128),
    AllGatherScheme("OpTree", optree_steps, 70),
)


def step_time(data: float, *, bandwidth: float = BANDWIDTH, delay: float = RECONFIGURATION) -> float:
    """Time of one step [s]: ``d/B + a``, d bytes on every wavelength."""
    if data < 0 or bandwidth <= 0 or delay < 0:
        msg = f"optree: data {data} and delay {delay} must be nonnegative, bandwidth {bandwidth} must be positive"
        raise BadInput(msg)
    return data / bandwidth + delay


def gather_time(steps: float, data: float, *, bandwidth: float = BANDWIDTH, delay: float = RECONFIGURATION) -> float:
    """Time of an all-gather of ``steps`` steps [s], (3)."""
    return steps * step_time(data, bandwidth=bandwidth, delay=delay)


@dataclass(frozen=True)
class StepCost:
    """Time of a step in packets and flits (see the module docstring).

    Parameters
    ----------
    clock
        Cycles per second of the O/E/O conversion [Hz]; infinite for none.
    conversion
        ``pipelined`` or ``serial``.
    bandwidth, delay
        Bandwidth of a wavelength [bytes/s]; reconfiguration delay of a step [s].

    Raises
    ------
    BadInput
        For an unknown conversion, or a clock or bandwidth that is not positive.
    """

    clock: float = math.inf
    conversion: str = "pipelined"
    bandwidth: float = BANDWIDTH
    delay: float = RECONFIGURATION

    def __post_init__(self) -> None:
        if self.conversion not in CONVERSIONS:
            msg = f"optree: unknown conversion {self.conversion!r}; use one of {', '.join(CONVERSIONS)}"
            raise BadInput(msg)
        if not (self.clock > 0 and self.bandwidth > 0 and self.delay >= 0):
            msg = (
                f"optree: clock {self.clock} and bandwidth {self.bandwidth} must be positive, "
                f"delay {self.delay} must not be negative"
            )
            raise BadInput(msg)

    @staticmethod
    def packets(data: float) -> int:
        """Number of packets for ``data`` bytes; the last one is padded."""
        return max(math.ceil(data / PACKET), 0)

    def step(self, data: float) -> float:
        """Time of a step that sends ``data`` bytes on every wavelength [s]."""
        packets = self.packets(data)
        converted = packets if self.conversion == "serial" else min(packets, 1)
        return PACKET * packets / self.bandwidth + self.delay + converted * (PACKET // FLIT) / self.clock

    def gather(self, steps: float, data: float) -> float:
        """Time of ``steps`` steps [s]."""
        return steps * self.step(data)


@dataclass(frozen=True)
class Fabric:
    """Nodes, wavelengths of every fibre, ring or line, and the ``count`` of a stage's steps."""

    n: int
    wavelengths: int
    ring: bool = True
    count: str = "lemma"

    def __post_init__(self) -> None:
        _check(self.n, self.wavelengths)
        if self.count not in COUNTS:
            msg = f"optree: unknown count {self.count!r}; use one of {', '.join(COUNTS)}"
            raise BadInput(msg)

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
            msg = f"optree: radix {radix} of stage {number + 1} must be an integer of at least 2"
            raise BadInput(msg)
        if product >= n:
            msg = f"optree: stages 1 to {number} of {list(radices)} already reach all {n} nodes; remove the others"
            raise BadInput(msg)
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

    @cached_property
    def _by_head(self) -> tuple[I64, I64, I64]:
        order = np.argsort(self.reached, kind="stable")
        heads, first = np.unique(self.reached[order], return_index=True)
        return order, heads, first

    def layers(self, depth: int) -> list[I64]:
        """Minimum steps to every product by exactly j stages, j = 0 .. depth; ``(n + 1,)`` each, huge if none."""
        order, heads, first = self._by_head
        reach = np.full(self.n + 1, _NEVER)
        reach[1] = 0
        results = [reach]
        for _ in range(depth):
            arrived = np.minimum(reach[self.product] + self.cost, _NEVER)[order]
            reach = np.full(self.n + 1, _NEVER)
            reach[heads] = np.minimum.reduceat(arrived, first)
            results.append(reach)
        return results

    def radices(self, layers: list[I64], depth: int) -> list[int]:
        """Trace the radices of a best tree of exactly that depth back through the layers (smallest radices last)."""
        order, heads, first = self._by_head
        results: list[int] = []
        at = self.n
        for j in range(depth, 0, -1):
            place = int(np.searchsorted(heads, at))
            end = int(first[place + 1]) if place + 1 < first.size else order.size
            selected = order[int(first[place]) : end]
            fits = layers[j - 1][self.product[selected]] + self.cost[selected] == layers[j][at]
            arc = int(selected[np.flatnonzero(fits)[0]])
            results.append(int(self.radix[arc]))
            at = int(self.product[arc])
        return results[::-1]


def walks(fabric: Fabric) -> RadixGraph:
    """Build the graph of products of a fabric.

    Raises
    ------
    BadInput
        For more than :data:`MOST_NODES` nodes.
    """
    n = fabric.n
    if n > MOST_NODES:
        msg = f"optree: trees are searched on at most {MOST_NODES} nodes, not {n}; use fewer"
        raise BadInput(msg)
    products = np.arange(1, n)
    choices = -(-n // products) - 1  # radices 2 .. ceil(n/P)
    start = np.concatenate([[0], np.cumsum(choices)])
    product = np.repeat(products, choices)
    radix = np.arange(start[-1]) - np.repeat(start[:-1], choices) + 2
    reached = np.minimum(product * radix, n)
    return RadixGraph(n, product, radix, reached, fabric.steps(product, radix))


@dataclass(frozen=True)
class RadixTree:
    """A tree and its steps."""

    radices: tuple[int, ...]
    steps: int

    @property
    def depth(self) -> int:
        """Stages."""
        return len(self.radices)


def best_by_depth(fabric: Fabric, graph: RadixGraph | None = None) -> dict[int, RadixTree]:
    """Find a best tree of every depth 1 .. ceil(log2 n)."""
    result = walks(fabric) if graph is None else graph
    layers = result.layers(fabric.deepest)
    return {
        depth: RadixTree(tuple(result.radices(layers, depth)), int(layers[depth][fabric.n]))
        for depth in range(1, fabric.deepest + 1)
        if layers[depth][fabric.n] < _NEVER
    }


def best_tree(fabric: Fabric, depth: int = 0) -> RadixTree:
    """Find a best tree of the given depth, or (0) of all depths; the shallowest if several are equal.

    Raises
    ------
    BadInput
        If no tree of the fabric has that depth.
    """
    trees = best_by_depth(fabric)
    if depth == 0:
        return min(trees.values(), key=lambda tree: (tree.steps, tree.depth))
    if depth not in trees:
        msg = f"optree: no tree on {fabric.n} nodes has depth {depth}; use 1 to {fabric.deepest}"
        raise BadInput(msg)
    return trees[depth]


def uniform_tree(fabric: Fabric, depth: int) -> RadixTree:
    """Build the m-ary tree of a depth with the smallest m for n leaves, without superfluous stages."""
    m, product, radices = uniform_radix(fabric.n, depth), 1, []
    while product < fabric.n:
        radices.append(min(m, -(-fabric.n // product)))
        product *= radices[-1]
    return RadixTree(tuple(radices), sum(fabric.stages(radices)))

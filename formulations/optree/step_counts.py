"""OpTree's theorems and the numbers of steps of all-gather schemes.

Source  OpTree, section III-D.1, Theorems 1-3 with proofs, Table I, (1)-(3)

Real radices. An m-ary tree of depth k on n nodes with w wavelengths, m = n^(1/k), takes S steps and time T:

    S(k)  = n m / (8w) + (k-1) n m / (4w) = n m (2k-1) / (8w)       (Theorem 1)
    k*    = round((ln n + sqrt(ln^2 n - 2 ln n)) / 2)               (Theorem 2)
    T     = (d/B + a) S                                             (Theorem 3)

d data of a node [bytes], B bandwidth of a wavelength [bytes/s], a delay of a step [s] (reconfiguration and conversion).

dS/dk = 0 is 2k^2 - (2k-1) ln n = 0; its larger root is the minimum. It is real for ln n >= 2, n >= 8.

Table I, steps for n = 1024, w = 64 in parentheses: ring n - 1 (1023), neighbour exchange n/2 (512), WRHT with
p = 2w + 1: p ceil(log_p n) + 1 (259), one stage ceil(n^2/8)/w (2048; the table prints 128), OpTree min_k S(k) (70). The
available scan lacks the formulas; WRHT's is reconstructed from 259 and the text's ranking at w = 96 and 128.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opticoll.errors import BadInput
from opticoll.formulations.rounds.wavelengths import lemma_1

if TYPE_CHECKING:
    from collections.abc import Callable

COUNTS = ("lemma", "exact", "printed")


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

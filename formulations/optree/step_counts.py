"""OpTree's theorems on the steps of trees.

Source  OpTree, section III-D.1, Theorems 1-3 with proofs, (1)-(3)

Real radices. An m-ary tree of depth k on n nodes with w wavelengths, m = n^(1/k), takes S steps and time T:

    S(k)  = n m / (8w) + (k-1) n m / (4w) = n m (2k-1) / (8w)       (Theorem 1)
    k*    = round((ln n + sqrt(ln^2 n - 2 ln n)) / 2)               (Theorem 2)
    T     = (d/B + a) S                                             (Theorem 3)

d data of a node [bytes], B bandwidth of a wavelength [bytes/s], a delay of a step [s] (reconfiguration and conversion).

dS/dk = 0 is 2k^2 - (2k-1) ln n = 0; its larger root is the minimum. It is real for ln n >= 2, n >= 8.
"""

from __future__ import annotations

import math

from opticoll.errors import refuse

COUNTS = ("lemma", "exact", "printed")


def refuse_sizes(n: int, wavelengths: int) -> None:
    """Refuse fewer than 2 nodes, and no wavelength."""
    if n < 2 or wavelengths < 1:
        refuse("optree", f"needs at least 2 nodes and 1 wavelength, not n={n}, wavelengths={wavelengths}")


def theorem_1(n: int, wavelengths: int, depth: float) -> float:
    """Steps S(k) of the m-ary tree of depth k >= 1 with m = n^(1/k) (a real number), Theorem 1."""
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


def optree_steps(n: int, wavelengths: int) -> float:
    """Steps of OpTree by Theorems 1 and 2, unrounded."""
    return theorem_1(n, wavelengths, theorem_2(n))


def gather_bound(n: int, wavelengths: int, *, ring: bool = True) -> int:
    """Lower bound on the rounds of any all-gather by one-chunk circuits: every node receives n - 1 chunks.

    Two fibres enter a node of a ring, one enters an end of a line; a fibre carries at most w chunks in a round.
    """
    return -(-(n - 1) // (wavelengths * (2 if ring and n > 2 else 1)))

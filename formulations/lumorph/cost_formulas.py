"""Costs of an all-reduce and of transfers between layers according to LuMorph's authors, by variant.

Source  LuMorph, sections 4 and 6.1, appendix B, figures 7, 8a, 8b; the published simulator (commit 53cbbf7), as
        described by its readers

N GPUs, buffer B: T = rounds (alpha + r) + volume B / rate, see :func:`formula`.

    printed  sections 4 and 6.1, appendix B: alpha 0.7 us, r 3.7 us, 300 GB/s; the paper prints no formula for tree, D&C
    plotted  figures 7, 8a and 8b: 300 GiB/s, LUMORPH-4 with 4/3 of the volume, the tree without r and with 4 B, D&C
             with log2 N - 1 rounds of the whole buffer
    coded    the published simulator: as plotted, but LUMORPH-4 has r = 5 us, and the tree pays r; D&C is not coded
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2
from typing import TYPE_CHECKING, Literal

from opticoll.errors import refuse

if TYPE_CHECKING:
    from collections.abc import Sequence


Variant = Literal["printed", "plotted", "coded"]
RING, TREE, LUMORPH_2, LUMORPH_4, SQUARES = ("Ideal switch+Ring", "Ideal switch+Tree", "Lumorph-2", "Lumorph-4", "D&C")
#: Algorithms, named as in the figures.
ALGORITHMS = (RING, TREE, LUMORPH_2, LUMORPH_4, SQUARES)
#: Bandwidth of a GPU [bytes/us]: 300 GB/s in the text, 300 GiB/s in figures and code.
RATES = {"printed": 300e3, "plotted": 300 * 2**30 / 1e6, "coded": 300 * 2**30 / 1e6}


@dataclass(frozen=True)
class Formula:
    """Cost of an all-reduce of B bytes: rounds alpha + paid r + volume B / rate.

    Parameters
    ----------
    rounds, paid
        Number of rounds, and of those that pay the reconfiguration delay.
    volume
        Bytes that determine the time, as a multiple of the buffer.
    reconfigure_us
        Reconfiguration delay r [us].
    rate
        Bandwidth of a GPU [bytes/us].
    """

    rounds: float
    paid: float
    volume: float
    reconfigure_us: float
    rate: float

    def time(self, size: float, alpha_us: float = 0.7) -> float:
        """Time for a buffer of ``size`` bytes [us]."""
        return self.rounds * alpha_us + self.paid * self.reconfigure_us + self.volume * size / self.rate


def formula(
    algorithm: str, n: int, variant: Variant, *, reconfigure_us: float | None = None, rate: float | None = None
) -> Formula:
    """Authors' cost of an all-reduce on n GPUs (a power of two), as printed, plotted or coded.

    ``reconfigure_us`` and ``rate`` replace those of the variant (figures 8a and 8b).

    Raises
    ------
    BadInput
        For an unknown algorithm, a number of GPUs that is not a power of two, or a variant without such a formula.
    """
    if algorithm not in ALGORITHMS or n < 2 or n & (n - 1):
        refuse(f"all-reduce by {algorithm!r} on {n} GPUs", f"use one of {', '.join(ALGORITHMS)}, and a power of two")
    if (variant, algorithm) in {("printed", TREE), ("printed", SQUARES), ("coded", SQUARES)}:
        refuse(algorithm, f"there is no {variant} formula; use variant plotted")
    digits, fraction = log2(n), 2 * (n - 1) / n
    rounds, volume = {
        RING: (2.0 * (n - 1), fraction),
        TREE: (2 * digits, 4.0),
        LUMORPH_2: (2 * digits, fraction),
        LUMORPH_4: (2.0 * ceil(digits / 2), fraction if variant == "printed" else 4 / 3 * fraction),
        SQUARES: (digits - 1, digits - 1),
    }[algorithm]
    switched = algorithm == RING or (algorithm == TREE and variant != "coded")
    delay = 5.0 if (variant, algorithm) == ("coded", LUMORPH_4) else 3.7
    return Formula(
        rounds,
        0.0 if switched else rounds,
        volume,
        delay if reconfigure_us is None else reconfigure_us,
        RATES[variant] if rate is None else rate,
    )


def layer_time(sources: Sequence[int], targets: Sequence[int], size: float, wait_us: float = 0.0) -> float:
    """Time of one transfer between layers, one way, according to the authors' code [us].

    Equal pairs count once, and pairs of a GPU with itself are ignored. If every sender sends to exactly all other
    senders, there are log2(senders) rounds of ``size`` bytes at full bandwidth; else greedy rounds of an eighth of the
    bandwidth, a quarter of the largest number of peers of a GPU, senders and receivers counted together. Each round
    costs 0.7 + 3.7 us, and ``wait_us``.
    """
    send, receive = set(sources), set(targets)
    everyone, rate = send | receive, RATES["coded"]
    met = {v: (receive if v in send else frozenset()) | (send if v in receive else frozenset()) for v in everyone}
    most = max(len(others - {v}) for v, others in met.items())
    if not most:
        return 0.0
    if send == receive:
        rounds = log2(len(everyone))
    else:
        rounds, rate = ceil(most / 4), rate / 8
    return rounds * (4.4 + wait_us + size / rate)

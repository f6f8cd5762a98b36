"""Table I: numbers of steps of all-gather schemes, and the schedules of two of them; Lemma 2 and the best depth.

Source  OpTree, section III-D.1, Lemma 2, Table I; ring and neighbour exchange: Chen et al., HPC Asia 2005

Steps for n = 1024, w = 64 in parentheses: ring n - 1 (1023), neighbour exchange n/2 (512), WRHT with
p = 2w + 1: p ceil(log_p n) + 1 (259), one stage ceil(n^2/8)/w (2048; the table prints 128), OpTree min_k S(k) (70). The
available scan lacks the formulas; WRHT's is reconstructed from 259 and the text's ranking at w = 96 and 128.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import refuse
from opticoll.formulations.optree import step_counts
from opticoll.formulations.optree.step_counts import refuse_sizes
from opticoll.formulations.rounds.round_schedule import direct
from opticoll.formulations.rounds.wavelengths import lemma_1, whole_fibres

if TYPE_CHECKING:
    from collections.abc import Callable

    from opticoll.formulations.rounds.round_schedule import RoundSchedule
    from opticoll.instances.photonics import WdmFibres
    from opticoll.instances.topology import I64


def leaves_bound(radix: int, depth: int) -> int:
    """Maximum number of leaves of an m-ary tree of a given depth (Lemma 2): m^k."""
    return int(radix) ** int(depth)


def best_depth(n: int) -> int:
    """Integer depth with minimum S(k), by enumeration up to the root, beyond which S increases.

    The smallest if several are equal; the number of wavelengths cancels.
    """
    depths = range(1, max(2, math.ceil(math.log2(n)) + 2))
    return min(depths, key=lambda k: step_counts.theorem_1(n, 1, k))


def ring_steps(n: int, wavelengths: int = 1) -> int:
    """Ring all-gather: every node forwards the chunk it received last; n - 1 steps on one wavelength."""
    refuse_sizes(n, wavelengths)
    return n - 1


def neighbour_exchange_steps(n: int, wavelengths: int = 1) -> int:
    """Neighbour exchange: pairs of neighbours swap, with alternating neighbours; n/2 steps for even n.

    Raises
    ------
    BadInput
        For odd n, for which nodes cannot be paired.
    """
    refuse_sizes(n, wavelengths)
    if n % 2:
        refuse("neighbour exchange", f"nodes work in pairs, so n must be even, not {n}")
    return n // 2


def wrht_steps(n: int, wavelengths: int) -> int:
    """WRHT adapted to all-gather, p = 2w + 1: p ceil(log_p n) + 1 (reconstructed, see the module docstring)."""
    refuse_sizes(n, wavelengths)
    p, levels, reach = 2 * wavelengths + 1, 0, 1
    while reach < n:
        reach, levels = reach * p, levels + 1
    return p * levels + 1


def one_stage_steps(n: int, wavelengths: int) -> int:
    """All-to-all in one stage on the ring: Lemma 1's wavelengths over w, rounded up."""
    refuse_sizes(n, wavelengths)
    return -(-lemma_1(n, ring=True) // wavelengths)


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
    AllGatherScheme("OpTree", step_counts.optree_steps, 70),
)


def ring_schedule(fibres: WdmFibres) -> RoundSchedule:
    """Ring all-gather on wavelength 0: in round r node i sends chunk i - r to node i + 1; n - 1 rounds.

    Raises
    ------
    BadInput
        On a line.
    """
    whole_fibres(fibres, "schedule")
    if not fibres.circular:
        refuse(fibres.spec, "the ring all-gather needs a ring; use wdm-ring")
    n = fibres.n
    rounds, node = np.divmod(np.arange(n * (n - 1)), n)
    up, _ = fibres.arcs_onward()
    return direct(
        rounds, node, (node + 1) % n, (node - rounds) % n, np.zeros(node.size), np.arange(node.size + 1), up[node]
    )


def neighbour_exchange_schedule(fibres: WdmFibres) -> RoundSchedule:
    """Neighbour exchange: nodes swap their last chunks with alternating neighbours; n/2 rounds, two channels.

    Round 0 swaps one chunk inside the pairs (2i, 2i+1). Every later round swaps two chunks, one per channel: in odd
    rounds between the pairs (2i+1, 2i+2), in even rounds inside (2i, 2i+1) again.

    Raises
    ------
    BadInput
        On a line, for an odd number of nodes, or with fewer than two channels.
    """
    n = whole_fibres(fibres, "schedule").n
    if not fibres.circular or n % 2 or (fibres.channels < 2 and n > 2):
        refuse(fibres.spec, "neighbour exchange needs a ring with an even number of nodes and 2 wavelengths")
    node = np.arange(n)
    last = node[:, None]  # chunks that a node received last; initially its own
    columns: list[list[I64]] = [[], [], [], [], []]
    for number in range(n // 2):
        up = node % 2 == number % 2
        partner = np.where(up, node + 1, node - 1) % n
        for colour in range(last.shape[1]):
            at = (np.full(n, number), node, partner, last[:, colour], np.full(n, colour))
            for column, values in zip(columns, at, strict=True):
                column.append(values)
        got = last[partner]
        # After round 0 a pair forwards both of its chunks; later, the two that it just received.
        last = np.concatenate([last, got], axis=1) if number == 0 else got
    rounds, source, target, chunk, wavelength = (np.concatenate(column) for column in columns)
    onward = (target - source) % n == 1
    arc_up, arc_down = fibres.arcs_onward()
    arcs = np.where(onward, arc_up[source], arc_down[target])
    return direct(rounds, source, target, chunk, wavelength % fibres.wavelengths, np.arange(rounds.size + 1), arcs)

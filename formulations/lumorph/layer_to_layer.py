r"""Transfers between layers, any pattern: the greedy rounds of Algorithm 3, as a communication pattern.

Source  LuMorph, Algorithm 3 and Appendix C

In a round every receiver picks senders at random from those it still has to hear from, at most L of them; each gets one
wavelength (a "thin pipe"). As printed nothing limits how many receivers pick the same sender, which has L lasers too:
a broadcast or scatter to N - 1 GPUs would be one round. With ``both`` (the default) a sender is picked at most L times
a round, receivers choosing in random order; with ``receivers``, as printed, rounds must be split afterwards.
At least max(ceil(sends/L), ceil(receptions/L)) rounds over all GPUs, which König's theorem attains; greedy may miss it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from formulations.lumorph.patterns import Pattern
from formulations.rounds.collectives import phases

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from formulations.rounds.collectives import Collective

    I64 = NDArray[np.int64]

LaserLimit = Literal["both", "receivers"]


def greedy_rounds(sources: I64, targets: I64, lasers: int, *, limit: LaserLimit = "both", seed: int = 0) -> I64:
    """The round in which Algorithm 3 takes each transfer ``sources[k] -> targets[k]``, ``(K,)``."""
    random = np.random.default_rng(seed)
    n = int(max(sources.max(initial=0), targets.max(initial=0))) + 1
    when = np.full(sources.size, -1, dtype=np.int64)
    # Every receiver takes its senders in a random order; those without a free laser wait.
    order = random.permutation(sources.size)
    waiting = {v: order[targets[order] == v].tolist() for v in np.unique(targets).tolist()}
    sender = sources.tolist()
    r = 0
    while waiting:
        free = [lasers if limit == "both" else sources.size] * n
        for v in random.permutation(list(waiting)).tolist():
            picked, kept = 0, []
            for k in waiting[v]:
                if picked < lasers and free[sender[k]] > 0:
                    free[sender[k]] -= 1
                    picked += 1
                    when[k] = r
                else:
                    kept.append(k)
            if kept:
                waiting[v] = kept
            else:
                del waiting[v]
        r += 1
    return when


def layer_to_layer(collective: Collective, lasers: int, *, limit: LaserLimit = "both", seed: int = 0) -> Pattern:
    """Every delivery straight from a random holder, in greedy rounds; sums as copies run backwards."""
    made: Pattern | None = None
    random = np.random.default_rng(seed)
    for number, phase in enumerate(phases(collective)):
        wanted = phase.copying
        chunk, target = wanted.deliveries.T
        first = np.searchsorted(wanted.pre[:, 0], chunk)
        source = wanted.pre[first + random.integers(0, wanted.holders[chunk]), 1]
        when = greedy_rounds(source, target, lasers, limit=limit, seed=seed + number)
        order = np.argsort(when, kind="stable")
        spread = Pattern(
            int(when.max(initial=-1)) + 1, when[order], source[order], target[order], chunk[order],
            np.zeros(chunk.size, dtype=bool),
        )  # fmt: skip
        pattern = spread.backwards() if phase.backwards else spread
        made = pattern if made is None else made.then(pattern)
    assert made is not None
    return made

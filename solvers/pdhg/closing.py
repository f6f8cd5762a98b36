r"""Two bounds that close on the optimum: when to restart, when to look at the bounds, when to polish.

The iteration finds the dual long before the primal: at N = 1000 the lower bound on T* is within 1e-4 after some
hundred steps, the upper bound of a repaired flow only after thousands. So when the lower bound L has settled, the flows
are *polished*: the loads' target is fixed at L (1 + tol/2), the objective dropped, all duals set to 0, and the same
iteration looks for any flow below that target. That takes 20 to 200 steps.

Everything here is decided by counts of steps and by values, nothing by the clock: a run gives the same result
whatever else the machine does, unless a limit ends it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from solvers.pdhg.saddle import Duals, Saddle

#: Steps between two tests for a restart.
TEST_EVERY = 20
#: Restart when the fixed-point residual fell to this share, or stopped falling below that one (Applegate et al. 2021).
SUFFICIENT, NECESSARY = 0.2, 0.8
#: Restart in any case when this share of all steps lies behind the last one.
LONGEST = 0.36
#: How much of the observed primal weight is adopted at a restart (on a logarithmic scale).
SMOOTHING = 0.3
#: Growth of the step counts at which bounds are looked at, flows repaired, and polishing repaired.
LOOK, REPAIR, POLISH = 1.25, 2.0, 1.6
FIRST_LOOK, FIRST_POLISH = 40, 20
#: Polishing may take this share of the steps so far, and at least so many.
POLISH_SHARE, POLISH_LEAST = 0.35, 60
#: Without a gap smaller by a tenth while the steps grew by this factor, the precision is spent.
STALLED = 4.0


@dataclass
class Closing:
    """The bounds on T* so far and what proves them.

    Parameters
    ----------
    saddle
        The iteration.
    tol
        Gap ``upper / lower - 1`` to reach.
    alive
        Called before every step; raises to stop.
    on_change
        Called when a bound moved: ``on_change(flows_changed)``.
    most_steps
        Limit on the steps.
    """

    saddle: Saddle
    tol: float
    alive: Callable[[], object]
    on_change: Callable[[bool], object]
    most_steps: int
    lower: float = 0.0
    upper: float = np.inf
    steps: int = 0
    restarts: int = 0
    polishes: int = 0
    lengths: NDArray[np.float64] | None = None
    flows: NDArray[np.float64] | None = None
    _spare: NDArray[np.float64] | None = None
    _gains: list[float] = field(default_factory=list)
    _best_gap: float = np.inf
    _best_at: int = 0

    @property
    def gap(self) -> float:
        """Relative gap between the bounds, as the runner defines it: of F by F."""
        return self.upper / self.lower - 1.0 if self.lower > 0 else np.inf

    @property
    def closed(self) -> bool:
        """Whether the gap is within the tolerance, with a hair to spare for another's arithmetic."""
        return self.gap <= self.tol * 0.999

    def run(self) -> None:
        """Iterate until the gap is closed, the steps are spent, or the precision is."""
        saddle = self.saddle
        self.look()
        self.repair()
        next_look, next_repair, next_polish = FIRST_LOOK, 2 * FIRST_LOOK, 0
        first = last = np.inf
        while not (self.closed or self.spent):
            self.alive()
            saddle.advance()
            self.steps += 1
            if saddle.count == 1:
                first = last = saddle.residual()
            elif saddle.count % TEST_EVERY == 0:
                now = saddle.residual()
                if self._due(first, last, now):
                    self.restart()
                last = now
            if self.steps >= next_look:
                next_look = int(self.steps * LOOK)
                self.look()
                if self.steps >= next_repair:
                    next_repair = int(self.steps * REPAIR)
                    self.repair()
                if not self.closed and self.steps >= next_polish and self.settled():
                    self.polish()
                    next_polish = int(self.steps * (1.0 + POLISH_SHARE))
                    next_look = max(next_look, int(self.steps * (LOOK - 1.0) / 2 + self.steps))

    @property
    def spent(self) -> bool:
        """Whether to give up: no steps left, or none that would help."""
        if self.gap < 0.9 * self._best_gap:
            self._best_gap, self._best_at = self.gap, self.steps
        return self.steps >= self.most_steps or self.steps > STALLED * self._best_at + 20_000

    def _due(self, first: float, last: float, now: float) -> bool:
        """Whether to restart, by the fixed-point residuals after the anchor, at the last test and now."""
        if now <= SUFFICIENT * first or (now <= NECESSARY * first and now > last):
            return True
        return self.saddle.count >= max(LONGEST * self.steps, 36)

    def restart(self) -> None:
        """Move the anchor here and the primal weight towards the ratio of the distances just travelled."""
        saddle = self.saddle
        moved, pushed = saddle.restart()
        self.restarts += 1
        if moved > 0 and pushed > 0:
            saddle.primal_weight *= float((pushed / moved / saddle.primal_weight) ** SMOOTHING)

    def look(self) -> None:
        """Compute the lower bound of the current arc weights; keep it if it is the best."""
        self.alive()
        found = self.saddle.lower()
        before = self.lower
        if found > before:
            self.lower, self.lengths = found, self.saddle.lengths()
            self.on_change(False)
        self._gains.append(max(self.lower - before, 0.0))

    def repair(self) -> None:
        """Compute the upper bound of the current flows; keep them if they are the best."""
        self.alive()
        shape = (self.saddle.m, self.saddle.groups)
        out = np.empty(shape) if self._spare is None else self._spare
        self._spare = out
        found = self.saddle.upper(out)
        if found < self.upper:
            self.upper, self.flows, self._spare = found, out, self.flows
            self.on_change(True)

    def settled(self) -> bool:
        """Whether what the lower bound still has to gain, as a geometric series, is below tol/2."""
        if len(self._gains) < 4:
            return False
        before, now = max(self._gains[-3], self._gains[-2]), max(self._gains[-2], self._gains[-1])
        ratio = min(max(now / before if before > 0 else 0.0, 0.3), 0.8)
        return now * ratio / (1.0 - ratio) <= 0.5 * self.tol * self.lower

    def polish(self) -> None:
        """Look for flows below a target a little above the lower bound; then go on from whatever they came to."""
        saddle = self.saddle
        kept: Duals = saddle.polish(self.lower * (1.0 + 0.5 * self.tol))
        self.polishes += 1
        try:
            most = max(POLISH_LEAST, int(POLISH_SHARE * self.steps))
            due, worst = FIRST_POLISH, self.upper
            for done in range(1, most + 1):
                self.alive()
                saddle.advance()
                self.steps += 1
                if done < due:
                    continue
                due = int(done * POLISH) + 1
                self.repair()
                if self.closed:
                    return
                if done > 3 * FIRST_POLISH and self.upper > 0.9999 * worst and self.gap > 3 * self.tol:
                    return  # the target is below the optimum, or out of reach
                worst = self.upper
        finally:
            saddle.resume(kept)

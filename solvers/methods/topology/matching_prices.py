r"""Column generation over matchings and lengths: prices of pairs that bound the makespan.

The sum of the times of all switches is at least the value of

    min sum_c (tau_c + delay) y_c   s.t.   sum_{c: ij in c} min(D_ij, tau_c) y_c >= D_ij,   y >= 0

over all matchings c and their lengths tau_c. For prices pi of its rows, the best column of a length is a matching of
largest weight pi_ij min(D_ij, tau), and only the distinct demands matter as lengths
(:mod:`opticoll.formulations.topology.matching_bounds`, which also turns any prices into a rigorous bound).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.topology import matching_bounds

if TYPE_CHECKING:
    from collections.abc import Callable

    from opticoll.formulations.topology.matchings import TopologyMatchings
    from opticoll.instances.topology import F64, I64

#: Most columns that are added at a time, and most that are kept: those of least reduced cost.
MOST_ADDED, MOST_KEPT = 24, 3_000
#: Least relative gain of a column.
GAIN = 1e-9


class MatchingColumns:
    """The restricted linear program, its prices and the bound that they prove."""

    def __init__(self, data: TopologyMatchings) -> None:
        self.data, self.due = data, data.demand[tuple(data.pairs.T)]
        self.lengths = np.unique(self.due)
        self.columns = np.diag(self.due)  # (columns, P): every pair alone
        self.cost = self.due + data.delay
        self.heads: list[I64] = []
        for pair in data.pairs:
            alone = np.full(data.n, -1)
            alone[pair[0]] = pair[1]
            self.heads.append(alone)
        self.weights: F64 = np.zeros(0)
        self.prices: F64 = np.zeros((data.n, data.n))
        self.iterations = 0

    def add(self, heads: I64, length: float) -> None:
        """Add a matching of a length."""
        tails, targets = self.data.pairs.T
        served = np.where(heads[tails] == targets, np.minimum(self.due, length), 0.0)
        self.columns = np.concatenate([self.columns, served[None]])
        self.cost = np.append(self.cost, length + self.data.delay)
        self.heads.append(heads)

    def solve(self) -> None:
        """Solve the restricted program; its prices and the weights of its columns."""
        from scipy.optimize import linprog

        solved = linprog(self.cost, A_ub=-self.columns.T, b_ub=-self.due, method="highs")
        self.weights = solved.x
        self.prices = np.zeros((self.data.n, self.data.n))
        self.prices[tuple(self.data.pairs.T)] = np.maximum(-solved.ineqlin.marginals, 0.0)
        if len(self.cost) > MOST_KEPT:
            reduced = self.cost - self.columns @ self.prices[tuple(self.data.pairs.T)]
            kept = np.sort(np.argsort(reduced, kind="stable")[: MOST_KEPT // 2])
            self.columns, self.cost, self.weights = self.columns[kept], self.cost[kept], self.weights[kept]
            self.heads = [self.heads[c] for c in kept.tolist()]

    def generate(self) -> bool:
        """Add the matchings that gain most; False if none gains anything."""
        from scipy.optimize import linear_sum_assignment

        rows, found = np.arange(self.data.n), []
        for length in self.lengths.tolist():
            worth = self.prices * np.minimum(self.data.demand, length)
            heads = linear_sum_assignment(worth, maximize=True)[1]
            gain = float(worth[rows, heads].sum()) / (length + self.data.delay)
            if gain > 1 + GAIN:
                found.append((gain, length, np.where(worth[rows, heads] > 0, heads, -1)))
        found.sort(key=lambda one: -one[0])
        for _, length, heads in found[:MOST_ADDED]:
            self.add(heads, length)
        return bool(found)

    def run(self, remaining: Callable[[], float], iterations: int) -> float:
        """Generate columns until none is left, or time or iterations end; the bound that the prices prove."""
        best = -np.inf
        while True:
            self.solve()
            self.iterations += 1
            done = self.iterations >= iterations or remaining() <= 0 or not self.generate()
            if done or self.iterations % 20 == 0:
                best = max(best, matching_bounds.price_bound(self.data, self.prices))
            if done:
                return best

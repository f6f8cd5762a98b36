"""Restricted master and pricing of column generation.

The restricted master is one HiGHS model that grows:

    min lambda   s.t.   sum_{p in P_k} x_p = 1  (k),   sum_p D_k A_ap x_p - c_a lambda <= 0  (a),   x >= 0

over the paths known so far; lambda is the time T of the restricted problem, D_k the demand of commodity k, x_p the
share of it on path p, and the negated duals of the arc rows are arc lengths. Capacities are scaled to a mean of 1.

Pricing finds shortest allowed paths of all commodities at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from opticoll.formulations.flows.path_sets import PathSet
from opticoll.solvers import solver_log

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from opticoll.formulations.flows.path_sets import PathSet
    from opticoll.instances.digraph import Topology

    F64 = NDArray[np.float64]
    I64 = NDArray[np.int64]
    Column = tuple[int, tuple[int, ...]]
    from collections.abc import Sequence


#: Lengths are floored at this part of their largest: no cycle is free, so that shortest walks are simple paths.
FLOOR = 1e-10


@dataclass(frozen=True)
class Priced:
    """Every commodity's shortest length, ``(|K|,)``, and a function that returns the paths of selected ones."""

    shortest: F64
    paths: Callable[[NDArray[np.bool_]], list[Column]]


class Pricing(Protocol):
    """Shortest paths of a path set under arc lengths ``(m,)``, all positive."""

    def price(self, lengths: F64) -> Priced:
        """Shortest paths under ``lengths``, by commodity."""


def positive(lengths: F64) -> F64:
    """Lengths scaled to a largest of 1 and floored, see :data:`FLOOR`; all ones where there are none."""
    lengths = np.nan_to_num(np.maximum(lengths, 0.0), nan=0.0, posinf=0.0)
    peak = lengths.max(initial=0.0)
    return np.maximum(lengths / peak, FLOOR) if peak > 0 else np.ones(lengths.size)


class EveryPath:
    """All simple paths: one Dijkstra per source. ``commodities`` are sources and targets, each ``(|K|,)``."""

    def __init__(self, topology: Topology, commodities: tuple[I64, I64]) -> None:
        self.topology = topology
        self.targets = commodities[1]
        self.starts, self.source = np.unique(commodities[0], return_inverse=True)

    def price(self, lengths: F64) -> Priced:
        """Shortest paths under ``lengths``."""
        from scipy.sparse.csgraph import dijkstra

        topology, starts = self.topology, self.starts
        reach, parent = dijkstra(topology.length_matrix(lengths), indices=starts, return_predecessors=True)
        order = np.lexsort((lengths, topology.head, topology.tail))
        key = topology.tail[order] * topology.n + topology.head[order]

        def paths(selected: NDArray[np.bool_]) -> list[Column]:
            pairs = np.flatnonzero(selected)
            source = self.source[pairs]
            at, steps = self.targets[pairs], []
            going = at != starts[source]
            if not pairs.size:
                return []
            while going.any():
                before = np.where(going, parent[source, at], at)
                # The first of the parallel arcs in this order is the shortest.
                arc = order[np.searchsorted(key, before * topology.n + at) % key.size]
                steps.append(np.where(going, arc, -1))
                at = before
                going = at != starts[source]
            table = np.stack(steps[::-1], axis=1)
            return [(k, tuple(a for a in row if a >= 0)) for k, row in zip(pairs.tolist(), table.tolist(), strict=True)]

        return Priced(reach[self.source, self.targets], paths)


class BoundedPaths:
    """All simple paths of at most ``longest`` arcs: shortest walks by number of arcs, one step at a time."""

    def __init__(self, topology: Topology, commodities: tuple[I64, I64], longest: int) -> None:
        self.topology, self.longest = topology, longest
        self.source, self.targets = np.searchsorted(topology.terminals, commodities[0]), commodities[1]
        self.entering = [np.flatnonzero(topology.head == v) for v in range(topology.n)]

    def price(self, lengths: F64) -> Priced:
        """Shortest paths under ``lengths``."""
        from opticoll.formulations.flows.path_flow import bounded_distances

        topology, ends = self.topology, self.topology.terminals
        table = bounded_distances(topology, lengths, self.longest)

        def walk(source: int, v: int) -> tuple[int, ...]:
            step, arcs = table.shape[0] - 1, []
            while v != ends[source]:
                while table[step, source, v] == table[step - 1, source, v]:
                    step -= 1
                into = self.entering[v]
                arc = int(into[np.argmin(table[step - 1, source, topology.tail[into]] + lengths[into])])
                arcs.append(arc)
                v, step = int(topology.tail[arc]), step - 1
            return tuple(arcs[::-1])

        def paths(selected: NDArray[np.bool_]) -> list[Column]:
            pairs = np.flatnonzero(selected)
            return [(k, walk(int(self.source[k]), int(self.targets[k]))) for k in pairs.tolist()]

        return Priced(table[-1][self.source, self.targets], paths)


class ListedPaths:
    """The paths of a listed set."""

    def __init__(self, listed: PathSet) -> None:
        self.listed = listed
        self.transposed = listed.incidence.T.tocsr()

    def price(self, lengths: F64) -> Priced:
        """Shortest paths under ``lengths``."""
        listed = self.listed
        length = self.transposed @ lengths
        shortest = np.minimum.reduceat(length, listed.first[:-1])

        def paths(selected: NDArray[np.bool_]) -> list[Column]:
            best = np.flatnonzero(length == shortest[listed.pair])
            pair, where = np.unique(listed.pair[best], return_index=True)
            chosen = best[where][selected[pair]]
            return [(int(listed.pair[p]), tuple(listed.path(p))) for p in chosen.tolist()]

        return Priced(shortest, paths)


#: Up to this many rows the simplex restarts faster from its last basis than interior point solves afresh.
SIMPLEX_ROWS = 1200


@dataclass(frozen=True)
class MasterSolution:
    """Shares ``(columns,)``, arc lengths ``(m,)`` and commodity duals ``(|K|,)`` of the restricted master."""

    shares: F64
    lengths: F64
    commodity_duals: F64


class RestrictedMaster:
    """The LP above in HiGHS; for code that runs in a worker of its own (it imports the solver).

    Parameters
    ----------
    topology, commodities, amount
        The graph; sources and targets of the commodities, and their demands, each ``(|K|,)``.
    algorithm
        ``"simplex"``, ``"ipx"`` or ``"auto"`` by the number of rows.
    threads
        Threads HiGHS may use.
    """

    def __init__(
        self,
        topology: Topology,
        commodities: tuple[I64, I64],
        amount: F64,
        *,
        algorithm: str = "auto",
        threads: int = 1,
    ) -> None:
        import highspy

        self.highspy = highspy
        pairs = commodities[0].size
        self.topology, self.commodities, self.pairs, self.amount = topology, commodities, pairs, amount
        self.known: set[Column] = set()
        self._pair: list[NDArray[np.int64]] = []
        self._arcs: list[NDArray[np.int64]] = []
        self._length: list[NDArray[np.int64]] = []
        self.highs: Any = highspy.Highs()
        self.highs.resetGlobalScheduler(True)  # an earlier run with other threads would make this one fail
        self.inexact = algorithm == "ipx" or (algorithm == "auto" and pairs + topology.arcs > SIMPLEX_ROWS)
        for option, value in (("output_flag", solver_log.shown()), ("threads", threads)):
            self._set(option, value)
        self._choose()
        m = topology.arcs
        lower = np.concatenate([np.ones(pairs), np.full(m, -highspy.kHighsInf)])
        upper = np.concatenate([np.ones(pairs), np.zeros(m)])
        none: NDArray[np.int32] = np.zeros(0, dtype=np.int32)
        self.highs.addRows(pairs + m, lower, upper, 0, np.zeros(pairs + m, dtype=np.int32), none, np.zeros(0))
        scaled = topology.capacity / topology.capacity.mean()
        self.highs.addCol(1.0, 0.0, highspy.kHighsInf, m, np.arange(pairs, pairs + m, dtype=np.int32), -scaled)

    def _set(self, option: str, value: Any) -> None:
        if self.highs.setOptionValue(option, value) == self.highspy.HighsStatus.kError:
            msg = f"HiGHS rejects the option {option}={value!r}"
            raise RuntimeError(msg)

    def _choose(self) -> None:
        if self.inexact:
            self._set("solver", "ipx")
            self._set("run_crossover", "off")
            for tolerance in ("primal_feasibility_tolerance", "dual_feasibility_tolerance", "ipm_optimality_tolerance"):
                self._set(tolerance, 1e-9)
        else:
            self._set("solver", "simplex")

    @property
    def algorithm(self) -> str:
        """Name of the algorithm in use."""
        return "interior point (IPX)" if self.inexact else "simplex"

    @property
    def version(self) -> str:
        """The solver's version."""
        return str(self.highs.version())

    def make_exact(self) -> bool:
        """Switch to the simplex; False if it is already in use."""
        if not self.inexact:
            return False
        self.inexact = False
        self.highs.clearSolver()
        self._choose()
        return True

    def add(self, columns: Sequence[Column]) -> int:
        """Add the paths that are new; returns their number."""
        new = [column for column in dict.fromkeys(columns) if column not in self.known]
        if not new:
            return 0
        count = len(new)
        pair = np.array([k for k, _ in new])
        length = np.array([len(arcs) for _, arcs in new])
        arcs = np.array([a for _, path in new for a in path])
        begin = np.concatenate([[0], np.cumsum(length)])
        index = np.insert(arcs + self.pairs, begin[:-1], pair).astype(np.int32)
        start = (begin[:-1] + np.arange(count)).astype(np.int32)
        infinite = np.full(count, self.highspy.kHighsInf)
        nothing = np.zeros(count)
        value = np.insert(np.repeat(self.amount[pair], length), begin[:-1], 1.0)
        self.highs.addCols(count, nothing, nothing, infinite, index.size, start, index, value)
        self._pair.append(pair)
        self._arcs.append(arcs)
        self._length.append(length)
        self.known.update(new)
        return count

    def paths(self) -> PathSet:
        """The paths known so far, in the order of their columns (not sorted by commodity)."""
        length = np.concatenate(self._length)
        start = np.concatenate([[0], np.cumsum(length)])
        sources, targets = self.commodities
        return PathSet(self.topology, sources, targets, np.concatenate(self._arcs), start, np.concatenate(self._pair))

    def solve(self, time_limit_s: float | None = None) -> MasterSolution | None:
        """Solve the LP over the paths so far; None if the time ran out."""
        if time_limit_s is not None:
            self._set("time_limit", float(self.highs.getRunTime()) + time_limit_s)
        self.highs.run()
        status = self.highs.getModelStatus()
        if status == self.highspy.HighsModelStatus.kTimeLimit:
            return None
        if status != self.highspy.HighsModelStatus.kOptimal and self.make_exact():
            return self.solve(time_limit_s)
        solution = self.highs.getSolution()
        duals = np.array(solution.row_dual)
        return MasterSolution(
            np.array(solution.col_value)[1:], np.maximum(-duals[self.pairs :], 0.0), duals[: self.pairs]
        )

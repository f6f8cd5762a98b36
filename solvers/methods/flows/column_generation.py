"""Method ``column-generation``: column generation over paths, its restricted master and pricing.

The restricted master is one HiGHS model that grows:

    min lambda   s.t.   sum_{p in P_k} x_p = 1  (k),   sum_p D_k A_ap x_p - c_a lambda <= 0  (a),   x >= 0

over the paths generated so far; lambda is the time T of the restricted problem, D_k the demand of commodity k, x_p its
share on path p, and the negated duals of the arc rows are arc lengths. Capacities are scaled to a mean of 1.

Pricing finds shortest allowed paths of all commodities at once.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from opticoll.errors import MethodMismatch
from opticoll.formulations import rounding
from opticoll.formulations.flows.path_flow import arc_load, serve_alike
from opticoll.formulations.flows.path_sets import PathSet, reordered, subset, to_arrays
from opticoll.formulations.parameters import Parameter
from opticoll.formulations.rounds.segments import offsets
from opticoll.solvers.adapters.highs import quiet_highs
from opticoll.solvers.methods.method import Answer, Method
from opticoll.solvers.process import solver_log
from opticoll.solvers.process.memory import MOST_ENTRIES
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opticoll.formulations.flows.path_sets import PathRule
    from opticoll.instances.topology import F64, I32, I64, Mask, Topology
    from opticoll.solvers.methods.method import Context
    from opticoll.types import Json

    Column = tuple[int, tuple[int, ...]]


#: Lengths are floored at this share of the largest: no cycle has length 0, so shortest walks are simple paths.
FLOOR = 1e-10


@dataclass(frozen=True)
class Priced:
    """Every commodity's shortest length, ``(|K|,)``, and a function that returns the paths of selected ones."""

    shortest: F64
    paths: Callable[[Mask], list[Column]]


class Pricing(Protocol):
    """Shortest paths of a path set under arc lengths ``(m,)``, all positive."""

    def price(self, lengths: F64) -> Priced:
        """Shortest paths under ``lengths``, by commodity."""


def positive(lengths: F64) -> F64:
    """Lengths scaled to a maximum of 1 and floored, see :data:`FLOOR`; all ones if none is positive."""
    lengths = np.nan_to_num(np.maximum(lengths, 0.0), nan=0.0, posinf=0.0)
    peak = lengths.max(initial=0.0)
    return np.maximum(lengths / peak, FLOOR) if peak > 0 else np.ones(lengths.size)


class EveryPath:
    """All simple paths: one Dijkstra per source. ``commodities`` are sources and targets, each ``(|K|,)``."""

    def __init__(self, topology: Topology, commodities: tuple[I64, I64]) -> None:
        self.topology = topology
        self.targets = commodities[1]
        self.starts, self.source = np.unique(commodities[0], return_inverse=True)

    def traced(self, lengths: F64) -> tuple[F64, Callable[[Mask], tuple[I64, I64]]]:
        """Every commodity's shortest length, and a function that returns selected ones that have a path, and its arcs.

        The arcs are rows, ``(., longest)``, with -1 before the first.
        """
        from scipy.sparse.csgraph import dijkstra

        topology, starts = self.topology, self.starts
        reach, parent = dijkstra(topology.length_matrix(lengths), indices=starts, return_predecessors=True)
        order = np.lexsort((lengths, topology.head, topology.tail))
        key = topology.tail[order] * topology.n + topology.head[order]

        def arcs_of(selected: Mask) -> tuple[I64, I64]:
            pairs = np.flatnonzero(selected)
            source = self.source[pairs]
            at, steps = self.targets[pairs], [np.zeros(0, dtype=np.int64)] * (not pairs.size)
            going = at != starts[source]
            while going.any():
                before = np.where(going, parent[source, at], at)
                # The first of the parallel arcs in this order is the shortest.
                arc = order[np.searchsorted(key, before * topology.n + at) % key.size]
                steps.append(np.where(going, arc, -1))
                at = before
                going = at != starts[source]
            return pairs, np.stack(steps[::-1], axis=1)

        return reach[self.source, self.targets], arcs_of

    def price(self, lengths: F64) -> Priced:
        """Shortest paths under ``lengths``."""
        shortest, arcs_of = self.traced(lengths)

        def paths(selected: Mask) -> list[Column]:
            rows = zip(*(one.tolist() for one in arcs_of(selected)), strict=True)
            return [(k, tuple(a for a in row if a >= 0)) for k, row in rows]

        return Priced(shortest, paths)


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

        def paths(selected: Mask) -> list[Column]:
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

        def paths(selected: Mask) -> list[Column]:
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
    """The LP above in HiGHS, for code that runs in its own worker, because it imports the solver.

    Parameters
    ----------
    topology, commodities, amount
        The graph; sources and targets of the commodities, and their demands, each ``(|K|,)``.
    algorithm
        ``"simplex"``, ``"ipx"`` or ``"auto"`` by the number of rows.
    """

    def __init__(
        self,
        topology: Topology,
        commodities: tuple[I64, I64],
        amount: F64,
        *,
        algorithm: str = "auto",
    ) -> None:
        import highspy

        self.highspy = highspy
        pairs = commodities[0].size
        self.topology, self.commodities, self.pairs, self.amount = topology, commodities, pairs, amount
        self.known: set[Column] = set()
        self._pair: list[I64] = []
        self._arcs: list[I64] = []
        self._length: list[I64] = []
        self.highs: Any = quiet_highs(highspy, output_flag=solver_log.shown(), threads=1)
        self.inexact = algorithm == "ipx" or (algorithm == "auto" and pairs + topology.arcs > SIMPLEX_ROWS)
        self._choose()
        m = topology.arcs
        lower = np.concatenate([np.ones(pairs), np.full(m, -highspy.kHighsInf)])
        upper = np.concatenate([np.ones(pairs), np.zeros(m)])
        none: I32 = np.zeros(0, dtype=np.int32)
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

    def solver(self, algorithm: str | None = None) -> dict[str, Json]:
        """How an answer names the solver of its masters and the ``algorithm`` after column generation."""
        then = algorithm or self.algorithm
        return {"name": "highs", "version": self.highs.version(), "algorithm": f"column generation, {then}"}

    def make_exact(self) -> bool:
        """Switch to the simplex method; return False if it is already in use."""
        if not self.inexact:
            return False
        self.inexact = False
        self.highs.clearSolver()
        self._choose()
        return True

    def add(self, columns: Sequence[Column]) -> int:
        """Add the paths that are new and return their number."""
        new = [column for column in dict.fromkeys(columns) if column not in self.known]
        if not new:
            return 0
        count = len(new)
        pair = np.array([k for k, _ in new])
        length = np.array([len(arcs) for _, arcs in new])
        arcs = np.array([a for _, path in new for a in path])
        begin = offsets(length)
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
        """The paths generated so far, in the order of their columns (not sorted by commodity)."""
        length = np.concatenate(self._length)
        start = offsets(length)
        sources, targets = self.commodities
        return PathSet(self.topology, sources, targets, np.concatenate(self._arcs), start, np.concatenate(self._pair))

    def solve(self, time_limit_s: float | None = None) -> MasterSolution | None:
        """Solve the LP over the paths generated so far; None if time runs out."""
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


FORMULATIONS = ("alltoall.path-mcf", "alltoall.link-mcf", "alltoall.master")
#: Columns whose reduced cost is not below this part of their commodity's dual are no improvement.
IMPROVEMENT = 1e-9


@dataclass
class Generated:
    """Result of column generation.

    ``paths`` (in the order they were found) and ``share`` (adding up to 1 per commodity) are the flow, ``time`` its T,
    the worst load per capacity; ``best`` are the lengths that prove ``time >= best.bound``.
    """

    paths: PathSet
    share: F64
    time: float
    best: BestLengths
    rounds: int
    columns: int
    master: RestrictedMaster
    finished: bool = False
    out_of_time: bool = False

    @property
    def gap(self) -> float:
        """Relative distance of value and bound."""
        return self.time / self.best.bound - 1.0 if self.best.bound > 0 else np.inf

    def used(self, least: float = 1e-12) -> tuple[PathSet, F64]:
        """The paths that carry more than ``least`` of their commodity, sorted, and their shares."""
        keep = np.flatnonzero(self.share > least)
        used_paths = subset(self.paths, self.share > least)
        order = path_order(used_paths)
        listed = reordered(used_paths, order)
        return listed, serve_alike(listed, self.share[keep[order]])


@dataclass(frozen=True)
class BestLengths:
    """The lengths with the best bound on T so far."""

    lengths: F64
    bound: float

    def better(self, lengths: F64, bound: float) -> BestLengths:
        """These lengths or the given ones, whichever have the larger bound."""
        return BestLengths(lengths, bound) if bound > self.bound else self


def pricing_for(
    topology: Topology, pairs: tuple[I64, I64], rule: PathRule | None, listed: PathSet | None = None
) -> Pricing:
    """The pricing step of a path set: by search where all paths are allowed, over the list otherwise."""
    if rule is None or rule.unrestricted:
        return EveryPath(topology, pairs)
    if rule.kind == "all" and rule.lmax is not None:
        return BoundedPaths(topology, pairs, rule.lmax)
    assert listed is not None
    return ListedPaths(listed)


def generate(
    topology: Topology,
    pairs: tuple[I64, I64],
    pricing: Pricing,
    *,
    tol: float,
    context: Context,
    amount: F64 | None = None,
    warmup: int = 10,
    most_rounds: int = 200,
    algorithm: str = "auto",
) -> Generated:
    """The concurrent flow of ``pairs`` over the paths of ``pricing``, to a relative gap of ``tol`` or the deadline.

    ``amount`` ``(|K|,)`` is the demand of each pair, positive, 1 by default.

    Raises
    ------
    TimeoutError
        If the time runs out before the first master is solved.
    """
    demand = np.ones(pairs[0].size) if amount is None else amount
    master = RestrictedMaster(topology, pairs, demand, algorithm=algorithm)
    everyone = np.ones(master.pairs, dtype=bool)
    best = warm_up(topology, pricing, master, max(warmup, 1))
    result: Generated | None = None
    for rounds in range(1, most_rounds + 1):
        try:
            solution = master.solve(context.remaining())
        except TimeoutError:
            solution = None
        if solution is None:
            if result is None:
                raise TimeoutError
            result.out_of_time = True
            break
        paths = master.paths()
        share, worst = _primal(paths, solution.shares, demand)
        current = positive(solution.lengths)
        duals = solution.commodity_duals / max(float(solution.lengths.max()), 1e-300)
        priced = pricing.price(current)
        best = best.better(current, _bound(topology, demand * priced.shortest, current))
        new = master.add(priced.paths(demand * priced.shortest < duals * (1.0 - IMPROVEMENT)))
        between = (current + positive(best.lengths)) / 2
        priced = pricing.price(between)
        best = best.better(between, _bound(topology, demand * priced.shortest, between))
        if new:
            master.add(priced.paths(everyone))
        result = Generated(paths, share, worst, best, rounds, len(master.known), master)
        # Saved because the lengths still prove their bound if the process is killed later.
        context.save(Answer(Termination.TIME_LIMIT, duals={"capacity": best.lengths}))
        if result.gap <= tol:
            result.finished = True
            break
        if new == 0 and not master.make_exact():
            break
    assert result is not None
    return result


def _bound(topology: Topology, cost: F64, lengths: F64) -> float:
    """The bound on T that lengths prove, rounded down; ``cost``, ``(|K|,)``, is demand times distance."""
    needed = float(rounding.down(rounding.sum_down(cost), topology.n + 2))
    return max(rounding.quotient_down(needed, rounding.dot_up(topology.capacity, lengths)), 0.0)


def _primal(paths: PathSet, shares: F64, demand: F64) -> tuple[F64, float]:
    """Shares scaled to 1 per commodity, even if it has no flow, and their largest load per capacity."""
    share = np.maximum(shares, 0.0)
    unserved = ~(np.bincount(paths.pair, share, paths.pairs) > 0)
    share[unserved[paths.pair]] = 1.0
    share /= np.bincount(paths.pair, share, paths.pairs)[paths.pair]
    return share, float((arc_load(paths, share * demand[paths.pair]) / paths.topology.capacity).max())


def warm_up(topology: Topology, pricing: Pricing, master: RestrictedMaster, steps: int) -> BestLengths:
    """Add the first columns: shortest paths under multiplicative weights, which grow on arcs that these overload."""
    weights = -np.log(topology.capacity / topology.capacity.min())
    best = BestLengths(np.ones(topology.arcs), 0.0)
    everyone = np.ones(master.pairs, dtype=bool)
    for step in range(steps):
        lengths = np.exp(np.maximum(weights - weights.max(), -20.0))
        priced = pricing.price(lengths)
        best = best.better(lengths, _bound(topology, master.amount * priced.shortest, lengths))
        columns = priced.paths(everyone)
        master.add(columns)
        carried = np.repeat(master.amount[[k for k, _ in columns]], [len(arcs) for _, arcs in columns])
        passes = np.bincount(np.concatenate([np.array(arcs) for _, arcs in columns]), carried, topology.arcs)
        load = passes / topology.capacity
        weights = weights + load / load.max() / (1.0 + 0.15 * step)
    return best


def run(context: Context) -> Answer:
    """Column generation: concurrent flow over paths that are priced by shortest path.

    Source  Ford & Fulkerson, Management Science 5, 1958; all-to-all paper (21)-(24) with P the set of all paths

    The restricted master is solved over the paths generated so far. Its duals are arc lengths; a commodity's shortest
    path under them is a new column if it is shorter than the commodity's dual. The same lengths bound the optimum over
    *all* allowed paths, F <= sum c l / sum D dist_l, so the method stops when value and best bound agree; a final
    round without new columns is not needed.

    Start: multiplicative weights, whose shortest paths provide most of the columns of an optimum. Stabilisation:
    without crossover, interior point ends inside the optimal face, not at a vertex, and every round also prices the
    mean of the current lengths and those of the best bound (Wentges, Int. Trans. Operational Research 4, 1997).
    """
    topology = context.instance
    begun = time.monotonic()
    rule, listed = _allowed(context)
    pairs, amount = _wanted(context)
    unit = float(amount.mean())  # so that coefficients of the master are about 1
    generated = generate(
        topology,
        pairs,
        pricing_for(topology, pairs, rule, listed),
        tol=context.task.tol / 10,
        context=context,
        amount=amount / unit,
        warmup=int(context.parameters["warmup"]),
        most_rounds=int(context.parameters["rounds"]),
        algorithm=str(context.parameters["algorithm"]),
    )
    paths, share = generated.used()
    F = 1.0 / (generated.time * unit)
    ending = Termination.OPTIMAL if generated.finished else Termination.TOLERANCE
    if generated.out_of_time:
        ending = Termination.TIME_LIMIT
    return Answer(
        ending,
        values=_values(context, paths, share * F * amount[paths.pair], F, listed),
        duals={"capacity": generated.best.lengths},
        solver=generated.master.solver(),
        metrics={
            "path_set": "all simple paths" if rule is None else str(rule),
            "generation_s": time.monotonic() - begun,
            "rounds": generated.rounds,
            "columns": generated.columns,
            "paths_used": paths.paths,
            "paths_per_commodity": paths.paths / paths.pairs,
            "longest_path": int(paths.length.max()),
        },
    )


def _wanted(context: Context) -> tuple[tuple[I64, I64], F64]:
    """Sources and targets of the commodities, each ``(|K|,)``, and their demands [shards]."""
    data, name = context.data, context.formulation.name
    if name == "alltoall.path-mcf":
        return data.routing.commodities, data.routing.amount
    if name == "alltoall.link-mcf":
        return (data.flow.sources, data.flow.targets), data.flow.amounts
    sources, targets, amount = data.flow.demanded()
    return (sources, targets), amount


def _allowed(context: Context) -> tuple[PathRule | None, PathSet | None]:
    """The path rule of the formulation (None for flows on arcs), and its path set if that must be listed.

    Raises
    ------
    MethodMismatch
        If the formulation is the sink-inflow reading, or the flow has too many entries to be kept.
    """
    topology, name = context.instance, context.formulation.name
    if name == "alltoall.path-mcf":
        rule = context.data.routing.rule
        return rule, None if rule.kind == "all" else context.data.routing.paths
    if name == "alltoall.link-mcf":
        if context.data.printed:
            msg = "column-generation solves the link MCF without printed=true, whose flows are not sums of paths"
            raise MethodMismatch(msg)
        if context.data.flow.groups * topology.arcs > MOST_ENTRIES:
            msg = (
                f"column-generation: {context.data.flow.groups} commodities on {topology.arcs} arcs are too many "
                "to keep every commodity's flow; solve alltoall.path-mcf with paths=all, or alltoall.master"
            )
            raise MethodMismatch(msg)
    return None, None


def _values(context: Context, paths: PathSet, flow: F64, F: float, listed: PathSet | None) -> dict[str, F64]:
    """The flow in the formulation's own variables."""
    scalar, name = np.asarray(F), context.formulation.name
    if name == "alltoall.path-mcf" and listed is None:
        return {"f": flow, "F": scalar, **to_arrays(paths)}
    if name == "alltoall.path-mcf":
        assert listed is not None
        place = {(int(listed.pair[p]), tuple(listed.path(p))): p for p in range(listed.paths)}
        f = np.zeros(listed.paths)
        f[[place[int(paths.pair[p]), tuple(paths.path(p))] for p in range(paths.paths)]] = flow
        return {"f": f, "F": scalar}
    group, columns, variable = paths.pair, paths.pairs, "f"
    if name == "alltoall.master":
        group = np.searchsorted(context.data.flow.sources, paths.sources[paths.pair])
        columns, variable = context.data.flow.groups, "g"
    x = np.zeros((paths.topology.arcs, columns))
    np.add.at(x, (paths.arcs, np.repeat(group, paths.length)), np.repeat(flow, paths.length))
    return {variable: x, "F": scalar}


def path_order(paths: PathSet) -> I64:
    """Canonical order of the paths, ``(|P|,)``: by commodity, then length, then arc numbers."""
    keys = [
        (int(k), int(n), tuple(paths.path(p))) for p, (k, n) in enumerate(zip(paths.pair, paths.length, strict=True))
    ]
    return np.array(sorted(range(paths.paths), key=keys.__getitem__), dtype=np.int64)


METHOD = Method(
    name="column-generation",
    title="Column generation over paths",
    summary="paths priced by shortest path under the restricted master's duals; proves the optimum over all paths",
    serves=FORMULATIONS,
    parameters=(
        Parameter("warmup", int, default=10, help="multiplicative-weight steps that give the first columns"),
        Parameter("rounds", int, default=200, help="largest number of rounds of master and pricing"),
        Parameter(
            "algorithm", str, default="auto", help="LP algorithm of the masters", choices=("auto", "simplex", "ipx")
        ),
    ),
    run=run,
)

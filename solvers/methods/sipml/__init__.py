"""Methods for SiP-ML's circuits: bisection and edge colouring over switches; first fit and programs of sets on a ring.

Periodic control (section 3.3; the paper's rule is in its lost appendix, this one is ours): at every interval the
remaining bytes D_p are read, and wavelengths are given one by one to the pair with the most bytes per circuit after one
more, D_p / (c_p + 1), in the shorter direction first and on the lowest free wavelength (:func:`ring_circuits`). A pair
without a free wavelength waits for the next interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from heapq import heapify, heappop, heapreplace
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.formulations.model import Parameter
from opticoll.formulations.sipml import circuits_of_sets, strip
from opticoll.formulations.sipml.ocs_circuits import matchings_of
from opticoll.solvers.isolation import solve_here
from opticoll.solvers.methods.method import Answer, Method
from opticoll.solvers.standard_form import StandardForm
from opticoll.solvers.task import SolveRequest, Termination

if TYPE_CHECKING:
    from opticoll.formulations.sipml import Walks
    from opticoll.formulations.sipml.ocs_circuits import OcsCircuits
    from opticoll.formulations.sipml.ring_wavelengths import RingTraffic
    from opticoll.instances.digraph import F64, I64, Mask
    from opticoll.solvers.methods.method import Context
    from opticoll.solvers.task import Outcome


def bisect(data: OcsCircuits) -> tuple[float, float]:
    """The smallest attainable T and the floating-point number below it [s], for a feasible problem."""
    high = np.array([data.transfers.unit_time])
    low = np.array([float(data.transfers.volume.min() / data.transfers.bandwidth) * 2.0**-50])
    above, below = int(high.view(np.int64)[0]), int(low.view(np.int64)[0])
    while above - below > 1:
        middle = (above + below) // 2
        time = float(np.array([middle], dtype=np.int64).view(np.float64)[0])
        if overfull(data, data.transfers.needs(time)) is None:
            above = middle
        else:
            below = middle
    ends = np.array([above, below], dtype=np.int64).view(np.float64)
    return float(ends[0]), float(ends[1])


def overfull(data: OcsCircuits, circuits: I64) -> int | None:
    """A server side (i: out of server i, n + j: into server j) with more circuits than ports; None if there is none."""
    group, pair = data.by_server
    used = np.bincount(group, circuits[pair].astype(float), minlength=2 * data.n)
    worst = int(used.argmax())
    return worst if used[worst] > data.degree else None


def certificate(data: OcsCircuits, time: float, side: int) -> dict[str, int | float | str]:
    """Circuits that one server side needs for any time below ``time``, in exact fractions.

    Volumes are exact as floating-point numbers. A pair with fewer circuits than needed would take at least ``time``.
    """
    moves, n = data.transfers, data.n
    mine = np.flatnonzero((moves.source == side) if side < n else (moves.target == side - n))
    limit = Fraction(time) * Fraction(moves.bandwidth)
    needed = []
    for p in mine.tolist():
        quotient = Fraction(float(moves.volume[p])) / limit
        # c circuits are faster than ``time`` iff V < c T B; quotients within round-off of an integer count as equal.
        nearest = round(quotient)
        exact = abs(quotient - nearest) <= Fraction(1, 2**48) * nearest
        needed.append(nearest + 1 if exact else -(-quotient.numerator // quotient.denominator))
    return {
        "server": side % n, "side": "out" if side < n else "in", "faster_than_s": time,
        "circuits_needed": int(sum(needed)), "ports": data.degree,
    }  # fmt: skip


def run(context: Context) -> Answer:
    """Optimal circuits over optical switches: bisection on the time, Koenig's theorem for the switches.

    T is attainable iff the needs n_p(T) respect every server's ports. Bisection over the floating-point numbers ends
    with two neighbours, of which only the upper one is attainable. A server whose needs at the lower one exceed its
    ports is the certificate, recomputed in exact fractions. The circuits are then split into one matching per switch.
    """
    data: OcsCircuits = context.data
    time, below = bisect(data)
    circuits = data.transfers.needs(time)
    side = overfull(data, data.transfers.needs(below))
    bound, source, witness = None, None, None
    if side is not None:
        witness = certificate(data, time, side)
        if int(witness["circuits_needed"]) > data.degree:
            bound, source = time, "ports-of-one-server"
    match = matchings_of(data, circuits)
    return Answer(
        Termination.OPTIMAL,
        values={"match": match.astype(float)},
        bound=bound,
        bound_source=source,
        solver={"name": "koenig-bisection", "version": None, "algorithm": "bisection, edge colouring", "options": {}},
        metrics={"certificate": witness},
    )


#: Excess of wavelengths above which a time counts as infeasible in the linear program; the bound is recomputed anyway.
EXCESS = 1e-6


def attainable_times(data: RingTraffic) -> F64:
    """Times V_p / (c B) between the analytic bound and one circuit per pair, ascending [s].

    The last one, of the largest transfer over one circuit, is attained by every assignment.
    """
    moves = data.transfers
    pair = np.repeat(np.arange(moves.pairs), data.high)
    first = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(data.high)[:-1]])
    times = moves.volume[pair] / (np.arange(pair.size) - first[pair] + 1) / moves.bandwidth
    return np.unique(times[times >= data.least])


def first_fit(data: RingTraffic, needs: I64) -> I64 | None:
    """Circuits (pair, direction, wavelength), ``(E, 3)``, that meet needs, ``(|P|,)``; None if first fit fails."""
    n, moves = data.n, data.transfers
    if int((needs * data.hops.min(axis=1)).sum()) > 2 * n * data.wavelengths:
        return None
    full = (1 << n) - 1

    def mask(start: int, length: int) -> int:
        bits = ((1 << length) - 1) << start
        return (bits | bits >> n) & full

    free: list[list[int]] = [[full] * data.wavelengths, [full] * data.wavelengths]
    load = [0, 0]
    circuits: list[tuple[int, int, int]] = []
    hops = data.hops.tolist()
    order = np.lexsort((np.arange(moves.pairs), -data.hops.min(axis=1)))
    for p in order.tolist():
        s, t = int(moves.source[p]), int(moves.target[p])
        ways = [mask(s, hops[p][0]), mask(t, hops[p][1])]
        at = [0, 0]
        for _ in range(int(needs[p])):
            near = (hops[p][0], load[0]) > (hops[p][1], load[1])
            for way in (int(near), 1 - int(near)):
                row, bits = free[way], ways[way]
                w = at[way]
                while w < data.wavelengths and row[w] & bits != bits:
                    w += 1
                at[way] = w
                if w < data.wavelengths:
                    row[w] ^= bits
                    load[way] += hops[p][way]
                    circuits.append((p, way, w))
                    break
            else:
                return None
    return np.array(circuits, dtype=np.int64).reshape(-1, 3)


def ring_circuits(demand: F64, wavelengths: int) -> I64:
    """Circuits (source, target, direction, wavelength), ``(E, 4)``, by demand on a ring; see the module.

    ``demand`` is ``(n, n)``; direction 0 is clockwise, from i to i + 1. Ties go to the pair with the lowest numbers.
    """
    n = demand.shape[0]
    full = (1 << n) - 1
    free = [[full] * wavelengths, [full] * wavelengths]
    source, target = (ends.tolist() for ends in np.nonzero(demand * (1 - np.eye(n))))
    queue = [(-float(demand[s, t]), s, t, 1) for s, t in zip(source, target, strict=True)]
    heapify(queue)
    results: list[tuple[int, int, int, int]] = []
    while queue:
        _, s, t, more = queue[0]
        hops = ((t - s) % n, (s - t) % n)
        for way in sorted((0, 1), key=lambda way: hops[way]):
            bits = ((1 << hops[way]) - 1) << (t if way else s)
            bits = (bits | bits >> n) & full
            w = next((w for w, row in enumerate(free[way]) if row & bits == bits), wavelengths)
            if w < wavelengths:
                free[way][w] ^= bits
                results.append((s, t, way, w))
                heapreplace(queue, (-float(demand[s, t]) / (more + 1), s, t, more + 1))
                break
        else:
            heappop(queue)
    return np.array(results, dtype=np.int64).reshape(-1, 4)


def search(data: RingTraffic, context: Context | None = None) -> tuple[I64, float] | None:
    """Find circuits by bisection over times; return them and their time [s], None if one per pair does not fit."""
    times = attainable_times(data)
    best = first_fit(data, data.transfers.needs(float(times[-1])))
    if best is None:
        return None
    low, high = -1, times.size - 1
    while high - low > 1:
        if context is not None:
            context.remaining()
        middle = (low + high) // 2
        circuits = first_fit(data, data.transfers.needs(float(times[middle])))
        if circuits is None:
            low = middle
        else:
            best, high = circuits, middle
    return best, float(times[high])


def run_ring_first_fit(context: Context) -> Answer:
    """Wavelengths on a ring by first fit at bisected times.

    At a time T every pair p needs n_p(T) circuits. The times that integer circuits can attain are searched, between the
    analytic bound and the time of one circuit per pair.

    Bisection finds a time at which first fit places all circuits: longest first, shorter direction first, lowest free
    wavelength.
    """
    result = search(context.data, context)
    algorithm = "longest first, first fit"
    solver: dict[str, Any] = {"name": "ring-first-fit", "version": None, "algorithm": algorithm, "options": {}}
    if result is None:
        message = "first fit does not place one circuit per pair"
        return Answer(Termination.ITERATION_LIMIT, solver=solver, message=message)
    return Answer(Termination.TOLERANCE, values={"circuits": result[0].astype(float)}, solver=solver)


RING_FIRST_FIT = Method(
    name="ring-first-fit",
    title="First fit on the ring",
    summary="circuits on the ring by first fit, longest first, at bisected times; bounds by segments and cuts",
    applies=lambda formulation: formulation.name == "sipml.ring-wavelengths",
    run=run_ring_first_fit,
)


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of the program as triplets: row, column within its variable block, value."""

    entries: dict[str, tuple[I64, I64, F64]]
    count: int


def walk_rows(walk: Walks) -> Rows:
    """Rows ``walk``: in - out - over ending + over starting = 0."""

    def both(way: I64, start: I64, tail: I64, head: I64) -> tuple[I64, I64, F64]:
        into, out = walk.row_of(way, start, head), walk.row_of(way, start, tail)
        column = np.arange(way.size)
        row = np.concatenate([into, out])
        value = np.repeat([1.0, -1.0], way.size)
        inside = row >= 0
        return row[inside], np.tile(column, 2)[inside], value[inside]

    f = both(walk.flow_way, walk.flow_start, walk.flow_tail, walk.flow_head)
    idle = both(walk.idle_way, walk.idle_start, walk.idle_tail, walk.idle_tail + 1)
    # A crossing circuit ends a walk at its tail and starts one at its head.
    over = both(walk.over_way, walk.over_head, walk.over_tail, walk.over_head)
    return Rows({"f": f, "idle": idle, "over": over}, walk.rows)


def light_rows(walk: Walks) -> Rows:
    """Rows ``light``: walks that start at node 0, and crossing circuits."""

    def of(way: I64, mask: Mask) -> tuple[I64, I64, F64]:
        column = np.flatnonzero(mask)
        return way[column], column, np.ones(column.size)

    return Rows({
        "f": of(walk.flow_way, (walk.flow_start == 0) & (walk.flow_tail == 0)),
        "idle": of(walk.idle_way, (walk.idle_start == 0) & (walk.idle_tail == 0)),
        "over": of(walk.over_way, np.ones(walk.over_way.size, dtype=bool)),
    }, 2)  # fmt: skip


def serve_rows(walk: Walks, pairs: int) -> Rows:
    """Terms that rows ``serve`` subtract: circuits on the line and crossing ones, by pair."""
    return Rows({
        "f": (walk.flow_pair, np.arange(walk.flow_pair.size), np.ones(walk.flow_pair.size)),
        "over": (walk.over_pair, np.arange(walk.over_pair.size), np.ones(walk.over_pair.size)),
    }, pairs)  # fmt: skip


class _Program:
    """min z  s.t.  walk = 0,  light - z <= W,  serve >= needs;  z >= 0: over f, idle, over, z."""

    def __init__(self, context: Context) -> None:
        import scipy.sparse as sp

        self.context, self.data = context, context.data
        data: RingTraffic = self.data
        walk, pairs = data.walks, data.transfers.pairs
        sizes = {"f": walk.flow_way.size, "idle": walk.idle_way.size, "over": walk.over_way.size}
        first = dict(zip(sizes, np.concatenate([[0], np.cumsum(list(sizes.values()))]).tolist(), strict=False))
        self.columns = sum(sizes.values()) + 1
        self.first, self.sizes = first, sizes
        row, column, value, offset = [], [], [], 0
        for part in (walk_rows(walk), light_rows(walk), serve_rows(walk, pairs)):
            for name, (i, j, a) in part.entries.items():
                row.append(i + offset)
                column.append(j + first[name])
                value.append(a)
            offset += part.count
        row.append(walk.rows + np.arange(2))
        column.append(np.full(2, self.columns - 1))
        value.append(-np.ones(2))
        triplets = (np.concatenate(value), (np.concatenate(row), np.concatenate(column)))
        self.A = sp.csc_array(triplets, shape=(offset, self.columns))
        self.served = slice(walk.rows + 2, offset)
        self.lower = np.concatenate([np.zeros(walk.rows), np.full(2, -np.inf), np.zeros(pairs)])
        wide = np.full(2, float(data.wavelengths))
        self.upper = np.concatenate([np.zeros(walk.rows), wide, np.full(pairs, np.inf)])
        self.solves = 0

    def solve(self, needs: I64, *, integral: bool) -> Outcome:
        """Minimize the excess for these needs; with ``integral`` only test whether an excess of 0 is feasible."""
        lower = self.lower.copy()
        lower[self.served] = needs
        cost = np.zeros(self.columns)
        cost[-1] = 1.0
        top = np.full(self.columns, np.inf)
        integer = np.zeros(self.columns, dtype=bool)
        if integral:
            integer[:-1] = True
            top[-1] = 0.0
            cost[:] = 0.0
        form = StandardForm(self.A, lower, self.upper, np.zeros(self.columns), top, cost, "min", 0.0, integer)
        task = self.context.task
        self.solves += 1
        return solve_here(form, "highs", SolveRequest(self.context.remaining(), task.threads, 1e-7, task.seed))

    def prices(self, needs: I64) -> F64 | None:
        """Prices of pairs that prove these needs infeasible, if the relaxation cannot meet them."""
        outcome = self.solve(needs, integral=False)
        if outcome.termination != Termination.OPTIMAL or outcome.objective is None or outcome.row_duals is None:
            return None
        return np.abs(np.asarray(outcome.row_duals)[self.served]) if outcome.objective > EXCESS else None

    def circuits(self, needs: I64) -> I64 | None:
        """Circuits that meet these needs, if the integer program finds them within the limits."""
        outcome = self.solve(needs, integral=True)
        if outcome.x is None:
            return None
        flows = [
            np.rint(outcome.x[self.first[name] : self.first[name] + self.sizes[name]]).astype(np.int64)
            for name in ("f", "idle", "over")
        ]
        sets = strip(self.data.walks, *flows)
        if sets is None:
            return None
        circuits = circuits_of_sets(sets)
        met = (np.bincount(circuits[:, 0], minlength=needs.size) >= needs).all()
        return circuits if met and int(circuits[:, 2].max()) < self.data.wavelengths else None


def run_ring_sets(context: Context) -> Answer:
    """Wavelengths on a ring by programs over sets of disjoint arcs.

    At a time T every pair p needs n_p(T) circuits. The times that integer circuits can attain are searched, between the
    analytic bound and the time of one circuit per pair.

    Starts from first fit. A linear program over walks, whose size does not depend on W, finds the minimum excess
    over W wavelengths at a time. If it is positive, the duals of ``serve`` are prices of pairs, from which a dynamic
    program over the heaviest sets recomputes a bound on T. Bisection finds the largest infeasible time. From there up
    the same program is solved in integers until it attains a time; if that is the first one, it is optimal.
    """
    data: RingTraffic = context.data
    times = attainable_times(data)
    state = _State(context, data, times)
    try:
        state.first_fit()
        if state.bound < state.value:
            state.refute()
            state.attain()
    except TimeoutError:
        state.ending = Termination.TIME_LIMIT
    return state.answer()


class _State:
    """Incumbent, bound and progress of one run."""

    def __init__(self, context: Context, data: RingTraffic, times: F64) -> None:
        self.context, self.data, self.times = context, data, times
        self.bound, self.value = data.least, np.inf
        self.source = "analytic"
        self.circuits: I64 | None = None
        self.ending = Termination.OPTIMAL
        self.greedy: float | None = None
        self.program: _Program | None = None
        self.most = int(context.parameters["tries"])

    def first_fit(self) -> None:
        """Find a first assignment."""
        result = search(self.data, self.context)
        if result is not None:
            self.circuits, self.value = result
            self.greedy = self.value
            self.context.save(self.answer(), self.value)

    def refute(self) -> None:
        """Bisect for the largest time at which the relaxation is infeasible; bounds are recomputed from prices."""
        self.program = _Program(self.context)
        low = int(np.searchsorted(self.times, self.bound)) - 1
        high = self.times.size if np.isinf(self.value) else int(np.searchsorted(self.times, self.value))
        probe = low + 1  # the analytic bound is often tight
        while high - low > 1:
            prices = self.program.prices(self.data.transfers.needs(float(self.times[probe])))
            if prices is None:
                high = probe
            else:
                low = probe
                proven = self.data.priced_time(prices / prices.max()) if prices.max() > 0 else 0.0
                if proven > self.bound:
                    self.bound, self.source = proven, "heaviest-sets"
                    low = max(low, int(np.searchsorted(self.times, self.bound)) - 1)
                self.context.save(self.answer(), None if self.circuits is None else self.value)
            probe = (low + high) // 2
        self.start = high

    def attain(self) -> None:
        """Solve the integer program at the next attainable times."""
        assert self.program is not None
        stop = self.times.size if np.isinf(self.value) else int(np.searchsorted(self.times, self.value))
        for k in range(self.start, min(stop, self.start + self.most)):
            circuits = self.program.circuits(self.data.transfers.needs(float(self.times[k])))
            if circuits is not None:
                self.circuits, self.value = circuits, float(self.times[k])
                return
        if self.circuits is None:
            self.ending = Termination.ITERATION_LIMIT

    def answer(self) -> Answer:
        """The incumbent and the bound."""
        metrics: dict[str, Any] = {"first_fit_s": self.greedy, "programs": self.program.solves if self.program else 0}
        values = None if self.circuits is None else {"circuits": self.circuits.astype(float)}
        ending = self.ending
        if values is not None and ending == Termination.OPTIMAL and self.bound < self.value * (1 - 1e-9):
            ending = Termination.TOLERANCE
        return Answer(
            ending, values=values, bound=self.bound, bound_source=self.source, metrics=metrics,
            solver={"name": "ring-sets", "version": None, "algorithm": "prices of sets, whole flows", "options": {}},
        )  # fmt: skip


RING_SETS = Method(
    name="ring-sets",
    title="Sets of disjoint arcs",
    summary="circuits on the ring over sets of disjoint arcs: linear programs bound the time, integer ones attain it",
    applies=lambda formulation: formulation.name == "sipml.ring-wavelengths",
    parameters=(Parameter("tries", int, default=8, help="attainable times tried in integers, upwards from the bound"),),
    run=run_ring_sets,
)


METHODS = (
    Method(
        name="koenig-bisection",
        title="Bisection and edge colouring",
        summary="optimal circuits over optical switches in polynomial time, with the binding server as certificate",
        applies=lambda formulation: formulation.name == "sipml.ocs-circuits",
        run=run,
    ),
    RING_FIRST_FIT,
    RING_SETS,
)

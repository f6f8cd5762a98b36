"""Wavelengths on a ring over sets of disjoint arcs: the linear relaxation refutes times, whole flows attain them.

At a time T every pair needs n_p(T) circuits. The linear program over walks (one flow a commodity, whatever the number
of wavelengths) finds the least excess over W wavelengths; where it is positive, the duals of its ``serve`` rows are
prices of pairs, and a dynamic program over the heaviest sets turns them into a bound on T of our own. Bisection over
the times that whole circuits can attain finds the largest that is refuted. From there upwards the same program in
whole numbers is asked, until it attains a time: if that is the next one, it is proven optimal.

Wavelengths on a ring by first fit: longest circuits first, the shorter way first, the first wavelength that is free.

For a time T every pair needs n_p(T) circuits; first fit places them or not. The times that whole circuits can attain
are bisected for one at which it does, between the analytic bound and one circuit a pair.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.formulations.model import Parameter
from opticoll.formulations.sipml.arc_sets import strip
from opticoll.formulations.sipml.ring_wavelengths import circuits_of_sets, light_rows, serve_rows, walk_rows
from opticoll.solvers.isolation import solve_here
from opticoll.solvers.methods.method import Answer, Method
from opticoll.solvers.standard_form import StandardForm
from opticoll.solvers.task import SolveRequest, Termination

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from opticoll.formulations.sipml.ring_wavelengths import RingTraffic
    from opticoll.solvers.methods.method import Context

    I64 = NDArray[np.int64]
    from opticoll.solvers.task import Outcome


def attainable_times(data: RingTraffic) -> NDArray[np.float64]:
    """Times V_p / (c B) of whole circuits between the analytic bound and one circuit a pair, ascending [s].

    The last is that of the largest transfer over one circuit, which every assignment attains.
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
    found: list[tuple[int, int, int]] = []
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
                    found.append((p, way, w))
                    break
            else:
                return None
    return np.array(found, dtype=np.int64).reshape(-1, 3)


def search(data: RingTraffic, context: Context | None = None) -> tuple[I64, float] | None:
    """The circuits of the least time that bisection finds, and that time [s]; None if not one each is placed."""
    times = attainable_times(data)
    best = first_fit(data, data.transfers.needs(float(times[-1])))
    if best is None:
        return None
    low, high = -1, times.size - 1
    while high - low > 1:
        if context is not None:
            context.remaining()
        middle = (low + high) // 2
        found = first_fit(data, data.transfers.needs(float(times[middle])))
        if found is None:
            low = middle
        else:
            best, high = found, middle
    return best, float(times[high])


def run_ring_first_fit(context: Context) -> Answer:
    """First fit at bisected times."""
    found = search(context.data, context)
    solver: dict[str, Any] = {
        "name": "ring-first-fit",
        "version": None,
        "algorithm": "longest first, first fit",
        "options": {},
    }
    if found is None:
        return Answer(
            Termination.ITERATION_LIMIT, solver=solver, message="first fit places not even one circuit a pair"
        )
    return Answer(Termination.TOLERANCE, values={"circuits": found[0].astype(float)}, solver=solver)


RING_FIRST_FIT = Method(
    name="ring-first-fit",
    title="First fit on the ring",
    summary="circuits on the ring by first fit, longest first, at bisected times; certified by segments and cuts",
    applies=lambda formulation: formulation.name == "sipml.ring-wavelengths",
    run=run_ring_first_fit,
)


#: Excess of wavelengths above which a linear program counts as refuting a time (the bound is recomputed anyway).
EXCESS = 1e-6


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

    def solve(self, needs: I64, *, whole: bool) -> Outcome:
        """The least excess for these needs; in whole numbers no excess is allowed, only feasibility asked."""
        lower = self.lower.copy()
        lower[self.served] = needs
        cost = np.zeros(self.columns)
        cost[-1] = 1.0
        top = np.full(self.columns, np.inf)
        integer = np.zeros(self.columns, dtype=bool)
        if whole:
            integer[:-1] = True
            top[-1] = 0.0
            cost[:] = 0.0
        form = StandardForm(self.A, lower, self.upper, np.zeros(self.columns), top, cost, "min", 0.0, integer)
        task = self.context.task
        self.solves += 1
        return solve_here(form, "highs", SolveRequest(self.context.remaining(), task.threads, 1e-7, task.seed))

    def prices(self, needs: I64) -> NDArray[np.float64] | None:
        """Prices of pairs that speak against these needs, if the relaxation cannot meet them."""
        outcome = self.solve(needs, whole=False)
        if outcome.termination != Termination.OPTIMAL or outcome.objective is None or outcome.row_duals is None:
            return None
        return np.abs(np.asarray(outcome.row_duals)[self.served]) if outcome.objective > EXCESS else None

    def circuits(self, needs: I64) -> I64 | None:
        """Circuits that meet these needs, if whole flows do within the limits."""
        outcome = self.solve(needs, whole=True)
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
    """Refute from below, attain from above."""
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
    def __init__(self, context: Context, data: RingTraffic, times: NDArray[np.float64]) -> None:
        self.context, self.data, self.times = context, data, times
        self.bound, self.value = data.least, np.inf
        self.source = "analytic"
        self.circuits: I64 | None = None
        self.ending = Termination.OPTIMAL
        self.greedy: float | None = None
        self.program: _Program | None = None
        self.most = int(context.parameters["tries"])

    def first_fit(self) -> None:
        """A first assignment."""
        found = search(self.data, self.context)
        if found is not None:
            self.circuits, self.value = found
            self.greedy = self.value
            self.context.save(self.answer(), self.value)

    def refute(self) -> None:
        """Bisect for the largest attainable time that the relaxation refutes; the bound is recomputed from prices."""
        self.program = _Program(self.context)
        low = int(np.searchsorted(self.times, self.bound)) - 1
        high = self.times.size if np.isinf(self.value) else int(np.searchsorted(self.times, self.value))
        probe = low + 1  # the analytic bound is often the answer
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
        """Whole flows at the next attainable times."""
        assert self.program is not None
        stop = self.times.size if np.isinf(self.value) else int(np.searchsorted(self.times, self.value))
        for k in range(self.start, min(stop, self.start + self.most)):
            found = self.program.circuits(self.data.transfers.needs(float(self.times[k])))
            if found is not None:
                self.circuits, self.value = found, float(self.times[k])
                return
        if self.circuits is None:
            self.ending = Termination.ITERATION_LIMIT

    def answer(self) -> Answer:
        """What has been found and proven."""
        metrics: dict[str, Any] = {"first_fit_s": self.greedy, "programs": self.program.solves if self.program else 0}
        values = None if self.circuits is None else {"circuits": self.circuits.astype(float)}
        done = self.ending
        if values is not None and done == Termination.OPTIMAL and self.bound < self.value * (1 - 1e-9):
            done = Termination.TOLERANCE
        return Answer(
            done, values=values, bound=self.bound, bound_source=self.source, metrics=metrics,
            solver={"name": "ring-sets", "version": None, "algorithm": "prices of sets, whole flows", "options": {}},
        )  # fmt: skip


RING_SETS = Method(
    name="ring-sets",
    title="Sets of disjoint arcs",
    summary="circuits on the ring over sets of disjoint arcs: recomputed prices refute times, whole flows attain them",
    applies=lambda formulation: formulation.name == "sipml.ring-wavelengths",
    parameters=(Parameter("tries", int, default=8, help="attainable times asked in whole numbers, from the bound up"),),
    run=run_ring_sets,
)


METHODS = (
    RING_FIRST_FIT,
    RING_SETS,
)

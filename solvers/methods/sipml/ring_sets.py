"""Method ``ring-sets``: circuits on a ring as sets that share a wavelength, by column generation and branching."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.formulations.index import Index
from opticoll.formulations.parameters import Parameter
from opticoll.formulations.sipml.walks import circuits_of_sets, strip
from opticoll.formulations.standard_form import StandardForm
from opticoll.solvers.methods.method import Answer, Beyond, Method
from opticoll.solvers.methods.sipml.ring_first_fit import attainable_times, search
from opticoll.solvers.process.isolation import solve_here
from opticoll.solvers.task import SolveRequest, Termination

if TYPE_CHECKING:
    from opticoll.formulations.sipml.ring_wavelengths import RingTraffic
    from opticoll.instances.topology import F64, I64
    from opticoll.solvers.methods.method import Context
    from opticoll.solvers.task import Outcome


#: Excess of wavelengths above which a time counts as infeasible in the linear program; the bound is recomputed anyway.
EXCESS = 1e-6


class _Program:
    """min z  s.t.  walk = 0,  light - z <= W,  serve >= needs;  z >= 0: over f, idle, over, z."""

    def __init__(self, context: Context) -> None:
        import scipy.sparse as sp

        self.context, self.data = context, context.data
        data: RingTraffic = self.data
        walk, pairs = data.walks, data.transfers.pairs
        legs = {"f": walk.circuits, "idle": walk.idle, "over": walk.crossings}
        self.sizes = {name: len(one) for name, one in legs.items()}
        self.first = dict(zip(legs, np.cumsum([0, *self.sizes.values()]).tolist(), strict=False))
        self.columns = sum(self.sizes.values()) + 1
        # A crossing circuit ends a walk at its tail and starts one at its head.
        inflow = [walk.nodes.of(one, head="node") - walk.nodes.of(one, tail="node") for one in legs.values()]
        first = [one.where((one["start"] == 0) & (one["tail"] == 0)) for one in (walk.circuits, walk.idle)]
        light = [Index.grid(way=2).of(one) for one in (*first, walk.crossings)]
        served = [Index.grid(pair=pairs).of(one) for one in (walk.circuits, walk.crossings)]
        blocks = [[*inflow, None], [*light, -np.ones((2, 1))], [served[0], None, served[1], None]]
        self.A = sp.csc_array(sp.block_array(blocks))
        offset = self.A.shape[0]
        self.served = slice(len(walk.nodes) + 2, offset)
        self.lower = np.concatenate([np.zeros(len(walk.nodes)), np.full(2, -np.inf), np.zeros(pairs)])
        wide = np.full(2, float(data.wavelengths))
        self.upper = np.concatenate([np.zeros(len(walk.nodes)), wide, np.full(pairs, np.inf)])
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
            ending,
            values=values,
            bound=self.bound,
            bound_source=self.source,
            metrics=metrics,
            solver={"algorithm": "prices of sets, whole flows"},
        )


METHOD = Method(
    name="ring-sets",
    title="Sets of disjoint arcs",
    summary="circuits on the ring over sets of disjoint arcs: linear programs bound the time, integer ones attain it",
    serves=("sipml.ring-wavelengths",),
    # n=12, W=128 971 variables in 2.7 s; n=14 1,459 in 5.3 s, n=16 2,083 not solved.
    # model=arcs: n=8, W=32 3,641 in 1.9 s; n=8, W=64 7,225 in 4.1 s, n=8, W=128 not solved.
    takes_over=(
        Beyond("sipml.ring-wavelengths", 1_000, 5_000, first=True),
        Beyond("sipml.ring-wavelengths", 4_000, 20_000, where={"model": "arcs"}, first=True),
    ),
    parameters=(Parameter("tries", int, default=8, help="attainable times tried in integers, upwards from the bound"),),
    run=run_ring_sets,
)

"""Method ``certified-pdhg``: matrix-free PDHG with exact repair and a shortest-path certificate."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, cast

import numpy as np

from opticoll.errors import MethodMismatch
from opticoll.formulations.parameters import Parameter
from opticoll.solvers.methods.method import Answer, Beyond, Method
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opticoll.formulations.alltoall.master import Master
    from opticoll.formulations.flows.concurrent_flow import ConcurrentFlow
    from opticoll.formulations.model import Formulation
    from opticoll.instances.topology import F64
    from opticoll.solvers.methods.flows.flow_orbits import Orbits
    from opticoll.solvers.methods.flows.pdhg_iteration import TimeBounds
    from opticoll.solvers.methods.method import Context
    from opticoll.solvers.task import Task


#: Single precision is enough for this tolerance or larger ones.
SINGLE = 5e-6
#: Below this many flow variables a pass takes less time than waking a thread.
THREADED = 400_000
#: Below these tolerances, interior point on the arcs that remain (``screened-lp``) gains the next digits faster: with
#: symmetries, and without. Measured on GK(N,4), N = 64 ... 1000, and on random regular graphs, see
#: notes/benchmarks-pdhg.md.
SMALLEST_TOL, SMALLEST_TOL_ALONE = 1e-5, 1e-6
#: Stated models of more variables take longer than this method.
BEYOND_VARIABLES = 35_000
NAME = "certified-pdhg"
#: Largest share of the time spent on saving answers.
SAVING = 0.1


def run(context: Context) -> Answer:
    """Certified first-order method for concurrent flows grouped by source, without a matrix.

    The paper's text solves N = 1000, d = 4 in 40 minutes with a commercial interior-point code. This method works on
    the (arc x source) array itself, with two numbers per entry:

    1. *Iteration*: the reflected Halpern variant of the primal-dual hybrid gradient method on the time form min T
       (:mod:`opticoll.solvers.methods.flows.pdhg_iteration`), with restarts at a fixed share of the steps and an
       adaptive primal weight (Applegate et al. 2021; Lu & Yang 2024).
    2. *Lower bound on T*: shortest paths under the arc lengths of the iterate.
    3. *Upper bound*: every source's flow made exactly feasible in double precision (cycles cancelled, demands rerouted
       in proportion to each vertex's incoming flow).
    4. *Feasibility polishing*, once the lower bound has settled.
    5. *Symmetry*: where verified automorphisms join sources to orbits
       (:mod:`opticoll.solvers.methods.flows.flow_orbits`), one source per orbit is solved, and its flow
       stands for those of the others (:mod:`opticoll.formulations.flows.symmetric_flow`).

    Both bounds are reported as they improve; the best flow and the best lengths are kept. The runner recomputes both
    with code that is independent of the method (residuals by sparse products, Dijkstra on the lengths).

    The first run on a machine compiles the kernels (about 7 s on one core, then cached next to the source).
    """
    from opticoll.solvers.methods.flows.flow_orbits import find

    refuse(context.data.flow, NAME)
    task = context.task
    precision = context.parameters["precision"]
    single = precision == "single" or (precision == "auto" and task.tol >= SINGLE)
    orbits = find(context.data.flow) if context.parameters["symmetry"] else None
    keeper, termination, message = iterate(
        context,
        NAME,
        orbits,
        task.tol,
        single=single,
        steps=int(context.parameters["steps"]),
    )
    return keeper.last(termination, message)


def iterate(
    context: Context, name: str, orbits: Orbits | None, tol: float, *, single: bool, steps: int
) -> tuple[Keeper, Termination, str]:
    """Let the iteration close the gap to ``tol``, reporting as it goes.

    Parameters
    ----------
    context, name
        The problem, and the name of the method.
    orbits
        Its reduction, if any.
    tol, single, steps
        Gap to reach, precision, most iterations.

    Returns
    -------
    The keeper of the results, the termination, and a message.
    """
    from opticoll.solvers.methods.flows.pdhg_iteration import Saddle, TimeBounds
    from opticoll.solvers.methods.flows.pdhg_kernels import Team

    data: ConcurrentFlow = context.data.flow if orbits is None or orbits.trivial else orbits.reduced
    begun = time.monotonic()
    threads = context.task.threads if data.topology.arcs * data.groups >= THREADED else 1
    keeper = Keeper(context, name)
    termination, message = Termination.TOLERANCE, ""
    with Team(threads) as team:
        saddle = Saddle(data, team, np.float32 if single else np.float64, orbits)
        closing = TimeBounds(saddle, tol, context.remaining, keeper.change, steps)
        keeper.closing = closing
        try:
            closing.run()
        except TimeoutError:
            termination, message = Termination.TIME_LIMIT, "the time limit ended the iteration"
        else:
            if closing.closed:
                termination = Termination.OPTIMAL
            elif closing.steps >= closing.most_steps:
                termination = Termination.ITERATION_LIMIT
            else:
                message = f"the gap stays at {closing.gap:.1e}, the limit of this precision"
    keeper.iteration_s = time.monotonic() - begun
    return keeper, termination, message


def refuse(data: ConcurrentFlow, name: str) -> None:
    """Refuse flow problems that the method does not support.

    Raises
    ------
    MethodMismatch
        If an arc is blocked that does not enter its group's source, or a capacity is not positive.
    """
    others = data.barred is not None and np.count_nonzero(data.barred) != data.topology.in_degree[data.sources].sum()
    if data.equality or others or not (data.capacity > 0).all():
        msg = f"{name} supports only flows by source with positive capacities; use time-form for this instance"
        raise MethodMismatch(msg)


class Keeper:
    """Turns the bounds into answers, and saves them in case the process is killed.

    Parameters
    ----------
    context
        Receives the answers.
    name
        Name of the method.
    """

    def __init__(self, context: Context, name: str) -> None:
        self.context, self.name = context, name
        self.iteration_s = 0.0
        self.closing: TimeBounds | None = None
        self._began = time.monotonic()
        self._spent = 0.0
        self._stale = self._kept = False

    def change(self, flows: bool) -> None:
        """Report new bounds; save the flows too if they are the first, or that has not taken too much of the time."""
        assert self.closing is not None
        start = time.monotonic()
        self._stale |= flows
        if self._stale and (not self._kept or self._spent <= SAVING * (start - self._began)):
            answer = self.answer(Termination.INTERRUPTED)
            answer.values = self.flows(self._buffer())
            self._kept |= answer.values is not None
            self._stale = False
        else:
            answer = self.answer(Termination.INTERRUPTED)
        self.context.save(answer, None if not np.isfinite(self.closing.upper) else 1.0 / self.closing.upper)
        self._spent += time.monotonic() - start

    def _buffer(self) -> F64 | None:
        """An array for a copy of the best flow, if there is one."""
        closing = self.closing
        if closing is None or closing.flows is None:
            return None
        return np.empty_like(closing.flows) if closing.spare is None else closing.spare

    def flows(self, out: F64 | None) -> dict[str, F64] | None:
        """The best flow, scaled to the capacities and written to ``out``, in place if possible."""
        closing = self.closing
        assert closing is not None
        if closing.flows is None or out is None:
            return None
        np.divide(closing.flows, closing.upper, out=out)
        orbits = closing.saddle.orbits
        if orbits is not None:
            np.divide(out, orbits.weight, out=out)
            out = cast("F64", orbits.symmetric(out))
        return {"g": out, "F": np.asarray(1.0 / closing.upper)}

    def answer(self, termination: Termination) -> Answer:
        """The best lengths and the counts, without the flow."""
        closing = self.closing
        assert closing is not None
        answer = Answer(termination, bound=1.0 / closing.lower if closing.lower > 0 else None)
        if closing.lengths is not None:
            answer.duals = {"capacity": closing.lengths}
        kind = np.dtype(closing.saddle.precision).name
        answer.solver = {
            "name": self.name,
            "algorithm": "reflected Halpern PDHG, matrix-free",
            "options": {
                "precision": kind,
                "threads": closing.saddle.team.size,
            },
        }
        answer.metrics = self.counts()
        return answer

    def last(self, termination: Termination, message: str) -> Answer:
        """The final answer."""
        assert self.closing is not None
        answer = self.answer(termination)
        answer.values = self.flows(self.closing.flows)
        answer.message = message
        answer.metrics = {**answer.metrics, "iteration_s": self.iteration_s}
        return answer

    def counts(self) -> dict[str, int]:
        """Numbers of steps, restarts and other events of the iteration."""
        closing = self.closing
        assert closing is not None
        orbits = closing.saddle.orbits
        counts = {"iterations": closing.steps, "restarts": closing.restarts, "polishes": closing.polishes}
        return counts | ({} if orbits is None else orbits.sizes)


def reaches_tolerance(problem: Formulation, task: Task, _size: Mapping[str, int]) -> bool:
    """Whether this method closes the gap sooner than ``screened-lp``."""
    from opticoll.solvers.methods.flows.flow_orbits import source_orbits

    if task.tol >= SMALLEST_TOL or task.tol < SMALLEST_TOL_ALONE:
        return task.tol >= SMALLEST_TOL
    flow = cast("Master", problem).flow
    return 2 * source_orbits(flow) > np.unique(flow.sources).size


METHOD = Method(
    name=NAME,
    title="Matrix-free PDHG with exact repair and a shortest-path certificate",
    summary="concurrent flows by source up to thousands of ranks, both bounds closing to the tolerance",
    serves=("alltoall.master",),
    takes_over=(Beyond("alltoall.master", BEYOND_VARIABLES, suits=reaches_tolerance),),
    parameters=(
        Parameter(
            "precision",
            str,
            default="auto",
            help="precision of the iterate; auto: single for tol of 5e-6 or more",
            choices=("auto", "single", "double"),
        ),
        Parameter("steps", int, default=1_000_000, help="largest number of iterations"),
        Parameter("symmetry", bool, default=True, help="work on one source for each orbit of verified automorphisms"),
    ),
    run=run,
)

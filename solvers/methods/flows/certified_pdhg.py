"""Method ``certified-pdhg``: matrix-free PDHG with exact repair and a shortest-path certificate."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import BadFile, MethodMismatch
from opticoll.formulations.model import Parameter
from opticoll.formulations.variables import Array, named_arrays
from opticoll.instances.readers.reading import PREFIX, pinned, read_pinned
from opticoll.solvers.methods.method import Answer, Method
from opticoll.solvers.solution import MAX_BYTES, read_document
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from pathlib import Path

    from opticoll.formulations.flows.concurrent_flow import ConcurrentFlow
    from opticoll.formulations.flows.flow_orbits import Orbits
    from opticoll.instances.topology import F64, I64
    from opticoll.solvers.methods.flows.pdhg_iteration import TimeBounds
    from opticoll.solvers.methods.method import Context


class StartFile(str):
    """Path of a solution document, pinned to its contents; empty for none."""

    __slots__ = ()

    def __new__(cls, text: str) -> StartFile:
        """Pin a file to its current contents."""
        path = str(text).strip()
        return super().__new__(cls, path and pinned(f"{PREFIX}{path}", MAX_BYTES).removeprefix(PREFIX))


@dataclass(frozen=True, eq=False)
class Start:
    """Unit flows, ``(m, |K|)``, and arc lengths, ``(m,)``, on the arcs of the problem; lengths may be missing."""

    flows: F64
    lengths: F64 | None


def read_start(name: str, data: ConcurrentFlow) -> Start:
    """Read a solution document of ``alltoall.master`` and transfer it to the arcs of ``data``.

    Arcs missing from ``data`` are dropped; new ones carry no flow and have the mean length.

    Raises
    ------
    BadFile
        If it is not such a document, or has other vertices or sources.
    """
    path, _ = read_pinned(name, MAX_BYTES, "start", "name a solution file that solve --solution wrote")
    topology = data.topology
    document = read_document(path)
    if document.get("formulation") != "alltoall.master":
        msg = f"{path}: start needs a solution of alltoall.master, not of {document.get('formulation')!r}"
        raise BadFile(msg)
    tail, head = _arcs(document.get("arcs"), path)
    # The file's own arcs, and as many sources as the problem has.
    declared = {"g": Array((tail.size, data.groups)), "F": Array()}
    try:
        values = named_arrays(document, "values", path, lambda _: declared)
    except BadFile as wrong:
        msg = f"{wrong}; start from a solution for {data.groups} sources, the number of {topology.spec}"
        raise BadFile(msg) from None
    flows, F = values["g"], values["F"]
    if not F > 0:
        msg = f"{path}: F is {float(F):g}; start from a solution with F above 0"
        raise BadFile(msg)
    if max(tail.max(initial=0), head.max(initial=0)) >= topology.n:
        msg = f"{path}: an arc ends outside the {topology.n} vertices of {topology.spec}; start from another solution"
        raise BadFile(msg)
    ours, theirs = _common(topology.tail, topology.head, tail, head, topology.n)
    unit = np.zeros((topology.arcs, data.groups))
    unit[ours] = np.maximum(flows[theirs], 0.0) / float(F)
    unit[data.blocked] = 0.0
    lengths = None
    if "duals" in document:
        duals = document["duals"]
        if not isinstance(duals, dict) or "capacity" not in duals:
            msg = f"{path}: 'duals' must have 'capacity'; write the file with solve --solution"
            raise BadFile(msg)
        capacity = {"capacity": Array(tail.shape)}
        prices = named_arrays({"duals": {"capacity": duals["capacity"]}}, "duals", path, lambda _: capacity)["capacity"]
        prices = np.maximum(prices, 0.0)
        if prices.max(initial=0.0) > 0:
            lengths = np.full(topology.arcs, prices.mean())
            lengths[ours] = prices[theirs]
    return Start(unit, lengths)


def _arcs(entries: object, path: Path) -> tuple[I64, I64]:
    valid = isinstance(entries, list) and all(
        isinstance(e, list) and len(e) == 3 and type(e[0]) is int and type(e[1]) is int and min(e[0], e[1]) >= 0
        for e in entries
    )
    if not valid or not entries:
        msg = f"{path}: 'arcs' must list [tail, head, capacity]; write the file with solve --solution"
        raise BadFile(msg)
    assert isinstance(entries, list)
    try:
        ends = np.array([e[:2] for e in entries], dtype=np.int64)
    except OverflowError:
        msg = f"{path}: an arc ends at a vertex number that no topology has"
        raise BadFile(msg) from None
    return ends[:, 0], ends[:, 1]


def _common(tail: I64, head: I64, other_tail: I64, other_head: I64, n: int) -> tuple[I64, I64]:
    """Positions of the arcs that both lists contain; parallel arcs are paired in order."""
    key, other_key = tail * n + head, other_tail * n + other_head
    most = max(key.size, other_key.size)
    _, ours, theirs = np.intersect1d(
        key * most + _before(key), other_key * most + _before(other_key), assume_unique=True, return_indices=True
    )
    return ours, theirs


def _before(key: I64) -> I64:
    """Number of equal keys before each key."""
    order = np.argsort(key, kind="stable")
    same = key[order]
    begins = np.flatnonzero(np.diff(same, prepend=same[:1] - 1))
    count = np.empty(key.size, dtype=np.int64)
    count[order] = np.arange(key.size) - np.repeat(begins, np.diff(np.append(begins, key.size)))
    return count


#: Single precision is enough for this tolerance or larger ones.
SINGLE = 5e-6
#: Below this many flow variables a pass takes less time than waking a thread.
THREADED = 400_000
NAME = "certified-pdhg"
#: Largest share of the time spent on saving answers.
SAVING = 0.1


def run(context: Context) -> Answer:
    """Certified first-order method for concurrent flows grouped by source, without a matrix.

    The paper's text solves N = 1000, d = 4 in 40 minutes with a commercial interior-point code. This method works on
    the (arc x source) array itself, with two numbers per entry:

    1. *Iteration*: the reflected Halpern variant of the primal-dual hybrid gradient method on the time form min T
       (:mod:`opticoll.solvers.methods.flows.pdhg_iteration`), with restarts on the fixed-point residual and an adaptive
       primal weight (Applegate et al. 2021; Lu & Yang 2024).
    2. *Lower bound on T*: shortest paths under the arc lengths of the iterate.
    3. *Upper bound*: every source's flow made exactly feasible in double precision (cycles cancelled, demands rerouted
       in proportion to each vertex's incoming flow).
    4. *Feasibility polishing*, once the lower bound has settled.
    5. *Warm start*, on request, from the solution document of the same or a similar instance. Arcs are matched by their
       ends (parallel ones in order), so capacities may differ and arcs may be missing or new. The document affects
       the time only, since bounds are computed from the iterate.
    6. *Symmetry*: where verified automorphisms join sources to orbits (:mod:`opticoll.formulations.flows.flow_orbits`),
       one source per orbit is solved and its flow lifted at the end.

    Both bounds are reported as they improve; the best flow and the best lengths are kept. The runner recomputes both
    with code that is independent of the method (residuals by sparse products, Dijkstra on the lengths).

    The first run on a machine compiles the kernels (about 7 s on one core, then cached next to the source).
    """
    from opticoll.formulations.flows.flow_orbits import find

    refuse(context.data, NAME)
    task = context.task
    precision = context.parameters["precision"]
    single = precision == "single" or (precision == "auto" and task.tol >= SINGLE)
    orbits = find(context.data) if context.parameters["symmetry"] else None
    keeper, termination, message = iterate(
        context,
        NAME,
        orbits,
        task.tol,
        single=single,
        steps=int(context.parameters["steps"]),
        start=str(context.parameters["start"]),
    )
    return keeper.last(termination, message)


def iterate(
    context: Context, name: str, orbits: Orbits | None, tol: float, *, single: bool, steps: int, start: str = ""
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
    start
        Solution document to start from, if any.

    Returns
    -------
    The keeper of the results, the termination, and a message.
    """
    from opticoll.solvers.methods.flows.pdhg_iteration import Saddle, TimeBounds
    from opticoll.solvers.methods.flows.pdhg_kernels import Team

    near = read_start(start, context.data) if start else None
    data: ConcurrentFlow = context.data if orbits is None else orbits.reduced
    begun = time.monotonic()
    threads = context.task.threads if data.topology.arcs * data.groups >= THREADED else 1
    keeper = Keeper(context, name)
    termination, message = Termination.TOLERANCE, ""
    with Team(threads) as team:
        saddle = Saddle(data, team, np.float32 if single else np.float64, orbits, near)
        del near
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
    blocked = int(np.count_nonzero(data.blocked))
    own = data.topology.in_degree[data.sources].sum()
    if data.equality or blocked != own or not (data.capacity > 0).all():
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
        self._stale = False

    def change(self, flows: bool) -> None:
        """Report new bounds; save the flows too if that has not taken too much of the time so far."""
        assert self.closing is not None
        start = time.monotonic()
        self._stale |= flows
        if self._stale and self._spent <= SAVING * (start - self._began):
            answer = self.answer(Termination.INTERRUPTED)
            answer.values = self.flows(None if self.closing.flows is None else np.empty_like(self.closing.flows))
            self._stale = False
        else:
            answer = self.answer(Termination.INTERRUPTED)
        self.context.save(answer, None if not np.isfinite(self.closing.upper) else 1.0 / self.closing.upper)
        self._spent += time.monotonic() - start

    def flows(self, out: F64 | None) -> dict[str, F64] | None:
        """The best flow, scaled to the capacities and written to ``out`` (in place if possible) unless it is lifted."""
        closing = self.closing
        assert closing is not None
        if closing.flows is None or out is None:
            return None
        np.divide(closing.flows, closing.upper, out=out)
        orbits = closing.saddle.orbits
        if orbits is not None:
            np.divide(out, orbits.weight, out=out)
            out = orbits.lift(out)
        return {self.context.data.flow: out, "F": np.asarray(1.0 / closing.upper)}

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


METHOD = Method(
    name=NAME,
    title="Matrix-free PDHG with exact repair and a shortest-path certificate",
    summary="concurrent flows by source up to thousands of ranks, both bounds closing to --tol",
    applies=lambda formulation: formulation.name == "alltoall.master",
    parameters=(
        Parameter(
            "precision",
            str,
            default="auto",
            help="precision of the iterate; auto: single for tol of 5e-6 or more",
            choices=("auto", "single", "double"),
        ),
        Parameter("steps", int, default=1_000_000, help="largest number of iterations"),
        Parameter("start", StartFile, default=StartFile(""), help="solution of a similar instance to start from"),
        Parameter("symmetry", bool, default=True, help="work on one source for each orbit of verified automorphisms"),
    ),
    run=run,
    bytes_per_variable=40.0,
)

"""Method ``degree-aware``: SiP-ML's placement heuristic (Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import NotApplicable, refuse
from opticoll.formulations import rounding
from opticoll.formulations.parameters import Parameter
from opticoll.formulations.sipml.placement import Placement
from opticoll.formulations.sipml.placement_solution import starts
from opticoll.instances import parse
from opticoll.solvers.methods.method import Answer, Beyond, Method
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opticoll.formulations.sipml.placement import Placement
    from opticoll.instances.topology import F64, I64
    from opticoll.solvers.methods.method import Context
    from opticoll.types import Json


#: GPUs among which the paper's heuristic places a sub-operation, see :func:`run`.
RANGES = ("text", "printed", "spanned")
#: Default limit on moves of the paper's repair, per sub-operation.
MOVES = 20
#: Largest number of sub-operations for which the paper's repair detects cycles.
REMEMBERED = 1000


class Repair:
    """A partial placement with the paper's forward-backward repair.

    ``range_of`` is one of :data:`RANGES`, the GPUs among which a sub-operation is placed.
    """

    def __init__(self, data: Placement, moves: int, range_of: str = "text") -> None:
        self.range_of = range_of
        graph, k = data.graph, data.devices
        self.data, self.k, self.delta, self.left = data, k, data.delta, moves
        self.tail, self.first = graph.tail.tolist(), graph.first_in.tolist()
        self.delay, self.duration = data.delay.tolist(), graph.duration.tolist()
        order = np.argsort(graph.tail, kind="stable")
        self.head = graph.head[order].tolist()
        self.first_out = np.searchsorted(graph.tail[order], np.arange(data.n + 1)).tolist()
        self.device = [-1] * data.n
        full = (1 << k) - 1
        window = (1 << (self.delta + 1)) - 1
        #: GPUs in reach of g, as bits.
        self.ahead = [((window << g) | (window << g >> k)) & full for g in range(k)]
        self.full = full
        self.moved = self.conflicts = 0
        self.cycled = False
        self.occupied, self.held = data.occupied.tolist(), [0.0] * k
        self.room = data.memory * (1 + 1e-9) if data.memory else np.inf
        #: Sub-operation for which no GPU in reach had enough memory.
        self.unplaced: int | None = None

    def inputs(self, v: int) -> list[int]:
        """Sub-operations that v depends on."""
        return self.tail[self.first[v] : self.first[v + 1]]

    def outputs(self, v: int) -> list[int]:
        """Sub-operations that depend on v."""
        return self.head[self.first_out[v] : self.first_out[v + 1]]

    def reachable(self, v: int) -> int:
        """GPUs in reach of all placed inputs, as bits."""
        bits = self.full
        for g in {self.device[u] for u in self.inputs(v)}:
            bits &= self.ahead[g]
        return bits

    def candidates(self, v: int) -> int:
        """GPUs among which v is placed, as bits; none for a conflict."""
        places = [self.device[u] for u in self.inputs(v)]
        if self.range_of == "text" or not places:
            return self.reachable(v)
        low, high = min(places), max(places)
        first, last = (high, low + self.delta) if self.range_of == "printed" else (low, high + self.delta)
        bits = 0
        for position in range(first, min(last, first + self.k - 1) + 1):
            bits |= 1 << position % self.k
        return bits

    def out_of_reach(self, u: int, v: int) -> bool:
        """Whether v is beyond the reach of u."""
        return (self.device[v] - self.device[u]) % self.k > self.delta

    def nearest(self, g: int, bits: int) -> int:
        """The GPU of a set nearest to g on the circle."""
        k = self.k
        return min((h for h in range(k) if bits >> h & 1), key=lambda h: (min((h - g) % k, (g - h) % k), h))

    def nearest_behind(self, g: int, reached: int) -> int:
        """The GPU nearest to g on the circle that has ``reached`` in reach, at most Delta before it."""
        down, up = (g - reached) % self.k, (reached - self.delta - g) % self.k
        return reached if down <= up else (reached - self.delta) % self.k

    def most_inputs(self, v: int, free: list[float]) -> int:
        """The GPU in reach of the most inputs; ties go to the one that is free first."""
        votes = [0] * self.k
        for u in self.inputs(v):
            bits = self.ahead[self.device[u]]
            for h in range(self.k):
                votes[h] += bits >> h & 1
        return min(range(self.k), key=lambda h: (-votes[h], free[h], h))

    def repair(self, v: int) -> bool:
        """Move inputs backward and dependants forward until all are in reach; False on a cycle or the limit."""
        self.conflicts += 1
        last = v
        met: set[tuple[tuple[int, ...], tuple[int, ...]]] = set()
        back, forth = [v], set()
        while True:
            while back:  # backward: move inputs within reach of their dependants
                x = back.pop()
                for u in self.inputs(x):
                    if self.out_of_reach(u, x):
                        self.device[u] = self.nearest_behind(self.device[u], self.device[x])
                        back.append(u)
                        forth.add(u)
                        self.left -= 1
                        self.moved += 1
                if self.left < 0:
                    return False
            if not forth:
                return True
            moved, forth = sorted(forth), set()
            if self.data.n <= REMEMBERED:
                state = (tuple(self.device), tuple(moved))
                self.cycled = state in met
                if self.cycled:
                    return False
                met.add(state)
            for u in moved:  # forward: move dependants within reach of moved inputs
                for x in self.outputs(u):
                    if x <= last and self.device[x] >= 0 and self.out_of_reach(u, x):
                        bits = self.reachable(x)
                        self.device[x] = self.nearest(self.device[x], bits or self.ahead[self.device[u]])
                        self.left -= 1
                        forth.add(x)
                        back.append(x)
                if self.left < 0:
                    return False

    def recount(self, placed: int) -> bool:
        """Recount the memory in use after a repair; return False if the first ``placed`` exceed that of some GPU."""
        self.held = [0.0] * self.k
        for v in range(placed):
            self.held[self.device[v] % self.k] += self.occupied[v]
        if max(self.held) > self.room:
            self.unplaced = placed - 1
        return self.unplaced is None

    def _earliest(self, v: int, gpus: Iterable[int], free: list[float], end: list[float]) -> tuple[float, int]:
        """Start and GPU where a sub-operation can begin first, the first of several; -1 if no memory suffices."""
        k, inputs = self.k, [(self.tail[e], self.delay[e]) for e in range(self.first[v], self.first[v + 1])]
        latest = max((end[u] for u, _ in inputs), default=0.0)
        best, g = np.inf, -1
        for h in gpus:
            if self.held[h] + self.occupied[v] <= self.room:
                start = max(free[h], latest)
                if self.data.bandwidth:
                    start = max([start, *(end[u] + delay for u, delay in inputs if self.device[u] % k != h)])
                if start < best:
                    best, g = start, h
        return best, g

    def place(self, context: Context | None = None) -> bool:
        """Run Algorithm 1; False if the repair fails or memory runs out."""
        data = self.data
        free, end = [0.0] * self.k, [0.0] * data.n
        for v in range(data.n):
            if context is not None and v % 1000 == 0:
                context.remaining()
            bits = self.candidates(v)
            repaired = not bits
            if bits:
                best, g = self._earliest(v, [h for h in range(self.k) if bits >> h & 1], free, end)
                if g < 0:
                    self.unplaced = v
                    return False
                self.device[v] = g
                self.held[g] += self.occupied[v]
                repaired = any(self.out_of_reach(u, v) for u in self.inputs(v))  # only for range_of="spanned"
            else:
                self.device[v] = self.most_inputs(v, free)
            if repaired and not (self.repair(v) and self.recount(v + 1)):
                return False
            if repaired:  # times of moved sub-operations are recomputed at the end; this is an estimate
                best = max([free[self.device[v]], *(end[u] for u in self.inputs(v))])
            free[self.device[v]] = end[v] = best + self.duration[v]
        return True


class Unrolled(Repair):
    """Algorithm 1 on the unrolled circle; ``device`` contains positions while placing."""

    def place(self, context: Context | None = None) -> bool:
        """Run Algorithm 1 with a repair that only moves forward; False only if memory runs out."""
        data, delta, k = self.data, self.delta, self.k
        free, end = [0.0] * k, [0.0] * data.n
        first = int(data.graph.operation[0])
        opening = data.graph.operation.tolist().count(first)
        at = self.device
        for v in range(data.n):
            if context is not None and v % 1000 == 0:
                context.remaining()
            inputs = self.inputs(v)
            if inputs:
                places = [at[u] for u in inputs]
                low, high = max(places), min(places) + delta
            elif v < opening:
                low, high = 0, k - 1
            else:
                low, high = max(at[v - 1] - delta, 0), at[v - 1] + delta
            if high < low:
                at[v] = low
                self.repair(v)
                if not self.recount(v + 1):
                    return False
                best = max(free[low % k], *(end[u] for u in inputs))
            else:
                gpus = [position % k for position in range(low, min(high, low + k - 1) + 1)]
                best, g = self._earliest(v, gpus, free, end)
                if g < 0:
                    self.unplaced = v
                    return False
                at[v] = low + (g - low) % k
                self.held[g] += self.occupied[v]
            free[at[v] % k] = end[v] = best + self.duration[v]
        self.device = [position % k for position in at]
        return True

    def repair(self, v: int) -> bool:
        """Starting from v, raise inputs to at most Delta below it, and dependants to at least their inputs."""
        self.conflicts += 1
        at, delta, stack = self.device, self.delta, [v]
        while stack:
            x = stack.pop()
            for u in self.inputs(x):
                if at[u] < at[x] - delta:
                    at[u] = at[x] - delta
                    self.moved += 1
                    stack.append(u)
            for y in self.outputs(x):
                if y <= v and at[y] < at[x]:
                    at[y] = at[x]
                    self.moved += 1
                    stack.append(y)
        return True


def measured(data: Placement, state: Repair | Unrolled) -> tuple[float, I64, F64]:
    """Makespan [us], GPUs and starts of a complete placement."""
    device = np.array(state.device)
    begun = starts(data, device, np.arange(data.n))
    assert begun is not None
    return float((begun + data.graph.duration).max()), device, begun


@dataclass(frozen=True)
class Hybrid:
    """k-way model and l-way data parallelism: the step of a group, then the all-reduce between groups [us].

    ``bound`` is a lower bound on the time of every placement with this k and l: the bounds on the makespan, and the
    all-reduce of parameters that are spread evenly.
    """

    k: int
    replicas: int
    makespan: float
    all_reduce: float
    bound: float

    @property
    def time(self) -> float:
        """Time of an iteration without overlap of the two [us]."""
        return self.makespan + self.all_reduce


def hybrids(spec: str, gpus: int, batch: int, *, degree: int, bandwidth: float, memory: float = 0.0) -> list[Hybrid]:
    """Algorithm 1 for every k l = N, as section 3.2 suggests, by increasing k.

    A combination is omitted if l does not divide the batch, if the degree or the number of sub-operations is too small
    for k, or if Algorithm 1 finds no placement. After the step, every GPU of a group sums the parameters of its
    sub-operations with its l - 1 counterparts on a ring, sending 2 (l-1)/l times their bytes over one circuit.

    Parameters
    ----------
    spec
        The computation graph, ``op-graph:model=..``, without parts and batch, which follow from k and l.
    gpus, batch
        N, and samples of all groups.
    degree
        Circuits of a GPU, D.
    bandwidth
        Of a circuit [bytes/s].
    memory
        Of a GPU [GiB]; 0: no limit.

    Raises
    ------
    NotApplicable
        Without bandwidth.
    """
    if not bandwidth > 0:
        refuse("hybrids", f"bandwidth={bandwidth}; the all-reduce needs a positive number of bytes/s", NotApplicable)
    results = []
    for k in (k for k in range(1, gpus + 1) if gpus % k == 0):
        groups = gpus // k
        parameters = {"k": k, "degree": degree, "replicas": groups, "bandwidth": bandwidth, "memory": memory}
        try:
            if batch % groups:
                continue
            data = Placement.prepare(parse(f"{spec},parts={k},batch={batch // groups}"), parameters)
        except NotApplicable:
            continue
        placed = [state for state in (kind(data, MOVES * data.n) for kind in (Unrolled, Repair)) if state.place()]
        if placed:
            makespan, device, _ = min((measured(data, state) for state in placed), key=lambda one: one[0])
            held = float(np.bincount(device, data.graph.weights).max())
            ring = 2e6 * (groups - 1) / groups / bandwidth
            even = rounding.down(ring * float(data.graph.weights.sum()) / k, data.n + 6)
            least = max(bound.value for bound in data.bounds())
            results.append(Hybrid(k, groups, makespan, ring * held, float(rounding.down(least + even))))
    return results


def run(context: Context) -> Answer:
    """SiP-ML's Algorithm 1: greedy placement in topological order on the reachable GPU that is free first, with repair.

    A GPU is in reach of all inputs if it is at most Delta steps after each of their GPUs on the circle. If there is
    none, inputs are moved (backward), then dependants of moved sub-operations (forward), until everything is in reach.

    ``repair=paper``: the sub-operation goes to the GPU in reach of the most inputs, and those out of reach move to the
    nearest GPU in reach. The paper leaves convergence open, and it does not always converge: on returning to an earlier
    state (detected in small graphs), or after ``moves`` moves in total, it stops without a placement.

    ``range`` are the GPUs among which ``repair=paper`` places a sub-operation. ``text``: "the intersection of these
    ranges for all parents", on the circle. ``printed``: lines 5 to 8, range_lo = near_id and range_hi = far_id + Delta,
    with the numbers of GPUs as a line on which the nearest parent has the largest number and the farthest the smallest.
    On a line this is the intersection; around the end of the numbers it is a part of that on the circle, and empty
    where parents are at both ends. ``spanned``: the same lines with the smallest number as near_id and the largest as
    far_id. It is never empty, but contains GPUs out of reach of some parent, and then the repair follows.

    ``repair=unrolled``: the circle is unrolled to a line of positions, GPU = position mod k, on which every dependency
    goes 0 to Delta ahead. The sub-operation goes to the position of its foremost input. Inputs and dependants only move
    forward, as little as necessary and never beyond it, so the repair always terminates. It is more restrictive than
    the circle.

    ``repair=best``: both, keeping the shorter makespan.

    With limited memory a sub-operation goes to a GPU in reach that has room for it (mem_size in line 8). The paper does
    not state what happens if there is none, nor whether its repair respects memory; here the algorithm stops without a
    placement, also if a repair exceeds the memory of a GPU.

    Starts are recomputed at the end for the final GPUs.
    """
    data: Placement = context.data
    requested = str(context.parameters["repair"])
    moves = int(context.parameters["moves"]) or MOVES * data.n
    best: tuple[float, str, I64, F64] | None = None
    repairs: dict[str, Any] = {}
    for name, kind in (("unrolled", Unrolled), ("paper", Repair)):
        if requested not in {name, "best"}:
            continue
        state = kind(data, moves, str(context.parameters["range"]))
        try:
            complete = state.place(context)
        except TimeoutError:
            if best is None:
                raise
            break
        found: dict[str, Any] = {
            "converged": complete,
            "conflicts": state.conflicts,
            "moved": state.moved,
            "cycled": state.cycled,
            "without_memory": state.unplaced,
        }
        if complete:
            found["makespan_us"], device, begun = measured(data, state)
            if best is None or found["makespan_us"] < best[0]:
                best = (found["makespan_us"], name, device, begun)
        repairs[name] = found
    solver: dict[str, Any] = {"name": "degree-aware", "version": None, "algorithm": "Algorithm 1", "options": {}}
    if best is None:
        message = _failure(repairs)
        return Answer(Termination.ITERATION_LIMIT, solver=solver, metrics={"repairs": repairs}, message=message)
    values = {"device": best[2].astype(float), "start": best[3]}
    metrics: dict[str, Json] = {"repair": best[1], "repairs": repairs}
    return Answer(Termination.TOLERANCE, values=values, solver=solver, metrics=metrics)


def _failure(repairs: dict[str, Any]) -> str:
    """Explain why no repair gave a placement."""
    full = [one["without_memory"] for one in repairs.values() if one["without_memory"] is not None]
    if full:
        return (
            f"no GPU in reach has memory for sub-operation {max(full)}; raise memory or degree, or use another method"
        )
    failure = "returns to an earlier state" if repairs["paper"]["cycled"] else "reaches its limit on moves"
    return f"the paper's repair {failure} at conflict {repairs['paper']['conflicts']}; use repair=best"


METHOD = Method(
    name="degree-aware",
    title="Degree-aware placement (Algorithm 1)",
    summary="SiP-ML's Algorithm 1 with forward-backward repair: 20,000 sub-operations in seconds",
    serves=("sipml.placement",),
    # 8 layers in 2 parts: 63 variables in 0.5 s, 50 in 1.1 s.
    takes_over=(Beyond("sipml.placement", 70, 800, proves=False),),
    parameters=(
        Parameter(
            "repair",
            str,
            default="best",
            help="the paper's, that on the unrolled circle, or the better one",
            choices=("best", "unrolled", "paper"),
        ),
        Parameter(
            "range",
            str,
            default="text",
            help="GPUs tried by the paper's repair: in reach of all inputs, or the range of the printed lines",
            choices=RANGES,
        ),
        Parameter("moves", int, default=0, help="limit on moves of the paper's repair; 0: 20 per sub-operation"),
    ),
    run=run,
)

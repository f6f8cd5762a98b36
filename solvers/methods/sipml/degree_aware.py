"""SiP-ML's Algorithm 1: sub-operations in topological order, each on the GPU in reach that is free first; with repair.

A GPU in reach of all inputs is at most Delta steps after each of theirs on the circle of GPUs. Where there is none,
inputs are moved (backward), then what depends on anything moved (forward), until nothing is out of reach.

``repair=paper``: the sub-operation goes to the GPU in reach of most inputs, and what is out of reach moves to the
nearest GPU that is not. The paper leaves convergence open, and it does not always converge: where it returns to an
earlier state (looked for in small graphs), or after ``moves`` moves in all, it ends without a placement.

``repair=unrolled``: the circle is unrolled to a line of positions, GPU = position mod k, on which every dependency goes
0 to Delta ahead. The sub-operation goes to the position of its foremost input; inputs and dependants only ever move
forward, as little as they must, and never beyond it: so it ends, always. But it asks for more than the circle does.

``repair=best``: both, and the shorter makespan.

Starts are recomputed at the end with the GPUs as they came out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.formulations.model import Parameter
from opticoll.formulations.sipml.placement import starts
from opticoll.solvers.methods.method import Answer, Method
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from opticoll.formulations.sipml.placement import Placement
    from opticoll.solvers.methods.method import Context


#: Moves for each sub-operation before the paper's repair gives up.
MOVES = 20
#: Up to this many sub-operations the paper's repair remembers where it has been, and sees that it goes in circles.
REMEMBERED = 1000


class Repair:
    """A placement in the making: GPUs so far, and the forward-backward repair of reach."""

    def __init__(self, data: Placement, moves: int) -> None:
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
        #: GPUs that g reaches, as bits.
        self.ahead = [((window << g) | (window << g >> k)) & full for g in range(k)]
        self.full = full
        self.moved = self.conflicts = 0
        self.cycled = False

    def inputs(self, v: int) -> list[int]:
        """Sub-operations that v depends on."""
        return self.tail[self.first[v] : self.first[v + 1]]

    def outputs(self, v: int) -> list[int]:
        """Sub-operations that depend on v."""
        return self.head[self.first_out[v] : self.first_out[v + 1]]

    def reachable(self, v: int) -> int:
        """GPUs in reach of all inputs that are placed, as bits."""
        bits = self.full
        for g in {self.device[u] for u in self.inputs(v)}:
            bits &= self.ahead[g]
        return bits

    def out_of_reach(self, u: int, v: int) -> bool:
        """Whether v is beyond the reach of u."""
        return (self.device[v] - self.device[u]) % self.k > self.delta

    def nearest(self, g: int, bits: int) -> int:
        """The GPU of a set nearest to g on the circle."""
        k = self.k
        return min((h for h in range(k) if bits >> h & 1), key=lambda h: (min((h - g) % k, (g - h) % k), h))

    def nearest_behind(self, g: int, reached: int) -> int:
        """The GPU nearest to g on the circle from which a GPU is reached: that GPU itself, or Delta before it."""
        down, up = (g - reached) % self.k, (reached - self.delta - g) % self.k
        return reached if down <= up else (reached - self.delta) % self.k

    def most_inputs(self, v: int, free: list[float]) -> int:
        """The GPU in reach of most inputs; of those the one free first."""
        votes = [0] * self.k
        for u in self.inputs(v):
            bits = self.ahead[self.device[u]]
            for h in range(self.k):
                votes[h] += bits >> h & 1
        return min(range(self.k), key=lambda h: (-votes[h], free[h], h))

    def mend(self, v: int) -> bool:
        """Move inputs backward and dependants forward until nothing placed is out of reach; False if it gives up."""
        self.conflicts += 1
        last = v
        met: set[tuple[tuple[int, ...], tuple[int, ...]]] = set()
        back, forth = [v], set()
        while True:
            while back:  # backward: inputs come within reach of what needs them
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
            for u in moved:  # forward: what depends on the moved comes after them
                for x in self.outputs(u):
                    if x <= last and self.device[x] >= 0 and self.out_of_reach(u, x):
                        bits = self.reachable(x)
                        self.device[x] = self.nearest(self.device[x], bits or self.ahead[self.device[u]])
                        self.left -= 1
                        forth.add(x)
                        back.append(x)
                if self.left < 0:
                    return False

    def place(self, context: Context | None = None) -> bool:
        """Algorithm 1; False where the repair gave up."""
        data = self.data
        free, end = [0.0] * self.k, [0.0] * data.n
        for v in range(data.n):
            if context is not None and v % 1000 == 0:
                context.remaining()
            bits = self.reachable(v)
            mended = not bits
            if bits:
                ready = [0.0] * self.k if data.bandwidth else None
                latest = 0.0
                for e in range(self.first[v], self.first[v + 1]):
                    u = self.tail[e]
                    latest = max(latest, end[u])
                    if ready is not None:
                        for h in range(self.k):
                            if h != self.device[u]:
                                ready[h] = max(ready[h], end[u] + self.delay[e])
                best, g = np.inf, -1
                for h in range(self.k):
                    if bits >> h & 1:
                        start = max(free[h], latest, ready[h] if ready is not None else 0.0)
                        if start < best:
                            best, g = start, h
                self.device[v] = g
            else:
                self.device[v] = self.most_inputs(v, free)
                if not self.mend(v):
                    return False
            if mended:  # times of what moved are only settled at the end; the estimate goes on from here
                best = max([free[self.device[v]], *(end[u] for u in self.inputs(v))])
            free[self.device[v]] = end[v] = best + self.duration[v]
        return True


class Unrolled(Repair):
    """The same on the unrolled circle: ``device`` holds positions while placing."""

    def place(self, context: Context | None = None) -> bool:
        """Algorithm 1 with a repair that only moves forward; always succeeds."""
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
                self.mend(v)
                best = max(free[low % k], *(end[u] for u in inputs))
            else:
                best, at[v] = np.inf, low
                latest = max((end[u] for u in inputs), default=0.0)
                for position in range(low, min(high, low + k - 1) + 1):
                    start = max(free[position % k], latest)
                    if data.bandwidth:
                        for e in range(self.first[v], self.first[v + 1]):
                            u = self.tail[e]
                            if (at[u] - position) % k:
                                start = max(start, end[u] + self.delay[e])
                    if start < best:
                        best, at[v] = start, position
            free[at[v] % k] = end[v] = best + self.duration[v]
        self.device = [position % k for position in at]
        return True

    def mend(self, v: int) -> bool:
        """Raise inputs to within Delta behind, and dependants to what they depend on, from v on."""
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


def run(context: Context) -> Answer:
    """Place, repair, and recompute the starts; the better of the repairs asked for."""
    data: Placement = context.data
    asked = str(context.parameters["repair"])
    moves = int(context.parameters["moves"]) or MOVES * data.n
    best: tuple[float, str, NDArray[np.int64], NDArray[np.float64]] | None = None
    told: dict[str, Any] = {}
    for name, kind in (("unrolled", Unrolled), ("paper", Repair)):
        if asked not in {name, "best"}:
            continue
        state = kind(data, moves)
        try:
            done = state.place(context)
        except TimeoutError:
            if best is None:
                raise
            break
        found: dict[str, Any] = {
            "converged": done,
            "conflicts": state.conflicts,
            "moved": state.moved,
            "cycled": state.cycled,
        }
        if done:
            device = np.array(state.device)
            begun = starts(data, device, np.arange(data.n))
            assert begun is not None
            found["makespan_us"] = float((begun + data.graph.duration).max())
            if best is None or found["makespan_us"] < best[0]:
                best = (found["makespan_us"], name, device, begun)
        told[name] = found
    solver: dict[str, Any] = {"name": "degree-aware", "version": None, "algorithm": "Algorithm 1", "options": {}}
    if best is None:
        how = "goes in circles" if told["paper"]["cycled"] else "has used up its moves"
        message = f"the paper's repair {how} at conflict {told['paper']['conflicts']}; take --set repair=best"
        return Answer(Termination.ITERATION_LIMIT, solver=solver, metrics={"repairs": told}, message=message)
    values = {"device": best[2].astype(float), "start": best[3]}
    metrics = {"repair": best[1], "repairs": told}
    return Answer(Termination.TOLERANCE, values=values, solver=solver, metrics=metrics)


METHODS = (
    Method(
        name="degree-aware",
        title="Degree-aware placement (Algorithm 1)",
        summary="SiP-ML's Algorithm 1 with forward-backward repair: 20,000 sub-operations in seconds",
        applies=lambda formulation: formulation.name == "sipml.placement",
        parameters=(
            Parameter(
                "repair",
                str,
                default="best",
                help="as the paper says, on the unrolled circle, or the better",
                choices=("best", "unrolled", "paper"),
            ),
            Parameter("moves", int, default=0, help="moves before the paper's repair gives up; 0: 20 a sub-operation"),
        ),
        run=run,
    ),
)

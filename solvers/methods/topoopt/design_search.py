"""Exact topology design: exchanges for a good wiring, enumeration with bounds for the proof.

1. Simulated annealing by 2-exchanges from the heuristics' circuits and from random ones; the best are routed by LP.
2. Enumeration of all wirings, server by server. At a target tau, a part is pruned by layers of the partial wiring
   (:func:`opticoll.solvers.methods.topoopt.wiring_kernels.beyond`), a complete wiring by lengths, and a survivor by the
   LP's duals. When nothing is left, no wiring is below tau: tau is a bound. tau rises in steps to the value of the
   incumbent, so that an interrupted search keeps the last bound.

If the traffic is invariant under renamings of servers (all-to-all), only wirings are enumerated whose first servers
have the least options among their images. This keeps an optimum for any set of renamings.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.formulations.model import Parameter
from opticoll.formulations.topoopt import topology
from opticoll.solvers.methods.method import Answer, Method
from opticoll.solvers.methods.topoopt.routing_oracle import Oracle
from opticoll.solvers.methods.topoopt.topology_finder import starting_design
from opticoll.solvers.methods.topoopt.wiring_kernels import DONE, enumerate_wirings, exchange
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from opticoll.formulations.topoopt.design import TopologyDesign
    from opticoll.formulations.topoopt.topology import Wiring
    from opticoll.solvers.methods.method import Context

    F64 = NDArray[np.float64]
    I64 = NDArray[np.int64]

#: Seconds between two saved states.
SAVE_S = 1.0
#: Options of a server, and servers, above which wirings are not enumerated.
MOST_OPTIONS, MOST_SERVERS = 50_000, 24
#: Nodes between two checks of the clock; survivors that are routed at a time; steps of lengths for a complete wiring.
NODES, ROOM, STEPS = 20_000, 64, 200
#: Targets tau, as fractions of the way from the analytic bound to the incumbent's value.
STAGES = (0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 1.0)
#: Relative round-off of the bounds that rule out a wiring: sums of some thousand positive terms at most.
ROUND_OFF = 1e-12
#: Exchanges of one descent for every pair of circuits, most of them times n^3, steps of the bounds they compare.
MOVES, WORK, SKETCH = 40, 20_000_000, 40
#: First and last temperature of a descent, relative to the value; pieces of it between checks of the clock.
HEAT, COOL, PIECES = 0.03, 3e-4, 8
#: Limits on the renamings, and on the prefixes of options that are compared.
MOST_RENAMINGS, MOST_PREFIXES = 2000, 200_000


def renamings(weights: list[F64], most: int = MOST_RENAMINGS) -> I64:
    """Permutations that leave all these matrices as they are, the identity first, no more than ``most``."""
    n = len(weights[0])
    sums = np.stack([np.sort(w, axis=k) if k == 1 else np.sort(w, axis=k).T for w in weights for k in (0, 1)], axis=2)
    like = np.array([[np.array_equal(sums[u], sums[v]) for v in range(n)] for u in range(n)])
    found: list[list[int]] = []

    def extend(image: list[int]) -> None:
        u = len(image)
        if len(found) >= most:
            return
        if u == n:
            found.append(image.copy())
            return
        for v in range(n):
            if v in image or not like[u, v]:
                continue
            here = [*image, v]
            if all(
                np.array_equal(w[u, : u + 1], w[v, here]) and np.array_equal(w[: u + 1, u], w[here, v]) for w in weights
            ):
                extend(here)

    extend([])
    return np.array(found, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Options:
    """Circuits out of one server: numbers to every other server, the same as bits, and their total."""

    counts: I64
    masks: I64
    size: I64

    @classmethod
    def of(cls, n: int, degree: int, most: int, *, deficits: bool) -> Options | None:
        """All options; None if there are too many."""
        least = 0 if deficits else degree
        if sum(comb(n + k - 1, k) for k in range(least, degree + 1)) > MOST_OPTIONS:
            return None
        rows = []
        for k in range(degree, least - 1, -1):
            for chosen in combinations_with_replacement(range(n), k):
                count = np.bincount(np.array(chosen, dtype=np.int64), minlength=n)
                if count.max(initial=0) <= most:
                    rows.append(count)
        counts = np.array(rows, dtype=np.int64)
        return cls(counts, ((counts > 0) << np.arange(n)).sum(axis=1), counts.sum(axis=1))

    def prefixes(self, renaming: I64) -> I64:
        """Options of the first servers whose images under the renamings are no smaller, ``(P, depth)``."""
        many, n = self.counts.shape
        depth = 0
        while depth < n - 1 and many ** (depth + 1) <= MOST_PREFIXES:
            depth += 1
        if len(renaming) < 2 or depth == 0:
            return np.zeros((1, 0), dtype=np.int64)
        place = {tuple(row): o for o, row in enumerate(self.counts.tolist())}
        grid = np.indices((many,) * depth).reshape(depth, -1).T
        grid = grid[(self.counts[grid, np.arange(depth)] == 0).all(axis=1)]
        power = many ** np.arange(depth - 1, -1, -1)
        code = grid @ power
        keep = np.ones(len(grid), dtype=bool)
        for image in renaming[1:]:
            if set(image[:depth].tolist()) != set(range(depth)):
                continue
            moved = np.empty_like(self.counts)
            moved[:, image] = self.counts
            option = np.array([place[tuple(row)] for row in moved.tolist()])
            keep &= code <= option[grid] @ power[image[:depth]]
        return np.asarray(grid[keep], dtype=np.int64)


class WiringSearch:
    """The search on one problem.

    Parameters
    ----------
    data, tol, seed
        Problem; relative gap that counts as closed; seed of the exchanges.
    tick
        Called often; raises TimeoutError to end the search.
    found
        Called with every better design.
    """

    def __init__(
        self, data: Wiring, *, tol: float, seed: int, tick: Callable[[], None],
        found: Callable[[TopologyDesign], None],
    ) -> None:  # fmt: skip
        self.data, self.tol, self.seed, self.tick, self.found = data, tol, seed, tick, found
        self.tax = data.objective == "bandwidth-tax"
        self.oracle = Oracle(data)
        self.best = starting_design(data)
        self.value = data.worth(self.best)
        self.bound = max(one.value for one in topology.bounds(data))
        self.tally = np.zeros(4, dtype=np.int64)
        self.stages = 0
        # Servers by falling traffic: what is decided first bounds most.
        fixed = data.fixed
        self.order = np.argsort(-(fixed.sum(axis=0) + fixed.sum(axis=1)), kind="stable")
        self.demand = np.ascontiguousarray(fixed[np.ix_(self.order, self.order)])
        groups = data.pool.groups if data.free_rings else ()
        self.member = np.zeros((len(groups), data.n), dtype=np.int64)
        for g, group in enumerate(groups):
            self.member[g] = np.isin(self.order, group.members)
        self.transfer = np.array([group.transfer for group in groups])
        self.constant = float(sum(group.total for group in groups))

    @property
    def closed(self) -> bool:
        """Whether the gap is closed."""
        return self.value - self.bound <= self.tol * abs(self.value)

    def _cut(self) -> float:
        """The largest value that counts as an improvement."""
        return self.value * (1 - 0.5 * self.tol)

    def take(self, made: TopologyDesign | None) -> None:
        """Keep a design if it improves the incumbent."""
        if made is not None and self.data.worth(made) < self.value:
            self.best, self.value = made, self.data.worth(made)
            self.found(made)

    def exchanges(self, descents: int, moves: int | None = None) -> None:
        """Descents by 2-exchanges, the first from the incumbent's circuits, the others from random ones."""
        data, back = self.data, np.argsort(self.order)
        random = np.random.default_rng(self.seed)
        for descent in range(descents):
            if self.closed:
                return
            circuits = back[self.best.circuits] if descent == 0 else self._random(random)
            if circuits is None or not self._allowed(circuits):
                continue
            tail, head = (np.ascontiguousarray(end) for end in circuits.T)
            budget = self._moves(tail.size) if moves is None else moves
            heats = np.geomspace(HEAT, COOL, PIECES + 1)
            for heat, cool in zip(heats[:-1].tolist(), heats[1:].tolist(), strict=True):
                self.tick()
                exchange(
                    tail, head, data.parallel, self.demand, self.member, self.transfer, SKETCH, self.tax,
                    -(-budget // PIECES), heat, cool, int(random.integers(2**31)),
                )  # fmt: skip
            count = np.zeros((data.n, data.n), dtype=np.int64)
            np.add.at(count, (self.order[tail], self.order[head]), 1)
            self.take(self.oracle.route(count, self.value).design)

    def _moves(self, circuits: int) -> int:
        """Exchanges of one descent: proportional to pairs of circuits, fewer for many servers."""
        return max(min(MOVES * circuits**2, WORK // self.data.n**3), PIECES)

    def _allowed(self, circuits: I64) -> bool:
        _, number = np.unique(circuits, axis=0, return_counts=True)
        return bool(number.max() <= self.data.parallel)

    def _random(self, random: np.random.Generator) -> I64 | None:
        """Circuits of random permutations without fixed points, within the limit on pairs; None if none is found."""
        n, most = self.data.n, self.data.parallel
        count = np.zeros((n, n), dtype=np.int64)
        for _ in range(min(self.data.degree, most * (n - 1))):
            for _ in range(200):
                image = random.permutation(n)
                if (image != np.arange(n)).all() and (count[np.arange(n), image] < most).all():
                    count[np.arange(n), image] += 1
                    break
        tail, head = np.nonzero(count)
        return np.repeat(np.stack([tail, head], axis=1), count[tail, head], axis=0) if tail.size else None

    def prove(self) -> bool:
        """Enumerate until the gap is closed; False if there are too many options to start."""
        data = self.data
        if self.closed:
            return True
        most = 1 if self.tax else data.parallel
        # Without a limit on pairs some optimal wiring uses all ports: free ports of v can split any circuit a -> b into
        # a -> v -> b. That may add hops, and a limit on pairs may forbid it.
        deficits = self.tax or most < data.degree
        options = Options.of(data.n, data.degree, most, deficits=deficits) if data.n <= MOST_SERVERS else None
        if options is None:
            return False
        alike = renamings([self.demand, *(np.multiply.outer(m, m).astype(float) for m in self.member)])
        prefixes = options.prefixes(alike) if self._same_groups(alike) else np.zeros((1, 0), dtype=np.int64)
        low = self.bound
        for stage in STAGES:
            target = low + stage * (self.value - low) if stage < 1 else None
            if target is not None and not self.bound < target < self._cut():
                continue
            proven = self._none_below(options, prefixes, target, deficits=deficits, most=most)
            self.bound = max(self.bound, min(proven, self.value) * (1 - ROUND_OFF))
            self.stages += 1
            if self.closed:
                break
        return True

    def _same_groups(self, alike: I64) -> bool:
        """Whether every renaming keeps every group."""
        return all((m[image] == m).all() for m in self.member for image in alike)

    def _none_below(self, options: Options, prefixes: I64, stage: float | None, *, deficits: bool, most: int) -> float:
        """Exclude every wiring below the target (None: the incumbent's value as it falls) and return the bound."""
        n = self.data.n
        ranked = np.argsort(-self.demand, axis=1, kind="stable")
        turned = np.ascontiguousarray(self.demand.T)
        ranked_back = np.argsort(-turned, axis=1, kind="stable")
        kept, values = np.zeros((ROOM, n), dtype=np.int64), np.zeros(ROOM)
        scale = self.data.total if self.tax else 1.0
        least = np.inf
        for prefix in prefixes:
            index = np.full(n, -1, dtype=np.int64)
            index[: prefix.size] = prefix
            while True:
                self.tick()
                target = self._cut() if stage is None else min(stage, self._cut())
                least = min(least, target)
                counted = self.tally[0]
                self.tally[0] = 0
                state = enumerate_wirings(
                    options.counts, options.masks, options.size, prefix.size, index, self.demand, ranked, turned,
                    ranked_back, self.constant, self.data.degree, most, deficits, self.member, self.transfer, STEPS,
                    target * scale, self.tax, NODES, kept, values, self.tally,
                )  # fmt: skip
                survivors = int(self.tally[0])
                self.tally[0] += counted
                for k in np.argsort(values[:survivors], kind="stable").tolist():
                    if values[k] / scale < min(target, self._cut()):
                        least = min(least, self._route(options.counts[kept[k]], min(target, self._cut())))
                if state == DONE:
                    break
        return least

    def _route(self, ordered: I64, target: float) -> float:
        """Route a survivor and return its bound, infinite if that reaches the target."""
        self.tick()
        count = np.zeros_like(ordered)
        count[np.ix_(self.order, self.order)] = ordered
        found = self.oracle.route(count, self.value)
        self.take(found.design)
        return found.bound if found.bound < min(target, self._cut()) else np.inf


def run(context: Context) -> Answer:
    """Run exchanges, then the enumeration."""
    proof = bool(context.parameters["prove"])
    saved = time.monotonic()

    def save() -> None:
        context.save(answer(search, Termination.TOLERANCE), search.value)

    def tick() -> None:
        nonlocal saved
        context.remaining()
        if time.monotonic() - saved > SAVE_S:
            saved = time.monotonic()
            save()

    def found(_: TopologyDesign) -> None:
        save()

    search = WiringSearch(context.data, tol=context.task.tol, seed=context.task.seed, tick=tick, found=found)
    save()
    ending, message = Termination.TOLERANCE, "exchanges alone prove no more than the analytic bounds"
    try:
        search.exchanges(int(context.parameters["descents"]))
        if proof:
            done = search.prove()
            ending = Termination.OPTIMAL if done else Termination.TOLERANCE
            message = "" if done else "too many options to wire one server: the bound is analytic"
    except TimeoutError:
        ending, message = Termination.TIME_LIMIT, ""
    return answer(search, ending, message)


def answer(search: WiringSearch, ending: Termination, message: str = "") -> Answer:
    """The incumbent and the bound."""
    counted: dict[str, Any] = dict(
        zip(("survivors", "nodes", "whole_wirings", "closed_by_lengths"), search.tally.tolist(), strict=True)
    )
    source = f"enumeration of circuits, {counted['nodes']} nodes, by hops, lengths and recomputed duals"
    return Answer(
        ending,
        values=search.best.values(),
        bound=search.bound if search.stages else None,
        bound_source=source if search.stages else None,
        solver={"name": "design-search", "version": None, "algorithm": "exchanges and enumeration", "options": {}},
        metrics={**counted, "routed": search.oracle.solved, "stages": search.stages},
        message=message,
    )


METHODS = (
    Method(
        name="design-search",
        title="Exchanges and enumeration of circuits",
        summary="simulated annealing over circuits, then enumeration with bounds by hops, lengths and routing duals",
        applies=lambda formulation: formulation.name == "topoopt.topology",
        parameters=(
            Parameter("descents", int, default=12, help="descents by 2-exchanges, each from different circuits"),
            Parameter("prove", bool, default=True, help="enumerate afterwards; without it a heuristic"),
        ),
        run=run,
    ),
)

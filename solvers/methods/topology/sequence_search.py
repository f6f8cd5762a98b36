"""Method ``sequence-search``: sequences of circuits by descents over generators of groups, and by exchanges."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.formulations.parameters import Parameter
from opticoll.formulations.topology import sequence_bounds
from opticoll.solvers.methods.method import Answer, Beyond, Method
from opticoll.solvers.methods.topology.sequence_exchanges import (
    add_circuits,
    anneal_circuits,
    exchanged,
    fill_ports,
    random_circuits,
)
from opticoll.solvers.methods.topology.sequence_flows import (
    CircuitLines,
    RoutedSequence,
    all_lines,
    orbit_lines,
    route,
)
from opticoll.solvers.methods.topology.sequence_orbits import (
    UNREACHED,
    OrbitSequence,
    few_hops,
    neighbour,
    some_groups,
)
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from opticoll.formulations.topology.sequence import TopologySequence
    from opticoll.instances.topology import F64, I64, Mask
    from opticoll.solvers.methods.method import Context


#: Maximum number of entries of the flows of a solution.
MOST_FLOWS = 100_000_000
#: Sequences of groups, by increasing sums of hops, that are judged by linear programs.
MOST_REFINED = 6
#: Nodes above which circuits are not exchanged one by one: a linear program has n^2 flows for every circuit of a node.
MOST_EXCHANGED = 20
#: Most exchanges of a start that are judged by hops, for each circuit.
FOR_EACH = 400
#: From a known sequence there are so many times fewer than from random circuits.
FEWER = 3
#: Exchanges from a sequence whose hops are counted, and how many of the best are solved until one is better.
NEIGHBOURS, NEAREST = 300, 12
#: Share of the best value by which a sequence may be worse from which these are tried.
NEAR = 0.01
#: Least relative progress.
PROGRESS = 1e-9


@dataclass
class Found:
    """The best sequence of a search: its circuits ``(K, n, n)``, their lengths and all flows ``(P, n, n, n)``.

    Of the known solution from which a search starts, ``given`` has all values instead.
    """

    value: float = math.inf
    counts: I64 = field(default_factory=lambda: np.zeros((0, 0, 0), dtype=np.int64))
    lengths: F64 = field(default_factory=lambda: np.zeros(0))
    flows: F64 = field(default_factory=lambda: np.zeros(0))
    given: Mapping[str, F64] | None = None


class SequenceSearch:
    """Search for the best sequence of one problem, over all numbers of configurations that it allows.

    Parameters
    ----------
    context
        Seed, tolerance and time limit.
    starts, moves, exchanges
        Parameters of the method.
    """

    def __init__(self, context: Context, *, starts: int, moves: int, exchanges: int) -> None:
        self.context, self.starts, self.moves, self.exchanges = context, starts, moves, exchanges
        self.data: TopologySequence = context.data
        self.random = np.random.default_rng(context.task.seed)
        self.best, self.solved = Found(), 0
        self.tol = context.task.tol

    def run(self) -> None:
        """Search every number of configurations whose bound is below the best value, the smallest bound first.

        Raises
        ------
        TimeoutError
            When no time is left.
        """
        start, K = self.context.start, self.data.configurations
        if start is not None:
            self.best = Found(self.data.objective(start), given=start)
            self.context.save(answer(self, Termination.TOLERANCE), self.best.value)
        numbers = range(1, K + 1) if self.data.charge == "changed" or self.data.startup > 0 else (K,)
        bounds = {number: self._bound(number) for number in numbers}
        for number in sorted(numbers, key=lambda number: (bounds[number], number)):
            if bounds[number] < self.best.value * (1 - self.tol):
                self._search(self._fixed(number), bounds[number] * (1 + self.tol))

    def _fixed(self, number: int) -> TopologySequence:
        """The problem with this number of configurations."""
        return replace(self.data, configurations=number, charge="any")

    @property
    def staying(self) -> bool:
        """Whether the same circuits in several configurations, which cost no delay, may pay."""
        return self.data.charge == "changed" and self.data.relays == "step" and not self.data.overlap

    def _bound(self, number: int) -> float:
        data = replace(self.data, configurations=number) if self.staying else self._fixed(number)
        unused = self.data.delay * (self._others(number) - number + 1)
        return max(bound.value for bound in sequence_bounds.bounds(data)) + unused

    def _search(self, data: TopologySequence, target: float) -> None:
        from_two_way = data.directed and data.n <= MOST_EXCHANGED and data.standing is None and data.amount is not None
        if from_two_way:
            self._search(replace(data, directed=False), target)  # two-way circuits are some of the one-way ones
            if self.best.value <= target:
                return
        for counts in self._given(data):
            self._exchange(data, counts, target)
            if self.best.value <= target:
                return
        known: list[I64] = []
        if data.standing is None and _is_vertex_transitive(data):
            known = self._over_groups(data, target)
        if self.best.value > target and (data.n <= MOST_EXCHANGED or not known):
            self._exchange_from([*_known(data), *known[:1]], data, target)

    def _exchange_from(self, known: list[I64], data: TopologySequence, target: float) -> None:
        """Exchange circuits from known sequences, the best first, from the best one so far and from random circuits."""
        values = [self._solve(data, counts) for counts in known]
        for at in np.argsort(values, kind="stable"):
            self._exchange(data, known[at], target)
            if self.best.value <= target:
                return
        for turn in range(self.starts):
            if turn % 2 and self.best.counts.shape == (data.configurations, data.n, data.n):
                self._exchange(data, self.best.counts, target)
            else:
                self._exchange(data, random_circuits(data, self.random), target, known=False)
            if self.best.value <= target:
                return

    def _given(self, data: TopologySequence) -> Iterator[I64]:
        """Circuits of the known solution, if they are a sequence of this number of configurations."""
        if self.context.start is None or data.n > MOST_EXCHANGED:
            return
        counts = np.rint(np.asarray(self.context.start["x"])).astype(np.int64).sum(axis=3)
        two_way = bool((counts == counts.transpose(0, 2, 1)).all())
        if len(counts) != data.configurations:  # without those that repeat the one before, or are not used
            held = np.asarray(self.context.start["t"]) > 0
            held[: 0 if data.standing is None else 1] = True
            counts = counts[held]
            new = np.ones(len(counts), dtype=bool)
            new[1:] = (counts[1:] != counts[:-1]).any(axis=(1, 2))
            counts = counts[new]
        if len(counts) == data.configurations and (data.directed or two_way):
            yield counts

    # one sequence

    def _value(self, data: TopologySequence, routed: RoutedSequence, counts: I64) -> float:
        changes = changed(counts).sum() if self.staying else self._others(data.configurations)
        return routed.time + data.delay * float(changes) + data.startup * float((routed.lengths > 0).sum())

    def _others(self, number: int) -> int:
        """Changes that are charged for this number of configurations; with ``charge=any`` others are left unused."""
        return (self.data.configurations if self.data.charge == "any" else number) - 1

    def _keep(
        self, data: TopologySequence, counts: I64, routed: RoutedSequence, lines: CircuitLines, table: I64 | None
    ) -> None:
        """Remember the sequence if it is the best one."""
        value = self._value(data, routed, counts)
        if value >= self.best.value * (1 - PROGRESS):
            return
        flows = np.zeros((data.phases, data.n, data.n, data.n))
        if table is None:
            flows[lines.phase, lines.sources[:, None], lines.tail, lines.head] = routed.flows
        else:  # the flow of source s is that of the identity, multiplied by s from the left
            for s in range(data.n):
                flows[lines.phase, s, table[s, lines.tail], table[s, lines.head]] = routed.flows[0]
        self.best = Found(value, counts, routed.lengths, flows)
        self.context.save(answer(self, Termination.TOLERANCE), value)

    # groups

    def _over_groups(self, data: TopologySequence, target: float) -> list[I64]:
        """Anneal the generators of groups; circuits of the best sequences, the best one first."""
        listed: list[OrbitSequence] = []
        fewest = UNREACHED
        for one in few_hops(data, self.random, some_groups(data.n), rounds=self.starts, moves=self.moves):
            self.context.remaining()
            listed.append(one)
            if one.hops < fewest or one.hops <= sequence_bounds.least_hops(data):
                fewest = one.hops
                if self._solve_orbit(data, one) <= target:
                    return []
        listed.sort(key=lambda one: one.hops)
        results: list[tuple[float, I64]] = []
        for one in listed[:MOST_REFINED]:
            if self._least(data, one.hops) >= self.best.value:
                break
            value, better = self._refine(data, one, target)
            results.append((value, better.circuits))
            if self.best.value <= target:
                return []
        results.sort(key=lambda one: one[0])
        return [counts for value, counts in results if value < math.inf]

    def _least(self, data: TopologySequence, hops: int) -> float:
        """Lower bound on the value over generators with this sum of hops."""
        amount, waiting = float(data.demand[0, 1]), data.delay * (data.configurations - 1)
        return max(hops * amount / data.degree, waiting) if data.overlap else hops * amount / data.degree + waiting

    def _refine(self, data: TopologySequence, one: OrbitSequence, target: float) -> tuple[float, OrbitSequence]:
        """A sequence with a small value, by replacements that do not increase it."""
        now, bad = self._solve_orbit(data, one), 0
        while bad < self.exchanges and self.best.value > target:
            self.context.remaining()
            bad += 1
            other = neighbour(self.random, data, one)
            if other is None or self._least(data, other.hops) > now:
                continue
            value = self._solve_orbit(data, other)
            if value <= now:
                bad = 0 if value < now * (1 - PROGRESS) else bad
                now, one = value, other
        return now, one

    def _solve_orbit(self, data: TopologySequence, one: OrbitSequence) -> float:
        self.solved += 1
        lines = orbit_lines(data, one.group.table, one.generators)
        routed = route(data, lines, data.configurations)
        if routed is None:
            return math.inf
        counts = one.circuits
        self._keep(data, counts, routed, lines, one.group.table)
        return self._value(data, routed, counts)

    # exchanges

    def _exchange(self, data: TopologySequence, counts: I64, target: float, *, known: bool = True) -> None:
        """Exchange circuits for fewer hops, then, one by one, if they take less time."""
        if len(counts) == 1 and data.standing is not None:
            return
        moves = min(self.moves, FOR_EACH * data.configurations * data.n * data.degree) // (FEWER if known else 1)
        counts = anneal_circuits(data, self.random, counts, moves, self.context.remaining)
        fill_ports(data, self.random, counts)
        now, judged = self._solve(data, counts), 0
        while now <= self.best.value * (1 + NEAR):
            for tried, other in enumerate(exchanged(data, self.random, counts, NEIGHBOURS)):
                if self.best.value <= target or judged == self.exchanges or tried == NEAREST:
                    return
                self.context.remaining()
                judged += 1
                value = self._solve(data, other)
                if value < now * (1 - PROGRESS):
                    now, counts = value, other
                    break
            else:
                return

    def _solve(self, data: TopologySequence, counts: I64) -> float:
        self.solved += 1
        lines = all_lines(data, counts)
        routed = route(data, lines, data.configurations)
        if routed is None:
            return math.inf
        self._keep(data, counts, routed, lines, None)
        return self._value(data, routed, counts)


def changed(counts: I64) -> Mask:
    """Whether each change sets a circuit that was not there, ``(K-1,)``, for circuits ``(K, n, n)``."""
    return np.asarray((np.diff(counts, axis=0) > 0).any(axis=(1, 2)))


def _is_vertex_transitive(data: TopologySequence) -> bool:
    """Whether all nodes are alike: the demand is uniform, and there are elements enough for the ports."""
    return data.amount is not None and data.degree < data.n


def ring_circuits(data: TopologySequence) -> I64:
    """Circuits of the ring 0, 1, ..., n-1 with as many parallel ones as ports allow, ``(n, n)``."""
    counts, nodes = np.zeros((data.n, data.n), dtype=np.int64), np.arange(data.n)
    counts[nodes, (nodes + 1) % data.n] = sequence_bounds.ring_copies(data)
    return counts if data.directed else np.maximum(counts, counts.T)


def _known(data: TopologySequence) -> Iterator[I64]:
    """Sequences to start from: rounds of direct circuits and rings, and circuits for the largest demands left."""
    n, K = data.n, data.configurations
    fixed = [] if data.standing is None else [data.standing]
    rounds = sequence_bounds.rotation(n, data.degree, directed=data.directed)
    direct = np.zeros((K, n, n), dtype=np.int64)
    for k in range(len(fixed), K):
        for u, v in rounds[(k - len(fixed)) % len(rounds)]:
            direct[k, u, v] = 1
    greedy, left = np.zeros((K, n, n), dtype=np.int64), data.demand.copy()
    for k in range(len(fixed), K):
        wanted = left if data.directed else left + left.T
        order = np.argsort(-wanted, axis=None, kind="stable")
        add_circuits(data, greedy[k], [list(divmod(int(at), n)) for at in order if at // n != at % n])
        left = np.where(greedy[k] > 0, 0.0, left)
    ring = np.repeat(ring_circuits(data)[None], K, axis=0)
    for counts in (direct, greedy, ring):
        if fixed:
            counts[0] = fixed[0]
        yield counts


def run_sequence_search(context: Context) -> Answer:
    """Sequences of circuits by search over generators of groups, and by exchanges of circuits.

    For given circuits, the least lengths are a linear program
    (:mod:`opticoll.solvers.methods.topology.sequence_flows`). For uniform demand without a start, circuits u -> u g of
    a group make all nodes alike: one source and one capacity per generator remain.

    1. generators of every configuration in groups of order n (metacyclic; for powers of two also the elementary
       abelian one): few hops in time by simulated annealing, in rounds over the better half of the groups; then
       replacements judged by the linear program
    2. for at most 20 nodes, or where no group applies: exchanges of the heads of two circuits of a configuration, from
       direct rounds, circuits for the largest demands, a ring, the best sequence so far and random circuits; from a
       known sequence (``start``) first. Annealing on demand times hops
       (:mod:`opticoll.solvers.methods.topology.sequence_exchanges`); then the linear program judges the exchanges of
       fewest hops from sequences near the best one
    3. with ``charge=changed`` and ``configurations=0``, all numbers of configurations whose bound is below the best
       value, by increasing bound

    The search is a heuristic; a value is proven where it meets the bounds of the formulation.
    """
    search = SequenceSearch(context, **{name: int(value) for name, value in context.parameters.items()})
    ending = Termination.TOLERANCE
    try:
        search.run()
    except TimeoutError:
        ending = Termination.TIME_LIMIT
    if search.best.value == math.inf:
        return Answer(ending, message="no sequence was found; increase starts, or give more configurations")
    proven = max(bound.value for bound in search.data.bounds())
    if search.best.value <= proven * (1 + context.task.tol):
        ending = Termination.OPTIMAL
    return answer(search, ending)


def answer(search: SequenceSearch, ending: Termination) -> Answer:
    """The best sequence as arrays of the model; the last configuration is repeated up to their number."""
    data, best = search.data, search.best
    if best.given is not None:
        values: dict[str, Any] = dict(best.given)
        return _answer(search, ending, values)
    K, number = data.configurations, len(best.counts)
    counts = np.concatenate([best.counts, np.repeat(best.counts[-1:], K - number, axis=0)])
    x = (counts[..., None] > np.arange(data.parallel)).astype(float)
    values = {"x": x, "t": np.concatenate([best.lengths, np.zeros(K - number)])}
    flows = np.zeros((data.phases, data.n, data.n, data.n))
    flows[: len(best.flows)] = best.flows
    values["g"] = flows
    if data.charge == "changed" and K > 1:
        values["z"] = (changed(counts) if search.staying else np.arange(K - 1) < number - 1).astype(float)
    if data.startup > 0:
        values["y"] = (values["t"] > 0).astype(float)
    return _answer(search, ending, values)


def _answer(search: SequenceSearch, ending: Termination, values: dict[str, Any]) -> Answer:
    return Answer(
        ending,
        values=values,
        solver={"algorithm": "annealing and exchanges"},
        metrics={"solved": search.solved},
    )


def _refuse(data: Any) -> str | None:
    if data.phases * data.n**3 > MOST_FLOWS:
        return f"lists {data.phases} x {data.n}^3 flows, more than {MOST_FLOWS:,}"
    return None


METHOD = Method(
    name="sequence-search",
    title="Sequences of circuits by generators of groups and by exchanges",
    summary="circuits of groups with few hops in time, then exchanges of circuits, by hops and by linear programs of "
    "the flows; proven where a bound is met",
    serves=("topology.sequence",),
    # n=5, D=2, K=2 362 variables in 4.7 s, n=4, D=2, K=3 291 in 3.4 s; n=5, D=1, K=3 423, n=6, D=1, K=2 482 not solved.
    takes_over=(Beyond("topology.sequence", 370, proves=False),),
    parameters=(
        Parameter(
            "starts",
            int,
            default=8,
            help="rounds over groups, each with the better half of them; random circuits to start from",
        ),
        Parameter(
            "moves",
            int,
            default=30_000,
            help="replacements of generators, or exchanges of circuits, judged by hops, per start",
        ),
        Parameter(
            "exchanges",
            int,
            default=150,
            help="most replacements or exchanges, judged by linear programs, per start",
        ),
    ),
    run=run_sequence_search,
    refuse=_refuse,
    starts=True,
)

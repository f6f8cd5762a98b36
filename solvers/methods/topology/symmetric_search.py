"""Method ``symmetric-search``: Cayley graphs and named families of given degree, and exchanges of links."""

from __future__ import annotations

import time
from dataclasses import dataclass
from math import isqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import BadInput, NotApplicable, refuse
from opticoll.formulations import rounding
from opticoll.formulations.parameters import Parameter
from opticoll.formulations.topology.design import Design
from opticoll.formulations.topology.design_bounds import least_time
from opticoll.formulations.topology.design_solution import topology_of, values_on
from opticoll.formulations.topology.sequence import TopologySequence
from opticoll.instances import parse
from opticoll.instances.families.regular_graphs import DIGITS, digraph_spec
from opticoll.instances.topology import Topology
from opticoll.solvers.methods.method import Answer, Beyond, Method
from opticoll.solvers.methods.topology.graph_enumeration import MOST_ENUMERATED, Exclusion
from opticoll.solvers.methods.topology.sequence_exchanges import anneal_circuits, cost_of, fill_ports, random_circuits
from opticoll.solvers.methods.topology.sequence_orbits import UNREACHED, annealed, drawn, groups, named_group
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from opticoll.instances.topology import F64, Topology
    from opticoll.solvers.methods.flows.flow_orbits import Orbits
    from opticoll.solvers.methods.method import Context

#: Largest group: its table has n^2 entries of 8 bytes.
MOST_ELEMENTS = 4096
#: Largest topology with few symmetries that is tried: its flow problem has up to n sources.
MOST_ASYMMETRIC = 64
#: Most nodes of topologies whose links are exchanged: they are printed as ``digraph:`` specs.
MOST_EXCHANGED = len(DIGITS)
#: The exponent of the norm of loads is 2 to this power.
SQUARINGS = 3
#: Number of topologies from exchanges of links whose flow problem is solved.
MOST_EXCHANGE_CANDIDATES = 3


@dataclass(frozen=True)
class Candidate:
    """A topology, or its spec, and a lower bound on its time by the sum of distances; 0 if that is unknown."""

    network: str | Topology
    least: float

    @property
    def spec(self) -> str:
        """The spec, or the topology's name."""
        return self.network if isinstance(self.network, str) else self.network.spec

    def topology(self) -> Topology:
        """The topology."""
        if isinstance(self.network, str):
            built: Topology = parse(self.network)
            return built
        return self.network


def named(n: int, degree: int, directed: bool) -> Iterator[str]:
    """Specs of named families with n nodes of this degree."""
    if degree == n - 1:
        yield f"complete:{n}"
    if n == 1 << degree:
        yield f"hypercube:{degree}"
    if n == 2 * degree:
        yield f"bipartite:{degree}x{degree}"
    if (n, degree) == (10, 3):
        yield "petersen"
    q = isqrt(n // 2)
    if 2 * q * q == n and q > 2:
        spec = f"slimfly:q={q}"
        try:
            if int(parse(spec).out_degree.max()) == degree:
                yield spec
        except BadInput:  # no Slim Fly of this q
            pass
    if directed and n <= MOST_ASYMMETRIC:
        yield f"genkautz:n={n},d={degree}"


def cayley_candidates(
    n: int,
    degree: int,
    directed: bool,
    *,
    seed: int = 0,
    starts: int = 4,
    moves: int = 300,
    deadline: float | None = None,
) -> Iterator[Candidate]:
    """Candidates of every group in turn, without repetitions.

    After a ``deadline`` (on the clock of ``time.monotonic``) no group but the first is started. With a deadline, groups
    are sorted by the order of r modulo m, largest first: those far from commutative have the smallest distances.
    """
    rng, listed = np.random.default_rng(seed), groups(n)
    if deadline is not None:
        listed.sort(key=lambda group: -len({pow(group[2], b, group[0]) for b in range(group[1])}))
    for number, (m, k, r) in enumerate(listed):
        if number and deadline is not None and time.monotonic() > deadline:
            return
        group, found = named_group(n, f"{m},{k},{r}"), dict[tuple[int, ...], int]()
        for _ in range(starts):
            first = drawn(rng, 1, degree, group.inverses, directed)
            if len(first):
                hops, last = annealed(rng, group.table, group.inverses, first, directed, False, moves, 0)
                chosen = last[0] if directed else np.minimum(last[0], group.inverses[last[0]])
                found[tuple(np.unique(chosen).tolist())] = int(hops)
        for elements, hops in sorted(found.items()):
            if hops < UNREACHED:
                generators, way = "x".join(map(str, elements)), ",directed" if directed else ""
                yield Candidate(f"cayley:m={m},k={k},r={r},generators={generators}{way}", hops / degree)


def exchange_candidates(
    data: Design, *, seed: int = 0, starts: int = 4, steps: int = 5000, given: Topology | None = None
) -> Iterator[Candidate]:
    """At most :data:`MOST_EXCHANGE_CANDIDATES` candidates by exchanges of links, for up to ``MOST_EXCHANGED`` nodes.

    One more search starts from a ``given`` topology.
    """
    if data.n > MOST_EXCHANGED or steps <= 0:
        return
    racks = data.rack, data.cables, data.uplinks
    sequence = TopologySequence.of_nodes(data.n, data.degree, 1, directed=data.directed, parallel=1)
    found = []
    for start in range(starts if given is None else starts + 1):
        rng = np.random.default_rng([seed, start])
        counts = random_circuits(sequence, rng, racks)
        if given is not None and start == starts:
            counts[0] = 0
            counts[0, given.tail, given.head] = 1
        best = anneal_circuits(sequence, rng, counts, steps, lambda: None, squarings=SQUARINGS, racks=racks)
        fill_ports(sequence, rng, best, racks)
        found.append((cost_of(best, sequence.demand, False, SQUARINGS), best[0]))
    for _, links in sorted(found, key=lambda one: one[0])[:MOST_EXCHANGE_CANDIDATES]:
        topology = Topology(data.n, *np.nonzero(links))
        if topology.connected:
            topology = topology.renamed(digraph_spec(topology) or topology.spec)
            yield Candidate(topology, float(topology.hops.sum()) / topology.arcs)


def candidates(
    data: Design,
    *,
    seed: int = 0,
    starts: int = 4,
    moves: int = 300,
    steps: int = 5000,
    deadline: float | None = None,
    given: Topology | None = None,
) -> list[Candidate]:
    """All candidates, sorted by lower bound on the time; with a ``deadline``, those listed until then.

    From a ``given`` topology links are exchanged, too.

    Raises
    ------
    BadInput
        For more than ``MOST_ELEMENTS`` nodes, with racks for more than ``MOST_EXCHANGED``.
    """
    if data.rack:
        if data.n > MOST_EXCHANGED:
            refuse("symmetric-search", f"the search with racks supports up to {MOST_EXCHANGED} nodes, not {data.n}")
        return list(exchange_candidates(data, seed=seed, starts=starts, steps=steps, given=given))
    if data.n > MOST_ELEMENTS:
        refuse("symmetric-search", f"groups of {data.n} elements are too large to search; use n up to {MOST_ELEMENTS}")
    ways = (True, False) if data.directed else (False,)  # a two-way topology is also one of one-way links
    results = [Candidate(spec, 0.0) for spec in named(data.n, data.degree, data.directed)]
    for way in ways:
        results += cayley_candidates(data.n, data.degree, way, seed=seed, starts=starts, moves=moves, deadline=deadline)
    if deadline is None or time.monotonic() < deadline:
        results += exchange_candidates(data, seed=seed, starts=starts, steps=steps, given=given)
    return sorted(results, key=lambda candidate: candidate.least)


@dataclass
class SearchResult:
    """The best topology of a search: its spec, its time T, and its flows on orbits (None if they are not solved).

    ``given`` is the known solution from which the search started, as long as nothing is faster.
    """

    spec: str = ""
    time: float = np.inf
    tried: int = 0
    candidates: int = 0
    orbits: Orbits | None = None
    flows: F64 | None = None
    interrupted: bool = False
    given: Mapping[str, F64] | None = None


def search(
    context: Context,
    data: Design,
    *,
    starts: int = 4,
    moves: int = 300,
    most: int = 40,
    exchanges: int = 5000,
    on_better: Callable[[SearchResult], None] = lambda result: None,
) -> SearchResult:
    """Solve the flow problem of candidates in order until no other can be better, or the bound is attained.

    ``context`` gives seed, tolerance and time limit. At most half of the time is used to list candidates. If time runs
    out before any flow problem is solved, the first candidate is returned without flows.
    """
    half = None if context.deadline is None else (time.monotonic() + context.deadline) / 2
    result, known = SearchResult(), None
    if context.start is not None:
        known = topology_of(data, context.start)
        result = SearchResult(time=1.0 / data.objective(context.start), given=context.start)
        on_better(result)
    listed = candidates(
        data, seed=context.task.seed, starts=starts, moves=moves, steps=exchanges, deadline=half, given=known
    )
    bound, result.candidates = float(least_time(data)[0]) * (1 + context.task.tol), len(listed)
    if known is not None:  # the flows of the start may not be the best ones
        listed.insert(0, Candidate(known, 0.0))
    for candidate in listed[:most]:
        if result.time <= bound or candidate.least >= result.time:
            break
        topology = candidate.topology()
        try:
            improve(context, result, topology, on_better)
        except TimeoutError:
            result.interrupted = True
            result.spec = result.spec or topology.spec
            break
    return result


def improve(
    context: Context, result: SearchResult, topology: Topology, on_better: Callable[[SearchResult], None]
) -> float:
    """Solve the flow problem of a topology, and keep it if it is the fastest; return a lower bound on its time.

    Raises
    ------
    TimeoutError
        When no time is left.
    """
    from opticoll.formulations.alltoall.master import Master
    from opticoll.solvers.methods.flows import flow_orbits
    from opticoll.solvers.methods.flows.orbit_lp import solve_reduced

    context.remaining()
    try:
        orbits = flow_orbits.find(Master.prepare(topology).flow)
    except NotApplicable:  # disconnected
        return np.inf
    solved = solve_reduced(context, orbits, None, "auto")
    result.tried += 1
    if solved.flows is not None and solved.upper < result.time * (1 - 1e-9):
        spec = (digraph_spec(topology) if topology.spec.startswith("custom:") else None) or topology.spec
        result.spec, result.time, result.orbits, result.flows = spec, solved.upper, orbits, solved.flows
        result.given = None
        on_better(result)
    return solved.lower


def exclude_others(
    context: Context, data: Design, result: SearchResult, most: int, on_better: Callable[[SearchResult], None]
) -> Exclusion | None:
    """Enumerate the topologies of few nodes that may be faster than the result, and keep the fastest of them.

    None if that proves nothing: for racks, many nodes, or more than ``most`` partial topologies.
    """
    if data.rack or data.n > MOST_ENUMERATED or most <= 0:
        return None

    def improved(topology: Topology) -> tuple[float, float]:
        least = improve(context, result, topology, on_better)
        return least, result.time

    exclusion = Exclusion(data, result.time, context.task.tol, most)
    try:
        return exclusion if exclusion.run(improved, context.remaining) else None
    except TimeoutError:
        result.interrupted = True
        return None


def run_symmetric_search(context: Context) -> Answer:
    """Topologies of given degree by search among Cayley graphs, named families, and by exchanges of links.

    On a vertex-transitive topology of degree d whose distances from a node add up to S, every routing has T >= S / d,
    and the linear program on orbits (:mod:`opticoll.solvers.methods.flows.orbit_lp`) gives T itself in milliseconds.
    The search therefore minimises S over the generators of Cayley graphs, and T over the best of those:

    1. groups: all metacyclic Z_m x_r Z_k of order n (:mod:`opticoll.instances.families.low_diameter`), with circulants,
       abelian groups of rank two and dihedral groups among them
    2. for each, annealing from seeded random generators, of which one or two are replaced at a time
       (:mod:`opticoll.solvers.methods.topology.sequence_orbits`)
    3. T of the candidates with the smallest S, and of the named families of that size and degree
    4. for up to 64 nodes, T of topologies without symmetry by exchanges of links
       (:mod:`opticoll.solvers.methods.topology`); with limits on the cables of racks, only of these

    A known topology (``start``) is the first one to beat; of up to 64 nodes, its flows are solved, and its links
    exchanged. The search is a heuristic. Optimality can be proven by the bounds on every topology
    (:mod:`opticoll.formulations.topology.design`), or, for up to 24 nodes without racks, by enumeration: a topology is
    excluded by its sum of distances or by prices of its links
    (:mod:`opticoll.solvers.methods.topology.graph_enumeration`).
    """
    data: Design = context.data

    def answer_of(result: SearchResult) -> Answer:
        return Answer(
            Termination.TOLERANCE,
            values=_values_of(result),
            solver={"algorithm": "annealing over generators"},
            metrics={"candidates": result.candidates, "tried": result.tried, "found": result.spec},
        )

    def keep(result: SearchResult) -> None:
        context.save(answer_of(result), 1.0 / result.time)

    numbers = {name: int(value) for name, value in context.parameters.items() if name != "partial"}
    best = search(context, data, on_better=keep, **numbers)
    if best.orbits is None and best.given is None:
        ended = Termination.TIME_LIMIT if best.interrupted else Termination.TOLERANCE
        return Answer(ended, message="no candidate was found; increase starts, or use another degree")
    exclusion = None
    if best.time > float(least_time(data)[0]) * (1 + context.task.tol) and not best.interrupted:
        exclusion = exclude_others(context, data, best, int(context.parameters["partial"]), keep)
    answer = answer_of(best)
    if exclusion is not None:
        answer.bound = rounding.quotient_up(1.0, exclusion.least)
        answer.bound_source = (
            f"enumeration of {exclusion.partial} partial topologies, {exclusion.whole} of them whole, "
            "by distances and prices of links"
        )
        answer.metrics = {**answer.metrics, "partial_topologies": exclusion.partial, "topologies": exclusion.whole}
    if exclusion is not None or best.time <= float(least_time(data)[0]) * (1 + context.task.tol):
        answer.termination = Termination.OPTIMAL
    elif best.interrupted:
        answer.termination = Termination.TIME_LIMIT
    return answer


def _values_of(result: SearchResult) -> dict[str, Any]:
    """Links and flows of the best topology as arrays of the model."""
    if result.given is not None:
        return dict(result.given)
    assert result.orbits is not None
    assert result.flows is not None
    F = 1.0 / result.time
    return values_on(result.orbits.data.topology, result.orbits.lift(result.flows) * F, F)


METHOD = Method(
    name="symmetric-search",
    title="Cayley graphs and named families of given degree, and exchanges of links",
    summary="vertex-transitive topologies with small distances by annealing over the generators of groups; up to 64 "
    "nodes also topologies without symmetry by exchanges of links, optionally with limits on the cables of racks",
    serves=("topology.design",),
    # n=7, D=2 295 variables in 1.3 s, n=7, D=3 295 in 8.3 s; n=8, D=3 449 not solved.
    takes_over=(Beyond("topology.design", 300, proves=False),),
    parameters=(
        Parameter("starts", int, default=4, help="random generators to start from, for each group"),
        Parameter("moves", int, default=300, help="replacements of generators from each start"),
        Parameter("exchanges", int, default=5000, help="exchanges of links per start; 0 for none"),
        Parameter("most", int, default=40, help="number of candidates whose flow problem is solved"),
        Parameter("partial", int, default=50_000, help="most partial topologies enumerated for a proof; 0 for none"),
    ),
    run=run_symmetric_search,
    starts=True,
)

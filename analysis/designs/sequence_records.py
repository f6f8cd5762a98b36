"""The table of sequences of configurations with the least known all-to-all times, and the search for better ones.

Circuits are u -> u g for the generators g of a configuration in a group, so one source stands for all: hops and lengths
of thousands of nodes take seconds. Up to ``MOST_EXCHANGED`` nodes, circuits without symmetry are searched as well, by
the method ``sequence-search``. ``sequence_records.csv`` has a row for every sequence.
"""

from __future__ import annotations

import csv
import math
import time
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.analysis.designs.two_groups import PREFIX
from opticoll.arguments import number, refused, whole_number
from opticoll.errors import NoSolution
from opticoll.formulations.topology import sequence_bounds
from opticoll.formulations.topology.sequence import TopologySequence
from opticoll.solvers import solve
from opticoll.solvers.methods.topology.sequence_flows import orbit_lines, route
from opticoll.solvers.methods.topology.sequence_orbits import (
    OrbitSequence,
    few_hops,
    named_group,
    neighbour,
    some_groups,
)
from opticoll.solvers.methods.topology.sequence_search import MOST_EXCHANGED
from opticoll.solvers.process.isolation import call_isolated, modules_of
from opticoll.solvers.task import Task

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from opticoll.solvers.methods.topology.sequence_flows import CircuitLines, RoutedSequence
    from opticoll.solvers.process.messages import Report
    from opticoll.types import Seconds


TABLE = "sequence_records.csv"
#: Group of a record of circuits without symmetry.
CIRCUITS = "circuits"
#: Relative difference of a time and a bound that are equal.
EQUAL = 1e-8
#: Largest violation of a flow that is accepted [shards].
TOLERANCE = 1e-7
#: Replacements of the first round of a search; each later round has twice as many, in half as many groups.
FIRST_MOVES = 2_000
#: Sequences near one of these whose lengths are computed without progress.
MOST_NEAR = 100
#: Sequences of a round whose lengths are computed.
MOST_ROUTED = 3


@dataclass(frozen=True)
class SequenceRecord:
    """A sequence of configurations of circuits u -> u g of a group, and its all-to-all time without changes.

    ``time`` is in shards / link bandwidth, for one shard from every node to every other; ``bound`` holds for every
    sequence of as many configurations. ``group`` is a name of
    :func:`~opticoll.analysis.designs.two_groups.record_group`, or ``direct`` for direct circuits in turn,
    ``static`` for a topology of the table of designs, and ``circuits`` for circuits without symmetry; these have no
    generators. ``circuits`` has specs of the configurations then.
    """

    n: int
    degree: int
    directed: bool
    configurations: int
    group: str
    generators: tuple[tuple[int, ...], ...]
    time: float
    bound: Fraction
    circuits: tuple[str, ...] = ()

    @property
    def gap(self) -> float:
        """Gap to the bound: time / bound - 1."""
        return self.time / float(self.bound) - 1.0

    @property
    def best_possible(self) -> bool:
        """Whether no sequence of as many configurations takes less time."""
        return self.gap <= EQUAL

    @property
    def topologies(self) -> tuple[str, ...]:
        """Every configuration as the spec of an instance; none if the group has no spec, or neither is listed."""
        if self.circuits:
            return self.circuits
        if self.group in ("direct", "static", "xor") or self.group.startswith(PREFIX):
            return ()
        m, k, r = self.group.split(",")
        way = ",directed" if self.directed else ""
        inverses = named_group(self.n, self.group).inverses
        rows = [[g for g in row if self.directed or g <= inverses[g]] for row in self.generators]
        return tuple(f"cayley:m={m},k={k},r={r},generators={'x'.join(map(str, row))}{way}" for row in rows)


@cache
def sequence_records() -> dict[tuple[int, int, bool], tuple[SequenceRecord, ...]]:
    """The table of records, by nodes, degree and whether circuits may run one way, by number of configurations."""
    text = files("opticoll.analysis.designs").joinpath(TABLE).read_text(encoding="utf-8")
    result: dict[tuple[int, int, bool], tuple[SequenceRecord, ...]] = {}
    for row in csv.DictReader(text.splitlines()):
        parts = tuple(row["generators"].split("|"))
        listed = row["group"] == CIRCUITS
        generators = () if listed else tuple(tuple(map(int, part.split("x"))) for part in parts)
        key = int(row["nodes"]), int(row["degree"]), row["directed"] == "yes"
        time, bound = float(row["time"]), Fraction(row["bound"])
        record = SequenceRecord(
            *key, int(row["configurations"]), row["group"], generators, time, bound, parts if listed else ()
        )
        result[key] = (*result.get(key, ()), record)
    return result


def bound_on_time(data: TopologySequence, configurations: int) -> Fraction:
    """Lower bound on the time of every sequence of so many configurations that reaches all nodes, without changes."""
    hops, _ = sequence_bounds.hop_time(data, configurations)
    ports, _ = sequence_bounds.port_time(data)
    return ports if hops == math.inf else max(Fraction(hops), ports)


def violation(lines: CircuitLines, routed: RoutedSequence, n: int, configurations: int) -> float:
    """Largest violation of the flow of one source [shards]: of capacities, stocks and demand."""
    flow = routed.flows[0]
    load = np.bincount(lines.group, weights=flow, minlength=lines.circuits.size)
    room = lines.circuits * routed.lengths[lines.shared_phase]
    moved = np.zeros((configurations, n))
    np.add.at(moved, (lines.phase, lines.head), flow)
    np.subtract.at(moved, (lines.phase, lines.tail), flow)
    stock = np.cumsum(moved, axis=0)[:, 1:]
    return float(max((load - room).max(), -stock.min(), 1.0 - stock[-1].min(), -flow.min()))


def routed_record(data: TopologySequence, one: OrbitSequence, bound: Fraction) -> SequenceRecord | None:
    """The record of a sequence, with its time by a linear program; None if its flow is not accurate."""
    lines = orbit_lines(data, one.group.table, one.generators)
    routed = route(data, lines, data.configurations)
    if routed is None or violation(lines, routed, data.n, data.configurations) > TOLERANCE:
        return None
    generators = tuple(tuple(sorted(row)) for row in one.generators.tolist())
    T = max(routed.time, float(bound))
    return SequenceRecord(data.n, data.degree, data.directed, data.configurations, one.group.name, generators, T, bound)


def solved_in_worker(function: str, arguments: Mapping[str, Any], n: int, degree: int) -> Any:
    """What a function returns that solves with HiGHS, in a worker: HiGHS prints when it is first used in a process.

    Raises
    ------
    NoSolution
        If the worker ends early, as for want of memory.
    """
    answer = call_isolated(function, arguments, threads=1, modules=modules_of("highs"))
    if not answer.finished:
        msg = f"design n={n} degree={degree}: {answer.message}"
        raise NoSolution(msg)
    return answer.values


def best_sequence(
    n: int, degree: int, configurations: int, *, directed: bool = False, seconds: Seconds = 10.0, seed: int = 0
) -> SequenceRecord | None:
    """Search the groups of order n for a sequence of configurations with a small all-to-all time.

    Rounds of simulated annealing on the hops from one node; each round takes the better half of the groups and twice
    as many replacements. The lengths of the best sequences of a round come from a linear program of one source.
    Two-way circuits cannot give each of an odd number of nodes an odd number of ports: one port of each is idle then,
    and up to ``MOST_EXCHANGED`` nodes circuits without symmetry are searched as well.

    Parameters
    ----------
    n, degree, configurations
        Nodes, circuits out of and into each, and configurations.
    directed
        Whether circuits may run one way only.
    seconds
        Time after which no new descent begins [s]. A sequence that meets the bound ends the search.
    seed
        Seed of the search.

    Returns
    -------
    SequenceRecord | None
        None if no sequence that reaches all nodes was found.

    Raises
    ------
    BadInput
        If an argument is of another kind.
    NoSolution
        If the worker that searches ends early, as for want of memory.
    """
    for name, value in (("n", n), ("degree", degree), ("configurations", configurations), ("seed", seed)):
        whole_number(value, f"best_sequence: {name}", {"n": 2, "seed": 0}.get(name, 1))
    number(seconds, "best_sequence: seconds")
    if not isinstance(directed, bool):
        raise refused(directed, "best_sequence: directed", "True or False")
    sent = {"configurations": configurations, "directed": directed, "seconds": seconds, "seed": seed}
    function = "opticoll.analysis.designs.sequence_records:search_in_worker"
    found: SequenceRecord | None = solved_in_worker(function, {"n": n, "degree": degree, **sent}, n, degree)
    return found


def search_in_worker(report: Report, **search: Any) -> SequenceRecord | None:
    """Search in the worker; target of :func:`best_sequence`."""
    del report
    return _searched(**search)


def _searched(
    n: int, degree: int, configurations: int, *, directed: bool, seconds: Seconds, seed: int
) -> SequenceRecord | None:
    """As :func:`best_sequence`, in this process."""
    data = TopologySequence.of_nodes(n, degree, configurations, directed=directed)
    bound, floor = bound_on_time(data, configurations), sequence_bounds.least_hops(data)
    if not directed and degree > 1 and n * degree % 2:
        return _with_an_idle_port(n, degree, configurations, bound, seconds=seconds, seed=seed)
    rng, end = np.random.default_rng(seed), time.monotonic() + seconds
    groups, moves = list(some_groups(n)), FIRST_MOVES
    best: SequenceRecord | None = None
    while best is None or (not best.best_possible and time.monotonic() < end):
        mixed = [groups[at] for at in rng.permutation(len(groups))]
        found = few_hops(data, rng, mixed, rounds=1, moves=moves)
        listed = sorted(_until(found, floor, end), key=lambda one: one.hops)
        for one in listed[:MOST_ROUTED]:
            record = _refined(rng, data, one, bound, best, end)
            best = record if best is None or (record is not None and record.time < best.time) else best
            if best is not None and best.best_possible:
                return best
        if not listed:
            return None
        names = [one.group.name for one in listed]
        if listed[0].hops > floor:
            kept = set(names[: max(2, len(groups) // 2)])
            groups, moves = [group for group in groups if group.name in kept], 2 * moves
    return best


def _with_an_idle_port(
    n: int, degree: int, configurations: int, bound: Fraction, *, seconds: Seconds, seed: int
) -> SequenceRecord | None:
    """The best of the sequences with one port less, and of those without symmetry; None if there is neither."""
    small = n <= MOST_EXCHANGED
    time_s = seconds / 4 if small else seconds
    fewer = _searched(n, degree - 1, configurations, directed=False, seconds=time_s, seed=seed)
    found = [] if fewer is None else [replace(fewer, degree=degree, bound=bound)]
    if small:
        other = unsymmetric_sequence(n, degree, configurations, directed=False, seconds=3 * seconds / 4, seed=seed)
        found += [] if other is None else [other]
    return min(found, key=lambda one: one.time, default=None)


def _until(found: Iterable[OrbitSequence], floor: float, end: float) -> Iterator[OrbitSequence]:
    """The sequences found until one has the least hops, or the time is over."""
    for one in found:
        yield one
        if one.hops <= floor or time.monotonic() > end:
            return


def _refined(
    rng: np.random.Generator,
    data: TopologySequence,
    one: OrbitSequence,
    bound: Fraction,
    best: SequenceRecord | None,
    end: float,
) -> SequenceRecord | None:
    """The record of a sequence or of one near it that takes less time; None if its hops exclude that it is the best."""
    if best is not None and one.hops / data.degree >= best.time * (1 - EQUAL):
        return None
    record, tried = routed_record(data, one, bound), 0
    while record is not None and not record.best_possible and tried < MOST_NEAR and time.monotonic() < end:
        if record.time <= one.hops / data.degree * (1 + EQUAL) and one.hops > sequence_bounds.least_hops(data):
            break  # only fewer hops can help, and annealing finds those sooner
        tried += 1
        other = neighbour(rng, data, one)
        if other is None or other.hops / data.degree > record.time:
            continue
        near = routed_record(data, other, bound)
        if near is not None and near.time <= record.time:
            tried = tried if near.time > record.time * (1 - EQUAL) else 0
            record, one = near, other
    return record


def unsymmetric_sequence(
    n: int, degree: int, configurations: int, *, directed: bool, seconds: Seconds, seed: int
) -> SequenceRecord | None:
    """The record of the sequence that ``sequence-search`` finds, checked by the formulation; None if it finds none."""
    settings = {"configurations": configurations, "directed": directed}
    task = Task(
        "topology.sequence",
        f"servers:n={n},degree={degree}",
        method="sequence-search",
        settings=settings,
        time_limit_s=seconds,
        seed=seed,
    )
    found = solve.solve(task).record
    topologies = (found.metrics or {}).get("topologies")
    if not found.verified or found.objective is None or not isinstance(topologies, list):
        return None
    if len(topologies) != configurations or not all(topologies):
        return None
    bound = bound_on_time(TopologySequence.of_nodes(n, degree, configurations, directed=directed), configurations)
    T, circuits = max(found.objective, float(bound)), tuple(map(str, topologies))
    return SequenceRecord(n, degree, directed, configurations, CIRCUITS, (), T, bound, circuits)

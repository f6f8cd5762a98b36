"""Reconfigure or not: the best number of configurations of an all-to-all at a delay, with what is certain about it.

With T(K) the time of the best known sequence of K configurations, and B(K) a bound on every such sequence, both without
the changes, K configurations take T(K) + delay (K-1) at best known, and no less than B(K) + delay (K-1). The known
sequences are those of :func:`opticoll.analysis.designs.envelope.envelope`; numbers whose bound is not met and
below the best known value are searched.
"""

from __future__ import annotations

import math
import time
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from opticoll.analysis.designs.design import MOST_NODES
from opticoll.analysis.designs.design import records as topology_records
from opticoll.analysis.designs.envelope import Envelope, direct_configurations, envelope
from opticoll.analysis.designs.sequence_records import SequenceRecord, best_sequence, solved_in_worker
from opticoll.analysis.designs.two_groups import record_group
from opticoll.analysis.plots.style import counted, label
from opticoll.analysis.rendering import Listing, Printed, number
from opticoll.analysis.result.progress_line import progress_here
from opticoll.arguments import number as positive_number
from opticoll.arguments import refused, whole_number
from opticoll.errors import BadInput, refuse
from opticoll.formulations.topology import sequence_bounds
from opticoll.formulations.topology.sequence import TopologySequence
from opticoll.formulations.topology.sequence_data import MOST_CONFIGURATIONS
from opticoll.formulations.variables import TIME
from opticoll.instances.families.regular_graphs import circuits_spec
from opticoll.instances.quantities import Duration, relative, shard_seconds
from opticoll.solvers.methods.topology.sequence_flows import all_lines, orbit_lines, route
from opticoll.solvers.methods.topology.sequence_orbits import OrbitSequence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from opticoll.instances.topology import F64, I64
    from opticoll.solvers.process.messages import Report
    from opticoll.solvers.task import Progress
    from opticoll.types import DataSize, Delay, Json, Rate, Seconds


#: Limit of all searches together, unless one is given, and of one at least [s].
TIME_LIMIT_S, LEAST_S = 30.0, 1.0
#: Maximum number of numbers of configurations that are searched, and that are listed without a known sequence.
MOST_SEARCHED, MOST_LISTED = 12, 20
#: Relative difference of values that counts as none.
TOL = 1e-9
#: Gap that is shown as none.
NONE = 1e-8
#: Characters of a topology's spec, and configurations of a sequence, in a table.
SPEC, MOST_LINES = 72, 16

VERDICTS = {
    "stay": "staying is provably best",
    "change": "changing is provably best",
    "open": "not decided",
}


@dataclass(frozen=True)
class NumberOfConfigurations:
    """What is known of a number of configurations.

    Parameters
    ----------
    configurations
        Their number K.
    T, bound
        Time of the best known sequence, None without one, and the bound on every sequence, both without the changes
        [shards / link bandwidth].
    value, value_bound
        The same with the delay of the K-1 changes.
    source
        Group of the circuits, ``direct`` for direct circuits in turn, or ``static`` for a topology of the table of
        designs; empty without T.
    """

    configurations: int
    T: float | None
    bound: float
    value: float | None
    value_bound: float
    source: str = ""


@dataclass(frozen=True, repr=False)
class Reconfiguration(Printed):
    """Whether to change circuits during an all-to-all, and how often.

    Parameters
    ----------
    n, degree, directed
        Nodes, circuits out of and into each, and whether they may run one way.
    delay, delay_s, shard_s
        Time of a change [shards / link bandwidth] and in seconds, and the time of a shard over a circuit [s]; None
        where shards and bandwidths have no unit.
    shard, bandwidth
        Size of a shard and bandwidth of a circuit, as they were given; None where they have no unit.
    verdict
        ``stay`` or ``change`` if that is proven best, otherwise ``open``.
    configurations, certain
        Number of configurations of the best known sequence, and whether it is proven that no other number is better.
    value, bound, gap
        Its time with the changes, the bound on all sequences of any number, and value / bound - 1.
    topologies, lengths
        Specs of its configurations in turn (empty where there is none), and how long each lasts [shards / link
        bandwidth]; no lengths for a topology that stays.
    rows
        What is known of the numbers of configurations; all others take at least ``beyond`` with their changes.
    interrupted
        Whether the search ended before all numbers that may pay were searched.
    """

    n: int
    degree: int
    directed: bool
    delay: float
    delay_s: float | None
    shard_s: float | None
    verdict: str
    configurations: int
    certain: bool
    value: float
    value_s: float | None
    bound: float
    gap: float
    topologies: tuple[str, ...]
    lengths: tuple[float, ...]
    rows: tuple[NumberOfConfigurations, ...]
    beyond: float
    interrupted: bool
    shard: str | None = None
    bandwidth: str | None = None

    @property
    def shown_delay(self) -> str:
        """The delay in words, in seconds too where they are known."""
        return f"{number(self.delay, 6)}   [{TIME}]{_seconds(self.delay_s)}"

    def lines(self) -> dict[str, str]:
        """The answer in words, by name of the line, as ``opticoll design --delay`` prints it."""
        K = self.configurations
        often = "one topology that stays" if K == 1 else f"{K} configurations, {counted(K - 1, 'change')}"
        certain = "provably the best number" if self.certain else "best known; other numbers are not excluded"
        source = next(row.source for row in self.rows if row.configurations == K)
        sequence = "direct circuits in turn" if source == "direct" else f"circuits u -> u g of the group {source}"
        sizes = f"{self.shard} over a circuit of {self.bandwidth}, which takes{_seconds(self.shard_s)[2:]}"
        return {
            **({} if self.shard is None else {"shard": sizes}),
            "answer": VERDICTS[self.verdict],
            "best": f"{often}   ({certain})",
            "time": f"{number(self.value, 6)}   with the changes{_seconds(self.value_s)}",
            "bound": f"{number(self.bound, 6)}   for any number of configurations",
            "gap": "none: best possible" if self.gap <= NONE else f"{100 * self.gap:.2f} %",
            "others": f"{number(self.beyond, 6)} or more   with numbers of configurations that are not listed",
            **({} if self.topologies else {"sequence": sequence}),
            **({"search": "ended before all numbers that may pay were searched"} if self.interrupted else {}),
        }

    def tables(self) -> list[Listing]:
        """What is known of the numbers of configurations, and the best sequence."""
        columns = {
            "K": "configurations",
            "T": "T",
            "bound": "bound",
            "with changes": "value",
            "at least": "value_bound",
            "from": "source",
        }
        numbers = [{name: getattr(row, field) for name, field in columns.items()} for row in self.rows]
        sequence = [
            {"configuration": k, "length": length, "topology": label(spec, SPEC)}
            for k, (spec, length) in enumerate(zip(self.topologies, self.lengths, strict=False))
        ]
        if len(sequence) > MOST_LINES:
            sequence = sequence[:MOST_LINES]
            sequence[-1] |= {"topology": f"… {self.configurations - MOST_LINES + 1} configurations more, with --json"}
        tables = [Listing("configurations", [*columns], numbers)]
        return [*tables, Listing("best sequence", [*sequence[0]], sequence)] if sequence else tables

    def document(self) -> dict[str, Json]:
        """The answer as ``--json`` prints it; bounds are null where no sequence of that many configurations exists."""
        rows = [
            {name: None if entry == math.inf else entry for name, entry in asdict(row).items()} for row in self.rows
        ]
        return asdict(self) | {"rows": rows}

    @property
    def _title(self) -> str:
        way = "one way" if self.directed else "both ways"
        return f"all-to-all of {self.n} nodes, degree {self.degree}, circuits {way}, delay {self.shown_delay}"


def reconfigure(
    n: int,
    degree: int,
    delay: Delay,
    *,
    shard: DataSize = "",
    bandwidth: Rate = "",
    directed: bool = False,
    time_limit: Seconds | None = None,
    seed: int = 0,
    on_progress: Callable[[Progress], None] | None = None,
) -> Reconfiguration:
    """Find out whether an all-to-all should change circuits, at a delay per change.

    Ctrl-C (:class:`KeyboardInterrupt`) ends the search and keeps what is known.

    Parameters
    ----------
    n, degree
        Nodes, and circuits out of and into each, of bandwidth 1.
    delay
        Time of a change [shards / link bandwidth]; with ``shard`` in seconds, such as ``"3.7us"``.
    shard, bandwidth
        What every node sends to every other, such as ``"64MB"``, and the bandwidth of a circuit, such as ``"100Gb/s"``;
        both for a delay in seconds, neither for one without a unit.
    directed
        Whether circuits may run one way only.
    time_limit
        Limit of all searches together [s], ``TIME_LIMIT_S`` by default; the last one ends a little later.
    seed
        Seed of the searches.
    on_progress
        Called with the best value and the bound on all sequences when a search has ended.

    Raises
    ------
    BadInput
        For sizes or times out of range.
    """
    at, unit_s = _times(delay, shard, bandwidth)
    n, degree = whole_number(n, "design: n"), whole_number(degree, "design: degree")
    if n > MOST_NODES:
        refuse("design", f"n={n} exceeds the limit of {MOST_NODES} nodes; use fewer")
    whole_number(seed, "design: seed", 0)
    if not (on_progress is None or callable(on_progress)):
        raise refused(on_progress, "design: on_progress", "a function of a dict")
    limit = TIME_LIMIT_S if time_limit is None else positive_number(time_limit, "design: time_limit", positive=True)
    with progress_here(f"design n={n} degree={degree}") if on_progress is None else nullcontext(on_progress) as shown:
        answer = _decided(n, degree, at, unit_s, directed=directed, limit=limit, seed=seed, on_progress=shown)
    return answer if unit_s is None else replace(answer, shard=_size(shard), bandwidth=bandwidth)


def _decided(
    n: int,
    degree: int,
    at: float,
    unit_s: float | None,
    *,
    directed: bool,
    limit: float,
    seed: int,
    on_progress: Callable[[Progress], None] | None,
) -> Reconfiguration:
    """Search sequences until the best number of configurations is known, or the limit [s] is reached."""
    began = time.monotonic()
    curve, interrupted = envelope(n, degree, directed=directed), False
    tried: set[int] = set()

    def report() -> None:
        if on_progress is not None:
            choice = curve.at(at)
            elapsed = time.monotonic() - began
            on_progress({"objective": choice.value, "bound": choice.bound, "elapsed_s": elapsed})

    report()
    try:
        while wanted := [K for K in _open_numbers(curve, at) if K not in tried]:
            left = began + limit - time.monotonic()
            if left <= 0 or len(tried) == MOST_SEARCHED:
                interrupted = True
                break
            tried.add(wanted[0])
            share = max(left / min(len(wanted), MOST_SEARCHED - len(tried) + 1), LEAST_S)
            found = best_sequence(n, degree, wanted[0], directed=directed, seconds=share, seed=seed)
            if found is not None:
                curve = envelope(n, degree, directed=directed, others=(*curve.known, found))
            report()
    except KeyboardInterrupt:
        interrupted = True
    return _answer(curve, at, unit_s, interrupted=interrupted)


def _seconds(time: float | None) -> str:
    return "" if time is None else f" = {time:.4g} s"


def _size(shard: DataSize) -> str:
    """The size of a shard with its unit, as it was given."""
    text = str(shard)
    return text if text[-1:].isalpha() else f"{text} B"


def _times(delay: Delay, shard: DataSize, bandwidth: Rate) -> tuple[float, float | None]:
    """The delay [shards / link bandwidth], and the time of a shard over a circuit [s], None without a shard."""
    try:
        stated = Duration(delay)
    except ValueError:
        msg = f"design: delay={str(delay)[:40]!r} is not {Duration.described}"
        raise BadInput(msg) from None
    unit_s = shard_seconds(str(shard), bandwidth, "design")
    given = {"shard": str(shard), "bandwidth": bandwidth}
    units = {"shard": "64MB", "bandwidth": "100Gb/s"}
    missing = {name: units[name] for name, value in given.items() if not value}
    if stated.seconds is not None and missing:
        msg = f"design: delay={stated} is in seconds, so that shards and circuits need units; add"
        raise BadInput(msg, remedy=missing)
    if missing and any(given.values()):
        one = "shard" if str(shard) else "bandwidth"
        msg = f"design: a {one} is for times in seconds; omit it, or write a delay such as 20us and add"
        raise BadInput(msg, remedy=missing)
    if stated.seconds is None and unit_s is not None:
        refuse("design", f"delay={delay} has no unit; write a time, such as 20us, or omit shard and bandwidth")
    at = relative(stated, unit_s, "design: delay")
    if at == 0:
        refuse("design", f"delay={stated} must be positive; without a delay, changes cost nothing")
    return at, unit_s


def _open_numbers(curve: Envelope, delay: float) -> list[int]:
    """Numbers of configurations that may still improve the best value, the smallest bound first."""
    value, times = curve.at(delay).value, curve.times
    most = min(curve.direct + MOST_SEARCHED, MOST_CONFIGURATIONS)
    bounds = {K: curve.bound(K) for K in range(1, most + 1)}
    paying = [
        K
        for K, bound in bounds.items()
        if bound + delay * (K - 1) < value * (1 - TOL) and bound * (1 + TOL) < times.get(K, math.inf)
    ]
    return sorted(paying, key=lambda K: (bounds[K] + delay * (K - 1), K))


def _answer(curve: Envelope, delay: float, unit_s: float | None, *, interrupted: bool) -> Reconfiguration:
    choice = curve.at(delay)
    best, value, times = choice.configurations, choice.value, curve.times
    last = max(curve.direct, *times) + 2
    least = {K: curve.bound(K) + delay * (K - 1) for K in range(1, last)}
    others = min(bound for K, bound in least.items() if best != K)
    unknown = sorted((bound, K) for K, bound in least.items() if K not in times and bound < value)
    shown = sorted([*times, *(K for _, K in unknown[:MOST_LISTED])])
    rows = []
    for K in shown:
        T, source = times.get(K), curve.best[K].group if K in times else ""
        paid = None if T is None else T + delay * (K - 1)
        rows.append(NumberOfConfigurations(K, T, curve.bound(K), paid, least[K], source))
    topologies, lengths = _sequence(curve.best[best])
    return Reconfiguration(
        curve.n,
        curve.degree,
        curve.directed,
        delay,
        None if unit_s is None else delay * unit_s,
        unit_s,
        choice.verdict,
        best,
        value <= others * (1 + TOL),
        value,
        None if unit_s is None else value * unit_s,
        choice.bound,
        max(choice.gap, 0.0),
        topologies,
        lengths,
        tuple(rows),
        min(curve.bound(K) + delay * (K - 1) for K in range(1, last + 1) if K not in shown),
        interrupted,
    )


def _sequence(record: SequenceRecord) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """Specs of the configurations of a record, as far as there are any, and their lengths.

    Raises
    ------
    NoSolution
        If the worker that solves their linear program ends early, as for want of memory.
    """
    n, degree, directed = record.n, record.degree, record.directed
    if record.group == "static":
        rows = [topology_records().get((n, degree, way)) for way in {False, directed}]
        return tuple(row.topology for row in rows if row is not None and row.time == record.time)[:1], (record.time,)
    if record.group == "direct":
        return _direct(record)
    found: tuple[tuple[str, ...], tuple[float, ...]] = solved_in_worker(
        "opticoll.analysis.designs.reconfigure:sequence_in_worker", {"record": record}, n, degree
    )
    return found


def sequence_in_worker(record: SequenceRecord, report: Report) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """The circuits of a record and the lengths of its configurations, for :func:`solved_in_worker`."""
    n, degree, directed = record.n, record.degree, record.directed
    if record.circuits:
        return record.circuits, _lengths_of(record)
    one = OrbitSequence(0, record_group(n, record.group), np.array(record.generators, dtype=np.int64))
    data = TopologySequence.of_nodes(n, degree, record.configurations, directed=directed)
    routed = route(data, orbit_lines(data, one.group.table, one.generators), record.configurations)
    lengths: F64 = np.zeros(0) if routed is None else routed.lengths
    return record.topologies or _specs(one.circuits), tuple(lengths.tolist())


def _lengths_of(record: SequenceRecord) -> tuple[float, ...]:
    """Lengths of configurations that are given by their circuits."""
    from opticoll.instances import parse

    n, K = record.n, record.configurations
    data = TopologySequence.of_nodes(n, record.degree, K, directed=record.directed)
    counts = np.zeros((K, n, n), dtype=np.int64)
    for one, spec in zip(counts, record.circuits, strict=True):
        topology = parse(spec)
        np.add.at(one, (topology.tail, topology.head), 1)
    routed = route(data, all_lines(data, counts), K)
    return () if routed is None else tuple(routed.lengths.tolist())


def _direct(record: SequenceRecord) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """Direct circuits in turn."""
    n, d, directed = record.n, record.degree, record.directed
    rounds = sequence_bounds.rotation(n, 1, directed=directed)
    both = [direct_configurations(n, d, directed=directed, full=full) for full in (True, False)]
    chosen = next(one for one in both if len(one) == record.configurations)
    every = []
    for row, _ in chosen:
        counts = np.zeros((n, n), dtype=np.int64)
        for at in row:
            tail, head = np.array(rounds[at]).T
            counts[tail, head] += 1
        every.append(counts)
    return _specs(every), tuple(float(length) for _, length in chosen)


def _specs(every: Iterable[I64]) -> tuple[str, ...]:
    """Specs of circuits ``(n, n)``; none if one cannot be expressed."""
    specs = [circuits_spec(counts) for counts in every]
    return tuple(spec for spec in specs if spec is not None) if all(specs) else ()

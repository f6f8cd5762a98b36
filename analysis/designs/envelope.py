"""The least time over all sequences of configurations by the delay of a change, between known times and bounds.

With T(K) the time of K configurations without changes, the least of T(K) + delay (K - 1) over the known sequences is
an upper bound on the optimum over all sequences, and the same with bounds on T(K) a lower bound
(:mod:`opticoll.formulations.topology.sequence_bounds`). Both are concave and piecewise linear in the delay.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from numbers import Real
from typing import TYPE_CHECKING

import numpy as np

from opticoll.analysis.designs.design import MOST_NODES
from opticoll.analysis.designs.design import records as topology_records
from opticoll.analysis.designs.sequence_records import (
    EQUAL,
    SequenceRecord,
    bound_on_time,
    routed_record,
    sequence_records,
    solved_in_worker,
)
from opticoll.analysis.rendering import Printed, number
from opticoll.arguments import whole_number
from opticoll.errors import BadInput, refuse
from opticoll.formulations.topology import sequence_bounds
from opticoll.formulations.topology.sequence import TopologySequence
from opticoll.formulations.topology.sequence_data import MOST_CONFIGURATIONS
from opticoll.formulations.variables import TIME
from opticoll.instances.collective_steps import collective_steps, shared_ports
from opticoll.solvers.methods.topology.sequence_orbits import OrbitSequence, named_group
from opticoll.solvers.methods.topoopt.ring_permutations import selected

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pandas as pd
    from matplotlib.figure import Figure

    from opticoll.instances.topology import I64
    from opticoll.solvers.process.messages import Report

#: Most columns, nodes times circuits, of the linear program of a cyclic record.
MOST_CYCLIC = 50_000


@dataclass(frozen=True)
class DelayChoice:
    """The best known number of configurations at a delay: ``value`` is its time with all changes.

    ``bound`` holds for every sequence of any number of configurations. ``verdict`` is ``stay`` or ``change`` if that is
    proven best, otherwise ``open``.
    """

    delay: float
    configurations: int
    value: float
    bound: float
    verdict: str

    @property
    def gap(self) -> float:
        """Gap to the bound: value / bound - 1."""
        return self.value / self.bound - 1.0


@dataclass(frozen=True, repr=False)
class Envelope(Printed):
    """Times of sequences of configurations and bounds on them, for one number of nodes and ports.

    Parameters
    ----------
    n, degree, directed
        Nodes, ports, and whether circuits may run one way only.
    known
        The best known sequences.
    """

    n: int
    degree: int
    directed: bool
    known: tuple[SequenceRecord, ...]

    @cached_property
    def direct(self) -> int:
        """Number of configurations from which the ports alone bound the time: direct circuits between all pairs."""
        return -(-(self.n - 1) // self.degree)

    @cached_property
    def bounds(self) -> tuple[float, ...]:
        """Lower bounds on the time of 1, 2, ..., ``direct`` + 1 configurations, without changes; infinite for too few.

        The last one is that of the ports, and holds for any more configurations.
        """
        return bounds_of(self.n, self.degree, self.directed)

    def bound(self, configurations: int) -> float:
        """Lower bound on the time of so many configurations, without changes."""
        return self.bounds[min(configurations, len(self.bounds)) - 1]

    @cached_property
    def best(self) -> dict[int, SequenceRecord]:
        """The best known sequences by number of configurations."""
        numbers = sorted({one.configurations for one in self.known})
        return {
            K: min((one for one in self.known if one.configurations == K), key=lambda one: one.time) for K in numbers
        }

    @cached_property
    def times(self) -> dict[int, float]:
        """Times of the best known sequences, without changes, by number of configurations."""
        return {K: one.time for K, one in self.best.items()}

    def frame(self) -> pd.DataFrame:
        """Times and bounds by number of configurations, without changes [shards / link bandwidth]."""
        import pandas as pd

        rows = [(K, one.time, self.bound(K), one.time / self.bound(K) - 1.0, one.group) for K, one in self.best.items()]
        return pd.DataFrame(rows, columns=["configurations", "T", "bound", "gap", "group"])

    def plot(self) -> Figure:
        """Draw the least time by the delay of a change."""
        from opticoll.analysis.designs.reconfiguration_plots import draw_envelope

        return draw_envelope(self)

    def lines(self) -> dict[str, str]:
        """Which delays are decided, and how much is known, in words, by name of the line."""
        gaps = [T / self.bound(K) - 1.0 for K, T in self.times.items()]
        below, least = self.change_below, self.stay_from
        change = "no delay" if below <= 0 else f"delays below {number(below, 6)} [{TIME}]"
        change = "any delay" if math.isinf(below) else change
        stay = "no delay" if math.isinf(least) else f"delays from {number(least, 6)} [{TIME}]"
        return {
            "change": f"provably best at {change}",
            "stay": f"provably best at {stay}",
            "known": f"times of {len(gaps)} numbers of configurations, up to {max(self.times)}; "
            f"{sum(gap <= EQUAL for gap in gaps)} are best possible",
            "more": "at(delay), frame(), plot()",
        }

    @property
    def _title(self) -> str:
        way = "one way" if self.directed else "both ways"
        return f"all-to-all of {self.n} nodes, degree {self.degree}, circuits {way}, by the delay of a change"

    def at(self, delay: float) -> DelayChoice:
        """The best known number of configurations at a delay of the changes [shards / link bandwidth].

        Raises
        ------
        BadInput
            If the delay is no number of at least 0.
        """
        if isinstance(delay, bool) or not isinstance(delay, Real) or not 0 <= delay < math.inf:
            msg = f"envelope: the delay {delay!r} is no number of at least 0 [{TIME}]; "
            msg += f"for seconds call reconfigure({self.n}, {self.degree}, '20us', shard='64MB', bandwidth='100Gb/s')"
            raise BadInput(msg)
        lower = np.array(self.bounds) + delay * np.arange(len(self.bounds))
        value, number = min((T + delay * (K - 1), K) for K, T in self.times.items())
        staying, changing = float(lower[0]), float(lower[1:].min(initial=math.inf))
        best_staying = self.times.get(1, math.inf)
        best_changing = min((T + delay * (K - 1) for K, T in self.times.items() if K > 1), default=math.inf)
        verdict = "stay" if best_staying <= changing else "change" if best_changing <= staying else "open"
        return DelayChoice(delay, number, value, min(staying, changing), verdict)

    @property
    def stay_from(self) -> float:
        """Least delay from which one configuration is proven best [shards / link bandwidth]."""
        T = self.times.get(1, math.inf)
        if math.isinf(T):
            return math.inf
        return max((T - bound) / K for K, bound in enumerate(self.bounds[1:], 1))

    @property
    def change_below(self) -> float:
        """Largest delay up to which some change is proven better than every topology that stays; 0 if none is."""
        return max((0.0, *((self.bounds[0] - T) / (K - 1) for K, T in self.times.items() if K > 1)))

    @property
    def always_below(self) -> float:
        """Largest delay up to which fewer configurations than direct circuits need are proven worse; 0 if none is."""
        many = [(K, T) for K, T in self.times.items() if self.direct <= K]
        few = list(enumerate(self.bounds[: self.direct - 1], 1))
        return max(
            (min(((bound - T) / (K - few_K) for few_K, bound in few), default=0.0) for K, T in many), default=0.0
        )


@cache
def bounds_of(n: int, degree: int, directed: bool) -> tuple[float, ...]:
    """Lower bounds of :attr:`Envelope.bounds`, which all envelopes of these sizes share."""
    data = TopologySequence.of_nodes(n, degree, 1, directed=directed)
    ports, _ = sequence_bounds.port_time(data)
    numbers = range(1, -(-(n - 1) // degree) + 2)
    hops = [sequence_bounds.hop_time(data, K)[0] for K in numbers]
    return tuple(math.inf if time == math.inf else float(max(Fraction(time), ports)) for time in hops)


def direct_configurations(n: int, degree: int, *, directed: bool, full: bool) -> list[tuple[list[int], Fraction]]:
    """Direct circuits in turn: the round of every port in every configuration, and how long the configuration lasts.

    R rounds connect all pairs, ``degree`` of them in a configuration of length 1. In the last one R mod ``degree`` are
    left. With ``full`` these use all ports: a number q of rounds that divides ``degree`` has ``degree`` / q parallel
    circuits each, for a length of q / ``degree``; the fewest such q that add up to the rounds that are left are taken.
    """
    rounds = n - 1 if directed else n - 1 + n % 2
    whole, left = divmod(rounds, degree)
    parts = [degree] * whole + (_divisors(left, degree) if full else [left] * (left > 0))
    result, first = [], 0
    for part in parts:
        copies = degree // part if full else 1
        result.append((list(range(first, first + part)) * copies, Fraction(1, copies)))
        first += part
    return result


def _divisors(total: int, of: int) -> list[int]:
    """The fewest divisors of a number that add up to a total, the largest first."""
    fewest: list[list[int]] = [[]]
    for amount in range(1, total + 1):
        options = [[q, *fewest[amount - q]] for q in range(1, amount + 1) if of % q == 0]
        fewest.append(min(options, key=len))
    return sorted(fewest[total], reverse=True)


def direct_records(n: int, degree: int, directed: bool) -> list[SequenceRecord]:
    """The records of :func:`direct_configurations`, with as few configurations as possible and with full ports."""
    times = {}
    for full in (False, True):
        every = direct_configurations(n, degree, directed=directed, full=full)
        times[len(every)] = sum((length for _, length in every), Fraction(0))
    data = TopologySequence.of_nodes(n, degree, 1, directed=directed)
    return [
        SequenceRecord(n, degree, directed, K, "direct", (), float(T), bound_on_time(data, K)) for K, T in times.items()
    ]


@cache
def cyclic_records(n: int, degree: int, directed: bool) -> tuple[SequenceRecord, ...]:
    """Records of circuits u -> u + g modulo n: rings that stay, and the index algorithms, with flows at their best.

    Raises
    ------
    NoSolution
        If the worker that solves their linear programs ends early, as for want of memory.
    """
    sent = {"n": n, "degree": degree, "directed": directed}
    return tuple(solved_in_worker("opticoll.analysis.designs.envelope:cyclic_records_in_worker", sent, n, degree))


def cyclic_records_in_worker(n: int, degree: int, directed: bool, report: Report) -> list[SequenceRecord]:
    """Find the records of :func:`cyclic_records`."""
    group = named_group(n, f"{n},1,1")
    result = []
    for rows in _cyclic_circuits(n, degree, directed=directed):
        if not rows.size or len(rows) > MOST_CONFIGURATIONS or n * rows.size > MOST_CYCLIC:
            continue
        data = TopologySequence.of_nodes(n, degree, len(rows), directed=directed)
        found = routed_record(data, OrbitSequence(0, group, rows), bound_on_time(data, len(rows)))
        result += [] if found is None else [found]
    return result


def _cyclic_circuits(n: int, degree: int, *, directed: bool) -> Iterator[I64]:
    """Generators ``(K, ports)`` of each of :func:`cyclic_records`."""
    pairs = degree if directed else degree // 2
    if not pairs:
        return
    rings = selected(n, pairs)
    yield np.array([sorted({*rings, *(() if directed else (-one % n for one in rings))})], dtype=np.int64)
    for algorithm in ("bruck:2", "bruck:3") if directed else ("retri",):
        rows = []
        for step in collective_steps(algorithm, n):
            shifts, amounts = step.peers[:, 0], step.amounts
            if not directed:  # a circuit to either side carries both directions
                shifts, amounts = shifts[:1], amounts[:1]
            for first in range(0, len(shifts), pairs):
                own = np.repeat(shifts[first : first + pairs], shared_ports(amounts[first : first + pairs], pairs))
                rows.append(own if directed else np.concatenate([own, -own % n]))
        yield np.array(rows, dtype=np.int64)


def envelope(n: int, degree: int, *, directed: bool = False, others: Sequence[SequenceRecord] = ()) -> Envelope:
    """The envelope of the table of records, direct circuits, and other sequences.

    Sizes that are not in the table have rings and index algorithms (:func:`cyclic_records`) in its place.

    Parameters
    ----------
    n, degree, directed
        Nodes, ports, and whether circuits may run one way only.
    others
        Sequences that are not in the table, such as those of :func:`best_sequence`.

    Raises
    ------
    BadInput
        If sizes are out of range.
    """
    whole_number(n, "envelope: n")
    whole_number(degree, "envelope: degree")
    if n > MOST_NODES:
        refuse("envelope", f"n={n} exceeds the limit of {MOST_NODES} nodes; use fewer")
    if not 1 <= degree < n:
        refuse(f"n={n}, degree={degree}", "give at least two nodes, and from 1 to n - 1 ports")
    known = [*direct_records(n, degree, directed), *sequence_records().get((n, degree, directed), ()), *others]
    if (n, degree, directed) not in sequence_records():
        known += cyclic_records(n, degree, directed)
    # circuits that run both ways are a special case
    if directed:
        known += sequence_records().get((n, degree, False), ())
    static = [topology_records().get((n, degree, way)) for way in ({False, directed})]
    for row in static:
        if row is not None:
            bound = bound_on_time(TopologySequence.of_nodes(n, degree, 1, directed=directed), 1)
            known.append(SequenceRecord(n, degree, directed, 1, "static", (), row.time, bound))
    return Envelope(n, degree, directed, tuple(known))

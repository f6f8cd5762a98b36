"""Bounds and size of :mod:`opticoll.formulations.alltoall.all_reduce`, which ``problem`` is."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations import rounding
from opticoll.formulations.flows.shared_flows import capacity_out_of
from opticoll.formulations.flows.worst_cuts import least_time, reversed_arcs, tight_partition
from opticoll.formulations.model import Bound

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from opticoll.formulations.alltoall.all_reduce import AllReduction
    from opticoll.instances.topology import F64, Topology


def bounds(problem: AllReduction) -> list[Bound]:
    """Bounds of single ranks, of the worst cuts of both phases, and of the minimum cut."""
    topology, N = problem.topology, problem.topology.num_ranks
    back = reversed_arcs(topology)
    both = (topology,) if back == topology else (topology, back)
    first = [1] + [0] * (N - 1)
    found = [least_time(one, first) for one in both]
    away = found[-1][0] > found[0][0]
    time, inside = found[-away]
    alone = [{v} for v in problem.ranks.tolist()]
    result = [
        Bound(
            "receptions",
            partition_bound(topology, alone),
            "every rank sends N - x_v as sums and receives N - x_v as copies",
            fraction=exact_partition(topology, alone),
        ),
        Bound(
            "least-cut",
            rounding.fraction_down(time * N),
            f"{N} shards over a capacity of {float(1 / time):g}",
            detail={"inside": sorted(inside)},
            fraction=rounding.quotient(Fraction(N), capacity_out_of(topology, inside, away=away)),
        ),
    ]
    partitions = [sets for sets in (tight_partition(one, [1] * N) for one in both) if sets is not None]
    if partitions:
        sets = max(partitions, key=lambda sets: partition_bound(topology, sets))
        reason = f"{len(sets)} sets of ranks exchange sums and copies"
        exact = exact_partition(topology, sets)
        result.append(Bound("partition", partition_bound(topology, sets), reason, fraction=exact))
    return result


def partition_bound(topology: Topology, sets: Iterable[Collection[int]]) -> float:
    """Bound from disjoint sets that contain all ranks (see the docstring of the formulation), rounded down.

    Raises
    ------
    ValueError
        If the sets are not disjoint, or do not contain all ranks.
    """
    shards, sides = _crossing(topology, sets)
    least = min(float(rounding.up(capacity.sum(), topology.arcs)) for capacity in sides)
    return rounding.quotient_down(shards, least) if least > 0 else 0.0


def exact_partition(topology: Topology, sets: Iterable[Collection[int]]) -> Fraction | None:
    """:func:`partition_bound` as a fraction, of the decimals that the capacities stand for."""
    shards, sides = _crossing(topology, sets)
    rooms = [rounding.exact_sum(capacity) for capacity in sides]
    known = [room for room in rooms if room is not None]
    return rounding.quotient(Fraction(shards), min(known)) if len(known) == len(rooms) else None


def _crossing(topology: Topology, sets: Iterable[Collection[int]]) -> tuple[int, list[F64]]:
    """Twice N times the number of sets less one; capacities of the arcs out of a set, and of those into one."""
    number = np.full(topology.n, -1)
    for i, members in enumerate(sets):
        inside = sorted(members)
        if (number[inside] >= 0).any():
            msg = "partition_bound: the sets are not disjoint"
            raise ValueError(msg)
        number[inside] = i
    if (number[topology.terminals] < 0).any():
        msg = "partition_bound: the sets do not contain all ranks"
        raise ValueError(msg)
    parts, N = np.unique(number[topology.terminals]).size, topology.num_ranks
    crossing = number[topology.tail] != number[topology.head]
    sides = [topology.capacity[crossing & (number[ends] >= 0)] for ends in (topology.tail, topology.head)]
    return 2 * N * (parts - 1), sides


def derived(problem: AllReduction) -> list[Fraction]:
    """The upper bound on T as a fraction."""
    N = problem.topology.num_ranks
    return [Fraction(2 * N * (N - 1)) / rounding.entered(float(problem.topology.capacity.min()))]

"""Bounds and size of :mod:`opticoll.formulations.alltoall.all_reduce`, which ``problem`` is."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations import rounding
from opticoll.formulations.flows.shared_flows import cut_detail, link_bound
from opticoll.formulations.flows.worst_cuts import least_time, reversed_arcs, tight_partition
from opticoll.formulations.model import Bound

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from opticoll.formulations.alltoall.all_reduce import AllReduction
    from opticoll.instances.topology import I64, Topology


def bounds(problem: AllReduction) -> list[Bound]:
    """Bounds of single ranks, of the worst cuts of both phases, and of the minimum cut."""
    topology, N = problem.topology, problem.topology.num_ranks
    back = reversed_arcs(topology)
    both = (topology,) if back == topology else (topology, back)
    first = [1] + [0] * (N - 1)
    found = [least_time(one, first) for one in both]
    away = found[-1][0] > found[0][0]
    time, inside = found[-away]
    reason = f"{N} shards over a capacity of {float(1 / time):g}"
    least = link_bound(topology, "least-cut", N, reason, cut_detail(topology, inside, away=away))
    alone = [{v} for v in problem.ranks.tolist()]
    result = [
        partition_bound(topology, "receptions", alone, "every rank sends N - x_v as sums, gets N - x_v as copies"),
        replace(least, value=rounding.fraction_down(time * N)),
    ]
    tight = [sets for sets in (tight_partition(one, [1] * N) for one in both) if sets is not None]
    exchanged = [
        partition_bound(topology, "partition", sets, f"{len(sets)} sets of ranks exchange sums and copies")
        for sets in tight
    ]
    return result + ([max(exchanged, key=lambda bound: bound.value)] if exchanged else [])


def partition_bound(topology: Topology, name: str, sets: Iterable[Collection[int]], reason: str) -> Bound:
    """Bound from disjoint sets that contain all ranks (see the docstring of the formulation)."""
    shards, links = _crossing(topology, sets)
    return link_bound(topology, name, shards, reason, {"links": links.tolist()})


def _crossing(topology: Topology, sets: Iterable[Collection[int]]) -> tuple[int, I64]:
    """Twice N times the number of sets less one; the arcs out of a set or into one, whichever have less capacity."""
    number = np.full(topology.n, -1)
    for i, members in enumerate(sets):
        number[sorted(members)] = i
    parts, N = np.unique(number[topology.terminals]).size, topology.num_ranks
    crossing = number[topology.tail] != number[topology.head]
    sides = [np.flatnonzero(crossing & (number[ends] >= 0)) for ends in (topology.tail, topology.head)]
    return 2 * N * (parts - 1), min(sides, key=lambda links: topology.capacity[links].sum())


def derived(problem: AllReduction) -> list[Fraction]:
    """The upper bound on T as a fraction."""
    N = problem.topology.num_ranks
    return [Fraction(2 * N * (N - 1)) / rounding.entered(float(problem.topology.capacity.min()))]

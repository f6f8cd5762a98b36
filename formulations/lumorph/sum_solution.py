"""Data, bounds and solutions of ``lumorph.sum-rounds``: the schedule of a program."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.lumorph import scheduled_rounds
from opticoll.formulations.lumorph.collective_bounds import round_bounds, sum_bounds
from opticoll.formulations.rounds.round_schedule import direct
from opticoll.formulations.rounds.segments import select

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from numpy.typing import NDArray

    from opticoll.formulations.lumorph.sum_rounds import SumModel
    from opticoll.formulations.model import Bound
    from opticoll.formulations.rounds.round_schedule import RoundSchedule
    from opticoll.instances.topology import Mask
    from opticoll.types import Json


def contributors(data: SumModel) -> Mask:
    """Whether v is in Pre[c], ``(chunks, n)``."""
    result = np.zeros((data.collective.chunks, data.collective.n), dtype=bool)
    result[tuple(data.collective.pre.T)] = True
    return result


def members(data: SumModel) -> Mask:
    """Whether v is in V_c, ``(chunks, n)``."""
    result = data.given.copy()
    result[tuple(data.collective.post.T)] = True
    return result


def bounds_for_any_composition(data: SumModel) -> list[Bound]:
    """Analytic bounds on the number of rounds, for any routes and composition."""
    result = sum_bounds(data.topology, data.collective, data.limits)
    if all(phase.backwards for phase in data.plain.phases):  # one target per chunk: copies run backwards, too
        phase = data.plain.phases[0]
        result += round_bounds(data.plain.arena(phase), phase.copying, data.limits)
    return result


def metrics(data: SumModel, value: float | None) -> dict[str, Json]:
    """Rounds, the scope of the proof, and the bound of compositions of phases, not of all schedules."""
    return {**scheduled_rounds.metrics(data, value), "composition_bound": sum(data.plain.least)}


def schedule_of_sums(data: SumModel, values: Mapping[str, NDArray[Any]]) -> RoundSchedule | None:
    """The schedule that C and F encode; None if they are invalid."""
    C, F = (np.asarray(values[name], dtype=float) for name in ("C", "F"))
    indices = np.flatnonzero(C > 0.5)
    transfers = data.index_sets["transfer"]
    r, s, d, c, w, path = (transfers[name][indices] for name in ("r", "s", "d", "c", "w", "path"))
    start, arcs = select(data.program.routes.start, data.program.routes.arcs, path)
    adds = np.ones(indices.size, dtype=bool)
    has = np.zeros((data.collective.chunks, data.collective.n, data.collective.n), dtype=np.int64)
    chunk, vertex = data.collective.pre.T
    has[chunk, vertex, vertex] = 1  # the contributions in every partial sum
    replaced = {key for key, taken in zip(data.index_sets["replacement"], F > 0.5, strict=True) if taken}
    for first, last in pairwise(np.searchsorted(r, np.arange(data.horizon + 1)).tolist()):
        before = has.copy()
        for k in range(first, last):
            key = (int(r[k]), int(d[k]), int(c[k]))
            if key in replaced and np.any(before[c[k], s[k]] > before[c[k], d[k]]):
                replaced.remove(key)
                adds[k] = False
        copied, added = (first + np.flatnonzero(adds[first:last] == kind) for kind in (False, True))
        has[c[copied], d[copied]] = before[c[copied], s[copied]]
        np.add.at(has, (c[added], d[added]), before[c[added], s[added]])
    return None if replaced else direct(r, s, d, c, w, start, arcs, adds=adds)


def estimate(data: SumModel) -> dict[str, int]:
    """About the size with ``rmax`` rounds, or as few as the bounds allow, without listing columns."""
    member, given = data.member.sum(axis=1), data.given.sum(axis=1)
    pairs, T, waves = int((member * (member - 1)).sum()), data.rmax or max(data.fewest, 1), data.limits.wavelengths
    C = T * pairs * data.plain.paths * waves
    F, Y, X = T * int(member.sum()), T * int((member * given).sum()), T * int((member * (member - 1) * given).sum())
    ends, hops = T * waves * (2 * data.topology.n + data.topology.arcs), scheduled_rounds.farthest(data.topology)
    return {
        "variables": C + F + X + 3 * Y + Y // T + T,
        "constraints": 3 * X + 7 * Y + T * pairs + F + ends,
        "nonzeros": int(C * (4 + hops)) + 2 * X * (3 + data.plain.paths * waves) + 16 * Y,
    }

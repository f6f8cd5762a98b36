"""Sizes of the models of this room, counted from their data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations import declared_axes
from opticoll.formulations.flows.path_flow import unit_capacities
from opticoll.formulations.lumorph import published_programs
from opticoll.formulations.lumorph.rounds_data import refuse_free
from opticoll.formulations.model import NotApplicable

if TYPE_CHECKING:
    from opticoll.formulations.lumorph.co_scheduling import CallBatches
    from opticoll.formulations.lumorph.forwarded_rounds import ForwardedRounds
    from opticoll.formulations.lumorph.iteration import StagedCalls
    from opticoll.formulations.lumorph.min_overlap import Overlap
    from opticoll.formulations.lumorph.rounds import RoundModel
    from opticoll.formulations.lumorph.sum_rounds import SumModel


def rounds_size(data: RoundModel) -> dict[str, int]:
    """Size with ``rmax`` rounds, or as few as the bounds allow, without listing columns."""
    refuse_free(data)
    if data.version != "corrected":
        return published_programs.estimate(data.program(data.phases[0], data.rmax or max(data.least[0], 1)))
    variables = constraints = nonzeros = integers = 0
    hops = data.topology.hops
    far = float(hops[np.isfinite(hops)].max(initial=1.0))
    for number, phase in enumerate(data.phases):
        T = data.rmax or max(data.least[number], 1)
        columns = data.program(phase, T).size
        spread = phase.copying.spread
        deliveries, forwarded = len(phase.copying.deliveries), int((spread * (spread - 1)).sum())
        made = deliveries * (T - 1) if forwarded else 0
        variables += columns + made + T
        constraints += deliveries + made + forwarded * (T - 1)
        ends = 0 if data.limits.ports is None else 2 * data.topology.n
        constraints += T * data.limits.wavelengths * (ends + data.topology.arcs)
        nonzeros += int(columns * (4 + far))
        integers += columns + made + T
    return {"variables": variables, "constraints": constraints, "nonzeros": nonzeros, "integers": integers}


#: Maximum number of variables x for which the arc form is built.
MOST_VARIABLES = 4_000_000


def overlap_size(data: Overlap) -> dict[str, int] | None:
    """Size of the model; the path form lists the route set for this, since the model needs it anyway."""
    if data.model == "path":
        paths = data.routing.paths
        return declared_axes.size(data, variables=paths.paths + 1, constraints=paths.pairs + len(np.unique(paths.arcs)))
    topology, count = data.topology, data.circuits.count
    degree = {"in": topology.in_degree, "out": topology.out_degree}
    some = {side: d > 0 for side, d in degree.items()}
    either = some["in"] | some["out"]
    ends = data.commodities
    inner = sum(int(there.sum()) * count - int(there[np.stack(ends)].sum()) for there in (either, *some.values()))
    rows = topology.arcs + inner + sum(int(some[side][v].sum()) for v in ends for side in ("in", "out"))
    at_ends = sum(int(degree[side][v].sum()) for v in ends for side in ("in", "out"))
    nonzeros = topology.arcs * (count + 1) + 2 * (2 * topology.arcs * count - at_ends) + at_ends
    loops = int((topology.tail == topology.head).sum())
    return {
        "variables": topology.arcs * count + 1,
        "constraints": rows,
        "nonzeros": nonzeros - 2 * loops * count,
        "integers": topology.arcs * count + int(unit_capacities(data.routing)),
    }


def refuse_large_overlap(data: Overlap) -> None:
    """Refuse an arc form that is too large to build."""
    size = data.topology.arcs * data.circuits.count
    if size > MOST_VARIABLES:
        msg = (
            f"{data.name}: the arc form of {data.circuits.count:,} circuits on {data.topology.spec} has {size:,} "
            f"variables, above {MOST_VARIABLES:,}; use model=path or method negotiated-rerouting"
        )
        raise NotApplicable(msg)


def iteration_size(data: StagedCalls) -> dict[str, int]:
    """Size of the model."""
    b, j, k = data.choices
    later = j != k
    which, gpu = np.nonzero(data.member[k[later]])
    gpus, count = data.member.shape[1], data.time.size
    rows = np.unique((b[later][which] * gpus + gpu) * count + j[later][which]).size
    return {
        "variables": j.size + data.stages + 1,
        "constraints": count + rows + 2 * data.stages,
        "nonzeros": j.size
        + which.size
        + rows
        + 3 * data.stages
        + int((data.before >= 0).sum())
        + 2 * int((j == k).sum()),
        "integers": j.size,
    }


def batches_size(data: CallBatches) -> dict[str, int]:
    """Size of the model."""
    j, k = data.pairs
    later = j != k
    crossed = data.member[k[later]]
    which, gpu = np.nonzero(crossed)
    rows = np.unique(gpu * data.time.size + j[later][which]).size
    return {
        "variables": j.size,
        "constraints": data.time.size + rows,
        "nonzeros": j.size + which.size + rows,
        "integers": j.size,
    }


def sums_size(data: SumModel) -> dict[str, int]:
    """Size with ``rmax`` rounds, or as few as the bounds allow, without listing columns; K routes for all pairs."""
    member, given = data.member.sum(axis=1), data.given.sum(axis=1)
    pairs, T = int((member * (member - 1)).sum()), data.rmax or max(data.fewest, 1)
    C = T * pairs * data.plain.paths * data.limits.wavelengths
    F, Y, X = T * int(member.sum()), T * int((member * given).sum()), T * int((member * (member - 1) * given).sum())
    B = Y + Y // T
    ends = 2 * T * data.topology.n * data.limits.wavelengths + T * data.topology.arcs * data.limits.wavelengths
    hops = data.topology.hops
    far = float(hops[np.isfinite(hops)].max(initial=1.0))
    return {
        "variables": C + F + B + X + 2 * Y + T,
        "constraints": 3 * X + 6 * Y + B + T * pairs + F + ends + T + data.collective.chunks,
        "nonzeros": int(C * (4 + far)) + 2 * X * (2 + data.plain.paths * data.limits.wavelengths) + 3 * X + 16 * Y,
        "integers": C + F + B + X + 2 * Y + T,
    }


def forwarded_size(data: ForwardedRounds) -> dict[str, int]:
    """Size with ``rmax`` rounds, or as few as the bounds allow, without listing columns."""
    n, T = data.topology.n, data.rmax or max(data.fewest, 1)
    waves = data.limits.wavelengths
    D, B = T * n * (n - 1) * data.plain.paths * waves, T * int((~data.given).sum())
    X = B * (n - 1)
    hops = data.topology.hops
    far = float(hops[np.isfinite(hops)].max(initial=1.0))
    ends = 0 if data.limits.ports is None else 2 * n
    return {
        "variables": D + X + B + T,
        "constraints": B + int(data.wanted.sum()) + 2 * X + T * waves * (ends + data.topology.arcs) + T,
        "nonzeros": int(D * (2 + far)) + 2 * B + X * (4 + data.plain.paths * waves),
        "integers": D + X + B + T,
    }

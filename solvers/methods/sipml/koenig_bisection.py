"""Method ``koenig-bisection``: circuits by bisection on the time and edge colouring of bipartite graphs."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.sipml.ocs_solution import matchings_of
from opticoll.solvers.methods.method import Answer, Beyond, Method
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from opticoll.formulations.sipml.ocs_circuits import OcsCircuits
    from opticoll.instances.topology import I64
    from opticoll.solvers.methods.method import Context


def bisect(data: OcsCircuits) -> tuple[float, float]:
    """The smallest attainable T and the floating-point number below it [s], for a feasible problem."""
    high = np.array([data.transfers.unit_time])
    low = np.array([float(data.transfers.volume.min() / data.transfers.bandwidth) * 2.0**-50])
    above, below = int(high.view(np.int64)[0]), int(low.view(np.int64)[0])
    while above - below > 1:
        middle = (above + below) // 2
        time = float(np.array([middle], dtype=np.int64).view(np.float64)[0])
        if overfull(data, data.transfers.needs(time)) is None:
            above = middle
        else:
            below = middle
    ends = np.array([above, below], dtype=np.int64).view(np.float64)
    return float(ends[0]), float(ends[1])


def overfull(data: OcsCircuits, circuits: I64) -> int | None:
    """A server side (i: out of server i, n + j: into server j) with more circuits than ports; None if there is none."""
    group, pair = data.by_server
    used = np.bincount(group, circuits[pair].astype(float), minlength=2 * data.n)
    worst = int(used.argmax())
    return worst if used[worst] > data.degree else None


def certificate(data: OcsCircuits, time: float, side: int) -> dict[str, int | float | str]:
    """Circuits that one server side needs for any time below ``time``, in exact fractions.

    Volumes are exact as floating-point numbers. A pair with fewer circuits than needed would take at least ``time``.
    """
    moves, n = data.transfers, data.n
    mine = np.flatnonzero((moves.source == side) if side < n else (moves.target == side - n))
    limit = Fraction(time) * Fraction(moves.bandwidth)
    needed = []
    for p in mine.tolist():
        quotient = Fraction(float(moves.volume[p])) / limit
        # c circuits are faster than ``time`` iff V < c T B; quotients within round-off of an integer count as equal.
        nearest = round(quotient)
        exact = abs(quotient - nearest) <= Fraction(1, 2**48) * nearest
        needed.append(nearest + 1 if exact else -(-quotient.numerator // quotient.denominator))
    return {
        "server": side % n,
        "side": "out" if side < n else "in",
        "faster_than_s": time,
        "circuits_needed": int(sum(needed)),
        "ports": data.degree,
    }


def run(context: Context) -> Answer:
    """Optimal circuits over optical switches: bisection on the time, Koenig's theorem for the switches.

    T is attainable iff the needs n_p(T) respect every server's ports. Bisection over the floating-point numbers ends
    with two neighbours, of which only the upper one is attainable. A server whose needs at the lower one exceed its
    ports is the certificate, recomputed in exact fractions. The circuits are then split into one matching per switch.
    """
    data: OcsCircuits = context.data
    time, below = bisect(data)
    circuits = data.transfers.needs(time)
    side = overfull(data, data.transfers.needs(below))
    bound, source, witness = None, None, None
    if side is not None:
        witness = certificate(data, time, side)
        if int(witness["circuits_needed"]) > data.degree:
            bound, source = time, "ports-of-one-server"
    match = matchings_of(data, circuits)
    return Answer(
        Termination.OPTIMAL,
        values={"match": match.astype(float)},
        bound=bound,
        bound_source=source,
        solver={"algorithm": "bisection, edge colouring"},
        metrics={"certificate": witness},
    )


METHOD = Method(
    name="koenig-bisection",
    title="Bisection and edge colouring",
    summary="optimal circuits over optical switches in polynomial time, with the binding server as certificate",
    serves=("sipml.ocs-circuits",),
    # n=32, D=32 993 variables in 0.5 s, n=16, D=32 241 in 0.9 s; n=64, D=64 4,033 in 1.2 s.
    # model=switches: n=9, D=8 649 in 0.5 s, n=6, D=8 271 in 0.7 s; n=9, D=16 1,225 in 7.1 s.
    takes_over=(
        Beyond("sipml.ocs-circuits", 1_000, 10_000),
        Beyond("sipml.ocs-circuits", 700, 2_500, where={"model": "switches"}),
    ),
    run=run,
)

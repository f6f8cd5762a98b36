"""Method ``koenig-bisection``: circuits by bisection on the time and edge colouring of bipartite graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.solvers.methods.edge_colouring import matchings
from opticoll.solvers.methods.method import Answer, Beyond, Method
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from opticoll.formulations.sipml.ocs_circuits import OcsCircuits
    from opticoll.instances.topology import I64
    from opticoll.solvers.methods.method import Context


def fits(data: OcsCircuits, circuits: I64) -> bool:
    """Whether no server has more circuits, out of it or into it, than ports."""
    group, pair = data.by_server
    used = np.bincount(group, circuits[pair].astype(float), minlength=2 * data.n)
    return bool((used <= data.degree).all())


def matchings_of(data: OcsCircuits, circuits: I64) -> I64:
    """Split the circuits of every pair, ``(|P|,)``, into one matching per switch, ``(D, n)``."""
    moves = data.transfers
    return matchings(data.n, np.repeat(moves.source, circuits), np.repeat(moves.target, circuits), data.degree)


def bisect(data: OcsCircuits) -> tuple[float, float]:
    """The smallest attainable T and the floating-point number below it [s], for a feasible problem."""
    high = np.array([data.transfers.unit_time])
    low = np.array([float(data.transfers.volume.min() / data.transfers.bandwidth) * 2.0**-50])
    above, below = int(high.view(np.int64)[0]), int(low.view(np.int64)[0])
    while above - below > 1:
        middle = (above + below) // 2
        time = float(np.array([middle], dtype=np.int64).view(np.float64)[0])
        if fits(data, data.transfers.needs(time)):
            above = middle
        else:
            below = middle
    ends = np.array([above, below], dtype=np.int64).view(np.float64)
    return float(ends[0]), float(ends[1])


def run(context: Context) -> Answer:
    """Optimal circuits over optical switches: bisection on the time, Koenig's theorem for the switches.

    T is attainable iff the needs n_p(T) respect every server's ports. Bisection over the floating-point numbers ends
    with two neighbours, of which only the upper one is attainable. The circuits are then split into one matching per
    switch. The bound of the formulation by the ports of one server proves that it is optimal.
    """
    data: OcsCircuits = context.data
    time, _ = bisect(data)
    match = matchings_of(data, data.transfers.needs(time))
    return Answer(
        Termination.OPTIMAL, values={"match": match.astype(float)}, solver={"algorithm": "bisection, edge colouring"}
    )


METHOD = Method(
    name="koenig-bisection",
    title="Bisection and edge colouring",
    summary="optimal circuits over optical switches in polynomial time",
    serves=("sipml.ocs-circuits",),
    # n=32, D=32 993 variables in 0.5 s, n=16, D=32 241 in 0.9 s; n=64, D=64 4,033 in 1.2 s.
    # model=switches: n=9, D=8 649 in 0.5 s, n=6, D=8 271 in 0.7 s; n=9, D=16 1,225 in 7.1 s.
    takes_over=(
        Beyond("sipml.ocs-circuits", 1_000, 10_000),
        Beyond("sipml.ocs-circuits", 700, 2_500, where={"model": "switches"}),
    ),
    run=run,
)

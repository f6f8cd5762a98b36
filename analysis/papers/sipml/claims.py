"""Claims of SiP-ML's section 3: duty cycle, circuits over optical switches, and the running example.

Only parts of sections 2 and 3.1 to 3.3 of the paper are available. The claims on placement are in
:mod:`opticoll.analysis.papers.sipml.placement_claims`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.analysis.ledger.claim import Laboratory, Measurement, Measures
from opticoll.analysis.ledger.readings import Readings, Sweep
from opticoll.analysis.ledger.tolerances import SAME
from opticoll.instances.servers import ServerPool

if TYPE_CHECKING:
    from opticoll.formulations.sipml.placement import Placement
    from opticoll.instances.topology import F64, I64


MEASURES = Measures("sipml")


def hybrid_traffic(data: Placement, device: I64, degree: int) -> ServerPool:
    """The traffic matrix of a step on k l GPUs [bytes], at least two of them, as a pool of servers of this degree."""
    graph, k, groups = data.graph, data.devices, data.replicas
    inner = np.zeros((k, k))
    np.add.at(inner, (device[graph.tail], device[graph.head]), graph.volume)
    np.fill_diagonal(inner, 0.0)
    matrix = np.kron(np.eye(groups), inner)
    if groups > 1:
        held = np.bincount(device, graph.weights, minlength=k) * 2.0 * (groups - 1) / groups
        at = np.arange(k * groups)
        matrix[at, (at + k) % (k * groups)] += np.tile(held, groups)
    return ServerPool(k * groups, degree, matrix, spec=f"hybrid of {graph.spec}")


def duty_cycle(hold_s: float, latency_s: float) -> float:
    """Share of time in which circuits carry data, h / (h + r): dark for r after every hold time h."""
    return hold_s / (hold_s + latency_s)


def least_hold(latency_s: float, duty: float) -> float:
    """Shortest hold time [s] of a duty cycle: r d / (1 - d), 9 r for 90%; the paper's 10 r gives 10/11."""
    return latency_s * duty / (1.0 - duty)


@MEASURES.of("duty-cycle")
def _duty(laboratory: Laboratory) -> Measurement:
    hold, printed = float(laboratory.scope["hold time over r"]), laboratory.scope["printed [%]"]
    measured = {
        "h / (h + r): dark after the hold time": 100 * duty_cycle(hold, 1.0),
        "(h - r) / h: dark within the hold time": 100 * (1.0 - 1.0 / hold),
    }
    choices = Readings("duty cycle")
    for name, value in measured.items():
        choices.add(name, value >= printed - 1e-9, round(value, 2))
    return choices.measurement(
        (),
        f"The paper does not define the duty cycle. If the reconfiguration comes after the hold time, "
        f"{least_hold(1.0, printed / 100):.3g} r are enough.",
    )


# Circuits over optical switches -------------------------------------------------------------------------------------


def _random_traffic(random: np.random.Generator, most: int) -> tuple[F64, int]:
    """A small integer traffic matrix and a degree that allows every pair a circuit."""
    n = int(random.integers(2, most + 1))
    matrix = random.integers(1, 50, (n, n)) * (random.random((n, n)) < random.uniform(0.2, 0.9))
    np.fill_diagonal(matrix, 0)
    matrix[0, 1] += 1
    peers = max(int((matrix > 0).sum(axis=0).max()), int((matrix > 0).sum(axis=1).max()))
    return matrix.astype(float), peers + int(random.integers(0, 9))


@MEASURES.of("switches-degree")
def _switches(laboratory: Laboratory) -> Measurement:
    from opticoll.formulations.sipml import ocs_circuits
    from opticoll.solvers.methods.sipml import koenig_bisection
    from opticoll.solvers.methods.sipml.koenig_bisection import bisect

    sweep, full = Sweep(), 0
    most, per_seed = laboratory.scope.values("GPUs", "assignments per seed")
    for seed in laboratory.seeds(laboratory.scope["seeds"]):
        random = np.random.default_rng(seed)
        for case in range(per_seed):
            matrix, degree = _random_traffic(random, most)
            data = ocs_circuits.OcsCircuits.prepare(ServerPool(matrix.shape[0], degree, matrix))
            needs = data.transfers.needs(bisect(data)[0])
            match = koenig_bisection.matchings_of(data, needs).astype(float)
            ends = (data.transfers.source, data.transfers.target)
            used = max(float(np.bincount(end, needs).max()) for end in ends)
            full += used == degree
            sweep.add(
                used / degree,
                holds=max(data.residuals({"match": match}).values()) <= 0,
                size=matrix.shape[0],
                case=f"seed {seed}, case {case}: {matrix.shape[0]} GPUs, D = {degree}, "
                f"traffic {matrix.astype(int).tolist()}",
            )
    return sweep.measurement(
        f"{len(sweep.ratios) - len(sweep.wrong):,} of {len(sweep.ratios):,} assignments fit on D switches",
        (f"2 to {most} GPUs, random traffic",),
        "One port per GPU and switch allows at most Q circuits. Conversely, every assignment of at most D "
        "circuits per GPU splits into D matchings (Koenig's edge colouring), one per switch. "
        f"In {full} cases a GPU uses all D circuits, so fewer switches cannot carry them. Ratio: most "
        "circuits of a GPU over D.",
    )


@MEASURES.of("ilp")
def _ilp(laboratory: Laboratory) -> Measurement:
    from opticoll.formulations.sipml import ocs_circuits
    from opticoll.instances import parse
    from opticoll.solvers.methods.sipml.koenig_bisection import bisect

    specs = tuple(
        f"servers:n={n},degree={degree},traffic=random,seed={seed}"
        for n, degree in laboratory.scope["(GPUs, degree)"]
        for seed in laboratory.seeds(laboratory.scope["seeds"], 1)
    )
    sweep = Sweep()
    for spec in specs:
        pool = parse(spec)
        least, _ = bisect(ocs_circuits.OcsCircuits.prepare(pool))
        ilp = laboratory.proven("sipml.ocs-circuits", spec, method="highs")["objective"]
        case = f"{spec}: ILP {ilp}, optimum {least}"
        sweep.add(ilp / least, holds=abs(ilp / least - 1) <= SAME, size=pool.n, case=case)
    return sweep.measurement(f"{len(specs) - len(sweep.wrong)} of {len(specs)} optimal", specs)


# The running example ------------------------------------------------------------------------------------------------


@MEASURES.of("example")
def _example(laboratory: Laboratory) -> Measurement:
    k, parts, delta = laboratory.scope.values("k", "parts of C", "Delta")
    spec = f"op-graph:model=chain,splits=1x{parts}"
    measured = {
        f"{rule}, Delta = {limit}": laboratory.proven(
            "sipml.placement", spec, method="placement-enumeration", k=k, degree=limit + 1, rule=rule
        )["objective"]
        for rule in ("distance", "degree")
        for limit in (delta, k - 1)
    }
    side_by_side = 1.0 + -(-parts // k)
    choices = Readings("limit on communication")
    for rule in ("distance", "degree"):
        choices.add(
            rule,
            measured[f"{rule}, Delta = {delta}"] > side_by_side == measured[f"{rule}, Delta = {k - 1}"],
            measured[f"{rule}, Delta = {delta}"],
        )
    return choices.measurement((spec,), measured=measured)

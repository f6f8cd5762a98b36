"""Claims of the all-to-all paper about bounds on the throughput of every network.

Populations count classes of isomorphic digraphs, not labelled copies.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations, product
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.analysis.ledger.claim import Measurement, Measures
from opticoll.analysis.ledger.comparisons import (
    IRREGULAR,
    LARGEST_ENUMERATED,
    REGULAR,
    certified_flow,
    regular_digraphs,
)
from opticoll.analysis.ledger.readings import Readings, Sweep
from opticoll.analysis.ledger.tolerances import SAME
from opticoll.analysis.ledger.verdict import verdict_if
from opticoll.analysis.papers.alltoall.claims import (
    corollary_3,
)
from opticoll.formulations.flows.concurrent_flow import ConcurrentFlow
from opticoll.formulations.flows.flow_bounds import moore_bound
from opticoll.instances import parse
from opticoll.instances.symmetry import isomorphism_classes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opticoll.analysis.ledger.claim import Laboratory
    from opticoll.instances import Topology


MEASURES = Measures("alltoall")


def distinct(topologies: Sequence[Topology]) -> list[Topology]:
    """One digraph per isomorphism class, the first of each."""
    return [topologies[place] for place in sorted(set(isomorphism_classes(topologies)))]


@cache
def classes(*, regular: bool) -> tuple[tuple[Topology, float], ...]:
    """The classes of all small regular digraphs and of known families, or of irregular graphs, with their optimum F."""
    families: list[Any] = [parse(spec) for spec in (REGULAR if regular else IRREGULAR)]
    graphs = distinct([*(regular_digraphs() if regular else ()), *families])
    return tuple((topology, certified_flow(topology)) for topology in graphs)


@MEASURES.of("theorem-2")
def _theorem_2(laboratory: Laboratory) -> Measurement:
    graphs, sweep, between, node = classes(regular=laboratory.scope["regular"]), Sweep(), [], Sweep()
    for topology, flow in graphs:
        n, d = topology.n, int(topology.out_degree[0])
        above = moore_bound(ConcurrentFlow.by_source(topology)).value
        if abs(above * corollary_3(n, d) - 1) > SAME:
            msg = f"{topology.spec}: the bound is {above}, Corollary 3 gives {1 / corollary_3(n, d)}"
            raise ArithmeticError(msg)
        sweep.add(
            flow / above,
            holds=flow <= above * (1 + SAME),
            size=n,
            case=f"{topology.spec}: F = {flow:.6g} above {above:.6g}",
        )
        node.add(
            flow * (n - 1) / d,
            holds=flow * (n - 1) / d < 1 - SAME or d == n - 1,
            size=n,
            case=f"{topology.spec} attains T = (N-1)/d",
        )
        if abs(flow / above - 1) <= SAME and 1 < d < n - 1:
            between.append(topology.spec)
    small = sum(topology.spec.startswith("digraph:") for topology, _ in graphs)
    holds = {
        "no digraph exceeds it": not sweep.wrong,
        "some digraph attains it with 1 < d < N-1": bool(between),
        "(N-1)/d is attained by complete digraphs alone": not node.wrong,
    }
    return Measurement(
        {
            "violations": len(sweep.wrong),
            "attained": sweep.met,
            "attained with 1 < d < N-1": len(between),
            "(N-1)/d attained": node.met,
        },
        verdict_if(all(holds.values())),
        (
            f"all {small} regular digraphs of 3 to {LARGEST_ENUMERATED} vertices up to isomorphism, "
            f"{len(graphs) - small} of known families",
        ),
        f"Attained among others by {', '.join(spec for spec in between if not spec.startswith('digraph'))}. The bound "
        "follows from Theorem 1, summed over all pairs, since at most d^k vertices are at distance k. Ratio: lower "
        "bound on T over T.",
        count=len(sweep.ratios),
        violations=len(sweep.wrong) + len(node.wrong),
        tightness=sweep.row["tightness"],
        witness=sweep.row["witness"] or node.row["witness"] or ("" if between else "attained by none") or None,
    )


def least_cut(topology: Topology, *, balanced: bool) -> float:
    """The minimum of c(S) / (|S| |V - S|) over all S, or over those with half the vertices."""
    n = topology.n
    sizes = [n // 2, n - n // 2] if balanced else range(1, n)
    least = float("inf")
    capacity = np.zeros((n, n))
    np.add.at(capacity, (topology.tail, topology.head), topology.capacity)
    for size in set(sizes):
        for chosen in combinations(range(n), size):
            inside = np.zeros(n, dtype=bool)
            inside[list(chosen)] = True
            least = min(least, float(capacity[inside][:, ~inside].sum()) / (size * (n - size)))
    return least


@MEASURES.of("bisection")
def _bisection(laboratory: Laboratory) -> Measurement:
    most = int(laboratory.scope["nodes, at most"])
    graphs = [pair for regular in (True, False) for pair in classes(regular=regular) if pair[0].n <= most]
    sweeps = {"half of the vertices": Sweep(), "any subset": Sweep()}
    for (topology, flow), (name, sweep) in product(graphs, sweeps.items()):
        above = least_cut(topology, balanced=name == "half of the vertices")
        sweep.add(
            flow / above,
            holds=flow <= above * (1 + SAME),
            size=topology.n,
            case=f"{topology.spec}: F = {flow:.6g} above {above:.6g}",
        )
    choices = Readings("cuts")
    for name, sweep in sweeps.items():
        choices.add(name, not sweep.wrong, f"{len(sweep.wrong)} of {len(graphs)} digraphs have more flow")
    half = sweeps["half of the vertices"]
    return choices.measurement(
        (f"{len(graphs)} digraphs of at most {most} vertices up to isomorphism",),
        measured={
            name: {"attained": sweep.met, "least F over bound": round(min(sweep.ratios), 3)}
            for name, sweep in sweeps.items()
        },
        **half.row,
    )

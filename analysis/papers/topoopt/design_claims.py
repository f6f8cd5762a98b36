"""Claims of the TopoOpt paper about its joint search over strategies and topologies, failures and shared clusters."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise, product
from typing import TYPE_CHECKING

import numpy as np

from opticoll.analysis.ledger.claim import Measurement, Measures
from opticoll.analysis.ledger.readings import Readings, spread
from opticoll.analysis.ledger.verdict import Verdict, verdict_if
from opticoll.instances import parse
from opticoll.solvers.methods.topoopt.topology_finder import topology_finder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opticoll.analysis.ledger.claim import Laboratory
    from opticoll.formulations.topoopt.strategy import Plane

MODELS = ("dlrm", "candle", "bert", "ncf", "resnet50", "vgg")
DEGREE, CHAIN = 4, 1000
#: log10 of the number of designs that can be enumerated in a day at 10,000 per second.
ENUMERABLE = float(np.log10(24 * 3600 * 10_000))
#: Times within this relative difference count as equal.
EQUAL = 1e-3
MEASURES = Measures("topoopt")


def wirings(n: int, degree: int) -> int:
    """Number of ways to wire n servers with d circuits out of and into each, without loops, parallel ones identical.

    Counts integer matrices with zero diagonal and all row and column sums d, row by row.
    """
    states: Counter[tuple[int, ...]] = Counter({(degree,) * n: 1})
    for row in range(n):
        grown: Counter[tuple[int, ...]] = Counter()
        for left, count in states.items():
            for taken in _rows(left, row, degree):
                grown[taken] += count
        states = grown
    return states[(0,) * n]


def _rows(left: tuple[int, ...], row: int, circuits: int) -> Iterator[tuple[int, ...]]:
    """The remaining column sums after a row with this number of circuits."""
    most = [0 if column == row else min(free, circuits) for column, free in enumerate(left)]
    for taken in product(*(range(top + 1) for top in most)):
        if sum(taken) == circuits:
            yield tuple(free - used for free, used in zip(left, taken, strict=True))


def _layouts(data: Plane, kind: int) -> float:
    """Number of ways to lay out one part of the model; each placed table can be on any server."""
    tables = sum(table.count for table in data.kinds[kind].tables)
    ways = [way for way, fits in zip(data.ways, data.allowed[kind], strict=True) if fits]
    return float(sum(data.pool.n**tables if way == "placed" else 1 for way in ways))


@MEASURES.of("explodes-at-six")
def _explodes(laboratory: Laboratory) -> Measurement:
    from opticoll.formulations.topoopt import strategy
    from opticoll.instances import parse

    servers = laboratory.scope["servers"]
    joint = tuple(f"servers:n={servers},degree={DEGREE},traffic={model},section=5.3" for model in MODELS)
    circuits = {n: wirings(n, DEGREE) for n in range(3, servers + 1)}
    designs = {}
    for model, spec in zip(MODELS, joint, strict=True):
        data = strategy.Plane.prepare(parse(spec))
        laid = sum(float(count * np.log10(_layouts(data, k))) for k, count in enumerate(data.count.tolist()))
        designs[model] = round(laid + float(np.log10(circuits[servers])), 1)
    beyond = [model for model, value in designs.items() if value > ENUMERABLE]
    return Measurement(
        {f"{model}, log10 of designs": value for model, value in designs.items()},
        verdict_if(2 * len(beyond) > len(designs)),
        joint,
        f"Wirings of n servers with {DEGREE} circuits each ({', '.join(f'{count:,}' for count in circuits.values())} "
        "at n = 3 .. 6) times the ways to lay out the parts of the model, counted exactly without routes. A day at "
        f"10,000 designs per second covers 10^{ENUMERABLE:.1f}. {len(beyond)} of {len(designs)} models have more; for "
        "the others the count, a lower bound, is inconclusive. A large space need not be hard to search, though.",
    )


@MEASURES.of("alternating")
def _alternating(laboratory: Laboratory) -> Measurement:
    from opticoll.formulations.topoopt import strategy
    from opticoll.instances import parse
    from opticoll.solvers.methods.topoopt.alternating import alternate, planned
    from opticoll.solvers.methods.topoopt.strategy_front import front

    servers, seeds, measured = laboratory.scope.values("servers", "seeds", "measured operators")
    plain, timed = "layers of List 1", "operators with the authors' computing times"
    cases: dict[str, dict[str, tuple[str, dict[str, str]]]] = {
        plain: {model: (f"servers:n={servers},degree={DEGREE},traffic={model},section=5.3", {}) for model in MODELS},
        timed: {
            model: (f"servers:n=16,degree={DEGREE},traffic={model},section=5.6", {"operators": "measured"})
            for model in measured
        },
    }
    gaps, ranges, counts, choices, suboptimal = [], {}, [], Readings("strategies; likely"), []
    for kind, models in cases.items():
        worst, best, over = {}, {}, 0
        for model, (spec, settings) in models.items():
            data = strategy.Plane.prepare(parse(spec), settings)
            times, _, strategies = front(data)
            sequential = planned(data, strategies[0]).time
            ratios = [
                sequential / alternate(data, rounds=10, steps=CHAIN, seed=seed, tick=lambda _: None)[0].time
                for seed in laboratory.seeds(seeds)
            ]
            worst[model], best[model] = max(ratios), min(ratios)
            gaps.append(sequential / times[0])
            over += gaps[-1] > 1 + EQUAL
        slower = [model for model in models if best[model] > 1 + EQUAL]
        faster = [model for model in models if worst[model] < 1 - EQUAL]
        ranges[kind] = {model: f"{best[model]:.4g} to {worst[model]:.4g}" for model in models}
        counts.append(f"{kind}: {', '.join(f'{model} {text}' for model, text in ranges[kind].items())}")
        suboptimal.append(f"{over} of {len(models)}")
        outcome = f"slower for {len(slower)} of {len(models)}"
        choices.add(
            f"{kind}; for some models slower than alternating, for none faster",
            bool(slower) and not faster,
            f"{outcome}, faster for {len(faster)}",
        )
        choices.add(f"{kind}; for at least half of the models", 2 * len(slower) >= len(models), outcome)
        choices.add(f"{kind}; for more than half of the models", 2 * len(slower) > len(models), outcome)
    result = choices.measurement(
        tuple(spec for models in cases.values() for spec, _ in models.values()),
        f"Sequential over alternating time by Eq. (1) over the circuits, {seeds} seeds. {'; '.join(counts)}; "
        f"differences below {EQUAL:.1%} count as equal. The sequential time exceeds a bound valid for every strategy "
        f"and topology for {' and '.join(suboptimal)} models; where it is above the bound and not slower than "
        "alternating, we do not know whether it is optimal.",
        choices.agreement,
        count=len(gaps),
        tightness=spread(gaps),
    )
    undecided = 2 * len(slower) <= len(models) < 2 * over
    return replace(result, measured=ranges, verdict=Verdict.OPEN if undecided else None)


@MEASURES.of("ring-recovery")
def _recovery(laboratory: Laboratory) -> Measurement:
    import networkx as nx

    choices, spare = Readings("replacement; job"), []
    for spec in laboratory.scope["jobs"]:
        design = topology_finder(parse(spec))
        hops = Counter(hop for ring in design.rings for hop in pairwise((*ring.order, ring.order[0])))
        circuits = Counter((int(u), int(v)) for u, v in design.circuits)
        free = circuits - hops
        spare.append(f"{free.total()} of {circuits.total()} in {spec}")
        apart: nx.DiGraph[int] = nx.DiGraph(free.keys())
        every: nx.DiGraph[int] = nx.DiGraph(circuits.keys())
        result = dict.fromkeys(("a circuit of no ring", "circuits of no ring", "any circuits"), 0)
        for u, v in hops:
            left = every if circuits[u, v] > 1 else nx.restricted_view(every, [], [(u, v)])
            known = apart.has_node(u) and apart.has_node(v)
            for way, replaced in zip(
                result, (free[u, v] > 0, known and nx.has_path(apart, u, v), nx.has_path(left, u, v)), strict=True
            ):
                result[way] += replaced
        for way, count in result.items():
            choices.add(f"{way}; {spec}", count == len(hops), round(count / len(hops), 4))
    return choices.measurement(
        tuple(laboratory.scope["jobs"]),
        "Share of the hops that are replaced if their circuit fails. Line 2 of Algorithm 1 gives all ports to the "
        f"rings unless point-to-point traffic is a large share: {'; '.join(spare)} circuits belong to no ring. "
        "A ring can be closed again over circuits of other rings, at their cost. The paper does not say which links "
        "are meant, or what a recovered ring loses.",
        choices.agreement,
    )

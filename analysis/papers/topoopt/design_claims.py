"""Claims of the TopoOpt paper about its joint search over strategies and topologies."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from opticoll.analysis.ledger.claim import Claim, Measurement, reading, verdict_if
from opticoll.analysis.ledger.sweeps import spread
from opticoll.analysis.papers.topoopt.claims import PAPER, decided
from opticoll.solvers.task import PROVEN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opticoll.analysis.ledger.claim import Laboratory
    from opticoll.formulations.topoopt.strategy import Plane

#: Pools whose circuits and routes are proven optimal, and pools searched jointly.
WIRED = ("servers:n=6,degree=2,traffic=random,seed=1", "servers:n=7,degree=2,traffic=random,seed=1")
MODELS = ("dlrm", "candle", "bert", "ncf", "resnet50", "vgg")
DEGREE, CHAIN = 4, 1000
#: Times within this relative difference count as equal.
EQUAL = 1e-3
#: log10 of the number of designs that can be enumerated in a day at 10,000 per second.
ENUMERABLE = float(np.log10(24 * 3600 * 10_000))


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


def _explodes(laboratory: Laboratory) -> Measurement:
    """Count the search space, and report what bounds prove without enumerating it."""
    from opticoll.formulations.topoopt import strategy
    from opticoll.instances import parse

    servers = laboratory.scope["servers"]
    joint = tuple(f"servers:n={servers},degree={DEGREE},traffic={model},section=5.3" for model in MODELS)
    circuits = {n: wirings(n, DEGREE) for n in range(3, servers + 1)}
    designs = {}
    for model, spec in zip(MODELS, joint, strict=True):
        data = strategy.prepare(parse(spec))
        laid = sum(float(count * np.log10(_layouts(data, k))) for k, count in enumerate(data.count.tolist()))
        designs[model] = round(laid + float(np.log10(circuits[servers])), 1)
    records = [laboratory.solve("topoopt.topology", spec, method="design-search") for spec in WIRED]
    proven = [record for record in records if record["proof"] in PROVEN]
    counts = "; ".join(f"n={record['n']}: {record['metrics']['nodes']} partial wirings" for record in proven)
    over_bound = {}
    for spec in joint:
        record = laboratory.solve("topoopt.strategy", spec, method="alternating")
        over_bound[spec] = float(record["metrics"]["iteration_time"]) / float(record["bound"])
    beyond = [model for model, value in designs.items() if value > ENUMERABLE]
    closed = sum(ratio <= 1 + 1e-6 for ratio in over_bound.values())
    return Measurement(
        {f"{model}, log10 of designs": value for model, value in designs.items()},
        verdict_if(2 * len(beyond) > len(designs)),
        instances=(*joint, *WIRED), count=len(over_bound),
        reason=f"Wirings of n servers with {DEGREE} circuits each "
               f"({', '.join(f'{count:,}' for count in circuits.values())} at n = 3 .. 6) times the ways to lay out "
               "the parts of the model, counted exactly without routes. A day at 10,000 designs per second covers "
               f"10^{ENUMERABLE:.1f}. {len(beyond)} of {len(designs)} models have more; for the others the count, a "
               "lower bound, does not decide. A large search space need not be hard, though: bounds valid for every "
               f"topology prove the joint optimum for {closed} of {len(over_bound)} models of six servers (for the "
               f"others the best design is up to {max(over_bound.values()):.3g} times the bound), and the best "
               f"circuits for given traffic are proven on {len(proven)} of {len(records)} ({counts}). Ratio: best "
               "joint design over the bound.",
        tightness=spread(list(over_bound.values())),
    )  # fmt: skip


def _alternating(laboratory: Laboratory) -> Measurement:
    """Compare alternating optimisation with the best strategy for an ideal network on TopologyFinder's circuits."""
    from opticoll.formulations.topoopt import strategy
    from opticoll.instances import parse
    from opticoll.solvers.methods.topoopt.alternating import alternate, front, planned

    servers, seeds = laboratory.scope["servers"], laboratory.scope["seeds"]
    worst, best, gaps, specs = {}, {}, {}, []
    for model in MODELS:
        specs.append(f"servers:n={servers},degree={DEGREE},traffic={model},section=5.3")
        data = strategy.prepare(parse(specs[-1]))
        times, _, strategies = front(data)
        sequential = planned(data, strategies[0]).time
        ratios = [
            sequential / alternate(data, rounds=10, steps=CHAIN, seed=seed, tick=lambda _: None)[0].time
            for seed in laboratory.seeds(seeds)
        ]
        worst[model], best[model] = max(ratios), min(ratios)
        gaps[model] = sequential / times[0]
    slower = [model for model in MODELS if best[model] > 1 + EQUAL]
    faster = [model for model in MODELS if worst[model] < 1 - EQUAL]
    suboptimal = sum(gap > 1 + EQUAL for gap in gaps.values())
    counts = {model: f"{best[model]:.4g} to {worst[model]:.4g}" for model in MODELS}
    choices = (
        reading("likely", "for some models slower than alternating, for none faster", bool(slower) and not faster,
                f"slower for {len(slower)} of {len(MODELS)}, faster for {len(faster)}"),
        reading("likely", "for at least half of the models", 2 * len(slower) >= len(MODELS),
                f"slower for {len(slower)} of {len(MODELS)}"),
        reading("likely", "for more than half of the models", 2 * len(slower) > len(MODELS),
                f"slower for {len(slower)} of {len(MODELS)}"),
    )  # fmt: skip
    result = decided(
        choices, tuple(specs),
        f"Sequential over alternating time by Eq. (1) over the circuits, {seeds} seeds: "
        f"{', '.join(f'{model} {text}' for model, text in counts.items())}; differences below {EQUAL:.1%} count as "
        f"equal. The sequential time exceeds a bound valid for every strategy and topology for {suboptimal} models.",
        count=len(MODELS), tightness=spread(list(gaps.values())),
    )  # fmt: skip
    return replace(result, measured=counts)


CLAIMS: tuple[Claim, ...] = (
    Claim(id="topoopt.explodes-at-six", paper=PAPER, where="section 4.1",
          claim="The search space of the joint optimisation of computation, communication and topology explodes even "
                "at modest scales, for example six nodes",
          expected="more designs than can be enumerated, at six servers", weight=2, scope={"servers": 6},
          tolerance="more than a day at 10,000 designs per second, for most models", measure=_explodes,
          procedure="We count the wirings and the placements of the parts of six models, without routes, exactly."),
    Claim(id="topoopt.alternating", paper=PAPER, where="section 4.1",
          claim="A topology optimised once, after the parallelization strategy, is likely to be sub-optimal in the "
                "global space; alternating optimisation improves on it",
          expected="slower than alternating", tolerance="0.1 %", measure=_alternating, weight=2,
          scope={"servers": 12, "seeds": 3},
          procedure="We take the best strategy for an ideal network with TopologyFinder's circuits for it, and compare "
                    "with alternating optimisation from several seeds, for the six models of section 5.3."),
)  # fmt: skip

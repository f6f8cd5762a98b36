"""Claims of the all-to-all paper about topologies: GenKautz against its bound and against other families."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.analysis.ledger.claim import Measurement, Measures
from opticoll.analysis.ledger.comparisons import (
    interval_of_mean,
)
from opticoll.analysis.ledger.readings import Readings, Sweep, spread, swept
from opticoll.analysis.ledger.tolerances import ABOUT, SAME, similar
from opticoll.analysis.ledger.verdict import verdict_if
from opticoll.analysis.papers.alltoall.claims import FIRST_ORDER, LARGE, corollary_3, optimal_time, rounded
from opticoll.instances import parse
from opticoll.instances.families.regular_graphs import LinkFormation

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from opticoll.analysis.ledger.claim import Laboratory
    from opticoll.types import Json


MEASURES = Measures("alltoall")


@MEASURES.of("coverage")
def _coverage(laboratory: Laboratory) -> Measurement:
    sweep, loops = Sweep(), 0
    most, (least_degree, largest_degree) = int(laboratory.scope["N, at most"]), laboratory.scope["d, from and to"]
    for d in range(least_degree, largest_degree + 1):
        for n in range(d + 1, most + 1):
            kept = parse(f"genkautz:n={n},d={d},loops=keep")
            regular = bool((np.bincount(kept.tail, minlength=n) == d).all() and (np.bincount(kept.head) == d).all())
            inside = int((kept.tail == kept.head).sum())
            loops += inside > 0
            connected = bool(parse(f"genkautz:n={n},d={d}").connected)
            sweep.add(
                (kept.arcs - inside) / (n * d),
                holds=regular and connected,
                size=n,
                case=f"genkautz:n={n},d={d}: {'' if connected else 'not '}strongly connected",
            )
    count = len(sweep.ratios)
    return sweep.measurement(
        f"{count - len(sweep.wrong)} of {count} are d-regular and strongly connected; {loops} of them have loops",
        (f"genkautz, d={least_degree}..{largest_degree}, n=d+1..{most}",),
    )


def _near_bound(laboratory: Laboratory) -> Measurement:
    degree, sizes = int(laboratory.scope["d"]), laboratory.scope["N"]
    near, large = 1 + ABOUT, int(laboratory.scope["large N"])
    measured = {n: optimal_time(laboratory, f"genkautz:n={n},d={degree}") / corollary_3(n, degree) for n in sizes}
    last = {n: ratio for n, ratio in measured.items() if n >= large}
    wrong = [n for n, ratio in last.items() if ratio > near]
    choices = Readings("sizes")
    choices.add("large N", not wrong, round(max(last.values()), 3))
    choices.add("every N", max(measured.values()) <= near, round(max(measured.values()), 3))
    below = [n for n, ratio in measured.items() if ratio < 1 - SAME]
    if below:
        msg = f"GenKautz graphs of {below} nodes are faster than the bound"
        raise ArithmeticError(msg)
    return choices.measurement(
        tuple(f"genkautz:n={n},d={degree}" for n in sizes),
        f"T over the bound, from at most {max(measured.values()):.2f} to "
        f"{min(last.values()):.3f}-{max(last.values()):.3f} from N = {large} on (proven to {LARGE:g} above 200 "
        f"nodes). It does not fall steadily, since the last layer of the bound is only partly filled.",
        rounded({f"N={n}": ratio for n, ratio in measured.items()}),
        count=len(measured),
        violations=len(wrong),
        tightness=spread([1 / ratio for ratio in measured.values()]),
        witness=f"genkautz:n={wrong[0]},d={degree}" if wrong else None,
    )


MEASURES.of("genkautz-bound")(_near_bound)


MEASURES.of("genkautz-bound-d8")(_near_bound)


@MEASURES.of("over-tori")
def _over_tori(laboratory: Laboratory) -> Measurement:
    printed, sizes = laboratory.number(laboratory.scope["printed"]), laboratory.scope["N"]
    degree = laboratory.scope["d"]
    measured = {
        n: optimal_time(laboratory, f"torus:{round(n**0.5)}x{round(n**0.5)}")
        / optimal_time(laboratory, f"genkautz:n={n},d={degree}")
        for n in sizes
    }
    choices = Readings("large N")
    for n, ratio in measured.items():
        choices.add(f"N={n}", printed.holds(ratio), round(ratio, 3))
    return choices.measurement(
        tuple(f"torus:{round(n**0.5)}x{round(n**0.5)}" for n in sizes),
        measured=rounded({f"N={n}": ratio for n, ratio in measured.items()}),
    )


def throughputs(laboratory: Laboratory, family: str, n: int, d: int, seeds: Iterable[int]) -> list[float]:
    """Throughputs of random graphs of a family."""
    return [1 / optimal_time(laboratory, f"{family}:n={n},d={d},seed={seed}", FIRST_ORDER) for seed in seeds]


def sampled_ratio(laboratory: Laboratory, family: str, n: int, d: int, seeds: Sequence[int]) -> tuple[float, float]:
    """Throughput of GenKautz over the mean of random graphs of a family, and half its 95 % interval."""
    mean, half = interval_of_mean(throughputs(laboratory, family, n, d, seeds))
    ratio = 1 / optimal_time(laboratory, f"genkautz:n={n},d={d}") / mean
    return ratio, ratio * (half / mean)


def _over_random(laboratory: Laboratory) -> Measurement:
    """GenKautz over random families: the printed gain is compared with that over the mean of the sample."""
    scope = laboratory.scope
    seeds = laboratory.seeds(int(scope["random graphs"]), 1)
    number = laboratory.number(scope["printed [%]"])
    measured: dict[str, Json] = {}
    choices, gains = Readings("size"), []
    for n in scope["N"]:
        ratio, error = sampled_ratio(laboratory, scope["family"], n, int(scope["d"]), seeds)
        gain = [100 * (ratio - error - 1), 100 * (ratio + error - 1)]
        measured[f"N={n} [%]"] = [round(value, 2) for value in gain]
        gains.append(100 * (ratio - 1))
        choices.add(f"N={n}", number.holds(gains[-1]), [round(v, 2) for v in gain])
    return choices.measurement(
        tuple(f"{scope['family']}:n={n},d={scope['d']},seed=1..8" for n in scope["N"]),
        f"More throughput than the mean of {len(seeds)} random graphs, with its 95 % interval. The sizes of the figure "
        "are lost. Measured: mean over the sizes.",
        measured,
        value=round(float(np.mean(gains)), 2),
    )


for name in ("over-random", "over-xpander"):
    MEASURES.of(name)(_over_random)


@MEASURES.of("over-xpander-d8")
def _over_expanders_8(laboratory: Laboratory) -> Measurement:
    scope = laboratory.scope
    seeds = laboratory.seeds(int(scope["random graphs"]), 1)
    measured: dict[str, Json] = {}
    choices, ratios = Readings("family and size"), []
    for family in scope["families"]:
        for n in scope["N"]:
            ratio, error = sampled_ratio(laboratory, family, n, int(scope["d"]), seeds)
            name = f"{family}, N={n}"
            measured[name] = [round(ratio - error, 3), round(ratio + error, 3)]
            choices.add(name, ratio > 1, measured[name])
            ratios.append(ratio)
    return choices.measurement(
        tuple(f"{family}:n={scope['N'][-1]},d={scope['d']},seed=1..8" for family in scope["families"]),
        f"Throughput over the mean of {len(seeds)} random graphs, with its 95 % interval. The factor of the paper is "
        "lost, so only the order is tested; the sizes are lost, too. At 128 nodes GenKautz is far from the bound. "
        "Measured: least of the means.",
        measured,
        value=round(min(ratios), 3),
    )


@MEASURES.of("expanders-alike")
def _alike(laboratory: Laboratory) -> Measurement:
    scope = laboratory.scope
    seeds = laboratory.seeds(int(scope["random graphs"]), 1)
    ratios: dict[str, float] = {}
    for n in scope["N"]:
        means = [np.mean(throughputs(laboratory, family, n, int(scope["d"]), seeds)) for family in scope["families"]]
        ratios[f"N={n}"] = float(means[0] / means[1])
    wrong = [name for name, ratio in ratios.items() if not similar(ratio)]
    return swept(
        wrong,
        len(ratios),
        rounded(ratios),
        tuple(f"{family}:n={scope['N'][-1]},d={scope['d']},seed=1..8" for family in scope["families"]),
        value=max(ratios.values(), key=lambda ratio: abs(ratio - 1)),
    )


@MEASURES.of("sp-expanders")
def _shortest_path_expanders(laboratory: Laboratory) -> Measurement:
    scope = laboratory.scope
    near = 1 - ABOUT
    measured: dict[str, Json] = {}
    wrong, ratios = [], []
    for n, count in scope["graphs of N nodes"].items():
        kautz = optimal_time(laboratory, f"genkautz:n={n},d={scope['d']}")
        graphs = throughputs(laboratory, "sp-expander", int(n), int(scope["d"]), laboratory.seeds(int(count), 1))
        values = [kautz * throughput for throughput in graphs]
        ratios += values
        measured[f"N={n}"] = [round(min(values), 3), round(max(values), 3)]
        if min(values) < near:
            wrong.append(n)
    return Measurement(
        measured,
        verdict_if(not wrong),
        tuple(f"sp-expander:n={n},d={scope['d']},seed=1..{count}" for n, count in scope["graphs of N nodes"].items()),
        count=len(ratios),
        violations=sum(ratio < near for ratio in ratios),
        tightness=spread(ratios),
        witness=f"N={wrong[0]}" if wrong else None,
        value=min(ratios),
    )


def formed_degrees(n: int, d: int, seed: int, *, by_source: bool) -> np.ndarray:
    """Out- and in-degrees of the links that Appendix E's heuristic forms, shape ``(2, n)``.

    Every pair is routed on a shortest path; its links become longer by 1; a vertex with d out- (in-)links gets no more.
    Pairs without a path are omitted. ``by_source`` routes all pairs of a source before the next.
    """
    formation = LinkFormation(n, d)
    for s, t in formation.pairs(np.random.default_rng(seed), by_source=by_source):
        formation.route(s, t)
    return np.array([[len(links) for links in formation.weight], formation.indegree])


@MEASURES.of("sp-expander-degree")
def _regular(laboratory: Laboratory) -> Measurement:
    scope = laboratory.scope
    sweeps = {"source by source": Sweep(), "all pairs at random": Sweep()}
    for n in scope["N"]:
        for d in scope["d"]:
            for seed in laboratory.seeds(int(scope["random orders"])):
                for name, sweep in sweeps.items():
                    degrees = formed_degrees(n, d, seed, by_source=name == "source by source")
                    sweep.add(
                        float(degrees.mean() / d),
                        holds=bool((degrees == d).all()),
                        size=n,
                        case=f"N={n}, d={d}, seed {seed}: {degrees.min()} to {degrees.max()} links",
                    )
    choices = Readings("order of pairs")
    for name, sweep in sweeps.items():
        fits = len(sweep.ratios) - len(sweep.wrong)
        choices.add(name, not sweep.wrong, f"{fits} of {len(sweep.ratios)} are d-regular")
    measured = choices.by_reading
    ratios = [ratio for sweep in sweeps.values() for ratio in sweep.ratios]
    wrong = [case for sweep in sweeps.values() for case in sweep.wrong]
    some = any(len(sweep.wrong) < len(sweep.ratios) for sweep in sweeps.values())
    choices.add("some order of the pairs", some, f"{len(ratios) - len(wrong)} of {len(ratios)}", name="seed")
    return choices.measurement(
        tuple(f"N={n}" for n in scope["N"]),
        measured=measured,
        count=len(ratios),
        violations=len(wrong),
        tightness=spread(ratios),
        witness=min(wrong)[1] if wrong else None,
    )


@MEASURES.of("host-bottleneck")
def _host(laboratory: Laboratory) -> Measurement:
    scope = laboratory.scope
    torus, expanders, forwarded = scope.values("torus", "expanders", "B with forwarding hosts")
    printed, close = laboratory.number(scope["printed"]), 1 + ABOUT
    own = parse(torus).n - 1
    free = {spec: optimal_time(laboratory, spec, FIRST_ORDER) for spec in (torus, *expanders)}
    knees = {spec: own / free[spec] for spec in expanders}
    checked = optimal_time(laboratory, f"{torus}+host=0.7,relay=nic", FIRST_ORDER) * 0.7 / own
    if abs(checked - 1) > 2 * LARGE:
        msg = f"T differs from (N-1) / B by {checked - 1:.2g} where NICs forward"
        raise ArithmeticError(msg)
    least = min(free[spec] for spec in expanders)
    even = own * close / free[torus]
    forced = {
        width: optimal_time(laboratory, f"{torus}+host={width}", FIRST_ORDER)
        / optimal_time(laboratory, f"{expanders[0]}+host={width}", FIRST_ORDER)
        for width in forwarded
    }
    choices = Readings("who forwards")
    choices.add("hosts (section 3.2.3)", min(forced.values()) <= close, round(min(forced.values()), 3))
    choices.add("NICs", printed.holds(even), {"equal within 10 % below B": round(even, 3)})
    return choices.measurement(
        (f"{torus}+host=B", *(f"{s}+host=B" for s in expanders)),
        "Measured: least T of the torus over T of GenKautz, at B = "
        f"{' and '.join(forwarded)} links. If forwarded data pass through the host, as section 3.2.3 says, the torus "
        "with its longer paths never catches up. If NICs forward, it does below "
        f"B = {even:.2f}; expanders stop gaining from their hosts at B = {max(knees.values()):.2f}, in line with about "
        "1.3, but the torus is not as fast there: "
        f"it is {free[torus] / least:.2f} times slower without a bottleneck. Which graph the figure uses is not known.",
        saved_by="a torus compared where expanders stop gaining rather than where it is as fast; or hosts that neither "
        "forward nor limit the torus",
    )

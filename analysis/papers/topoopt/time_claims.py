"""Claims of the TopoOpt paper about iteration times, by Eq. (1) with the authors' measured computing times.

The paper's times come from a packet simulator over task graphs that its search chose. Eq. (1) of section 5.4 is its own
model of them, T = R/(nB) + alpha A/(nB) + C; our flow-level simulation of data-parallel task graphs is another. A claim
that holds under no reading of either is not reproduced by our models. It is not refuted: the authors' task graphs for
128 servers are not published.
"""

from __future__ import annotations

from functools import cache, partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.analysis.ledger.claim import Measurement, Measures
from opticoll.analysis.ledger.readings import Readings
from opticoll.analysis.ledger.tolerances import PrintedNumber, similar
from opticoll.analysis.papers.topoopt.cluster_claims import LOADS, published
from opticoll.analysis.papers.topoopt.iteration_loads import iteration_time, slowdown
from opticoll.analysis.papers.topoopt.network_claims import circulant_loads, circulants, job
from opticoll.analysis.papers.topoopt.price_claims import NIC_RULES, equal_cost_bandwidth
from opticoll.analysis.papers.topoopt.simulated_iterations import (
    GIGABIT,
    NETWORKS,
    simulated,
    table,
    tabulated,
)
from opticoll.analysis.training.cluster import FAT_TREE
from opticoll.instances import parse
from opticoll.instances.training.task_graph import operator_sequence
from opticoll.instances.training.training_jobs import NUMBER_BYTES, compute_time
from opticoll.solvers.methods.topoopt.topology_finder import topology_finder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from opticoll.analysis.ledger.claim import Laboratory
    from opticoll.solvers.methods.topoopt.topology_finder import Forwarding


#: Fat-tree over TopoOpt and TopoOpt over the ideal switch, averaged over the links, as printed in section 5.3.
OVER_FAT_TREE = {"candle": 2.8, "vgg": 2.8, "bert": 3, "dlrm": 2.8, "ncf": 2.1}
OVER_IDEAL = {"dlrm": 1.3, "ncf": 1.7}
#: Bandwidth of TopoOpt over that of a fat-tree of similar cost, as the text implies it.
FAT_TREES = {"5.7/1.4, section 5.5": FAT_TREE, "3.2, the cost of the ideal switch": 3.2}
#: Models of whose ratios section 5.3 does not say that they are averages, or at which link they are taken.
NOT_AVERAGED = ("dlrm", "ncf")
SERVERS = 128
#: All-reduce bytes R of all servers per byte of the gradients of one.
CONVENTIONS = {"gradients": float(SERVERS), "what rings send": 2.0 * (SERVERS - 1)}
#: The rule for NICs and fibres by appendix G.
RULE = NIC_RULES[0], 2
#: Whether communication and computation overlap; Eq. (1) assumes that they do not.
OVERLAPS = ("no overlap", "full overlap")
_FLOWS = (
    "A stricter test needs the task graphs that the authors' search chose for 128 servers; only those of DLRM "
    "for fat-trees are published"
)
_SIMULATED_BACKWARD = ("what rings send", "simulated, overlap with the backward pass")
_WAYS: tuple[Forwarding, ...] = ("coin-change", "shortest")
_FINDER = "TopologyFinder, shortest paths"
#: Open choices behind a ratio to a fat-tree's time, and to an ideal switch's.
_TREE_CHOICES = "all-reduce bytes; overlap; bandwidth of the fat-tree; routing"
_BATCH = {"candle": 256, "vgg": 64, "bert": 16, "dlrm": 128, "ncf": 128}
_IDEAL_CHOICES = "all-reduce bytes; overlap; routing"
#: Bytes over a hop of a ring per byte of the buffer, see :data:`CONVENTIONS`.
_FACTORS: dict[str, float | None] = {"gradients": 1.0, "what rings send": None}
_SIMULATED = {"simulated, overlap with the backward pass": "backward", "simulated, no overlap": "none"}
MEASURES = Measures("topoopt")


@cache
def _alone(model: str, spec: str, link: float) -> float:
    """Simulated time of a job of 16 servers on a network of its own [s]."""
    return simulated(model, spec, 8, link, section="5.6", fat_tree=1.0)


def _shared(*, tail: bool, loads: Sequence[int] = LOADS) -> Callable[[Laboratory], Measurement]:
    """Fat-tree over TopoOpt, and oversubscribed fat-tree over TopoOpt, on the shared cluster."""

    def measure(laboratory: Laboratory) -> Measurement:
        printed, degree, link = laboratory.scope.values("printed", "degree", "link [Gb/s]")
        numbers, choices = list(map(laboratory.number, printed)), Readings("bandwidth of the fat-tree; TopoOpt's times")
        for (name, less), theirs in product(fat_trees(degree, link).items(), ("published", "simulated")):
            ratios = []
            for jobs in loads:
                own = published("topoopt", degree=degree, jobs=jobs)
                weights = [one.samples for one in own]
                values = [
                    [
                        one.mean if theirs == "published" else _alone(one.model, NETWORKS["TopoOpt"], link)
                        for one in own
                    ],
                    [_alone(one.model, "ideal-switch:n={n},capacity={d}", link / less) for one in own],
                    [_alone(one.model, "fat-tree:k=12,oversubscription=2,capacity={d}", link) for one in own],
                ]
                sums = [_tail(v, weights) if tail else float(np.average(v, weights=weights)) for v in values]
                ratios.append([sums[1] / sums[0], sums[2] / sums[0]])
            means = np.mean(ratios, axis=0)[: len(numbers)]
            holds = all(number.holds(mean) for number, mean in zip(numbers, means, strict=True))
            choices.add((name, theirs), holds, [round(mean, 3) for mean in means.tolist()])
        return choices.measurement(
            (f"jobs of 16 servers, d = {degree}",),
            "TopoOpt's times are published, those of the fat-trees simulated for the same jobs, data parallel, each "
            "job as if alone: a fat-tree of full bisection keeps jobs apart. This is our model: the authors' "
            "strategies and placements of the jobs are not published.",
            choices.agreement,
            saved_by="jobs that disturb each other on the fat-tree, or strategies that are not data parallel",
        )

    return measure


def _tail(values: Sequence[float], weights: Sequence[int]) -> float:
    """The 99 % quantile of iterations."""
    return float(np.quantile(np.repeat(values, weights), 0.99))


MEASURES.of("abstract")(_shared(tail=True, loads=LOADS[-1:]))


MEASURES.of("shared-mean")(_shared(tail=False))


MEASURES.of("shared-tail")(_shared(tail=True))


# Eq. (1) --------------------------------------------------------------------------------------------------------


def fat_trees(degree: int, link: int) -> dict[str, float]:
    """Factor by which TopoOpt's bandwidth exceeds that of a fat-tree of similar cost."""
    return FAT_TREES | {"equal cost by Table 2": link / equal_cost_bandwidth(degree, link, *RULE)}


def direct_bytes(model: str, samples: int) -> float:
    """A: point-to-point bytes of all servers."""
    if model == "dlrm-128-tables":
        return float(parse(job(4, samples)).point_to_point.sum())
    if model in ("dlrm", "ncf"):
        return float(parse(f"servers:n={SERVERS},degree=4,traffic={model},section=5.3").point_to_point.sum())
    return 0.0


def seconds(model: str, samples: int, wired: float, alpha: float, convention: str, overlap: str) -> float:
    """Eq. (1) [s] with measured computing time, ``wired`` bytes/s per server; the larger part if they overlap."""
    layers, _ = operator_sequence("dlrm", "5.4") if model == "dlrm-128-tables" else operator_sequence(model)
    reduce = CONVENTIONS[convention] * NUMBER_BYTES * sum(weights for _, weights in layers)
    sent = iteration_time(reduce, direct_bytes(model, samples), alpha, SERVERS, wired)
    computing = compute_time(model, samples)
    return max(sent, computing) if overlap == "full overlap" else sent + computing


def _on_topoopt(model: str, degree: int, link: int) -> float:
    """Simulated time of a model of section 5.3 on TopoOpt [s]: that of the table of iterations, if it has one."""
    wanted = {"model": model, "network": "TopoOpt", "degree": str(degree), "link_gbps": str(link)}
    for row in table():
        if row["figure"] in ("11", "27", "28") and wanted.items() <= row.items():
            return float(row["seconds"])
    return simulated(model, "TopoOpt", degree, link)


def _by_eq_1(
    degree: int, convention: str, overlap: str, way: Forwarding, tree: str | None, model: str, link: int
) -> float:
    """A fat-tree's time over TopoOpt's by Eq. (1), under a reading of its bandwidth; without: TopoOpt's over ideal."""
    wired, batch = degree * link * GIGABIT, _BATCH[model]
    slower = fat_trees(degree, link)[tree] if tree else 1.0
    ours = seconds(model, batch, wired, _alpha(model, degree, way), convention, overlap)
    theirs = seconds(model, batch, wired / slower, 1.0, convention, overlap)
    return theirs / ours if tree else ours / theirs


def _by_flows(degree: int, slower: float | None, model: str, link: int) -> float:
    """As :func:`_by_eq_1`, simulated, with the factor by which the fat-tree's bandwidth is less."""
    given = {"degree": degree, "link_gbps": link}
    ours = tabulated(11, model, "TopoOpt", **given)
    if slower is None:
        return ours / tabulated(11, model, "Ideal Switch", **given)
    if slower == FAT_TREE:
        return tabulated(11, model, "Fat-tree", **given) / ours
    return simulated(model, "Fat-tree", degree, link, fat_tree=slower) / ours


def _add_means(
    choices: Readings,
    tried: tuple[str, ...],
    numbers: Mapping[str, PrintedNumber],
    links: Sequence[int],
    ratio: Callable[[str, int], float],
) -> dict[str, float]:
    """Add a reading under which a model's ratio, averaged over the links, is the one printed; returns the averages.

    Of the models in :data:`NOT_AVERAGED` the ratios at one link may be those printed, too.
    """
    at = [{model: ratio(model, link) for model in numbers} for link in links]
    means = {model: sum(ratios[model] for ratios in at) / len(links) for model in numbers}
    averaged = all(numbers[model].holds(means[model]) for model in numbers if model not in NOT_AVERAGED)
    some = any(
        all(numbers[model].holds(one[model]) for model in numbers if model in NOT_AVERAGED) for one in (means, *at)
    )
    choices.add(tried, averaged and some, {model: round(mean, 2) for model, mean in means.items()})
    return means


@cache
def _alpha(model: str, degree: int, way: Forwarding) -> float:
    """Alpha of a model of section 5.3; 1 for data parallelism."""
    if model not in ("dlrm", "ncf"):
        return 1.0
    pool = parse(f"servers:n={SERVERS},degree={degree},traffic={model},section=5.3")
    return slowdown(topology_finder(pool, forwarding=way)).alpha


@MEASURES.of("iteration-time")
def _speedups(laboratory: Laboratory) -> Measurement:
    degree, links, printed = laboratory.scope.values("degree", "average over links [Gb/s]", "printed, by model")
    numbers = {model: laboratory.number(text) for model, text in printed.items()}
    choices, values = Readings(_TREE_CHOICES), []
    for convention, overlap, tree, way in product(CONVENTIONS, OVERLAPS, fat_trees(degree, links[0]), _WAYS):
        ratio = partial(_by_eq_1, degree, convention, overlap, way, tree)
        values.append(_add_means(choices, (convention, overlap, tree, way), numbers, links, ratio))
    for tree, less in FAT_TREES.items():
        tried = (*_SIMULATED_BACKWARD, tree, _FINDER)
        values.append(_add_means(choices, tried, numbers, links, partial(_by_flows, degree, less)))
    ends = {model: [means[model] for means in values] for model in printed}
    within = [model for model, text in printed.items() if min(ends[model]) <= float(text) <= max(ends[model])]
    return choices.measurement(
        tuple(f"{model}, 128 servers, d = {degree}" for model in printed),
        "No reading of Eq. (1) and no simulation of flows gives all five numbers; the readings bracket those of "
        f"{', '.join(within)}. Both are models; the strategies that the authors' search chose are not data parallel "
        "throughout. " + _FLOWS + ".",
        choices.agreement,
        saved_by="another strategy or another fat-tree for every model: the readings bracket "
        f"the numbers of {', '.join(within)} one by one",
    )


@MEASURES.of("below-ideal")
def _below_ideal(laboratory: Laboratory) -> Measurement:
    degree, links, printed = laboratory.scope.values("degree", "average over links [Gb/s]", "printed, by model")
    numbers = {model: laboratory.number(text) for model, text in printed.items()}
    choices = Readings(_IDEAL_CHOICES)
    for convention, overlap, way in product(CONVENTIONS, OVERLAPS, _WAYS):
        ratio = partial(_by_eq_1, degree, convention, overlap, way, None)
        _add_means(choices, (convention, overlap, way), numbers, links, ratio)
    _add_means(choices, (*_SIMULATED_BACKWARD, _FINDER), numbers, links, partial(_by_flows, degree, None))
    return choices.measurement(
        tuple(f"{model}, 128 servers, d = {degree}" for model in printed),
        "Eq. (1) with computing times measured by the authors, and alpha of TopologyFinder's circuits, spreads traffic "
        "over the whole iteration; in the simulation, flows compete for links. A reading agrees if the averages over "
        "the links do, or both numbers at one of the links. " + _FLOWS + ".",
        choices.agreement,
        saved_by="strategies with more model-parallel traffic than ours, which are not published",
    )


@cache
def alphas(degree: int, batch: int) -> dict[str, float]:
    """Alpha of the all-to-all DLRM by circuits and routing."""
    pool = parse(job(degree, batch))
    ways: dict[str, tuple[Forwarding, int]] = {
        "TopologyFinder, CoinChangeMod": ("coin-change", 1),
        "TopologyFinder, shortest paths": ("shortest", 1),
        "TopologyFinder, 2 shortest paths": ("shortest", 2),
        "TopologyFinder, 2 shortest paths also beside a circuit": ("k-shortest", 2),
    }
    measured = {
        name: slowdown(topology_finder(pool, forwarding=way, paths=paths)).alpha for name, (way, paths) in ways.items()
    }
    for name, steps in circulants(SERVERS, degree).items():
        loads = circulant_loads(SERVERS, steps, sorted(steps))
        measured[f"rings, {name}, CoinChangeMod"] = max(loads.values()) * len(steps) / (SERVERS - 1)
    return measured


def _times_of_dlrm(
    degree: int, batch: int, link: int, rival: str, slower: Mapping[str, float]
) -> Iterator[tuple[tuple[str, ...], float, float]]:
    """Times of the all-to-all DLRM on TopoOpt and on a rival [s], under every reading of Eq. (1), and simulated.

    ``slower`` has the factor by which the rival's bandwidth is less, under every reading of it; the names of the
    readings are those of the open choices in order.
    """
    wired = degree * link * GIGABIT
    for convention, overlap, (name, less), (routing, alpha) in product(
        CONVENTIONS, OVERLAPS, slower.items(), alphas(degree, batch).items()
    ):
        ours = seconds("dlrm-128-tables", batch, wired, alpha, convention, overlap)
        theirs = seconds("dlrm-128-tables", batch, wired / less, 1.0, convention, overlap)
        yield (convention, overlap, *filter(None, [name]), routing), ours, theirs
    for (convention, factor), (words, overlap) in product(_FACTORS.items(), _SIMULATED.items()):
        given: dict[str, Any] = {"section": "5.4", "batch": batch, "overlap": overlap, "factor": factor}
        ours = simulated("dlrm", "TopoOpt", degree, link, **given)
        for name, less in slower.items():
            theirs = simulated("dlrm", rival, degree, link, fat_tree=less, **given)
            yield (convention, words, *filter(None, [name]), _FINDER), ours, theirs


def _fat_tree(*, slower: bool) -> Callable[[Laboratory], Measurement]:
    """The ratio of a fat-tree's time to TopoOpt's, or the other way round for ``slower``."""

    def measure(laboratory: Laboratory) -> Measurement:
        degree, batch, link = laboratory.scope.values("degree", "batch", "link [Gb/s]")
        number, choices = laboratory.number(laboratory.scope["printed"]), Readings(_TREE_CHOICES)
        for tried, ours, theirs in _times_of_dlrm(degree, batch, link, "Fat-tree", fat_trees(degree, link)):
            ratio = ours / theirs if slower else theirs / ours
            choices.add(tried, number.holds(ratio), round(ratio, 3))
        return choices.measurement(
            (job(degree, batch),),
            f"Eq. (1) with {1000 * compute_time('dlrm-128-tables', batch):.1f} ms of computation, measured by the "
            "authors; and simulated flows. The bandwidth of a fat-tree of similar "
            "cost is not stated; section 5.5 implies 5.7/1.4. " + _FLOWS + ".",
            choices.agreement,
        )

    return measure


MEASURES.of("fat-tree-at-128")(_fat_tree(slower=False))


MEASURES.of("over-fat-tree")(_fat_tree(slower=True))


@MEASURES.of("like-ideal")
def _like_ideal(laboratory: Laboratory) -> Measurement:
    degree, batch, link = laboratory.scope.values("degree", "batch", "link [Gb/s]")
    choices = Readings(_IDEAL_CHOICES)
    for tried, ours, ideal in _times_of_dlrm(degree, batch, link, "Ideal Switch", {"": 1.0}):
        choices.add(tried, similar(ours / ideal), round(ours / ideal, 3))
    return choices.measurement(
        (job(degree, batch),),
        "Eq. (1) with computing times measured by the authors, where an ideal switch has alpha = 1; and simulated "
        "flows. " + _FLOWS + ".",
        choices.agreement,
    )


@MEASURES.of("degree-mitigates")
def _mitigates(laboratory: Laboratory) -> Measurement:
    (few, many), batch, link = laboratory.scope.values("degrees", "batch", "link [Gb/s]")
    choices = Readings(_TREE_CHOICES)
    trees = {degree: fat_trees(degree, link) for degree in (few, many)}
    for convention, overlap, tree, routing in product(CONVENTIONS, OVERLAPS, trees[few], alphas(few, batch)):
        ratios = []
        for degree, slower in trees.items():
            wired = degree * link * GIGABIT
            ours = seconds("dlrm-128-tables", batch, wired, alphas(degree, batch)[routing], convention, overlap)
            theirs = seconds("dlrm-128-tables", batch, wired / slower[tree], 1.0, convention, overlap)
            ratios.append(ours / theirs)
        choices.add((convention, overlap, tree, routing), ratios[1] < ratios[0], [round(ratio, 3) for ratio in ratios])
    return choices.measurement((job(few, batch), job(many, batch)), measured=choices.agreement)


def _degrees(model: str, holds: Callable[[float, float], bool], reason: str) -> Callable[[Laboratory], Measurement]:
    """Measure how much faster an iteration is with the larger degree."""

    def measure(laboratory: Laboratory) -> Measurement:
        (few, many), links = laboratory.scope["degrees"], laboratory.scope["links [Gb/s]"]
        routing = "; routing" if model == "dlrm" else ""
        choices = Readings(f"all-reduce bytes; overlap; link{routing}")
        ways = _WAYS if model == "dlrm" else _WAYS[:1]
        for convention, overlap, link, way in product(CONVENTIONS, OVERLAPS, links, ways):
            times = [
                seconds(model, _BATCH[model], degree * link * GIGABIT, _alpha(model, degree, way), convention, overlap)
                for degree in (few, many)
            ]
            faster = times[0] / times[1]
            tried = (convention, overlap, f"{link} Gb/s", *([way] if model == "dlrm" else []))
            choices.add(tried, holds(faster, many / few), round(faster, 3))
        for link in links:
            times = [_on_topoopt(model, degree, link) for degree in (few, many)]
            faster = times[0] / times[1]
            choices.add((*_SIMULATED_BACKWARD, f"{link} Gb/s"), holds(faster, many / few), round(faster, 3))
        return choices.measurement(
            (f"{model}, 128 servers, d = {few} and {many}",),
            f"{reason} {_FLOWS}.",
            choices.agreement,
            saved_by="a strategy that hides all computation, which is not published",
        )

    return measure


MEASURES.of("degree-candle")(
    _degrees(
        "candle",
        lambda faster, linear: similar(faster / linear),
        "Only time spent on communication shrinks with the degree.",
    )
)


MEASURES.of("degree-bert")(
    _degrees(
        "bert",
        lambda faster, _linear: similar(faster),
        "BERT computes for 53.8 ms and communicates for 16 or 32 ms at d = 4, depending on the convention.",
    )
)


MEASURES.of("degree-dlrm")(
    _degrees(
        "dlrm",
        lambda faster, linear: faster > linear,
        "Eq. (1) scales more than linearly only if alpha falls and computation is hidden.",
    )
)


@MEASURES.of("forwarding-bert")
def _forwarding(laboratory: Laboratory) -> Measurement:
    number, choices = laboratory.number(laboratory.scope["printed"]), Readings("pause; interval")
    for row in table():
        if (row["figure"], row["model"], row["network"]) == ("17", "bert", "OCS-reconfig-FW"):
            same = {name: row[name] for name in ("pause_us", "interval_ms")}
            ratio = float(row["seconds"]) / tabulated(17, "bert", "OCS-reconfig-noFW", **same)
            tried = f"{same['pause_us']} us", f"{same['interval_ms']} ms"
            choices.add(tried, number.holds(ratio), round(ratio, 3))
    return choices.measurement(
        ("bert, 128 servers, d = 8",),
        "Simulated with circuits chosen by the bytes that are left. A data-parallel BERT sends over its ring alone, "
        "all of whose hops get circuits, so nothing is forwarded: the cost of forwarding depends on the "
        "model-parallel transfers of the authors' strategy. " + _FLOWS + ".",
        choices.agreement,
        saved_by="a strategy with model-parallel transfers, which is not published",
    )


@MEASURES.of("reconfiguration")
def _reconfiguration(laboratory: Laboratory) -> Measurement:
    pause, link, degree = laboratory.scope.values("pause [us]", "link [Gb/s]", "degree")
    choices = Readings("model; interval")
    for row in table():
        if (row["figure"], row["network"], row["pause_us"]) == ("17", "OCS-reconfig-noFW", str(pause)):
            ratio = float(row["seconds"]) / _on_topoopt(row["model"], degree, link)
            tried = row["model"], f"{row['interval_ms']} ms"
            choices.add(tried, similar(ratio), round(ratio, 3))
    return choices.measurement(
        tuple(f"{model}, 128 servers, d = {degree}" for model in ("dlrm", "bert")), measured=choices.agreement
    )

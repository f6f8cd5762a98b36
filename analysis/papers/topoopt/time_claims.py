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

from opticoll.analysis.ledger.claim import Claims, Measurement
from opticoll.analysis.ledger.printed_number import PrintedNumber, similar
from opticoll.analysis.ledger.readings import Readings
from opticoll.analysis.papers.topoopt.cluster_claims import LOADS, published
from opticoll.analysis.papers.topoopt.natural_readings import EQUATION_1, SHARED_CLUSTER
from opticoll.analysis.papers.topoopt.network_claims import circulant_loads, circulants, job
from opticoll.analysis.papers.topoopt.price_claims import NIC_RULES, equal_cost_bandwidth
from opticoll.analysis.papers.topoopt.simulated_iterations import (
    FAT_TREE,
    GIGABIT,
    LINKS,
    NETWORKS,
    simulated,
    table,
    tabulated,
)
from opticoll.formulations.topoopt.iteration_loads import iteration_time, slowdown
from opticoll.instances import parse
from opticoll.instances.training.training_jobs import NUMBER_BYTES, compute_time, dense_weights
from opticoll.solvers.methods.topoopt.topology_finder import topology_finder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from opticoll.analysis.ledger.claim import Laboratory
    from opticoll.solvers.methods.topoopt.topology_finder import Forwarding


#: Fat-tree over TopoOpt and TopoOpt over the ideal switch, averaged over the links, as printed in section 5.3.
OVER_FAT_TREE = {"candle": 2.8, "vgg": 2.8, "bert": 3, "dlrm": 2.8, "ncf": 2.1}
OVER_IDEAL = {"dlrm": 1.3, "ncf": 1.7}
_BY_EQ_1 = "We evaluate Eq. (1) with the authors' measured computing times, "
_AT_100 = {"degree": 4, "link [Gb/s]": 100}
_SHARED = {"degree": 8, "link [Gb/s]": 100}
_BY_FLOWS = (
    "We simulate flows of data-parallel task graphs with the authors' measured computing times, "
    "with max-min fair rates."
)
_HARDWARE = (
    "Measured on a testbed of 12 servers with modified NICs and a patch panel. A test needs the hardware, or computing "
    "times of the testbed."
)
#: Bandwidth of TopoOpt over that of a fat-tree of similar cost, as the text implies it.
FAT_TREES = {"5.7/1.4, section 5.5": FAT_TREE, "3.2, the cost of the ideal switch": 3.2}
SERVERS = 128
#: All-reduce bytes R of all servers per byte of the gradients of one.
CONVENTIONS = {"gradients": float(SERVERS), "what rings send": 2.0 * (SERVERS - 1)}
#: The rule for NICs and fibres under which an ideal switch costs 3.2 times as much as TopoOpt on average.
RULE = NIC_RULES[2], 1
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
CLAIMS = Claims("topoopt")


@cache
def _alone(model: str, spec: str, link: float) -> float:
    """Simulated time of a job of 16 servers on a network of its own [s]."""
    return simulated(model, spec, 8, link, section="5.6", fat_tree=1.0)


def _shared(*, tail: bool, loads: Sequence[int] = LOADS) -> Callable[[Laboratory], Measurement]:
    """Fat-tree over TopoOpt, and oversubscribed fat-tree over TopoOpt, on the shared cluster."""

    def measure(laboratory: Laboratory) -> Measurement:
        printed, degree, link = laboratory.scope.values("printed", "degree", "link [Gb/s]")
        numbers, choices = list(map(PrintedNumber, printed)), Readings("bandwidth of the fat-tree; TopoOpt's times")
        for (name, less), theirs in product(FAT_TREES.items(), ("published", "simulated")):
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


CLAIMS.stated(
    "abstract",
    "abstract, section 1; section 5.6, figure 16b",
    "Training is up to 3.4 times as fast as on fat-trees of similar cost: the 99 % tail of iteration times on a "
    "shared cluster of 432 servers at full load",
    3.4,
    PrintedNumber("3.4").tolerance,
    scope={**_SHARED, "printed": ["3.4"]},
    weight="headline",
    natural=SHARED_CLUSTER,
    printed=[3.4],
    second="tail_is_candle",
    procedure=_BY_FLOWS,
)(_shared(tail=True, loads=LOADS[-1:]))


CLAIMS.stated(
    "shared-mean",
    "section 5.6, figure 16a",
    "On a shared cluster of 432 servers TopoOpt's mean iteration is 1.7 times as fast as the fat-tree's, and "
    "1.15 times as fast as the oversubscribed fat-tree's",
    [1.7, 1.15],
    "rounds to the printed digits",
    scope={**_SHARED, "printed": ["1.7", "1.15"]},
    weight="headline",
    natural=SHARED_CLUSTER,
    second="means_of_the_cluster",
    procedure=_BY_FLOWS,
)(_shared(tail=False))


CLAIMS.stated(
    "shared-tail",
    "section 5.6, figure 16b",
    "Averaged over all loads of a shared cluster, TopoOpt's 99 % tail of iteration times is 3 times as fast as "
    "the fat-tree's, and 1.4 times as fast as the oversubscribed fat-tree's",
    [3, 1.4],
    "rounds to the printed digits",
    scope={**_SHARED, "printed": ["3", "1.4"]},
    natural=SHARED_CLUSTER,
    second="tails_of_the_cluster",
    procedure=_BY_FLOWS,
)(_shared(tail=True))


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
    reduce = CONVENTIONS[convention] * NUMBER_BYTES * dense_weights(model, samples)
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
    printed: Mapping[str, str],
    links: Sequence[int],
    ratio: Callable[[str, int], float],
) -> dict[str, float]:
    """Add a reading under which a model's ratio, averaged over the links, is the one printed; returns the averages."""
    means = {model: sum(ratio(model, link) for link in links) / len(links) for model in printed}
    holds = all(PrintedNumber(printed[model]).holds(mean) for model, mean in means.items())
    choices.add(tried, holds, {model: round(mean, 2) for model, mean in means.items()})
    return means


@cache
def _alpha(model: str, degree: int, way: Forwarding) -> float:
    """Alpha of a model of section 5.3; 1 for data parallelism."""
    if model not in ("dlrm", "ncf"):
        return 1.0
    pool = parse(f"servers:n={SERVERS},degree={degree},traffic={model},section=5.3")
    return slowdown(topology_finder(pool, forwarding=way)).alpha


@CLAIMS.stated(
    "iteration-time",
    "section 5.3, figure 11",
    "On 128 servers with d = 4, averaged over link bandwidths, iterations are 2.8 (CANDLE), 2.8 (VGG), 3 (BERT), "
    "2.8 (DLRM) and 2.1 (NCF) times as fast as on a fat-tree of similar cost",
    OVER_FAT_TREE,
    "rounds to the printed digits",
    scope={
        "degree": 4,
        "average over links [Gb/s]": list(LINKS),
        "printed, by model": {model: str(times) for model, times in OVER_FAT_TREE.items()},
    },
    weight="headline",
    natural=EQUATION_1,
    second="candle_waits_for_its_rings",
    procedure=_BY_EQ_1 + "for data parallelism (tables placed whole), for every reading of what it leaves open.",
)
def _speedups(laboratory: Laboratory) -> Measurement:
    degree, links, printed = laboratory.scope.values("degree", "average over links [Gb/s]", "printed, by model")
    choices, values = Readings(_TREE_CHOICES), []
    for convention, overlap, tree, way in product(CONVENTIONS, OVERLAPS, fat_trees(degree, links[0]), _WAYS):
        ratio = partial(_by_eq_1, degree, convention, overlap, way, tree)
        values.append(_add_means(choices, (convention, overlap, tree, way), printed, links, ratio))
    for tree, less in FAT_TREES.items():
        tried = (*_SIMULATED_BACKWARD, tree, _FINDER)
        values.append(_add_means(choices, tried, printed, links, partial(_by_flows, degree, less)))
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


@CLAIMS.stated(
    "below-ideal",
    "section 5.3, figure 11",
    "On 128 servers with d = 4 an ideal switch is 1.3 times as fast as TopoOpt for DLRM and 1.7 times for NCF",
    OVER_IDEAL,
    "rounds to the printed digits",
    scope={
        "degree": 4,
        "average over links [Gb/s]": list(LINKS),
        "printed, by model": {model: str(times) for model, times in OVER_IDEAL.items()},
    },
    natural=EQUATION_1,
    second="bound_on_forwarding",
    procedure=_BY_EQ_1 + "with alpha = 1 for the ideal switch.",
)
def _below_ideal(laboratory: Laboratory) -> Measurement:
    degree, links, printed = laboratory.scope.values("degree", "average over links [Gb/s]", "printed, by model")
    choices = Readings(_IDEAL_CHOICES)
    for convention, overlap, way in product(CONVENTIONS, OVERLAPS, _WAYS):
        ratio = partial(_by_eq_1, degree, convention, overlap, way, None)
        _add_means(choices, (convention, overlap, way), printed, links, ratio)
    _add_means(choices, (*_SIMULATED_BACKWARD, _FINDER), printed, links, partial(_by_flows, degree, None))
    return choices.measurement(
        tuple(f"{model}, 128 servers, d = {degree}" for model in printed),
        "Eq. (1) with computing times measured by the authors, and alpha of TopologyFinder's circuits, spreads traffic "
        "over the whole iteration; in the simulation, flows compete for links. " + _FLOWS + ".",
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
        number, choices = PrintedNumber(laboratory.scope["printed"]), Readings(_TREE_CHOICES)
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


CLAIMS.stated(
    "fat-tree-at-128",
    "section 5.4, figure 12a",
    "For the all-to-all DLRM at batch 128 with d = 4 a fat-tree of similar cost takes 2.7 times as long",
    2.7,
    PrintedNumber("2.7").tolerance,
    scope={**_AT_100, "batch": 128, "printed": "2.7"},
    natural=None,
    unpublished="The bandwidth of the fat-tree of similar cost.",
    procedure=_BY_EQ_1 + "for every reading of what it leaves open.",
)(_fat_tree(slower=False))


CLAIMS.stated(
    "over-fat-tree",
    "section 5.4, figure 12a",
    "For the all-to-all DLRM at batch 2048 with d = 4 TopoOpt takes 1.1 times as long as a fat-tree of similar cost",
    1.1,
    PrintedNumber("1.1").tolerance,
    scope={**_AT_100, "batch": 2048, "printed": "1.1"},
    natural=None,
    unpublished="The bandwidth of the fat-tree of similar cost.",
    procedure=_BY_EQ_1 + "for every reading of what it leaves open.",
)(_fat_tree(slower=True))


@CLAIMS.stated(
    "like-ideal",
    "section 5.4, figure 12a",
    "For the all-to-all DLRM at batch 128 with d = 4 TopoOpt matches the ideal switch",
    1.0,
    "10 %",
    scope={**_AT_100, "batch": 128},
    natural=EQUATION_1,
    procedure=_BY_EQ_1 + "with alpha = 1 for the ideal switch.",
)
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


@CLAIMS.stated(
    "degree-mitigates",
    "section 5.4, figure 12b",
    "At batch 2048 a degree of 8 instead of 4 mitigates TopoOpt's loss against the fat-tree",
    "a smaller ratio at d = 8",
    scope={"degrees": [4, 8], "batch": 2048, "link [Gb/s]": 100},
    natural=EQUATION_1,
    procedure=_BY_EQ_1 + "for both degrees.",
)
def _mitigates(laboratory: Laboratory) -> Measurement:
    (few, many), batch, link = laboratory.scope.values("degrees", "batch", "link [Gb/s]")
    choices = Readings("all-reduce bytes; routing")
    tree = fat_trees(few, link)["5.7/1.4, section 5.5"]
    for convention, routing in product(CONVENTIONS, alphas(few, batch)):
        ratios = []
        for degree in (few, many):
            wired = degree * link * GIGABIT
            ours = seconds("dlrm-128-tables", batch, wired, alphas(degree, batch)[routing], convention, "no overlap")
            ratios.append(ours / seconds("dlrm-128-tables", batch, wired / tree, 1.0, convention, "no overlap"))
        choices.add(
            (convention, routing),
            ratios[1] < ratios[0],
            [round(ratio, 3) for ratio in ratios],
        )
    return choices.measurement(
        (job(few, batch), job(many, batch)),
        "TopoOpt's time over the fat-tree's by Eq. (1) at both degrees. With more interfaces paths are shorter, but "
        "CoinChangeMod loads the rings less evenly.",
        choices.agreement,
    )


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


CLAIMS.stated(
    "degree-candle",
    "appendix H, figure 28",
    "CANDLE's improvement is almost linear in the degree, from 4 to 10 at 40 and 100 Gb/s",
    "2.5 times as fast",
    "10 %",
    scope={"degrees": [4, 10], "links [Gb/s]": [40, 100]},
    natural=None,
    unpublished="The task graphs of 128 servers.",
    procedure=_BY_EQ_1 + "for both degrees.",
)(
    _degrees(
        "candle",
        lambda faster, linear: similar(faster / linear),
        "Only time spent on communication shrinks with the degree.",
    )
)


CLAIMS.stated(
    "degree-bert",
    "appendix H, figure 28",
    "At the higher link bandwidth BERT is mostly compute bound, and the degree has marginal impact on its "
    "iteration time",
    "1.0 times as fast",
    "10 %",
    scope={"degrees": [4, 10], "links [Gb/s]": [100]},
    natural=None,
    unpublished="The task graphs of 128 servers.",
    procedure=_BY_EQ_1 + "for both degrees.",
)(
    _degrees(
        "bert",
        lambda faster, _linear: similar(faster),
        "BERT computes for 53.8 ms and communicates for 16 or 32 ms at d = 4, depending on the convention.",
    )
)


CLAIMS.stated(
    "degree-dlrm",
    "appendix H, figure 28",
    "At 100 Gb/s DLRM scales more than linearly in the degree, since paths get shorter",
    "more than 2.5 times as fast",
    scope={"degrees": [4, 10], "links [Gb/s]": [100]},
    natural=EQUATION_1,
    printed=2.5,
    second="dlrm_of_ten_interfaces",
    procedure=_BY_EQ_1 + "for both degrees.",
)(
    _degrees(
        "dlrm",
        lambda faster, linear: faster > linear,
        "Eq. (1) scales more than linearly only if alpha falls and computation is hidden.",
    )
)


@CLAIMS.stated(
    "forwarding-bert",
    "section 5.7, figure 17b",
    "Forwarding while circuits are reconfigured slows BERT down by a factor of 1.4",
    1.4,
    PrintedNumber("1.4").tolerance,
    scope={"printed": "1.4"},
    second="rings_forward_nothing",
    procedure=_BY_FLOWS,
)
def _forwarding(laboratory: Laboratory) -> Measurement:
    number, choices = PrintedNumber(laboratory.scope["printed"]), Readings("pause; interval")
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


@CLAIMS.stated(
    "reconfiguration",
    "section 5.7, figure 17",
    "Without forwarding, a network that reconfigures within 1 us matches TopoOpt",
    "1 us",
    "10 %",
    scope={"pause [us]": 1, "degree": 8, "link [Gb/s]": 100},
    printed=1,
    second="without_forwarding",
    procedure=_BY_FLOWS,
)
def _reconfiguration(laboratory: Laboratory) -> Measurement:
    pause, link, degree = laboratory.scope.values("pause [us]", "link [Gb/s]", "degree")
    choices = Readings("model; interval")
    for row in table():
        if (row["figure"], row["network"], row["pause_us"]) == ("17", "OCS-reconfig-noFW", str(pause)):
            ratio = float(row["seconds"]) / _on_topoopt(row["model"], degree, link)
            tried = row["model"], f"{row['interval_ms']} ms"
            choices.add(tried, similar(ratio), round(ratio, 3))
    return choices.measurement(
        tuple(f"{model}, 128 servers, d = {degree}" for model in ("dlrm", "bert")),
        "Simulated time without forwarding over TopoOpt's. How often circuits are chosen at small latencies is not "
        "stated; in every interval a server reaches at most d others, but DLRM's tables send to all.",
        choices.agreement,
    )


CLAIMS.untestable(
    "throughput",
    "section 6, figure 19",
    "The prototype's throughput is similar to that of a 100 Gb/s switch for all models",
    "similar",
    reason=_HARDWARE,
)


CLAIMS.untestable(
    "accuracy",
    "section 6, figure 20",
    "VGG19 reaches 90 % top-5 accuracy 2.0 times as fast as with a 25 Gb/s switch",
    2.0,
    reason=_HARDWARE,
)


CLAIMS.untestable(
    "testbed-times",
    "section 6, figure 21",
    "At batch 512 the prototype trains DLRM 1.6 times as fast as a 25 Gb/s switch",
    1.6,
    reason=_HARDWARE,
)


CLAIMS.open(
    "production",
    "section 2.2, figures 2-4",
    "The network overhead of six production jobs on up to 128 GPUs is up to 60 % of an iteration",
    60,
    unpublished="The traces of the company's clusters.",
    reason="The traces of the company's clusters are not published.",
)

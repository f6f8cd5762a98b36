"""Claims of the TopoOpt paper about path lengths, bandwidth tax, load of the circuits, and cost.

Two open choices decide most of them. The paper does not say whether an interface of degree d gives a circuit in one
direction, so d rings leave a server, or a link in both directions, so d/2 rings pass it both ways; Algorithm
1 matches pairs of servers, which suggests links. It routes "k-shortest path" without k and without a rule for ties.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, product
from typing import TYPE_CHECKING

import numpy as np

from opticoll.analysis.ledger.claim import Claims, Measurement, Verdict, verdict_if
from opticoll.analysis.ledger.printed_number import PrintedNumber
from opticoll.analysis.ledger.readings import Readings, spread
from opticoll.analysis.papers.topoopt.claims import dlrm_weights
from opticoll.formulations.topoopt.iteration_loads import point_to_point_loads, slowdown
from opticoll.instances import parse
from opticoll.instances.training_jobs import NUMBER_BYTES
from opticoll.solvers.methods.topoopt import ring_permutations
from opticoll.solvers.methods.topoopt.ocs_reconfig import ocs_reconfig
from opticoll.solvers.methods.topoopt.topology_finder import topology_finder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opticoll.analysis.ledger.claim import Laboratory
    from opticoll.solvers.methods.topoopt.topology_finder import Forwarding


_MOSTLY = "We build the circuits, route the traffic in each way that the paper leaves open, and "
_PANELS: list[list[int]] = [[4, 100], [8, 200]]
#: Seeds of random tie-breaks.
SEEDS = 8
#: Mean price of a fibre [$].
FIBRE = 0.30 * 500.0
ARCHITECTURES = ("topoopt", "ocs", "ideal-switch", "oversub-fat-tree", "expander")
#: Rules for NICs: appendix G counts two NICs of two ports as one of four, and one NIC per host of a fat-tree.
NIC_RULES = (
    "one NIC per interface",
    "one NIC per two interfaces",
    "one NIC per two interfaces, per host of the ideal switch",
    "NICs not counted",
)
CLAIMS = Claims("topoopt")


def interconnect_cost(architecture: str, servers: int, degree: int, bandwidth: int) -> float:
    """Price of the whole interconnect [$], as :func:`interface_cost`."""
    return servers * degree * interface_cost(architecture, bandwidth)


# circuits and routes --------------------------------------------------------------------------------------------


def job(degree: int, batch: int) -> str:
    """The all-to-all DLRM of section 5.4 on 128 servers."""
    return f"servers:n=128,degree={degree},traffic=dlrm,section=5.4,batch={batch}"


def circulants(n: int, degree: int) -> dict[str, tuple[int, ...]]:
    """Steps of the rings of ``degree`` interfaces, by direction of the circuits and rule for the geometric sequence."""
    half = degree // 2
    near = ring_permutations.selected(n, half)
    upper = [1]
    while len(upper) < half:  # ratio rounded up to an integer, the larger of two steps at the same distance
        goal = math.ceil(n ** (1 / half)) * upper[-1]
        upper.append(
            min((p for p in ring_permutations.totient_perms(n) if p not in upper), key=lambda p: (abs(p - goal), -p))
        )

    def both(steps: Sequence[int]) -> tuple[int, ...]:
        return tuple(sorted({step % n for p in steps for step in (p, -p)}))

    return {
        "circuits in one direction": ring_permutations.selected(n, degree),
        "links in both directions": both(near),
        "links in both directions, ratio rounded up": both(upper),
    }


@lru_cache(maxsize=64)
def mean_of_paths(n: int, steps: tuple[int, ...], k: int) -> float:
    """Mean length of the k shortest paths over all pairs of servers of a circulant graph."""
    if k == 1:
        return ring_permutations.mean_hops(n, steps)
    import networkx as nx

    graph = nx.DiGraph([(u, (u + p) % n) for u in range(n) for p in steps])
    total = 0.0
    for target in range(1, n):
        paths = islice(nx.shortest_simple_paths(graph, 0, target), k)
        total += float(np.mean([len(path) - 1 for path in paths]))
    return total / (n - 1)


@CLAIMS.stated(
    "path-length",
    "section 5.5, figure 14",
    "The average path length over all pairs of 128 servers is 5.7 at d = 4 and 3 at d = 8",
    {"4": 5.7, "8": 3},
    "rounds to the printed digits",
    scope={"servers": 128, "printed, by degree": {"4": "5.7", "8": "3"}},
    weight=2,
    procedure=_MOSTLY + "average the hops over all pairs.",
)
def _path_length(laboratory: Laboratory) -> Measurement:
    n, printed = laboratory.scope["servers"], laboratory.scope["printed, by degree"]
    numbers = {int(degree): PrintedNumber(text) for degree, text in printed.items()}
    graphs = {degree: circulants(n, degree) for degree in numbers}
    choices = Readings("circuits; paths of a pair")
    for name in next(iter(graphs.values())):
        for k in (1, 2):
            means = {degree: mean_of_paths(n, graphs[degree][name], k) for degree in numbers}
            holds = all(numbers[degree].holds(mean) for degree, mean in means.items())
            choices.add(
                f"{name}; {k} shortest", holds, {f"d={degree}": round(mean, 3) for degree, mean in means.items()}
            )
    for batch in (128, 2048):
        ways: tuple[Forwarding, ...] = ("coin-change", "shortest")
        for way in ways:
            means = {d: slowdown(topology_finder(parse(job(d, batch)), forwarding=way)).mean_hops for d in numbers}
            holds = all(numbers[degree].holds(mean) for degree, mean in means.items())
            choices.add(
                f"TopologyFinder at batch {batch}, one direction; {way}",
                holds,
                {f"d={degree}": round(mean, 3) for degree, mean in means.items()},
            )
    return choices.measurement(
        tuple(job(degree, batch) for degree in numbers for batch in (128, 2048)),
        "Four rings in one direction have shorter paths than printed. Two rings passed both ways have the printed "
        "lengths on average over the two shortest paths of a pair. The batch size of the figure is not stated.",
        choices.agreement,
    )


@CLAIMS.stated(
    "bandwidth-tax",
    "section 5.5, figure 13",
    "With 128 servers DLRM's bandwidth tax is 1.11 at batch 64 and d = 4, 1.05 at d = 8, and 3.03 at batch 2048 "
    "and d = 4",
    {"4, 64": 1.11, "8, 64": 1.05, "4, 2048": 3.03},
    "rounds to the printed digits",
    scope={"servers": 128, "printed, by degree and batch": {"4, 64": "1.11", "8, 64": "1.05", "4, 2048": "3.03"}},
    weight=2,
    procedure="We divide all bytes carried by the bytes of the demand, as section 5.4 defines the tax, for both "
    "directions of circuits, both counts of all-reduce bytes and two structures of the model.",
)
def _tax(laboratory: Laboratory) -> Measurement:
    n, printed = laboratory.scope["servers"], laboratory.scope["printed, by degree and batch"]
    numbers = {tuple(map(int, key.split(", "))): PrintedNumber(text) for key, text in printed.items()}
    choices = Readings("circuits; paths; all-reduce bytes; DLRM")
    hops = {
        (name, k): {degree: mean_of_paths(n, circulants(n, degree)[name], k) for degree, _ in numbers}
        for name in circulants(n, 4)
        for k in (1, 2)
    }
    weights = dlrm_weights("5.4")
    for structure in tuple(weights)[:2]:
        for convention, factor in (("gradients", 1.0), ("what rings send", 2 * (n - 1) / n)):
            reduce = factor * n * NUMBER_BYTES * weights[structure]
            for name, k in hops:
                taxes = {}
                for degree, batch in numbers:
                    direct = float(parse(job(degree, batch)).point_to_point.sum())
                    taxes[degree, batch] = (reduce + hops[name, k][degree] * direct) / (reduce + direct)
                choices.add(
                    f"{name}; {k} shortest; {convention}; {structure}",
                    all(numbers[key].holds(tax) for key, tax in taxes.items()),
                    " ".join(f"{tax:.4g}" for tax in taxes.values()),
                )
    finder = {
        way: [round(slowdown(topology_finder(parse(job(*key)), forwarding=way)).tax, 3) for key in numbers]
        for way in ("coin-change", "shortest")
    }
    return choices.measurement(
        tuple(job(degree, batch) for degree, batch in numbers),
        "Rings over all interfaces at every batch size, all-reduce without forwarding. TopologyFinder gives one of "
        f"four interfaces to a matching at batch 2048; with its circuits the taxes are {finder['coin-change']} by "
        f"CoinChangeMod and {finder['shortest']} by shortest paths, over the bytes that rings send.",
        choices.agreement,
    )


def circulant_loads(n: int, steps: Sequence[int], order: Sequence[int] | None) -> dict[int, float]:
    """Load of a circuit of every step for one unit per pair; ties go to the first of ``order``, or evenly (None)."""
    distance = ring_permutations.hops(n, steps)
    count = np.zeros(n)  # shortest paths to every place
    count[0] = 1
    for m in np.argsort(distance, kind="stable")[1:]:
        count[m] = sum(count[(m - p) % n] for p in steps if distance[(m - p) % n] == distance[m] - 1)
    amount, load = np.ones(n), dict.fromkeys(steps, 0.0)
    amount[0] = 0.0
    for m in np.argsort(-distance, kind="stable")[:-1]:
        last = [p for p in (order or steps) if distance[(m - p) % n] == distance[m] - 1]
        for p in last[:1] if order else last:
            share = 1.0 if order else count[(m - p) % n] / count[m]
            load[p] += float(amount[m] * share)
            amount[(m - p) % n] += amount[m] * share
    return load


def random_loads(n: int, steps: Sequence[int], seed: int) -> np.ndarray:
    """Load of every circuit, ``(n, d)``, for one unit per pair; every hop is drawn among those of shortest paths."""
    draw, distance = np.random.default_rng(seed), ring_permutations.hops(n, steps)
    coins = np.asarray(steps)
    load = np.zeros((n, coins.size))
    left = np.repeat(np.arange(1, n)[None, :], n, axis=0).ravel()
    place = np.repeat(np.arange(n), n - 1)
    while left.size:
        fits = distance[(left[:, None] - coins) % n] == distance[left][:, None] - 1
        taken = np.argmax(np.where(fits, draw.random(fits.shape), -1.0), axis=1)
        np.add.at(load, (place, taken), 1.0)
        place, left = (place + coins[taken]) % n, (left - coins[taken]) % n
        place, left = place[left > 0], left[left > 0]
    return load


def _below(loads: Sequence[float] | np.ndarray) -> float:
    """Relative difference of the smallest load from the largest [%]."""
    values = np.asarray(loads)
    return 100 * float(1 - values.min() / values.max())


def _imbalance(laboratory: Laboratory) -> Measurement:
    n, degree, batch = (laboratory.scope[name] for name in ("servers", "degree", "batch"))
    number = PrintedNumber(laboratory.scope["printed [%]"])
    choices = Readings("circuits; routing")
    for name, steps in circulants(n, degree).items():
        orders = {
            "CoinChangeMod, smallest coin first": sorted(steps),
            "largest coin first": sorted(steps)[::-1],
            "even split over all shortest paths": None,
        }
        values = {way: _below(list(circulant_loads(n, steps, order).values())) for way, order in orders.items()}
        for way, value in values.items():
            choices.add(f"{name}; {way}", number.holds(value), round(value, 1))
        drawn = [_below(random_loads(n, steps, seed)) for seed in laboratory.seeds(SEEDS)]
        low, high = min(drawn), max(drawn)
        choices.add(
            f"{name}; ties at random, 8 seeds",
            low <= number.ends[1] and high >= number.ends[0],
            f"{low:.1f} to {high:.1f}",
        )
        least, most = min(values.values()), max(values.values())
        choices.add(
            f"{name}; some split of the ties, between these",
            least <= number.value <= most,
            f"{least:.1f} to {most:.1f}",
        )
    for k in (2, 4):
        value = _below(point_to_point_loads(topology_finder(parse(job(degree, batch)), paths=k)))
        choices.add(
            f"circuits in one direction; {k} shortest paths, ties by number", number.holds(value), round(value, 1)
        )
    return choices.measurement(
        (job(degree, batch),),
        "All routes tried are shortest or nearly so. Which of several shortest paths carries the traffic decides, and "
        "the paper states no rule for ties.",
        choices.agreement,
    )


for degree, printed in ((4, "39"), (8, "59")):
    CLAIMS.stated(
        f"imbalance-d{degree}",
        "section 5.5, figure 15a",
        f"With 128 servers, all-to-all traffic, batch 128 and d = {degree} the link with the least traffic carries "
        f"{printed} % less than the link with the most",
        int(printed),
        "rounds to the printed digits",
        scope={"servers": 128, "degree": degree, "batch": 128, "printed [%]": printed},
        procedure=_MOSTLY + "compare the loads of the circuits.",
    )(_imbalance)


@CLAIMS.stated(
    "optimal-alpha",
    "section 5.5",
    "With optimal routing the slow-down alpha of Eq. (1) is the average path length",
    "alpha / mean hops = 1",
    "1e-6",
    scope={"servers": [8, 12, 16, 24, 32], "degrees": [2, 3, 4]},
    weight=2,
    procedure="We minimise the largest load by a linear program with a proof of optimality.",
)
def _optimal_alpha(laboratory: Laboratory) -> Measurement:
    shortest, taken, ratios = [], [], []
    sizes, degrees = laboratory.scope["servers"], laboratory.scope["degrees"]
    for n in sizes:
        for degree in degrees:
            spec = f"servers:n={n},degree={degree},traffic=dlrm,section=5.4"
            record = laboratory.proven("topoopt.routing", spec, traffic="point-to-point")
            pool = parse(spec)
            alpha = record["metrics"]["max_load"] * n * degree / float(pool.point_to_point.sum())
            hops, routed = (
                ring_permutations.mean_hops(n, ring_permutations.selected(n, degree)),
                record["metrics"]["bandwidth_tax"],
            )
            ratios.append(alpha / hops)
            case = f"n={n}, d={degree}: least alpha {alpha:.4g}, shortest paths {hops:.4g}, routes taken {routed:.4g}"
            if alpha > hops * (1 + 1e-6):
                shortest.append(case)
            if alpha > routed * (1 + 1e-6):
                taken.append(case)
    choices = Readings("average path length")
    choices.add("of shortest paths", not shortest, f"alpha is larger in {len(shortest)} of {len(ratios)}")
    choices.add(
        "of the routes that the optimal routing takes", not taken, f"alpha is larger in {len(taken)} of {len(ratios)}"
    )
    first = (shortest or taken or [""])[0]
    return choices.measurement(
        (f"DLRM's all-to-all, n in {sizes}, d in {degrees}",),
        "The smallest maximum load is proven by arc lengths. With shortest paths alone some ring is used more than "
        f"others, so the optimal routing takes longer ones; then all circuits are equally loaded. Smallest: "
        f"{first}.",
        choices.agreement,
        count=len(ratios),
        violations=len(shortest),
        tightness=spread(ratios),
        witness=first or None,
    )


@CLAIMS.stated(
    "parallel-links",
    "section 4.3",
    "Choosing circuits by demand alone creates parallel circuits and long paths for model-parallel traffic",
    "less bandwidth tax and fewer hops with TopologyFinder",
    scope={"degree": 4, "batch": 128},
    procedure="We compare TopologyFinder with circuits by the highest remaining demand (Algorithm 5).",
)
def _parallel_links(laboratory: Laboratory) -> Measurement:
    pool = parse(job(laboratory.scope["degree"], laboratory.scope["batch"]))
    finder, greedy = topology_finder(pool), ocs_reconfig(pool)
    taxes = {"TopologyFinder": finder.bandwidth_tax, "demand alone": greedy.bandwidth_tax}
    parallel = len(greedy.circuits) - len(np.unique(greedy.circuits, axis=0))
    hops = [float(design.topology.hops.sum()) / (128 * 127) for design in (finder, greedy)]
    return Measurement(
        {"bandwidth tax": taxes, "mean hops": hops, "parallel circuits": parallel},
        verdict_if(taxes["TopologyFinder"] < taxes["demand alone"] and hops[0] < hops[1] and parallel > 0),
        (pool.spec,),
        f"Mean hops {hops[0]:.2f} with TopologyFinder and {hops[1]:.2f} by demand alone, where {parallel} of 512 "
        "circuits are parallel.",
    )


@dataclass(frozen=True)
class Prices:
    """One row of Table 2 [$]."""

    transceiver: float
    nic: float
    switch_port: float
    panel_port: float = 100.0
    ocs_port: float = 520.0
    selector: float = 25.0


#: Table 2 by link bandwidth [Gb/s].
TABLE_2 = {
    10: Prices(20, 185, 94),
    25: Prices(39, 185, 144),
    40: Prices(39, 354, 144),
    100: Prices(99, 678, 187),
    200: Prices(198, 815, 374),
}


def interface_cost(architecture: str, bandwidth: int, *, nics: bool = True) -> float:
    """Price of one server interface and its share of the network [$].

    Parameters
    ----------
    architecture
        One of :data:`ARCHITECTURES`.
    bandwidth
        Of a link [Gb/s], a row of :data:`TABLE_2`.
    nics
        Whether NICs count as part of the interconnect.
    """
    price = TABLE_2[bandwidth]
    parts = {
        "topoopt": price.transceiver + price.selector + 2 * (price.panel_port + FIBRE),
        "ocs": price.transceiver + price.ocs_port + FIBRE,
        "ideal-switch": 6 * price.transceiver + 5 * price.switch_port + 3 * FIBRE,
        "oversub-fat-tree": 5 * price.transceiver + 4 * price.switch_port + 2.5 * FIBRE,  # half of the ToRs' uplinks
        "expander": price.transceiver + FIBRE / 2,
    }
    return parts[architecture] + (price.nic if nics else 0.0)


# cost -----------------------------------------------------------------------------------------------------------


def priced(architecture: str, bandwidth: int, degree: int, nics: str, fibres: int) -> float:
    """Price of a server interface [$] under a rule for NICs, with one or two fibres per interface of patch panels."""
    nic = TABLE_2[bandwidth].nic
    bare = interface_cost(architecture, bandwidth, nics=False)
    if architecture == "topoopt":
        bare -= (2 - fibres) * FIBRE
    if nics == NIC_RULES[2] and architecture in {"ideal-switch", "oversub-fat-tree"}:
        return bare + nic / degree
    return bare + nic * {NIC_RULES[0]: 1.0, NIC_RULES[3]: 0.0}.get(nics, 0.5)


def _cost_ratio(architecture: str) -> Callable[[Laboratory], Measurement]:
    def measure(laboratory: Laboratory) -> Measurement:
        number, panels = PrintedNumber(laboratory.scope["printed"]), laboratory.scope["panels (degree, Gb/s)"]
        choices = Readings("NICs; fibres of an interface with two patch panels")
        for nics, fibres in product(NIC_RULES, (2, 1)):
            mean = float(
                np.mean(
                    [
                        priced(architecture, bandwidth, degree, nics, fibres)
                        / priced("topoopt", bandwidth, degree, nics, fibres)
                        for degree, bandwidth in panels
                    ]
                )
            )
            choices.add(f"{nics}; {fibres}", number.holds(mean), round(mean, 3))
        return choices.measurement(
            ("figure 10",),
            "Mean of both panels of the figure, from Table 2 and appendix G, with fibres of mean length. The ratio "
            "depends on the price per interface of a NIC with two ports, and on whether the look-ahead port has its "
            "own fibre.",
            choices.agreement,
        )

    return measure


CLAIMS.stated(
    "cost-ideal",
    "section 1; section 5.2, figure 10",
    "An ideal switch costs 3.2 times as much as TopoOpt on average",
    3.2,
    PrintedNumber("3.2").tolerance,
    scope={"printed": "3.2", "panels (degree, Gb/s)": _PANELS},
    weight=1,
    procedure="We add up the components of appendix G at the prices of Table 2, under every rule for NICs.",
)(_cost_ratio("ideal-switch"))


CLAIMS.stated(
    "cost-ocs",
    "section 5.2, figure 10",
    "TopoOpt with OCSs costs 1.33 times as much as with patch panels on average",
    1.33,
    PrintedNumber("1.33").tolerance,
    scope={"printed": "1.33", "panels (degree, Gb/s)": _PANELS},
    weight=2,
    procedure="We add up the components of appendix G at the prices of Table 2, under every rule for NICs.",
)(_cost_ratio("ocs"))


def equal_cost_bandwidth(degree: int, bandwidth: int, nics: str, fibres: int) -> float:
    """B' of section 5.1 [Gb/s]: a fat-tree with one NIC and one link of ``degree`` B' per server costs as much.

    Prices between two bandwidths of Table 2 are interpolated; above 200 Gb/s they grow in proportion, as the table's
    footnote has two ports of 100 Gb/s for 200. ``nics`` and ``fibres`` as of :func:`priced`.
    """
    rule = NIC_RULES[3] if nics == NIC_RULES[3] else NIC_RULES[0]
    rates = sorted(TABLE_2)
    costs = [priced("ideal-switch", rate, 1, rule, fibres) for rate in rates]
    ours = degree * priced("topoopt", bandwidth, degree, nics, fibres)
    if ours > costs[-1]:
        return rates[-1] * ours / costs[-1] / degree
    return float(np.interp(ours, costs, rates)) / degree


@CLAIMS.stated(
    "equal-cost",
    "section 5.1; section 5.2, figure 10",
    "A fat-tree whose cost is similar to TopoOpt's has links of d B' with B' lower than B",
    "B / B' > 1",
    scope={"degrees": [4, 8], "links [Gb/s]": [10, 25, 40, 100, 200]},
    procedure="We solve for B' with the components of appendix G at the prices of Table 2, under every rule for NICs.",
)
def _equal_cost(laboratory: Laboratory) -> Measurement:
    degrees, links = laboratory.scope["degrees"], laboratory.scope["links [Gb/s]"]
    choices = Readings("link; NICs; fibres of an interface with two patch panels")
    ratios: dict[int, list[float]] = {link: [] for link in links}
    for link, nics, fibres in product(links, NIC_RULES, (2, 1)):
        slower = [link / equal_cost_bandwidth(degree, link, nics, fibres) for degree in degrees]
        ratios[link] += slower
        choices.add(f"{link} Gb/s; {nics}; {fibres}", min(slower) > 1, " and ".join(f"{ratio:.2f}" for ratio in slower))
    return choices.measurement(
        ("figures 10 and 11",),
        f"Measured: B/B' at d = {' and '.join(map(str, degrees))}. The ports of a patch panel cost the same at any "
        "bandwidth, those of a switch do not; with slow links a fat-tree of equal cost has as much bandwidth or more: "
        + ", ".join(f"{min(group):.2f} to {max(group):.2f} at {link} Gb/s" for link, group in ratios.items())
        + ". The paper does not state B'.",
        choices.agreement,
    )


@CLAIMS.stated(
    "cost-expander",
    "section 5.2, figure 10",
    "The expander is the cheapest of the networks compared",
    "expander",
    scope={"Gb/s": [100, 200]},
    procedure="We add up the components of appendix G at the prices of Table 2.",
)
def _cheapest(laboratory: Laboratory) -> Measurement:
    bandwidths = laboratory.scope["Gb/s"]
    least = {min((interface_cost(a, b), a) for a in ARCHITECTURES)[1] for b in bandwidths}
    return Measurement(
        sorted(least),
        verdict_if(least == {"expander"}),
        ("figure 10",),
        f"Cheapest of {', '.join(ARCHITECTURES)} at every bandwidth; it needs neither switches nor optical ports.",
    )


def fat_tree_ports(radix: int) -> tuple[int, int, int]:
    """Servers, switches and switch ports of a three-tier fat-tree of switches with ``radix`` ports, an even number."""
    switches = 5 * radix**2 // 4
    return radix**3 // 4, switches, switches * radix


@CLAIMS.stated(
    "fat-tree-ports",
    "appendix G",
    "A k = 8 fat-tree has 80 switches with 64 ports, or 640 switch ports in total",
    640,
    scope={"k": 8, "switches": 80, "ports of a switch": 64, "ports in total": 640},
    procedure="We count switches and ports.",
)
def _fat_tree(laboratory: Laboratory) -> Measurement:
    radix, switches, ports, total = (
        laboratory.scope[name] for name in ("k", "switches", "ports of a switch", "ports in total")
    )
    servers, needed, in_all = fat_tree_ports(radix)
    agree = switches * ports == total
    return Measurement(
        {"switches": needed, "ports of a switch": in_all // needed, "ports in total": in_all},
        verdict_if(agree and (needed, in_all) == (switches, total), Verdict.SELF_CONTRADICTED),
        (f"k = {radix}",),
        f"A k = {radix} fat-tree has {servers} servers and {needed} switches of {radix} ports, {in_all} in total: the "
        "number of switches and the total are right. 64 ports per switch are a slip without effect on the costs.",
        witness=None if agree else f"{switches} switches of {ports} ports have {switches * ports} ports, not {total}",
    )


CLAIMS.untestable(
    "discounts",
    "section 5.2",
    "At 4,394 servers and discounted prices the ideal switch costs 3.6 instead of 3.0 times as much",
    [3.0, 3.6],
    reason="The discounts of the components come from another paper; only the 50 % for patch panels are stated. "
    "A test needs the discounted prices and the link bandwidth.",
)


CLAIMS.untestable(
    "cost-sip-ml",
    "section 5.2, figure 10",
    "SiP-ML is the most expensive of the networks compared",
    "SiP-ML",
    reason="Table 2 has no prices of silicon photonics; a test needs them.",
)

"""Claims of the TopoOpt paper about the cost of networks, from the prices of Table 2 and appendix G."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from opticoll.analysis.ledger.claim import Measurement, Measures
from opticoll.analysis.ledger.readings import Readings
from opticoll.analysis.ledger.verdict import verdict_if

if TYPE_CHECKING:
    from collections.abc import Callable

    from opticoll.analysis.ledger.claim import Laboratory


#: Rules for NICs: appendix G counts two NICs of two ports as one of four, and one NIC per host of a fat-tree.
NIC_RULES = (
    "one NIC per interface",
    "one NIC per two interfaces",
    "one NIC per two interfaces, per host of the ideal switch",
    "NICs not counted",
)
FIBRES = "fibres of an interface with two patch panels"
MEASURES = Measures("topoopt")
#: Mean price of a fibre [$].
FIBRE = 0.30 * 500.0
ARCHITECTURES = ("topoopt", "ocs", "ideal-switch", "oversub-fat-tree", "expander")


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


def interconnect_cost(architecture: str, servers: int, degree: int, bandwidth: int) -> float:
    """Price of the whole interconnect [$], as :func:`interface_cost`."""
    return servers * degree * interface_cost(architecture, bandwidth)


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
        number, panels = laboratory.number(laboratory.scope["printed"]), laboratory.scope["panels (degree, Gb/s)"]
        choices = Readings(f"NICs; {FIBRES}")
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


MEASURES.of("cost-ideal")(_cost_ratio("ideal-switch"))


MEASURES.of("cost-ocs")(_cost_ratio("ocs"))


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


@MEASURES.of("equal-cost")
def _equal_cost(laboratory: Laboratory) -> Measurement:
    degrees, links = laboratory.scope.values("degrees", "links [Gb/s]")
    choices = Readings(f"link; NICs; {FIBRES}")
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


@MEASURES.of("cost-expander")
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


@MEASURES.of("fat-tree-ports")
def _fat_tree(laboratory: Laboratory) -> Measurement:
    radix, switches, ports, total = laboratory.scope.values("k", "switches", "ports of a switch", "ports in total")
    servers, needed, in_all = fat_tree_ports(radix)
    agree = switches * ports == total
    return Measurement(
        {"switches": needed, "ports of a switch": in_all // needed, "ports in total": in_all},
        verdict_if(agree and (needed, in_all) == (switches, total)),
        (f"k = {radix}",),
        f"A misprint: a k = {radix} fat-tree has {servers} servers and {needed} switches of {radix} ports, {in_all} "
        "in total: the number of switches and the total are right. 64 ports per switch are a slip without effect on "
        "the costs.",
        value={"ports of a switch": in_all // needed},
        saved_by=f"{in_all // needed} ports of a switch",
        witness=None if agree else f"{switches} switches of {ports} ports have {switches * ports} ports, not {total}",
    )

r"""What interconnects cost: the components of each architecture and their prices.

Source  TopoOpt, section 5.2, appendix G, Table 2, figure 10

Counted for n servers of degree d (appendix G)
    TopoOpt        per interface a NIC, a transceiver, a 1x2 switch and two panel ports with a fibre each (look-ahead)
    OCS            per interface a NIC, a transceiver, a switch port and a fibre (OCS-reconfig: one flat layer)
    Ideal Switch   d full-bisection fat-trees: per interface a NIC, 5 switch ports, a transceiver for each of these six,
                   3 fibres (k = 8: 128 servers, 80 switches, 640 ports)
    Expander       per interface a NIC and a transceiver, and a fibre for every two

Fibres cost 0.30 $ a metre and are 0 to 1000 m long, evenly distributed: 150 $ in the mean, which is taken here.
"""

from __future__ import annotations

from dataclasses import dataclass

from opticoll.formulations.model import NotApplicable

#: Mean price of a fibre [$].
FIBRE = 0.30 * 500.0


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
ARCHITECTURES = ("topoopt", "ocs", "ideal-switch", "expander")


def fat_tree_ports(radix: int) -> tuple[int, int, int]:
    """Servers, switches and switch ports of a three-tier fat-tree of switches with ``radix`` ports.

    Raises
    ------
    NotApplicable
        For an odd or no radix.
    """
    if radix < 2 or radix % 2:
        msg = f"fat-tree: switches of {radix} ports; take an even number"
        raise NotApplicable(msg)
    switches = 5 * radix**2 // 4
    return radix**3 // 4, switches, switches * radix


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

    Raises
    ------
    NotApplicable
        For an architecture or a bandwidth without prices.
    """
    if bandwidth not in TABLE_2 or architecture not in ARCHITECTURES:
        known = ", ".join(map(str, TABLE_2))
        msg = f"cost: no prices of {architecture} at {bandwidth} Gb/s; there are {', '.join(ARCHITECTURES)} at {known}"
        raise NotApplicable(msg)
    price = TABLE_2[bandwidth]
    parts = {
        "topoopt": price.transceiver + price.selector + 2 * (price.panel_port + FIBRE),
        "ocs": price.transceiver + price.ocs_port + FIBRE,
        "ideal-switch": 6 * price.transceiver + 5 * price.switch_port + 3 * FIBRE,
        "expander": price.transceiver + FIBRE / 2,
    }
    return parts[architecture] + (price.nic if nics else 0.0)


def interconnect_cost(architecture: str, servers: int, degree: int, bandwidth: int, *, nics: bool = True) -> float:
    """Price of the whole interconnect [$], as :func:`interface_cost`."""
    return servers * degree * interface_cost(architecture, bandwidth, nics=nics)

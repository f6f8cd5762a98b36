"""Optical lines and rings whose fibres carry many wavelengths (OpTree, TeraRack)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from instances.links import both_ways
from instances.spec import check_positive
from instances.topology import Topology, check_size


@dataclass(frozen=True, eq=False, repr=False, init=False)
class WdmLine(Topology):
    """Nodes ``0 .. n-1`` in a row, a fibre each way between neighbours.

    Parameters
    ----------
    n
        Number of nodes, at least 2.
    wavelengths
        Wavelengths on every fibre: transfers that an arc carries at one time.

    The capacity of every arc is 1, a whole fibre; formulations read ``wavelengths``.

    Raises
    ------
    BadInput
        For too few nodes or wavelengths, or more nodes than a topology may have.
    """

    wavelengths: int = field(default=1)

    def __init__(self, n: int, wavelengths: int) -> None:
        check_positive(n, "n", "wdm-line", least=2)
        check_positive(wavelengths, "wavelengths", "wdm-line")
        check_size(n, 2 * (n - 1), "wdm-line")
        nodes = np.arange(n - 1)
        super().__init__(n, *both_ways(nodes, nodes + 1), spec="wdm-line")
        object.__setattr__(self, "wavelengths", int(wavelengths))


@dataclass(frozen=True, eq=False, repr=False, init=False)
class WdmRing(Topology):
    """Nodes ``0 .. n-1`` in a circle, a fibre each way between neighbours.

    Parameters
    ----------
    n
        Number of nodes, at least 3.
    wavelengths
        Wavelengths on every fibre: transfers that an arc carries at one time.

    The capacity of every arc is 1, a whole fibre; formulations read ``wavelengths``.

    Raises
    ------
    BadInput
        For too few nodes or wavelengths, or more nodes than a topology may have.
    """

    wavelengths: int = field(default=1)

    def __init__(self, n: int, wavelengths: int) -> None:
        check_positive(n, "n", "wdm-ring", least=3)
        check_positive(wavelengths, "wavelengths", "wdm-ring")
        check_size(n, 2 * n, "wdm-ring")
        nodes = np.arange(n)
        super().__init__(n, *both_ways(nodes, (nodes + 1) % n), spec="wdm-ring")
        object.__setattr__(self, "wavelengths", int(wavelengths))

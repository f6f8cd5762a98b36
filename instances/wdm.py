"""Optical lines and rings whose fibres carry many wavelengths (OpTree, TeraRack)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from instances.links import both_ways
from instances.spec import check_positive
from instances.topology import Topology, check_size

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False, repr=False, init=False)
class WdmFibres(Topology):
    """Nodes ``0 .. n-1`` in a row or a circle, a fibre each way between neighbours: what lines and rings share.

    Parameters
    ----------
    n
        Number of nodes, at least 2 (line) or 3 (ring).
    wavelengths
        Wavelengths on every fibre: transfers that an arc carries at one time.

    The capacity of every arc is 1, a whole fibre; formulations read ``wavelengths``.

    Raises
    ------
    BadInput
        For too few nodes or wavelengths, or more nodes than a topology may have.
    """

    wavelengths: int = field(default=1)

    #: Name of the family, least number of nodes, and whether the last node neighbours the first.
    family: ClassVar[str]
    least: ClassVar[int]
    circular: ClassVar[bool]

    def __init__(self, n: int, wavelengths: int) -> None:
        check_positive(n, "n", self.family, least=self.least)
        check_positive(wavelengths, "wavelengths", self.family)
        fibres = n if self.circular else n - 1
        check_size(n, 2 * fibres, self.family)
        nodes = np.arange(fibres)
        super().__init__(n, *both_ways(nodes, (nodes + 1) % n), spec=self.family)
        object.__setattr__(self, "wavelengths", int(wavelengths))

    @property
    def intact(self) -> bool:
        """Whether nodes and fibres are those of the family: none removed, added, or scaled, every node a terminal."""
        whole = type(self)(self.n, self.wavelengths) if self.n >= self.least else None
        return whole is not None and whole.hash == self.hash

    def arcs_onward(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Arc ``i -> i + 1`` and arc ``i + 1 -> i`` for every node i that has a next one, ``(fibres,)`` each.

        The next node of the last one on a ring is node 0. Only for ``intact`` ones.
        """
        nodes = np.arange(self.n if self.circular else self.n - 1)
        key = self.tail * self.n + self.head  # ascending: canonical arc order
        after = (nodes + 1) % self.n
        return np.searchsorted(key, nodes * self.n + after), np.searchsorted(key, after * self.n + nodes)


@dataclass(frozen=True, eq=False, repr=False, init=False)
class WdmLine(WdmFibres):
    """Nodes in a row."""

    family: ClassVar[str] = "wdm-line"
    least: ClassVar[int] = 2
    circular: ClassVar[bool] = False


@dataclass(frozen=True, eq=False, repr=False, init=False)
class WdmRing(WdmFibres):
    """Nodes in a circle."""

    family: ClassVar[str] = "wdm-ring"
    least: ClassVar[int] = 3
    circular: ClassVar[bool] = True

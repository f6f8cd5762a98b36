"""Photonic meshes, lines and rings with their lasers, waveguides and wavelengths."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from opticoll.arguments import whole_number
from opticoll.instances.spec import Dimensions
from opticoll.instances.topology import Topology, both_ways, check_size

if TYPE_CHECKING:
    from opticoll.instances.topology import F64, I64, Mask
    from opticoll.types import Json


def _wafers(n: int, columns: int, wafer_columns: int) -> I64:
    """The wafer of every tile of a mesh with so many columns, of which each wafer has ``wafer_columns``, ``(n,)``."""
    return np.arange(n) % columns // wafer_columns


@dataclass(frozen=True)
class WaferFibres:
    """Fibres between wafers in a row, where they are not as many as the waveguides of an arc on a wafer.

    Parameters
    ----------
    number
        Circuits of the same wavelength that an arc between two wafers can carry at a time.
    columns, wafer_columns
        Columns of the mesh of all wafers, and of one wafer.
    """

    number: int
    columns: int
    wafer_columns: int

    def joins(self, topology: Topology) -> Mask:
        """Whether every arc is between two wafers, ``(m,)``."""
        wafer = _wafers(topology.n, self.columns, self.wafer_columns)
        return np.asarray(wafer[topology.tail] != wafer[topology.head])


@dataclass(frozen=True, eq=False, repr=False, init=False)
class LightpathMesh(Topology):
    """A rectangular mesh of tiles whose arcs are bundles of waveguides, or of fibres between wafers in a row.

    Attributes
    ----------
    shape
        Rows and columns of all wafers together; tile ``(i, j)`` is vertex ``i * columns + j``.
    lasers
        Number of wavelengths that a tile can send, and that it can receive, at a time.
    waveguides
        Waveguides of every arc: the number of circuits of the *same* wavelength that it can carry at a time.
    wafers
        Number of wafers; tile ``(i, j)`` is on wafer ``j // (columns / wafers)``.
    fibres
        The same number for the arcs between wafers; ``waveguides`` if there is only one wafer.

    The capacity of an arc is 1, a bundle of waveguides, and ``fibres / waveguides`` between wafers; formulations read
    ``waveguides``, ``fibres`` and ``lasers``.

    Raises
    ------
    BadInput
        For fewer than one laser, waveguide, wafer or fibre, and as in
        :class:`~opticoll.instances.topology.Topology`.
    """

    shape: Dimensions = field(default=Dimensions())
    lasers: int = field(default=16)
    waveguides: int = field(default=1)
    wafers: int = field(default=1)
    fibres: int = field(default=1)

    def __init__(
        self,
        mesh: Topology,
        shape: Dimensions,
        lasers: int,
        waveguides: int,
        wafers: int = 1,
        fibres: int | None = None,
    ) -> None:
        fibres = waveguides if fibres is None else fibres
        for name, number in (("lasers", lasers), ("waveguides", waveguides), ("wafers", wafers), ("fibres", fibres)):
            whole_number(number, f"lightpath: {name}", 1)
        super().__init__(mesh.n, mesh.tail, mesh.head, mesh.capacity, spec="lightpath", labels=mesh.labels)
        self._put(shape=Dimensions(shape), lasers=int(lasers), waveguides=int(waveguides))
        self._put(wafers=int(wafers), fibres=int(fibres))

    @property
    def scarce_fibres(self) -> WaferFibres | None:
        """The arcs between wafers and their fibres; None if every arc carries as many circuits as any other."""
        columns = int(self.shape[1])
        if self.wafers == 1 or self.fibres == self.waveguides:
            return None
        return WaferFibres(self.fibres, columns, columns // self.wafers)

    @property
    def wafer_of(self) -> I64:
        """The wafer of every tile, ``(n,)``."""
        columns = int(self.shape[1])
        return _wafers(self.n, columns, columns // self.wafers)

    def extras(self) -> dict[str, Json]:
        """Shape, lasers and waveguides, and for several wafers their number and their fibres.

        A single wafer has the hash that it always had.
        """
        extras = super().extras()
        if self.wafers == 1:
            del extras["wafers"], extras["fibres"]
        return extras

    @cached_property
    def intact(self) -> bool:
        """Whether the arcs are exactly those between neighbouring tiles, one each way."""
        rows, columns = self.shape
        (row, column), (to_row, to_column) = (np.divmod(ends, columns) for ends in (self.tail, self.head))
        neighbours = np.abs(row - to_row) + np.abs(column - to_column) == 1
        return bool(neighbours.all()) and self.arcs == 2 * (rows * (columns - 1) + columns * (rows - 1))

    @cached_property
    def hops(self) -> F64:
        """Hop distances as for every topology; Manhattan distances of the tiles if the mesh is intact."""
        if not self.intact:
            return super().hops
        row, column = np.divmod(np.arange(self.n), self.shape[1])
        hops = np.abs(row[self.terminals, None] - row) + np.abs(column[self.terminals, None] - column)
        distances = hops.astype(np.float64)
        distances.setflags(write=False)
        return distances


@dataclass(frozen=True, eq=False, repr=False, init=False)
class WdmFibres(Topology):
    """Nodes ``0 .. n-1`` in a line or a ring, with one or more fibres each way between neighbours.

    Parameters
    ----------
    n
        Number of nodes, at least 2 (line) or 3 (ring).
    wavelengths
        Wavelengths of every fibre: the number of transfers that it can carry at a time.
    fibres
        Fibres from a node to each neighbour.

    The capacity of every arc is 1, all fibres together; formulations read ``channels``.

    Raises
    ------
    BadInput
        For too few nodes, wavelengths or fibres, or too many nodes.
    """

    wavelengths: int = field(default=1)
    fibres: int = field(default=1)

    #: Name of the family, minimum number of nodes, and whether the last node is adjacent to the first.
    named: ClassVar[str]
    least: ClassVar[int]
    circular: ClassVar[bool]

    def __init__(self, n: int, wavelengths: int, fibres: int = 1) -> None:
        whole_number(n, f"{self.named}: n", self.least)
        whole_number(wavelengths, f"{self.named}: wavelengths", 1)
        whole_number(fibres, f"{self.named}: fibres", 1)
        segments = n if self.circular else n - 1
        check_size(n, 2 * segments, self.named)
        nodes = np.arange(segments)
        super().__init__(n, *both_ways(nodes, (nodes + 1) % n), spec=self.named)
        self._put(wavelengths=int(wavelengths), fibres=int(fibres))

    @property
    def channels(self) -> int:
        """Transfers that an arc can carry at a time: ``fibres`` times ``wavelengths``.

        Channel c is wavelength ``c mod wavelengths`` of fibre ``c // wavelengths``.
        """
        return self.fibres * self.wavelengths

    def extras(self) -> dict[str, Json]:
        """Wavelengths, and the number of fibres if it is not 1: single fibres have the hashes that they always had."""
        extras = super().extras()
        if self.fibres == 1:
            del extras["fibres"]
        return extras

    @property
    def intact(self) -> bool:
        """Whether the topology is the one that the family generates for ``n``, ``wavelengths`` and ``fibres``."""
        whole = type(self)(self.n, self.wavelengths, self.fibres) if self.n >= self.least else None
        return whole is not None and whole.hash == self.hash

    def arcs_onward(self) -> tuple[I64, I64]:
        """Arcs ``i -> i + 1`` and arcs ``i + 1 -> i`` for every node i with a successor, ``(segments,)`` each.

        On a ring, node 0 succeeds the last node. Requires ``intact``.
        """
        nodes = np.arange(self.n if self.circular else self.n - 1)
        key = self.tail * self.n + self.head  # ascending: canonical arc order
        after = (nodes + 1) % self.n
        return np.searchsorted(key, nodes * self.n + after), np.searchsorted(key, after * self.n + nodes)


@dataclass(frozen=True, eq=False, repr=False, init=False)
class WdmLine(WdmFibres):
    """Nodes in a line."""

    named: ClassVar[str] = "wdm-line"
    least: ClassVar[int] = 2
    circular: ClassVar[bool] = False


@dataclass(frozen=True, eq=False, repr=False, init=False)
class WdmRing(WdmFibres):
    """Nodes in a ring."""

    named: ClassVar[str] = "wdm-ring"
    least: ClassVar[int] = 3
    circular: ClassVar[bool] = True

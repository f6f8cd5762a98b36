"""LIGHTPATH: a mesh of server tiles joined by waveguides, each tile with its own lasers (LuMorph)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from instances.spec import Dimensions, check_positive
from instances.topology import Topology

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False, repr=False, init=False)
class LightpathMesh(Topology):
    """A rectangular mesh of tiles whose arcs are bundles of waveguides.

    Attributes
    ----------
    shape
        Rows and columns; tile ``(i, j)`` is vertex ``i * columns + j``.
    lasers
        Wavelengths that each tile sends, and photodiodes with which it receives, at one time.
    waveguides
        Waveguides on every arc: circuits of *one* wavelength that the arc holds at one time.

    The capacity of every arc is 1, a bundle of waveguides; formulations read ``waveguides`` and ``lasers``.

    Raises
    ------
    BadInput
        For fewer than one laser or waveguide, and for what :class:`~instances.topology.Topology` refuses.
    """

    shape: Dimensions = field(default=Dimensions())
    lasers: int = field(default=16)
    waveguides: int = field(default=1)

    def __init__(self, mesh: Topology, shape: Dimensions, lasers: int, waveguides: int) -> None:
        check_positive(lasers, "lasers", "lightpath")
        check_positive(waveguides, "waveguides", "lightpath")
        super().__init__(mesh.n, mesh.tail, mesh.head, mesh.capacity, spec="lightpath", labels=mesh.labels)
        object.__setattr__(self, "shape", Dimensions(shape))
        object.__setattr__(self, "lasers", int(lasers))
        object.__setattr__(self, "waveguides", int(waveguides))

    @cached_property
    def intact(self) -> bool:
        """Whether every pair of neighbouring tiles, and no other, is joined both ways."""
        rows, columns = self.shape
        (row, column), (to_row, to_column) = (np.divmod(ends, columns) for ends in (self.tail, self.head))
        neighbours = np.abs(row - to_row) + np.abs(column - to_column) == 1
        return bool(neighbours.all()) and self.arcs == 2 * (rows * (columns - 1) + columns * (rows - 1))

    @cached_property
    def hops(self) -> NDArray[np.float64]:
        """Fewest arcs between terminals and vertices, as for every topology; rows and columns apart where intact."""
        if not self.intact:
            return super().hops
        row, column = np.divmod(np.arange(self.n), self.shape[1])
        apart = np.abs(row[self.terminals, None] - row) + np.abs(column[self.terminals, None] - column)
        apart = apart.astype(np.float64)
        apart.setflags(write=False)
        return apart

"""Machines (DGX-1, optical lines and rings) and topologies from files."""

from __future__ import annotations

import numpy as np

from opticoll.instances.digraph import Topology, both_ways
from opticoll.instances.photonic import WdmLine, WdmRing
from opticoll.instances.readers.files import read_topology
from opticoll.instances.spec import family

#: NVLinks between the eight V100 of a DGX-1: pairs joined by one link, and by two.
_SINGLE = ((0, 1), (0, 2), (1, 3), (2, 6), (3, 7), (4, 5), (4, 6), (5, 7))
_DOUBLE = ((0, 3), (0, 4), (1, 2), (1, 5), (2, 3), (4, 7), (5, 6), (6, 7))


@family("dgx1", example="dgx1", source="NVIDIA DGX-1 With Tesla V100 System Architecture, WP-08437-002, 2017")
def dgx1() -> Topology:
    r"""NVIDIA DGX-1V: eight V100 GPUs in a hybrid cube-mesh of NVLinks.

    Two quads 0..3 and 4..7, each complete, joined by :math:`i \leftrightarrow i + 4`. Each GPU has six
    NVLinks: two neighbours by two links (capacity 2), two by one (capacity 1). 32 arcs of total
    capacity 48 [NVLinks], degree 4, diameter 2.
    """
    u, v = np.array(_SINGLE + _DOUBLE).T
    return Topology(8, *both_ways(u, v, np.repeat([1.0, 2.0], 8)), spec="dgx1")


@family("wdm-line", example="wdm-line:n=16,wavelengths=2", source="OpTree, section II (optical interconnect)")
def wdm_line(n: int, wavelengths: int) -> WdmLine:
    """Optical line: a fibre each way between neighbours, each with the same wavelengths.

    Parameters
    ----------
    n
        Number of nodes, at least 2.
    wavelengths
        Wavelengths on every fibre, at least 1.

    Raises
    ------
    BadInput
        If a parameter is out of range.
    """
    return WdmLine(n, wavelengths)


@family(
    "wdm-ring",
    example="wdm-ring:n=1024,wavelengths=64",
    source="OpTree, section II (TeraRack, Khani et al., SIGCOMM 2021)",
)
def wdm_ring(n: int, wavelengths: int) -> WdmRing:
    """Optical ring: a fibre each way between neighbours, each with the same wavelengths.

    Parameters
    ----------
    n
        Number of nodes, at least 3.
    wavelengths
        Wavelengths on every fibre, at least 1.

    Raises
    ------
    BadInput
        If a parameter is out of range.
    """
    return WdmRing(n, wavelengths)


@family("file", example="file:PATH", source="formats: opticoll.instances.readers.files", rest=True)
def from_file(path: str) -> Topology:
    """Topology from an edge list, GraphML or JSON file.

    Parameters
    ----------
    path
        File; ``.graphml`` and ``.xml`` are read as GraphML, ``.json`` as JSON, any other suffix as an edge list.
        :mod:`opticoll.instances.readers.files` documents the formats.

    Raises
    ------
    BadFile
        If the file cannot be read, is too large, or does not describe a topology.
    """
    return read_topology(path)

"""Machines (DGX-1, optical lines and rings), and topologies and programs from files."""

from __future__ import annotations

import numpy as np

from opticoll.instances.digraph import Topology, both_ways, check_size
from opticoll.instances.matrix_program import MatrixProgram, read_program
from opticoll.instances.photonic import WdmLine, WdmRing
from opticoll.instances.readers.files import read_specified
from opticoll.instances.spec import check_positive, family

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


@family(
    "nvswitch",
    example="nvswitch:boxes=2,gpus=8",
    source="NVIDIA DGX H100 user guide (defaults: 450 GB/s of NVLink each way and a 400 Gb/s adapter for each GPU)",
)
def nvswitch(boxes: int, gpus: int = 8, inside: float = 450.0, outside: float = 50.0) -> Topology:
    """Boxes of GPUs behind an NVSwitch each, joined by one network switch.

    Every GPU has a link to the switch of its box and one to the network, in both directions. Switches hold no shards.

    Parameters
    ----------
    boxes
        Number of boxes, at least 1.
    gpus
        GPUs of a box, at least 2.
    inside, outside
        Capacity of the links of a GPU to the NVSwitch and to the network [GB/s].

    Raises
    ------
    BadInput
        If a parameter is out of range.
    """
    check_positive(boxes, "boxes", "nvswitch")
    check_positive(gpus, "gpus", "nvswitch", least=2)
    n = boxes * gpus
    check_size(n + boxes + 1, 4 * n, "nvswitch")
    ranks = np.arange(n)
    u, v = np.tile(ranks, 2), np.concatenate([n + ranks // gpus, np.full(n, n + boxes)])
    names = [f"gpu[{r // gpus},{r % gpus}]" for r in range(n)] + [f"switch[{b}]" for b in range(boxes)] + ["network"]
    kept = slice(0, n if boxes == 1 else 2 * n)
    return Topology(
        n + boxes + (boxes > 1), *both_ways(u[kept], v[kept], np.repeat([inside, outside], n)[kept]), spec="nvswitch",
        terminals=ranks, labels=tuple(names[: n + boxes + (boxes > 1)]), capacity_unit="GB/s",
    )  # fmt: skip


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
    """Topology from a file: edge list, GraphML, GML, JSON, DIMACS, SNDlib, NCCL, nvidia-smi, matrix.

    Parameters
    ----------
    path
        File; its suffix and contents select the format (:mod:`opticoll.instances.readers.files`). Options follow:
        ``PATH,capacity=NAME`` (attribute or column) or ``capacity=1``, ``directed=true|false``, ``first=1`` for
        vertices numbered from 1, ``ranks=PATTERN``, ``format=NAME`` and ``wiring=NAME``
        (:class:`opticoll.instances.readers.draft.ReadOptions`).

    Raises
    ------
    BadFile
        If the file cannot be read, is too large, or does not describe a topology.
    """
    return read_specified(path)


@family("mps", example="mps:PATH", source="formats: opticoll.instances.matrix_program", rest=True)
def from_matrix_file(path: str) -> MatrixProgram:
    """Linear or mixed-integer program from an MPS or LP file, also compressed (.mps.gz).

    Parameters
    ----------
    path
        File; its suffix selects the format.

    Raises
    ------
    BadFile
        If the file cannot be read, is too large, or holds no linear or mixed-integer program.
    """
    return read_program(path)

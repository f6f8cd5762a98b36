"""Topologies read from files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from instances.files import read_topology
from instances.spec import family

if TYPE_CHECKING:
    from instances.topology import Topology


@family("file", example="file:PATH", source="formats: instances.files", rest=True)
def from_file(path: str) -> Topology:
    """Topology from an edge list, GraphML or JSON file.

    Parameters
    ----------
    path
        File; ``.graphml`` and ``.xml`` are read as GraphML, ``.json`` as JSON, all else as an edge list.
        :mod:`instances.files` documents the formats.

    Raises
    ------
    BadFile
        If the file cannot be read, is too large, or describes no topology.
    """
    return read_topology(path)

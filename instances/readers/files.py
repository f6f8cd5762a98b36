"""Topologies and matrices in files of at most 64 MiB.

The suffix of the file selects one of three formats: ``.graphml`` or ``.xml``
(:mod:`opticoll.instances.readers.networkx_io`), ``.json`` (:mod:`opticoll.instances.readers.topology_json`), and edge
lists for every other suffix (:mod:`opticoll.instances.readers.edge_lists`). Self-loops carry no flow, so a file with
loops is refused unless it declares them. The hash of a topology depends on its content only, not on the name or format
of the file; machines (a LIGHTPATH mesh, a WDM ring) are written as plain topologies.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import BadFile
from opticoll.instances.readers.edge_lists import read_edge_list, write_edge_list
from opticoll.instances.readers.networkx_io import read_graphml, write_graphml
from opticoll.instances.readers.topology_json import read_json, write_json
from opticoll.instances.readers.untrusted import decode, read_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from opticoll.instances.digraph import Topology

#: Larger files are refused [bytes].
MAX_FILE_BYTES = 64 * 2**20


def read_topology(path: str | Path) -> Topology:
    """Read a topology from an edge list, GraphML or JSON file.

    Parameters
    ----------
    path
        File; its suffix selects the format.

    Returns
    -------
    Topology
        With the spec ``file:PATH``.

    Raises
    ------
    BadFile
        If the file cannot be read, is too large, or does not describe a topology; the message names the line or arc.
    """
    data = _read(path)
    what = f"file {str(path)!r}"
    suffix = Path(path).suffix.lower()
    if suffix in {".graphml", ".xml"}:
        topology = read_graphml(data, what)
    elif suffix == ".json":
        topology = read_json(_text(data, what), what)
    else:
        topology = read_edge_list(_text(data, what), what)
    object.__setattr__(topology, "spec", f"file:{path}")
    object.__setattr__(topology, "parameters", (("path", str(path)),))
    return topology


def write_topology(topology: Topology, path: str | Path) -> None:
    """Write a topology so that :func:`read_topology` returns it exactly, labels included.

    Parameters
    ----------
    topology
        Its vertices, arcs, capacities (all digits), terminals and labels are written.
    path
        File; the suffixes ``.graphml``, ``.xml`` and ``.json`` select those formats, any other an edge list, with
        commas for ``.csv`` and blanks otherwise. An existing file is replaced.

    Raises
    ------
    BadFile
        If the file cannot be written, or the format cannot represent a label.
    """
    suffix = Path(path).suffix.lower()
    if suffix in {".graphml", ".xml"}:
        data = write_graphml(topology)
    elif suffix == ".json":
        data = "".join(write_json(topology)).encode()
    else:
        data = "".join(write_edge_list(topology, "," if suffix == ".csv" else " ")).encode()
    try:
        Path(path).write_bytes(data)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        msg = f"file {str(path)!r} cannot be written ({reason}); choose another path"
        raise BadFile(msg) from error


def read_matrix(path: str | Path, n: int) -> NDArray[np.float64]:
    """Read an n×n matrix of numbers, one row per line, separated by commas or blanks; ``#`` starts a comment.

    Raises
    ------
    BadFile
        If the file cannot be read, has another number of rows or columns, or holds anything but numbers.
    """
    what = f"file {str(path)!r}"
    return matrix_of(_text(_read(path), what), n, what, "server")


def matrix_of(text: str, n: int, what: str, unit: str) -> NDArray[np.float64]:
    """The n×n matrix in ``text``, in the format of :func:`read_matrix`, with one row and column per ``unit``.

    Raises
    ------
    BadFile
        If it has another number of rows or columns, or holds anything but numbers.
    """
    rows: list[NDArray[np.float64]] = []
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.partition("#")[0].strip()
        if not line:
            continue
        parts = line.split(",") if "," in line else line.split()
        if len(parts) != n or len(rows) == n:
            count = f"{len(parts)} numbers" if len(parts) != n else f"row {n + 1}"
            msg = f"{what}, line {number}: {count} in a matrix of {n} rows and columns; give one per {unit}"
            raise BadFile(msg)
        try:
            rows.append(np.array([float(part) for part in parts]))
        except ValueError as error:
            msg = f"{what}, line {number}: {str(error)[:80]}; write numbers"
            raise BadFile(msg) from None
    if len(rows) != n:
        msg = f"{what}: {len(rows)} rows in a matrix of {n}; give one row per {unit}"
        raise BadFile(msg)
    return np.stack(rows)


def _read(path: str | Path) -> bytes:
    where = f"file {str(path)!r}"
    if not str(path).strip():
        msg = "file: the path is missing; write file:PATH"
        raise BadFile(msg)
    data = read_bytes(Path(path), MAX_FILE_BYTES, "name a file with a topology or a matrix", where)
    if not data.strip():
        msg = f"{where} is empty; write one arc (tail head capacity) or one row of a matrix per line"
        raise BadFile(msg)
    return data


def _text(data: bytes, where: str) -> str:
    return decode(data, where, "save the file as UTF-8")

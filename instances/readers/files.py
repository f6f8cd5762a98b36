"""Topologies and matrices in files, read with limits that hold before anything is allocated.

Three formats, told apart by the file's suffix: ``.graphml`` or ``.xml``
(:mod:`opticoll.instances.readers.networkx_io`),
``.json`` (:mod:`opticoll.instances.readers.topology_json`), and edge lists for every other suffix
(:mod:`opticoll.instances.readers.edge_lists`). Self-loops carry no flow, so a file with loops is refused unless it
declares
that they are meant. The hash of what is read depends on the content only, not on the file's name or format;
machines written out (a LIGHTPATH mesh, a WDM ring) come back as the plain topology that they contain.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import BadFile
from opticoll.instances.readers.edge_lists import read_edge_list, write_edge_list
from opticoll.instances.readers.networkx_io import read_graphml, write_graphml
from opticoll.instances.readers.topology_json import read_json, write_json

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
        File; its suffix tells the format.

    Returns
    -------
    Topology
        With the spec ``file:PATH``.

    Raises
    ------
    BadFile
        If there is no such file, it is too large, or it describes no topology; with line or arc.
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
    """Write a topology so that :func:`read_topology` gives it back exactly, labels included.

    Parameters
    ----------
    topology
        What to write; vertices, arcs, capacities (all digits), terminals and labels go into the file.
    path
        File; ``.graphml``, ``.xml`` or ``.json`` choose those formats, other suffixes an edge list, with
        commas for ``.csv`` and blanks otherwise. An existing file is replaced.

    Raises
    ------
    BadFile
        If the file cannot be written, or a label does not fit into the format.
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
        msg = f"file {str(path)!r}: cannot be written ({_reason(error)}); choose another path"
        raise BadFile(msg) from error


def read_matrix(path: str | Path, n: int) -> NDArray[np.float64]:
    """Read an n×n matrix of numbers, a row a line, separated by commas or blanks; ``#`` starts a comment.

    Raises
    ------
    BadFile
        If the file cannot be read, has another number of rows or columns, or holds something else.
    """
    what = f"file {str(path)!r}"
    return matrix_of(_text(_read(path), what), n, what, "server")


def matrix_of(text: str, n: int, what: str, each: str) -> NDArray[np.float64]:
    """The n×n matrix that ``text`` holds in the format of :func:`read_matrix`, one row and column for ``each``.

    Raises
    ------
    BadFile
        If it has another number of rows or columns, or holds something else.
    """
    rows: list[NDArray[np.float64]] = []
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.partition("#")[0].strip()
        if not line:
            continue
        parts = line.split(",") if "," in line else line.split()
        if len(parts) != n or len(rows) == n:
            count = f"{len(parts)} numbers" if len(parts) != n else f"row {n + 1}"
            msg = f"{what}, line {number}: {count} in a matrix of {n} rows and columns; give one a {each}"
            raise BadFile(msg)
        try:
            rows.append(np.array([float(part) for part in parts]))
        except ValueError as error:
            msg = f"{what}, line {number}: {str(error)[:80]}; write numbers"
            raise BadFile(msg) from None
    if len(rows) != n:
        msg = f"{what}: {len(rows)} rows in a matrix of {n}; give one row a {each}"
        raise BadFile(msg)
    return np.stack(rows)


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error)


def _read(path: str | Path) -> bytes:
    what = f"file {str(path)!r}"
    if not str(path).strip():
        msg = "file: the path is missing; write file:PATH"
        raise BadFile(msg)
    try:
        if not Path(path).exists():
            msg = f"{what}: there is no such file; check the path"
            raise BadFile(msg)
        if not Path(path).is_file():
            msg = f"{what}: not a regular file; name a file with a topology or a matrix"
            raise BadFile(msg)
        with Path(path).open("rb") as stream:
            data = stream.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        if isinstance(error, BadFile):
            raise
        msg = f"{what}: cannot be read ({_reason(error)}); check the path and its permissions"
        raise BadFile(msg) from None
    if len(data) > MAX_FILE_BYTES:
        msg = f"{what}: more than {MAX_FILE_BYTES} bytes; split it or leave out what is not needed"
        raise BadFile(msg)
    if not data.strip():
        msg = f"{what}: empty; write one arc (tail head capacity), or one row of a matrix, a line"
        raise BadFile(msg)
    return data


def _text(data: bytes, what: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        msg = f"{what}: byte {error.start} is not UTF-8 text; save the file as UTF-8"
        raise BadFile(msg) from None

"""Demands as data: arrays, DataFrames, dicts of pairs, and files with a matrix or a list of pairs.

A demand is an N×N matrix in rank order, or a list of (source, target, amount) whose ends are labels of the topology.
Names that are not labels are read as rank numbers 0 .. N-1 if all of them are, and no label is a number. Pairs that are
not listed have demand 0.

Text files (any suffix but ``.json``): either N rows of N numbers, separated by commas or spaces; or a heading of labels
(its first field empty) and one row per label, as ``DataFrame.to_csv`` writes it; or a heading ``src,dst,bytes`` and one
pair per line. In the latter two, amounts may have units of size, ``64MB`` or ``64MiB``: all of a table or none; amounts
are then in bytes. JSON files: N rows of N numbers, as a list of lists or under the key ``demand``. ``#`` starts a
comment. SNDlib networks (native or XML) contain demands, and DIMACS ``p max`` a source and a sink.
"""

from __future__ import annotations

import csv
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.arguments import refuse_masked
from opticoll.errors import BadFile, BadInput
from opticoll.instances.readers.files import matrix_of
from opticoll.instances.readers.graph_formats import SNDLIB, dimacs_links, sndlib_links, sndlib_xml_links
from opticoll.instances.readers.reading import parse_json, parse_xml, parses_as_float
from opticoll.instances.readers.topology_builder import end_columns
from opticoll.instances.topology import parse_size

if TYPE_CHECKING:
    from opticoll.instances.topology import F64, Topology

#: Headings of the amounts of a list of pairs, in lower case.
AMOUNTS = ("bytes", "amount", "demand", "shards", "traffic", "volume", "weight", "value", "size")
#: Maximum number of rows in a list of pairs.
MAX_PAIRS = 20_000_000


@dataclass(frozen=True, eq=False)
class DemandTable:
    """A demand as data.

    Parameters
    ----------
    amount
        D in rank order, ``(N, N)``; or the amounts of the listed pairs, ``(K,)``.
    labels
        Source and target of every listed pair; None for a matrix.
    in_bytes
        Whether the amounts were given with units of size, or in a column ``bytes``.
    """

    amount: F64
    labels: tuple[tuple[str, str], ...] | None = None
    in_bytes: bool = False

    @property
    def digest(self) -> str:
        """First 16 hexadecimal digits of the SHA-256 of the contents; the order of listed pairs does not matter."""
        result = hashlib.sha256(b"opticoll-demand-1")
        if self.labels is None:
            result.update(repr(self.amount.shape).encode() + np.ascontiguousarray(self.amount, dtype="<f8").tobytes())
        else:
            pairs = sorted(zip(self.labels, self.amount.tolist(), strict=True))
            result.update(repr([pair for pair in pairs if pair[1]]).encode())
        return result.hexdigest()[:16]


#: A heading ``bytes``, or an amount with a unit of size.
_BYTES = re.compile(r"(?im)(^|[,;\s\"'])bytes([,;\s\"']|$)|\d\s*[kKMGT]?i?B\b")


#: A size of nothing, which :func:`parse_size` refuses.
_NOTHING = re.compile(r"\s*0+(\.0*)?\s*[kMGT]?i?[Bb]\s*")


def states_bytes(text: str) -> bool:
    """Whether the text of a table of demands counts bytes: a column ``bytes``, or amounts with units of size."""
    return _BYTES.search(text) is not None


def _in_bytes(value: object) -> bool:
    """Whether a demand in memory counts bytes, as :func:`states_bytes`."""
    if isinstance(value, Mapping):
        entries = list(value.values())
    elif hasattr(value, "columns") and hasattr(value, "to_numpy"):
        if any(str(name).lower() == "bytes" for name in value.columns):
            return True
        entries = list(value.to_numpy(dtype=object).ravel())
    else:
        array = np.asarray(value)
        entries = list(array.ravel()) if array.dtype.kind in "OU" else []
    return any(isinstance(one, str) and states_bytes(one) for one in entries)


def table_of(value: object) -> DemandTable:
    """Read a demand, and note whether it counts bytes; see :func:`_table_of`."""
    return replace(_table_of(value), in_bytes=_in_bytes(value))


def _table_of(value: object) -> DemandTable:
    """Read a demand from an array, a DataFrame or a dict of pairs.

    Raises
    ------
    BadInput
        For anything else, and for amounts that are not numbers.
    """
    if isinstance(value, Mapping):
        ends = [_pair(key) for key in value]
        return _listed(ends, list(value.values()), "demand")
    if hasattr(value, "columns") and hasattr(value, "index"):
        return _framed(value)
    if isinstance(value, np.ndarray) or (isinstance(value, Sequence) and not isinstance(value, str)):
        matrix = _numbers(value, "demand")
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            msg = f"demand: an array of shape {matrix.shape} is not a square matrix; give one row and column per rank"
            raise BadInput(msg)
        return DemandTable(matrix)
    msg = (
        f"demand: cannot be read from type {type(value).__name__}; give a string, an N×N array, a DataFrame, or a dict "
        "{(source, target): amount}"
    )
    raise BadInput(msg)


def _numbers(value: object, what: str) -> F64:
    if hasattr(value, "todense"):
        value = value.todense()
    refuse_masked(value, what)
    try:
        array = np.asarray(value)
        if array.dtype.kind in "UO" and any(isinstance(one, str) for one in array.flat):
            return _amounts([str(one) for one in array.flat], lambda i: f"{what}, amount {i + 1}").reshape(array.shape)
        if array.dtype.kind not in "iuf" and not (array.dtype.kind == "O" and array.size):
            raise TypeError
        return np.array(array, dtype=np.float64)
    except BadInput:
        raise
    except (TypeError, ValueError, OverflowError):
        msg = f"{what}: amounts must be numbers, one per entry"
        raise BadInput(msg) from None


def _pair(key: object) -> tuple[str, str]:
    if not isinstance(key, tuple) or len(key) != 2:
        msg = f"demand: key {str(key)[:60]!r} must be a pair (source, target)"
        raise BadInput(msg)
    return str(key[0]), str(key[1])


def _listed(ends: list[tuple[str, str]], amounts: object, what: str) -> DemandTable:
    """Build a table from a list of pairs, each at most once."""
    amount = _numbers(amounts, what)
    seen: set[tuple[str, str]] = set()
    for (s, t), one in zip(ends, amount.tolist(), strict=True):
        if (s, t) in seen:
            msg = f"{what}: the pair {s} to {t} occurs twice; add up its amounts"
            raise BadFile(msg)
        seen.add((s, t))
        if not (np.isfinite(one) and one >= 0):
            msg = f"{what}: {s} sends {one} to {t}; give finite nonnegative numbers"
            raise BadFile(msg)
        if s == t and one:
            msg = f"{what}: {s} sends {one:g} to itself; omit it, since it uses no link"
            raise BadFile(msg)
    return DemandTable(amount, tuple(ends))


def _framed(frame: Any) -> DemandTable:
    """Read a DataFrame as pairs if it has columns for both ends, else as a square matrix with labels."""
    names = [str(name) for name in frame.columns]
    result = _pair_columns(names, "demand")
    if result is not None:
        source, target, amount = (frame.iloc[:, i].tolist() for i in result)
        return _listed([(str(s), str(t)) for s, t in zip(source, target, strict=True)], amount, "demand")
    index = [str(name) for name in frame.index]
    if not set(index) & set(names):
        msg = (
            f"demand: the columns {', '.join(names)[:60]} label no rows, and are not a source, a destination and an "
            "amount; name them src, dst and demand, or label rows and columns with the ranks"
        )
        raise BadInput(msg)
    return _labelled(index, names, frame.to_numpy(), "demand")


def _labelled(rows: list[str], columns: list[str], entries: object, what: str) -> DemandTable:
    """Convert a square matrix with labels to a list of pairs."""
    for side in (rows, columns):
        twice = next((name for name in side if side.count(name) > 1), None) if len(set(side)) < len(side) else None
        if twice is not None:
            msg = f"{what}: label {twice[:60]!r} occurs twice; use each label once"
            raise BadInput(msg)
    odd = sorted(set(rows) ^ set(columns))
    if odd:
        msg = (
            f"{what}: {odd[0][:60]!r} labels only a row or only a column; label both with the ranks, or give the "
            "columns src, dst and an amount"
        )
        raise BadInput(msg)
    matrix = _numbers(entries, what)
    keep = matrix != 0  # NaN is kept and refused later
    ends = [(rows[i], columns[j]) for i, j in np.argwhere(keep).tolist()]
    return _listed(ends, matrix[keep], what)


def _pair_columns(names: list[str], what: str) -> tuple[int, int, int] | None:
    """Positions of the source, target and amount columns; None if the names are not headings of a list of pairs.

    Raises
    ------
    BadFile
        If it is not clear which column holds the amounts.
    """
    ends = end_columns(names, what)
    if ends is None:
        return None
    amounts = [i for i, name in enumerate(names) if name.strip().lower() in AMOUNTS]
    if len(amounts) != 1:
        reason = "no column has the amounts" if not amounts else f"{len(amounts)} columns may have the amounts"
        msg = f"{what}: {reason}; name the columns src, dst and bytes (or {', '.join(AMOUNTS[1:5])})"
        raise BadFile(msg)
    return *ends, amounts[0]


def rank_matrix(table: DemandTable, topology: Topology, what: str) -> F64:
    """Return D in rank order, ``(N, N)``.

    Raises
    ------
    BadInput
        For a matrix of the wrong size, or a name that is not a rank of ``topology``.
    """
    ranks = topology.num_ranks
    if table.labels is None:
        if table.amount.shape != (ranks, ranks):
            size = "x".join(map(str, table.amount.shape))
            msg = (
                f"{what}: a matrix of {size} for the {ranks} ranks of {topology.spec}; give one row and column per rank"
            )
            raise BadFile(msg)
        return table.amount
    number = rank_numbers(topology, {name for pair in table.labels for name in pair}, what)
    matrix = np.zeros((ranks, ranks))
    if table.labels:
        source, target = np.array([[number[s], number[t]] for s, t in table.labels]).T
        matrix[source, target] = table.amount
    return matrix


def rank_numbers(topology: Topology, names: set[str], what: str) -> dict[str, int]:
    """The rank of every name: by label if all are labels; by number if no label of the topology is one.

    Raises
    ------
    BadFile
        For a name that is not a rank, or a label shared by several ranks.
    """
    from opticoll.nearest_names import nearest

    labels = [topology.labels[v] for v in topology.terminals.tolist()]
    known = {label: rank for rank, label in enumerate(labels)}
    unknown = sorted(names - known.keys())
    switches = set(topology.labels) - known.keys()
    numbered = any(label.isdecimal() for label in topology.labels)  # a number is then a label, not a position
    if unknown and not numbered and all(_below(name, len(labels)) for name in names):
        return {name: int(name) for name in names}
    if unknown:
        reason = "is a vertex, but not a rank" if unknown[0] in switches else "is not a rank"
        msg = f"{what}: {unknown[0][:60]!r} {reason} of {topology.spec}; {nearest(unknown[0], known)}"
        raise BadFile(msg)
    if len(known) < len(labels):
        twice = next((name for name in sorted(names) if labels.count(name) > 1), None)
        if twice is not None:
            msg = f"{what}: several ranks of {topology.spec} have the label {twice[:60]!r}; use rank numbers instead"
            raise BadFile(msg)
    return known


def _below(name: str, ranks: int) -> bool:
    """Whether a name is the number of one of ``ranks`` ranks."""
    return name.isascii() and name.isdigit() and len(name) < 10 and int(name) < ranks


def table_of_text(text: str, is_json: bool, topology: Topology, what: str) -> DemandTable:
    """Read the demand in the text of a file.

    Raises
    ------
    BadFile
        If the text is malformed, or a matrix whose size is not the number of ranks.
    """
    ranks, unit = topology.num_ranks, f"rank of {topology.spec}"
    stated = demands_of_network(text, what)
    if stated is not None:
        return _listed(list(stated), list(stated.values()), what)
    if is_json:
        return DemandTable(_json_matrix(text, ranks, what))
    lines = [line.partition("#")[0].strip() for line in text.splitlines()]
    numbered = [(i, line) for i, line in enumerate(lines, start=1) if line]
    if not numbered:
        msg = f"{what} is empty; write one row of a matrix per line, or the heading src,dst,bytes and one pair per line"
        raise BadFile(msg)
    if ";" in numbered[0][1]:
        msg = f"{what}, line {numbered[0][0]}: columns are separated by ';'; use commas or spaces"
        raise BadFile(msg)
    heading = _fields(numbered[0][1])
    columns = _pair_columns(heading, what)
    if columns is not None:
        return _pairs_of_lines(numbered[1:], columns, len(heading), what)
    if len(heading) > 1 and "," in numbered[0][1] and (not heading[0] or _above_rows(heading, numbered[1:])):
        return _labelled_lines(numbered[1:], heading[1:], what)
    if len(heading) == 3 and not any(map(parses_as_float, heading)):
        msg = (
            f"{what}, line {numbered[0][0]}: cannot read the heading {numbered[0][1][:60]!r}; "
            "write src,dst,bytes for a list of pairs, or only numbers for a matrix"
        )
        raise BadFile(msg)
    return DemandTable(matrix_of(text, ranks, what, unit))


def _above_rows(heading: list[str], lines: list[tuple[int, str]]) -> bool:
    """Whether the first line of a matrix has, behind a word of its own, the labels of the rows."""
    return not parses_as_float(heading[0]) and sorted(heading[1:]) == sorted(_fields(line)[0] for _, line in lines)


def demands_of_network(text: str, what: str) -> dict[tuple[str, str], float] | None:
    """Read the demands of a network file: SNDlib (native or XML), or source and sink of DIMACS ``p max``.

    Raises
    ------
    BadFile
        If it is malformed, or contains no demand.
    """
    start = text.lstrip("\ufeff \t\r\n")[:4096]
    if re.match(SNDLIB, start):
        links = sndlib_links(text, what)
    elif start.startswith("<"):
        root = parse_xml(text.encode(), what, "write SNDlib XML")
        if root.tag != "network":
            msg = f"{what}: <{root.tag[:40]}> is not an SNDlib network; write a matrix, or src,dst,bytes and pairs"
            raise BadFile(msg)
        links = sndlib_xml_links(root, what)
    elif re.match(r"(?:c(?:[ \t][^\n]*)?\n|\s)*p[ \t]+max[ \t]", start):
        links = dimacs_links(text, what)
    else:
        return None
    if not links.demands:
        msg = f"{what}: it contains no demands; give another file"
        raise BadFile(msg)
    return dict(links.demands)


def _fields(line: str) -> list[str]:
    if "," not in line:
        return line.split()
    return [field.strip() for field in next(csv.reader([line]))]


def _amounts(texts: Sequence[str], place: Callable[[int], str]) -> F64:
    """Convert amounts to numbers: as written, or in bytes if they have units of size (0 needs no unit).

    Raises
    ------
    BadFile
        For a string that is neither a number nor a size, or a table that mixes amounts with and without a unit.
    """
    values, plain, sized = np.empty(len(texts)), -1, -1
    for i, text in enumerate(texts):
        if parses_as_float(text):
            values[i] = float(text)
            plain = i if values[i] and plain < 0 else plain
            continue
        if _NOTHING.fullmatch(text):
            values[i], sized = 0.0, i
            continue
        try:
            values[i], sized = parse_size(text), i
        except BadInput:
            msg = f"{place(i)}: amount {text[:60]!r} is unknown; write numbers, or sizes such as 64MB or 64MiB"
            raise BadFile(msg) from None
    if plain >= 0 and sized >= 0:
        msg = (
            f"{place(plain)}: amount {texts[plain]} has no unit, but {texts[sized][:60]} has one; write a unit with "
            "every amount, or with none"
        )
        raise BadFile(msg)
    return values


def _pairs_of_lines(lines: list[tuple[int, str]], columns: tuple[int, int, int], width: int, what: str) -> DemandTable:
    if len(lines) > MAX_PAIRS:
        msg = f"{what}: {len(lines)} pairs exceed the limit of {MAX_PAIRS}; write a matrix"
        raise BadFile(msg)
    ends, amounts = [], []
    for number, line in lines:
        parts = _fields(line)
        if len(parts) != width or not parts[columns[0]] or not parts[columns[1]]:
            msg = f"{what}, line {number}: {line[:60]!r} does not match the heading; write one value per column"
            raise BadFile(msg)
        ends.append((parts[columns[0]], parts[columns[1]]))
        amounts.append(parts[columns[2]])
    return _listed(ends, _amounts(amounts, lambda i: f"{what}, line {lines[i][0]}"), what)


def _labelled_lines(lines: list[tuple[int, str]], labels: list[str], what: str) -> DemandTable:
    names: list[str] = []
    entries: list[str] = []
    for number, line in lines:
        name, *cells = _fields(line)
        if len(cells) != len(labels):
            msg = f"{what}, line {number}: {len(cells)} numbers for {len(labels)} labels; give one per label"
            raise BadFile(msg)
        names.append(name)
        entries += cells
    amounts = _amounts(entries, lambda i: f"{what}, line {lines[i // len(labels)][0]}")
    return _labelled(names, labels, amounts.reshape(len(names), len(labels)), what)


def _json_matrix(text: str, ranks: int, what: str) -> F64:
    document = parse_json(text, what, f"write a list of {ranks} rows")
    rows = document.get("demand") if isinstance(document, dict) else document
    if isinstance(document, dict) and isinstance(document.get("graph"), dict) and "demands" in document["graph"]:
        msg = (
            f"{what}: demands within a network are not read from JSON (topohub states some pairs one way only, though "
            "it counts both); write src,dst,amount and one line per pair and direction"
        )
        raise BadFile(msg)
    unknown = sorted(document.keys() - {"demand"}) if isinstance(document, dict) and "format" not in document else []
    if rows is not None and unknown:
        msg = f"{what}: unknown key {unknown[0][:60]!r}; write the rows alone, or under the key 'demand'"
        raise BadFile(msg)
    if not isinstance(rows, list) or len(rows) != ranks:
        count = f"{len(rows)} rows" if isinstance(rows, list) else "no list of rows"
        msg = f"{what}: {count} in a matrix of {ranks}; give one row per rank, as a list or under the key 'demand'"
        raise BadFile(msg)
    matrix = np.empty((ranks, ranks))
    for s, row in enumerate(rows):
        if not isinstance(row, list) or len(row) != ranks or any(type(cell) not in (int, float) for cell in row):
            msg = f"{what}, row {s + 1}: must be a list of {ranks} numbers, one per rank"
            raise BadFile(msg)
        try:
            matrix[s] = row
        except OverflowError:
            msg = f"{what}, row {s + 1}: a number is too large; use a larger unit"
            raise BadFile(msg) from None
    return matrix

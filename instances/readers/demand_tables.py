"""Demands as data: arrays, DataFrames, dicts of pairs, and files with a matrix or a list of pairs.

A demand is an N×N matrix in rank order, or a list of (source, target, amount) whose ends are labels of the topology.
Names that are not labels are read as rank numbers 0 .. N-1 if all of them are, and no label is a number. Pairs that are
not listed have demand 0.

Text files (any suffix but ``.json``): a matrix with or without labels (:mod:`opticoll.instances.readers.tables`), or a
heading ``src,dst,bytes`` and one pair per line. Amounts may have units of size, ``64MB`` or ``64MiB``: all of a table
or none; amounts are then in bytes. JSON files: N rows of N numbers, as a list of lists or under the key ``demand``.
Networks of SNDlib, REPETITA and topohub contain demands.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from opticoll.arguments import refuse_masked
from opticoll.errors import BadFile, BadInput
from opticoll.instances.quantities import parse_size
from opticoll.instances.readers.reading import as_struct, parse_json, parse_xml, parses_as_float, refuse
from opticoll.instances.readers.tables import Row, check_labels, end_columns, has_labels, rows_of, square

if TYPE_CHECKING:
    from opticoll.instances.topology import F64, Topology
    from opticoll.types import Json

#: Headings of the amounts of a list of pairs, in lower case.
AMOUNTS = ("bytes", "amount", "demand", "shards", "traffic", "volume", "weight", "value", "size")


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


#: A size of nothing, which :func:`parse_size` refuses.
_NOTHING = re.compile(r"\s*0+(\.0*)?\s*[kMGT]?i?[Bb]\s*")


def table_of(value: object) -> DemandTable:
    """Read a demand from an array, a sparse matrix, a DataFrame, or a dict or Series of pairs.

    Raises
    ------
    BadInput
        For anything else, and for amounts that are not numbers.
    """
    if hasattr(value, "columns") and hasattr(value, "index"):
        return _framed(value)
    if hasattr(value, "items"):
        pairs = list(value.items())
        return _listed([_pair(key) for key, _ in pairs], *_numbers([amount for _, amount in pairs], "demand"), "demand")
    if hasattr(value, "todense") or (isinstance(value, np.ndarray | Sequence) and not isinstance(value, str)):
        matrix, sized = _numbers(value, "demand")
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            remedy = "give one row and column per rank, or pairs as a dict {(source, target): amount}"
            refuse("demand", f"an array of shape {matrix.shape} is not a square matrix; {remedy}")
        return DemandTable(matrix, in_bytes=sized)
    msg = (
        f"demand: cannot be read from type {type(value).__name__}; give a string, an N×N array, a DataFrame, or a dict "
        "{(source, target): amount}"
    )
    raise BadInput(msg)


def _numbers(value: object, what: str) -> tuple[F64, bool]:
    """Amounts as an array of their shape, and whether they have units of size."""
    if hasattr(value, "todense"):
        value = value.todense()
    refuse_masked(value, what)
    try:
        array = np.asarray(value)
        if array.dtype.kind in "UO" and any(isinstance(one, str) for one in array.flat):
            amounts, sized = _amounts([str(one) for one in array.flat], lambda i: f"{what}, amount {i + 1}")
            return amounts.reshape(array.shape), sized
        if array.dtype.kind not in "iuf" and not (array.dtype.kind == "O" and array.size):
            raise TypeError
        return np.array(array, dtype=np.float64), False
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


def _listed(ends: list[tuple[str, str]], amount: F64, in_bytes: bool, what: str) -> DemandTable:
    """Build a table from a list of pairs, each at most once."""
    if amount.ndim != 1:
        refuse(what, "amounts must be numbers, one per entry")
    if len(set(ends)) < len(ends):
        [((s, t), _)] = Counter(ends).most_common(1)
        refuse(what, f"the pair {s} to {t} occurs twice; add up its amounts")
    return DemandTable(amount, tuple(ends), in_bytes)


def _framed(frame: Any) -> DemandTable:
    """Read a DataFrame as pairs if it has columns for both ends, else as a square matrix with labels."""
    names = [str(name) for name in frame.columns]
    result = _pair_columns(names, "demand")
    if result is not None:
        source, target, column = (frame.iloc[:, i].tolist() for i in result)
        amount, sized = _numbers(column, "demand")
        ends = [(str(s), str(t)) for s, t in zip(source, target, strict=True)]
        return _listed(ends, amount, sized or _counts_bytes(names[result[2]]), "demand")
    index = [str(name) for name in frame.index]
    if not set(index) & set(names):
        msg = (
            f"demand: the columns {', '.join(names)[:60]} label no rows, and are not a source, a destination and an "
            "amount; name them src, dst and demand, or label rows and columns with the ranks"
        )
        raise BadInput(msg)
    check_labels(index, names, "demand")
    return _labelled(index, names, *_numbers(frame.to_numpy(), "demand"), "demand")


def _counts_bytes(heading: str) -> bool:
    return heading.strip().lower() == "bytes"


def _labelled(rows: list[str], columns: list[str], matrix: F64, in_bytes: bool, what: str) -> DemandTable:
    """Convert a square matrix with labels to a list of pairs."""
    keep = matrix != 0  # NaN is kept, and refused by the demand
    ends = [(rows[i], columns[j]) for i, j in np.argwhere(keep).tolist()]
    return _listed(ends, matrix[keep], in_bytes, what)


def _pair_columns(names: list[str], what: str) -> tuple[int, int, int] | None:
    """Positions of the source, target and amount columns; None if the names are not headings of a list of pairs."""
    ends = end_columns(names, what)
    if ends is None:
        return None
    amounts = [i for i, name in enumerate(names) if name.strip().lower() in AMOUNTS]
    if len(amounts) != 1:
        reason = "no column has the amounts" if not amounts else f"{len(amounts)} columns may have the amounts"
        refuse(what, f"{reason}; name the columns src, dst and bytes (or {', '.join(AMOUNTS[1:5])})")
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
            remedy = "give one row and column per rank"
            refuse(what, f"a matrix of {size} for the {ranks} ranks of {topology.spec}; {remedy}")
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
        refuse(what, f"{unknown[0][:60]!r} {reason} of {topology.spec}; {nearest(unknown[0], known)}")
    if len(known) < len(labels):
        twice = next((name for name in sorted(names) if labels.count(name) > 1), None)
        if twice is not None:
            refuse(what, f"several ranks of {topology.spec} have the label {twice[:60]!r}; use rank numbers instead")
    return known


def _below(name: str, ranks: int) -> bool:
    """Whether a name is the number of one of ``ranks`` ranks."""
    return name.isascii() and name.isdigit() and len(name) < 10 and int(name) < ranks


def table_of_text(text: str, is_json: bool, what: str, pairs: str | None = None) -> DemandTable:
    """Read the demand in the text of a file.

    Raises
    ------
    BadFile
        If the text is malformed, or ``pairs`` is given for a table.
    """
    document = parse_json(text, what, "write a list of rows") if is_json else None
    stated = demands_of_network(text, document, what, pairs)
    if stated is not None:
        return _listed(list(stated), np.array(list(stated.values())), False, what)
    if pairs is not None:
        refuse(what, "pairs= is for the demands of a network, which this file is not; omit it")
    if is_json:
        return _json_matrix(document, what)
    rows = rows_of(text, what)
    if not rows:
        msg = f"{what} is empty; write one row of a matrix per line, or the heading src,dst,bytes and one pair per line"
        raise BadFile(msg)
    number, heading = rows[0]
    columns = _pair_columns(heading, what)
    if columns is not None:
        return _pairs_of_rows(rows[1:], columns, heading, what)
    if len(heading) == 3 and None in map(_amount, heading) and not has_labels([cells for _, cells in rows]):
        remedy = "write src,dst,bytes above a list of pairs, or only numbers for a matrix"
        refuse(f"{what}, line {number}", f"{','.join(heading)[:60]!r} is neither a heading nor amounts; {remedy}")
    matrix = square(rows, what)
    cells, sized = _amounts(matrix.cells(), matrix.where)
    amounts = cells.reshape(len(matrix.rows), -1)
    if matrix.labels is None:
        return DemandTable(amounts, in_bytes=sized)
    return _labelled(matrix.labels, matrix.labels, amounts, sized, what)


#: Ways to read a pair of nodes of which a network states the demand in one direction only.
PAIRS = ("one-way", "both")


def demands_of_network(text: str, document: Json, what: str, pairs: str | None) -> dict[tuple[str, str], float] | None:
    """Read the demands of a network: SNDlib, REPETITA or topohub.

    ``document`` is the text if it is JSON, else None. The result is None for what is no network.

    A demand that is stated in one direction only is taken as such, or in both, as ``pairs`` says.

    Raises
    ------
    BadFile
        If it is malformed, contains no demand, or does not say which of these is meant.
    """
    from opticoll.instances.readers.graph_formats import SNDLIB, list_sndlib
    from opticoll.instances.readers.line_formats import REPETITA, read_repetita
    from opticoll.instances.readers.listed_graph import ListedGraph
    from opticoll.instances.readers.topology_json import node_link

    start, links = text.lstrip("\ufeff \t\r\n")[:4096], ListedGraph(what)
    if isinstance(document, dict) and "nodes" in document:
        node_link(document, links)
    elif document is not None:
        return None
    elif re.match(SNDLIB, start):
        list_sndlib(text, links)
    elif start.startswith("<"):
        root = parse_xml(text.encode(), what, "write SNDlib XML")
        if root.tag != "network":
            refuse(what, f"<{root.tag[:40]}> is not an SNDlib network; write a matrix, or src,dst,bytes and pairs")
        list_sndlib(root, links)
    elif re.match(REPETITA, start):
        read_repetita(text, links)
    else:
        return None
    if not links.demands:
        refuse(what, "it contains no demands; give another file")
    stated = {ends: amount for ends, amount in links.demands.items() if amount}
    lone = [(s, t) for s, t in stated if (t, s) not in stated]
    if pairs not in {*PAIRS, None} or (lone and pairs is None):
        shown = f"{len(lone)} of {len(stated)} demands, such as {lone[0][0]} to {lone[0][1]}" if lone else "no demands"
        remedy = "write file:PATH,pairs=one-way, or file:PATH,pairs=both for as much in return"
        refuse(what, f"{shown} are stated in one direction only; {remedy}")
    if pairs == "both":
        stated |= {(t, s): stated[s, t] for s, t in lone}
    return stated


def _amount(text: str) -> tuple[float, bool] | None:
    """An amount as written, or in bytes, and whether it has a unit of size; None for any other text."""
    if parses_as_float(text):
        return float(text), False
    if _NOTHING.fullmatch(text):
        return 0.0, True
    try:
        return parse_size(text), True
    except BadInput:
        return None


def _amounts(texts: Sequence[str], place: Callable[[int], str]) -> tuple[F64, bool]:
    """Convert amounts to numbers, as written or in bytes, and tell whether they have units of size (0 needs none)."""
    values, plain, sized = np.empty(len(texts)), -1, -1
    for i, text in enumerate(texts):
        read = _amount(text)
        if read is None:
            refuse(place(i), f"amount {text[:60]!r} is unknown; write numbers, or sizes such as 64MB or 64MiB")
        values[i] = read[0]
        if read[1]:
            sized = i
        elif values[i] and plain < 0:
            plain = i
    if plain >= 0 and sized >= 0:
        remedy = "write a unit with every amount, or with none"
        refuse(place(plain), f"amount {texts[plain]} has no unit, but {texts[sized][:60]} has one; {remedy}")
    return values, sized >= 0


def _pairs_of_rows(rows: list[Row], columns: tuple[int, int, int], heading: list[str], what: str) -> DemandTable:
    ends, amounts = [], []
    for number, cells in rows:
        if len(cells) != len(heading) or not cells[columns[0]] or not cells[columns[1]]:
            given = ",".join(cells)[:60]
            refuse(f"{what}, line {number}", f"{given!r} does not match the heading; write one value per column")
        ends.append((cells[columns[0]], cells[columns[1]]))
        amounts.append(cells[columns[2]])
    amount, sized = _amounts(amounts, lambda i: f"{what}, line {rows[i][0]}")
    return _listed(ends, amount, sized or _counts_bytes(heading[columns[2]]), what)


class _Matrix(msgspec.Struct, forbid_unknown_fields=True):
    demand: list[list[float]]


def _json_matrix(document: Json, what: str) -> DemandTable:
    rows = as_struct(document if isinstance(document, dict) else {"demand": document}, _Matrix, what).demand
    for s, row in enumerate(rows):
        if len(row) != len(rows):
            refuse(f"{what}, row {s + 1}", f"{len(row)} entries in a matrix of {len(rows)} rows; give one per row")
    return DemandTable(np.array(rows).reshape(len(rows), len(rows)))

r"""Where the iteration starts, out of a solution document: of the same instance, or of one that is nearly the same.

Arcs are told by their ends (parallel ones in order), so that capacities may have changed and arcs failed or come. What
the document says decides only the time: bounds are computed from the iterate as ever.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from formulations.arrays import Array
from instances.errors import BadFile
from instances.pinned_files import PREFIX, pinned, read_pinned
from solvers.solution import MAX_BYTES, named_arrays, read_document

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from formulations.alltoall.concurrent_flow import ConcurrentFlow

    F64 = NDArray[np.float64]
    I64 = NDArray[np.int64]


class StartFile(str):
    """The path of a solution document, pinned to its contents (:mod:`instances.pinned_files`); empty for none."""

    __slots__ = ()

    def __new__(cls, text: str) -> StartFile:
        """Pin a file to what it holds now."""
        word = str(text).strip()
        return super().__new__(cls, word and pinned(f"{PREFIX}{word}", MAX_BYTES).removeprefix(PREFIX))


@dataclass(frozen=True, eq=False)
class Start:
    """Unit flows, ``(m, |K|)``, and arc lengths, ``(m,)``, on the arcs of the problem; lengths may be missing."""

    flows: F64
    lengths: F64 | None


def read_start(name: str, data: ConcurrentFlow) -> Start:
    """Read a document of ``alltoall.master`` and carry it over to the arcs of ``data``.

    Lost arcs are dropped; new ones carry nothing and are as long as the mean.

    Raises
    ------
    BadFile
        If it is no such document, or has other vertices or sources.
    """
    path, _ = read_pinned(name, MAX_BYTES, "start", "name a solution file, as solve --solution writes it")
    topology = data.topology
    document = read_document(path)
    if document.get("formulation") != "alltoall.master":
        msg = f"{path}: start takes a solution of alltoall.master, not of {document.get('formulation')!r}"
        raise BadFile(msg)
    tail, head = _arcs(document.get("arcs"), path)
    # The file's own arcs, and as many sources as the problem has.
    declared = {"g": Array((tail.size, data.groups)), "F": Array()}
    try:
        values = named_arrays(document, "values", path, lambda _: declared)
    except BadFile as wrong:
        msg = f"{wrong}; start from a solution for {data.groups} sources, as {topology.spec} has"
        raise BadFile(msg) from None
    flows, F = values["g"], values["F"]
    if not F > 0:
        msg = f"{path}: F is {float(F):g}; start from a solution with F above 0"
        raise BadFile(msg)
    if max(tail.max(initial=0), head.max(initial=0)) >= topology.n:
        msg = f"{path}: an arc ends outside the {topology.n} vertices of {topology.spec}; start from a nearer instance"
        raise BadFile(msg)
    ours, theirs = _common(topology.tail, topology.head, tail, head, topology.n)
    unit = np.zeros((topology.arcs, data.groups))
    unit[ours] = np.maximum(flows[theirs], 0.0) / float(F)
    unit[data.blocked] = 0.0
    lengths = None
    if "duals" in document:
        duals = document["duals"]
        if not isinstance(duals, dict) or "capacity" not in duals:
            msg = f"{path}: 'duals' must have 'capacity'; write the file with solve --solution"
            raise BadFile(msg)
        capacity = {"capacity": Array(tail.shape)}
        found = named_arrays({"duals": {"capacity": duals["capacity"]}}, "duals", path, lambda _: capacity)["capacity"]
        found = np.maximum(found, 0.0)
        if found.max(initial=0.0) > 0:
            lengths = np.full(topology.arcs, found.mean())
            lengths[ours] = found[theirs]
    return Start(unit, lengths)


def _arcs(entries: object, path: Path) -> tuple[I64, I64]:
    good = isinstance(entries, list) and all(
        isinstance(e, list) and len(e) == 3 and type(e[0]) is int and type(e[1]) is int and min(e[0], e[1]) >= 0
        for e in entries
    )
    if not good or not entries:
        msg = f"{path}: 'arcs' must list [tail, head, capacity]; write the file with solve --solution"
        raise BadFile(msg)
    assert isinstance(entries, list)
    try:
        ends = np.array([e[:2] for e in entries], dtype=np.int64)
    except OverflowError:
        msg = f"{path}: an arc ends at a vertex beyond any topology"
        raise BadFile(msg) from None
    return ends[:, 0], ends[:, 1]


def _common(tail: I64, head: I64, other_tail: I64, other_head: I64, n: int) -> tuple[I64, I64]:
    """Positions of the arcs that both lists have; parallel arcs pair off in order."""
    one, other = tail * n + head, other_tail * n + other_head
    most = max(one.size, other.size)
    _, ours, theirs = np.intersect1d(
        one * most + _before(one), other * most + _before(other), assume_unique=True, return_indices=True
    )
    return ours, theirs


def _before(key: I64) -> I64:
    """How many equal keys stand before each."""
    order = np.argsort(key, kind="stable")
    same = key[order]
    begins = np.flatnonzero(np.diff(same, prepend=same[:1] - 1))
    count = np.empty(key.size, dtype=np.int64)
    count[order] = np.arange(key.size) - np.repeat(begins, np.diff(np.append(begins, key.size)))
    return count

"""Solution documents from which a first-order method starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import BadFile
from opticoll.formulations.variables import Array, named_arrays, numbered
from opticoll.instances.readers.reading import PREFIX, pinned, read_pinned

if TYPE_CHECKING:
    from pathlib import Path

    from opticoll.formulations.flows.concurrent_flow import ConcurrentFlow
    from opticoll.instances.topology import F64, I64


class StartFile(str):
    """Path of a solution document, pinned to its contents; empty for none."""

    __slots__ = ()

    def __new__(cls, text: str) -> StartFile:
        """Pin a file to its current contents."""
        path = str(text).strip()
        if not path:
            return super().__new__(cls, path)
        from opticoll.solvers.solution_json import MAX_BYTES

        return super().__new__(cls, pinned(f"{PREFIX}{path}", MAX_BYTES).removeprefix(PREFIX))


@dataclass(frozen=True, eq=False)
class Start:
    """Unit flows, ``(m, |K|)``, and arc lengths, ``(m,)``, on the arcs of the problem; lengths may be missing."""

    flows: F64
    lengths: F64 | None


def read_start(name: str, data: ConcurrentFlow) -> Start:
    """Read a solution document of ``alltoall.master`` and transfer it to the arcs of ``data``.

    Arcs missing from ``data`` are dropped; new ones carry no flow and have the mean length.

    Raises
    ------
    BadFile
        If it is not such a document, or has other vertices or sources.
    """
    from opticoll.solvers.solution_json import MAX_BYTES, read_document

    path, _ = read_pinned(name, MAX_BYTES, "start", "name a solution file that opticoll wrote")
    topology = data.topology
    document = read_document(path)
    if document.get("formulation") != "alltoall.master":
        msg = f"{path}: start needs a solution of alltoall.master, not of {document.get('formulation')!r}"
        raise BadFile(msg)
    tail, head = _arcs(document.get("arcs"), path)
    # The file's own arcs, and as many sources as the problem has.
    declared = {"g": Array(numbered((tail.size, data.groups))), "F": Array()}
    try:
        values = named_arrays(document, "values", path, lambda _: declared)
    except BadFile as wrong:
        msg = f"{wrong}; start from a solution for {data.groups} sources, the number of {topology.spec}"
        raise BadFile(msg) from None
    flows, F = values["g"], values["F"]
    if not F > 0:
        msg = f"{path}: F is {float(F):g}; start from a solution with F above 0"
        raise BadFile(msg)
    if max(tail.max(initial=0), head.max(initial=0)) >= topology.n:
        msg = f"{path}: an arc ends outside the {topology.n} vertices of {topology.spec}; start from another solution"
        raise BadFile(msg)
    ours, theirs = _common(topology.tail, topology.head, tail, head, topology.n)
    unit = np.zeros((topology.arcs, data.groups))
    unit[ours] = np.maximum(flows[theirs], 0.0) / float(F)
    unit[data.blocked] = 0.0
    lengths = None
    if "duals" in document:
        duals = document["duals"]
        if not isinstance(duals, dict) or "capacity" not in duals:
            msg = f"{path}: 'duals' must have 'capacity'; save a solution as such a file"
            raise BadFile(msg)
        capacity = {"capacity": Array(numbered(tail.shape))}
        prices = named_arrays({"duals": {"capacity": duals["capacity"]}}, "duals", path, lambda _: capacity)["capacity"]
        prices = np.maximum(prices, 0.0)
        if prices.max(initial=0.0) > 0:
            lengths = np.full(topology.arcs, prices.mean())
            lengths[ours] = prices[theirs]
    return Start(unit, lengths)


def _arcs(entries: object, path: Path) -> tuple[I64, I64]:
    valid = isinstance(entries, list) and all(
        isinstance(e, list) and len(e) == 3 and type(e[0]) is int and type(e[1]) is int and min(e[0], e[1]) >= 0
        for e in entries
    )
    if not valid or not entries:
        msg = f"{path}: 'arcs' must list [tail, head, capacity]; save a solution as such a file"
        raise BadFile(msg)
    assert isinstance(entries, list)
    try:
        ends = np.array([e[:2] for e in entries], dtype=np.int64)
    except OverflowError:
        msg = f"{path}: an arc ends at a vertex number that no topology has"
        raise BadFile(msg) from None
    return ends[:, 0], ends[:, 1]


def _common(tail: I64, head: I64, other_tail: I64, other_head: I64, n: int) -> tuple[I64, I64]:
    """Positions of the arcs that both lists contain; parallel arcs are paired in order."""
    key, other_key = tail * n + head, other_tail * n + other_head
    most = max(key.size, other_key.size)
    _, ours, theirs = np.intersect1d(
        key * most + _before(key), other_key * most + _before(other_key), assume_unique=True, return_indices=True
    )
    return ours, theirs


def _before(key: I64) -> I64:
    """Number of equal keys before each key."""
    order = np.argsort(key, kind="stable")
    same = key[order]
    begins = np.flatnonzero(np.diff(same, prepend=same[:1] - 1))
    count = np.empty(key.size, dtype=np.int64)
    count[order] = np.arange(key.size) - np.repeat(begins, np.diff(np.append(begins, key.size)))
    return count

r"""Demand matrices: the amount that every rank of a topology sends to every other.

Data    D_sv >= 0 demand from rank s to rank v [shards], ``(N, N)``; D_ss = 0.
        Ranks are the terminals in ascending order.

uniform                 1 shard between all ordered pairs: the all-to-all
random:SEED             every pair independent, uniform between 0 and 2
gravity:SEED            D_sv ~ w_s w_v with independent exponential weights w (Roughan, ACM SIGCOMM CCR 35(5), 2005)
permutation:SEED        every rank sends to one other: a random permutation without fixed points
longest-matching        every rank sends to one other: a permutation of largest total hop distance, near the worst case
                        for its volume (Jyothi et al., Measuring and understanding throughput of network topologies, SC
                        2016)
file:PATH               a matrix or a list of pairs, see :mod:`opticoll.instances.readers.demand_tables`

In Python, a demand is also an N×N array in rank order, a DataFrame (N×N with labels, or with columns src, dst and an
amount), or a dict ``{(u, v): amount}`` of the topology's labels; see :class:`DemandSpec`.

All demands except those from files and data have the same total, N (N-1) shards, so their times are comparable.
The default SEED is 0. The diagonal of a matrix must be 0: data that a rank keeps uses no link. Amounts may be in any
unit (shards, bytes): F is the fraction of all amounts that is served per unit time, and T = 1/F the time in which
everything is sent, in that unit over a link of capacity 1.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import BadFile, BadInput, refuse
from opticoll.instances.readers.demand_tables import DemandTable, rank_matrix, table_of, table_of_text
from opticoll.instances.readers.reading import (
    NUMPY,
    PIN,
    PREFIX,
    decode,
    numpy_matrix,
    pinned,
    read_pinned_bytes,
    split_pairs,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from opticoll.instances.topology import F64, I64, Topology

UNIFORM = "uniform"
FORMS = "uniform, random:SEED, gravity:SEED, permutation:SEED, longest-matching or file:PATH"
#: Maximum number of ranks of a demand matrix.
MAX_RANKS = 16_384
#: Range of positive entries, and largest ratio of two, so that they are large compared with the tolerances of
#: solvers.
LEAST, MOST, RATIO = 1e-6, 1e15, 1e12
#: Smallest positive entry of the generated demands [shards].
FLOOR = 1e-6


class DemandSpec(str):
    """Demand in canonical form: seeds written out, files pinned to their contents, data named by their hash.

    Parameters
    ----------
    value
        A string, or data: an N×N array in rank order, a DataFrame, or a dict of pairs. As a string, data are
        ``matrix:HASH`` or, while they name ranks by labels, ``table:HASH``.

    Raises
    ------
    BadInput
        For data of any other kind or shape, or amounts that are negative or not finite.
    """

    data: DemandTable | None = None

    def __new__(cls, value: object) -> DemandSpec:
        """Return the canonical form; :func:`read_demand` reports errors in strings."""
        if isinstance(value, DemandSpec):
            return value
        if isinstance(value, Path):
            value = f"{PREFIX}{value}"
        if not isinstance(value, str):
            table = table_of(value)
            kind = "matrix" if table.labels is None else "table"
            made = super().__new__(cls, f"{kind}:{table.digest}")
            made.data = table
            return made
        word = pinned(str(value))
        kind, _, seed = word.partition(":")
        if kind in _SEEDED and (not seed or seed.isdecimal()):
            word = f"{kind}:{int(seed[:10] or 0)}" if len(seed) < 10 else word
        return super().__new__(cls, word)

    def on(self, topology: Topology, where: str) -> DemandSpec:
        """Replace labels by ranks of ``topology``, so that equal data have equal strings."""
        if self.data is None or self.data.labels is None:
            return self
        placed = DemandSpec(read_demand(self, topology, where))
        assert placed.data is not None
        placed.data = replace(placed.data, in_bytes=self.data.in_bytes)
        return placed


def counts_bytes(demand: str) -> bool:
    """Whether a demand, a :class:`DemandSpec` or its string, is in bytes: units of size, or a column ``bytes``."""
    data = getattr(demand, "data", None)
    if data is not None:
        return bool(data.in_bytes)
    if not demand.startswith(PREFIX):
        return False
    try:
        return _table_in(demand, "demand").in_bytes
    except BadFile:  # what reads the demand reports the fault
        return False


def traffic_of(parameters: Mapping[str, object], topology: Topology) -> F64 | None:
    """Demand ``(N, N)`` named by the parameter ``demand``; None if it is 1 between all ranks or not given."""
    stated = parameters.get("demand", UNIFORM)
    if isinstance(stated, str) and stated == UNIFORM:
        return None
    matrix = read_demand(stated, topology, "demand")
    return None if np.array_equal(matrix, uniform(topology.num_ranks)) else matrix


def same_demand(stated: str, given: DemandSpec, topology: Topology, where: str) -> bool:
    """Whether ``stated``, the string in a record or a solution, names the demand ``given`` in any form."""
    if stated == given:
        return True
    if not stated.startswith("matrix:"):
        return False
    return stated == str(DemandSpec(read_demand(given, topology, where)))


def read_demand(text: object, topology: Topology, where: str) -> F64:
    """The demand matrix D described by ``text``, or given as data, for the ranks of ``topology``, ``(N, N)``.

    Raises
    ------
    BadInput
        For an unknown kind, a seed that is not a whole number, too many ranks, or data that are no valid demand.
    BadFile
        For a file without a valid demand.
    """
    word, ranks = DemandSpec(text), topology.num_ranks
    if ranks > MAX_RANKS:
        refuse(
            where, f"a demand matrix of {ranks:,} ranks is too large; the limit is {MAX_RANKS:,}; use demand=uniform"
        )
    kind, colon, rest = word.partition(":")
    if word.data is not None:
        return checked(rank_matrix(word.data, topology, f"{where}: demand"), topology, f"{where}: demand")
    if kind in {"matrix", "table"}:
        refuse(
            where,
            f"demand={_short(word)} names data of a Python session; write them to a file and give demand=file:PATH",
        )
    if word.startswith(PREFIX) and rest:
        return _from_file(word, topology, where)
    if word == UNIFORM:
        return uniform(ranks)
    if word == "longest-matching":
        return _matched(_longest_matching(topology))
    if kind in _SEEDED:
        if not (rest.isascii() and rest.isdigit() and len(rest) < 10):
            refuse(where, f"demand={_short(word)}: SEED must be a whole number of at most 9 digits, not {_short(rest)}")
        return _SEEDED[kind](ranks, np.random.default_rng(int(rest)))
    plain = bool(colon) and kind in {UNIFORM, "longest-matching"}
    reason = f"is invalid: {kind!r} takes no argument" if plain else "is unknown"
    if not colon and Path(word).is_file():
        refuse(where, f"demand={_short(word)} is a file; write demand=file:{word}")
    if not colon and re.search(r"[./\\]", word):
        reason = "is unknown, and there is no such file"
    msg = f"{where}: demand={_short(word)} {reason}; write {FORMS}"
    raise BadInput(msg)


def _short(text: str) -> str:
    return repr(str(text)[:60])


# generators ---------------------------------------------------------------------------------------------------


def uniform(ranks: int) -> F64:
    """1 shard between all ordered pairs of ranks, ``(N, N)``."""
    return np.ones((ranks, ranks)) - np.eye(ranks)


def _random(ranks: int, draw: np.random.Generator) -> F64:
    return _to_volume(draw.uniform(0.0, 2.0, (ranks, ranks)))


def _gravity(ranks: int, draw: np.random.Generator) -> F64:
    weight = draw.exponential(size=ranks)
    return _to_volume(weight[:, None] * weight[None, :])


def _to_volume(matrix: F64) -> F64:
    """Set the diagonal to 0, scale the other entries to mean 1, and raise them to at least FLOOR."""
    ranks = matrix.shape[0]
    np.fill_diagonal(matrix, 0.0)
    matrix *= ranks * (ranks - 1) / matrix.sum()
    off = ~np.eye(ranks, dtype=bool)
    matrix[off] = np.maximum(matrix[off], FLOOR)
    return matrix


def _permutation(ranks: int, draw: np.random.Generator) -> F64:
    """A random derangement, by rejection; about one draw in e is accepted."""
    while True:
        image = draw.permutation(ranks)
        if not (image == np.arange(ranks)).any():
            return _matched(image)


def _matched(image: I64) -> F64:
    """Demand of N-1 shards from every rank to its image."""
    matrix = np.zeros((image.size, image.size))
    matrix[np.arange(image.size), image] = image.size - 1.0
    return matrix


def _longest_matching(topology: Topology) -> I64:
    from scipy.optimize import linear_sum_assignment

    hops = topology.hops[:, topology.terminals].copy()
    hops[~np.isfinite(hops)] = -1.0 - topology.n  # avoid unreachable pairs, and even more the diagonal
    np.fill_diagonal(hops, -2.0 * topology.n * topology.num_ranks)
    return np.asarray(linear_sum_assignment(hops, maximize=True)[1], dtype=np.int64)


_SEEDED: dict[str, Callable[[int, np.random.Generator], F64]] = {
    "random": _random,
    "gravity": _gravity,
    "permutation": _permutation,
}


# files --------------------------------------------------------------------------------------------------------


def _table_in(word: str, where: str) -> DemandTable:
    """The demand in the file that ``word`` names."""
    remedy = "name a CSV, JSON or NumPy file with a demand"
    word, pairs = split_pairs(word)
    path, data = read_pinned_bytes(word, f"{where}: demand file", remedy)
    what = f"{where}: {path}"
    if data.startswith(NUMPY) and pairs is None:
        return DemandTable(numpy_matrix(data, what))
    return table_of_text(decode(data, what, remedy), path.suffix.lower() == ".json", what, pairs)


def _from_file(word: str, topology: Topology, where: str) -> F64:
    what = f"{where}: {word.removeprefix(PREFIX).partition(PIN)[0]}"
    return checked(rank_matrix(_table_in(word, where), topology, what), topology, what)


def refuse_amounts(matrix: F64, names: Sequence[str], what: str) -> None:
    """Refuse amounts between senders that are not finite, negative or on the diagonal.

    Raises
    ------
    BadFile
        With the names of both ends.
    """
    for s, v in np.argwhere(~(np.isfinite(matrix) & (matrix >= 0)))[:1].tolist():
        refuse(what, f"{names[s]} sends {matrix[s, v]} to {names[v]}; give finite nonnegative numbers", BadFile)
    for s in np.flatnonzero(np.diagonal(matrix))[:1].tolist():
        refuse(what, f"{names[s]} sends {matrix[s, s]:g} to itself; write 0 on the diagonal", BadFile)


def checked(matrix: F64, topology: Topology, what: str) -> F64:
    """Return ``matrix`` if it is a valid demand.

    Raises
    ------
    BadFile
        For entries that are not finite, negative, on the diagonal, too small, too large or too unequal, or all 0.
    """
    refuse_amounts(matrix, [f"rank {name}" for name in topology.ranks], what)
    positive = matrix[matrix > 0]
    if not positive.size:
        refuse(what, "no rank sends anything; give at least one positive number", BadFile)
    least, most = float(positive.min()), float(positive.max())
    if least < LEAST or most > MOST or most > RATIO * least:
        msg = (
            f"{what}: positive demands are {least:g} .. {most:g}, outside {LEAST:g} .. {MOST:g} or more than a factor "
            f"of {RATIO:g} apart; use another unit, and 0 for negligible demands"
        )
        raise BadFile(msg)
    return matrix + 0.0  # -0.0 becomes 0.0

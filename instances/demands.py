r"""Demand matrices: the amount that every rank of a topology sends to every other.

Data    D_sv >= 0 demand from rank s to rank v [shards], ``(N, N)``; D_ss = 0.
        Ranks are the terminals in ascending order.

uniform                 1 shard between all ordered pairs: the all-to-all
random:SEED             every pair independently, uniform between 0 and 2
gravity:SEED            D_sv ~ w_s w_v with independent exponential weights w (Roughan, ACM SIGCOMM CCR 35(5), 2005)
permutation:SEED        every rank to one other, a random permutation without fixed points
longest-matching        every rank to one other, a permutation of largest total hop distance: near the worst case of
                        its volume (Jyothi et al., Measuring and understanding throughput of network topologies, SC
                        2016)
file:PATH               an N×N matrix: in ``.json`` a list of lists, optionally under the key ``demand``; in any other
                        file one row per line, separated by commas or blanks

All demands except those from files have the same total, N (N-1) shards, so that their times are comparable. The
default SEED is 0. The diagonal of a file must be 0: data that a rank keeps uses no link.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import BadFile, BadInput
from opticoll.instances.readers.files import matrix_of
from opticoll.instances.readers.untrusted import PREFIX, parse_json, pinned, read_pinned

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from opticoll.instances.digraph import Topology

    F64 = NDArray[np.float64]

UNIFORM = "uniform"
FORMS = "uniform, random:SEED, gravity:SEED, permutation:SEED, longest-matching or file:PATH"
#: Largest file that is read [bytes].
MAX_BYTES = 256 << 20
#: Most ranks of a demand matrix.
MAX_RANKS = 16_384
#: Range of positive entries [shards], so that they are large compared with the tolerances of solvers.
LEAST, MOST = 1e-6, 1e6


class DemandSpec(str):
    """A demand in its canonical form: seeds written out, files pinned to their contents."""

    __slots__ = ()

    def __new__(cls, text: str) -> DemandSpec:
        """The canonical form of ``text``; :func:`read_demand` reports errors."""
        word = pinned(str(text), MAX_BYTES)
        kind, _, seed = word.partition(":")
        if kind in _SEEDED and (not seed or seed.isdecimal()):
            word = f"{kind}:{int(seed[:10] or 0)}" if len(seed) < 10 else word
        return super().__new__(cls, word)


def read_demand(text: str, topology: Topology, where: str) -> F64:
    """The demand matrix D described by ``text`` for the ranks of ``topology``, ``(N, N)``.

    Raises
    ------
    BadInput
        For an unknown kind, a seed that is not a whole number, or too many ranks.
    BadFile
        For a file without a valid matrix.
    """
    word, ranks = DemandSpec(text), topology.ranks
    if ranks > MAX_RANKS:
        msg = (
            f"{where}: a demand matrix of {ranks:,} ranks is too large; the limit is {MAX_RANKS:,}; use demand=uniform"
        )
        raise BadInput(msg)
    kind, colon, rest = word.partition(":")
    if word.startswith(PREFIX) and rest:
        return _from_file(word, topology, where)
    if word == UNIFORM:
        return _uniform(ranks)
    if word == "longest-matching":
        return _matched(_longest_matching(topology))
    if kind in _SEEDED:
        if not (rest.isascii() and rest.isdigit() and len(rest) < 10):
            msg = f"{where}: demand={_short(word)}: SEED must be a whole number of at most 9 digits, not {_short(rest)}"
            raise BadInput(msg)
        return _SEEDED[kind](ranks, np.random.default_rng(int(rest)))
    plain = bool(colon) and kind in {UNIFORM, "longest-matching"}
    reason = f"is invalid: {kind!r} takes no argument" if plain else "is unknown"
    msg = f"{where}: demand={_short(word)} {reason}; write {FORMS}"
    raise BadInput(msg)


def _short(text: str) -> str:
    return repr(str(text)[:60])


# generators ---------------------------------------------------------------------------------------------------


def _uniform(ranks: int) -> F64:
    return np.ones((ranks, ranks)) - np.eye(ranks)


def _random(ranks: int, draw: np.random.Generator) -> F64:
    return _to_volume(draw.uniform(0.0, 2.0, (ranks, ranks)))


def _gravity(ranks: int, draw: np.random.Generator) -> F64:
    weight = draw.exponential(size=ranks)
    return _to_volume(weight[:, None] * weight[None, :])


def _to_volume(matrix: F64) -> F64:
    """Set the diagonal to 0, scale the mean of the other entries to 1, and raise these to at least LEAST."""
    ranks = matrix.shape[0]
    np.fill_diagonal(matrix, 0.0)
    matrix *= ranks * (ranks - 1) / matrix.sum()
    off = ~np.eye(ranks, dtype=bool)
    matrix[off] = np.maximum(matrix[off], LEAST)
    return matrix


def _permutation(ranks: int, draw: np.random.Generator) -> F64:
    """A random derangement, by rejection; about one draw in e is accepted."""
    while True:
        image = draw.permutation(ranks)
        if not (image == np.arange(ranks)).any():
            return _matched(image)


def _matched(image: NDArray[np.int64]) -> F64:
    """N-1 shards from every rank to its image."""
    matrix = np.zeros((image.size, image.size))
    matrix[np.arange(image.size), image] = image.size - 1.0
    return matrix


def _longest_matching(topology: Topology) -> NDArray[np.int64]:
    from scipy.optimize import linear_sum_assignment

    hops = topology.hops[:, topology.terminals].copy()
    hops[~np.isfinite(hops)] = -1.0 - topology.n  # avoid unreachable pairs, and even more the diagonal
    np.fill_diagonal(hops, -2.0 * topology.n * topology.ranks)
    return np.asarray(linear_sum_assignment(hops, maximize=True)[1], dtype=np.int64)


_SEEDED: dict[str, Callable[[int, np.random.Generator], F64]] = {
    "random": _random, "gravity": _gravity, "permutation": _permutation,
}  # fmt: skip


# files --------------------------------------------------------------------------------------------------------


def _from_file(word: str, topology: Topology, where: str) -> F64:
    ranks = topology.ranks
    path, text = read_pinned(word, MAX_BYTES, f"{where}: demand file", "name a CSV or JSON file with a matrix")
    what = f"{where}: {path}"
    if path.suffix.lower() == ".json":
        matrix = _json_matrix(text, ranks, what)
    else:
        matrix = matrix_of(text, ranks, what, f"rank of {topology.spec}")
    return checked(matrix, what)


def checked(matrix: F64, what: str) -> F64:
    """``matrix``, if it is a valid demand.

    Raises
    ------
    BadFile
        For entries that are not finite, negative, on the diagonal, out of LEAST .. MOST, or all 0.
    """
    bad = ~(np.isfinite(matrix) & (matrix >= 0))
    if bad.any():
        s, v = np.argwhere(bad)[0].tolist()
        msg = f"{what}: rank {s} sends {matrix[s, v]} shards to rank {v}; give finite nonnegative numbers"
        raise BadFile(msg)
    own = np.flatnonzero(np.diagonal(matrix))
    if own.size:
        s = int(own[0])
        msg = f"{what}: rank {s} sends {matrix[s, s]:g} shards to itself; write 0 on the diagonal"
        raise BadFile(msg)
    positive = matrix[matrix > 0]
    if not positive.size:
        msg = f"{what}: no rank sends anything; give at least one positive number"
        raise BadFile(msg)
    least, most = float(positive.min()), float(positive.max())
    if least < LEAST or most > MOST:
        msg = (
            f"{what}: positive demands are {least:g} .. {most:g} shards, outside {LEAST:g} .. {MOST:g}; "
            "use another unit, and 0 for negligible demands"
        )
        raise BadFile(msg)
    return matrix + 0.0  # -0.0 becomes 0.0


def _json_matrix(text: str, ranks: int, what: str) -> F64:
    document = parse_json(text, what, f"write a list of {ranks} rows")
    rows = document.get("demand") if isinstance(document, dict) else document
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
            msg = f"{what}, row {s + 1}: a number is too large; use another unit"
            raise BadFile(msg) from None
    return matrix

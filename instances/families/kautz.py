"""Kautz, de Bruijn and generalized Kautz digraphs: dense digraphs of given degree and diameter."""

from __future__ import annotations

from itertools import pairwise
from math import log
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import BadInput
from opticoll.instances.digraph import MAX_VERTICES, Topology, check_size
from opticoll.instances.spec import check_positive, family

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray


def _power(d: int, exponent: int, name: str) -> int:
    """``d**exponent``, refused as soon as it exceeds the largest number of vertices."""
    value = 1
    for _ in range(exponent if d > 1 else 0):
        value *= d
        if value > MAX_VERTICES:
            msg = f"{name}: {d}**{exponent} vertices exceed the limit of {MAX_VERTICES}; choose a smaller instance"
            raise BadInput(msg)
    return value


def _digraph(head: NDArray[np.int64], loops: str, name: str, labels: tuple[str, ...] | None = None) -> Topology:
    """The topology in which node v has arcs to ``head[v]``; ``head`` has shape ``(n, d)``."""
    n, d = head.shape
    tail, heads = np.repeat(np.arange(n), d), head.ravel()
    keep = np.ones(n * d, dtype=bool) if loops == "keep" else tail != heads
    return Topology(n, tail[keep], heads[keep], spec=name, labels=labels)


def _check_loops(loops: str, name: str) -> None:
    if loops not in {"drop", "keep"}:
        msg = f"{name}: loops={loops!r} is unknown; write loops=drop or loops=keep"
        raise BadInput(msg)


def _spelled(words: NDArray[np.int64]) -> tuple[str, ...]:
    """Labels for words ``(n, length)``, with dots between the letters if one needs two digits."""
    between = "" if words.max(initial=0) < 10 else "."
    return tuple(between.join(map(str, word)) for word in words.tolist())


def _letter_swaps(words: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Swaps of neighbouring letters, as permutations of the words ``(n, length)`` that name the vertices."""
    count = int(words.max()) + 1
    place_values = count ** np.arange(words.shape[1])
    keys = words @ place_values
    order = np.argsort(keys)
    for a, b in pairwise(range(count)):
        letter = np.arange(count)
        letter[[a, b]] = b, a
        yield order[np.searchsorted(keys, letter[words] @ place_values, sorter=order)]


def _kautz_words(d: int, D: int) -> NDArray[np.int64]:
    """Letters of every vertex: the first one, and each later one by its distance - 1 from the one before."""
    length = D if d > 1 else min(D, 2)  # two letters alternate: the first one determines the word
    shorter = d ** (D - 1)
    first, steps = np.divmod(np.arange(shorter * (d + 1)), shorter)
    words = np.empty((first.size, length), dtype=np.int64)
    words[:, 0] = first
    for k in range(1, length):
        words[:, k] = (words[:, k - 1] + steps // d ** (D - 1 - k) % d + 1) % (d + 1)
    return words


def _debruijn_words(d: int, D: int) -> NDArray[np.int64]:
    """The digits of 0 .. d^D - 1 in base d, most significant first."""
    return np.asarray(np.arange(d**D)[:, None] // d ** np.arange(D - 1, -1, -1) % d, dtype=np.int64)


def _genkautz_swaps(n: int, d: int, **_: object) -> Iterator[NDArray[np.int64]]:
    r"""Letter swaps for :math:`n = d^k`, where the generalized Kautz digraph is the de Bruijn digraph.

    With :math:`(d+1) c = -d \pmod n`, the digits of :math:`x - c` in base :math:`-d` are shifted by one along each
    arc.
    """
    length = round(log(n, d)) if 1 < d < n else 0
    if d**length != n:
        return
    rest = (np.arange(n) + d * pow(d + 1, -1, n)) % n
    words = np.empty((n, length), dtype=np.int64)
    for k in range(length):
        words[:, k] = rest % d
        rest = (words[:, k] - rest) // d % d ** (length - k)
    yield from _letter_swaps(words)


@family(
    "kautz",
    example="kautz:d=2,D=2",
    source="Kautz, Proc. 1968 Symp. Switching & Automata Theory",
    automorphisms=lambda d, D: _letter_swaps(_kautz_words(d, D)),
)
def kautz(d: int, D: int) -> Topology:
    r"""Kautz digraph: words without equal neighbours, shifted by one letter along each arc.

    Nodes are the words :math:`x_1 … x_D` over :math:`d + 1` letters with :math:`x_i \ne x_{i+1}`; arcs
    :math:`x_1 … x_D \to x_2 … x_D y` for each :math:`y \ne x_D`. Order :math:`d^D + d^{D-1}`, out- and
    in-degree :math:`d`, diameter :math:`D`, no loops; isomorphic to ``genkautz`` of that order and degree
    (Imase & Itoh 1983). Labels are the words.

    Parameters
    ----------
    d
        Degree, at least 1.
    D
        Diameter (length of the words), at least 1.

    Raises
    ------
    BadInput
        If a parameter is out of range.
    """
    check_positive(d, "d", "kautz")
    check_positive(D, "D", "kautz")
    shorter = _power(d, D - 1, "kautz")
    n = shorter * (d + 1)
    check_size(n, n * d, "kautz")
    words = _kautz_words(d, D)
    first, steps = np.divmod(np.arange(n), shorter)
    new = np.arange(d)
    if words.shape[1] == 1:
        head = (first[:, None] + new + 1) % (d + 1)
    else:
        head = (words[:, 1] * shorter + steps * d % shorter)[:, None] + new
    return _digraph(head, "keep", "kautz", _spelled(words))


@family(
    "debruijn",
    example="debruijn:d=2,D=3",
    source="de Bruijn, Proc. Kon. Ned. Akad. Wet. 49, 1946",
    automorphisms=lambda d, D, **_: _letter_swaps(_debruijn_words(d, D)),
)
def debruijn(d: int, D: int, loops: str = "drop") -> Topology:
    r"""De Bruijn digraph: all words, shifted by one letter along each arc.

    Node :math:`i` has arcs to :math:`d i + j \bmod d^D` for :math:`0 \le j < d`; its label is its word,
    :math:`i` in base :math:`d`. Order :math:`d^D`, diameter :math:`D`. The :math:`d` constant words carry
    a self-loop each, which carries no flow: dropped by default, so that those nodes have degree
    :math:`d - 1` and all others :math:`d`.

    Parameters
    ----------
    d
        Degree and number of letters, at least 2.
    D
        Diameter (length of the words), at least 1.
    loops
        ``drop`` or ``keep``.

    Raises
    ------
    BadInput
        If a parameter is out of range.
    """
    check_positive(d, "d", "debruijn", least=2)
    check_positive(D, "D", "debruijn")
    _check_loops(loops, "debruijn")
    n = _power(d, D, "debruijn")
    check_size(n, n * d, "debruijn")
    head = (d * np.arange(n)[:, None] + np.arange(d)) % n
    return _digraph(head, loops, "debruijn", _spelled(_debruijn_words(d, D)))


@family(
    "genkautz",
    example="genkautz:n=16,d=4",
    source="Imase & Itoh, IEEE Trans. Computers C-32(8), 1983",
    automorphisms=_genkautz_swaps,
)
def genkautz(n: int, d: int, loops: str = "drop") -> Topology:
    r"""Generalized Kautz (Imase-Itoh) digraph: every order and degree, near the shortest distances.

    Node :math:`i` has arcs to :math:`-d i - j \bmod n` for :math:`1 \le j \le d`. Out- and in-degree
    :math:`d`, counting loops and parallel arcs; diameter at most :math:`\lceil \log_d n \rceil` for
    :math:`d \ge 2`; strongly connected for :math:`d \ge 2`. With :math:`g = \gcd(d+1, n)` exactly
    :math:`g \lfloor d/g \rfloor` arcs are self-loops (none if and only if :math:`d+1` divides :math:`n`).
    A self-loop carries no flow: dropped by default, so that its node has degree below :math:`d`. Parallel
    arcs, which exist if and only if :math:`d > n`, are kept, each with capacity 1.

    Parameters
    ----------
    n
        Number of nodes, at least 2.
    d
        Degree, at least 1 (1 gives the involution :math:`i \to -i-1`, disconnected for :math:`n > 2`).
    loops
        ``drop`` or ``keep``.

    Raises
    ------
    BadInput
        If a parameter is out of range.
    """
    check_positive(n, "n", "genkautz", least=2)
    check_positive(d, "d", "genkautz")
    _check_loops(loops, "genkautz")
    check_size(n, n * d, "genkautz")
    nodes = np.arange(n)
    head = (-d * nodes[:, None] - np.arange(1, d + 1)) % n
    return _digraph(head, loops, "genkautz")

r"""LuMorph: collectives on programmable photonic meshes, in rounds of circuits.

Circuit lists, and cut bounds on their overlap.

Source  LuMorph, section 4 and Appendix B (recursive doubling, quadrupling), Appendix A (arbitrary pairs), section 3.1
        (overlap); the bounds are our own
Data    k = (s_k, d_k) circuits, k in L; s_k != d_k vertices, pairs may repeat; arcs a of a topology

Lists
-----
recursive-doubling:STEP     partners differ in binary digit STEP of their rank, STEP = 0 .. log2 N - 1
recursive-quadrupling:STEP  partners differ in one digit in base 4: three peers each
recursive:RADIX:STEP        the same in base RADIX: RADIX - 1 peers each, in one of ceil(log_RADIX N) steps. N must be
                            RADIX^m q with 1 <= q < RADIX; the groups of the last step have q members
permutation                 every rank to its image under a random permutation (``seed``), without fixed points
all                         all ordered pairs
file:PATH                   a CSV of lines ``source,destination`` or a JSON list of such pairs, by label or number

Ranks are the terminals in ascending order: row-major on a mesh.

Bounds
------
Every circuit with s_k inside a vertex set S and d_k outside crosses an arc that leaves S. Hence, for every S,

    max_a load_a >= ceil( |{k : s_k in S, d_k not in S}| / |{a : tail in S, head not in S}| ).

All axis-parallel rectangles of a grid are evaluated at once, on every topology whose vertices have grid positions
(arcs may be missing or wrap around, since any S gives a bound on any graph). Straight cuts are the rectangles that span
the grid. The bounding boxes of circuits and arcs are counted in a 4-D histogram whose cumulative sums give the number
inside each rectangle, in O(R^2 C^2).

Closed form. On an intact R x C mesh with row-major ranks, where the groups of a recursive exchange align with the rows
(they divide a row, fill rows, or are whole rows apart), the busiest arc of a step carries exactly

    max( sigma_c g_r floor(g_c^2 / 4),  sigma_r g_c floor(g_r^2 / 4) )

circuits: a group spans g_c positions sigma_c apart in a row and g_r rows sigma_r apart. The straight cut through the
middle of a group gives the bound, and row-first (XY) routes attain it.

Costs of an all-reduce and of transfers between layers according to LuMorph's authors, by variant.

Source  LuMorph, sections 4 and 6.1, appendix B, figures 7, 8a, 8b; the published simulator (commit 53cbbf7), as
        described by its readers

N GPUs, buffer B: T = rounds (alpha + r) + volume B / rate, see :func:`formula`.

    printed  sections 4 and 6.1, appendix B: alpha 0.7 us, r 3.7 us, 300 GB/s; the paper prints no formula for tree, D&C
    plotted  figures 7, 8a and 8b: 300 GiB/s, LUMORPH-4 with 4/3 of the volume, the tree without r and with 4 B, D&C
             with log2 N - 1 rounds of the whole buffer
    coded    the published simulator: as plotted, but LUMORPH-4 has r = 5 us, and the tree pays r; D&C is not coded
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from math import ceil, log2
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from opticoll.errors import BadFile, BadInput
from opticoll.formulations.model import Bound
from opticoll.instances.readers import parse_json, pinned, read_pinned

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from opticoll.instances.digraph import I64, Topology


PAPER = "LuMorph: programmable optical interconnects for server-scale multi-GPU systems"


FORMS = "recursive-doubling:STEP, recursive-quadrupling:STEP, recursive:RADIX:STEP, permutation, all or file:PATH"
#: Maximum size of a circuit file [bytes], and maximum length of a list.
MAX_BYTES = 32 << 20
MAX_CIRCUITS = 1_000_000
_RADIX = {"recursive-doubling": 2, "recursive-quadrupling": 4}
#: Maximum entries of the histogram of all rectangles; on larger grids only straight cuts are evaluated.
MOST_RECTANGLES = 4_000_000


class CircuitSpec(str):
    """Specification of a circuit list; ``file:`` strings are pinned to the contents of the file.

    See :mod:`opticoll.instances.readers`.
    """

    __slots__ = ()

    def __new__(cls, text: str) -> CircuitSpec:
        """Pin a file to its current contents."""
        return super().__new__(cls, pinned(str(text), MAX_BYTES))


@dataclass(frozen=True, eq=False)
class Circuits:
    """A list of circuits.

    Parameters
    ----------
    sources, targets
        Vertices s_k and d_k, each ``(|L|,)``.
    name
        Description of the list.
    exchange
        ``(stride, group)`` for a step of a recursive exchange: the ranks of a group are ``stride`` apart.
    """

    sources: I64
    targets: I64
    name: str
    exchange: tuple[int, int] | None = None

    @property
    def count(self) -> int:
        """Number of circuits |L|."""
        return int(self.sources.size)


def read_circuits(text: str, topology: Topology, seed: int, where: str) -> Circuits:
    """Read the circuit list ``text`` on the ranks of ``topology``.

    Raises
    ------
    BadInput
        For an unknown kind, a step or radix out of range, a radix that does not fit the ranks, or a negative seed.
    BadFile
        For a file that is not a circuit list, names a vertex that is not a rank, or joins a vertex to itself.
    """
    word = str(text).strip()
    kind, colon, rest = word.partition(":")
    if kind == "file" and colon:
        return _from_file(word, topology, where)
    if kind in _RADIX and colon:
        return exchange(topology, _RADIX[kind], _whole(rest, "STEP", word, where), where)
    if kind == "recursive" and rest.count(":") == 1:
        radix, step = (
            _whole(part, name, word, where) for part, name in zip(rest.split(":"), ("RADIX", "STEP"), strict=True)
        )
        return exchange(topology, radix, step, where)
    if word == "permutation":
        if seed < 0:
            msg = f"{where}: seed={seed} is negative; give 0 or more"
            raise BadInput(msg)
        image = np.random.default_rng(seed).permutation(topology.ranks)
        moved = np.flatnonzero(image != np.arange(topology.ranks))
        return _of_ranks(topology, moved, image[moved], f"random permutation, seed {seed}", where)
    if word == "all":
        if topology.ranks**2 > MAX_CIRCUITS:
            count = topology.ranks * (topology.ranks - 1)
            msg = f"{where}: circuits=all has {count:,} circuits; the limit is {MAX_CIRCUITS:,}"
            raise BadInput(msg)
        s, d = np.nonzero(~np.eye(topology.ranks, dtype=bool))
        return _of_ranks(topology, s, d, "all ordered pairs", where)
    msg = f"{where}: circuits={word!r} is not a circuit list; use {FORMS}"
    raise BadInput(msg)


def _whole(text: str, name: str, word: str, where: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        msg = f"{where}: {name} of circuits={word!r} must be a whole number, not {text!r}"
        raise BadInput(msg)
    return int(text)


def _of_ranks(topology: Topology, s: I64, d: I64, name: str, where: str, of: tuple[int, int] | None = None) -> Circuits:
    if not s.size:
        msg = f"{where}: {name} of {topology.spec} has no circuits; use a larger instance or another list"
        raise BadInput(msg)
    ends = topology.terminals
    return Circuits(ends[s], ends[d], name, of)


def exchange_steps(ranks: int, radix: int, where: str = "recursive exchange") -> list[tuple[int, int]]:
    """``(stride, group)`` of every step of a recursive exchange: strides 1, RADIX, RADIX^2, ..., ``group`` ranks each.

    Raises
    ------
    BadInput
        For a radix out of 2 .. ranks, or ranks that are not RADIX^m q with 1 <= q < RADIX.
    """
    if ranks < 2 or not 2 <= radix <= ranks:
        msg = f"{where}: radix {radix} is out of range; use 2..{ranks}, the number of ranks"
        raise BadInput(msg)
    steps, stride = [], 1
    while stride < ranks:
        group = min(radix, ranks // stride)
        if ranks % (stride * group):
            msg = f"{where}: {ranks} ranks are not a power of {radix} times a factor below {radix}; use another radix"
            raise BadInput(msg)
        steps.append((stride, group))
        stride *= group
    return steps


def exchange(topology: Topology, radix: int, step: int, where: str) -> Circuits:
    """All ordered pairs within the groups of one step (both directions: a circuit is one-way).

    Raises
    ------
    BadInput
        For a radix that does not fit the ranks, or a step out of range.
    """
    steps = exchange_steps(topology.ranks, radix, where)
    if not 0 <= step < len(steps):
        last = f"0..{len(steps) - 1}"
        msg = f"{where}: step {step} is out of range; radix {radix} on {topology.ranks} ranks has steps {last}"
        raise BadInput(msg)
    stride, group = steps[step]
    rank = np.arange(topology.ranks)
    digit = rank // stride % group
    turn = np.arange(1, group)
    partner = rank[:, None] + ((digit[:, None] + turn) % group - digit[:, None]) * stride
    name = f"recursive exchange of radix {radix}, step {step}"
    return _of_ranks(topology, np.repeat(rank, group - 1), partner.ravel(), name, where, (stride, group))


def _from_file(word: str, topology: Topology, where: str) -> Circuits:
    path, text = read_pinned(word, MAX_BYTES, f"{where}: circuit file", "name a CSV or JSON file of pairs")
    rows = _json_rows(text, path, where) if path.suffix.lower() == ".json" else _csv_rows(text, path, where)
    if len(rows) > MAX_CIRCUITS:
        msg = f"{where}: {path} has {len(rows):,} circuits; the limit is {MAX_CIRCUITS:,}"
        raise BadFile(msg)
    if not rows:
        msg = f"{where}: {path} contains no circuits; write one source,destination per line"
        raise BadFile(msg)
    return _of_rows(rows, path, topology, where)


def _json_rows(text: str, path: Path, where: str) -> list[tuple[str, Any]]:
    document = parse_json(text, f"{where}: {path}", "write a list of [source, destination]")
    listed = document.get("circuits") if isinstance(document, dict) else document
    if not isinstance(listed, list):
        msg = (
            f"{where}: {path} must contain a list of [source, destination], or an object with such a list as 'circuits'"
        )
        raise BadFile(msg)
    return [(f"entry {number}", row) for number, row in enumerate(listed, 1)]


def _csv_rows(text: str, path: Path, where: str) -> list[tuple[str, Any]]:
    rows: list[tuple[str, Any]] = []
    try:
        for number, row in enumerate(csv.reader(text.splitlines()), 1):
            cells = [cell.strip() for cell in row]
            heading = not rows and [cell.lower() for cell in cells] in (["source", "destination"], ["source", "target"])
            if any(cells) and not cells[0].startswith("#") and not heading:
                rows.append((f"line {number}", cells))
    except csv.Error as reason:
        msg = f"{where}: {path} is not valid CSV ({reason}); write one source,destination per line"
        raise BadFile(msg) from None
    return rows


def _of_rows(rows: list[tuple[str, Any]], path: Path, topology: Topology, where: str) -> Circuits:
    number = {str(v): v for v in range(topology.n)} | {label: v for v, label in enumerate(topology.labels)}
    ranks = set(topology.terminals.tolist())
    ends = np.empty((len(rows), 2), dtype=np.int64)
    for k, (place, row) in enumerate(rows):
        if not isinstance(row, list) or len(row) != 2 or any(type(cell) not in (int, str) for cell in row):
            msg = f"{where}: {path}, {place}: {str(row)[:60]!r} is not a pair; write source and destination"
            raise BadFile(msg)
        for side, cell in enumerate(row):
            vertex = number.get(str(cell))
            if vertex is None or vertex not in ranks:
                problem = "is a relay, not a GPU," if vertex is not None else "is not a vertex"
                known = f"{topology.spec} (vertices 0..{topology.n - 1})"
                msg = f"{where}: {path}, {place}: {str(cell)[:60]!r} {problem} of {known}"
                raise BadFile(msg)
            ends[k, side] = vertex
        if ends[k, 0] == ends[k, 1]:
            msg = f"{where}: {path}, {place}: the circuit joins {str(row[0])!r} to itself; remove it"
            raise BadFile(msg)
    return Circuits(ends[:, 0].copy(), ends[:, 1].copy(), f"file {path.name}")


def grid_shape(topology: Topology) -> tuple[int, int] | None:
    """Rows and columns if the vertices have row-major grid positions, else None; extra dimensions count as rows.

    The shape describes the positions of the vertices, not which arcs exist.
    """
    shape = getattr(topology, "shape", None) or dict(topology.parameters).get("shape")
    if not shape or not all(isinstance(size, int) and size > 0 for size in shape):
        return None
    rows, columns = int(np.prod(shape[:-1], dtype=np.int64)), int(shape[-1])
    return (rows, columns) if rows * columns == topology.n else None


def is_mesh(topology: Topology, shape: tuple[int, int]) -> bool:
    """Whether the arcs are exactly those of the intact mesh of this shape, one in each direction."""
    rows, columns = shape
    place = np.arange(rows * columns).reshape(shape)
    links = np.concatenate(
        [
            np.stack([place[:, :-1].ravel(), place[:, 1:].ravel()], axis=1),
            np.stack([place[:-1].ravel(), place[1:].ravel()], axis=1),
        ]
    )
    tail, head = np.concatenate([links, links[:, ::-1]]).T
    order = np.lexsort((head, tail))
    return np.array_equal(tail[order], topology.tail) and np.array_equal(head[order], topology.head)


def _per_arc(crossing: I64, arcs: I64) -> I64:
    """Number of circuits divided by arcs, rounded up; 0 where no circuit crosses."""
    return np.where(crossing > 0, -(-crossing // np.maximum(arcs, 1)), 0)


def _inside(tail: I64, head: I64, shape: tuple[int, int]) -> tuple[I64, I64, I64]:
    """Numbers of pairs, tails and heads in rectangles ``[r1, r2] x [c1, c2]``, ``(R, R, C, C)`` by r1, r2, c1, c2."""
    rows, columns = shape
    boxes = []
    for first, second in ((tail, head), (tail, tail), (head, head)):
        r, c = np.divmod(np.stack([first, second]), columns)
        where = (r.min(axis=0), r.max(axis=0), c.min(axis=0), c.max(axis=0))
        flat = np.ravel_multi_index(where, (rows, rows, columns, columns))
        count = np.bincount(flat, minlength=(rows * columns) ** 2).reshape(rows, rows, columns, columns)
        count = np.flip(np.flip(count, 0).cumsum(axis=0), 0).cumsum(axis=1)
        boxes.append(np.flip(np.flip(count, 2).cumsum(axis=2), 2).cumsum(axis=3))
    return boxes[0], boxes[1], boxes[2]


def rectangle_cuts(topology: Topology, pairs: tuple[I64, I64], shape: tuple[int, int]) -> Bound:
    """Best bound of all rectangles, in both directions; ``detail`` gives rows and columns, both ends included."""
    inside, sources, targets = _inside(*pairs, shape)
    arcs, tails, heads = _inside(topology.tail, topology.head, shape)
    value = np.maximum(_per_arc(sources - inside, tails - arcs), _per_arc(targets - inside, heads - arcs))
    r1, r2, c1, c2 = (int(i) for i in np.unravel_index(int(value.argmax()), value.shape))
    reason = f"circuits over arcs across the border of rows {r1}..{r2}, columns {c1}..{c2}"
    return Bound("rectangle-cut", float(value.max()), reason, detail={"rows": [r1, r2], "columns": [c1, c2]})


def straight_cuts(topology: Topology, pairs: tuple[I64, I64], shape: tuple[int, int]) -> Bound:
    """Best bound of all straight lines across the grid, in both directions."""
    columns = shape[1]
    best, line = 0, "none"
    for axis, size in enumerate(shape):
        s, d, u, v = (np.divmod(ends, columns)[axis] for ends in (*pairs, topology.tail, topology.head))
        for start, end, tail, head in ((s, d, u, v), (d, s, v, u)):
            # Number that cross from index <= i to index > i, for every i.
            crossing, arcs = (
                np.bincount(a[a < b], minlength=size).cumsum() - np.bincount(b[a < b], minlength=size).cumsum()
                for a, b in ((start, end), (tail, head))
            )
            value = _per_arc(crossing, arcs)
            if int(value.max()) > best:
                best, line = (
                    int(value.max()),
                    f"{('row', 'column')[axis]}s {int(value.argmax())} and {int(value.argmax()) + 1}",
                )
    return Bound("straight-cut", float(best), f"circuits over arcs across the line between {line}")


def vertex_cuts(topology: Topology, pairs: tuple[I64, I64]) -> Bound:
    """Best bound of single vertices: circuits out of or into a vertex over its arcs in that direction."""
    ends = ((pairs[0], topology.out_degree), (pairs[1], topology.in_degree))
    value = max(int(_per_arc(np.bincount(v, minlength=topology.n), degree).max()) for v, degree in ends)
    return Bound("vertex-cut", float(value), "circuits that one GPU sends or receives, over its arcs in that direction")


def exchange_overlap(circuits: Circuits, shape: tuple[int, int]) -> int | None:
    """Closed form for an intact mesh; None if the groups do not align with its rows."""
    if circuits.exchange is None:
        return None
    (stride, group), (_, columns) = circuits.exchange, shape
    if stride * group <= columns:
        aligned, across, along = columns % (stride * group) == 0, (stride, group), (1, 1)
    elif stride >= columns:
        aligned, across, along = stride % columns == 0, (1, 1), (stride // columns, group)
    else:
        wide = columns // stride
        aligned = columns % stride == 0 and group % wide == 0
        across, along = (stride, wide), (1, group // wide)
    if not aligned:
        return None
    return max(across[0] * along[1] * (across[1] ** 2 // 4), along[0] * across[1] * (along[1] ** 2 // 4))


def cut_bounds(topology: Topology, pairs: tuple[I64, I64]) -> list[Bound]:
    """Every cut bound that applies, best first."""
    shape = grid_shape(topology)
    cuts = [vertex_cuts(topology, pairs)]
    if shape is not None:
        cuts.append(straight_cuts(topology, pairs, shape))
        if topology.n**2 <= MOST_RECTANGLES:
            cuts.append(rectangle_cuts(topology, pairs, shape))
    return sorted(cuts, key=lambda bound: -bound.value)


Variant = Literal["printed", "plotted", "coded"]
RING, TREE, LUMORPH_2, LUMORPH_4, SQUARES = ("Ideal switch+Ring", "Ideal switch+Tree", "Lumorph-2", "Lumorph-4", "D&C")
#: Algorithms, named as in the figures.
ALGORITHMS = (RING, TREE, LUMORPH_2, LUMORPH_4, SQUARES)
#: Bandwidth of a GPU [bytes/us]: 300 GB/s in the text, 300 GiB/s in figures and code.
RATES = {"printed": 300e3, "plotted": 300 * 2**30 / 1e6, "coded": 300 * 2**30 / 1e6}


@dataclass(frozen=True)
class Formula:
    """Cost of an all-reduce of B bytes: rounds alpha + paid r + volume B / rate.

    Parameters
    ----------
    rounds, paid
        Number of rounds, and of those that pay the reconfiguration delay.
    volume
        Bytes that determine the time, as a multiple of the buffer.
    reconfigure_us
        Reconfiguration delay r [us].
    rate
        Bandwidth of a GPU [bytes/us].
    """

    rounds: float
    paid: float
    volume: float
    reconfigure_us: float
    rate: float

    def time(self, size: float, alpha_us: float = 0.7) -> float:
        """Time for a buffer of ``size`` bytes [us]."""
        return self.rounds * alpha_us + self.paid * self.reconfigure_us + self.volume * size / self.rate


def formula(
    algorithm: str, n: int, variant: Variant, *, reconfigure_us: float | None = None, rate: float | None = None
) -> Formula:
    """Authors' cost of an all-reduce on n GPUs (a power of two), as printed, plotted or coded.

    ``reconfigure_us`` and ``rate`` replace those of the variant (figures 8a and 8b).

    Raises
    ------
    BadInput
        For an unknown algorithm, a number of GPUs that is not a power of two, or a variant without such a formula.
    """
    if algorithm not in ALGORITHMS or n < 2 or n & (n - 1):
        msg = f"all-reduce by {algorithm!r} on {n} GPUs: use one of {', '.join(ALGORITHMS)}, and a power of two"
        raise BadInput(msg)
    if (variant, algorithm) in {("printed", TREE), ("printed", SQUARES), ("coded", SQUARES)}:
        msg = f"{algorithm}: there is no {variant} formula; use variant plotted"
        raise BadInput(msg)
    digits, fraction = log2(n), 2 * (n - 1) / n
    rounds, volume = {
        RING: (2.0 * (n - 1), fraction),
        TREE: (2 * digits, 4.0),
        LUMORPH_2: (2 * digits, fraction),
        LUMORPH_4: (2.0 * ceil(digits / 2), fraction if variant == "printed" else 4 / 3 * fraction),
        SQUARES: (digits - 1, digits - 1),
    }[algorithm]
    switched = algorithm == RING or (algorithm == TREE and variant != "coded")
    delay = 5.0 if (variant, algorithm) == ("coded", LUMORPH_4) else 3.7
    return Formula(
        rounds, 0.0 if switched else rounds, volume, delay if reconfigure_us is None else reconfigure_us,
        RATES[variant] if rate is None else rate,
    )  # fmt: skip


def layer_time(sources: Sequence[int], targets: Sequence[int], size: float) -> float:
    """Time of one transfer between layers, one way, according to the authors' code [us].

    Equal pairs count once, and pairs of a GPU with itself are ignored. If every sender sends to exactly all other
    senders, there are log2(senders) rounds of ``size`` bytes at full bandwidth; else greedy rounds of an eighth of the
    bandwidth, a quarter of the largest number of peers of a GPU, senders and receivers counted together. Each round
    costs 0.7 + 3.7 us.
    """
    send, receive = set(sources), set(targets)
    everyone, rate = send | receive, RATES["coded"]
    met = {v: (receive if v in send else frozenset()) | (send if v in receive else frozenset()) for v in everyone}
    most = max(len(others - {v}) for v, others in met.items())
    if not most:
        return 0.0
    if send == receive:
        rounds = log2(len(everyone))
    else:
        rounds, rate = ceil(most / 4), rate / 8
    return rounds * (4.4 + size / rate)

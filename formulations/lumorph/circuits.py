"""Sets of circuits: exchanges of collectives, permutations, and those of files.

Source  LuMorph, section 4 and Appendix B (recursive doubling, quadrupling), Appendix A (arbitrary pairs)
Data    k = (s_k, d_k) circuits, k in L; s_k != d_k vertices, pairs may repeat

recursive-doubling:STEP     partners differ in binary digit STEP of their rank, STEP = 0 .. log2 N - 1
recursive-quadrupling:STEP  partners differ in one digit in base 4: three peers each
recursive:RADIX:STEP        the same in base RADIX: RADIX - 1 peers each, in one of ceil(log_RADIX N) steps. N must be
                            RADIX^m q with 1 <= q < RADIX; the groups of the last step have q members
permutation                 every rank to its image under a random permutation (``seed``), without fixed points
all                         all ordered pairs
file:PATH                   a CSV of lines ``source,destination``: ranks by label, or all by number

Ranks are the terminals in ascending order: row-major on a mesh.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import BadFile, BadInput, refuse
from opticoll.formulations.flows.concurrent_flow import refuse_unreached
from opticoll.instances.readers.demand_tables import rank_numbers
from opticoll.instances.readers.reading import read_pinned
from opticoll.instances.readers.tables import rows_of

if TYPE_CHECKING:
    from opticoll.instances.topology import I64, Topology


FORMS = "recursive-doubling:STEP, recursive-quadrupling:STEP, recursive:RADIX:STEP, permutation, all or file:PATH"
#: Maximum length of a list.
MAX_CIRCUITS = 1_000_000
_RADIX = {"recursive-doubling": 2, "recursive-quadrupling": 4}


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
            refuse(where, f"seed={seed} is negative; give 0 or more")
        image = np.random.default_rng(seed).permutation(topology.num_ranks)
        moved = np.flatnonzero(image != np.arange(topology.num_ranks))
        return _of_ranks(topology, moved, image[moved], f"random permutation, seed {seed}", where)
    if word == "all":
        if topology.num_ranks**2 > MAX_CIRCUITS:
            count = topology.num_ranks * (topology.num_ranks - 1)
            refuse(where, f"circuits=all has {count:,} circuits; the limit is {MAX_CIRCUITS:,}")
        s, d = np.nonzero(~np.eye(topology.num_ranks, dtype=bool))
        return _of_ranks(topology, s, d, "all ordered pairs", where)
    msg = f"{where}: circuits={word!r} is not a circuit list; use {FORMS}"
    raise BadInput(msg)


def _whole(text: str, name: str, word: str, where: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        refuse(where, f"{name} of circuits={word!r} must be a whole number, not {text!r}")
    return int(text)


def _of_ranks(topology: Topology, s: I64, d: I64, name: str, where: str, of: tuple[int, int] | None = None) -> Circuits:
    if not s.size:
        refuse(where, f"{name} of {topology.spec} has no circuits; use a larger instance or another list")
    ends = topology.terminals
    return Circuits(ends[s], ends[d], name, of)


def refuse_unreachable(topology: Topology, circuits: Circuits, where: str) -> None:
    """Refuse a circuit without a path between its ends."""
    wanted, ends = np.zeros((topology.num_ranks, topology.num_ranks)), (circuits.sources, circuits.targets)
    wanted[tuple(np.searchsorted(topology.terminals, side) for side in ends)] = 1.0
    refuse_unreached(topology, wanted, f"{where}: {topology.spec}")


def exchange_steps(ranks: int, radix: int, where: str = "recursive exchange") -> list[tuple[int, int]]:
    """``(stride, group)`` of every step of a recursive exchange: strides 1, RADIX, RADIX^2, ..., ``group`` ranks each.

    Raises
    ------
    BadInput
        For a radix out of 2 .. ranks, or ranks that are not RADIX^m q with 1 <= q < RADIX.
    """
    if ranks < 2 or not 2 <= radix <= ranks:
        refuse(where, f"radix {radix} is out of range; use 2..{ranks}, the number of ranks")
    steps, stride = [], 1
    while stride < ranks:
        group = min(radix, ranks // stride)
        if ranks % (stride * group):
            refuse(where, f"{ranks} ranks are not a power of {radix} times a factor below {radix}; use another radix")
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
    steps = exchange_steps(topology.num_ranks, radix, where)
    if not 0 <= step < len(steps):
        last = f"0..{len(steps) - 1}"
        refuse(where, f"step {step} is out of range; radix {radix} on {topology.num_ranks} ranks has steps {last}")
    stride, group = steps[step]
    rank = np.arange(topology.num_ranks)
    digit = rank // stride % group
    turn = np.arange(1, group)
    partner = rank[:, None] + ((digit[:, None] + turn) % group - digit[:, None]) * stride
    name = f"recursive exchange of radix {radix}, step {step}"
    return _of_ranks(topology, np.repeat(rank, group - 1), partner.ravel(), name, where, (stride, group))


def _from_file(word: str, topology: Topology, where: str) -> Circuits:
    path, text = read_pinned(word, f"{where}: circuit file", "name a CSV file of pairs")
    what = f"{where}: {path}"
    rows = rows_of(text, what)
    if rows and [cell.lower() for cell in rows[0][1]] in (["source", "destination"], ["source", "target"]):
        del rows[0]
    if len(rows) > MAX_CIRCUITS:
        refuse(where, f"{path} has {len(rows):,} circuits; the limit is {MAX_CIRCUITS:,}", BadFile)
    if not rows:
        refuse(where, f"{path} contains no circuits; write one source,destination per line", BadFile)
    for line, cells in rows:
        if len(cells) != 2:
            refuse(f"{what}, line {line}", f"{str(cells)[:60]!r} is not a pair; write source,destination", BadFile)
    number = rank_numbers(topology, {name for _, cells in rows for name in cells}, what)
    s, d = np.array([[number[name] for name in cells] for _, cells in rows], dtype=np.int64).T
    if (s == d).any():
        line, cells = rows[int(np.argmax(s == d))]
        refuse(f"{what}, line {line}", f"the circuit joins {cells[0][:60]!r} to itself; remove it", BadFile)
    return _of_ranks(topology, s, d, f"file {path.name}", where)

r"""Write and read certificates in VIPR format: a problem, a claim, solutions, and derivations of the claim.

The problem of a file is that of an :class:`~opticoll.solvers.exact.exact_form.ExactForm`: the same variables in the
same
order, and as constraints, in this order, the finite bounds of the columns, lower before upper, and the finite sides of
the rows; a row with equal sides is one equation. The format has no constant in the objective, so objective values in
the file do not include the form's offset, which a comment states.

Format: K. K. H. Cheung, A. Gleixner, D. E. Steffy, Verifying Integer Programming Results, IPCO 2017,
doi:10.1007/978-3-319-59250-3_13; version 1.1: L. Eifler, A. Gleixner, SIAM J. Optim. 34(1), 2024,
doi:10.1137/23M156046X. The writer uses version 1.0.
"""

from __future__ import annotations

import contextlib
import gzip
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import IO, TYPE_CHECKING, NoReturn

from opticoll.errors import BadFile, BadInput, ModelError
from opticoll.file_contents import check_file
from opticoll.solvers.exact.exact_form import Leaf, Split

if TYPE_CHECKING:
    from pathlib import Path

    from flint import fmpq

    from opticoll.solvers.exact.exact_form import ExactAnswer, ExactForm

#: File name suffixes of certificates.
SUFFIXES = (".vipr", ".vipr.gz")
#: Largest file, and its largest decompressed size [bytes].
MOST_BYTES, MOST_UNPACKED = 1 << 33, 1 << 36
#: A compressed file may unpack to so many bytes, or to so many times its size.
LEAST_UNPACKED, MOST_RATIO = 1 << 22, 50
#: Longest word [bytes]; a line that ends in a comment may be as long as ``LONGEST_LINE``.
LONGEST_WORD, LONGEST_LINE = 100_000, 1 << 24
_REMEDY = "name a certificate in VIPR format, .vipr or .vipr.gz"
_INDEX = re.compile(rb"-?[0-9]{1,15}")
_NUMBER = re.compile(rb"([+-]?)([0-9]+)(?:/([0-9]+)|\.([0-9]*))?|([+-]?)\.([0-9]+)")
_COMMENT = re.compile(rb"(?:^|(?<=\s))%[^\n]*")


def comments(path: Path) -> Iterator[str]:
    """The comments at the start of a certificate, one per line.

    Raises
    ------
    BadFile
        If the file cannot be read.
    """
    check_file(path, MOST_BYTES, _REMEDY, f"certificate {path}")
    try:
        with gzip.open(path) if path.name.lower().endswith(".gz") else path.open("rb") as stream:
            while (line := stream.readline(LONGEST_LINE)).startswith(b"%"):
                yield line[1:].decode("utf-8", "replace").strip()
    except (OSError, EOFError, zlib.error) as error:
        msg = f"certificate {path} cannot be read ({error}); {_REMEDY}"
        raise BadFile(msg) from None


def is_certificate(path: Path) -> bool:
    """Whether a file name has the suffix of a certificate."""
    return path.name.lower().endswith(SUFFIXES)


# --- Writing ----------------------------------------------------------------------------------------------------------


def write(
    path: Path, form: ExactForm, answer: ExactAnswer, title: str = "", notes: Iterable[str] = ()
) -> dict[str, int]:
    """Write the certificate of an answer, compressed if the name ends in ``.gz``.

    Parameters
    ----------
    form, answer
        A problem and its exact answer; for a bounded one, the claim is a bound, or an interval if ``x`` is known.
    title, notes
        A comment in the first line, and further ones, each without a line break.

    Returns
    -------
    ``constraints``, ``derivations``, ``bytes``.

    Raises
    ------
    ModelError
        If the answer is unbounded, or its multipliers do not prove it.
    BadInput
        If the file cannot be written.
    """
    from opticoll import shared_files

    facts: dict[str, int] = {}

    def fill(file: IO[bytes]) -> None:
        with contextlib.ExitStack() as stack:
            packed = path.name.lower().endswith(".gz")
            stream = stack.enter_context(gzip.GzipFile("", "wb", 6, file, 0)) if packed else file
            pieces: list[str] = []
            size = 0
            for line in lines(form, answer, title, facts, notes):
                pieces.append(line)
                size += len(line)
                if size > 1 << 16:
                    stream.write("".join(pieces).encode())
                    pieces, size = [], 0
            stream.write("".join(pieces).encode())

    try:
        shared_files.rewrite(path, fill)
    except OSError as error:
        msg = f"{path}: cannot be written: {error.strerror}"
        raise BadInput(msg) from error
    return {**facts, "bytes": path.stat().st_size}


def lines(
    form: ExactForm,
    answer: ExactAnswer,
    title: str = "",
    facts: dict[str, int] | None = None,
    notes: Iterable[str] = (),
) -> Iterator[str]:
    """Yield the lines of the certificate; arguments, errors and facts as for :func:`write`."""
    if answer.status == "unbounded":
        msg = "certificate: the problem is unbounded, which the VIPR format cannot state"
        raise ModelError(msg)
    if not answer.nodes:
        msg = "certificate: the answer has no proof"
        raise ModelError(msg)
    rows = _Rows(form)
    yield from _problem_lines(form, rows, title, notes)
    value = None if answer.proven is None else answer.proven - form.offset
    yield from _result_lines(form, answer, value)
    proof = _Proof(form, answer, rows, value)
    yield f"DER {proof.count}\n"
    yield from proof.lines()
    if facts is not None:
        facts |= {"constraints": rows.count, "derivations": proof.count}


def _problem_lines(form: ExactForm, rows: _Rows, title: str, notes: Iterable[str]) -> Iterator[str]:
    yield f"% {' '.join(title.split()) or 'Certificate of an exact answer'}\n"
    yield from (f"% {note}\n" for note in notes)
    if form.offset:
        yield f"% The objective has a constant, which this file omits: {form.offset}\n"
    yield f"VER 1.0\nVAR {len(form.cost)}\n"
    yield from (f"{name}\n" for name in safe_names(form.column_names()))
    integers = [str(j) for j, whole in enumerate(form.integer.tolist()) if whole]
    yield f"INT {len(integers)}\n" + " ".join(integers) + "\n"
    yield f"OBJ {form.sense}\n{_vector((j, c) for j, c in enumerate(form.cost) if c)}\n"
    yield f"CON {rows.count} {rows.bounds}\n"
    yield from rows.lines()


def _result_lines(form: ExactForm, answer: ExactAnswer, value: Fraction | None) -> Iterator[str]:
    """The claim, with the proven ``value`` (None if nothing is feasible), and the solution."""
    if value is None:
        yield "RTP infeas\nSOL 0\n"
        return
    result = None if answer.objective is None else answer.objective - form.offset
    if form.sense == "min":
        yield f"RTP range {value} {'inf' if result is None else result}\n"
    else:
        yield f"RTP range {'-inf' if result is None else result} {value}\n"
    best = "" if answer.x is None else f"\nbest {_vector((j, x) for j, x in enumerate(answer.x) if x)}"
    yield f"SOL {int(answer.x is not None)}{best}\n"


def safe_names(names: Iterable[str]) -> list[str]:
    """Turn names into single words that do not start a comment."""
    return [re.sub(r"\s", "_", name).replace("%", "_") or "_" for name in names]


def _vector(entries: Iterable[tuple[int, Fraction]]) -> str:
    words = [f" {j} {value}" for j, value in entries]
    return f"{len(words)}{''.join(words)}"


class _Rows:
    """The constraints of a form, and the index of every side of its columns and rows."""

    def __init__(self, form: ExactForm) -> None:
        self.form = form
        self.at: dict[tuple[str, int], int] = {}
        self.equations: set[int] = set()
        for j, (low, high) in enumerate(zip(form.col_lower, form.col_upper, strict=True)):
            for side, end in (("l", low), ("u", high)):
                if end is not None:
                    self.at[side, j] = len(self.at)
        self.bounds = self.count = len(self.at)
        for i, (low, high) in enumerate(zip(form.row_lower, form.row_upper, strict=True)):
            if low is not None:
                self.at["L", i] = self.count
                self.count += 1
            if high is not None:
                self.at["U", i] = self.count if low is None or low != high else self.count - 1
                self.count += low is None or low != high
            if low is not None and low == high:
                self.equations.add(self.at["L", i])

    def lines(self) -> Iterator[str]:
        form = self.form
        for side, j in list(self.at)[: self.bounds]:
            end = form.col_lower[j] if side == "l" else form.col_upper[j]
            yield f"{side}{j} {'G' if side == 'l' else 'L'} {end} 1 {j} 1\n"
        names = safe_names(form.row_names())
        for i, (low, high) in enumerate(zip(form.row_lower, form.row_upper, strict=True)):
            if low is None and high is None:
                continue
            entries = _vector(form.row(i))
            if low is not None and low == high:
                yield f"{names[i]} E {low} {entries}\n"
                continue
            if low is not None:
                yield f"{names[i]}{'' if high is None else '.lower'} G {low} {entries}\n"
            if high is not None:
                yield f"{names[i]}{'' if low is None else '.upper'} L {high} {entries}\n"


class _Proof:
    """The derivations of an answer's tree: every node derives the claim under the assumptions of its branches.

    A split assumes one half and derives the claim in it, does the same in the other half, and unsplits. A leaf combines
    rows and bounds. If all objective values are integer multiples of a step, the combination is divided by the step,
    rounded, and multiplied again.
    """

    def __init__(self, form: ExactForm, answer: ExactAnswer, rows: _Rows, value: Fraction | None) -> None:
        self.form, self.nodes, self.rows = form, answer.nodes, rows
        self.farkas = value is None
        self.step = None if value is None else form.step
        sense = "G" if form.flip > 0 else "L"
        self.goal = "G 1 0" if value is None else f"{sense} {value} OBJ"
        if value is not None and self.step is not None:
            priced = _vector((j, c / self.step) for j, c in enumerate(form.cost) if c)
            self.rounded = f"{sense} {value / self.step} {priced}"
        self.sizes = [0] * len(self.nodes)  # numbers of lines of the subtrees
        for place in reversed(range(len(self.nodes))):
            node = self.nodes[place]
            if isinstance(node, Split):
                self.sizes[place] = 3 + self.sizes[node.below] + self.sizes[node.above]
            else:
                self.sizes[place] = 1 if node.farkas or self.step in (None, 1) else 2
        self.count = self.sizes[0]
        self.branch: dict[tuple[str, int], list[tuple[int, int]]] = {}  # assumed ends of columns, and their indices

    def lines(self) -> Iterator[str]:
        """The lines of the section, in the order of a depth-first search."""
        position = self.rows.count
        todo: list[tuple[str, int, int]] = [("visit", 0, -1)]  # action, node, last use of what it derives
        while todo:
            action, place, last = todo.pop()
            node = self.nodes[place]
            if isinstance(node, Leaf):
                yield from self.leaf(node, position, last)
                position += self.sizes[place]
                continue
            below, above = self.sizes[node.below], self.sizes[node.above]
            if action == "visit":
                unsplit = position + below + above + 2
                yield self.assume(("u", node.column), node.at, position, unsplit)
                position += 1
                todo += [("above", place, last), ("visit", node.below, unsplit)]
            elif action == "above":
                self.branch["u", node.column].pop()
                yield self.assume(("l", node.column), node.at + 1, position, position + above + 1)
                position += 1
                todo += [("unsplit", place, last), ("visit", node.above, position + above)]
            else:
                self.branch["l", node.column].pop()
                second = position - above - 1
                reason = f"{second - 1} {second - 1 - below} {position - 1} {second}"
                yield f"D{position} {self.goal} {{ uns {reason} }} {last}\n"
                position += 1

    def assume(self, side: tuple[str, int], at: int, position: int, last: int) -> str:
        self.branch.setdefault(side, []).append((at, position))
        return f"A{position} {'L' if side[0] == 'u' else 'G'} {at} 1 {side[1]} 1 {{ asm }} {last}\n"

    def end(self, side: str, j: int) -> tuple[Fraction, int] | None:
        """The tightest end of a column in the current branch, and the index of the constraint that states it."""
        own = self.form.col_lower[j] if side == "l" else self.form.col_upper[j]
        known = [(Fraction(at), position) for at, position in self.branch.get((side, j), ())]
        ends = known if own is None else [*known, (own, self.rows.at[side, j])]
        return (max if side == "l" else min)(ends, key=lambda end: end[0], default=None)

    def leaf(self, leaf: Leaf, position: int, last: int) -> Iterator[str]:
        terms = self.crossed()
        absurd = terms is not None
        if terms is None:
            terms, absurd = self.terms(leaf), leaf.farkas
        if leaf.farkas or self.step is None:
            yield self.line(position, self.goal, "lin", terms, last)
        elif self.step == 1:
            yield self.line(position, self.goal, "lin" if absurd else self.kind(terms), terms, last)
        elif absurd:
            yield self.line(position, self.rounded, "lin", terms, position + 1)
            yield self.line(position + 1, self.goal, "lin", {position: self.step}, last)
        else:
            divided = {i: a / self.step for i, a in terms.items()}
            yield self.line(position, self.rounded, self.kind(terms), divided, position + 1)
            yield self.line(position + 1, self.goal, "lin", {position: self.step}, last)

    def kind(self, terms: Iterable[int]) -> str:
        """How constraints are combined: the format rounds no equation, and a solution in integers leaves no need."""
        return "lin" if self.rows.equations.issuperset(terms) else "rnd"

    def line(self, position: int, stated: str, kind: str, terms: Mapping[int, Fraction], last: int) -> str:
        return f"D{position} {stated} {{ {kind} {_vector(terms.items())} }} {last}\n"

    def crossed(self) -> dict[int, Fraction] | None:
        """Multipliers that prove that the bounds of a column cross in the branch; None if none do."""
        for j in {j for (_, j), ends in self.branch.items() if ends}:
            low, high = self.end("l", j), self.end("u", j)
            if low is not None and high is not None and low[0] > high[0]:
                return {low[1]: Fraction(1), high[1]: Fraction(-1)}
        return None

    def terms(self, leaf: Leaf) -> dict[int, Fraction]:
        """Multipliers of the constraints in the file that correspond to a leaf's row multipliers."""
        if self.farkas and not leaf.farkas:
            msg = "certificate: a leaf of an infeasible problem has no proof of infeasibility"
            raise ModelError(msg)
        sign = 1 if leaf.farkas else self.form.flip
        result: dict[int, Fraction] = {}
        for i, y in leaf.y.items():
            at = self.rows.at.get(("L" if y > 0 else "U", i))
            if at is None:
                msg = f"certificate: row {i} has a multiplier but no bound on that side"
                raise ModelError(msg)
            result[at] = sign * y
        for j, z in self.form.reduced_costs(leaf.y, farkas=leaf.farkas).items():
            end = self.end("l" if z > 0 else "u", j)
            if end is None:
                msg = f"certificate: column {j} has a reduced cost but no bound on that side"
                raise ModelError(msg)
            result[end[1]] = sign * z
        return result


# --- Reading ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LinearRow:
    """``sum of coefficients[k] x[columns[k]]`` <= (sense -1), = (0) or >= (1) ``rhs``; columns ascend, no zeros."""

    name: str
    sense: int
    rhs: fmpq
    columns: tuple[int, ...]
    coefficients: tuple[fmpq, ...]


@dataclass(frozen=True)
class Derivation:
    """A derived constraint, its reason and the index of the last constraint that uses it, -1 if not stated.

    ``kind`` is asm, lin, rnd, uns, sol, weak or incomplete. ``used`` are indices of constraints; for ``uns`` the two
    that dominate, each followed by its case. ``factors`` are the multipliers of lin, rnd and weak. ``bounds`` are those
    that weak lists: side (1: lower, -1: upper), column, index of the constraint, value.
    """

    stated: LinearRow
    kind: str
    used: tuple[int, ...] = ()
    factors: tuple[fmpq, ...] = ()
    bounds: tuple[tuple[int, int, int, fmpq], ...] = ()
    last_use: int = -1


class Reader:
    """Sequential reader of a certificate.

    The header is read at once; then :meth:`constraints`, :meth:`claim`, :meth:`solutions` and :meth:`derivations` must
    be consumed in this order. Only what they yield is held in memory.

    Attributes
    ----------
    variables
        Names.
    integer
        Indices of the integer variables.
    sense
        ``"min"`` or ``"max"``.
    objective
        Coefficients by variable.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        check_file(path, MOST_BYTES, _REMEDY, f"certificate {path}")
        self.where = "header"
        self._buffer: list[bytes] = []
        self._at = 0
        self._numbers: dict[bytes, fmpq] = {}  # equal numbers share one object
        self._integers: dict[bytes, int] = {}
        self._pieces = self._split()
        self._expect(b"VER")
        self._expect(b"1.0", b"1.1")
        self._expect(b"VAR")
        count = self._index()
        self.variables = [word.decode("utf-8", "replace") for word in self._take(count)]
        self._expect(b"INT")
        self.integer = frozenset(self._indices(self._take(self._index()), count))
        self._expect(b"OBJ")
        self.sense = self._expect(b"min", b"max").decode()
        self._objective = self._vector()
        self.objective = dict(zip(*self._objective, strict=True))
        self.where = "CON"
        self._expect(b"CON")
        self.count, self.bounds = self._index(), self._index()
        if self.bounds > self.count:
            self.refuse(f"{self.bounds} bounds of {self.count} constraints")

    def constraints(self) -> Iterator[LinearRow]:
        """The constraints of the problem."""
        for i in range(self.count):
            self.where = f"constraint {i}"
            row = self._row()
            if i < self.bounds and len(row.columns) > 1:
                self.refuse("it is counted as a bound but has several variables")
            yield row

    def claim(self) -> tuple[fmpq | None, fmpq | None] | None:
        """The interval of the optimal value, None for an infinite end; None for the claim that there is no solution."""
        self.where = "RTP"
        self._expect(b"RTP")
        if self._expect(b"infeas", b"range") == b"infeas":
            return None
        low, high = self._next(), self._next()
        return None if low == b"-inf" else self._number(low), None if high == b"inf" else self._number(high)

    def solutions(self) -> Iterator[tuple[str, dict[int, fmpq]]]:
        """Name and values of every solution; other variables are 0."""
        self.where = "SOL"
        self._expect(b"SOL")
        for k in range(self._index()):
            self.where = f"solution {k}"
            name = self._next().decode("utf-8", "replace")
            yield name, dict(zip(*self._vector(), strict=True))

    def derivations(self) -> Iterator[Derivation]:
        """The derived constraints; the first one has the index ``count``."""
        self.where = "DER"
        self._expect(b"DER")
        first = self.count
        for position in range(first, first + self._index()):
            self.where = f"constraint {position}"
            yield self._derivation(position)
        self.where = "end"
        if self._at < len(self._buffer) or self._fill():
            self.refuse("the file continues after the last derivation")

    def refuse(self, reason: str) -> NoReturn:
        """Refuse the file; the message names the place in it."""
        msg = f"certificate {self.path}, {self.where}: {reason}"
        raise BadFile(msg)

    def _derivation(self, position: int) -> Derivation:
        stated = self._row()
        self._expect(b"{")
        kind = self._expect(b"asm", b"lin", b"rnd", b"uns", b"sol").decode()
        used: tuple[int, ...] = ()
        factors: tuple[fmpq, ...] = ()
        bounds: list[tuple[int, int, int, fmpq]] = []
        if kind == "uns":
            used = self._indices(self._take(4), position)
        elif kind in ("lin", "rnd"):
            word = self._next()
            if word == b"incomplete" and kind == "lin":
                kind, results = "incomplete", []
                while (word := self._next()) != b"}":
                    results.append(word)
                return Derivation(stated, kind, self._indices(results, position), last_use=self._last_use())
            if word == b"weak" and kind == "lin":
                kind = "weak"
                self._expect(b"{")
                for _ in range(self._index()):
                    side = 1 if self._expect(b"L", b"U") == b"L" else -1
                    j, i = self._index(len(self.variables)), self._index(position)
                    bounds.append((side, j, i, self._number(self._next())))
                self._expect(b"}")
                word = self._next()
            words = self._take(2 * self._index(word=word))
            used, factors = self._indices(words[::2], position), tuple(map(self._number, words[1::2]))
            if len(set(used)) < len(used):
                self.refuse("it uses a constraint twice")
        self._expect(b"}")
        return Derivation(stated, kind, used, factors, tuple(bounds), self._last_use())

    def _last_use(self) -> int:
        return self._index(start=-1)

    def _row(self) -> LinearRow:
        name, sense, rhs, word = self._take(4)
        if sense not in (b"L", b"E", b"G"):
            self.refuse(f"sense L, E or G expected, not {_shown(sense)}")
        if word == b"OBJ":
            columns, coefficients = self._objective
        else:
            columns, coefficients = self._vector(word)
        return LinearRow(
            name.decode("utf-8", "replace"), b"LEG".index(sense) - 1, self._number(rhs), columns, coefficients
        )

    def _vector(self, word: bytes | None = None) -> tuple[tuple[int, ...], tuple[fmpq, ...]]:
        """Columns, ascending, and nonzero values."""
        size = self._index(len(self.variables) + 1, word=word)
        words = self._take(2 * size)
        columns = self._indices(words[::2], len(self.variables))
        entries = dict(zip(columns, map(self._number, words[1::2]), strict=True))
        if len(entries) < size:
            self.refuse("it has a variable twice")
        return tuple(j for j in sorted(entries) if entries[j]), tuple(entries[j] for j in sorted(entries) if entries[j])

    def _indices(self, words: list[bytes], end: int) -> tuple[int, ...]:
        return tuple([self._index(end, word=word) for word in words])

    def _index(self, end: int = 10**15, start: int = 0, word: bytes | None = None) -> int:
        word = self._next() if word is None else word
        value = self._integers.get(word)
        if value is None and _INDEX.fullmatch(word):
            value = int(word)
            if len(self._integers) < 1 << 18:
                self._integers[word] = value
        if value is None or not start <= value < end:
            self.refuse(f"an index from {start} to {end - 1} is expected, not {_shown(word)}")
        return value

    def _number(self, word: bytes) -> fmpq:
        from flint import fmpq, fmpz

        known = self._numbers.get(word)
        if known is not None:
            return known
        match = _NUMBER.fullmatch(word)
        if match is None:
            self.refuse(f"a fraction or a decimal is expected, not {_shown(word)}")
        sign, whole, below, digits, other, alone = match.groups()
        if alone is not None:
            sign, whole, digits = other, b"0", alone
        denominator = fmpz(10) ** len(digits or b"") if below is None else fmpz(below.decode())
        if denominator == 0:
            self.refuse(f"{_shown(word)} has denominator 0")
        value = fmpq(fmpz((whole + (digits or b"")).decode()), denominator)
        value = -value if sign == b"-" else value
        if len(self._numbers) < 1 << 16 and len(word) < 32:
            self._numbers[word] = value
        return value

    def _expect(self, *wanted: bytes) -> bytes:
        word = self._next()
        if word not in wanted:
            names = " or ".join(one.decode() for one in wanted)
            self.refuse(f"{names} is expected, not {_shown(word)}")
        return word

    def _next(self) -> bytes:
        if self._at == len(self._buffer) and not self._fill():
            self.refuse("the file ends too early")
        self._at += 1
        return self._buffer[self._at - 1]

    def _take(self, count: int) -> list[bytes]:
        result = self._buffer[self._at : self._at + count]
        self._at += len(result)
        while len(result) < count:
            if not self._fill():
                self.refuse("the file ends too early")
            more = self._buffer[: count - len(result)]
            self._at = len(more)
            result += more
        return result

    def _fill(self) -> bool:
        self._buffer, self._at = next(self._pieces, []), 0
        return bool(self._buffer)

    def _split(self) -> Iterator[list[bytes]]:
        """The words of the file in nonempty lists, without comments."""
        packed, total, rest = self.path.name.lower().endswith(".gz"), 0, b""
        most = MOST_UNPACKED
        if packed:
            most = min(most, max(LEAST_UNPACKED, MOST_RATIO * self.path.stat().st_size))
        try:
            with gzip.open(self.path) if packed else self.path.open("rb") as stream:
                while piece := stream.read(1 << 18):
                    total += len(piece)
                    if total > most:
                        self.refuse(f"it unpacks to more than {most} bytes")
                    text = rest + piece
                    if b"%" in text:  # whole lines
                        end = text.rfind(b"\n") + 1
                        words = _COMMENT.sub(b"", text[:end]).split()
                    else:
                        end = max(text.rfind(space) for space in (b"\n", b" ", b"\t")) + 1
                        words = text[:end].split()
                    rest = text[end:]
                    if len(rest) > (LONGEST_LINE if b"%" in rest else LONGEST_WORD) or any(
                        len(word) > LONGEST_WORD for word in words
                    ):
                        self.refuse(f"a word has more than {LONGEST_WORD} characters")
                    if words:
                        yield words
        except (OSError, EOFError, ValueError, zlib.error) as error:
            if isinstance(error, BadFile):  # it names the file already
                raise
            msg = f"certificate {self.path} cannot be read ({error}); {_REMEDY}"
            raise BadFile(msg) from None
        words = _COMMENT.sub(b"", rest).split()
        if words:
            yield words


def _shown(word: bytes) -> str:
    return repr(word[:40].decode("utf-8", "replace"))

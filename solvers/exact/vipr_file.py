r"""Write certificates in VIPR format: a problem, a claim, solutions, and derivations of the claim.

The problem of a file is that of an :class:`~opticoll.solvers.exact.exact_form.ExactForm`: the same variables in the
same order, and as constraints, in this order, the finite bounds of the columns, lower before upper, and the finite
sides of the rows; a row with equal sides is one equation. The format has no constant in the objective, so objective
values in the file do not include the form's offset, which a comment states.

Format: K. K. H. Cheung, A. Gleixner, D. E. Steffy, Verifying Integer Programming Results, IPCO 2017,
doi:10.1007/978-3-319-59250-3_13; version 1.1: L. Eifler, A. Gleixner, SIAM J. Optim. 34(1), 2024,
doi:10.1137/23M156046X. The writer uses version 1.0.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import IO, TYPE_CHECKING, Any

from opticoll.errors import ModelError, refuse
from opticoll.solvers.exact.exact_form import Leaf, Split

if TYPE_CHECKING:
    from pathlib import Path

    from opticoll.solvers.exact.exact_form import ExactAnswer, ExactForm

#: File name suffixes of certificates.
SUFFIXES = (".vipr", ".vipr.gz")
#: Largest file that is read [bytes].
MOST_BYTES = 1 << 33
REMEDY = "name a certificate in VIPR format, .vipr or .vipr.gz"


def is_certificate(path: Path) -> bool:
    """Whether a file name has the suffix of a certificate."""
    return path.name.lower().endswith(SUFFIXES)


def write(path: Path, form: ExactForm, answer: ExactAnswer, title: str = "") -> dict[str, int]:
    """Write the certificate of an answer, compressed if the name ends in ``.gz``.

    Parameters
    ----------
    form, answer
        A problem and its exact answer; for a bounded one, the claim is a bound, or an interval if ``x`` is known.
    title
        A comment in the first line.

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
        packed = path.name.lower().endswith(".gz")
        packer: Any = gzip.GzipFile("", "wb", 6, file, 0) if packed else None
        with io.BufferedWriter(packer) if packed else contextlib.nullcontext(file) as stream:
            stream.writelines(line.encode() for line in lines(form, answer, title, facts))

    shared_files.write_file(path, fill)
    return {**facts, "bytes": path.stat().st_size}


def lines(
    form: ExactForm,
    answer: ExactAnswer,
    title: str = "",
    facts: dict[str, int] | None = None,
) -> Iterator[str]:
    """Yield the lines of the certificate; arguments, errors and facts as for :func:`write`."""
    if answer.status == "unbounded":
        refuse("certificate", "the problem is unbounded, which the VIPR format cannot state", ModelError)
    if not answer.nodes:
        refuse("certificate", "the answer has no proof", ModelError)
    rows = _Rows(form)
    yield from _problem_lines(form, rows, title)
    value = None if answer.proven is None else answer.proven - form.offset
    yield from _result_lines(form, answer, value)
    proof = _Proof(form, answer, rows, value)
    yield f"DER {proof.count}\n"
    yield from proof.lines()
    if facts is not None:
        facts |= {"constraints": rows.count, "derivations": proof.count}


def _problem_lines(form: ExactForm, rows: _Rows, title: str) -> Iterator[str]:
    yield f"% {' '.join(title.split()) or 'Certificate of an exact answer'}\n"
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
        """Multipliers that prove that the ends of a row cross, or of a column in the branch; None if none do."""
        if (found := self.form.contradiction) is not None:
            sides = zip("lu" if found[0] == "column" else "LU", (1, -1), strict=True)
            return {self.rows.at[side, found[1]]: Fraction(sign) for side, sign in sides}
        for j in {j for (_, j), ends in self.branch.items() if ends}:
            low, high = self.end("l", j), self.end("u", j)
            if low is not None and high is not None and low[0] > high[0]:
                return {low[1]: Fraction(1), high[1]: Fraction(-1)}
        return None

    def terms(self, leaf: Leaf) -> dict[int, Fraction]:
        """Multipliers of the constraints in the file that correspond to a leaf's row multipliers."""
        if self.farkas and not leaf.farkas:
            refuse("certificate", "a leaf of an infeasible problem has no proof of infeasibility", ModelError)
        sign = 1 if leaf.farkas else self.form.flip
        result: dict[int, Fraction] = {}
        for i, y in leaf.y.items():
            at = self.rows.at.get(("L" if y > 0 else "U", i))
            if at is None:
                refuse("certificate", f"row {i} has a multiplier but no bound on that side", ModelError)
            result[at] = sign * y
        for j, z in self.form.reduced_costs(leaf.y, farkas=leaf.farkas).items():
            end = self.end("l" if z > 0 else "u", j)
            if end is None:
                refuse("certificate", f"column {j} has a reduced cost but no bound on that side", ModelError)
            result[end[1]] = sign * z
        return result

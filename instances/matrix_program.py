"""Linear and mixed-integer programs in matrix form, read from MPS and LP files, and solution files of solvers.

Our own readers (:mod:`opticoll.instances.readers.mps_reader`, :mod:`opticoll.instances.readers.lp_reader`) read a file,
and name the line where they refuse it. What they read is compared with the readings of HiGHS and SCIP
(:mod:`opticoll.instances.readers.second_readings`), and a difference is a refusal. A program is identified by its
numbers; names of rows and columns only label results.

Solution files hold values of columns by name and, optionally, duals of rows. The formats are those of HiGHS,
SCIP, Gurobi, CBC and MIPLIB, recognised by content::

    HiGHS    Model status / Optimal / # Columns 2 / x 1 / ... / # Dual solution values / # Rows 1 / c1 0.5
    SCIP     solution status: optimal / objective value: 4 / x 1 (obj:2)
    Gurobi   # Objective value = 4 / x 1
    CBC      Optimal - objective value 4.0 / 0 x 1 2
    MIPLIB   =obj= 4 / x 1

HiGHS tables (``write_solution_style`` 1, pretty) are read too.

Columns that a file does not mention are 0, as these formats define.
"""

from __future__ import annotations

import hashlib
import math
import re
import zlib
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from opticoll.errors import BadFile
from opticoll.instances.readers.lp_reader import read_lp
from opticoll.instances.readers.mps_reader import read_mps
from opticoll.instances.readers.reading import decode, read_bytes
from opticoll.instances.readers.second_readings import compare_with_others
from opticoll.instances.topology import Instance

if TYPE_CHECKING:
    from collections.abc import Iterable

    import scipy.sparse as sp
    from numpy.typing import NDArray

    from opticoll.instances.readers.program_draft import ProgramDraft


#: Size limits of a file [bytes], before and after decompression.
MOST_BYTES, MOST_UNPACKED = 512 << 20, 2 << 30
#: A compressed file that unpacks to more than this [bytes] may not unpack to more than so many times its size: programs
#: compress to a tenth or a twentieth.
LEAST_PACKED, MOST_RATIO = 32 << 20, 200
#: Bytes of a compressed file that are unpacked at once.
_PORTION = 1 << 16
_SUFFIXES = (".mps", ".lp")
_REMEDY = "name a .mps, .mps.gz, .lp or .lp.gz file"


@dataclass(frozen=True, eq=False, repr=False)
class MatrixProgram(Instance):
    r"""A program :math:`\min/\max \; c^\top x + c_0` over rows :math:`l_r \le A x \le u_r` and column bounds.

    Parameters
    ----------
    indptr, indices, data
        Constraint matrix A by column (CSC), ``rows`` rows and ``n`` columns.
    row_lower, row_upper
        Row bounds, shape ``(rows,)``; ``-inf`` and ``inf`` for none.
    col_lower, col_upper
        Column bounds, shape ``(n,)``.
    cost, offset
        Objective coefficients, shape ``(n,)``, and constant.
    integer
        Integrality of each column, shape ``(n,)``, boolean.
    sense
        ``"min"`` or ``"max"``.
    column_names, row_names
        Names in the file.
    notes
        What a user should know about the file, one sentence each.
    sense_stated
        Whether the file states the sense.
    spec, parameters
        As for every instance.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int64]
    data: NDArray[np.float64]
    row_lower: NDArray[np.float64]
    row_upper: NDArray[np.float64]
    col_lower: NDArray[np.float64]
    col_upper: NDArray[np.float64]
    cost: NDArray[np.float64]
    offset: float
    integer: NDArray[np.bool_]
    sense: Literal["min", "max"]
    column_names: tuple[str, ...]
    row_names: tuple[str, ...]
    notes: tuple[str, ...] = ()
    sense_stated: bool = True
    spec: str = "custom"
    parameters: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)

    @property
    def n(self) -> int:  # type: ignore[override]
        """Number of columns."""
        return self.cost.size

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.row_lower.size

    @property
    def A(self) -> sp.csc_array:
        """A copy of the constraint matrix, shape ``(rows, n)``."""
        import scipy.sparse as sp

        return sp.csc_array((self.data, self.indices, self.indptr), shape=(self.rows, self.n), copy=True)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the numbers; names are not included."""
        digest = hashlib.sha256(f"matrix {self.rows} {self.n} {self.sense} {float(self.offset)!r}".encode())
        for whole in (self.indptr, self.indices, self.integer):
            digest.update(np.asarray(whole, dtype=np.int64).tobytes())
        for real in (self.data, self.row_lower, self.row_upper, self.col_lower, self.col_upper, self.cost):
            digest.update((np.asarray(real, dtype=np.float64) + 0.0).tobytes())  # no -0.0
        return digest.hexdigest()


def read_program(path: str | Path, sense: Literal["min", "max"] | None = None) -> MatrixProgram:
    """Read a program from an MPS or LP file, optionally compressed by gzip.

    Parameters
    ----------
    path
        File; its suffix selects the format.
    sense
        Sense of the objective; None for the file's, which is min where it states none.

    Raises
    ------
    BadFile
        If the file cannot be read, is too large, is not complete, contains anything but linear rows and continuous or
        integer columns, or is read differently by HiGHS or SCIP; the message names the line, row or column.
    """
    path = Path(path)
    where = f"matrix file {path}"
    name = path.name.lower()
    packed = name.endswith(".gz")
    suffix = Path(name.removesuffix(".gz")).suffix
    if suffix not in _SUFFIXES:
        msg = f"{where} has {f'the unknown suffix {suffix!r}' if suffix else 'no suffix'}; {_REMEDY}"
        raise BadFile(msg)
    content = read_bytes(path, MOST_BYTES, _REMEDY, where)
    if packed:
        content = _unpacked(content, where)
    content = content.removeprefix(b"\xef\xbb\xbf")
    if not content.strip():
        msg = f"{where} is empty; {_REMEDY}"
        raise BadFile(msg)
    program = _read_once(content, suffix, where)
    return replace(program) if sense is None else _with_sense(program, sense)  # a copy: the spec becomes part of it


def _with_sense(program: MatrixProgram, sense: Literal["min", "max"]) -> MatrixProgram:
    """The program with a stated sense, and a note if the file states the other one."""
    notes = tuple(note for note in program.notes if ",sense=" not in note)
    if program.sense_stated and sense != program.sense:
        notes += (f"the file states {program.sense}; it is solved as {sense}, as ,sense={sense} says",)
    return replace(program, sense=sense, notes=notes)


def _unpacked(content: bytes, where: str) -> bytes:
    """Contents of a gzip file, within limits on their size and on their ratio to the file's."""
    pieces, size, ended = [], 0, False
    stream = zlib.decompressobj(wbits=31)
    for first in range(0, len(content), _PORTION):
        given = content[first : first + _PORTION]
        while given := given.lstrip(b"\0") if ended else given:  # zeros may follow a member, or another member
            if ended:
                stream, ended = zlib.decompressobj(wbits=31), False
            try:
                piece = stream.decompress(given)
            except zlib.error as error:
                msg = f"{where} is not a gzip file ({error}); {_REMEDY}"
                raise BadFile(msg) from None
            pieces.append(piece)
            size += len(piece)
            most = min(MOST_UNPACKED, max(LEAST_PACKED, MOST_RATIO * (first + _PORTION)))
            if size > most:
                msg = f"{where} has more than {most} bytes after decompression; use a smaller file"
                raise BadFile(msg)
            ended, given = stream.eof, stream.unused_data
    if not ended:
        msg = f"{where} ends in the middle of its compressed data; copy the whole file"
        raise BadFile(msg)
    return b"".join(pieces)


#: Program read last, by digest and suffix: a spec is parsed several times in a row.
_READ: dict[tuple[str, str], MatrixProgram] = {}


def _read_once(content: bytes, suffix: str, where: str) -> MatrixProgram:
    key = (hashlib.sha256(content).hexdigest(), suffix)
    if key not in _READ:
        draft = (read_mps if suffix == ".mps" else read_lp)(content, where)
        if not draft.columns:
            msg = f"{where} has no columns; {_REMEDY}"
            raise BadFile(msg)
        compare_with_others(draft, content, suffix, where)
        _READ.clear()
        _READ[key] = _program(draft)
    return _READ[key]


def _program(draft: ProgramDraft) -> MatrixProgram:
    import scipy.sparse as sp

    matrix = sp.csc_array(
        (draft.entry_value, (draft.entry_row, draft.entry_column)), shape=(len(draft.rows), len(draft.columns))
    )
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return MatrixProgram(
        indptr=matrix.indptr.astype(np.int64),
        indices=matrix.indices.astype(np.int64),
        data=matrix.data,
        row_lower=draft.row_lower,
        row_upper=draft.row_upper,
        col_lower=draft.lower,
        col_upper=draft.upper,
        cost=draft.cost,
        offset=draft.offset,
        integer=draft.integer,
        sense=draft.sense or "min",
        column_names=tuple(draft.columns),
        row_names=tuple(draft.rows),
        notes=tuple(draft.notes),
        sense_stated=draft.sense is not None,
    )


#: Largest solution file [bytes].
MOST_BYTES_OF_SOLUTION = 1 << 30
_SOLUTION_REMEDY = "write a solution as HiGHS, SCIP, Gurobi, CBC or MIPLIB do: one `name value` per line"
_CBC = re.compile(r"(?P<status>[A-Z][A-Za-z ]*?)(?: \(.*\))? - objective value\s+(?P<value>\S+)\s*$")
_NO_SOLUTION = ("no solution available", "=infeas=", "=unbd=")


@dataclass
class SolFile:
    """Contents of a solution file.

    ``values`` of columns and ``duals`` of rows by name, the latter None if the file has none; ``objective`` and
    ``status`` (lower case, empty if unknown) as given in the file; ``solved``: whether it contains a solution.
    """

    values: dict[str, float] = field(default_factory=dict)
    duals: dict[str, float] | None = None
    objective: float | None = None
    status: str = ""
    solved: bool = True


def read_sol(path: Path) -> SolFile:
    """Read a solution file.

    Raises
    ------
    BadFile
        If it cannot be read, is too large, or contains a line in none of the formats.
    """
    where = f"solution file {path}"
    return parse_sol(
        decode(read_bytes(path, MOST_BYTES_OF_SOLUTION, _SOLUTION_REMEDY, where), where, _SOLUTION_REMEDY), where
    )


def parse_sol(text: str, where: str) -> SolFile:
    """Parse the contents of a solution file.

    Raises
    ------
    BadFile
        If a line is in none of the formats, a name occurs twice, or a value is not a finite number.
    """
    lines = text.splitlines()
    if not text.strip():
        msg = f"{where} is empty; {_SOLUTION_REMEDY}"
        raise BadFile(msg)
    if lines[0].strip().lower() == "model status":
        return _highs(lines, where)
    if lines[0].strip().lower() == "columns":
        return _tables(lines, where)
    solution = SolFile()
    cbc = False
    for number, raw in enumerate(lines, start=1):
        line = raw.strip()
        stated = _CBC.match(line)
        if stated:
            solution.status, solution.objective, cbc = stated["status"].lower(), _objective(stated["value"]), True
        elif line.lower().startswith("solution status:"):
            solution.status = line.partition(":")[2].strip().lower()
        elif line.lower().startswith(("objective value:", "# objective value =", "=obj=")):
            solution.objective = _objective(re.split(r"[:=]", line)[-1])
        elif line.lower() in _NO_SOLUTION:
            solution.solved = False
            solution.status = solution.status or {"=infeas=": "infeasible", "=unbd=": "unbounded"}.get(line.lower(), "")
        elif line and not line.startswith("#"):
            words = line.removeprefix("**").split()
            _store(solution.values, words[1:3] if cbc and len(words) == 4 else words[:2], where, number)
    return solution


def _highs(lines: list[str], where: str) -> SolFile:
    """HiGHS: sections under headings that start with ``#``; the first one that has columns is the primal solution."""
    solution = SolFile(status=lines[1].strip().lower() if len(lines) > 1 else "", solved=False)
    part, target = "", None
    for number, raw in enumerate(lines[2:], start=3):
        line = raw.strip()
        heading = line.lower()
        if heading.startswith("# basis"):
            break
        if heading.startswith(("# primal", "# dual")):
            part, target = heading.split()[1], None
        elif heading.startswith("# columns"):
            target = solution.values if part == "primal" else {}
            solution.solved = solution.solved or part == "primal"
        elif heading.startswith("# rows"):
            target = {}
            if part == "dual":
                solution.duals = target
        elif heading.startswith("objective "):
            solution.objective = _objective(line.split()[1])
        elif line and not line.startswith("#") and target is not None:
            _store(target, line.split()[:2], where, number)
    return solution


def _tables(lines: list[str], where: str) -> SolFile:
    """HiGHS, pretty: a table of columns and one of rows, each under headings; then status and objective."""
    solution = SolFile(solved=False)
    part = ""
    heading: list[str] = []
    for number, raw in enumerate(lines, start=1):
        line = raw.strip().lower()
        words = raw.split()
        if line in {"columns", "rows"}:
            part, heading = line, []
        elif not line:
            part = ""
        elif line.startswith("model status:"):
            solution.status = line.partition(":")[2].strip()
        elif line.startswith("objective value:"):
            solution.objective = _objective(line.partition(":")[2])
        elif part and not heading:
            heading = line.split()
        elif len(words) != len(heading) or not {"name", "index"} <= set(heading):
            msg = f"{where}, line {number}: {raw.strip()[:60]!r} does not fit its table; use write_solution_style 0"
            raise BadFile(msg)
        else:
            row = dict(zip(heading, words, strict=True))
            if part == "columns" and "primal" in row:
                solution.solved = True
                _store(solution.values, [row["name"], row["primal"]], where, number)
            elif part == "rows" and "dual" in row:
                solution.duals = solution.duals if solution.duals is not None else {}
                _store(solution.duals, [row["name"], row["dual"]], where, number)
    return solution


def _objective(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _store(target: dict[str, float], words: list[str], where: str, number: int) -> None:
    """Store the value in ``words`` under the name in ``words``."""
    try:
        name, text = words
        value = float(text)
    except ValueError:
        msg = f"{where}, line {number}: {' '.join(words)[:60]!r} is not a name and a number; {_SOLUTION_REMEDY}"
        raise BadFile(msg) from None
    if not math.isfinite(value):
        msg = f"{where}, line {number}: the value of {name[:60]!r} is not finite; {_SOLUTION_REMEDY}"
        raise BadFile(msg)
    if name in target:
        msg = f"{where}, line {number}: {name[:60]!r} occurs twice; give every column one value"
        raise BadFile(msg)
    target[name] = value


def positions(
    given: Iterable[str],
    names: Iterable[str],
    where: str,
    what: str = "column",
    remedy: str = "use the program whose solution the file contains",
) -> list[int]:
    """Position in ``names`` of every name in ``given``.

    Raises
    ------
    BadFile
        If one of them is unknown.
    """
    place = {name: position for position, name in enumerate(names)}
    results = []
    for name in given:
        if name not in place:
            msg = f"{where}: the program has no {what} {name[:60]!r}; {remedy}"
            raise BadFile(msg)
        results.append(place[name])
    return results

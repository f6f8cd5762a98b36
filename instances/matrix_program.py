"""Linear and mixed-integer programs in matrix form, read from MPS and LP files, and solution files of solvers.

Files are read by HiGHS in a separate process with limits on time and memory: a malformed file can crash only that
process. A program is identified by its numbers; names of rows and columns only label results.

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
import json
import math
import re
import subprocess
import sys
import tempfile
import zlib
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from opticoll.errors import BadFile
from opticoll.instances.digraph import Instance
from opticoll.instances.readers import decode, read_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable

    import scipy.sparse as sp
    from numpy.typing import NDArray


#: Size limits of a file [bytes], before and after decompression.
MOST_BYTES, MOST_UNPACKED = 512 << 20, 2 << 30
#: Limits of the reader's process: wall clock [s] and data segment [bytes].
TIME_LIMIT_S, MEMORY_LIMIT = 600.0, 16 << 30
#: Bounds of at least this size are infinite, as in every reader of these formats.
INFINITE = 1e20
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


def read_program(path: str | Path) -> MatrixProgram:
    """Read a program from an MPS or LP file, optionally compressed by gzip.

    Raises
    ------
    BadFile
        If the file cannot be read, is too large, is not complete, or contains anything but linear rows and continuous
        or integer columns.
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
    if not content.strip():
        msg = f"{where} is empty; {_REMEDY}"
        raise BadFile(msg)
    if suffix == ".mps" and not any(line.startswith(b"ENDATA") for line in content[-4096:].splitlines()):
        msg = f"{where}: no ENDATA line at the end; the file is incomplete or not in MPS format"
        raise BadFile(msg)
    return _program(_read_once(content, suffix, where), where)


def _unpacked(content: bytes, where: str) -> bytes:
    stream = zlib.decompressobj(wbits=31)
    try:
        text = stream.decompress(content, MOST_UNPACKED + 1)
    except zlib.error as error:
        msg = f"{where} is not a gzip file ({error}); {_REMEDY}"
        raise BadFile(msg) from None
    if len(text) > MOST_UNPACKED:
        msg = f"{where} has more than {MOST_UNPACKED} bytes after decompression; use a smaller file"
        raise BadFile(msg)
    if not stream.eof:
        msg = f"{where} ends in the middle of its compressed data; copy the whole file"
        raise BadFile(msg)
    return text


#: Program read last, by digest and suffix: a spec is parsed several times in a row.
_READ: dict[tuple[str, str], dict[str, Any]] = {}


def _read_once(content: bytes, suffix: str, where: str) -> dict[str, Any]:
    key = (hashlib.sha256(content).hexdigest(), suffix)
    if key not in _READ:
        result = _read_apart(content, suffix, where)
        _READ.clear()
        _READ[key] = result
    return _READ[key]


def _read_apart(content: bytes, suffix: str, where: str) -> dict[str, Any]:
    """Read the arrays and names in a file's contents by HiGHS in a separate process."""
    with tempfile.TemporaryDirectory(prefix="opticoll-matrix-") as name:
        folder = Path(name)
        file = folder / f"program{suffix}"
        file.write_bytes(content)
        reader = Path(__file__).with_name("readers") / "matrix_reader.py"
        command = [sys.executable, "-P", str(reader), str(file), str(folder)]
        try:
            done = subprocess.run(
                command, capture_output=True, timeout=TIME_LIMIT_S, check=False, stdin=subprocess.DEVNULL,
                preexec_fn=_limit_memory,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            msg = f"{where}: reading it took more than {TIME_LIMIT_S:.0f} s; use a smaller file"
            raise BadFile(msg) from None
        refused = folder / "refused.txt"
        if refused.exists():
            msg = f"{where}: {refused.read_text(encoding='utf-8')[:300]}; write a linear program as MPS or LP"
            raise BadFile(msg)
        if done.returncode != 0 or not (folder / "names.json").exists():
            last = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or [f"status {done.returncode}"]
            msg = f"{where}: the reader of HiGHS failed ({last[0][:200]}); check the file with another reader"
            raise BadFile(msg)
        with np.load(folder / "arrays.npz", allow_pickle=False) as saved:
            result: dict[str, Any] = {key: saved[key] for key in saved.files}
        return result | json.loads((folder / "names.json").read_text(encoding="utf-8"))


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:  # this platform has no such limits
        return
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    soft = MEMORY_LIMIT if hard == resource.RLIM_INFINITY else min(MEMORY_LIMIT, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _program(result: dict[str, Any], where: str) -> MatrixProgram:
    names = {
        kind: tuple(text or f"{letter}{position}" for position, text in enumerate(result[kind]))
        for kind, letter in (("columns", "x"), ("rows", "r"))
    }
    for kind, given in names.items():
        if len(set(given)) < len(given):
            [(twice, _)] = Counter(given).most_common(1)
            msg = f"{where}: two {kind} are named {twice[:60]!r}; give each a unique name"
            raise BadFile(msg)
    if not len(names["columns"]):
        msg = f"{where} has no columns; {_REMEDY}"
        raise BadFile(msg)
    bounds = {
        name: np.where(np.abs(result[name]) >= INFINITE, np.copysign(np.inf, result[name]), result[name])
        for name in ("row_lower", "row_upper", "col_lower", "col_upper")
    }
    indptr, indices, data = _canonical(result["indptr"], result["indices"], result["data"], len(names["rows"]))
    return MatrixProgram(
        indptr=indptr, indices=indices, data=data, **bounds, cost=result["cost"], offset=float(result["offset"]),
        integer=result["integer"], sense="max" if result["maximise"] else "min", column_names=names["columns"],
        row_names=names["rows"],
    )  # fmt: skip


def _canonical(
    indptr: NDArray[np.int64], indices: NDArray[np.int64], data: NDArray[np.float64], rows: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Entries of every column in row order, without zeros."""
    import scipy.sparse as sp

    matrix = sp.csc_array((data, indices, indptr), shape=(rows, indptr.size - 1))
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data


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


def positions(given: Iterable[str], names: Iterable[str], where: str, what: str = "column") -> list[int]:
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
            msg = f"{where}: the program has no {what} {name[:60]!r}; use the program whose solution the file contains"
            raise BadFile(msg)
        results.append(place[name])
    return results

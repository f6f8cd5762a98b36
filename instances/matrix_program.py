"""Linear and mixed-integer programs in matrix form, read from MPS and LP files.

Our own readers (:mod:`opticoll.instances.readers.mps_reader`, :mod:`opticoll.instances.readers.lp_reader`) read a file,
name the line where they refuse it, and note what other programs read differently. A program is identified by its
numbers; names of rows and columns only label results.
"""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from opticoll.errors import BadFile
from opticoll.instances.readers.reading import read_bytes
from opticoll.instances.topology import Instance

if TYPE_CHECKING:
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
        If the file cannot be read, is too large, is not complete, or contains anything but linear rows and continuous
        or integer columns; the message names the line, row or column.
    """
    path = Path(path)
    where = f"matrix file {path}"
    name = path.name.lower()
    packed = name.endswith(".gz")
    suffix = Path(name.removesuffix(".gz")).suffix
    if "," in suffix and suffix.partition(",")[0] in _SUFFIXES:
        msg = (
            f"{where.partition(',')[0]}: unknown option {suffix.partition(',')[2][:40]!r}; known: sense=min, sense=max"
        )
        raise BadFile(msg)
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
    from opticoll.instances.readers.lp_reader import read_lp
    from opticoll.instances.readers.mps_reader import read_mps

    key = (hashlib.sha256(content).hexdigest(), suffix)
    if key not in _READ:
        draft = (read_mps if suffix == ".mps" else read_lp)(content, where)
        if not draft.columns:
            msg = f"{where} has no columns; {_REMEDY}"
            raise BadFile(msg)
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

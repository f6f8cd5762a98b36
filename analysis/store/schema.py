"""Stored records: their fields, their columns in DuckDB, and the environment of a run.

A stored record is one JSON object on one line. Its fields are those of :class:`opticoll.solvers.task.Record` and of
:class:`StoredRecord`; unknown is NULL, never a sentinel. A change that other readers would misread raises
:data:`VERSION`.
"""

from __future__ import annotations

import hashlib
import logging
import os
import platform
import socket
import stat
import subprocess
from collections.abc import Sequence
from enum import Enum
from functools import cache
from pathlib import Path
from types import NoneType
from typing import NewType, get_args, get_origin, get_type_hints

import msgspec

from opticoll import package_code
from opticoll.analysis.checkout import CHECKOUT, opticoll_version
from opticoll.solvers.task import Environment, Fields, Needed, Record, Repaired, SolverClaims, Termination


@cache
def environment() -> Environment:
    """Machine and software of this process."""
    return Environment(
        host=socket.gethostname(),
        platform=platform.platform(),
        python=platform.python_version(),
        opticoll=opticoll_version(),
        code=package_code.digest(),
        git_commit=_commit(),
        cpus=_cpus(),
    )


def _cpus() -> int | None:
    """Processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


def _commit() -> str | None:
    """Commit of the checkout, with ``-dirty`` if files differ from it; None outside a checkout."""
    if not (CHECKOUT / ".git").exists():
        return None
    command = ["git", "-C", str(CHECKOUT), "describe", "--always", "--dirty", "--abbrev=40", "--match="]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


VERSION = 1

#: A time in ISO form, UTC.
Moment = NewType("Moment", str)


class StoredRecord(Record, frozen=True, kw_only=True):
    """A record in the store: that of the run, and how, when and where it was made.

    ``attempt`` counts the attempts of studies at one cell from 1; ``solution`` is the file of the values and duals, and
    ``solution_mark`` what it was when it was written (:func:`mark_of`).
    """

    schema: int | None = VERSION
    id: str | None = None
    attempt: int | None = None
    study: str | None = None
    environment: Environment = Environment()
    started: Moment | None = None
    finished: Moment | None = None
    solution: str | None = None
    solution_mark: str | None = None


#: Fields whose columns come first, before those of the record itself.
_LEADING = ("schema", "id", "key", "attempt", "study")
#: Structs that are one column of JSON each.
_JSON_STRUCTS = (SolverClaims, Needed, Repaired)
_SQL_TYPES = {str: "VARCHAR", int: "BIGINT", float: "DOUBLE", bool: "BOOLEAN", Moment: "TIMESTAMP"}

#: Nested objects whose fields become columns under their own names, and numbers lifted out of ``metrics``.
_BARE = {"environment"}
LIFTED_METRICS = ("F", "T", "rounds", "max_load")

#: Terminations without an answer: a restarted study tries such a cell again.
FAILURES = (Termination.CRASHED, Termination.ERROR, Termination.INTERRUPTED, Termination.REFUSED)
UNAVAILABLE = Termination.UNAVAILABLE


def is_answer(record: Record) -> bool:
    """Whether a record answers its cell, which is then skipped; the same as the column ``answer``.

    It does if its run did not fail (see :data:`FAILURES`) and ended with a verified value, or with our own proof that
    there is no solution (``infeasible_by``). A solver's claim is not an answer, and neither is a limit reached without
    a verified value: every start of its study tries such a cell again.
    """
    ended = record.termination not in (None, UNAVAILABLE, *FAILURES)
    return ended and (record.verified is True or record.infeasible_by is not None)


_CHECKSUM, _DIGITS = b',"checksum":"', 32
_TAIL = len(_CHECKSUM) + _DIGITS + len(b'"}\n')


def encode(record: StoredRecord) -> bytes:
    """The line of a record; its last field is a checksum of everything before it."""
    body = msgspec.json.encode(record)[:-1]
    return body + _CHECKSUM + _sum(body) + b'"}\n'


def sound(line: bytes) -> bytes:
    """Check that a line holds a record as it was written, and return the line.

    Raises
    ------
    ValueError
        If it holds no record, or the record does not match its checksum.
    """
    body, tail = line[:-_TAIL], line[-_TAIL:]
    if tail != _CHECKSUM + _sum(body) + b'"}\n':
        msg = "it does not match its checksum: it was changed or written in part"
        raise ValueError(msg)
    return line


def decode(line: bytes) -> StoredRecord:
    """The record in a line.

    Raises
    ------
    ValueError, msgspec.MsgspecError
        As :func:`sound`, or if a field has the wrong type.
    """
    return StoredRecord.parse(sound(line))


def _sum(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest()[:_DIGITS].encode()


#: Largest solution whose contents count in its mark [bytes]; reading more would cost more than to resume may.
MOST_MARKED = 1 << 20


def mark_of(solution: Path) -> str:
    """Size of a solution's file, and the digest of a small one.

    Raises
    ------
    OSError
        If it cannot be read.
    """
    size = solution.stat().st_size
    if size > MOST_MARKED:
        return f"{size} bytes"
    return f"{size} bytes, {hashlib.sha256(solution.read_bytes()).hexdigest()}"


#: Largest file that is read as a record [bytes], and how many damaged ones a warning names.
MOST_BYTES, MOST_NAMED = 1 << 28, 5
_log = logging.getLogger("opticoll")


def read_record_file(path: str | Path, folder: int | None = None) -> bytes:
    """The contents of a record's file; never waits for a pipe.

    Raises
    ------
    OSError, ValueError
        If it cannot be read, is not a regular file or is too large.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0), dir_fd=folder)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_BYTES:
            msg = f"it has {status.st_size} bytes" if stat.S_ISREG(status.st_mode) else "it is not a regular file"
            raise ValueError(msg)
        parts = [os.read(descriptor, status.st_size + 1)]
        while len(parts[-1]) and sum(map(len, parts)) < status.st_size:
            parts.append(os.read(descriptor, status.st_size))
        return b"".join(parts)
    finally:
        os.close(descriptor)


def damaged(path: Path, error: Exception) -> str:
    """Error message for a file that is not a record."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)[:200]
    return f"store: {path} is not a record ({reason}); move it out of the store"


def warn(messages: list[str]) -> None:
    """Warn about damaged records, which are skipped."""
    for message in messages[:MOST_NAMED]:
        _log.warning("%s", message)
    if len(messages) > MOST_NAMED:
        _log.warning("store: %d more files are not records", len(messages) - MOST_NAMED)


@cache
def columns() -> dict[str, str | dict[str, str]]:
    """SQL types of the fields by name; those of a nested object by name in turn."""
    hints = get_type_hints(StoredRecord)
    names = [*_LEADING, *(name for name in StoredRecord.__struct_fields__ if name not in _LEADING)]
    return {name: _sql_type(hints[name]) for name in names}


def _sql_type(hint: object) -> str | dict[str, str]:
    kinds = [kind for kind in get_args(hint) if kind is not NoneType]
    kind = kinds[0] if len(kinds) == 1 and get_origin(hint) is not Sequence else hint
    if kind in _SQL_TYPES:
        return _SQL_TYPES[kind]
    if get_origin(kind) is Sequence:
        return "DOUBLE[][]"
    if isinstance(kind, type) and issubclass(kind, Enum):
        return "VARCHAR"
    if isinstance(kind, type) and issubclass(kind, Fields) and kind not in _JSON_STRUCTS:
        return {name: str(_sql_type(part)) for name, part in get_type_hints(kind).items()}
    return "JSON"


def json_columns() -> dict[str, str]:
    """Fields as DuckDB's ``read_json`` takes them: explicit types, nothing detected."""
    types = {}
    for name, kind in columns().items():
        parts = kind if isinstance(kind, str) else ", ".join(f'"{part}" {of}' for part, of in kind.items())
        types[name] = parts if isinstance(kind, str) else f"STRUCT({parts})"
    return types


@cache
def flat_columns() -> tuple[tuple[str, str, str], ...]:
    """Name, SQL type and SQL expression of each column of the view ``runs`` that one record determines."""
    flat: list[tuple[str, str, str]] = []
    for name, kind in columns().items():
        if isinstance(kind, str):
            flat.append((name, kind, f'"{name}"'))
        else:
            prefix = "" if name in _BARE else f"{name}_"
            flat.extend((f"{prefix}{part}", of, f'"{name}"."{part}"') for part, of in kind.items())
        if name == "metrics":
            flat.extend((m, "DOUBLE", f"TRY_CAST(metrics->>'{m}' AS DOUBLE)") for m in LIFTED_METRICS)
    failures = ", ".join(f"'{word}'" for word in (*FAILURES, UNAVAILABLE))
    proven = "(verified OR infeasible_by IS NOT NULL)"
    answer = f"coalesce(termination NOT IN ({failures}) AND {proven}, false)"
    return (*flat, ("answer", "BOOLEAN", answer))

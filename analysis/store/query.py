"""Read-only queries of the store through DuckDB: typed views over the record files."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import msgspec

from opticoll.analysis.store import schema
from opticoll.errors import BadFile, BadInput

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

    from opticoll.solvers.task import Json

#: Proofs from the strongest to none: the order in which ``latest`` prefers the runs of one cell.
_PROOF_ORDER = ("optimal", "certified-gap", "feasible", "bound-only", "none")

#: Room for one record [bytes]: more where a record needs it.
_BUFFER = 1 << 24


def query(records: Path, sql: str) -> pd.DataFrame:
    """Answer one reading statement over the views ``runs`` and ``latest``.

    Raises
    ------
    BadInput
        If the statement is wrong, is not a single one, or does anything but read the views.
    BadFile
        If the folder holds a file that is not a record.
    """
    import duckdb

    with closing(connect(records)) as connection:
        try:
            statements = connection.extract_statements(sql)
            if len(statements) != 1:
                msg = f"results: write exactly one statement, not {len(statements)}"
                raise BadInput(msg)
            if statements[0].type not in (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN):
                msg = "results: the store is read-only; write a SELECT over the views runs and latest"
                raise BadInput(msg)
            return connection.execute(statements[0]).df()
        except duckdb.Error as error:
            reason = " ".join(str(error).split("LINE 1:")[0].split())
            msg = f"results: {reason}"
            raise BadInput(msg) from error


def connect(records: Path) -> duckdb.DuckDBPyConnection:
    """Open an in-memory database with the views ``runs`` and ``latest``, locked and closed to the outside."""
    import duckdb

    connection = duckdb.connect(":memory:")
    try:
        _load(connection, records)
    except BaseException:
        connection.close()
        raise
    columns = ", ".join(f'{expression} AS "{name}"' for name, expression in schema.flat_columns())
    failures = ", ".join(f"'{word}'" for word in (*schema.FAILURES, schema.UNAVAILABLE))
    connection.execute(f"CREATE VIEW runs AS SELECT {columns} FROM records")
    connection.execute(
        f"""
        CREATE VIEW latest AS SELECT * FROM runs QUALIFY row_number() OVER (
            PARTITION BY coalesce(key, id)
            ORDER BY answer DESC, coalesce(verified, false) DESC, coalesce(termination NOT IN ({failures}), false) DESC,
                coalesce(list_position({list(_PROOF_ORDER)}, proof), 99), gap ASC NULLS LAST,
                finished DESC NULLS LAST, attempt DESC NULLS LAST, id
        ) = 1
        """
    )
    for setting in ("python_enable_replacements", "enable_external_access"):
        connection.execute(f"SET {setting} = false")
    connection.execute("SET lock_configuration = true")
    return connection


def _load(connection: duckdb.DuckDBPyConnection, records: Path) -> None:
    import duckdb

    columns = schema.json_columns()
    with TemporaryDirectory(prefix="opticoll-query-") as folder:
        together = Path(folder) / "records.json"
        largest = _gather(records, together)
        if not largest:
            listed = ", ".join(f'"{name}" {kind}' for name, kind in columns.items())
            connection.execute(f"CREATE TABLE records ({listed})")
            return
        try:
            connection.execute(
                f"CREATE TABLE records AS SELECT * FROM read_json($file, columns={columns!r}, "
                "format='newline_delimited', maximum_object_size=$largest)",
                {"file": str(together), "largest": max(_BUFFER, largest + 1)},
            )
        except duckdb.Error as error:
            raise _culprit(records, error) from error
    newest = connection.execute("SELECT max(schema) FROM records").fetchone()
    if newest and newest[0] is not None and newest[0] > schema.VERSION:
        msg = (
            f"store {records.parent}: holds records of schema {newest[0]}, this opticoll reads up to "
            f"{schema.VERSION}; upgrade opticoll"
        )
        raise BadFile(msg)


def _gather(records: Path, target: Path) -> int:
    """Copy all records into one file, since DuckDB takes long to open a file; the size of the largest record."""
    largest = 0
    with target.open("wb") as file:
        for path in records.glob("*.json"):
            line = path.read_bytes()
            largest = max(largest, len(line))
            file.write(line if line.endswith(b"\n") else line + b"\n")
    return largest


def _culprit(records: Path, error: Exception) -> BadFile:
    """The error that names the file that is not a record; reads them one by one."""
    for path in sorted(records.glob("*.json")):
        try:
            schema.stored(_object(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError, msgspec.ValidationError) as reason:
            return BadFile(f"store: {path} is not a record ({reason}); move it out of the store")
    return BadFile(f"store {records.parent}: cannot be read: {str(error).splitlines()[0]}")


def _object(text: str) -> dict[str, Json]:
    value = json.loads(text)
    if not isinstance(value, dict):
        msg = f"a record is a JSON object, not a {type(value).__name__}"
        raise TypeError(msg)
    return value

"""Stored records as tables, read through DuckDB."""

from __future__ import annotations

import os
import threading
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from opticoll.analysis.store import schema
from opticoll.analysis.store.current_records import confirmations, create_views
from opticoll.analysis.store.schema import damaged, read_record_file, warn
from opticoll.errors import BadFile, BadInput, refuse

if TYPE_CHECKING:
    from collections.abc import Iterator

    import duckdb
    import pandas as pd

#: Folder, beside the records, of the notes that studies have found records to hold.
CONFIRMED = "confirmed"
#: Buffer for one record [bytes]; larger for a record that needs more.
_BUFFER = 1 << 24


def query(records: Path, *queries: str, time_limit_s: float | None = None) -> list[pd.DataFrame]:
    """Answer read-only queries over the views ``runs`` and ``latest``; the records are read once for all of them.

    Raises
    ------
    BadInput
        If a query is wrong, is not a single statement, does anything but read the views, or takes too long.
    BadFile
        If the folder holds records of a later version.
    """
    for sql in queries:
        try:
            sql.encode()
        except UnicodeEncodeError as error:
            msg = f"results: character {error.start} of the query is not valid text; write the query in UTF-8"
            raise BadInput(msg) from None
    with closing(connect(records)) as connection:
        return [_answer(connection, sql, time_limit_s) for sql in queries]


def _answer(connection: duckdb.DuckDBPyConnection, sql: str, time_limit_s: float | None) -> pd.DataFrame:
    import duckdb

    try:
        statements = connection.extract_statements(sql)
        if len(statements) != 1:
            refuse("results", f"write exactly one statement, not {len(statements)}")
        if statements[0].type not in (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN):
            refuse("results", "the store is read-only; write a SELECT over the views runs and latest")
        with _interrupted_after(connection, time_limit_s):
            return connection.execute(statements[0]).df()
    except duckdb.InterruptException as error:
        msg = f"results: the query was stopped after {time_limit_s:g} s; narrow it, or raise"
        raise BadInput(msg, remedy={"time_limit": None}) from error
    except duckdb.Error as error:
        reason = " ".join(str(error).split("LINE 1:")[0].split())
        if sql.strip().isidentifier():
            reason = f'{sql.strip()!r} is no query; write SQL, such as "SELECT * FROM latest"'
        msg = f"results: {reason}"
        raise BadInput(msg) from error


@contextmanager
def _interrupted_after(connection: duckdb.DuckDBPyConnection, limit_s: float | None) -> Iterator[None]:
    """Interrupt the connection's query after a time limit."""
    if limit_s is None:
        yield
        return
    done = threading.Event()

    def interrupt() -> None:
        wait_s = limit_s
        while not done.wait(wait_s):  # repeatedly: an interrupt before the query has started is lost
            connection.interrupt()
            wait_s = 0.1

    watch = threading.Thread(target=interrupt, daemon=True)
    watch.start()
    try:
        yield
    finally:
        done.set()
        watch.join()


def connect(records: Path) -> duckdb.DuckDBPyConnection:
    """Open an in-memory database with the views ``runs`` and ``latest``, locked and without external access."""
    import duckdb

    connection = duckdb.connect(":memory:")
    try:
        connection.execute("SET enable_progress_bar = false")  # it goes to stdout
        _load(connection, records)
    except BaseException:
        connection.close()
        raise
    create_views(connection)
    for setting in ("python_enable_replacements", "enable_external_access"):
        connection.execute(f"SET {setting} = false")
    connection.execute("SET lock_configuration = true")
    return connection


def _load(connection: duckdb.DuckDBPyConnection, records: Path) -> None:
    columns = schema.json_columns()
    connection.execute("CREATE TABLE confirmed (id VARCHAR, moment TIMESTAMP)")
    if confirmed := list(confirmations(records.parent / CONFIRMED)):
        ids, times = map(list, zip(*confirmed, strict=True))
        connection.execute(
            "INSERT INTO confirmed SELECT unnest($ids), unnest($times)::TIMESTAMP", {"ids": ids, "times": times}
        )
    with _unnamed_file() as (file, name):
        largest = _gather(records, file)
        if not largest:
            listed = ", ".join(f'"{name}" {kind}' for name, kind in columns.items())
            connection.execute(f"CREATE TABLE records ({listed})")
            return
        connection.execute(
            f"CREATE TABLE records AS SELECT * FROM read_json($file, columns={columns!r}, "
            "format='newline_delimited', maximum_object_size=$largest)",
            {"file": name, "largest": max(_BUFFER, largest + 1)},
        )
    newest = connection.execute("SELECT max(schema) FROM records").fetchone()
    if newest and newest[0] is not None and newest[0] > schema.VERSION:
        msg = (
            f"store {records.parent}: holds records of schema {newest[0]}, this opticoll reads up to "
            f"{schema.VERSION}; upgrade opticoll"
        )
        raise BadFile(msg)


@contextmanager
def _unnamed_file() -> Iterator[tuple[BinaryIO, str]]:
    """An in-memory file, if the system has them, and its name for DuckDB: nothing remains if the process is killed."""
    if hasattr(os, "memfd_create"):
        with open(os.memfd_create("opticoll-query"), "wb") as file:  # noqa: PTH123  a descriptor
            yield file, f"/proc/self/fd/{file.fileno()}"
        return
    with TemporaryDirectory(prefix="opticoll-query-") as folder, (Path(folder) / "records.json").open("wb") as file:
        yield file, file.name


def _gather(records: Path, target: BinaryIO) -> int:
    """Copy all sound records into one file, as DuckDB opens files slowly; return the size of the largest."""
    largest, bad = 0, []
    if not records.is_dir():
        return 0
    folder = os.open(records, os.O_RDONLY)
    try:
        with os.scandir(records) as entries:
            for entry in entries:
                if not entry.name.endswith(".json") or entry.name.startswith("."):
                    continue
                try:
                    line = schema.sound(read_record_file(entry.name, folder))
                except (OSError, ValueError, msgspec.MsgspecError) as error:
                    bad.append(damaged(Path(entry.path), error))
                    continue
                largest = max(largest, len(line))
                target.write(line)
    finally:
        os.close(folder)
    target.flush()
    warn(bad)
    return largest

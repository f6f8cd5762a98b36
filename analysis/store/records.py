"""The results store: one immutable file per run, safe for many writers."""

from __future__ import annotations

import errno
import os
import secrets
import tempfile
import time
import zipfile
import zlib
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec
from msgspec import structs

from opticoll.analysis.store import schema
from opticoll.analysis.store.current_records import confirm
from opticoll.analysis.store.schema import damaged, environment, mark_of, read_record_file, warn
from opticoll.analysis.store.tables import CONFIRMED, query
from opticoll.errors import BadFile, BadInput, refuse
from opticoll.formulations.variables import NamedArrays, stored
from opticoll.instances.readers.reading import as_path
from opticoll.shared_files import STALE_S, AlreadyStored, publish, sweep
from opticoll.solvers.task import Needed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import pandas as pd
    from numpy.typing import NDArray

    from opticoll.analysis.store.schema import StoredRecord
    from opticoll.instances.topology import F64
    from opticoll.solvers.run import Run
    from opticoll.solvers.task import Environment


#: Folder of the measured claims.
CLAIMS = "claims"
_DUAL = "dual."


def _allows_new_entries(folder: Path) -> bool:
    """Whether a subfolder can be created in a folder; true if only disk space is lacking."""
    try:
        Path(tempfile.mkdtemp(prefix=".tmp-", dir=folder)).rmdir()
    except OSError as error:
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    return True


class Store:
    """A folder of run records.

    Parameters
    ----------
    root
        The folder; ``$OPTICOLL_STORE`` if None, and ``results`` in the working directory if that is not set.
        Nothing is created before the first record is written.
    """

    def __init__(self, root: str | os.PathLike[str] | None = None) -> None:
        named = root or os.environ.get("OPTICOLL_STORE")
        self.named = bool(named)
        self.root = as_path(named or "results", "store").absolute()
        self.records = self.root / "records"
        self.solutions = self.root / "solutions"
        self.locks = self.root / "locks"

    def __repr__(self) -> str:
        return f"Store({str(self.root)!r})"

    @classmethod
    def at(cls, place: Store | str | os.PathLike[str] | None) -> Store:
        """A store itself, or the one in a folder."""
        return place if isinstance(place, Store) else cls(place)

    def check_writable(self) -> None:
        """Refuse a folder that cannot be written, without creating it.

        Access rights are not enough: some file systems refuse what the rights permit. A full disk is accepted.

        Raises
        ------
        BadInput
            If the folder, or the one in which it would be created, is not a writable folder.
        """
        folder = self.root
        while not folder.exists() and folder != folder.parent:
            folder = folder.parent
        if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK) or not _allows_new_entries(folder):
            why = "is not writable" if folder.is_dir() else "is not a folder"
            msg = f"store {self.root}: {folder} {why}; choose another by OPTICOLL_STORE or"
            raise BadInput(msg, remedy={"store": "DIR"})

    def check_readable(self) -> None:
        """Refuse a folder that a user has named, also by OPTICOLL_STORE, and that is missing or holds something else.

        Raises
        ------
        BadInput
            If there is no store in it.
        """
        if not self.named or self.records.is_dir() or (self.root / CLAIMS).is_dir():
            return
        if not self.root.is_dir() or any(self.root.iterdir()):
            why = "holds no records" if self.root.is_dir() else "no such folder"
            refuse(f"store {self.root}", f"{why}; name a store (`opticoll study NAME --store DIR` fills a new one)")

    # writing ----------------------------------------------------------------------------------------------

    def save(
        self,
        run: Run,
        *,
        attempt: int | None = None,
        study: str | None = None,
        started: datetime | None = None,
        finished: datetime | None = None,
        where: Environment | None = None,
    ) -> str:
        """Publish the run that a run needed, its solution and its record, in this order; return the record's name.

        The run that supplied this one's data gets its own record, without an attempt number; ``needed.id`` names it.

        Parameters
        ----------
        run
            The result of the runner.
        attempt
            Number of the attempt at a cell of a study, from 1; with None, the record gets a random name.
        study
            The study it belongs to.
        started, finished
            When it ran (UTC).
        where
            The :func:`~opticoll.analysis.store.schema.environment` in which it ran; by default this one.

        Raises
        ------
        AlreadyStored
            If another writer has recorded this attempt at this cell; nothing is left behind.
        msgspec.ValidationError
            If a field of the record has the wrong type; nothing is left behind.
        """
        from opticoll.formulations.flows.symmetric_flow import in_parts

        record = run.record
        if run.needed is not None:
            basis = self.save(run.needed, study=study, started=started, finished=finished, where=where)
            record = structs.replace(record, needed=structs.replace(Needed.of(run.needed.record), id=basis))
        key = str(record.key)
        name = f"{key}.s{secrets.token_hex(8)}" if attempt is None else f"{key}.{attempt}"
        arrays: dict[str, NDArray[Any]] = in_parts(stored(run.values or {}))
        arrays |= {f"{_DUAL}{name}": array for name, array in (run.duals or {}).items()}
        solution = f"{name}~{secrets.token_hex(4)}.npz" if arrays else None
        row = schema.StoredRecord.read(
            {
                **record,
                "id": name,
                "attempt": attempt,
                "study": study,
                "environment": environment() if where is None else where,
                "started": _utc(started),
                "finished": _utc(finished or datetime.now(UTC)),
                "solution": solution,
            }
        )
        if solution is not None:
            publish(self.solutions / solution, lambda file: _write_arrays(file, arrays))
            row = structs.replace(row, solution_mark=mark_of(self.solutions / solution))
        try:
            publish(self.records / f"{name}.json", lambda file: file.write(schema.encode(row)))
        except AlreadyStored:
            if solution is not None:
                (self.solutions / solution).unlink(missing_ok=True)
            raise
        return name

    def sweep(self, *, stale_s: float = STALE_S) -> int:
        """Remove what killed writers left behind: old temporary files, and solutions without a record."""
        removed = sweep(self.records, stale_s=stale_s) + sweep(self.solutions, stale_s=stale_s)
        oldest = time.time() - stale_s
        for path in self.solutions.glob("*.npz"):
            with suppress(OSError):
                if path.stat().st_mtime <= oldest and not self._points_to(path):
                    path.unlink()
                    removed += 1
        return removed

    def _points_to(self, solution: Path) -> bool:
        record = self.records / f"{solution.name.partition('~')[0]}.json"
        if not record.exists():
            return False
        read = self._read_or_warn(record)
        return read is None or read.solution == solution.name

    # reading ----------------------------------------------------------------------------------------------

    def read(self, name: str) -> StoredRecord:
        """One record by its name.

        Raises
        ------
        BadInput
            If there is none.
        """
        path = self.records / f"{name}.json"
        if not path.exists():
            refuse(f"store {self.root}", f"no record {name!r}; `opticoll results 'SELECT id FROM runs'` lists them")
        return self._read(path)

    def _read(self, path: Path) -> StoredRecord:
        try:
            return schema.decode(read_record_file(path))
        except (OSError, ValueError, msgspec.MsgspecError) as error:
            raise BadFile(damaged(path, error)) from error

    def _read_or_warn(self, path: Path) -> StoredRecord | None:
        try:
            return self._read(path)
        except BadFile as error:
            warn([str(error)])
            return None

    def names(self) -> Iterator[str]:
        """Names of all records, in no particular order."""
        if self.records.is_dir():
            with os.scandir(self.records) as entries:
                for entry in entries:
                    if entry.name.endswith(".json"):
                        yield entry.name.removesuffix(".json")

    def attempts(self, key: str) -> list[StoredRecord | None]:
        """Read the records of the attempts that studies made at a cell, first to last; None for a damaged one."""
        records: list[StoredRecord | None] = []
        while (path := self.records / f"{key}.{len(records) + 1}.json").exists():
            records.append(self._read_or_warn(path))
        return records

    def answered(self, keys: set[str]) -> dict[str, StoredRecord]:
        """Find the records that answer any of ``keys``, of studies and of single solves; one per key.

        A record whose solution is lost is none; a warning names it.
        """
        answers: dict[str, StoredRecord] = {}
        lost: dict[str, str] = {}
        for name in self.names():
            key = name.partition(".")[0]
            if key in keys and key not in answers:
                record = self._read_or_warn(self.records / f"{name}.json")
                if record is not None and schema.is_answer(record):
                    if self.is_whole(record):
                        answers[key] = record
                    else:
                        lost[key] = (
                            f"store: the solution {record.solution} is missing, cut or changed; it is made again"
                        )
        schema.warn([message for key, message in lost.items() if key not in answers])
        return answers

    def is_whole(self, record: StoredRecord) -> bool:
        """Whether the solution of a record, if any, is as it was written; of a large one only the size is compared."""
        if record.solution is None:
            return True
        path = self.solutions / record.solution
        try:
            return record.solution_mark == mark_of(path)
        except OSError:
            return False

    def confirm(self, names: Iterable[str]) -> None:
        """Note that records still answer their cells, which makes them current (:mod:`.current_records`)."""
        confirm(self.root / CONFIRMED, names)

    def solution(self, name: str) -> tuple[Mapping[str, F64], dict[str, F64]]:
        """The values and duals stored with a record, by name; empty if there are none.

        Raises
        ------
        BadInput
            If there is no such record.
        BadFile
            If its solution cannot be read.
        """
        import numpy as np

        from opticoll.formulations.flows.symmetric_flow import from_parts

        file_name = self.read(name).solution
        if file_name is None:
            return {}, {}
        try:
            with (self.solutions / file_name).open("rb") as file, np.load(file, allow_pickle=False) as archive:
                arrays = from_parts({key: archive[key] for key in archive.files})
        except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            msg = f"store: solution {file_name} cannot be read ({error}); solve again"
            raise BadFile(msg) from error
        duals = {k.removeprefix(_DUAL): v for k, v in arrays.items() if k.startswith(_DUAL)}
        return NamedArrays({k: v for k, v in arrays.items() if not k.startswith(_DUAL)}), duals

    def sql(self, query: str = "SELECT * FROM latest", *, time_limit_s: float | None = None) -> pd.DataFrame:
        """Answer a query over ``runs`` (every record) and ``latest`` (the best of each key).

        The column ``superseded`` is true where another version has been run since: of a plug-in, a file or a solver.
        Damaged records are skipped and named in a warning.

        Raises
        ------
        BadInput
            If the query is wrong, would do anything but read, or takes longer than ``time_limit_s``; if the store was
            named and is not there.
        """
        self.check_readable()
        return self.tables(query, time_limit_s=time_limit_s)[0]

    def tables(self, *queries: str, time_limit_s: float | None = None) -> list[pd.DataFrame]:
        """Answer several queries like :meth:`sql`, over records that are read once; a missing store is empty."""
        return query(self.records, *queries, time_limit_s=time_limit_s)


def _write_arrays(file: BinaryIO, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays like numpy's ``savez_compressed``, at the fastest level: others take minutes if they are large."""
    import numpy as np

    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for key, value in arrays.items():
            with archive.open(f"{key}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, np.asarray(value), allow_pickle=False)


def _utc(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).isoformat().replace("+00:00", "Z")

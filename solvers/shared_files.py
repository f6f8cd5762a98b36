"""Files that processes share: atomic writing and locks, and private folders of a worker.

This also works on a file system that several machines share.

A file is written under a temporary name in its own folder and then renamed (:func:`rewrite`) or linked
(:func:`publish`) to its name, so readers never see a partial file. ``link`` fails if the name exists, also between
machines, so exactly one of several writers succeeds.

The system releases an advisory lock when its holder dies. On a file system without locks, every claim succeeds: a claim
only avoids duplicate work.

Through private folders a parent and its worker exchange JSON and arrays. A worker that is killed during a write leaves
the previous state readable. The owner of a folder locks it; a folder whose owner was killed is removed by the next
process that makes one.
"""

from __future__ import annotations

import json
import math
import os
import secrets
import shutil
import socket
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from opticoll.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray

    Arrays = Mapping[str, NDArray[Any]]
    #: Location of an array: file, first byte, type, shape.
    Place = tuple[str, int, str, tuple[int, ...]]


TEMPORARY = ".tmp-"
#: Age [s] from which a temporary file counts as abandoned by its writer.
STALE_S = 24 * 3600.0
#: Shortest time [s] between two flushes of a folder.
SYNC_S = 1.0


class AlreadyStored(Exception):
    """The file already exists, because another writer published it first."""


def publish(path: Path, write: Callable[[BinaryIO], None]) -> None:
    """Create ``path`` with the content that ``write`` writes, complete and flushed to disk.

    Raises
    ------
    AlreadyStored
        If ``path`` exists; it is not changed.
    BadInput
        If the folder cannot be written.
    """
    temporary = _temporary(path.parent)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("xb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        _link(temporary, path)
        _sync_folder(path.parent)
    except OSError as error:
        msg = f"store: cannot write {path}: {error.strerror or error}; choose another folder with --store"
        raise BadInput(msg) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def rewrite(path: Path, content: str | bytes | Callable[[BinaryIO], None], *, durable: bool = True) -> None:
    """Replace the content of ``path``, given or written by a function; readers see either the old or the new file.

    ``durable`` flushes it to disk first, so that it also survives a crash of the machine.
    """
    temporary = _temporary(path.parent)
    try:
        with temporary.open("xb") as file:
            if callable(content):
                content(file)
            else:
                file.write(content.encode() if isinstance(content, str) else content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _temporary(folder: Path) -> Path:
    return folder / f"{TEMPORARY}{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(6)}"


def _link(temporary: Path, path: Path) -> None:
    try:
        os.link(temporary, path)
    except OSError as error:
        # A network file system may carry out a link but lose the reply: two names then mean that it succeeded.
        if temporary.stat().st_nlink == 2:
            return
        if isinstance(error, FileExistsError):
            raise AlreadyStored(path.name) from None
        raise


_synced: dict[Path, float] = {}


def _sync_folder(folder: Path) -> None:
    """Flush new names in a folder to disk, at most once a second, where the system allows it.

    A crash of the machine may lose the names of the last second, but never part of a file.
    """
    now = time.monotonic()
    if now < _synced.get(folder, -SYNC_S) + SYNC_S:
        return
    _synced[folder] = now
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def sweep(folder: Path, *, stale_s: float = STALE_S) -> int:
    """Remove temporary files that writers abandoned at least ``stale_s`` seconds ago; return their number."""
    removed = 0
    oldest = time.time() - stale_s
    for path in folder.glob(f"{TEMPORARY}*"):
        with suppress(OSError):  # another process may remove it first
            if path.stat().st_mtime <= oldest:
                path.unlink()
                removed += 1
    return removed


try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None  # type: ignore[assignment]


@contextmanager
def claim(path: Path) -> Iterator[bool]:
    """Hold the lock file ``path`` during the block; yield False if another process holds it."""
    descriptor = _lock(path)
    if descriptor is None:
        yield False
        return
    try:
        yield True
    finally:
        with suppress(OSError):
            path.unlink()  # while we still hold the lock
        os.close(descriptor)


def _lock(path: Path) -> int | None:
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        locked = try_lock(descriptor)
        if locked is False:
            os.close(descriptor)
            return None
        if locked is None or _is_current(path, descriptor):
            return descriptor
        os.close(descriptor)  # its holder removed the file between our opening and locking it


def try_lock(descriptor: int) -> bool | None:
    """Lock an open file; return False if another process holds the lock, None if the file system has no locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _is_current(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


PREFIX = "opticoll-"
NESTED = "OPTICOLL_SCRATCH"
"""Environment variable with the folder of the enclosing worker, so that nested folders are removed with it."""

_MIB = 2**20
#: File size from which arrays are mapped rather than read, and alignment of arrays in a file [bytes].
_MAPPED_BYTES, _ALIGNED = 2**20, 64
_SWEEP_AGE_S = 60.0


def write_json(path: Path, value: Any) -> None:
    """Write ``value`` atomically."""
    rewrite(path, json.dumps(value, default=_plain), durable=False)


def read_json(path: Path) -> Any:
    """Read what :func:`write_json` wrote, or None if there is nothing yet."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None


def write_arrays(folder: Path, arrays: Arrays, tag: str) -> dict[str, Place]:
    """Save named arrays in one file and return the location of each.

    Raises
    ------
    TypeError
        For arrays of objects or records.
    """
    places: dict[str, Place] = {}
    if not arrays:
        return places
    file = f"{tag}.bin"
    with (folder / file).open("wb") as target:
        for name, array in arrays.items():
            whole = np.asarray(array, order="C")
            if whole.dtype.hasobject or whole.dtype.names:
                msg = f"array {name!r} has the type {whole.dtype}; only numbers, booleans and strings can be sent"
                raise TypeError(msg)
            target.write(bytes(-target.tell() % _ALIGNED))
            places[name] = (file, target.tell(), whole.dtype.str, whole.shape)
            whole.tofile(target)
    return places


def read_arrays(folder: Path, places: Mapping[str, Place], *, mapped: bool = False) -> dict[str, NDArray[Any]]:
    """Load the arrays that :func:`write_arrays` saved; if ``mapped``, read-only and large files stay on disk."""
    files = {file: _bytes_in(folder / file, mapped=mapped) for file, *_ in places.values()}
    arrays = {}
    for name, (file, start, kind, shape) in places.items():
        size = math.prod(shape) * np.dtype(kind).itemsize
        arrays[name] = files[file][start : start + size].view(kind).reshape(shape)
    return arrays


def _bytes_in(path: Path, *, mapped: bool) -> NDArray[np.uint8]:
    if mapped and path.stat().st_size >= _MAPPED_BYTES:
        return np.asarray(np.memmap(path, mode="r"))
    whole = np.fromfile(path, dtype=np.uint8)
    whole.flags.writeable = not mapped
    return whole


class Report:
    """The progress of a worker, which the parent can read even after the worker has died.

    New values and arrays replace earlier ones of the same name; the others remain, so a new bound keeps the incumbent.
    May be called from any thread of the solver.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._serial = 0
        self._values: dict[str, Any] = {}
        self._places: dict[str, Place] = {}

    def __call__(self, values: Mapping[str, Any], arrays: Arrays | None = None) -> None:
        """Save ``values`` and ``arrays``."""
        with self._lock:
            self._serial += 1
            self._values.update(values)
            before = {file for file, *_ in self._places.values()}
            self._places.update(write_arrays(self._folder, arrays or {}, f"progress-{self._serial}"))
            write_json(
                self._folder / "progress.json",
                {"serial": self._serial, "values": self._values, "places": self._places},
            )
            for file in before - {file for file, *_ in self._places.values()}:
                (self._folder / file).unlink(missing_ok=True)


def read_progress(
    folder: Path, after: int = 0, *, mapped: bool = False
) -> tuple[int, dict[str, Any], dict[str, NDArray[Any]]] | None:
    """Read the last report if its serial is above ``after``: serial, values, arrays; else None.

    ``mapped`` leaves the arrays on disk, for callers that may not read them.
    """
    for _ in range(20):
        state = read_json(folder / "progress.json")
        if state is None or state["serial"] <= after:
            return None
        try:
            return state["serial"], state["values"], read_arrays(folder, state["places"], mapped=mapped)
        except FileNotFoundError:
            continue  # replaced by a newer report between the two reads
    return None


@contextmanager
def scratch_folder(size_bytes: int) -> Iterator[Path]:
    """Make a private folder with room for ``size_bytes``, in memory if possible, and remove it afterwards."""
    _sweep()
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=_place(size_bytes)))
    lock = _folder_lock(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if folder.exists():  # a dying worker may have written another file meanwhile
            time.sleep(0.05)
            shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def _place(size_bytes: int) -> str | None:
    outer = os.environ.get(NESTED)
    if outer and Path(outer).is_dir():
        return outer
    shared = Path("/dev/shm")
    if shared.is_dir() and os.access(shared, os.W_OK):
        with suppress(OSError):
            if shutil.disk_usage(shared).free > 4 * size_bytes + 256 * _MIB:
                return str(shared)
    return None


def _folder_lock(folder: Path) -> int | None:
    """Lock a folder until the descriptor is closed; None if another process holds the lock or there are no locks."""
    handle = os.open(folder / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    if try_lock(handle):
        return handle
    os.close(handle)
    return None


@cache
def _sweep() -> None:
    """Remove folders of this user whose owner was killed (their lock is free)."""
    for parent in {_place(0) or tempfile.gettempdir(), tempfile.gettempdir()}:
        for folder in Path(parent).glob(f"{PREFIX}*"):
            with suppress(OSError):
                status = folder.stat()
                if status.st_uid != os.getuid() or time.time() - status.st_mtime < _SWEEP_AGE_S:
                    continue
                if not (folder / "lock").exists():
                    continue
                handle = _folder_lock(folder)
                if handle is not None:
                    shutil.rmtree(folder, ignore_errors=True)
                    os.close(handle)


def _plain(value: Any) -> Any:
    """Convert values that solvers return to JSON: numpy scalars, paths, enumerations."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    return str(value)
